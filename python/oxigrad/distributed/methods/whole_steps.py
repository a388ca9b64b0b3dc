"""Steps of wrappers that an interrupt leaves whole: the optimizer's step, and what the wrapper keeps beside it."""

import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from oxigrad import NonFiniteError
from oxigrad._typing import Tree
from oxigrad.distributed.communicator import SingleWorker
from oxigrad.extend import Worker

_Result = TypeVar("_Result")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def undivided(work: Callable[[], _Result]) -> _Result:
    """The result of work that no interrupt divides: another thread runs it, since only the main one handles signals."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    results: list[_Result] = []
    Worker().run(lambda: results.append(work()))
    return results[0]


class WholeSteps:
    """The part of a wrapper that keeps its own state at the step of its optimizer, wherever an interrupt comes."""

    communicator: Any
    _parameters: Any
    _stepper: Any
    _report: Any

    #: Whether a step writes parameters beside the optimizer's step, so that an interrupt of it cannot be undone by
    #: `_with_step`.
    _has_own_writes: Any = False

    def _whole(self, model: Tree, step: Callable[[], _Result]) -> _Result:
        """The result of a step on a model.

        No interrupt divides that of a single worker, whose parameters are updated in host memory.

        With others, it waits for them, which an interrupt ends.
        """
        if not (self._has_own_writes and isinstance(self.communicator, SingleWorker)):
            return step()
        plan = self._parameters.plan(model)
        # Other libraries have settings of threads, as the precision of JAX, which their arrays are made by.
        return step() if plan.replaced or plan.on_devices else undivided(step)

    def _with_step(
        self,
        step: Callable[[], _Result],
        values: Mapping[str, Any],
        state: Mapping[str, Any] = _NOTHING,
        *,
        accepted: bool,
        is_repeated: bool = False,
    ) -> _Result:
        """The result of the optimizer's step: attributes of the wrapper get new values, and the gradient is counted.

        Where an error or an interrupt comes before the step, all is as before it; but with other workers, which take
        the step, an interrupt is raised after it. Where the optimizer refuses the step by ``nonfinite="raise"``,
        ``values`` hold, as on all workers, and ``state`` is as before.
        """
        attributes, stepper, report = vars(self), self._stepper, self._report
        before = {name: attributes[name] for name in (*values, *state)}
        progress, counts = stepper.progress, (report.accepted, report.dropped)
        try:
            attributes.update(values, **state)
            report.count(accepted=accepted)
            return step()
        except BaseException as error:
            if isinstance(error, NonFiniteError):
                attributes.update({name: before[name] for name in state})
            elif stepper.progress == progress:
                attributes.update(before)
                report.accepted, report.dropped = counts
                if self.communicator.size > 1 and not (is_repeated or isinstance(error, Exception)):
                    self._with_step(step, values, state, accepted=accepted, is_repeated=True)
            raise
