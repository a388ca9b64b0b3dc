"""Work on a separate thread, which either runs to its end or does not begin.

Python raises interrupts in the main thread only.
"""

import _thread  # `threading.Thread.start` can be interrupted between the begin of the thread and its record of it
import contextlib
import contextvars
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any


class Future:
    """The completion of work passed to a `Worker`.

    Unlike a future of `concurrent.futures`, it survives an interrupt of a waiting thread.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work: Callable[[], Any] | None = work
        self._error: BaseException | None = None
        self._context, self._settings = contextvars.copy_context(), thread_settings()
        # The turn is had by the thread that does the work, or drops it.
        self._turn, self._running = _thread.allocate_lock(), _thread.allocate_lock()
        self._running.acquire()

    def run(self, lock: AbstractContextManager[Any]) -> None:
        """Does the work, unless it was dropped, while the thread has the lock."""
        with lock, self._turn:
            work, self._work = self._work, None
            try:
                if work is not None:
                    with self._settings():
                        self._context.run(work)
            except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
                self._error = error
            finally:
                self._running.release()

    def is_done(self) -> bool:
        """Whether the work has ended, or was dropped."""
        return self._work is None and not self._turn.locked()

    def wait(self) -> None:
        """Waits for the end of work that has begun, and drops other work. An interrupt is raised after the end."""
        stop: BaseException | None = None
        while True:
            try:
                with self._turn:
                    self._work = None
                break
            except BaseException as error:  # noqa: BLE001 - whatever a signal handler raises
                stop = error
        if stop is not None:
            raise stop

    def join(self) -> None:
        """Waits for the end of work, or for an interrupt."""
        with self._running:
            pass

    def result(self) -> None:
        """Raises the error of the work, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error


class Worker:
    """A single worker thread with the settings of the thread that submits the work.

    The settings are contexts of Python, and threads and streams of PyTorch.
    """

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()

    def begin(self, future: Future) -> None:
        """Begins work, after the work before."""
        _thread.start_new_thread(future.run, (self._lock,))

    def run(self, work: Callable[[], Any]) -> None:
        """Does work, and waits for it. An interrupt comes before it or after it."""
        future = Future(work)
        try:
            self.begin(future)
            future.join()
        except BaseException:
            future.wait()
            raise
        future.result()


def thread_settings() -> Callable[[], AbstractContextManager[None]]:
    """The settings of PyTorch in this thread, if it is imported, as a block of another thread."""
    torch: Any = sys.modules.get("torch")
    if not hasattr(torch, "get_num_threads"):
        return contextlib.nullcontext
    threads, cuda = torch.get_num_threads(), torch.cuda
    devices = range(cuda.device_count()) if cuda.is_initialized() else ()
    current, streams = cuda.current_device() if devices else None, [*map(cuda.current_stream, devices)]

    @contextlib.contextmanager
    def settings() -> Iterator[None]:
        torch.set_num_threads(threads)
        with ExitStack() as stack:
            for stream in streams:
                stack.enter_context(cuda.stream(stream))
            if current is not None:
                stack.enter_context(cuda.device(current))
            yield

    return settings
