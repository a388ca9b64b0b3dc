"""Contestants that need another Python than this one: advect needs 3.12.

Such a contestant runs in a worker, ``target/advect/bin/python benches/elsewhere.py``, which imports the same rows. A call is a line that
is written to it and one that is read from it, of 0.1 ms at most, beside calls of milliseconds.
"""

import atexit
import gc
import importlib
import importlib.util
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

sys.path += os.environ.get("BEHIND", "").split(os.pathsep) if __name__ == "__main__" else []

import sizes
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
        return _Worker(python, [library, module, row]).ready()

    return Contestant(library, "peer", prepare)


class _Worker:
    """A process that calls a contestant when it is told to, and ends with this one."""

    def __init__(self, python: Path, arguments: list[str]) -> None:
        line = [str(python), __file__, *arguments, *(["--small"] if sizes.is_small() else [])]
        # Behind the packages of its own Python: oxigrad, which the modules of rows import.
        behind = {**os.environ, "PYTHONPATH": "", "BEHIND": os.pathsep.join([sysconfig.get_path("purelib"), *sys.path])}
        self.process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=behind)
        atexit.register(self.process.kill)

    def ask(self, what: str) -> None:
        to, back = self.process.stdin, self.process.stdout
        if to is None or back is None:
            raise WrongResultError("the worker has no pipes")
        to.write(f"{what}\n")
        to.flush()
        if (answer := back.readline().strip()) != "done":
            raise WrongResultError(answer or "the worker has ended")

    def ready(self) -> Ready:
        return Ready(lambda: self.ask("call"), lambda: self.ask("check"))


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
