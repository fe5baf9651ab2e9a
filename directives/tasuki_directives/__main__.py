"""python -m tasuki_directives: the command tasuki-cc."""

import sys

from .command import main

sys.exit(main(sys.argv[1:]))
