"""`python -m bench NAME ...`, which `./run bench` calls."""

import sys

from bench.run import main

sys.exit(main(sys.argv[1:]))
