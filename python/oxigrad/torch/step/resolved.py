"""A step resolved for the tensors of an optimizer: the kernels, the memory of slots, and the step count of each parameter.

It is reused while the same tensors are in the groups and in the state, the same parameters have gradients, and the groups select
the same rules. Anything else that changes (hyperparameters, numbers of steps in place, memory of tensors) is
read in each step, or checked by the core.
"""

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from oxigrad import _core
from oxigrad._core import StructureError
from oxigrad.ops.backends import resolved
from oxigrad.ops.core.aliasing import Named, refuse_shared
from oxigrad.stepping.arrays.precision import half
from oxigrad.stepping.parameters.executor import DEVICE, HOST, RULE, executor_of
from oxigrad.stepping.parameters.rule_executors import Leaf, call_rules
from oxigrad.stepping.plan.programs import ProgramTable, host_parameter
from oxigrad.torch.choice import Choice
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.step.device import LaunchedParameters, order_of_kernel
from oxigrad.torch.step.parameter import Parameter

# Steps are short: what they do for each tensor runs without a call of Python.
_CHAIN = itertools.chain.from_iterable
_PARAMS, _GRADIENT = operator.itemgetter("params"), operator.attrgetter("grad")


# Programs, each with its sets of scalars, as the choice and the number of steps taken.
Programs = list[tuple[Any, list[tuple[Choice, int]]]]


def held_by(opt: Any) -> list[Any]:
    """The parameters of all groups, and all that is in the state of the parameters."""
    return [*_CHAIN(map(_PARAMS, opt.param_groups)), *_CHAIN(map(dict.values, opt.state.values()))]


def _placed(opt: Any) -> Iterator[tuple[str, int, int, Any]]:
    """The parameters of all groups: name for errors, number among all, number of the group, and tensor."""
    position = itertools.count()
    seen = set()
    for number, group in enumerate(opt.param_groups):
        names = group.get("param_names")
        for at, p in enumerate(group["params"]):
            path = names[at] if names else f"param_groups[{number}]['params'][{at}]"
            place = next(position)
            if id(p) not in seen:  # A repeated tensor is one parameter.
                yield path, place, number, p
            seen.add(id(p))


def _check_distributed(path: str, name: str, p: Any, choice: Choice) -> None:
    """Raises `RuntimeError` for a DTensor that cannot be updated by its part in this process."""
    if choice.sums:
        raise RuntimeError(
            f"{path}: {name} sums over whole parameters, of which a DTensor has a part in each process: expected an "
            "optimizer whose rule is elementwise"
        )
    if not conversion.is_distributed(p.grad) or p.grad.placements != p.placements:
        found = p.grad.placements if conversion.is_distributed(p.grad) else "no DTensor"
        raise RuntimeError(f"{path}: the gradient has the placements {found}: expected {p.placements}")


def _memory(p: Parameter) -> Iterator[Named]:
    """The tensors of a parameter, with names for errors, and whether they are written."""
    yield p.path, p.tensor.detach(), True
    yield f"the gradient of {p.path}", p.tensor.grad, False
    for _, value in conversion.slots_of(p.choice, p.own):
        for tensor in conversion.parts_of(value):
            yield f"a slot of {p.path}", tensor, True


def noise_step(opt: Any) -> int:
    """The number of steps taken with random numbers, which the first group keeps."""
    return int(opt.param_groups[0].get("noise_step", 0))


def are_same(found: list[Any], before: list[Any]) -> bool:
    """Whether two lists have the same objects."""
    return len(found) == len(before) and all(map(operator.is_, found, before))


def is_recorded(groups: Iterable[Mapping[str, Any]]) -> bool:
    """Whether PyTorch is to differentiate a step, or to record it in a graph of its own."""
    return any(group.get("differentiable") or group.get("capturable") for group in groups)


class SeenGroups:
    """Parameter groups as a step has seen them, where they have numbers and texts alone, which nothing changes in place."""

    def __init__(self, groups: Iterable[Mapping[str, Any]]) -> None:
        self._seen = [dict(group) if _is_constant(group) else None for group in groups]

    def are_unchanged(self, groups: list[dict[str, Any]]) -> bool:
        """Whether the groups have the same values."""
        try:
            return len(groups) == len(self._seen) and all(map(operator.eq, groups, self._seen))
        except (RuntimeError, ValueError):  # of an array in place of a number
            return False


def _is_constant(group: Mapping[str, Any]) -> bool:
    values = [value for key, value in group.items() if key not in ("params", "param_names")]
    parts = [part for value in values for part in (value if isinstance(value, tuple) else (value,))]
    return all(part is None or isinstance(part, (int, float, str)) for part in parts)


class ResolvedStep:
    """A step of the optimizer ``opt`` for the parameters that have gradients now; makes their state.

    With ``scaled``, gradients are those of the loss times a scale. With ``recorded``, autograd records the step.
    """

    def __init__(self, opt: Any, *, scaled: bool, recorded: bool = False) -> None:
        self.scaled = scaled
        self._local = conversion.real if recorded else conversion.local
        self._recorded = recorded
        self._choices: dict[tuple[int, str | None], Choice] = {}
        self.parameters: list[Parameter] = []
        self._without = [p for p in _CHAIN(map(_PARAMS, opt.param_groups)) if p.grad is None]
        self._begin(opt)
        self._seen = SeenGroups(opt.param_groups)
        self._numbers: dict[int, list[float]] = {}  # of each choice, at this scale of the loss
        self._scale = 1.0
        self._seat()
        self._prepare()
        self._draws = any(p.choice.draws for p in self.parameters)
        if self._draws:
            self.core.count = noise_step(opt)
        self.held = held_by(opt)
        self._codes = [value for value in self.held if type(value) is dict]
        self._parts = [*_CHAIN(map(dict.values, self._codes))]
        slots = [value for p in self.host for _, value in conversion.slots_of(p.choice, p.own)]
        viewed = [value for value in slots if type(value) is not dict and conversion.memory(value) is not value]
        self._watched = conversion.Watched([*self._seated, *viewed])

    # --- resolving -----------------------------------------------------------------------------------------------------

    def _begin(self, opt: Any) -> None:
        """Finds the parameters with gradients, and makes their state."""
        found = [found for found in _placed(opt) if found[3].grad is not None]
        chosen = []
        for path, _, number, p in found:
            opt.check_gradient(path, p)
            chosen.append(self._choice(opt, number, half(conversion.local(p))))
            if conversion.is_distributed(p):
                _check_distributed(path, type(opt).__name__, p, chosen[-1])
            conversion.check_readable(path, p, opt.state.get(p, {}))
        for (path, position, _, p), choice in zip(found, chosen, strict=True):
            own, name, order = opt.state.get(p, {}), RULE, ""
            if not self._recorded:
                name = executor_of(conversion.local(p), choice.rule().elementwise)
                name = name if name in (HOST, DEVICE) else RULE
            is_new = conversion.begin(choice, path, p, own, name)
            if name is DEVICE and not (order := order_of_kernel(choice, p, own)):
                name = RULE
                conversion.begin(choice, path, p, own, name)
            if own:
                opt.state[p] = own
            step = int(own["step"]) if choice.entry.counts else 0 if is_new else max(1, noise_step(opt))
            if not step and not choice.value("learning_rate") and not torch.count_nonzero(p.grad):
                continue  # This is how checkpoint loaders make a state to load into; nothing else changes.
            self.parameters.append(Parameter(path, position, p, own, choice, name, step, order))
        self._unite()

    def _unite(self) -> None:
        """Assigns the rule on arrays to all parameters, where they need sums over all of them and have several executors or devices."""
        places = {(p.executor, p.tensor.device) for p in self.parameters}
        if len(places) > 1 and any("total" in p.choice.rule().supplied for p in self.parameters):
            for p in self.parameters:
                p.executor, p.order = RULE, ""
                conversion.begin(p.choice, p.path, p.tensor, p.own, p.executor)

    def _choice(self, opt: Any, number: int, storage: str | None) -> Choice:
        key = number, storage
        if key not in self._choices:
            entry, group = opt.entry, opt.param_groups[number]
            self._choices[key] = Choice(entry, group, storage, scaled=self.scaled)
        return self._choices[key]

    def _seat(self) -> None:
        """Puts the numbers of steps of all parameters into one tensor, of which those in the state are views."""
        counted = [p for p in self.parameters if p.choice.entry.counts]
        self.counts = torch.tensor([float(p.step) for p in counted], dtype=conversion.number_dtype())
        self._counted = self.counts.numpy()
        self._expected = self._counted.copy()
        self._taken = 0  # steps since then
        for p, seat in zip(counted, self.counts.unbind(), strict=True):
            if p.own["step"].device.type == "cpu":
                p.own["step"] = seat
        self._elsewhere = [p for p in counted if p.own["step"].device.type != "cpu"]
        self._seated = [p.own["step"] for p in counted if p.own["step"].device.type == "cpu"]

    @staticmethod
    def _laid_out(parameters: list[Parameter]) -> Programs:
        """The programs of these parameters. Gives each its program, and its set of scalars among those of the program."""
        table: ProgramTable[tuple[Choice, int]] = ProgramTable()
        for p in parameters:
            p.scalar_set = table.place(p.choice.program(), (id(p.choice), p.step), lambda p=p: (p.choice, p.step))
        return table.programs

    def _prepare(self) -> None:
        """Assigns the parameters to executors, and gives the core the memory of the slots."""
        self.host, launched, self.called = (
            [p for p in self.parameters if p.executor is name] for name in (HOST, DEVICE, RULE)
        )
        self._programs, self._device_programs = self._laid_out(self.host), self._laid_out(launched)
        self.launched = LaunchedParameters(launched) if launched else None
        self._unchecked = self.called  # The core checks those of the host, and the launches theirs.
        self._written = tuple([p.tensor for p in self.host])
        self._is_viewed = not all(map(conversion.is_plain, self._written))
        self._is_lazy = any(resolved(p.grad) is not p.grad for p in self._written)
        self.core = _core.Stepper()
        prepared = []
        for p in self.host:
            slots = conversion.slots_of(p.choice, p.own)
            prepared.append(
                host_parameter(
                    p.path,
                    p.position,
                    conversion.local(p.tensor),
                    [(slot, value if slot.is_number else conversion.memory(value)) for slot, value in slots],
                    p.scalar_set,
                    stochastic=p.choice.precision.rounding == "stochastic",
                )
            )
        self.core.prepare(prepared)

    # --- steps ---------------------------------------------------------------------------------------------------------

    def is_current(self, opt: Any, *, scaled: bool) -> bool:
        """Whether the resolved step is valid, provided that the same parameters have gradients, which `take` checks."""
        if scaled is not self.scaled or not are_same(held_by(opt), self.held):
            return False
        if self._without and any(p.grad is not None for p in self._without):
            return False
        if self._codes and not are_same([*_CHAIN(map(dict.values, self._codes))], self._parts):
            return False
        if self._watched.have_moved() or not (self._counted == self._expected).all():
            return False
        if self._draws and self.core.count != noise_step(opt):
            return False
        return self._seen.are_unchanged(opt.param_groups) or self._has_rules_of(opt.param_groups)

    def _has_rules_of(self, groups: list[dict[str, Any]]) -> bool:
        """Whether groups that have changed still select the rules; their numbers are read anew."""
        if is_recorded(groups) or not all(choice.is_current() for choice in self._choices.values()):
            return False
        self._seen, self._numbers = SeenGroups(groups), {}
        return True

    def take(self, opt: Any, scale: float) -> None:
        """Takes the step."""
        seed = int(opt.param_groups[0].get("seed") or 0)
        looked_at = self.parameters if self._is_viewed or self._is_lazy else self._unchecked
        if looked_at and any(p.tensor.grad is None for p in looked_at):
            raise StructureError("a gradient is missing")
        if not self._numbers or scale != self._scale:
            self._numbers = {id(choice): choice.read(1.0 / scale) for choice in self._choices.values()}
            self._scale = scale
        computed = self._call(seed, scale) if self.called else []
        in_core = (
            [pair for pair in computed if not self._recorded and pair[1].device.type == "cpu"] if computed else computed
        )
        written, gradients, programs = self._written, tuple(map(_GRADIENT, self._written)), []
        if self.host:
            if self._is_viewed:
                written, gradients = tuple(map(conversion.local, written)), tuple(map(conversion.local, gradients))
            if self._is_lazy:
                gradients = tuple(map(resolved, gradients))
            programs = self._with_scalars(self._programs)
        launches: dict[str, Any] = {}
        if self.launched:
            given = self._with_scalars(self._device_programs)
            prepared = self.launched.prepare(given, seed=seed, step=noise_step(opt) + 1)
            launches = prepared.of_core()
        # The numbers of steps are written with the rest, so that no interrupt comes between.
        writes = _core.Writes(copies=[*in_core, (self._expected + 1.0, self._counted)], **launches)
        self.core.step(True, written, gradients, programs=programs, seed=seed, writes=writes)
        for new, old in computed[len(in_core) :]:
            old.copy_(new)
        self._count(opt)

    def _with_scalars(self, programs: Programs) -> list[tuple[Any, Any]]:
        """The programs with the scalars of the next step."""
        now, found = self._taken + 1.0, []
        for program, sets in programs:
            scalars: list[list[float]] = []
            for choice, step in sets:
                scalars.append([step + now, *self._numbers[id(choice)]])
            found.append((program, scalars))
        return found

    def _call(self, seed: int, scale: float) -> list[tuple[Any, Any]]:
        """The results of rules called on tensors, with the tensors that receive them, those in host memory first."""
        leaves = [self._leaf(p, scale) for p in self.called]
        results, _ = call_rules(leaves, seed)
        if not self._recorded:
            refuse_shared([named for p in self.parameters for named in _memory(p)])
        pairs = []
        for p, leaf, (new, *after) in zip(self.called, leaves, results, strict=True):
            pairs.append((new, leaf.p))
            for (_, value), result in zip(conversion.slots_of(p.choice, p.own), after, strict=True):
                if result is not None:
                    held = self._local(value)
                    pairs.append((result.to(held.dtype), held))
        return sorted([pair for pair in pairs if pair[0] is not pair[1]], key=lambda pair: pair[1].device.type != "cpu")

    def _leaf(self, p: Parameter, scale: float) -> Leaf:
        choice = p.choice
        values: Mapping[str, Any] = {
            "step": p.step + self._taken + 1,
            "inverse_scale": 1.0 / scale,
            **choice.flags,
            **choice.values,
        }
        slots = [(slot, conversion.array(value)) for slot, value in conversion.slots_of(choice, p.own)]
        # Rules compute with numbers in float64, as kernels do.
        present = {
            slot.name: value.to(torch.float64) if slot.is_number else value
            for slot, value in slots
            if value is not None
        }
        return Leaf(
            p.path,
            p.position,
            choice.rule(),
            self._local(p.tensor),
            self._local(p.tensor.grad),
            present,
            values,
            stochastic=choice.precision.rounding == "stochastic",
        )

    def _count(self, opt: Any) -> None:
        """Counts the step that was taken."""
        self._expected += 1.0
        self._taken += 1
        for p in self._elsewhere:
            p.own["step"].add_(1.0)
        if self._draws:
            self.core.count = opt.param_groups[0]["noise_step"] = noise_step(opt) + 1
