"""Random steps for `test_steps`: optimizers and their options, gradients, and events between steps."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from random_models import Draw, Model, Watched, Weight, bfloat16, layouts, negated, numpy_dtype, read, to_torch, torch

import oxigrad as ox
from optimizers import OPTIMIZERS
from oxigrad import optim

WHOLE: dict[str, Callable[[], Any]] = {
    "adafactor": lambda: optim.Adafactor(0.1),
    "sm3": lambda: optim.SM3(0.1),
    "muon": lambda: optim.Muon(0.02),
    "shampoo": lambda: optim.Shampoo(0.1),
    "soap": lambda: optim.SOAP(0.1),
}
BEFORE: list[Callable[[], Any]] = [
    lambda: optim.ClipByValue(0.5),
    lambda: optim.ClipByNorm(0.7),
    lambda: optim.ClipByGlobalNorm(1.0),
    optim.Maximize,
    lambda: optim.Regularize(l2=0.1),
    lambda: optim.GradientNoise(0.01),
    optim.Centralize,
    lambda: optim.AdaptiveGradientClip(0.1),
]
AFTER: list[Callable[[], Any]] = [
    lambda: optim.WeightDecay(0.01),
    lambda: optim.EMA(0.9),
    lambda: optim.Copy("float16"),
    lambda: optim.Lookahead(sync_period=2),
]
SEEDED = {"adam-lrd"}


class Fault(AssertionError):
    """A fault of a step."""


def random_options(draw: Draw) -> dict[str, Any]:
    """Options that every optimizer has; most as they are by default."""
    found: dict[str, Any] = {}
    choices: dict[str, list[Any]] = {
        "accumulate": [2, 3],
        "nonfinite": ["skip", "raise"],
        "slot_dtype": ["float32", "float16", "8bit", "4bit", *(["bfloat16"] if bfloat16 else [])],
        "rounding": ["stochastic", "kahan"],
        "master": [True],
        "sparse": ["lazy", "catch_up"],
        "zero_gradients": [True],
        "loss_scale": [ox.optim.LossScale(8.0, interval=2).get_config()],
        "seed": [7],
    }
    for name, values in choices.items():
        if draw.flag(0.15):
            found[name] = draw.choice(values)
    if found.get("sparse"):
        found.pop("accumulate", None)
    if found.get("master"):
        found.pop("rounding", None)
    return found


def random_optimizer(draw: Draw, model: Model) -> Any:
    """An optimizer for a model: one of the table, a chain, a partition or with groups, and options."""

    def one() -> Any:
        name = draw.choice([*OPTIMIZERS] * 3 + [*WHOLE] * 2)
        made = {**OPTIMIZERS, **WHOLE}[name]()
        if name in SEEDED or draw.flag(0.75):
            return made
        before = [draw.choice(BEFORE)() for _ in range(draw.randint(0, 2))]
        after = [draw.choice(AFTER)() for _ in range(draw.randint(0, 1))]
        try:
            return optim.chain(*before, made, *after)
        except ValueError:  # parts that do not fit
            return one()

    options, keys = random_options(draw), [w.key for w in model.weights]
    if draw.flag(0.15) and len(keys) > 1:
        parts = {keys[0]: unoptioned(one), "*": unoptioned(one)}
        return with_options(optim.partition(parts), options)
    made = one()
    if "groups" not in options and draw.flag(0.15) and len(keys) > 1 and "learning_rate" in made._declared:
        options["groups"] = [[draw.choice(keys), draw.choice([{"learning_rate": 0.02}, None])]]
    return with_options(made, options)


def with_options(opt: Any, options: dict[str, Any]) -> Any:
    """The optimizer with these options, but for a dtype of moments that it refuses."""
    try:
        return optim.from_config({**opt.get_config(), **options})
    except ValueError:
        return optim.from_config({**opt.get_config(), **options, "slot_dtype": None})


def fits(opt: Any, model: Model) -> bool:
    """Whether the rules of an optimizer take the gradients that its options ask for, and there is anything to update."""
    trial, flat = copy.deepcopy(opt), {key: array.copy() for key, array in model.plain.items()}
    rows = {
        key: ox.SparseRows(np.arange(min(1, len(x))), x[:1].copy(), x.shape) if x.ndim else x.copy()
        for key, x in flat.items()
    }
    try:
        trial.update(flat, {key: g.todense() if isinstance(g, ox.SparseRows) else g for key, g in rows.items()})
        if opt.sparse != "dense":
            trial.update(flat, rows)
    except (ox.RuleError, ox.ShapeError, ox.StructureError):
        return False
    choices = [opt._assign(w.text, model.array(w)) for w in model.weights]
    rules = [choice.rule() for choice in choices if choice is not None]
    if (
        len({rule.name for rule in rules if "total" in rule.supplied}) > 1
        or len({"total" in r.supplied for r in rules}) > 1
    ):
        return False  # such rules cannot be called together
    if any("clip" in rule.name for rule in rules) and any(w.layout == "big-endian" for w in model.weights):
        return False  # NumPy's clip takes no other order of bytes
    return opt.sparse == "dense" or all(choice is None or choice.rule().elementwise for choice in choices)


def unoptioned(make: Callable[[], Any]) -> Any:
    """An optimizer that can be a part of a partition."""
    while (made := make())._stepping_options():
        pass
    return made


# --- gradients -----------------------------------------------------------------------------------------------------------


class Exporter:
    """An array that only exports itself, and calls something when it does."""

    def __init__(self, array: np.ndarray, hook: Callable[[], Any]) -> None:
        self.array, self.shape, self.dtype, self.hook = array, array.shape, array.dtype, hook

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return np

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **named: Any) -> Any:
        self.hook()
        return self.array.__dlpack__(**named)


def random_gradient(draw: Draw, weight: Weight, values: np.ndarray, *, writable: bool) -> Any:
    """The values in a layout of the weight's library."""
    dtype = values.dtype.name
    is_lazy = weight.library == "torch" and weight.dtype in ("float32", "float64")
    if is_lazy and not writable and draw.flag(0.1):
        return negated(values)
    found = layouts(weight.library, dtype, weight.shape)
    if writable:
        found = {name: layout for name, layout in found.items() if name != "read-only"}
    return found[draw.choice([*found])](values)


@dataclasses.dataclass
class Gradients:
    """The gradients of one step: by leaf of the model, and by key for the flat one."""

    leaves: dict[int, Any] = dataclasses.field(default_factory=dict)
    plain: dict[str, Any] = dataclasses.field(default_factory=dict)
    may_be_refused: bool = False


def random_gradients(draw: Draw, model: Model, opt: Any) -> Gradients:
    """Gradients for all weights; those of a weight at several paths are one array, or several."""
    found = Gradients()
    for weight in model.weights:
        writable = opt.zero_gradients
        dtype = weight.dtype
        if weight.dtype in ("float16", "bfloat16") and draw.flag(0.2) and len(weight.leaves) == 1:
            dtype = "float32"
        if weight.shape and weight.shape[0] and not writable and draw.flag(0.5 if opt.sparse != "dense" else 0.05):
            rows = draw.arrays.integers(0, weight.shape[0], draw.randint(0, weight.shape[0] + 1))
            values = draw.values((len(rows), *weight.shape[1:]), weight.dtype)
            given = to_torch(values) if weight.library == "torch" else values
            indices = torch.tensor(rows) if weight.library == "torch" else rows
            g = ox.SparseRows(indices, given, weight.shape)
            found.leaves |= dict.fromkeys(weight.leaves, g)
            found.plain[weight.key] = ox.SparseRows(rows, values, weight.shape)
            continue
        if draw.flag(0.05) and weight.library == "numpy" and not writable:  # one number, broadcast
            values = np.broadcast_to(draw.values((), dtype), weight.shape)
            found.leaves |= dict.fromkeys(weight.leaves, values)
            found.plain[weight.key] = values.copy()
            continue
        same = draw.flag() or len(weight.leaves) == 1
        parts = [draw.values(weight.shape, dtype) for _ in ([0] if same else weight.leaves)]
        given = [random_gradient(draw, weight, part, writable=writable) for part in parts]
        if any(isinstance(x, np.ndarray) and not x.dtype.isnative for x in [*given, model.array(weight)]):
            found.may_be_refused = True  # only NumPy computes with what is not in the processor's order of bytes
        found.leaves |= dict(zip(weight.leaves, given * len(weight.leaves) if same else given, strict=False))
        total = parts[0]
        for part in parts[1:]:
            total = (total + part).astype(part.dtype)
        found.plain[weight.key] = np.array(total)
    return found


# --- events --------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Event:
    """An event before or in a step: whether the step must or may raise, and how the event is undone."""

    name: str
    raises: str = "never"
    undo: Callable[[], Any] = lambda: None
    check: Callable[[], Any] = lambda: None


class Run:
    """One seed: a model, an optimizer, and the same for the flat model."""

    def __init__(self, seed: int) -> None:
        self.draw = Draw(seed)
        self.model = Model(self.draw)
        self.opt = random_optimizer(self.draw, self.model)
        while not fits(self.opt, self.model):
            self.opt = random_optimizer(self.draw, self.model)
        self.reference = copy.deepcopy(self.opt)
        self.flat = {key: array.copy() for key, array in self.model.plain.items()}
        self.reached: Callable[[], Any] | None = None
        self.scheduled = "learning_rate" in getattr(self.opt, "_declared", ()) and self.draw.flag(0.2)
        if self.scheduled:
            rate = self.opt.learning_rate
            self.opt.learning_rate = lambda step: self.reach() or rate / (1 + step)
            self.reference.learning_rate = lambda step: rate / (1 + step)

    def reach(self) -> None:
        """Is called by a schedule, a container or an array in a step."""
        if self.reached:
            self.reached()

    @property
    def executors(self) -> set[str]:
        """Kind of the optimizer."""
        plan = self.opt._stepper.plan
        return {p.executor.name for p in plan.parameters} if plan else set()

    @property
    def decomposes(self) -> bool:
        """Whether a rule computes eigenvectors, which there are none of where numbers are not finite."""
        choices = [self.opt._assign(w.text, self.model.array(w)) for w in self.model.weights]
        names = [choice.rule().name for choice in choices if choice is not None]
        return any("shampoo" in name or "soap" in name for name in names)

    @property
    def may_freeze(self) -> bool:
        """Whether there are groups, of which one may have no updates."""
        return bool(getattr(self.opt, "_groups", None))

    def slots(self) -> Iterator[tuple[str, str, Any]]:
        """The arrays of all slots, with the path and the name."""
        for path, own in self.opt._stepper.slots.items():
            for name, slot in own.items():
                yield from (
                    [(path, name, slot.codes), (path, name, slot.scales)]
                    if isinstance(slot, optim.Quantized)
                    else [(path, name, slot)]
                )

    def some_slot(self, kind: type) -> Any:
        """A slot that is an array of a class, with its path and name."""
        found = [
            slot
            for slot in self.slots()
            if isinstance(slot[2], kind) and not isinstance(self.opt.slots[slot[0]][slot[1]], optim.Quantized)
        ]
        return self.draw.choice(found) if found else None

    # Each returns an event, or None where it does not apply.

    def nothing(self, grads: Gradients) -> Event:
        return Event("nothing")

    def rate(self, grads: Gradients) -> Event | None:
        if self.scheduled or "learning_rate" not in getattr(self.opt, "_declared", ()):
            return None
        self.opt.learning_rate = self.reference.learning_rate = self.draw.uniform(0.01, 0.2)
        return Event("another learning rate")

    def moved_slot(self, grads: Gradients) -> Event | None:
        if torch and self.draw.flag() and (found := self.some_slot(torch.Tensor)):
            found[2].data = found[2].data.clone()
            return Event("a slot's data is another tensor")
        found = self.some_slot(np.ndarray)
        if not found or not found[2].flags.owndata or not found[2].flags.c_contiguous or not found[2].flags.writeable:
            return None
        slot = found[2]
        values, shape = slot.copy(), slot.shape
        slot.resize((2 ** self.draw.randint(1, 17),), refcheck=False)
        slot.resize(shape, refcheck=False)
        slot[...] = values
        return Event("a slot is resized and back")

    def wrong_slot(self, grads: Gradients) -> Event | None:
        found = self.some_slot(np.ndarray)
        if not found or not found[2].flags.owndata or not found[2].flags.c_contiguous or not found[2].flags.writeable:
            return None
        slot = found[2]
        values, shape = slot.copy(), slot.shape
        slot.resize((slot.size + 2**15,), refcheck=False)

        def undo() -> None:
            slot.resize(shape, refcheck=False)
            slot[...] = values

        return Event(f"the slot {found[1]} of {found[0]} has another shape", "must", undo)

    def assigned_slot(self, grads: Gradients) -> Event | None:
        found = self.some_slot(np.ndarray)
        if not found:
            return None
        path, name, slot = found
        self.opt.slots[path][name] = slot[::-1].copy()[::-1] if slot.ndim else slot.copy()
        return Event("a slot is assigned")

    def read_only_slot(self, grads: Gradients) -> Event | None:
        found = self.some_slot(np.ndarray)
        if not found or not found[2].flags.writeable:
            return None
        found[2].setflags(write=False)
        return Event(f"the slot {found[1]} is read-only", "may", lambda: found[2].setflags(write=True))

    def replaced(self, grads: Gradients) -> Event:
        weight = self.draw.choice(self.model.weights)
        names = [name for name in layouts(weight.library, weight.dtype, weight.shape) if name != "big-endian"]
        weight.layout = self.draw.choice(names)
        self.model.replace(dict.fromkeys(weight.leaves, weight.made(read(self.model.array(weight)))))
        return Event(f"{weight.text} is replaced by a {weight.layout} array")

    def moved(self, grads: Gradients) -> Event | None:
        weight = self.draw.choice(self.model.weights)
        if weight.library != "torch":
            return None
        array = self.model.array(weight)
        array.data = array.data.clone()
        return Event(f"{weight.text} has other data")

    def locked(self, grads: Gradients) -> Event | None:
        weight = self.draw.choice(self.model.weights)
        array = self.model.array(weight)
        if not isinstance(array, np.ndarray) or not array.flags.owndata:
            return None
        array.setflags(write=not array.flags.writeable)
        return Event(f"{weight.text} is writable no more, or again")

    def overlapping(self, grads: Gradients) -> Event | None:
        found = [w for w in self.model.weights if w.library == "numpy" and np.prod(w.shape, dtype=int) > 1]
        arrays = map(self.model.array, found)
        found = [w for w, x in zip(found, arrays, strict=True) if x.flags.writeable and x.dtype.isnative]
        if not found or self.may_freeze or not self.executors <= {"host", "into"}:
            return None
        weight, before = self.draw.choice(found), self.model.tree
        others = [
            w for w in self.model.weights if (w.dtype, w.shape, w.library) == (weight.dtype, weight.shape, "numpy")
        ]
        if len(others) > 1:
            room = self.draw.values((int(np.prod(weight.shape)) + 1,), weight.dtype)
            first, second = (part.reshape(weight.shape) for part in (room[:-1], room[1:]))
            pairs = [*dict.fromkeys(others[0].leaves, first).items(), *dict.fromkeys(others[1].leaves, second).items()]
            self.model.replace(dict(pairs))
        else:
            array = np.zeros(weight.shape, numpy_dtype(weight.dtype))
            bad = np.lib.stride_tricks.as_strided(array, weight.shape, (0,) * len(weight.shape))
            self.model.replace(dict.fromkeys(weight.leaves, bad))
        return Event("parameters overlap", "must", lambda: setattr(self.model, "tree", before))

    def wrong_gradient(self, grads: Gradients) -> Event:
        weight = self.draw.choice(self.model.weights)
        kind = self.draw.choice(["shape", "dtype", *(["parameter"] if len(weight.leaves) == 1 else [])])
        bad = {
            "shape": lambda: np.zeros((*weight.shape, 2), numpy_dtype(weight.dtype)),
            "dtype": lambda: np.zeros(weight.shape, np.int32),
            "parameter": lambda: self.model.array(weight),
        }[kind]()
        grads.leaves[self.draw.choice(weight.leaves)] = bad
        if kind == "parameter":  # which a step that holds the mean of gradients takes
            grads.plain[weight.key] = read(bad)
        raises = "may" if kind == "parameter" or self.may_freeze else "must"
        return Event(f"the gradient of {weight.text}: {kind}", raises)

    def infinite(self, grads: Gradients) -> Event | None:
        weight = self.draw.choice(self.model.weights)
        plain = grads.plain[weight.key]
        if isinstance(plain, ox.SparseRows) or not plain.size or len(weight.leaves) > 1 or self.decomposes:
            return None
        bad = np.array(plain)
        bad.reshape(-1)[0] = self.draw.choice([np.inf, np.nan])
        grads.plain[weight.key] = bad
        grads.leaves[weight.leaves[0]] = to_torch(bad) if weight.library == "torch" else bad.copy()
        must = self.opt.nonfinite == "raise" and not self.may_freeze
        return Event(f"the gradient of {weight.text} is not finite", "must" if must else "may")

    def reentered(self, grads: Gradients) -> Event | None:
        weight, called = self.draw.choice(self.model.weights), []

        def enter() -> None:
            self.reached = Watched.hook = None
            try:
                use = self.draw.choice(["update", "build", "load"])
                if use == "update":
                    self.opt.update(self.model.tree, self.model.like(grads.leaves))
                elif use == "build":
                    self.opt.build(self.model.tree)
                else:
                    self.opt.load_state_dict(self.opt.state_dict())
            except ox.StateError:
                called.append(True)
            else:
                raise Fault(f"{use} within a step was not refused")

        self.reached = Watched.hook = enter
        array = grads.leaves[weight.leaves[0]]
        is_plain = isinstance(array, np.ndarray) and array.dtype.isnative and array.dtype.kind == "f"
        if is_plain and array.flags.writeable and len(weight.leaves) == 1 and self.executors == {"host"}:
            grads.leaves[weight.leaves[0]] = Exporter(array, self.reach)
        return Event("re-entry")

    def thrown(self, grads: Gradients) -> Event:
        count = self.draw.randint(0, 2)

        def throw() -> None:
            nonlocal count
            count -= 1
            if count == -1:
                raise KeyError("thrown")

        Watched.hook = throw
        if self.scheduled and self.draw.flag():
            self.reached = throw
        return Event("thrown", "may")

    def carried_over(self, grads: Gradients) -> Event:
        way = self.draw.choice(["deepcopy", "pickle", "state", "fresh"])
        if way == "deepcopy":
            self.opt = copy.deepcopy(self.opt)
        elif way == "pickle" and not self.scheduled:
            self.opt = pickle.loads(pickle.dumps(self.opt))  # noqa: S301 - our own
        elif way == "fresh" and not self.scheduled:
            state = self.opt.state_dict()
            self.opt = optim.from_config(state["config"])
            self.opt.load_state_dict(state)
        else:
            self.opt.load_state_dict(self.opt.state_dict())
        return Event(f"carried over: {way}")

    def event(self, grads: Gradients) -> Event:
        """A random one."""
        kinds = [
            *[self.nothing] * 3, self.rate, self.moved_slot, self.wrong_slot, self.assigned_slot, self.read_only_slot,
            self.replaced, self.replaced, self.moved, self.locked, self.overlapping, self.wrong_gradient, self.infinite,
            self.reentered, self.thrown, self.carried_over,
        ]  # fmt: skip
        found = self.draw.choice(kinds)(grads) or Event("nothing")
        swapped = any(w.layout == "big-endian" for w in self.model.weights)
        if found.raises == "never" and (grads.may_be_refused or swapped):
            found.raises = "may"
        return found
