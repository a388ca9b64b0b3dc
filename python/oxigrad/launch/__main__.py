"""The command ``python -m oxigrad.launch``."""

import sys

from oxigrad.launch import main

if __name__ == "__main__":
    sys.exit(main())
