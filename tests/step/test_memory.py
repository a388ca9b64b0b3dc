"""Slots, parameters and gradients whose memory is moved, resized or made read-only between steps; and what the core is not asked for."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import _core, optim

SIZE = 3


def began(make: Callable[[Any], Any] = np.asarray, **options: Any) -> tuple[Any, Any, Any]:
    """An optimizer after two steps, its model and gradients."""
    opt = optim.Adam(0.1, **options)
    model, grads = ({name: make(np.full(SIZE, value)) for name in ("w", "b")} for value in (1.0, 0.5))
    for _ in range(2):
        opt.update(model, grads)
    return opt, model, grads


def snapshot(opt: Any, model: Any) -> Any:
    slots = {path: {name: np.asarray(slot).copy() for name, slot in own.items()} for path, own in opt.slots.items()}
    return {name: np.asarray(array).copy() for name, array in model.items()}, slots, opt.step


def resized(array: np.ndarray, *shape: int) -> None:
    array.resize(shape, refcheck=False)


def reset(array: np.ndarray, shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype=array.dtype)
    array.__setstate__((1, shape, array.dtype, False, values.tobytes()))


MOVES: dict[str, tuple[Callable[[np.ndarray], Any], type[Exception] | None]] = {
    "larger": (lambda array: resized(array, 2**20), ox.ShapeError),
    "smaller": (lambda array: resized(array, 1), ox.ShapeError),
    "larger and back": (lambda array: (resized(array, 2**20), resized(array, SIZE)), None),
    "state": (lambda array: reset(array, (SIZE,)), None),
    "state of another shape": (lambda array: reset(array, (2**20,)), ox.ShapeError),
    "read-only": (lambda array: array.setflags(write=False), ox.ArrayMemoryError),
    "shape": (lambda array: setattr(array, "shape", (SIZE, 1)), ox.ShapeError),
    "dtype": (lambda array: setattr(array, "dtype", np.int64), ox.DtypeError),
    "smaller dtype": (lambda array: setattr(array, "dtype", np.float32), ox.ShapeError),
    "strides": (lambda array: setattr(array, "strides", (0,)), ox.AliasError),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("slot", ["m", "v"])
def test_a_moved_numpy_slot_is_updated_in_its_new_memory_or_refused(name: str, slot: str) -> None:
    change, error = MOVES[name]
    opt, model, grads = began()
    change(opt.slots["b"][slot])
    before = snapshot(opt, model)
    if error:
        with pytest.raises(error, match=rf"^b: (the )?slot {slot}"):
            opt.update(model, grads)
        np.testing.assert_equal(snapshot(opt, model), before)
        opt.load_state_dict(began()[0].state_dict(), strict=False)
        return
    reference = optim.Adam(0.1)
    own = {name: array.copy() for name, array in model.items()}
    reference.update(own, grads)
    reference.load_state_dict(opt.state_dict())
    own = {name: array.copy() for name, array in model.items()}
    opt.update(model, grads)
    reference.update(own, grads)
    np.testing.assert_equal(snapshot(opt, model), snapshot(reference, own))


def test_a_slot_that_has_moved_onto_a_parameter_is_refused() -> None:
    torch = pytest.importorskip("torch")
    opt, model, grads = began(lambda array: torch.tensor(array))
    opt.slots["w"]["m"].set_(model["b"])
    with pytest.raises(ox.AliasError, match="a slot of w"):
        opt.update(model, grads)
    assert opt.step == 2


TORCH_MOVES: dict[str, tuple[Callable[[ModuleType, Any], Any], type[Exception] | None]] = {
    "data": (lambda torch, t: setattr(t, "data", torch.full((SIZE,), 0.25, dtype=t.dtype)), None),
    "set_": (lambda torch, t: t.set_(torch.full((SIZE,), 0.25, dtype=t.dtype)), None),
    "data of another shape": (lambda torch, t: setattr(t, "data", torch.zeros(2**20, dtype=t.dtype)), ox.ShapeError),
    "data of another dtype": (
        lambda torch, t: setattr(t, "data", torch.zeros(SIZE, dtype=torch.float16)),
        ox.DtypeError,
    ),
    "resize_": (lambda torch, t: t.resize_(2**20), ox.ShapeError),
    "resize_ and back": (lambda torch, t: (t.resize_(2**20).zero_(), t.resize_(SIZE)), None),
    "strided": (lambda torch, t: setattr(t, "data", torch.zeros(2 * SIZE, dtype=t.dtype)[::2]), None),
    "expanded": (lambda torch, t: setattr(t, "data", torch.zeros(1, dtype=t.dtype).expand(SIZE)), ox.AliasError),
}


@pytest.mark.parametrize("name", TORCH_MOVES)
@pytest.mark.parametrize("slot", ["m", "v"])
def test_a_moved_torch_slot_is_updated_in_its_new_memory_or_refused(name: str, slot: str) -> None:
    torch = pytest.importorskip("torch")
    change, error = TORCH_MOVES[name]
    opt, model, grads = began(lambda array: torch.tensor(array))
    change(torch, opt.slots["b"][slot])
    before = snapshot(opt, model)
    if error:
        with pytest.raises(error, match=rf"^b: (the )?slot {slot}"):
            opt.update(model, grads)
        np.testing.assert_equal(snapshot(opt, model), before)
        return
    reference, own = optim.Adam(0.1), {name: array.clone() for name, array in model.items()}
    reference.update({name: array.clone() for name, array in model.items()}, grads)
    reference.load_state_dict(opt.state_dict())
    opt.update(model, grads)
    reference.update(own, grads)
    np.testing.assert_equal(snapshot(opt, model), snapshot(reference, own))


# Slots of other kinds: an optimizer whose first parameter, of 4096 elements, has a slot of this name.
KINDS: dict[str, tuple[Callable[[], Any], str, Any]] = {
    "a number": (lambda: optim.NAdam(0.1), "mu_product", np.float64),
    "master weights": (lambda: optim.SGD(0.1, master=True), "master-weights", np.float16),
    "compensation": (lambda: optim.SGD(0.1, rounding="kahan"), "kahan-compensation", np.float16),
    "an average": (lambda: optim.chain(optim.SGD(0.1), optim.EMA(0.9)), "average", np.float64),
    "a copy": (lambda: optim.chain(optim.SGD(0.1), optim.Copy("float16")), "parameter-copy", np.float64),
}


@pytest.mark.parametrize("kind", KINDS)
def test_slots_of_each_kind_are_looked_at_again(kind: str) -> None:
    make, slot, dtype = KINDS[kind]
    opt, model = make(), {"w": np.ones(4096, dtype)}
    grads = {"w": np.full(4096, 0.5, dtype)}
    opt.update(model, grads)
    names = list(opt.slots["w"])
    slot = slot if slot in names else next(name for name in names if opt.slots["w"][name].shape == ())
    resized(opt.slots["w"][slot], 2**20)
    before = snapshot(opt, model)
    with pytest.raises(ox.ShapeError, match=f"^w: (the )?slot {slot}"):
        opt.update(model, grads)
    np.testing.assert_equal(snapshot(opt, model), before)


@pytest.mark.parametrize("part", ["codes", "scales"])
def test_codes_and_scales_are_looked_at_again(part: str) -> None:
    opt, model = optim.Adam(0.1, slot_dtype="8bit"), {"w": np.ones(4096)}
    opt.update(model, {"w": np.ones(4096)})
    resized(getattr(opt.slots["w"]["m"], part), 2**20)
    with pytest.raises(ox.ShapeError, match="^w: (the )?slot m"):
        opt.update(model, {"w": np.ones(4096)})
    assert opt.step == 1


def test_parameters_and_gradients_that_move_between_steps() -> None:
    for which in (0, 1):
        opt, model, grads = began()
        moved = (model, grads)[which]["b"]
        resized(moved, 2**20)
        with pytest.raises(ox.ShapeError, match="^b: "):
            opt.update(model, grads)
        resized(moved, SIZE)
        opt.update(model, grads)
        assert opt.step == 3


@pytest.mark.parametrize("rounds", [20])
def test_slots_that_move_in_every_step_in_a_process_of_its_own(rounds: int) -> None:
    """Memory that was freed and reused, which crashed the process."""
    pytest.importorskip("torch")
    source = f"""if True:
        import gc, numpy as np, torch, oxigrad as ox
        from oxigrad import optim
        for make in (lambda n: np.ones(n), lambda n: torch.ones(n)):
            opt = optim.Adam(0.1)
            model, grads = {{"w": make(1 << 20)}}, {{"w": make(1 << 20)}}
            opt.update(model, grads)
            for k in range({rounds}):
                m, v = opt.slots["w"].values()
                if isinstance(m, np.ndarray):
                    m.resize(1, refcheck=False), v.__setstate__((1, (1 << 20,), v.dtype, False, bytes(8 << 20)))
                else:
                    m.resize_(0), m.untyped_storage().resize_(0), v.set_(torch.zeros(1 << 20))
                gc.collect()
                try:
                    opt.update(model, grads)
                except ox.ShapeError:
                    m.resize(1 << 20, refcheck=False) if isinstance(m, np.ndarray) else m.resize_(1 << 20)
                    m[...] = 0.0
                    opt.update(model, grads)
            assert opt.step == {rounds} + 1
        print("done")
    """
    ran = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=600, check=False)
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr[-2000:]


# --- assigned ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["numpy", "torch", "jax.numpy"])
def test_an_array_assigned_to_a_slot_is_used_by_the_next_step(library: str) -> None:
    module = pytest.importorskip(library)
    opt, model, grads = began(module.asarray)
    given = module.asarray(np.full(SIZE, 0.25, np.asarray(opt.slots["w"]["m"]).dtype))
    opt.slots["w"]["m"] = given
    np.testing.assert_array_equal(np.asarray(opt.slots["w"]["m"]), 0.25)
    opt.update(model, grads)
    np.testing.assert_allclose(np.asarray(opt.slots["w"]["m"]), 0.9 * 0.25 + 0.1 * 0.5, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(given), 0.25)
    np.testing.assert_array_equal(opt.state_dict()["slots"]["w"]["m"], opt.slots["w"]["m"])


def test_a_mismatched_array_is_not_assigned() -> None:
    opt, model, grads = began()
    before, own = snapshot(opt, model), opt.slots["w"]
    with pytest.raises(ox.ShapeError, match=r"^w: the slot m has shape \(3,\): found \(4,\)"):
        own["m"] = np.zeros(4)
    with pytest.raises(ox.DtypeError, match="^w: the slot m has dtype float64: found float32"):
        own.update(m=np.zeros(3, np.float32))
    with pytest.raises(ox.DtypeError, match="^w: the slot m has dtype float64: found float"):
        own["m"] = 1.0
    with pytest.raises(KeyError, match="w: there is no slot n; there are m, v"):
        own["n"] = np.zeros(3)
    for remove in (own.clear, own.popitem, lambda: own.pop("m"), lambda: own.__delitem__("m")):
        with pytest.raises(TypeError, match="^w: slots can be replaced"):
            remove()
    np.testing.assert_equal(snapshot(opt, model), before)
    opt.update(model, grads)
    assert type(own | {}) is dict and type(ox.tree.map(np.copy, own)) is dict


# --- counts ------------------------------------------------------------------------------------------------------------


def test_the_last_step_that_can_be_counted() -> None:
    opt, model, grads = began()
    opt.load_state_dict({**opt.state_dict(), "step": 2**63 - 2})
    opt.update(model, grads)
    assert opt.step == 2**63 - 1
    opt.load_state_dict(opt.state_dict())
    before = snapshot(opt, model)
    with pytest.raises(ox.StateError, match="9223372036854775807 steps have been taken"):
        opt.update(model, grads)
    np.testing.assert_equal(snapshot(opt, model), before)
    with pytest.raises(ox.StateError, match="9223372036854775807 steps have been taken"):
        opt.apply(model, grads, {**opt.init(model), "step": 2**63 - 1})
    opt = optim.Adam(0.1, nonfinite="skip")
    opt.build(model)
    opt.load_state_dict({**opt.state_dict(), "skipped": 2**63 - 1})
    with pytest.raises(ox.StateError, match="steps have been skipped"):
        opt.update(model, {name: np.full(SIZE, np.nan) for name in model})
    opt.load_state_dict(opt.state_dict())


# --- the private parts -------------------------------------------------------------------------------------------------


def test_the_stepper_of_the_core_validates_numbers() -> None:
    def program(written: list[int]) -> Any:
        tape = _core.symbols()
        g, p, rate = tape.leaf(), tape.leaf(), tape.scalar()
        return tape.compile([p - rate * g] * len(written), written, [], None)

    def step(number: int, chosen: int, sets: list[list[float]], written: list[int], count: int = 1) -> Any:
        stepper, p, g = _core.Stepper(), np.zeros(SIZE), np.ones(SIZE)
        fields = {"path": "w", "position": 0, "slots": [], "numbers": [], "catches_up": False, "stochastic": False}
        stepper.prepare([_core.HostParameter(array=p, program=number, scalar_set=chosen, **fields)])
        return stepper.step(None, (p,) * count, (g,) * count, programs=[(program(written), sets)], seed=0)

    step(0, 0, [[0.1]], [1])
    for bad in [(2**63, 0, [[0.1]], [1]), (0, 9, [[0.1]], [1]), (0, 0, [], [1]), (0, 0, [[]], [1])]:
        with pytest.raises((ox.StructureError, ox.ShapeError), match="^w: the program"):
            step(*bad)
    step(0, 0, [[0.1]], [0])
    for written in ([2], [2**60], [1, 1]):
        with pytest.raises((ox.StructureError, ox.AliasError, ox.ShapeError)):
            step(0, 0, [[0.1]], written)
    for count in (0, 2):
        with pytest.raises(ox.StructureError, match="expected 1, the number that was prepared"):
            step(0, 0, [[0.1]], [1], count)
    stepper = _core.Stepper()
    for name in ("count", "micro"):
        with pytest.raises(ox.StateError, match="expected at most 9223372036854775807"):
            setattr(stepper, name, 2**63)
        with pytest.raises(OverflowError):
            setattr(stepper, name, 2**64)
    stepper.count = 2**63 - 1
    with pytest.raises(ox.StateError, match="steps have been taken"):
        stepper.step(None, (), (), programs=[], seed=0)


def test_a_step_of_the_core_answers_arrays_that_do_not_fit() -> None:
    """The answer has the reason as an error, and nothing is written or counted; an interrupt is raised."""
    tape = _core.symbols()
    gradient, parameter, rate = tape.leaf(), tape.leaf(), tape.scalar()
    programs = [(tape.compile([parameter - rate * gradient], [1], [], None), [[0.5]])]
    p, g, fixed = np.zeros(SIZE), np.ones(SIZE), np.zeros(SIZE)
    fixed.flags.writeable = False
    stepper = _core.Stepper()
    fields = {"path": "w", "position": 0, "slots": [], "numbers": [], "catches_up": False, "stochastic": False}
    stepper.prepare([_core.HostParameter(array=p, program=0, scalar_set=0, **fields)])

    def step(written: Any, read: Any) -> Any:
        return stepper.step(True, (written,), (read,), programs=programs, seed=0)

    class Interrupting:
        shape, dtype = (SIZE,), np.dtype(np.float64)

        def __dlpack_device__(self) -> None:
            raise KeyboardInterrupt

        __dlpack__ = __dlpack_device__

    misfits = [
        (fixed, g, ox.ArrayMemoryError),
        (np.zeros(SIZE + 1), g, ox.ShapeError),
        (np.zeros(SIZE, np.float32), g, ox.DtypeError),
        (p, None, ox.StructureError),
        (p, p, ox.AliasError),
    ]
    for written, read, error in misfits:
        answer = step(written, read)
        assert isinstance(answer, _core.Misfit) and type(answer.error) is error and "w" in str(answer.error)
        assert stepper.count == 0 and not written.any()
    with pytest.raises(KeyboardInterrupt):
        step(p, Interrupting())
    assert isinstance(stepper.misfit((fixed,)), _core.Misfit) and stepper.misfit((p,)) is None
    assert step(p, g) is True and stepper.count == 1 and (p == -0.5).all()


def test_the_step_of_the_core_takes_named_fields() -> None:
    """Neither a parameter nor the writes of a step can be given by position."""
    with pytest.raises(TypeError):
        _core.HostParameter("w", 0, np.zeros(1), [], [], False, False, 0, 0)
    with pytest.raises(TypeError):
        _core.Writes([], [], [])
    with pytest.raises(TypeError):
        _core.Stepper().step(None, (), (), [], 0)
    with pytest.raises(TypeError, match="HostParameter"):
        _core.Stepper().prepare([("w", 0, np.zeros(1), [], [], False, False, 0, 0)])


def test_a_panic_is_an_exception() -> None:
    assert issubclass(ox.InternalError, RuntimeError)
    source = """if True:
        from oxigrad import _core
        import oxigrad as ox
        try:
            _core.uniform(0, 0, 0, 0, 2**63)
        except Exception as error:
            print(isinstance(error, (ox.InternalError, MemoryError, ValueError)))
    """
    ran = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=600, check=False)
    assert ran.stdout == "True\n", ran.stderr[-2000:]


# --- arrays that begin where another one did -----------------------------------------------------------------------------

VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "stepped": lambda room: room[: 2 * SIZE * SIZE : 2].reshape(SIZE, SIZE),
    "transposed": lambda room: room[: SIZE * SIZE].reshape(SIZE, SIZE).T,
    "broadcast": lambda room: np.lib.stride_tricks.as_strided(room, (SIZE, SIZE), (0, 0)),
    "contiguous": lambda room: room[: SIZE * SIZE].reshape(SIZE, SIZE),
}


@pytest.mark.parametrize("second", VIEWS)
@pytest.mark.parametrize("first", VIEWS)
@pytest.mark.parametrize("which", ["gradient", "parameter"])
def test_an_array_that_begins_where_one_of_other_strides_did(which: str, first: str, second: str) -> None:
    """The allocator gives freed memory to the next array: a buffer is known by its strides too, not by its address alone."""
    if which == "parameter" and "broadcast" in (first, second):
        pytest.skip("a parameter that overlaps itself is refused")
    opt, room = optim.SGD(1.0), np.arange(4.0 * SIZE * SIZE)
    for view in (VIEWS[first](room), VIEWS[second](room)):
        own, other = view.copy(), np.full((SIZE, SIZE), 2.0)
        p, g = (view, other) if which == "parameter" else (other, view)
        expected, outside = p.copy() - g, room.copy()
        opt.update({"w": p}, {"w": g})
        np.testing.assert_array_equal(p, expected)
        view[...] = own
        np.testing.assert_array_equal(room, outside)


# --- slots of rules that are called ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [optim.SM3, lambda: optim.chain(optim.Centralize(), optim.Adam())])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_slots_of_a_called_rule_that_have_another_shape_or_dtype(make: Callable[[], Any]) -> None:
    opt, model, grads = make(), {"w": np.ones((2, 3))}, {"w": np.ones((2, 3))}
    opt.update(model, grads)
    name, slot = next((name, slot) for name, slot in opt.slots["w"].items() if slot.ndim)
    held = slot.copy()
    for change, error in (
        (lambda: resized(slot, 2**20), ox.ShapeError),
        (lambda: setattr(slot, "dtype", np.int64), ox.DtypeError),
    ):
        change()
        before = snapshot(opt, model)
        with pytest.raises(error, match=f"^w: the slot {name} has "):
            opt.update(model, grads)
        np.testing.assert_equal(snapshot(opt, model), before)
        slot.dtype = held.dtype
        resized(slot, *held.shape)
        slot[...] = held
    opt.update(model, grads)
    assert opt.step == 2


def test_a_slot_of_an_empty_parameter_that_has_another_shape() -> None:
    opt, model = optim.Adam(), {"w": np.ones((2, 0))}
    opt.update(model, {"w": np.ones((2, 0))})
    resized(opt.slots["w"]["v"], 2**15)
    model["w"].setflags(write=False)
    with pytest.raises(ox.ShapeError, match="^w: the .*slot v"):
        opt.update(model, {"w": np.ones((2, 0))})
    assert opt.step == 1


def test_a_slot_that_has_moved_before_a_step_that_is_refused_for_another() -> None:
    """The step after that writes where the slot lies, not where it lay: that memory may be freed."""
    opt, model, grads = began()
    reference, own = optim.Adam(0.1), {name: array.copy() for name, array in model.items()}
    reference.build(own)
    reference.load_state_dict(opt.state_dict())
    moved, locked = opt.slots["w"]["m"], opt.slots["b"]["v"]
    values = moved.copy()
    resized(moved, 2**20)
    taken = [np.full(SIZE, 9.0) for _ in range(1000)]  # where it lay
    resized(moved, SIZE)
    moved[...] = values
    locked.setflags(write=False)
    with pytest.raises(ox.ArrayMemoryError, match="^b: "):
        opt.update(model, grads)
    locked.setflags(write=True)
    opt.update(model, grads)
    reference.update(own, grads)
    np.testing.assert_equal(snapshot(opt, model), snapshot(reference, own))
    np.testing.assert_array_equal(taken, 9.0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("optimizer", [lambda: optim.SGD(0.1), lambda: optim.Adam(0.1), lambda: optim.Muon(0.1)])
def test_unpickled_arrays_are_numpy_s(dtype: Any, optimizer: Any) -> None:
    """Their dtype is an object of its own, equal to NumPy's."""
    opt, model, grads = optimizer(), {"w": np.ones((2, 3), dtype)}, {"w": np.full((2, 3), 0.5, dtype)}
    opt.update(model, grads)
    other, copied, given = pickle.loads(pickle.dumps((opt, model, grads)))  # noqa: S301 - made here
    assert copied["w"].dtype is not model["w"].dtype
    for _ in range(2):
        array = copied["w"]
        opt.update(model, grads)
        assert other.update(copied, given)["w"] is array
        np.testing.assert_array_equal(copied["w"], model["w"])
