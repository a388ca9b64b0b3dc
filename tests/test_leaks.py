"""Dropped objects are freed: at once if they are in no reference cycle, else by the collector."""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import gc
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim, schedules, tree, xp

Use = Callable[[np.ndarray], Any]


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def dies(use: Use) -> bool:
    """Whether an array that was used is gone with the last name for it."""
    array = np.linspace(0.1, 1.0, 12)
    ref = weakref.ref(array)
    use(array)
    del array
    return ref() is None


# --- transforms and tapes ------------------------------------------------------------------------------------------------

sine = ox.custom_vjp(np.sin, lambda g, y, x: g * xp.cos(x))
twice = ox.custom_vjp(lambda tree: {"y": 2.0 * tree["x"]}, lambda g, y, tree: {"x": 2.0 * g["y"]})
stated = ox.define_vjp(lambda g, x: g * xp.cos(x))(lambda x: np.sin(x))
again = ox.checkpoint(lambda x: xp.sin(x) * x)
named = ox.checkpoint(lambda *, x: xp.sin(x) * x)
nested = ox.checkpoint(lambda x: again(sine(x)) * stated(x))


def total(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: xp.sum(f(x))


def by_hand(a: np.ndarray) -> None:
    with ox.Tape(check=True) as tape:
        x = tape.watch(a, name="x")
        y = x * x
        y[0] = 1.0
        y += x
        z = xp.sum(nested(y[1:]))
    tape.gradient(z, [x])
    assert "call" in str(tape) and "<svg" in tape.to_svg() and tape.to_mermaid() and repr(tape) and repr(x)


def forwards(a: np.ndarray) -> None:
    with ox.Tape(forward=True) as tape:
        x = tape.watch(a)
        y = nested(x)
    tape.push([(x, a)], [y])


def unfinished(a: np.ndarray) -> None:
    with ox.Tape() as tape:
        nested(tape.watch(a))


def pulled_twice(a: np.ndarray) -> None:
    value, pullback = ox.vjp(nested, a)
    pullback(value)
    pullback(value)


def by_generator(a: np.ndarray) -> None:
    def f(x: Any) -> Any:
        def parts() -> Iterator[Any]:
            for _ in range(3):
                yield again(x)

        found = parts()
        return xp.sum(next(found) * next(found))

    ox.grad(f)(a)


def in_threads(a: np.ndarray) -> None:
    threads = [threading.Thread(target=ox.grad(total(nested)), args=(a,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def raising(f: Callable[[Any], Any]) -> Use:
    def use(a: np.ndarray) -> None:
        with pytest.raises(ZeroDivisionError):
            ox.grad(f)(a)

    return use


def fails(*args: Any) -> Any:
    raise ZeroDivisionError


TRANSFORMS: dict[str, Use] = {
    "grad": ox.grad(total(xp.sin)),
    "value_and_grad": ox.value_and_grad(lambda x: (xp.sum(x), x), has_aux=True),
    "grad of a tree": lambda a: ox.grad(lambda t: xp.sum(t["x"] * t["y"][0]))({"x": a, "y": [a]}),
    "second order": lambda a: ox.grad(total(ox.grad(total(nested))))(a),
    "vjp": pulled_twice,
    "jvp": lambda a: ox.jvp(nested, (a,), (a,)),
    "jacobian forwards": lambda a: ox.jacobian(lambda x: xp.sin(x), mode="forward")(a),
    "jacobian in reverse": lambda a: ox.jacobian(again, mode="reverse")(a),
    "hessian": lambda a: ox.hessian(total(again))(a),
    "hvp": lambda a: ox.hvp(total(nested), (a,), (a,)),
    "checkpoint": ox.grad(total(again)),
    "checkpoint by keyword": ox.grad(total(lambda x: named(x=x))),
    "checkpoint of nested calls": ox.grad(total(nested)),
    "checkpoint that is not differentiated": lambda a: again(a),
    "stop_gradient": ox.grad(total(lambda x: x * ox.stop_gradient(x))),
    "custom_vjp": ox.grad(total(sine)),
    "custom_vjp of a tree": ox.grad(total(lambda x: twice({"x": x})["y"])),
    "custom_vjp of constants by keyword": ox.grad(
        total(lambda x: ox.custom_vjp(lambda x, scale: scale * x, lambda g, y, x: g)(x, scale=2.0))
    ),
    "derivative": ox.grad(total(stated)),
    "tape": by_hand,
    "tape forwards": forwards,
    "tape that is not replayed": unfinished,
    "generator": by_generator,
    "threads": in_threads,
    "raises while recording": raising(lambda x: fails(nested(x))),
    "raises in a checkpoint": raising(ox.checkpoint(lambda x: fails(again(x)))),
    "raises in the backward pass": raising(total(ox.custom_vjp(np.sin, fails))),
    "raises in a nested tape": raising(lambda x: ox.grad(lambda y: fails(again(x * y)))(1.0)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_arguments_of_a_transform_are_freed_at_once(name: str) -> None:
    assert dies(TRANSFORMS[name])


def own_cycle(a: np.ndarray) -> None:
    """A function that is recorded, and refers to what it is given."""
    ox.grad(lambda x: xp.sum(ox.checkpoint(lambda y: y * ox.stop_gradient(x))(x)))(a)


def held_by_itself(a: np.ndarray) -> None:
    class Holder:
        pass

    holder = Holder()
    with ox.Tape(check=True) as tape:
        x = tape.watch(a)
        x[1:] = again(x[1:])
        holder.all = [tape, x, nested(x), holder]  # type: ignore[attr-defined]


def held_by_an_attribute(a: np.ndarray) -> None:
    class Array(np.ndarray):
        pass

    array: Any = a.view(Array)
    with ox.Tape() as tape:
        array.variable = tape.watch(array)


def held_by_an_error(a: np.ndarray) -> None:
    def f(x: Any) -> Any:
        try:
            fails()
        except ZeroDivisionError as error:
            kept = error  # its traceback has this frame
        return xp.sum(x) if kept else x

    ox.grad(f)(a)


@pytest.mark.parametrize("use", [own_cycle, held_by_itself, held_by_an_attribute, held_by_an_error])
def test_cycles_of_a_program_are_collected(use: Use) -> None:
    array = np.ones(5)
    ref = weakref.ref(array)
    use(array)
    del array
    gc.collect()
    assert ref() is None


def test_a_collected_tape_raises() -> None:
    """Whoever is called while the collector takes a cycle apart finds a tape that has ended, and nothing worse."""
    found: list[str] = []

    class Last:
        def __del__(self) -> None:
            for use in (lambda: self.x * 2.0, lambda: self.tape.gradient(self.y, [self.x])):
                try:
                    use()
                    found.append("done")
                except ox.TapeEndedError:
                    found.append("ended")

    last: Any = Last()
    with ox.Tape() as last.tape:
        last.x = last.tape.watch(np.ones(3))
        last.y = xp.sum(ox.checkpoint(lambda y: y * (1.0 if last else 2.0))(last.x))
    last = None
    gc.collect()
    assert found and found[0] == "ended"


# --- optimizers ----------------------------------------------------------------------------------------------------------


def step_of(opt: Any) -> None:
    for _ in range(3):
        model = {"w": np.ones((3, 2)), "b": np.ones(2)}
        if isinstance(opt, optim.SAM):
            opt.minimize(lambda model: xp.sum(model["w"] ** 2) + xp.sum(model["b"]), model)
        else:
            opt.update(model, {"w": np.ones((3, 2)), "b": np.ones(2)}, loss=1.5)


def sparse_step_of(opt: Any) -> None:
    opt.update({"t": np.ones((4, 2))}, {"t": ox.SparseRows([1, 3], np.ones((2, 2)), (4, 2))})


def loss(model: Any) -> Any:
    return xp.sum(model["w"] ** 2)


def search_with(opt: Any) -> None:
    for _ in range(2):
        opt.minimize(loss, {"w": np.ones((3, 2)), "b": np.ones(2)})


def quantized(opt: Any) -> None:
    opt.update({"w": np.ones((64, 128))}, {"w": np.ones((64, 128))})
    assert isinstance(opt.slots["w"]["m"], optim.Quantized)


def halves(opt: Any) -> None:
    opt.update({"w": np.ones(4, np.float16)}, {"w": np.ones(4, np.float16)})


def loads(opt: Any) -> None:
    step_of(opt)
    other = optim.from_config(opt.get_config())
    other.load_state_dict(opt.state_dict())
    step_of(other)
    opt.load_state_dict(other.state_dict())
    step_of(opt)


def swaps(opt: Any) -> None:
    model = opt.update({"w": np.ones(2)}, {"w": np.ones(2)})
    opt.swap_out(opt.swap_in(model))
    assert opt.averaged_parameters() and opt.table(model)


def is_pure(opt: Any) -> None:
    params = {"w": np.ones((3, 2)), "b": np.ones(2)}
    opt.apply(params, params, opt.init(params))


def refuses(opt: Any) -> None:
    with pytest.raises(ox.ShapeError):
        opt.update({"w": np.ones((3, 2)), "b": np.ones(2)}, {"w": np.ones((2, 2)), "b": np.ones(2)})


def matrix(make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: optim.partition({"w": make(), "*": optim.SGD(0.1)})


MADE: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    **{
        name: (made if name != "Muon" else matrix(made), step_of)
        for name, made in vars(optim).items()
        if isinstance(made, type) and issubclass(made, optim.RuleOptimizer) and made._declared and name != "LBFGS"
    },
    "LBFGS": (optim.LBFGS, search_with),
    "SAM": (lambda: optim.SAM(optim.Adam()), search_with),
    "groups": (lambda: optim.Adam(groups={"b": {"learning_rate": schedules.constant(0.1)}}), step_of),
    "frozen": (lambda: optim.Adam(groups={"b": None}), step_of),
    "partition": (lambda: optim.partition({"b": optim.SGD(0.1), "*": optim.Adam()}, accumulate=2), step_of),
    "chain": (
        lambda: optim.chain(optim.ClipByValue(), optim.GradientNoise(), optim.Adam(), optim.Lookahead()),
        step_of,
    ),
    "loss scale": (lambda: optim.Adam(loss_scale=ox.optim.LossScale()), search_with),
    "accumulate": (lambda: optim.RMSprop(centered=True, accumulate=2, nonfinite="skip"), step_of),
    "sparse": (lambda: optim.Adam(sparse="catch_up"), sparse_step_of),
    "quantized": (lambda: optim.SGD(0.1, 0.9, slot_dtype="8bit"), quantized),
    "master": (lambda: optim.Adam(master=True), halves),
    "kahan": (lambda: optim.Adam(rounding="kahan"), halves),
    "schedule": (lambda: optim.Adam(schedules.warmup_cosine(0.1, 3, 20)), step_of),
    "deepcopy": (lambda: copy.deepcopy(optim.Adam()), step_of),
    "deepcopy of groups": (lambda: copy.deepcopy(optim.Adam(groups={"b": {"beta1": 0.5}})), step_of),
    "pickle": (lambda: pickle.loads(pickle.dumps(optim.Adam())), step_of),  # noqa: S301 - our own
    "state_dict": (optim.Adam, loads),
    "averages": (lambda: optim.chain(optim.SGD(0.1), optim.EMA()), swaps),
    "pure": (optim.Adam, is_pure),
    "an error": (optim.Adam, refuses),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_an_optimizer_and_its_slots_die_at_once(name: str) -> None:
    make, use = MADE[name]
    opt = make()
    use(opt)
    refs = [weakref.ref(opt)]
    refs += [weakref.ref(slot) for own in opt.slots.values() for slot in own.values() if isinstance(slot, np.ndarray)]
    del opt
    assert not [ref for ref in refs if ref() is not None]


def test_an_optimizer_inside_does_not_keep_those_around_it() -> None:
    inside = optim.Adam()
    for make in (lambda: optim.partition({"*": inside}), lambda: optim.SAM(inside)):
        outside = make()
        step_of(outside)
        ref = weakref.ref(outside)
        del outside
        assert ref() is None
    assert not len(inside._parameter_groups)


def test_a_copy_is_independent() -> None:
    opt = optim.Adam(0.1, groups={"b": {"beta1": 0.5}}, accumulate=2)
    step_of(opt)
    other = copy.deepcopy(opt)
    del opt
    other.learning_rate = 0.5
    model = {"w": np.zeros((3, 2)), "b": np.zeros(2)}
    other.update(model, {"w": np.ones((3, 2)), "b": np.ones(2)})
    assert (model["w"] < -0.3).all() and (model["b"] < -0.3).all()


def test_programs_are_compiled_once_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    from oxigrad.step.parameters import rule_executors

    calls: list[Any] = []
    own = rule_executors.trace
    monkeypatch.setattr(rule_executors, "trace", lambda *args, **named: calls.append(args) or own(*args, **named))
    made = optim.define(lambda xp, p, g, m, *, learning_rate=0.1, late=False: (p - learning_rate * m, m + g), "Late")
    assert len(calls) <= 2  # for the answer whether it is elementwise, and for the class
    for _ in range(5):
        for options in ({}, {"accumulate": 2}, {"late": True}, {"rounding": "kahan"}):
            opt = made(**options)
            step_of(opt)
            halves(made(**options))
    assert len({id(rule) for rule, *_ in calls}) < len(calls) <= 10  # by rule and flags, not by optimizer


def test_the_caches_of_a_rule_are_bounded() -> None:
    made = optim.define(lambda xp, p, g, *, learning_rate=0.1, mode="a": p - learning_rate * g, "Moded")
    opt = made()
    for number in range(300):
        opt.mode = f"mode {number}"
        opt.update({"w": np.zeros(2)}, {"w": np.ones(2)})
    for remembering in made._rule._remembered.values():
        assert remembering.cache_info().currsize <= 64


# --- classes -------------------------------------------------------------------------------------------------------------


def a_rule() -> type:
    def local(xp: Any, p: Any, g: Any, m: Any, *, learning_rate: float = 0.1) -> Any:
        return p - learning_rate * m, 0.9 * m + g

    made = optim.define(local, "Local")
    opt = made(accumulate=2, master=True, sparse="dense")
    step_of(opt)
    halves(opt := made(master=True))
    sparse_step_of(made(sparse="catch_up"))
    assert type(optim.from_config(opt.get_config())) is made
    return made


def a_transform() -> type:
    made = optim.transform(lambda xp, p, g, kept, *, share=0.5: (share * g, kept + g), "LocalPart")
    step_of(optim.chain(made(), optim.Adam()))
    return made


def the_rule_of_a_chain() -> Any:
    opt = optim.chain(optim.ClipByValue(), optim.Adam(), optim.EMA(), accumulate=2)
    step_of(opt)
    return opt._rule


def a_schedule() -> type:
    @dataclasses.dataclass(frozen=True)
    class local_schedule(schedules.Schedule):
        initial: float

        def at(self, step: Any) -> Any:
            return self.initial

    step_of(optim.Adam(local_schedule(0.1)))
    return local_schedule


def by_fields() -> type:
    @tree.register(fields=("w",))
    class Local:
        def __init__(self, w: Any) -> None:
            self.w = w

    assert len(tree.leaves(Local(np.ones(2)))) == 1
    optim.Adam().update(Local(np.ones(2)), Local(np.ones(2)))
    return Local


def by_functions() -> type:
    class Local:
        def __init__(self, w: Any) -> None:
            self.w = w

    tree.register(Local, flatten=lambda x: ((x.w,), None), unflatten=lambda _, children: Local(*children))
    assert tree.map(lambda w: 2 * w, Local(1.0)).w == 2.0
    return Local


def a_dataclass() -> type:
    @dataclasses.dataclass
    class Local:
        w: Any

    assert ox.grad(lambda model: xp.sum(model.w))(Local(np.ones(2))).w[0] == 1.0
    return Local


def a_named_tuple() -> type:
    local = collections.namedtuple("local", "w")
    assert ox.grad(lambda model: xp.sum(model.w))(local(np.ones(2))).w[0] == 1.0
    return local


def a_subclass_of_arrays() -> type:
    class Local(np.ndarray):
        pass

    array = np.ones(3).view(Local)
    ox.grad(lambda x: xp.sum(xp.sin(x) * xp.cumulative_sum(x)))(array)
    optim.Adam().update({"w": array}, {"w": np.ones(3)})
    from array_api_compat.common import _helpers

    for cached in vars(_helpers).values():  # which remember the last hundred classes
        getattr(cached, "cache_clear", lambda: None)()
    return Local


@pytest.mark.parametrize(
    "make",
    [
        a_rule,
        a_transform,
        the_rule_of_a_chain,
        a_schedule,
        by_fields,
        by_functions,
        a_dataclass,
        a_named_tuple,
        a_subclass_of_arrays,
    ],
)
@pytest.mark.one_in(5)
def test_classes_made_in_functions_are_collected(make: Callable[[], type]) -> None:
    ref = weakref.ref(make())
    gc.collect()
    assert ref() is None


def test_a_registration_is_the_class_s_own() -> None:
    made = by_fields()
    assert pickle.loads(pickle.dumps(vars(made)["__oxigrad_tree__"])) is None  # noqa: S301 - our own
    copied = type("Copied", (), {k: v for k, v in vars(made).items() if k not in ("__dict__", "__weakref__")})
    assert tree.leaves(copied(1.0)) != [1.0]  # another class, which nobody registered
    derived = type("Derived", (made,), {})
    assert tree.leaves(derived(1.0)) == [1.0]


def test_ufuncs_that_numpy_does_not_have_are_not_kept() -> None:
    def use() -> Any:
        def function(x: Any) -> Any:
            return x

        made = np.frompyfunc(function, 1, 1)
        ox.grad(lambda x: xp.sum(x) + np.sum(made(ox.stop_gradient(x))))(np.ones(2))
        with contextlib.suppress(TypeError, ValueError, ox.DerivativeError):
            ox.grad(lambda x: xp.sum(made(x)))(np.ones(2))
        return weakref.ref(function)

    ref = use()
    gc.collect()
    assert ref() is None


# --- over many calls -----------------------------------------------------------------------------------------------------

GROWTH = """
import gc, sys, tracemalloc
import numpy as np
sys.path.insert(0, sys.argv[1])
import test_leaks
uses = [lambda use=use: use(np.linspace(0.1, 1.0, 12)) for use in test_leaks.TRANSFORMS.values() if use is not test_leaks.in_threads]
uses += [lambda make=make, use=use: use(make()) for make, use in test_leaks.MADE.values()]
uses += [test_leaks.a_rule, test_leaks.a_transform, test_leaks.by_fields, test_leaks.by_functions]
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
def rounds(count):
    for _ in range(count):
        for use in uses:
            use()
    gc.collect()
rounds(6)
before = resident()
tracemalloc.start()
rounds(1)
traced = tracemalloc.get_traced_memory()[0]
rounds(4)
traced = tracemalloc.get_traced_memory()[0] - traced
tracemalloc.stop()
rounds(10)
print(resident() - before, traced, len(uses))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.slow
def test_nothing_grows_with_the_number_of_calls() -> None:
    command = [sys.executable, "-c", GROWTH, str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    resident, traced, count = map(int, done.stdout.split())
    assert traced < 4 * count * 100  # four rounds: 100 bytes a use would be as much
    assert resident < 4 << 20


THOUSAND = """
import gc, sys, tracemalloc
import numpy as np
import oxigrad as ox
from oxigrad import optim
def one(number):
    opt = optim.chain(optim.ClipByValue(), optim.SGD(0.1, 0.9), optim.EMA())
    opt.update({"w": np.ones(2)}, {"w": np.ones(2)})
    made = optim.define(lambda xp, p, g, m, *, learning_rate=0.1: (p - learning_rate * m, m + g), f"Local{number}")
    made(accumulate=2).update({"w": np.ones(2)}, {"w": np.ones(2)})
for number in range(50):
    one(number)
gc.collect()
tracemalloc.start()
for number in range(100, 600):
    one(number)
gc.collect()
print(tracemalloc.get_traced_memory()[0], len(list(ox.optim.settings.config.REGISTRY)))
"""


@pytest.mark.slow
def test_a_thousand_optimizers_leave_nothing_behind() -> None:
    done = subprocess.run([sys.executable, "-c", THOUSAND], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    traced, registered = map(int, done.stdout.split())
    assert traced < 50_000 and registered < 100


def test_of_classes_of_one_name_the_last_that_lives_is_known() -> None:
    def twice_named(xp: Any, p: Any, g: Any, *, rate: float = 0.5) -> Any:
        return p - rate * g

    first = optim.define(twice_named)
    second = optim.define(twice_named)
    config = first().get_config()
    assert type(optim.from_config(config)) is second
    del second
    gc.collect()
    assert type(optim.from_config(config)) is first
    del first
    gc.collect()
    with pytest.raises(ValueError, match="optimizer is 'TwiceNamed'"):
        optim.from_config(config)
