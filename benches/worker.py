"""One side of `compare.py`: a process that imports oxigrad from the given folder and times the requested rows.

    python benches/worker.py FOLDER THREADS

A request is a line of JSON, and so is its answer: ``{"row": name}`` sets a row up and answers how many seconds a call
takes, ``{"calls": n}`` answers the seconds of n calls of that row. An answer ``{"error": text}`` says what failed.
"""

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def serve(folder: str, threads: int) -> None:
    """Answers requests until its input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)  # what a row prints is no answer
    sys.path.insert(0, folder)
    side = _Side(folder, threads)
    for line in sys.stdin:
        try:
            answer = side.answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - an old revision may lack what a row calls
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")


class _Side:
    """The package of one folder, and the row that is set up."""

    def __init__(self, folder: str, threads: int) -> None:
        import machine

        machine.announce_threads(threads)
        import oxigrad as ox

        if not Path(ox.__file__).resolve().is_relative_to(Path(folder).resolve()):
            raise SystemExit(f"oxigrad comes from {ox.__file__}, not from {folder}")
        ox.set_num_threads(threads)
        self.call: Callable[[], Any] = lambda: None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if "row" in request:
            import workloads

            self.call = workloads.ROWS[request["row"]]()
            return {"seconds": min(self.time(1) for _ in range(3))}
        return {"seconds": self.time(request["calls"])}

    def time(self, calls: int) -> float:
        """Seconds of so many calls, after one that is not timed; the garbage collector waits until they are over."""
        call = self.call
        gc.collect()
        gc.disable()
        try:
            call()
            start = time.perf_counter()
            for _ in range(calls):
                call()
            return time.perf_counter() - start
        finally:
            gc.enable()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
