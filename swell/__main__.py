"""``python -m swell``: the command line."""
import sys

from swell.cli import main

sys.exit(main())
