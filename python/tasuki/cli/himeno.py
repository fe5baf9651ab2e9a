"""`tasuki himeno`: the Himeno benchmark on one or several numbers of ranks."""

from tasuki.cli.app import app_command

command = app_command("himeno", "The Himeno benchmark: Jacobi's method for Poisson's equation, 19 points, float.")
