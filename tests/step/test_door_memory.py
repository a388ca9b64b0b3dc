"""Memory of parameters, gradients and state through every way to a step: shared, moved, shrunk, lazy, read-only and of another byte order."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from doors import CALLED, DOORS, KERNEL, LAZY, OPTIMIZERS, SWAPS, Apply, CompiledPytrees, Door, Tensors, Update, drawn
from oxigrad import optim


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_parameter_that_moves_is_updated_where_it_lies(name: str, door: Any) -> None:
    one, reference = door(name), Update(name, OPTIMIZERS[name], drawn(0))
    for seed in (1, 2, 3):
        one.step(drawn(seed))
        reference.step(drawn(seed))
        one.move()
    for path, expected in reference.parameters().items():
        np.testing.assert_allclose(one.parameters()[path], expected, rtol=1e-4, atol=1e-5, err_msg=path)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("steps", [0, 2])
def test_parameters_that_overlap_are_refused_and_nothing_changes(name: str, steps: int, door: Any) -> None:
    one = door(name)
    for seed in range(steps):
        one.step(drawn(seed + 1))
    one.overlap()
    before = {path: np.array(value) for path, value in one.parameters().items()}
    with pytest.raises((ox.AliasError, ox.ArrayMemoryError)):
        one.step(drawn(5))
    for path, value in before.items():
        np.testing.assert_array_equal(one.parameters()[path], value)


@pytest.mark.parametrize("which", ["parameter", "slot"])
@pytest.mark.parametrize("name", ["AdamW", "LAMB", "Adafactor", "Shampoo", "SOAP", "SM3", "GaLore", "SparseAdam"])
def test_a_tensor_whose_elements_share_memory_is_refused_by_name_and_nothing_changes(name: str, which: str) -> None:
    torch, module = pytest.importorskip("torch"), importlib.import_module("oxigrad.torch")
    first, second = (torch.nn.Parameter(torch.ones(4, 4)) for _ in range(2))
    opt = getattr(module, name)([first, second])

    def gradients() -> None:
        for p in (first, second):
            whole = torch.arange(16.0).reshape(4, 4)
            p.grad = whole.to_sparse(1) if name == "SparseAdam" else whole

    gradients()
    opt.step()
    slots = [key for key, slot in opt.state[second].items() if torch.is_tensor(slot) and slot.numel() > 1]
    for key in slots if which == "slot" else [""]:
        original = opt.state[second].get(key, second.data)
        repeated = torch.as_strided(original.clone(), original.shape, [0] * original.ndim)
        if which == "slot":
            opt.state[second][key] = repeated
        else:
            second.data = repeated
        gradients()
        before = [p.detach().clone() for p in (first, second)]
        with pytest.raises(ox.AliasError, match=rf"{Tensors.b}.* overlaps itself: expected an array whose elements"):
            opt.step()
        assert all(torch.equal(p, old) for p, old in zip((first, second), before, strict=True)), key
        if which == "slot":
            opt.state[second][key] = original


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("steps", [0, 2])
def test_a_gradient_in_the_memory_of_its_parameter_is_refused(name: str, steps: int, door: Any) -> None:
    one = door(name)
    for seed in range(steps):
        one.step(drawn(seed + 1))
    before = {path: np.array(value) for path, value in one.parameters().items()}
    with pytest.raises(ox.AliasError):
        one.step({**drawn(5), "b": one.of_own_memory()})
    for path, value in before.items():
        np.testing.assert_array_equal(one.parameters()[path], value)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_gradients_of_every_layout_are_read(name: str, door: Any) -> None:
    """Every second element of an array, transposed and broadcast ones."""
    one, reference = door(name), Update(name, OPTIMIZERS[name], drawn(0))
    layouts = [
        lambda g: {**g, "b": np.repeat(g["b"], 2, axis=1)[:, ::2]},
        lambda g: {**g, "b": np.ascontiguousarray(g["b"].T).T},
        lambda g: {**g, "b": np.broadcast_to(np.float32(0.5), (2, 4))},
    ]
    for seed, layout in enumerate(layouts, 1):
        given = layout(drawn(seed))
        one.step(given)
        reference.step({path: np.array(g) for path, g in given.items()})
    for path, expected in reference.parameters().items():
        np.testing.assert_allclose(one.parameters()[path], expected, rtol=1e-4, atol=1e-5, err_msg=path)


# --- other memory, or less of it ---------------------------------------------------------------------------------------------


def check_shrunk(one: Door, which: str, steps: int, left: int) -> None:
    """Leaves some bytes of the memory of an array of "b" after some steps; the next one is refused, and changes nothing.

    A gradient is the array of the steps before, or another one, while that of before is alive.
    """
    grads: dict[str, Any] = drawn(5)
    grads["b"] = of_before = one.array(grads["b"])
    for _ in range(steps):
        one.step(grads)
    if which == "slot" and not one.raw_slots("b"):
        pytest.skip("there are no slots before the first step")
    if which == "new gradient":
        grads["b"] = one.array(of_before)
    arrays = {"parameter": lambda: one.raw("b"), "slot": lambda: one.raw_slots("b")[one.array_slot()]}
    one.shrink(arrays.get(which, lambda: grads["b"])(), left)
    before = one.held(without="b")
    # Under jit, JAX refuses deleted arrays by a message of its own.
    error, message = (
        (RuntimeError, "deleted") if isinstance(one, CompiledPytrees) else ((ox.ArrayMemoryError, ox.ShapeError), one.b)
    )
    with pytest.raises(error, match=message):
        one.step(grads)
    assert one.held(without="b") == before


@pytest.mark.parametrize("left", [0, 4])
@pytest.mark.parametrize("which", ["parameter", "gradient", "new gradient", "slot"])
@pytest.mark.parametrize("steps", [0, 1, 2])
@pytest.mark.parametrize("name", [KERNEL, CALLED])
def test_memory_that_was_shrunk_is_refused_and_nothing_changes(
    name: str, steps: int, which: str, left: int, door: Any
) -> None:
    check_shrunk(door(name), which, steps, left)


@pytest.mark.parametrize("which", ["parameter", "gradient", "new gradient", "slot"])
@pytest.mark.parametrize("kind", ["update-torch", "torch"])
def test_memory_of_a_rule_on_arrays_that_was_shrunk_is_refused_and_nothing_changes(kind: str, which: str) -> None:
    made, module = DOORS[kind]
    pytest.importorskip(module)
    check_shrunk(made("Adafactor", {}, drawn(0)), which, steps=2, left=4)


@pytest.mark.parametrize("which", ["parameter", "gradient", "slot"])
@pytest.mark.parametrize(("size", "others"), [(2**7, 1), (2**10, 1), (2**10, 2**21), (2**15, 1)])
@pytest.mark.parametrize("kind", ["update-torch", "torch"])
def test_a_tensor_whose_storage_comes_back_smaller_at_its_address_is_refused(
    kind: str, size: int, others: int, which: str
) -> None:
    """Of any size, and beside ``others`` too, of which a step keeps the memory where they are many."""
    made, module = DOORS[kind]
    pytest.importorskip(module)
    values = {"a": np.ones(others, np.float32), "b": np.ones(size, np.float32)}
    one: Any = made(KERNEL, OPTIMIZERS[KERNEL], values)
    grads = {path: one.array(value) for path, value in values.items()}
    for _ in range(3):
        one.step(grads)
    tensors = {"parameter": one.raw("b"), "gradient": grads["b"], "slot": one.raw_slots("b")[one.array_slot()]}
    shrink_in_place(tensors[which])
    kept = {path: tensor.detach()[: size // 4] for path, tensor in tensors.items()}
    before = {path: tensor.clone() for path, tensor in kept.items()}
    with pytest.raises(ox.ArrayMemoryError, match=f"^{one.b}: .*shrunk"):
        one.step(grads)
    assert all((kept[path] == before[path]).all() for path in tensors)


def shrink_in_place(tensor: Any) -> None:
    """Replaces the storage of a tensor by a smaller one at the same address, as the allocator gives it."""
    torch = importlib.import_module("torch")
    address, storage, others = tensor.data_ptr(), tensor.untyped_storage(), []
    size = storage.nbytes()
    for left in [*range(size - 16, size - 256, -16)] * 8:
        storage.resize_(2 * size)
        storage.resize_(left)
        if tensor.data_ptr() == address:
            return
        storage.resize_(2 * size)
        other = torch.empty(left, dtype=torch.uint8)  # in the memory that the allocator prefers
        others += [other] if other.data_ptr() != address else []
    pytest.skip("the allocator does not give the same address again")


def test_storages_are_asked_for_by_python_where_pytorch_has_no_functions_for_it() -> None:
    pytest.importorskip("torch")
    source = """if True:
        import ctypes, torch
        def refuse(*_): raise OSError("no such library")
        ctypes.CDLL = refuse
        import oxigrad as ox, oxigrad.torch as ours
        model, grads = {"w": torch.zeros(8)}, {"w": torch.ones(8)}
        p = torch.nn.Parameter(torch.zeros(8))
        p.grad = torch.ones(8)
        doors = [(ox.optim.SGD(1.0, 0.5), model["w"], lambda opt: opt.update(model, grads)), (ours.SGD([p], 1.0, 0.5), p, lambda opt: opt.step())]
        for opt, array, step in doors:
            for expected in (-1.0, -2.5, -4.25, -6.125):
                step(opt)
                assert (array == expected).all(), array
            array.untyped_storage().resize_(8)
            try:
                step(opt)
            except ox.ArrayMemoryError as error:
                print("shrunk" in str(error))
    """
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout == "True\nTrue\n", done.stderr[-2000:]


@pytest.mark.parametrize("part", ["indices", "values"])
@pytest.mark.parametrize("sparse", ["dense", "lazy", "catch_up"])
@pytest.mark.parametrize("kind", ["update", "apply"])
def test_rows_whose_memory_was_shrunk_are_refused_and_nothing_changes(kind: str, sparse: str, part: str) -> None:
    torch = pytest.importorskip("torch")
    opt, model = optim.RMSprop(0.1, sparse=sparse), {path: torch.ones(8, 1) for path in "ab"}
    state = opt.init(model)

    def step(grads: Any) -> None:
        nonlocal model, state
        if kind == "update":
            opt.update(model, grads)
        else:
            model, state = opt.apply(model, grads, state)

    def rows() -> Any:
        return ox.SparseRows(torch.arange(8), torch.full((8, 1), 0.5), (8, 1))

    for _ in range(2):
        step({"a": rows(), "b": rows()})
    grads = {"a": rows(), "b": rows()}
    getattr(grads["b"], part).untyped_storage().resize_(8)
    before = {path: array.clone() for path, array in model.items()}
    with pytest.raises(ox.ArrayMemoryError, match="^b: the gradient is a tensor whose storage was shrunk"):
        step(grads)
    assert all(torch.equal(before[path], array) for path, array in model.items())


def test_indices_of_rows_that_cannot_be_read_are_refused() -> None:
    torch = pytest.importorskip("torch")
    indices = torch.arange(8)
    indices.untyped_storage().resize_(8)
    with pytest.raises(ox.ArrayMemoryError, match="^SparseRows: the indices are a tensor whose storage was shrunk"):
        ox.SparseRows(indices, torch.ones(8, 1), (8, 1))


@pytest.mark.parametrize("part", ["indices", "values"])
def test_sparse_gradients_whose_memory_was_shrunk_are_refused_and_nothing_changes(part: str) -> None:
    torch = pytest.importorskip("torch")
    module = importlib.import_module("oxigrad.torch")
    params = [torch.nn.Parameter(torch.ones(8, 1)) for _ in range(2)]
    opt = module.SparseAdam(params, lr=0.1)
    for step in range(3):
        for p in params:
            parts = torch.arange(8)[None], torch.full((8, 1), 0.5)
            p.grad = torch.sparse_coo_tensor(*parts, (8, 1), check_invariants=True).coalesce()
        if step == 2:
            getattr(params[1].grad, part)().untyped_storage().resize_(8)
            before = [p.detach().clone() for p in params]
            with pytest.raises(ox.ArrayMemoryError, match=rf"^{Tensors.b}: the gradient is a tensor whose storage was"):
                opt.step()
            assert all(torch.equal(p, old) for p, old in zip(params, before, strict=True))
        else:
            opt.step()


@pytest.mark.parametrize("options", [{}, {"max_norm": 1.0}])
def test_a_gradient_that_was_shrunk_in_the_backward_is_refused(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    p = torch.nn.Parameter(torch.ones(8))
    opt = importlib.import_module("oxigrad.torch").AdamW([p], lr=0.1, in_backward=True, **options)

    def shrunk(gradient: Any) -> Any:
        gradient = gradient.clone()
        gradient.untyped_storage().resize_(4)
        return gradient

    def step() -> None:
        (p * 2).sum().backward()
        opt.step()

    for _ in range(2):
        step()
    before = p.detach().clone()
    p.register_hook(shrunk)
    with pytest.raises(
        ox.ArrayMemoryError, match=r"^param_groups\[0\]\['params'\]\[0\]: the gradient is a tensor whose"
    ):
        step()
    assert torch.equal(p, before)


@pytest.mark.parametrize("how", SWAPS)
@pytest.mark.parametrize("which", ["parameter", "slot", "both"])
@pytest.mark.parametrize("name", ["SGD", KERNEL, CALLED])
def test_memory_that_was_swapped_is_taken_where_it_lies(name: str, which: str, how: str, door: Any) -> None:
    one: Door = door(name)
    reference: Door = door(name)
    for seed in range(1, 5):
        if seed in (2, 4):
            slot, wanted = one.array_slot(), np.array(reference.slots_of("b")[one.array_slot()]) * 3
            if which != "parameter":
                one.swap(one.raw_slots("b")[slot], how)
                reference.set_slot("b", slot, wanted)
            if which != "slot":
                one.swap(one.raw("b"), how)
                reference.parameter("b")[...] *= 3
        one.step(drawn(seed))
        reference.step(drawn(seed))
    assert one.held() == reference.held()


@pytest.mark.parametrize("how", SWAPS)
def test_a_number_of_steps_whose_memory_was_swapped_is_read(how: str) -> None:
    torch = pytest.importorskip("torch")
    one, reference = (Tensors(KERNEL, OPTIMIZERS[KERNEL], drawn(0)) for _ in range(2))
    for seed in (1, 2, 3):
        for path in one.parameters() if seed == 3 else ():
            step, other = (each._opt.state[each._params[path]]["step"] for each in (one, reference))
            if how == "resize":
                pytest.skip("numbers of steps are views of NumPy's memory, which PyTorch does not resize")
            one.swap(step, how)
            other.fill_(6.0)
            assert torch.equal(step, other)
        one.step(drawn(seed))
        reference.step(drawn(seed))
    assert one.held() == reference.held()


# --- gradients, parameters and slots as they are given -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", LAZY)
@pytest.mark.parametrize("steps", [0, 2])
@pytest.mark.parametrize("name", [*OPTIMIZERS])
def test_lazy_gradients_are_read(name: str, steps: int, kind: str, door: Any) -> None:
    one: Door = door(name)
    reference: Door = door(name)
    for seed in range(steps):
        one.step(drawn(seed + 1))
        reference.step(drawn(seed + 1))
    values = {path: g * (kind != "zero") for path, g in drawn(5).items()}
    one.step({**values, "b": one.lazy(kind, values["b"])})
    reference.step(values)
    assert one.held() == reference.held()


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_conjugate_gradients_are_read(name: str) -> None:
    """Conjugate gradients belong to complex parameters, which the classes of PyTorch have; `oxigrad.optim` and `oxigrad.optax` refuse them."""
    torch = pytest.importorskip("torch")
    values = {
        path: (value + 1j * value[::-1] if value.ndim else value + 1j).astype(np.complex64)
        for path, value in drawn(0).items()
    }
    one, reference = (Tensors(name, OPTIMIZERS[name], values) for _ in range(2))
    for _ in range(3):
        conjugate = {path: torch.tensor(value).conj() for path, value in values.items()}
        assert conjugate["b"].is_conj()
        one.step(conjugate)
        reference.step({path: np.conj(value) for path, value in values.items()})
    assert one.held() == reference.held()


@pytest.mark.parametrize("kind", [kind for kind in DOORS if kind != "torch"])
@pytest.mark.parametrize("name", [KERNEL, CALLED])
def test_complex_parameters_are_refused(name: str, kind: str) -> None:
    made, module = DOORS[kind]
    pytest.importorskip(module)
    values = {path: value + np.complex64(1j) for path, value in drawn(0).items()}
    with pytest.raises(ox.DtypeError, match="^a: the parameter has dtype .*complex64"):
        made(name, OPTIMIZERS[name], values).step(values)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_read_only_gradients_are_read(name: str, door: Any) -> None:
    one, reference = door(name), Update(name, OPTIMIZERS[name], drawn(0))
    for seed in (1, 2, 3):
        one.step({path: one.read_only(g) for path, g in drawn(seed).items()})
        reference.step(drawn(seed))
    for path, expected in reference.parameters().items():
        np.testing.assert_allclose(one.parameter(path), expected, rtol=1e-4, atol=1e-5, err_msg=path)


@pytest.mark.parametrize("name", [KERNEL, CALLED])
def test_a_read_only_array_that_is_assigned_to_a_slot_is_read_and_not_written(name: str, door: Any) -> None:
    one: Door = door(name)
    reference: Door = door(name)
    locked = one.read_only(np.full((2, 4), 0.25, np.float32))
    for each, value in ((one, locked), (reference, np.array(locked))):
        each.step(drawn(1))
        each.set_slot("b", each.array_slot(), value)
        each.step(drawn(2))
    np.testing.assert_array_equal(locked, 0.25)
    assert one.held() == reference.held()


@pytest.mark.parametrize("name", [KERNEL, CALLED])
def test_a_slot_that_becomes_read_only_is_refused_or_replaced(name: str, door: Any) -> None:
    one: Door = door(name)
    reference: Door = door(name)
    for each in (one, reference):
        each.step(drawn(1))
    one.lock(one.raw_slots("b")[one.array_slot()])
    before = one.held()
    if isinstance(one, Update):
        with pytest.raises(ox.ArrayMemoryError, match=rf"^b: .*slot {one.array_slot()}.*read-only"):
            one.step(drawn(2))
        assert one.held() == before
        return
    one.step(drawn(2))
    reference.step(drawn(2))
    assert one.held() == reference.held()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_arrays_of_the_other_byte_order_are_updated(name: str, door: Any) -> None:
    one: Door = door(name, {path: door(name).foreign(value) for path, value in drawn(0).items()})
    reference = Update(name, OPTIMIZERS[name], drawn(0))
    for seed in (1, 2, 3):
        one.step({path: one.foreign(g) for path, g in drawn(seed).items()})
        reference.step(drawn(seed))
    for path, expected in reference.parameters().items():
        assert not one.parameter(path).dtype.isnative
        np.testing.assert_allclose(one.parameter(path), expected, rtol=1e-4, atol=1e-5, err_msg=path)


@pytest.mark.parametrize("steps", [0, 1, 2])
@pytest.mark.parametrize("name", [KERNEL, CALLED])
def test_one_gradient_of_the_other_byte_order_is_refused_and_nothing_changes(name: str, steps: int, door: Any) -> None:
    one: Door = door(name)
    for seed in range(steps):
        one.step(drawn(seed + 1))
    before, grads = one.held(), drawn(5)
    with pytest.raises(ox.DtypeError, match="^b: gradient has dtype >f4, the parameter float32"):
        one.step({**grads, "b": one.foreign(grads["b"])})
    assert not steps or one.held() == before


@pytest.mark.parametrize("name", [KERNEL, CALLED])
def test_a_slot_of_the_other_byte_order_is_read_or_refused(name: str, door: Any) -> None:
    """Assigned to an optimizer it is copied; a state is taken as it is."""
    one: Door = door(name)
    reference: Door = door(name)
    if isinstance(one, Apply):
        one.set_slot("b", one.array_slot(), one.foreign(np.full((2, 4), 0.25, np.float32)))
        with pytest.raises(ox.DtypeError, match="^b: slot m: .* native byte order"):
            one.step(drawn(2))
        return
    value = np.full((2, 4), 0.25, np.float32)
    for each, given in ((one, one.foreign(value)), (reference, value)):
        each.step(drawn(1))
        each.set_slot("b", each.array_slot(), given)
        each.step(drawn(2))
    for path, expected in reference.parameters().items():
        np.testing.assert_allclose(one.parameter(path), expected, rtol=1e-6)


# --- half precision ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DOORS)
def test_a_rule_on_whole_arrays_rounds_stochastically(kind: str) -> None:
    """Slots of other shapes than the parameter's, too: equal numbers are rounded to different sides, by the seed."""
    made, module = DOORS[kind]
    pytest.importorskip(module)
    values = {"a": np.ones(64), "b": np.ones((64, 64))}

    def after(dtype: Any, **options: Any) -> Door:
        one = made("Adafactor", {"learning_rate": 0.003, **options}, {p: v.astype(dtype) for p, v in values.items()})
        for _ in range(4):
            one.step({path: np.full_like(v, 0.1, dtype) for path, v in values.items()})
        return one

    if kind == "optax-jit":
        with pytest.raises(ox.RuleError, match="^a: the rule adafactor .* random numbers .* traced"):
            after(np.float16, rounding="stochastic", seed=1)
        return
    exact, first = after(np.float32), after(np.float16, rounding="stochastic", seed=1)
    assert len(np.unique(first.parameter("b"))) > 1
    np.testing.assert_allclose(
        np.mean(first.parameter("b"), dtype=np.float64), np.mean(exact.parameter("b"), dtype=np.float64), atol=1e-4
    )
    assert first.held() == after(np.float16, rounding="stochastic", seed=1).held()
    assert first.held() != after(np.float16, rounding="stochastic", seed=2).held()
