"""The command ``python -m oxigrad.launch``."""

import sys

from oxigrad.launch import main

sys.exit(main())
