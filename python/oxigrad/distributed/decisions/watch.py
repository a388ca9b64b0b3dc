"""The decision of a worker that waits for an answer: whether the other worker has stopped, or has no answer yet."""

from typing import Literal, TypeAlias

PARTS = 8
"""The parts that a time-out is divided into."""

Action: TypeAlias = Literal["ask", "lost", "late"]
"""Ask whether it lives; take it for lost; or give up, as it lives and has no answer."""


class Watch:
    """State machine of a wait of ``seconds``, which is done in parts of ``part`` seconds.

    It asks after half of the time-out without a message. A worker that then sends nothing for the rest of it is taken
    for lost. One that answers the question is alive: the wait ends by "late" after the time-out. A part that takes far
    longer than it should proves nothing, since then the waiting process itself was stopped: the time-out begins again.

    >>> watch = Watch(8.0)
    >>> [watch.waited(1.0) for _ in range(8)]
    [None, None, None, 'ask', None, None, None, 'lost']
    >>> watch = Watch(8.0)
    >>> [watch.waited(1.0) for _ in range(4)], watch.heard()
    ([None, None, None, 'ask'], None)
    >>> [watch.waited(1.0) for _ in range(4)], watch.heard()
    ([None, None, None, 'ask'], 'late')
    """

    part: float

    def __init__(self, seconds: float) -> None:
        self.part = seconds / PARTS
        self._waited = self._silent = 0
        self._has_asked = False

    def waited(self, took: float) -> Action | None:
        """Event: a part of the wait has passed without a message, and took so many seconds."""
        if took > 3 * self.part:
            self._waited = self._silent = 0
            self._has_asked = False
            return None
        self._waited += 1
        self._silent += 1
        if self._silent >= PARTS and self._has_asked:
            return "lost"
        if self._silent >= PARTS // 2 and not self._has_asked:
            self._has_asked = True
            return "ask"
        return None

    def heard(self, has_content: bool = False) -> Action | None:
        """Event: a message has come, whose content may bring the worker further."""
        self._silent, self._has_asked = 0, False
        if has_content:
            self._waited = 0
        return "late" if self._waited >= PARTS else None
