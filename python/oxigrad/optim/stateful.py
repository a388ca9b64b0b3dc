"""State of optimizers: counts, slots, recorded norms and averages, saved and loaded, copied and shown."""

import math
import os
from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any

from oxigrad import _core
from oxigrad._core import StateError
from oxigrad._names import check_flags
from oxigrad._tables import Table
from oxigrad._typing import Array, Config, T, Tree
from oxigrad.ops.backends import fetched
from oxigrad.optim import summary
from oxigrad.optim.settings.config import is_importable, other_names, remind, restored
from oxigrad.optim.settings.options import Options
from oxigrad.rules.core import norms
from oxigrad.rules.core.rule import Rule
from oxigrad.step import changes
from oxigrad.step.parameters.hyperparameter import Version
from oxigrad.step.parameters.parameter_group import ParameterGroup, SteppingOptions
from oxigrad.step.parameters.presence import PRESENCE, ParticipationLog
from oxigrad.step.parameters.weak import weakly
from oxigrad.step.state.state_dict import (
    COUNTS,
    FORMAT,
    PendingState,
    Report,
    checked,
    compare,
    config_of,
    copied_slots,
    read,
    without_norms,
    write,
)
from oxigrad.step.state.step_count import StepCount
from oxigrad.step.stepper import Stepper


class Slots(Mapping[Any, Mapping[str, Any]]):
    """Slots by key path and name.

    A key is a `KeyPath`, its text, or its text without quotes where that is unambiguous.
    """

    def __init__(self, by_path: Mapping[str, dict[str, Any]]) -> None:
        self._by_path = by_path

    def __getitem__(self, path: Any) -> Mapping[str, Any]:
        if str(path) not in self._by_path:
            alike = [text for text in self._by_path if '"' in text and _core.tree_unquoted(text) == path]
            if len(alike) == 1:
                return self._by_path[alike[0]]
            paths = ", ".join(self._by_path) or "no parameter: build or the first update makes them"
            raise KeyError(f"{path}: no slots; there are slots for {paths}")
        return self._by_path[str(path)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_path)

    def __len__(self) -> int:
        return len(self._by_path)

    def __repr__(self) -> str:
        return f"Slots({self._by_path!r})"


class StatefulOptimizer(Options):
    """Base class of `Optimizer`: the state that its steps leave, as its stepper holds it."""

    _stepper: Stepper
    _lock: "_core.Lock"
    #: The optimizers that it is made of, by the names that their parts have in a state.
    _inner: Mapping[str, Any] = MappingProxyType({})
    #: Whether `Optimizer.init` or `Optimizer.apply` was called.
    _is_pure: bool

    @property
    def name(self) -> str:
        """The name of the optimizer in configurations and states."""
        raise NotImplementedError

    def get_config(self) -> Config:
        """The optimizer as plain data (JSON), for `from_config`. Raises `TypeError` if a function is no `Schedule`.

        >>> from oxigrad.optim import Adam
        >>> Adam(learning_rate=0.1).get_config()["learning_rate"]
        0.1
        """
        raise NotImplementedError

    # --- called by the stepper ----------------------------------------------------------------------------------------

    @property
    def scale(self) -> float:
        """The factor of the loss in `compute_gradients`, by which the step divides the gradients."""
        return self.loss_scale.value if self.loss_scale else 1.0

    def _resume(self, stepper: Stepper) -> None:
        """Replaces the stepper by the stepper of a loaded state."""
        self._stepper = stepper

    @property
    def _step_options(self) -> SteppingOptions:
        """The options of its steps, as the stepper has them."""
        return self._stepper.options

    def _new_options(self) -> SteppingOptions:
        """The options as they are set, for the stepper."""
        return SteppingOptions(
            self._precision,
            self.sparse,
            self.nonfinite,
            self.zero_gradients,
            self.seed,
            self.accumulate,
            self.loss_scale,
            self.record_norms,
            self._versions(),
            weakly(self._assign),
            weakly(self._check_patterns),
        )

    def _set_checked(self, name: str, value: Any) -> None:
        """See `Options._set_checked`: the stepper has the options of the next step."""
        super()._set_checked(name, value)
        if "_stepper" in vars(self):
            self._stepper.set_options(self._new_options())
            self._version.raise_structure()

    def _assign(self, path: str, array: Array, owner: Any = None) -> ParameterGroup | None:
        """The parameter group of a parameter, given by key path and array; None for a frozen parameter.

        Where ``owner`` takes the steps, it is the partition, `SAM` or wrapper around this optimizer.
        """
        raise NotImplementedError

    def _versions(self) -> tuple[Version, ...]:
        """The versions of its settings and of its inner optimizers' settings: a plan is valid until one changes."""
        if not self._inner:
            return (self._version,)
        return (self._version, *(version for inner in self._inner.values() for version in inner._versions()))

    def _check_patterns(self, parameters: list[tuple[str, Array]]) -> None:
        """Raises `StructureError` where a pattern matches no parameter of a model, given as paths and arrays."""
        for optimizer in self._inner.values():
            optimizer._check_patterns(parameters)

    def _rules_and_absent(self) -> list[tuple[Rule, set[str]]]:
        """The rules, each with the optional slots that no parameter has."""
        return [each for optimizer in self._inner.values() for each in optimizer._rules_and_absent()]

    # --- counts and slots ---------------------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """The number of steps taken."""
        return StepCount(self._stepper.counts.taken)

    @property
    def skipped(self) -> int:
        """The number of steps that were skipped because their gradients were not finite."""
        return self._stepper.counts.skipped

    @property
    def slots(self) -> Slots:
        """The slots by key path and name: ``opt.slots["l1.weight"]["m"]``.

        An array of the same shape and dtype may be assigned to a slot, and is copied into it for the next step. The
        array of a slot may also be changed in place. If its memory was replaced since the last step, as by torch's
        ``set_`` or NumPy's ``resize``, the step uses the new memory, or raises the error that such a parameter would
        raise.
        """
        return Slots(self._stepper.slots)

    @property
    def recorded_norms(self) -> dict[str, dict[str, float]]:
        """The norms that the last step recorded, by kind and key path: ``opt.recorded_norms["gradient"]["l1.weight"]``.

        The option ``record_norms`` chooses kinds. They are computed in the pass over memory that updates the
        parameters, and summed in float64: "gradient" before clipping and other transforms, of the mean where gradients
        are accumulated; "update" of the change of the parameter; "parameter" of its new value. A parameter that the
        last step did not update has the norms of its last update. Reading them waits for steps on devices.
        `global_norm` is over all parameters. Of `Optimizer.apply`, the state has them: ``state["slots"][path]``.

        >>> import numpy as np
        >>> from oxigrad.optim import SGD
        >>> opt = SGD(0.5, record_norms=("gradient", "update"))
        >>> model = opt.update(
        ...     {"w": np.zeros(2), "b": np.zeros(1)}, {"w": np.array([3.0, 4.0]), "b": np.array([12.0])}
        ... )
        >>> opt.recorded_norms
        {'gradient': {'w': 5.0, 'b': 12.0}, 'update': {'w': 2.5, 'b': 6.0}}
        >>> opt.global_norm("gradient")
        13.0
        """
        with self._lock.reading():
            return {
                kind: {
                    path: float(fetched(by_name[name]))
                    for path, by_name in self._stepper.table.by_path.items()
                    if (name := norms.SLOTS[kind]) in by_name
                }
                for kind in self.record_norms
            }

    def global_norm(self, kind: str) -> float:
        """The norm of all parameters' "gradient", "update" or "parameter"; raises `ValueError` if not recorded."""
        if kind not in self.record_norms:
            recorded = ", ".join(map(repr, self.record_norms)) or "none"
            raise ValueError(f"the norm {kind!r} is not recorded: expected one of record_norms, {recorded}")
        return math.hypot(*self.recorded_norms[kind].values())

    # --- averages -----------------------------------------------------------------------------------------------------

    def averaged_parameters(self, model: Tree = None) -> dict[str, Any]:
        """The averages of the parameters by key path, as computed by ASGD, `EMA`, `SWA` or a schedule-free optimizer.

        A chain returns the averages of its last part that has them. Schedule-free optimizers compute them from slots
        and parameters, and require ``model``. Raises `StateError` where there are no averages, as after
        `Optimizer.apply`, until its state is loaded (see `save`).

        >>> import numpy as np
        >>> from oxigrad.optim import EMA, SGD, chain
        >>> opt = chain(SGD(1.0), EMA(decay=0.5))
        >>> model = opt.update({"w": np.zeros(1)}, {"w": np.ones(1)})
        >>> opt.averaged_parameters()
        {'w': array([-0.5])}
        """
        with self._lock.reading() if model is None else self._lock:
            return changes.averaged_parameters(self._stepper, model)

    def copied_parameters(self) -> dict[str, Any]:
        """The copies of the parameters in another dtype, by key path, as computed by `Copy`.

        Where parameters are updated in place in host memory, so are the copies: each step writes to the same arrays.
        Raises `StateError` where there are no copies.

        >>> import numpy as np
        >>> from oxigrad.optim import SGD, Copy, chain
        >>> opt = chain(SGD(1.0), Copy("float16"))
        >>> model = opt.update({"w": np.zeros(1)}, {"w": np.ones(1)})
        >>> opt.copied_parameters()
        {'w': array([-1.], dtype=float16)}
        """
        with self._lock.reading():
            return changes.copied_parameters(self._stepper)

    def swap_in(self, model: T) -> T:
        """Replaces the parameters by their averages, in place as `update` does; `swap_out` restores the parameters.

        Returns the model. Steps raise `StateError` until `swap_out`. Raises `StateError` where there are no averages.
        """
        with self._lock:
            return changes.swap_in(self._stepper, model)

    def swap_out(self, model: T) -> T:
        """Restores the parameters that `swap_in` replaced, to the bit, and returns the model.

        >>> import numpy as np
        >>> from oxigrad.optim import EMA, SGD, chain
        >>> opt = chain(SGD(1.0), EMA(decay=0.5))
        >>> model = opt.update({"w": np.zeros(1)}, {"w": np.ones(1)})
        >>> opt.swap_in(model), opt.swap_out({"w": model["w"].copy()})
        ({'w': array([-0.5])}, {'w': array([-1.])})
        """
        with self._lock:
            return changes.swap_out(self._stepper, model)

    # --- state --------------------------------------------------------------------------------------------------------

    def state_dict(self, *, copy: bool = True) -> dict[str, Any]:
        """The state as plain data and arrays: slots by key path, counts, schedules, loss scale and configuration.

        The arrays are copies of the slots, of the same library and dtype; with ``copy=False`` they are the slots
        themselves, which later steps may write to. ``config`` is None where `get_config` raises. Raises `StateError`
        between `swap_in` and `swap_out`.
        """
        check_flags(copy=copy)
        with self._lock.reading():
            return collect(self, copy=copy)

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> Report:
        """Loads the result of `state_dict`: slots, counts, and what schedules and the loss scale remember.

        Hyperparameters and options are not changed, also where the state has others: they are in its ``config``, of
        which `from_config` makes an optimizer.

        Arrays are copied to the library and device of the parameter; their dtype must be equal. The state is loaded
        whole or not at all: `StateError` lists missing and unexpected entries, and entries of another shape or dtype.
        With ``strict=False``, matching entries are loaded, and the report lists the others; a parameter without
        matching arrays keeps its slots and the number of steps that it took part in. Before the first `build` or
        `update` the parameters are unknown: slots are then compared in it, and it raises the error or completes the
        report.
        """
        check_flags(strict=strict)
        with self._lock:
            return resume(self, state, strict=strict)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes `state_dict` to a safetensors file. An existing file is replaced atomically.

        Raises `OSError` where the file cannot be written, and `StateError` for a dtype that the format lacks, or where
        there is a device or a pipe. `StateError` is raised too for an optimizer whose only steps are of
        `Optimizer.apply`, whose state it does not have; the message tells how `load_state_dict` takes that state.
        """
        with self._lock.reading():
            if self._is_pure and not self._stepper.slots and not self._stepper.counts.taken:
                raise StateError(
                    f"{self.name}.save: the optimizer has taken no step, and the state of init and apply is not in it: "
                    'expected load_state_dict({**opt.state_dict(), "step": int(state["step"]), "slots": '
                    'state["slots"]}) before'
                )
            write(file, collect(self, copy=False, to_file=True))

    def load(self, file: str | os.PathLike[str], strict: bool = True) -> Report:
        """Loads a file written by `save`, as `load_state_dict`, which changes no hyperparameter.

        ``from_config(oxigrad.state.read(file)["config"])`` is an optimizer with the hyperparameters of the file.
        Raises `StateError` also where the file is damaged, has no state, or is no regular file, such as a pipe.
        """
        return self.load_state_dict(read(file), strict)

    def _remembering(self) -> dict[str, Any]:
        """The schedules and loss scales with a state, by name."""
        parts = {name: part for name, part in self._parts() if hasattr(part, "state_dict")}
        return {name: part for name, part in parts.items() if part.state_dict()}

    def _parts(self) -> Iterator[tuple[str, Any]]:
        yield "loss_scale", self.loss_scale
        for prefix, optimizer in self._inner.items():
            yield from ((f"{prefix}.{name}", part) for name, part in optimizer._parts())

    def __reduce__(self) -> Any:
        """Pickles the configuration and the state; raises `TypeError` for an optimizer without a configuration.

        Its classes are pickled by name, so that the modules that define them are imported.
        """
        return restored, (self.get_config(), self.state_dict(), *filter(is_importable, self._classes()))

    def _classes(self) -> Iterator[type]:
        """The classes of the parts."""
        inner = self._inner.values()
        yield from (cls for optimizer in inner for cls in optimizer._classes()) if inner else (type(self),)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = memo[id(self)] = object.__new__(type(self))
        with self._lock.reading():
            self._stepper.check_whole()
            attributes = {
                name: value
                for name, value in vars(self).items()
                if name not in ("_lock", "_stepper", "_resolved_applies", "_parameter_groups")
            }
            vars(copied).update(deepcopy(attributes, memo), _lock=_core.Lock(), _resolved_applies={})
            vars(copied)["_stepper"] = self._stepper.copied(copied._new_options())
        return copied

    # --- shown --------------------------------------------------------------------------------------------------------

    def summary(self) -> Table:
        """A table of the slots of each parameter: names, dtypes and bytes, with the sum of bytes in the last line.

        Parameters that the last step did not update come last. It is text of at most 100 columns, which notebooks show
        as HTML.

        >>> import numpy as np
        >>> from oxigrad.optim import Adam
        >>> opt = Adam(0.1, groups={"b": None})
        >>> opt.build({"w": np.ones((2, 3)), "b": np.ones(3)})
        >>> print(opt.summary())
        parameter  shape   dtype    optimizer  slots  dtypes   bytes
        w          (2, 3)  float64  Adam       m, v   float64  96
        all                                                    96
        """
        with self._lock.reading():
            rows = [*summary.rows(self._stepper.plan, self._stepper.table.by_path)]
        return summary.table(repr(self), self.step, rows)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def collect(opt: StatefulOptimizer, *, copy: bool = True, to_file: bool = False) -> dict[str, Any]:
    """See `Optimizer.state_dict`; ``to_file`` if it is only written to a file, so that the user keeps no array."""
    stepper = opt._stepper
    slots = without_norms(stepper.table.by_path if copy or to_file else stepper.slots)
    stepper.refuse_swapped()
    stepper.check_whole()
    remembered = {name: part.state_dict() for name, part in opt._remembering().items()}
    if present := stepper.presence.state(stepper.counts.taken, slots):
        remembered[PRESENCE] = present
    return {
        "format": FORMAT,
        "optimizer": opt.name,
        "config": config_of(opt),
        "step": stepper.counts.taken,
        "micro": stepper.micro,
        "skipped": stepper.counts.skipped,
        "remembered": deepcopy(remembered) if copy else remembered,
        "slots": copied_slots(slots) if copy else {path: dict(by_name) for path, by_name in slots.items()},
    }


def resume(opt: StatefulOptimizer, state: Any, *, strict: bool = True) -> Report:
    """See `Optimizer.load_state_dict`."""
    state = {**checked(state), "slots": without_norms(state["slots"])}
    stepper = opt._stepper
    parts, fitting = opt._remembering(), PendingState(strict, report := Report())
    stepper.refuse_swapped()
    if names := other_names(opt.name, config_of(opt), state):
        report.mismatched.append("the optimizer is {}, the state is of {}".format(*names))
    if state["micro"] >= opt.accumulate:
        report.mismatched.append(f"the optimizer accumulates {opt.accumulate}, the state has {state['micro']} already")
    remembered = dict(state["remembered"])
    ParticipationLog.check(presence := remembered.pop(PRESENCE, {}), state["step"])
    compare(report, parts, remembered, "{}: its state".format)
    if stepper.slots and stepper.fitting is None:
        slots, waits = _fitted(fitting, state["slots"], stepper, presence.get("without_slots", ())), None
        presence = stepper.presence.with_steps_of(fitting.lacking, presence, state["step"], stepper.counts.taken)
    else:
        has_begun = state["slots"] or any(state[name] for name in COUNTS)
        slots, waits = copied_slots(state["slots"]), fitting if has_begun else None
    fitting.check(report)
    before = {name: part.state_dict() for name, part in parts.items()}
    try:
        for name in remembered.keys() & parts.keys():
            remind(report, name, parts[name], before[name], remembered[name])
        fitting.check(report)
        counts = {**{name: state[name] for name in COUNTS}, **({"micro": 0} if report else {})}
        opt._resume(stepper.resumed(counts, slots, waits, presence))
    except BaseException:  # An interrupt may come anywhere, and everything is restored.
        opt._resume(stepper)
        for name, part in parts.items():
            part.load_state_dict(before[name])
        raise
    return report


def _fitted(
    fitting: PendingState, slots: Mapping[str, Any], stepper: Stepper, without: Collection[str]
) -> dict[str, Any]:
    """A state's slots for the parameters of an optimizer. Slots of those ``without`` any in either begin later."""
    existing = {path: named for path, named in stepper.slots.items() if path in slots or path not in without}
    begun = {path: named for path, named in slots.items() if path not in existing and path in stepper.presence.waiting}
    matching = {path: named for path, named in slots.items() if path not in begun}
    return {**fitting(matching, existing), **copied_slots(begun)}
