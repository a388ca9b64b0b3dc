"""Runs a program in which oxigrad replaces autograd: ``python -m oxigrad.autograd program.py [ARGUMENT ...]``."""

import os
import runpy
import sys

from oxigrad.autograd.modules import install

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m oxigrad.autograd program.py [ARGUMENT ...]")
    install()
    del sys.argv[0]
    # As `python program.py` has it, for modules beside the program.
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
