"""`tasuki laplace`: the Laplace example on one or several numbers of ranks."""

from tasuki.cli.app import app_command

command = app_command("laplace", "Jacobi's method for Laplace's equation in two dimensions, double.")
