"""Runs a program of this folder for each line of the standard input, and prints its results and their times as JSON.

    python child.py PROGRAM FOLDER

The folder has the module `door`, which chooses whose autograd is imported.
"""

import contextlib
import importlib
import json
import sys
import time
import traceback
import warnings

warnings.simplefilter("ignore")
sys.path.insert(1, sys.argv[2])
importlib.import_module("door")
CLOCK = importlib.import_module("clock").CLOCK

for _ in sys.stdin:
    values, error, seconds = {}, None, {}
    try:
        with contextlib.redirect_stdout(sys.stderr):
            program = importlib.import_module(sys.argv[1])
            start = time.process_time(), CLOCK.seconds
            for key, value in program.results():
                values[key] = value
                seconds[key] = time.process_time() - start[0], CLOCK.seconds - start[1]
                start = time.process_time(), CLOCK.seconds
    except Exception:  # noqa: BLE001 (any program)
        error = traceback.format_exc()
    sys.stdout.write(json.dumps({"values": values, "error": error, "seconds": seconds}) + "\n")
    sys.stdout.flush()
