"""The ends of copies that end late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class LateEvent:
    """The end of a copy, which is done by ``copy`` when it is waited for, or when it was looked at for some times."""

    def __init__(self, copy: Callable[[], Any], looks: int) -> None:
        self._copy: Callable[[], Any] | None = copy
        self._looks = looks

    def is_done(self) -> bool:
        self._looks -= 1
        if self._looks < 0:
            self.wait()
        return self._looks < 0

    def wait(self) -> None:
        if self._copy is not None:
            copy, self._copy = self._copy, None
            copy()
