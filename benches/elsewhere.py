"""Contestants that need another Python than this one: advect needs 3.12.

Such a contestant runs in a worker, ``target/advect/bin/python benches/elsewhere.py``, which imports the same rows. A call is a line that
is written to it and one that is read from it, of 0.1 ms at most, beside calls of milliseconds.
"""

import gc
import importlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

sys.path += os.environ.get("BEHIND", "").split(os.pathsep) if __name__ == "__main__" else []

import sizes
from child import Child
from machine import threads_limited
from measure import Contestant, Ready, WrongResultError

ENVIRONMENTS = Path(__file__).parents[1] / "target"


def contestant(library: str, module: str, row: str, here: Callable[[], Ready]) -> Contestant:
    """A peer that is prepared ``here`` where its library is installed, and else in the environment of the library's name.

    ``module`` is the module in `rows` whose row of the name ``row`` has the contestant, under the name of the library.
    """

    def prepare() -> Ready:
        if importlib.util.find_spec(library) is not None:
            return here()
        python = ENVIRONMENTS / library / "bin" / "python"
        if not python.exists():
            raise ImportError(library)
        line = [str(python), __file__, library, module, row, *(["--small"] if sizes.is_small() else [])]
        # Behind the packages of its own Python: oxigrad, which the modules of rows import.
        behind = os.pathsep.join([sysconfig.get_path("purelib"), *sys.path])
        worker = Child(line, {**os.environ, "PYTHONPATH": "", "BEHIND": behind})
        return Ready(lambda: worker.ask("call"), lambda: worker.ask("check"))

    return Contestant(library, "peer", prepare)


def main(library: str, module: str, name: str) -> None:
    """Prepares a contestant, and obeys."""
    rows = importlib.import_module(f"rows.{module}").ROWS
    row = next(row for row in rows if row.name == name)
    ready = next(one for one in row.build() if one.name == library).prepare()
    gc.disable()
    with threads_limited(row.threads):
        for line in sys.stdin:
            try:
                ready.check() if line.strip() == "check" else ready.call()
            except WrongResultError as error:
                print(error, flush=True)
            else:
                print("done", flush=True)


if __name__ == "__main__":
    if "--small" in sys.argv:
        sizes.shrink()
    main(*sys.argv[1:4])
