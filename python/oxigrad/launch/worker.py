"""Runs the program of one worker, and ends by a signal if the program ends in the middle of its job.

The signal does not depend on the program's status. The launcher of Open MPI tells the other workers about a process
that a signal ended. It does not tell them about a process that ends itself, as by ``os._exit(3)`` or by ``exit`` in a
library: they would wait for it until their time-out. This file is run by its path, since it needs nothing of the
package.
"""

import ctypes
import os
import signal
import sys
from typing import NoReturn

PIPE = "OXIGRAD_WORKER_PIPE"
"""The variable with the file descriptor to which the engine writes `BEGUN`, and `ENDED` on a normal end."""

BEGUN, ENDED = b"+", b"-"

_DEATH_SIGNAL = 1  # of the parent, to `prctl`


def main(program: list[str]) -> NoReturn:
    """Runs a program in another process, and ends as it does."""
    reading, writing = os.pipe()
    parent, child = os.getpid(), os.fork()
    if child == 0:
        os.close(reading)
        os.set_inheritable(writing, True)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        os.execve(sys.executable, [sys.executable, *program], {**os.environ, PIPE: str(writing)})  # noqa: S606 - user's
    os.close(writing)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT):
        signal.signal(number, lambda number, _: os.kill(child, number))
    _, status = os.waitpid(child, 0)
    os.set_blocking(reading, False)
    os._exit(_status(status, _last(reading)))


def _last(pipe: int) -> bytes:
    """The last byte that the engine has written."""
    try:
        return os.read(pipe, 1 << 10)[-1:]
    except BlockingIOError:  # a process that the program has started has the other end
        return b""


def _status(status: int, last: bytes) -> int:
    """The status of this process, from the program's status; does not return if a signal ends this process too."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0 or last == BEGUN:
        number = -code if code < 0 else int(signal.SIGKILL)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    main(sys.argv[1:])
