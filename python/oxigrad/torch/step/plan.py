"""The plan of a step for the tensors of an optimizer: their groups and executors, and their state."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from oxigrad import _core
from oxigrad.ops.core.aliasing import refuse_shared
from oxigrad.step.arrays.precision import MASTER, half
from oxigrad.step.parameters.device_kernels import is_permuted
from oxigrad.step.parameters.executor import DEVICE, HOST, RULE_ASSIGNED, RULE_INTO, Executor, executor_of
from oxigrad.step.parameters.parameter import Parameter
from oxigrad.step.placement.slices import Measures
from oxigrad.step.plan.assignment import Assignment
from oxigrad.step.plan.programs import checked, host_parameter
from oxigrad.step.state.step_count import check_step_count
from oxigrad.torch.group import TensorGroup
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.state.master import Mastered
from oxigrad.torch.step.device import order_of_kernel
from oxigrad.torch.step.slots import TensorSlots


class TensorPlace(NamedTuple):
    """The place of a parameter in an optimizer: its name for errors, number among all, group number, and tensor."""

    path: str
    position: int
    group: int
    tensor: Any


@dataclasses.dataclass
class TensorParameter(Parameter):
    """A parameter that has a gradient, with its ``tensor`` and its ``state``."""

    tensor: Any = None
    state: dict[str, Any] = dataclasses.field(default_factory=dict)


class TensorPlan(Assignment):
    """The parameters of ``opt`` that have gradients now, assigned to executors; makes their state.

    With ``scaled``, gradients are those of the loss times a scale. With ``recorded``, autograd records the step. With
    ``places``, the plan is of these parameters alone, and ``square`` gives the square of the norm of all gradients, for
    ``max_norm``. With ``on_host``, the state is in host memory, where copies of parameters and gradients are updated.
    """

    uncaptured = (
        "the step reads its numbers on the host, which a graph cannot replay: expected a step outside of a capture, or "
        "capturable=True of a class that PyTorch has"
    )

    def __init__(
        self,
        opt: Any,
        *,
        scaled: bool,
        recorded: bool,
        places: Sequence[TensorPlace] | None = None,
        square: Callable[[Any], float] | None = None,
        on_host: bool = False,
    ) -> None:
        super().__init__()
        self._recorded, self._on_host = recorded, on_host
        #: The real tensor in this process of a parameter or a gradient.
        self.read: Callable[[Any], Any] = conversion.real if recorded else conversion.local
        self.count: int = noise_step(opt)  # from which numbers of steps are counted, and random numbers are drawn
        placed = self._checked(opt, places_of(opt) if places is None else places, scaled=scaled, square=square)
        for place, tensor, group in placed:
            self._add(opt, place, tensor, group)
        self.tensors: list[Any] = [p.tensor for p in self.parameters]
        #: Whether `read` of each parameter is the parameter itself.
        self.is_plain: bool = not recorded and all(map(conversion.is_plain, self.tensors))
        self.draws: bool = any(group.draws for group in self.groups)
        before = [p.executor for p in self.parameters]
        self.unite([tensor for _, tensor, _ in placed])
        for p, executor in zip(self.parameters, before, strict=True):
            if p.executor is not executor:
                p.is_copied = False
                self._begin(opt, self.groups[p.group], p.text, p.tensor, p.state, p.executor)
        self.slots: dict[Any, TensorSlots] = {
            p.text: TensorSlots(p.text, p.tensor, self.groups[p.group], p.state, recorded=recorded)
            for p in self.parameters
        }
        #: The parameters with master weights, which autograd does not record.
        self.mastered: list[Mastered] = [] if recorded else [*self._mastered()]
        opt.masters.follow(self.mastered)

    def _mastered(self) -> Iterator[Mastered]:
        for p in self.parameters:
            group = self.groups[p.group]
            if MASTER in group.slots:
                yield Mastered(p.tensor, p.state, group.slots[MASTER][1], group.precision.rounding)

    def _checked(
        self, opt: Any, places: Iterable[TensorPlace], *, scaled: bool, square: Callable[[Any], float] | None
    ) -> list[tuple[TensorPlace, Any, TensorGroup]]:
        """The places of the parameters with gradients, each with its real tensor in this process and its group."""
        _check_clipping(opt.param_groups)
        groups: dict[tuple[int, str | None], TensorGroup] = {}
        placed = []
        for place in places:
            path, number, p = place.path, place.group, place.tensor
            if p.grad is None:
                continue
            opt.check_gradient(path, p)
            tensor = self.read(p)
            key = number, half(tensor)
            if key not in groups:
                groups[key] = TensorGroup(
                    opt.entry, opt.param_groups[number], key[1], number=number, scaled=scaled, square=square
                )
            if conversion.is_distributed(p):
                _check_distributed(path, type(opt).__name__, p, groups[key])
            conversion.check_readable(path, p, opt.state.get(p, {}))
            placed.append((place, tensor, groups[key]))
        return placed

    def _add(self, opt: Any, place: TensorPlace, tensor: Any, group: TensorGroup) -> None:
        """Adds a parameter, and makes its state."""
        path, p = place.path, place.tensor
        state, order = opt.state.get(p, {}), ""
        executor, was_counted = self._executor(tensor, group), group.entry.counts and state.get("step") is not None
        is_new = self._begin(opt, group, path, p, state, executor)
        if executor is DEVICE:
            order = order_of_kernel(group, p, state)
            if not order:
                executor = self.on_arrays(tensor)
                self._begin(opt, group, path, p, state, executor)
        if was_counted:  # else the number of steps is a new zero
            check_step_count(state["step"], f"{path}: the state has step")
        step = int(state["step"]) if group.entry.counts else 0 if is_new else max(1, self.count)
        missed = self.count - step
        parameter = TensorParameter(
            [],
            path,
            len(self.parameters),
            (),
            tuple(tensor.shape),
            tensor.dtype,
            self.group_number(group, missed),
            place.position,
            missed,
            executor,
            is_permuted=executor is DEVICE and is_permuted(tensor),
            is_copied=order == "row-major",
            tensor=p,
            state=state,
        )
        self.parameters.append(parameter)

    def _executor(self, tensor: Any, group: TensorGroup) -> Executor:
        """The executor of a tensor, if its state is such as it takes."""
        is_elementwise = group.rule().elementwise
        if self._on_host:
            return HOST if is_elementwise else RULE_INTO
        executor = RULE_ASSIGNED if self._recorded else executor_of(tensor, is_elementwise)
        return executor if executor in (HOST, DEVICE) else self.on_arrays(tensor)

    def _begin(
        self, opt: Any, group: TensorGroup, path: str, p: Any, state: dict[str, Any], executor: Executor
    ) -> bool:
        """Makes the missing state of a parameter, in the optimizer's file if it has one; False if nothing is missing.

        Memory has the slots of one parameter at a time.
        """
        if self._on_host:
            conversion.move_to_host(state)
        is_new = conversion.begin(group, path, p, state, executor, on_host=self._on_host)
        if state:
            opt.state[p] = state
            if opt.state_file is not None:
                opt.state_file.place(path, p, state)
        return is_new

    def is_of(self, p: Parameter, array: Any) -> bool:
        """Whether a tensor on a device has the shape, the dtype and the order of axes that the plan has."""
        return super().is_of(p, array) and (tuple(array.shape), array.dtype) == (p.shape, p.dtype)

    def on_arrays(self, array: Any) -> Executor:
        """The executor of a tensor whose rule is called on it."""
        is_copied = self._on_host or (array.device.type == "cpu" and not self._recorded)
        return RULE_INTO if is_copied else RULE_ASSIGNED


def noise_step(opt: Any) -> int:
    """The number of steps taken with random numbers, which the first group keeps.

    Raises `StateError` for anything else.
    """
    number = opt.param_groups[0].get("noise_step", 0)
    if number != 0:
        check_step_count(number, "param_groups[0] has noise_step")
    return int(number)


def places_of(opt: Any) -> Iterator[TensorPlace]:
    """The places of the parameters of all groups."""
    position = itertools.count()
    seen = set()
    for number, group in enumerate(opt.param_groups):
        names = group.get("param_names")
        for at, p in enumerate(group["params"]):
            path = names[at] if names else f"param_groups[{number}]['params'][{at}]"
            place = next(position)
            if id(p) not in seen:  # A repeated tensor is one parameter.
                yield TensorPlace(path, place, number, p)
            seen.add(id(p))


def refuse_shared_memory(places: Sequence[TensorPlace], *, gradients: bool = False) -> None:
    """Raises `AliasError` for parameters that share memory, also with others' gradients, unseen by single steps."""
    named = [(place.path, conversion.local(place.tensor), True) for place in places]
    if gradients:
        gradients_by_name = [(f"the gradient of {place.path}", place.tensor.grad) for place in places]
        named += [
            (path, conversion.local(g), False)
            for path, g in gradients_by_name
            if g is not None and g.layout is torch.strided
        ]
    with conversion.checking_overlap((place.path, place.tensor, {}) for place in places):
        refuse_shared(named)


def refuse_inference(places: Iterable[TensorPlace]) -> None:
    """Raises `RuntimeError` for inference tensors outside of the inference mode, where PyTorch writes none in place."""
    for place in () if torch.is_inference_mode_enabled() else places:
        if place.tensor.is_inference():
            raise RuntimeError(
                f"{place.path}: the parameter is an inference tensor: expected a step in torch.inference_mode(), or a "
                "clone of it"
            )


def clips(opt: Any) -> bool:
    """Whether gradients are scaled by their norm."""
    return any(group.get("max_norm") is not None for group in opt.param_groups)


def reads_all(opt: Any) -> bool:
    """Whether the rule reads totals over parameters, or the loss, so that none is updated in the backward."""
    return bool(opt.entry.rule.supplied & {"total", "guard", "loss"})


def needs_all(opt: Any) -> bool:
    """Whether a step needs all gradients and parameters at once, rather than a norm that is measured first."""
    is_scaled = getattr(opt, "grad_scale", None) is not None
    return reads_all(opt) or (clips(opt) and (is_scaled or not opt.entry.rule.elementwise))


def measuring_norm(opt: Any, sums: Measures) -> Callable[..., None]:
    """A function that measures the gradient of a parameter: it adds the terms of the norm of all to ``sums``.

    Its arguments are the place, and of a parameter elsewhere copies in host memory: of the gradient, and a tensor of
    the parameter's dtype. It raises `RuntimeError` where a step would not run a kernel in host memory, whose sum of
    squares it repeats.
    """
    entry, groups = opt.entry, opt.param_groups

    @functools.cache
    def group_of(number: int, storage: str | None) -> TensorGroup:
        return TensorGroup(entry, groups[number], storage, number=number, scaled=False)

    def measure(place: TensorPlace, gradient: Any = None, like: Any = None) -> None:
        p = place.tensor
        # The data's version is not that of the parameter, which autograd checks.
        tensor = conversion.local(p.data) if like is None else like
        is_host = not conversion.is_distributed(p) and executor_of(tensor, elementwise=True) is HOST
        group = group_of(place.group, half(tensor))
        rule, program = group.rule(), group.program(group.rule())
        if not is_host or program is None:
            raise RuntimeError(
                f"{place.path}: norm_pass() measures gradients for kernels in host memory: expected an elementwise "
                "rule, and a tensor in host memory that is no DTensor"
            )
        g = conversion.local(p.grad) if gradient is None else gradient
        # The norm reads neither hyperparameters nor slots: zeros take no memory before they are written.
        slots = [(slot, np.zeros(() if slot.is_number else tuple(tensor.shape))) for slot in rule.slots]
        scalars, numbers = [0.0] * len(rule.numbers), [each for each in slots if each[0].is_number]
        core = _core.Stepper()
        core.prepare([host_parameter(place.path, place.position, tensor, slots, (0, 0))])
        (partials,) = checked(core.measure((tensor,), (g,), programs=[(program, [scalars])], seed=0))
        sums.add(place.position, program, scalars, numbers, tensor.numel())
        sums.note(place.position, 0, partials)

    return measure


def _check_clipping(groups: Sequence[Mapping[str, Any]]) -> None:
    """Raises `ValueError` if only some groups have a ``max_norm``: the norm is of all gradients."""
    without = [group.get("max_norm") is None for group in groups]
    if any(without) and not all(without):
        number = without.index(True)
        raise ValueError(
            f"param_groups[{number}]: max_norm is None, and that of others is not: expected a number in all groups, "
            "such as inf"
        )


def _check_distributed(path: str, name: str, p: Any, group: TensorGroup) -> None:
    """Raises `RuntimeError` for a DTensor that cannot be updated by its part in this process."""
    if group.sums:
        raise RuntimeError(
            f"{path}: {name} sums over whole parameters, of which a DTensor has a part in each process: expected an "
            "optimizer whose rule is elementwise, and no max_norm"
        )
    if not conversion.is_distributed(p.grad) or p.grad.placements != p.placements:
        placements = p.grad.placements if conversion.is_distributed(p.grad) else "no DTensor"
        raise RuntimeError(f"{path}: the gradient has the placements {placements}: expected {p.placements}")
