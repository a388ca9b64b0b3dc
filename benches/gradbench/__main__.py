"""The table of GradBench: `python benches/gradbench`, with the options of `versus.py`."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])

import versus  # noqa: E402

if __name__ == "__main__":
    sys.exit(versus.main(sys.argv[1:], "gradbench"))
