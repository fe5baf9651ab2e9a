"""`python -m tasuki` is the command line."""

from tasuki.cli import entry

entry()
