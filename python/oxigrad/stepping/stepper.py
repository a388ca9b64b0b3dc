"""A step, in one piece.

Parameters in host memory are updated in place by the core, all in one dispatch. Host arrays that may not be written are
copied first and replaced. Where an array lives anywhere else, the rule itself is called on it, and the result replaces
it. Everything that can fail comes first; then the core writes, replaces and counts the step without calling Python.
"""

import copy
import weakref
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from oxigrad import _core, tree, xp
from oxigrad._core import ArrayMemoryError, NonFiniteError, ShapeError, StateError, StructureError
from oxigrad.ops.aliasing import apart, refuse_unwritable
from oxigrad.ops.backends import device_of, fetched, namespace, resolved, to_host
from oxigrad.rules import gradient_transforms
from oxigrad.stepping.executors import Leaf, call_rules
from oxigrad.stepping.plan import Parameter, Plan, copying, executor, leaves_along
from oxigrad.stepping.quantized import Quantized
from oxigrad.stepping.slots_view import ParameterSlots
from oxigrad.stepping.sparse_rows import LAST_STEP, SparseRows, factors, like_column
from oxigrad.stepping.state import Fitting, copied_slots, renamed

_ON_HOST = ("host", "copy")


def new_slots(choice: Any, path: str, p: Any, *, on_host: bool, known: Container[str] = ()) -> dict[str, Any]:
    """The slots of one parameter as they begin, but for those that are ``known``.

    Numbers are arrays without axes, of the highest precision there is.
    """

    def number(value: float) -> Any:
        if on_host:
            return np.array(value, np.float64)
        library = namespace(p)
        floats = library.__array_namespace_info__().dtypes(kind="real floating", device=device_of(p))
        return library.full((), value, dtype=floats.get("float64", floats["float32"]), device=device_of(p))

    def array(slot: Any) -> Any:
        dtype = choice.kept_in(slot, p, on_host=on_host)
        return Quantized.zeros(tuple(p.shape)) if isinstance(dtype, str) else slot.first(xp, p, dtype, choice.value)

    slots = [slot for slot in choice.rule().slots if slot.name not in known]
    if not slots and not choice.catches_up:
        return {}
    try:
        first = {slot.name: number(slot.begin) if slot.is_number else array(slot) for slot in slots}
    except ShapeError as error:
        raise ShapeError(f"{path}: {error}") from None
    if choice.catches_up and p.shape and LAST_STEP not in known:
        first[LAST_STEP] = np.zeros(p.shape[0], np.int64) if on_host else _zero_steps(p)
    found = {name: value for name, value in first.items() if value is not None}
    arrays = {name: value for name, value in found.items() if not isinstance(value, Quantized)}
    return found | dict(zip(arrays, apart([*arrays.values()], [p]), strict=True))


def _zero_steps(p: Any) -> Any:
    """A zero for each row, of the default integer dtype of the array's library."""
    library, device = namespace(p), device_of(p)
    dtype = library.__array_namespace_info__().default_dtypes(device=device)["integral"]
    return library.zeros(p.shape[0], dtype=dtype, device=device)


def _memory(slot: Any) -> Any:
    """A slot as the core takes it."""
    return (slot.codes, slot.scales) if isinstance(slot, Quantized) else slot


class Stepper:
    """Takes the steps of one optimizer: its slots, the steps taken, and the plan for the model that it saw last."""

    def __init__(self, owner: Any) -> None:
        self._weak_owner = weakref.ref(owner)  # whose stepper this is: no cycle keeps the slots
        self._core = _core.Stepper()
        self._plan: Plan | None = None
        self._layout: list[tuple[int, int]] = []
        self._absent: list[tuple[str, ...]] = []
        self._process = _core.forks()
        # The paths of parameters to whose slots the user has assigned since the core was told where they lie.
        self._changed: list[str] = []
        self.slots = {}
        # What makes slots that were loaded before a model was seen those of its parameters; None once it has.
        self.fitting: Fitting | None = None
        self.skipped = 0
        self._swapped: dict[str, Any] | None = None

    @property
    def _owner(self) -> Any:
        return self._weak_owner()

    @property
    def slots(self) -> Mapping[str, ParameterSlots]:
        """The slots of each parameter, by path and name."""
        return self._slots

    @slots.setter
    def slots(self, slots: Mapping[str, Mapping[str, Any]]) -> None:
        self._slots = {path: ParameterSlots(path, own, self._changed) for path, own in slots.items()}

    @property
    def count(self) -> int:
        """How many steps have been taken."""
        return self._core.count

    @property
    def micro(self) -> int:
        """How many gradients have been accumulated since the last step."""
        return self._core.micro

    def resumed(self, counts: Mapping[str, int], slots: Any, fitting: Any = None) -> "Stepper":
        """Another stepper of the same optimizer, that goes on from other counts and slots."""
        made = Stepper(self._owner)
        made._core.count, made._core.micro, made.skipped = counts["step"], counts["micro"], counts["skipped"]
        made.slots, made.fitting = slots, fitting
        return made

    def copied(self, owner: Any) -> "Stepper":
        """A stepper of a copy of its optimizer, which goes on from here with arrays of its own."""
        made = copy.copy(self)
        made._weak_owner, made._core, made._plan = weakref.ref(owner), _core.Stepper(), None
        made._core.count, made._core.micro = self.count, self.micro
        made._changed = []
        made.slots = copied_slots(self.slots)
        return made

    def refuse_swapped(self) -> None:
        """Raises `StateError` while the averages are in the place of the parameters."""
        if self._swapped is not None:
            raise StateError("the averages are swapped in: swap_out brings the parameters back")

    def build(self, model: Any) -> None:
        """Makes the slots for a model, where there are none yet."""
        plan, leaves = self._planned(model)
        if plan is not self._plan:
            self._enter(plan, leaves, self._laid_out(plan)[1])

    def _planned(self, model: Any) -> tuple[Plan, list[Any]]:
        is_current = self._plan is None or self._plan.is_current()
        if self._changed or not is_current or self._process != _core.forks():
            # In a forked child, the core may have been in the middle of a step of another thread.
            self._plan, self._process = None, _core.forks()
            self._changed.clear()
        leaves = leaves_along(self._plan, model)
        if self._plan is not None and leaves is not None:
            return self._plan, self._plan.detach(leaves)
        leaves, structure = tree.flatten(model)
        plan = Plan(leaves, structure, self._owner)
        leaves = plan.detach(leaves)
        if self.fitting:
            self._fit(self.fitting, plan, leaves)
        plan.check_known(self.slots)
        return plan, leaves

    def _fit(self, fitting: Fitting, plan: Plan, leaves: list[Any]) -> None:
        """Makes the slots that were loaded before a model was seen those of its parameters."""
        first = {
            p.text: new_slots(plan.choices[p.choice], p.text, leaves[p.index], on_host=p.executor in _ON_HOST)
            for p in plan.parameters
        }
        self.slots = fitting(self.slots, first)
        if fitting.report:
            self._core.micro = 0  # The mean of the gradients so far may be a part of what did not fit.
        self.fitting = None

    def update(self, model: Any, grads: Any, *, keep_root: bool = False) -> Any:
        """See `Optimizer.update`; with ``keep_root``, a tree that would have to be replaced is refused."""
        before, fitting, counts = self._slots, self.fitting, (self.count, self.micro)
        try:
            return self._update(model, grads, keep_root=keep_root)
        except BaseException:
            if self._slots is not before and self.fitting is fitting and counts == (self.count, self.micro):
                # Slots may begin as the parameter does, which the next step may be given with other values.
                self._slots, self._plan = before, None
            raise

    def _update(self, model: Any, grads: Any, *, keep_root: bool) -> Any:
        self.refuse_swapped()
        plan, leaves = self._planned(model)
        gradients = plan.gradients(leaves, grads)
        if keep_root:
            _check_replaceable(plan, model)
        holds = self.micro + 1 < self._owner.accumulate
        values = self._values(plan)
        programs, layout = self._laid_out(plan, values, holds)
        absent = [choice.absent for choice in plan.choices]
        if plan is not self._plan or layout != self._layout or absent != self._absent:
            self._enter(plan, leaves, layout)
        zeros = plan.zeros(grads) if self._owner.zero_gradients else []
        if plan.ruled or plan.copied or zeros:
            plan.check_memory(leaves, gradients, self.slots, [g for _, g in zeros])
        replacements, assignments, copies, keep = self._call_rules(plan, leaves, gradients, values, holds)
        if not keep:
            return self.skip(plan, model, gradients)
        copies += zeros
        touched, stamps = self._touch(plan, gradients, values)
        for parameter in plan.copied:
            copy = leaves[parameter.index] = np.array(leaves[parameter.index])
            replacements += [(path, copy) for path in parameter.paths]
        written, given = plan.pick(leaves), plan.pick(gradients)
        seed, items = self._owner.seed, [*assignments, *stamps]
        try:
            done = self._core.step(programs, seed, written, given, touched, model, replacements, items, copies, holds)
        except ArrayMemoryError:
            if not plan.sparse and any(isinstance(g, SparseRows) for g in given):
                plan.sparse = True
                return self.update(model, grads, keep_root=keep_root)
            if not plan.lazy and not self._owner.zero_gradients and any(resolved(g) is not g for g in given):
                plan.lazy = True
                return self.update(model, grads, keep_root=keep_root)
            if all(executor(array) == "host" for array in plan.pick(leaves)):
                raise
            self._plan = None  # An array has become read-only: it is replaced from now on.
            return self.update(model, grads, keep_root=keep_root)
        if done is None:
            return self.skip(plan, model, gradients)
        self._settle()
        return done

    def _settle(self) -> None:
        """Lets the optimizer observe a step that was counted, unless it has."""
        scale = self._owner.loss_scale
        # In one call: a signal handler may run, and save, between any two.
        attributes, values = (vars(scale), scale.after(finite=True)) if scale else ({}, {})
        self._core.observe(attributes, values)

    def check_whole(self) -> None:
        """Raises `StateError` where slots and counts are those of half a step, as what writes it may see them."""
        self._core.check_whole()
        self._settle()

    def averages(self, model: Any = None) -> dict[str, Any]:
        """See `Optimizer.averaged_parameters`."""
        self.check_whole()
        if model is not None and self.slots:
            found = dict(self._averaged(*self._planned(model)))
        elif self._plan and any(choice.rule().average for choice in self._plan.choices):
            raise StateError("the averages are computed from the parameters: give the model")
        else:
            found = self._named("average")
        return _some(found, "averages")

    def copies(self) -> dict[str, Any]:
        """See `Optimizer.copied_parameters`."""
        self.check_whole()
        return _some(self._named(gradient_transforms.NAMES["copy"]), "copies")

    def _named(self, name: str) -> dict[str, Any]:
        """The slots of this name, by path."""
        return {path: own[name] for path, own in self.slots.items() if name in own}

    def _averaged(self, plan: Plan, leaves: list[Any]) -> Iterator[tuple[str, Any]]:
        """The averages of those parameters that have one, by path; while they are swapped in, too."""
        last = max(self.count - 1, 0)
        for p in plan.parameters:
            choice, own = plan.choices[p.choice], self.slots[p.text]
            rule = choice.rule()
            if rule.average is not None:
                own = {name: np.asarray(slot) if isinstance(slot, Quantized) else slot for name, slot in own.items()}
            whole = choice.precision.whole((self._swapped or {}).get(p.text, leaves[p.index]), own)
            average = rule.averaged(xp, whole, own, choice.numbers(last))
            if average is not None:
                yield p.text, xp.asarray(xp.astype(average, whole.dtype, copy=False))

    def swap_in(self, model: Any) -> Any:
        """See `Optimizer.swap_in`."""
        if self._swapped is not None:
            raise StateError("the averages are swapped in already")
        averages = self.averages(model)
        plan, leaves = self._planned(model)
        kept = {p.text: xp.asarray(leaves[p.index], copy=True) for p in plan.parameters if p.text in averages}
        return self._replace(plan, leaves, model, averages, kept)

    def swap_out(self, model: Any) -> Any:
        """See `Optimizer.swap_out`."""
        if self._swapped is None:
            raise StateError("the averages are not swapped in")
        return self._replace(*self._planned(model), model, self._swapped, None)

    def _replace(self, plan: Plan, leaves: list[Any], model: Any, values: dict[str, Any], swapped: Any) -> Any:
        """The model with other values for its parameters, in place where they can be written; notes what is ``swapped``."""
        replacements, copies = self._replaced(plan, leaves, values)
        # As a part of the write, so that no interrupt comes between.
        return self._core.write(model, replacements, [(vars(self), "_swapped", swapped)], copies)

    def _replaced(
        self, plan: Plan, leaves: list[Any], values: dict[str, Any]
    ) -> tuple[list[tuple[Any, Any]], list[tuple[Any, Any]]]:
        """What is to be replaced, and copied, for other values of parameters."""
        plan.check_parameters(leaves)
        replacements, copies = [], []
        for p in plan.parameters:
            if p.text not in values:
                continue
            value = xp.asarray(xp.astype(values[p.text], p.dtype, copy=True))
            if p.executor in ("host", "into") and _core.is_writable(leaves[p.index]):
                refuse_unwritable(p.text, "parameter", leaves[p.index])
                copies.append(copying(value, leaves[p.index]))
            else:
                replacements += [(path, value) for path in p.paths]
        return replacements, copies

    def _values(self, plan: Plan) -> list[dict[str, Any]]:
        """The flags and numbers of each choice in this step."""
        step = self.count
        now = {"step": step + 1, "micro": self.micro + 1, "inverse_scale": 1.0 / self._owner.scale}
        return [{**now, **choice.flags, **choice.numbers(step)} for choice in plan.choices]

    def _laid_out(
        self, plan: Plan, values: list[dict[str, Any]] | None = None, holds: bool = False
    ) -> tuple[list[tuple[Any, list[list[float]]]], list[tuple[int, int]]]:
        """The programs, each with its sets of scalars, and for each choice the numbers of its program and of its set."""
        programs: list[tuple[Any, list[list[float]]]] = []
        layout = []
        for number, choice in enumerate(plan.choices):
            rule = choice.rule(holds)
            program = choice.program(rule)
            if program is None:
                layout.append((0, 0))
                continue
            at = next((k for k, (known, _) in enumerate(programs) if known is program), len(programs))
            if at == len(programs):
                programs.append((program, []))
            layout.append((at, len(programs[at][1])))
            numbers = [float(values[number][name]) for name in rule.numbers] if values else []
            programs[at][1].append(numbers)
        return programs if plan.host else [], layout

    def _enter(self, plan: Plan, leaves: list[Any], layout: list[tuple[int, int]]) -> None:
        """Makes the slots that a new plan, or other flags, ask for, and tells the core where they lie."""
        rules = [choice.rule() for choice in plan.choices]
        begun = {p.text: self._begun(plan, p, leaves[p.index]) for p in plan.parameters}
        self.slots = {**self.slots, **begun}
        self._plan = None  # An interrupt from here on leaves none, rather than one that the core was not told of.
        prepared = []
        for position, p in enumerate(plan.parameters):
            if p.executor not in _ON_HOST:
                continue
            rule, own = rules[p.choice], self.slots[p.text]
            arrays = [(slot.name, _memory(own[slot.name])) for slot in rule.slots if not slot.is_number]
            numbers = [(slot.name, own[slot.name]) for slot in rule.slots if slot.is_number]
            choice = plan.choices[p.choice]
            flags = choice.catches_up, choice.precision.rounding == "stochastic"
            prepared.append((p.text, position, leaves[p.index], arrays, numbers, *flags, *layout[p.choice]))
        self._core.prepare(prepared)
        self._plan, self._layout = plan, layout
        self._absent = [choice.absent for choice in plan.choices]

    def _touch(
        self, plan: Plan, gradients: list[Any], values: list[dict[str, Any]]
    ) -> tuple[list[tuple[int, Any, list[Any]]], list[tuple[Any, Any, Any]]]:
        """Which rows of parameters in host memory are touched, with factors of their slots; and the items of slots to assign.

        Puts the values of sparse gradients in their places.
        """
        if not plan.sparse:
            return [], []
        touched, stamps, decays = [], [], _decays(plan, values)
        for position, p in enumerate(plan.host):
            g, rows = gradients[p.index], None
            if isinstance(g, SparseRows):
                g = g.map(to_host).coalesce()
                gradients[p.index], rows = g.values, g.indices
            last = self.slots[p.text].get(LAST_STEP)
            if last is None:
                caught = [np.ones(()) for _ in decays[p.choice]]
            else:
                if last.shape != p.shape[:1] or last.dtype != np.int64:
                    raise ShapeError(
                        f"{p.text}: the slot {LAST_STEP} has shape {last.shape} and dtype {last.dtype}: expected "
                        f"{p.shape[:1]} and int64"
                    )
                index = slice(None) if rows is None else rows
                found = factors(decays[p.choice], last[index], self.count)
                caught = [like_column(factor, p.shape) for factor in found.values()]
                refuse_unwritable(p.text, f"slot {LAST_STEP}", last)
                stamps.append((last, index, self.count + 1))
            if rows is not None or caught:
                touched.append((position, rows, caught))
        return touched, stamps

    def _begun(self, plan: Plan, parameter: Parameter, array: Any) -> dict[str, Any]:
        """The slots of one parameter that its rule has: those that there were, and new ones."""
        choice, path = plan.choices[parameter.choice], parameter.text
        if path in self.slots:
            self.slots[path].check()
        known, on_host = dict(self.slots.get(path, {})), parameter.executor in _ON_HOST
        for name, slot in known.items():
            if isinstance(slot, Quantized) and not on_host:  # Only the core reads codes.
                known[name] = namespace(array).asarray(np.asarray(slot), device=device_of(array))
        found = {**known, **new_slots(choice, path, array, on_host=on_host, known=known)}
        return {name: found[name] for name in _names(choice) if name in found}

    def _call_rules(
        self, plan: Plan, leaves: list[Any], gradients: list[Any], values: list[dict[str, Any]], holds: bool
    ) -> tuple[list[tuple[Any, Any]], list[tuple[dict[str, Any], str, Any]], list[tuple[Any, Any]], bool]:
        """What the rules that are called want replaced, assigned and copied, and whether they want it at all."""
        replacements, assignments, copies = [], [], []
        for _, parameter in plan.ruled:
            self.slots[parameter.text].check()
        called = _leaves(plan, plan.ruled, leaves, plan.unrecorded(gradients), self.slots, values, holds)
        results, keep = call_rules(called, self._owner.seed)
        for (_, parameter), leaf, (new, *after) in zip(plan.ruled, called, results, strict=True):
            if new is leaf.p:
                pass
            elif parameter.executor == "into":
                copies.append(copying(new, leaf.p))
            else:
                replacements += [(path, new) for path in parameter.paths]
            changed = zip(leaf.rule.slots, after, strict=True)
            own = self.slots[leaf.path]
            assignments += [(own, slot.name, value) for slot, value in changed if value is not None]
            assignments += [(own, LAST_STEP, leaf.stamped())] if LAST_STEP in own else []
        return replacements, assignments, copies, bool(fetched(keep))

    def begin(self, model: Any) -> tuple[Plan, list[Any]]:
        """The plan for a model that is to be changed in place, and its leaves; the slots are there."""
        self.build(model)
        plan, leaves = self._planned(model)
        _check_replaceable(plan, model)
        self._replaced(
            plan, leaves, {p.text: leaves[p.index] for p in plan.parameters}
        )  # Raises what it would at the end.
        return plan, leaves

    def finish(self, plan: Plan, leaves: list[Any], model: Any, values: list[Any], slots: list[dict[str, Any]]) -> None:
        """Takes a step that was computed elsewhere: new values and slots for each parameter, in the order of the plan."""
        named = {p.text: value for p, value in zip(plan.parameters, values, strict=True)}
        replacements, copies = self._replaced(plan, leaves, named)
        of_leaves = [self.slots[p.text] for p in plan.parameters]
        assigned = [(own, *item) for own, new in zip(of_leaves, slots, strict=True) for item in new.items()]
        changed = [(own, name, array) for own, name, array in assigned if array is not own[name]]
        found = apart([array for *_, array in changed], [*leaves, *values])
        assignments = [(own, name, array) for (own, name, _), array in zip(changed, found, strict=True)]
        self._core.step([], self._owner.seed, (), (), [], model, replacements, assignments, copies, False)
        self._settle()

    def skip(self, plan: Plan, model: Any, gradients: list[Any]) -> Any:
        """What is left of a step whose gradients are not finite: `NonFiniteError`, or the model as it was."""
        if self._owner.nonfinite == "raise":
            given = {p.text: gradients[p.index] for p in plan.parameters}
            given |= {path: g.values for path, g in given.items() if isinstance(g, SparseRows)}
            bad = [path for path, g in given.items() if not fetched(xp.all(xp.isfinite(g)))]
            raise NonFiniteError(f"{', '.join(bad)}: the gradient has infinities or NaN; nothing was changed")
        if self.skipped >= _core.MOST_STEPS:
            raise StateError(f"{self.skipped} steps have been skipped, which is as many as are counted")
        self.skipped += 1
        self._owner.observe(finite=False)
        return model


def _some(found: dict[str, Any], what: str) -> dict[str, Any]:
    """What was found; `StateError` where that is nothing."""
    if not found:
        raise StateError(f"there are no {what}: expected an optimizer that keeps them, after its first step")
    return found


def _check_replaceable(plan: Plan, model: Any) -> None:
    """Refuses a model of which a new tree would have to be made."""
    if plan.replaced and not all(path.replaceable(model) for p in plan.replaced for path in p.paths):
        raise StructureError(
            "a parameter cannot be written, and no container on its path can be changed: use update, which returns "
            "the new tree"
        )


def _leaves(
    plan: Plan,
    parameters: Iterable[tuple[int, Parameter]],
    leaves: list[Any],
    gradients: list[Any],
    slots: Mapping[str, dict[str, Any]],
    values: list[dict[str, Any]],
    holds: bool,
) -> list[Leaf]:
    """What rules are called on for these parameters, given with their positions."""
    decays = _decays(plan, values)
    return [
        Leaf(
            p.text,
            position,
            plan.choices[p.choice].rule(holds),
            leaves[p.index],
            gradients[p.index],
            slots[p.text],
            values[p.choice],
            decays[p.choice],
            plan.choices[p.choice].precision.rounding == "stochastic",
        )
        for position, p in parameters
    ]


def _decays(plan: Plan, values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each choice, by how much a zero gradient multiplies its slots, where they catch up."""
    return [choice.decays(of_choice) for choice, of_choice in zip(plan.choices, values, strict=True)]


def init(owner: Any, params: Any) -> dict[str, Any]:
    """See `Optimizer.init`."""
    leaves, structure = tree.flatten(params)
    plan = Plan(leaves, structure, owner)
    leaves = plan.detach(leaves)
    slots = {p.text: new_slots(plan.choices[p.choice], p.text, leaves[p.index], on_host=False) for p in plan.parameters}
    return {"step": 0, "slots": slots, **({"micro": 0} if owner.accumulate > 1 else {})}


def apply(owner: Any, params: Any, grads: Any, state: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """See `Optimizer.apply`: the rule on every parameter, nothing written."""
    leaves, structure = tree.flatten(params)
    plan = Plan(leaves, structure, owner)
    leaves, gradients = plan.detach(leaves), plan.gradients(leaves, grads, called=True)
    plan.check_parameters(leaves)
    plan.check_known(state["slots"])
    step = state["step"]
    if isinstance(step, int) and step >= _core.MOST_STEPS:
        raise StateError(f"{step} steps have been taken, which is as many as are counted")
    last = state["micro"] + 1 == owner.accumulate if owner.accumulate > 1 else True
    now = {"step": step + 1, "micro": state.get("micro", 0) + 1, "inverse_scale": 1.0 / owner.scale}
    values = [{**now, **choice.flags, **choice.numbers(step)} for choice in plan.choices]
    begun = {p.text: _with_new_slots(plan, p, leaves[p.index], state["slots"][p.text]) for p in plan.parameters}

    def called_on(holds: bool) -> list[Leaf]:
        return _leaves(plan, enumerate(plan.parameters), leaves, gradients, begun, values, holds)

    called = called_on(holds=False)
    results, keep = call_rules(called, owner.seed)
    if owner.accumulate > 1:
        held, _ = call_rules(called_on(holds=True), owner.seed)
        results = [_select(last, new, old) for new, old in zip(results, held, strict=True)]
    filled, slots = list(leaves), {}
    for parameter, leaf, result in zip(plan.parameters, called, results, strict=True):
        old = begun[parameter.text]
        rule = plan.choices[parameter.choice].rule()
        before = [leaves[parameter.index], *(old.get(slot.name) for slot in rule.slots)]
        new, *after = _select(keep, result, before)
        for i in (parameter.index, *parameter.tied):
            filled[i] = new
        named = zip(rule.slots, after, strict=True)
        slots[parameter.text] = {slot.name: value for slot, value in named if value is not None}
        if LAST_STEP in old:
            slots[parameter.text][LAST_STEP] = _select(keep, [leaf.stamped()], [old[LAST_STEP]])[0]
    counted = xp.where(xp.logical_and(keep, last), 1, 0) if keep is not True or last is not True else 1
    changed = {"step": step + counted, "slots": slots}
    if owner.accumulate > 1:
        changed["micro"] = xp.where(keep, xp.where(last, 0, state["micro"] + 1), state["micro"])
    return tree.unflatten(structure, filled), changed


def _with_new_slots(plan: Plan, p: Parameter, array: Any, known: dict[str, Any]) -> dict[str, Any]:
    """The slots of a parameter with those that flags ask for that were changed since `init`."""
    choice = plan.choices[p.choice]
    known = dict(renamed(known, _names(choice)))
    return {**known, **new_slots(choice, p.text, array, on_host=False, known=known)}


def _names(choice: Any) -> list[str]:
    """The names of the slots that a parameter may have."""
    return [*(slot.name for slot in choice.rule().slots), *([LAST_STEP] if choice.catches_up else [])]


def _select(condition: Any, these: list[Any], those: list[Any]) -> list[Any]:
    """These arrays where the condition holds, else those."""
    if condition is True:
        return these
    return [None if a is None else xp.where(condition, a, b) for a, b in zip(these, those, strict=True)]
