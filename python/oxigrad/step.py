"""A step: which parameter is updated by which executor, in one piece.

Parameters in host memory are updated in place by the core, all in one dispatch. Host arrays that may not be written are
copied first and replaced. Where an array lives anywhere else, the rule itself is called on it, and the result replaces
it. Everything that can fail comes first; then the core writes, replaces and counts the step without calling Python.
"""

import dataclasses
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad import _core, tree, xp
from oxigrad._core import ArrayMemoryError, DtypeError, RuleError, ShapeError, StructureError


def new_slots(parameters: dict[Any, Any], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Zeros of the shape and dtype of each parameter, by key path and slot name."""
    return {str(path): {name: xp.zeros_like(p) for name in names} for path, p in parameters.items()}


def _host_view(array: Any) -> Any:
    """The array as one that exports its host memory, sharing it; None where it lies elsewhere, or cannot be shared."""
    if _core.exports_memory(array):
        return array
    try:
        return np.from_dlpack(array) if xp.on_host(array) else None
    except (BufferError, RuntimeError, TypeError, ValueError):
        return None


def _executor(array: Any) -> str:
    """How a parameter is updated: "host" in place, "copy" in a copy that replaces it, or "rule"."""
    view = _host_view(array)
    if view is None or not _core.computes(view):
        return "rule"
    if _core.is_writable(view):
        return "host"
    return "copy" if isinstance(array, (np.ndarray, np.generic)) else "rule"


@dataclasses.dataclass
class _Parameter:
    """A parameter of the model that a plan was made for."""

    paths: list[Any]
    text: str
    index: int
    tied: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: Any
    executor: str


class Stepper:
    """Takes the steps of one optimizer: its slots, the steps taken, and the plan for the model that it saw last."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._core = _core.Stepper()
        self._plan: _Plan | None = None
        self._programs: dict[Any, Any] = {}
        self.slots: dict[str, dict[str, Any]] = {}

    @property
    def count(self) -> int:
        """How many steps have been taken."""
        return self._core.count

    def update(self, model: Any, grads: Any, *, keep_root: bool = False) -> Any:
        """See `Optimizer.update`; with ``keep_root``, a tree that would have to be replaced is refused."""
        optimizer = self._optimizer
        plan = self._plan
        leaves = plan and _leaves_like(plan.structure, model)
        if plan is None or leaves is None or not plan.fits(leaves):
            leaves, structure = tree.flatten(model)
            plan = _Plan(leaves, structure, optimizer.elementwise)
            plan.check_known(self.slots)
        gradients = plan.gradients(leaves, grads)
        if keep_root and plan.replaced and not all(path.replaceable(model) for p in plan.replaced for path in p.paths):
            raise StructureError(
                "a parameter cannot be written, and no container on its path can be changed: use update, which returns "
                "the new tree"
            )
        if plan is not self._plan:
            self._enter(plan, leaves)
        step = self.count + 1
        numbers = optimizer.numbers(step - 1)
        replacements, assignments = self._call_rules(plan, leaves, gradients, step, numbers)
        for parameter in plan.copied:
            copy = leaves[parameter.index] = np.array(leaves[parameter.index])
            replacements += [(path, copy) for path in parameter.paths]
        written, given = plan.pick(leaves), plan.pick(gradients)
        if plan.foreign:
            written, given = tuple(map(_host_view, written)), tuple(map(_host_view, given))
        program = self.program()
        scalars = [float(step), *map(float, numbers.values())]
        try:
            return self._core.step(program, scalars, optimizer.seed, written, given, model, replacements, assignments)
        except ArrayMemoryError:
            if all(_executor(array) == "host" for array in plan.pick(leaves)):
                raise
            self._plan = None  # An array has become read-only: it is replaced from now on.
            return self.update(model, grads, keep_root=keep_root)

    def program(self) -> Any:
        """The kernel of the rule, traced anew when a flag changes; None for a rule that is not elementwise."""
        optimizer = self._optimizer
        if not optimizer.elementwise:
            return None
        key = tuple(optimizer.flags.items())
        if key not in self._programs:
            self._programs[key] = trace(optimizer)
        return self._programs[key]

    def _enter(self, plan: "_Plan", leaves: list[Any]) -> None:
        """Makes the slots of a new plan and tells the core where they lie."""
        if not self.slots:
            named = {p.text: leaves[p.index] for p in plan.parameters}
            self.slots = new_slots(named, self._optimizer.slot_names)
        prepared = []
        for position, p in enumerate(plan.parameters):
            if p.executor != "rule":
                slots = [_host_view(array) for array in self.slots[p.text].values()]
                prepared.append((p.text, position, _host_view(leaves[p.index]), slots))
        self._core.prepare(prepared)
        self._plan = plan

    def _call_rules(
        self, plan: "_Plan", leaves: list[Any], gradients: list[Any], step: int, numbers: dict[str, Any]
    ) -> tuple[list[tuple[Any, Any]], list[tuple[dict[str, Any], str, Any]]]:
        replacements, assignments = [], []
        for position, parameter in plan.ruled:
            slots = self.slots[parameter.text]
            p, *new = call_rule(
                self._optimizer,
                parameter.text,
                leaves[parameter.index],
                gradients[parameter.index],
                list(slots.values()),
                step=step,
                leaf=position,
                numbers=numbers,
            )
            replacements += [(path, p) for path in parameter.paths]
            assignments += [(slots, name, value) for name, value in zip(slots, new, strict=True)]
        return replacements, assignments


def _leaves_like(structure: Any, like: Any) -> list[Any] | None:
    """The leaves of a tree, in the order of ``structure``; None where it has another. Takes a third of a flatten's time."""
    try:
        return _core.tree_leaves(like, structure)
    except StructureError:
        return None


def _picker(indices: Sequence[int]) -> Callable[[list[Any]], tuple[Any, ...]]:
    """A function that picks the items at ``indices``."""
    if len(indices) > 1:
        return operator.itemgetter(*indices)
    return lambda items: tuple(items[i] for i in indices)


class _Plan:
    """What stays the same from step to step while the model keeps its structure."""

    def __init__(self, leaves: list[Any], structure: Any, elementwise: bool = True) -> None:
        self.structure = structure
        self.parameters: list[_Parameter] = []
        for index, *tied in _core.tree_tied(leaves, structure):
            array, paths = leaves[index], [structure.path(i) for i in (index, *tied)]
            text = str(paths[0])
            if xp.namespace(array).isdtype(array.dtype, "complex floating"):
                raise DtypeError(f"{text}: the parameter has dtype {array.dtype}: expected a real floating-point dtype")
            found = _executor(array) if elementwise else "rule"
            shape = tuple(array.shape)
            self.parameters.append(_Parameter(paths, text, index, tuple(tied), shape, array.dtype, found))
        if not self.parameters:
            raise StructureError("the model has no parameters: expected an array of floating-point dtype somewhere")
        self.host = [p for p in self.parameters if p.executor != "rule"]
        self.pick = _picker([p.index for p in self.host])
        self.replaced = [p for p in self.parameters if p.executor != "host"]
        self.copied = [p for p in self.parameters if p.executor == "copy"]
        self.ruled = [(i, p) for i, p in enumerate(self.parameters) if p.executor == "rule"]
        self.foreign = any(not _core.exports_memory(leaves[p.index]) for p in self.host)
        self._tied = [p for p in self.parameters if p.tied]
        # The core checks the gradients that go to it as they are.
        self._checked_here = self.parameters if self.foreign or self.ruled else self._tied

    def fits(self, leaves: list[Any]) -> bool:
        """Whether the plan still holds for these leaves; what changes from step to step the core checks anyway."""
        if not all(leaves[i] is leaves[p.index] for p in self._tied for i in p.tied):
            return False
        return all(_executor(leaves[p.index]) == "copy" for p in self.copied)

    def check_known(self, slots: dict[str, dict[str, Any]]) -> None:
        """Refuses a model whose parameters are not those that the slots were made for."""
        if not slots:
            return
        found = {p.text: p for p in self.parameters}
        for text in [*found, *slots]:
            if text not in slots:
                raise StructureError(f"{text}: a new parameter; the optimizer was begun without it")
            if text not in found:
                raise StructureError(
                    f"{text}: the model has no such parameter any more; the optimizer was begun with it"
                )
            for name, slot in slots[text].items():
                if tuple(slot.shape) != found[text].shape:
                    shape, begun = found[text].shape, tuple(slot.shape)
                    raise ShapeError(f"{text}: the parameter has shape {shape}, its slot {name} {begun}")

    def gradients(self, leaves: list[Any], grads: Any) -> list[Any]:
        """The gradients at the positions of the model's leaves, those of tied parameters added up."""
        given = _leaves_like(self.structure, grads)
        if given is None:
            given = self._by_path(len(leaves), *tree.flatten(grads))
        for parameter in self._checked_here:
            for i in (parameter.index, *parameter.tied):
                if not xp.is_array(given[i]):
                    found = type(given[i]).__name__
                    raise StructureError(f"{self.structure.path(i)}: the gradient is missing: found {found}")
        for parameter in self._tied:
            total = given[parameter.index]
            for i in parameter.tied:
                total = total + given[i]
            given[parameter.index] = total
        return given

    def _by_path(self, count: int, given: list[Any], structure: Any) -> list[Any]:
        """The gradients of a tree that agrees with the model only where it has arrays."""
        found = {str(structure.path(i)): g for i, g in enumerate(given) if xp.is_array(g)}
        aligned: list[Any] = [None] * count
        for parameter in self.parameters:
            for i in (parameter.index, *parameter.tied):
                text = str(self.structure.path(i))
                if text not in found:
                    raise StructureError(f"{text}: the gradient is missing")
                aligned[i] = found.pop(text)
        if found:
            raise StructureError(f"{next(iter(found))}: there is a gradient, but no parameter in the model")
        return aligned


# --- the rule as a kernel, and as a function on arrays -----------------------------------------------------------------


def trace(optimizer: Any) -> Any:
    """The rule called once on symbols: a kernel. Raises `RuleError` where it does what no kernel can do."""
    tape = _core.symbols()
    g, p, *slots = [tape.leaf() for _ in range(2 + len(optimizer.slot_names))]
    supplied: dict[str, Any] = {"step": tape.scalar(), "noise": tape.noise}
    numbers = {name: tape.scalar() for name in optimizer.number_names}
    named = {name: supplied[name] for name in optimizer._supplied}
    label = getattr(optimizer.rule, "__name__", "rule")
    try:
        outputs = optimizer.rule(xp, p, g, *slots, **named, **numbers, **optimizer.flags)
        outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
        return tape.compile(outputs, 1 + len(optimizer.slot_names))
    except RuleError as error:
        raise RuleError(f"the rule {label}: {error}; define(..., elementwise=False) calls it on arrays") from None


def call_rule(
    optimizer: Any, path: str, p: Any, g: Any, slots: Sequence[Any], *, step: Any, leaf: int, numbers: dict[str, Any]
) -> list[Any]:
    """The rule on the arrays of one parameter: the new parameter and the new slots, of the same shapes and dtypes."""
    if tuple(g.shape) != tuple(p.shape):
        raise ShapeError(f"{path}: gradient has shape {tuple(g.shape)}, the parameter {tuple(p.shape)}")
    if g.dtype != p.dtype:
        raise DtypeError(f"{path}: gradient has dtype {g.dtype}, the parameter {p.dtype}")
    draws = iter(range(2**32))

    def noise() -> Any:
        uniform = _core.uniform(optimizer.seed, int(step), leaf, next(draws), xp.size_of(p.shape))
        library = xp.namespace(p)
        return library.asarray(np.frombuffer(uniform).reshape(p.shape), dtype=p.dtype, device=xp.device_of(p))

    supplied: dict[str, Callable[..., Any] | Any] = {"step": step, "noise": noise}
    named = {name: supplied[name] for name in optimizer._supplied}
    outputs = optimizer.rule(xp, p, g, *slots, **named, **numbers, **optimizer.flags)
    outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
    if len(outputs) != 1 + len(slots):
        raise RuleError(f"the rule must return the parameter and {len(slots)} slots, it returned {len(outputs)} values")
    for before, after in zip([p, *slots], outputs, strict=True):
        if tuple(after.shape) != tuple(before.shape):
            raise RuleError(f"{path}: the rule returned shape {tuple(after.shape)} for {tuple(before.shape)}")
    return [o if o.dtype == q.dtype else xp.astype(o, q.dtype) for o, q in zip(outputs, [p, *slots], strict=True)]


def apply(optimizer: Any, params: Any, grads: Any, state: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """See `Optimizer.apply`: the rule on every parameter, nothing written."""
    leaves, structure = tree.flatten(params)
    plan = _Plan(leaves, structure)
    gradients = plan.gradients(leaves, grads)
    plan.check_known(state["slots"])
    step = state["step"] + 1
    numbers = optimizer.numbers(state["step"])
    filled, slots = list(leaves), {}
    for position, parameter in enumerate(plan.parameters):
        old = state["slots"][parameter.text]
        p, g = leaves[parameter.index], gradients[parameter.index]
        new, *values = call_rule(
            optimizer, parameter.text, p, g, list(old.values()), step=step, leaf=position, numbers=numbers
        )
        for i in (parameter.index, *parameter.tied):
            filled[i] = new
        slots[parameter.text] = dict(zip(old, values, strict=True))
    return tree.unflatten(structure, filled), {"step": step, "slots": slots}
