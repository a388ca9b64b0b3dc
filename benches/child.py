"""Processes in which contestants run, told by lines what to do."""

import subprocess
from collections.abc import Mapping, Sequence

import measure


class Child:
    """A process that answers each line with "done", or with what is wrong, and ends with the row that runs."""

    def __init__(self, line: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(environment)
        )
        measure.ENDINGS.callback(self._end)

    @property
    def is_running(self) -> bool:
        """Whether the process takes lines."""
        return self._process.poll() is None

    def ask(self, what: str) -> None:
        """Has the process do what a line says. Raises `WrongResultError` for another answer than "done"."""
        to, back = self._process.stdin, self._process.stdout
        if to is None or back is None:
            raise measure.WrongResultError("the process has no pipes")
        to.write(f"{what}\n")
        to.flush()
        if (answer := back.readline().strip()) != "done":
            raise measure.WrongResultError(answer or "the process has ended")

    def _end(self) -> None:
        """Ends the process, and with it those that it has started."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
