"""The updates of a step in host memory by pieces: updated parameters go up while others are updated."""

from collections.abc import Callable, Sequence
from typing import Any

from oxigrad.ops.backends.memory.transfers import DONE, Event
from oxigrad.ops.backends.memory.worker import Worker
from oxigrad.stepping.device.host_model import HostArray, Landing, join
from oxigrad.stepping.device.piece_run import PieceRun
from oxigrad.stepping.device.transfers import Action, Schedule
from oxigrad.stepping.parameters.parameter import Parameter


class HostUpdates(PieceRun):
    """The updates of ``pieces``, lists of parameters, after all copies down: before, an error changes nothing.

    An error of a copy up ends neither the updates nor other copies. It is the ``error`` after them, and ``behind`` has
    what was to be copied.

    Args:
        landing: the copies down.
        arrays: the parameters that are on devices, by key path.
        update: updates some parameters.
    """

    def __init__(
        self,
        pieces: Sequence[Sequence[Parameter]],
        landing: Landing,
        arrays: dict[str, HostArray],
        update: Callable[[Sequence[Parameter]], None],
    ) -> None:
        super().__init__(Schedule(None, measures=True), None, Worker())
        self._pieces, self._landing, self._arrays, self._update = pieces, landing, arrays, update
        self.behind: list[HostArray] = []
        self.error: Exception | None = None
        for _ in pieces:
            self.schedule.add()

    def _begin(self, opt: Any, action: Action) -> Sequence[Event] | None:
        parameters = self._pieces[action.piece]
        if action.kind == "down":  # They have begun, all before the first update.
            return self._landing.events if action.piece == 0 else []
        if action.kind == "up":
            pairs = [self._arrays[p.text] for p in parameters if p.text in self._arrays]
            return [event for pair in pairs if (event := self._begun_up(pair)) is not None]
        if action.kind == "update":
            self._update(parameters)
        return None

    def _begun_up(self, pair: HostArray) -> Event | None:
        """The end of a copy up, whose error is noted rather than raised; None where it does not begin."""
        try:
            event = pair.up()
        except Exception as error:  # noqa: BLE001 - raised at the end of the step
            self._fail(pair, error)
            return None

        def tried(call: Callable[[], Any]) -> bool:
            nonlocal event
            try:
                return event is DONE or bool(call())
            except Exception as error:  # noqa: BLE001 - raised at the end of the step
                self._fail(pair, error)
                event = DONE
                return True

        return Event(lambda: tried(event.is_done), lambda: tried(event.wait))

    def _fail(self, pair: HostArray, error: Exception) -> None:
        """Takes note of a copy up that has failed."""
        self.behind.append(pair)
        self.error = self.error or error

    def _complete(self, opt: Any) -> None:
        self.advance(opt)
        opt.count_parts()
        join(self._arrays.values())

    def finish_whole(self, opt: Any) -> None:
        """Takes the step, which no key stops: an interrupt comes before it, or is raised when it has ended."""
        self._worker.run(lambda: self.finish(opt))
