"""Arrays that a step does not accept: an error with the key path, and nothing is changed."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import optim, xp

VALUES = [[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]]
OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "Adam": lambda **options: optim.Adam(0.1, **options),
    "Muon": lambda **options: optim.Muon(0.1, **options),  # sees whole arrays
    "Prodigy": lambda **options: optim.Prodigy(0.1, **options),  # has totals over all parameters
    "clipped": lambda **options: optim.chain(optim.ClipByGlobalNorm(1.0), optim.SGD(0.1, 0.9), **options),
}


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def jnp() -> Any:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        yield jax.numpy


def frozen(state: Any) -> Any:
    """Slots and counts as plain lists, to be compared."""
    return ox.tree.map(lambda x: host(x).tolist() if hasattr(x, "dtype") else x, state)


def refused(name: str, good: Callable[[], Any], bad: dict[str, Any], error: type[Exception], match: str) -> None:
    """Expects the error of a first step, of a later one, and of the pure step, with nothing changed.

    ``good`` makes an array; ``bad`` has "parameter" or "gradient", or both.
    """
    for before in (0, 2):
        opt, other = OPTIMIZERS[name](), good()
        model = {"a": other, "layers": [{"w": good()}]}
        for _ in range(before):
            model = opt.update(model, {"a": good(), "layers": [{"w": good()}]})
        values, state = frozen(model), frozen(opt.state_dict())
        version = getattr(model["a"], "_version", None)
        given = {"a": model["a"], "layers": [{"w": bad.get("parameter", model["layers"][0]["w"])}]}
        grads = {"a": good(), "layers": [{"w": bad.get("gradient", good())}]}
        with pytest.raises(error, match=match):
            opt.update(given, grads)
        assert frozen(model) == values and frozen(opt.state_dict()) == state and opt.step == before
        assert getattr(model["a"], "_version", None) == version


def pure_step_is_refused(name: str, good: Callable[[], Any], bad: dict[str, Any], error: Any, match: str) -> None:
    opt, params = OPTIMIZERS[name](), {"a": good(), "layers": [{"w": good()}]}
    state = opt.init(params)
    given = {"a": params["a"], "layers": [{"w": bad.get("parameter", params["layers"][0]["w"])}]}
    grads = {"a": good(), "layers": [{"w": bad.get("gradient", good())}]}
    before = frozen((params, state))
    with pytest.raises(error, match=match):
        opt.apply(given, grads, state)
    assert frozen((params, state)) == before


# --- PyTorch -----------------------------------------------------------------------------------------------------------


def tensor(torch: Any) -> Any:
    return torch.tensor(VALUES, dtype=torch.float64)


def fake(torch: Any) -> Any:
    from torch._subclasses import FakeTensorMode

    return FakeTensorMode().from_tensor(tensor(torch))


def csr(torch: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is in beta state
        return tensor(torch).to_sparse_csr()


def nested(torch: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is a prototype
        return torch.nested.nested_tensor([tensor(torch), tensor(torch)])


def jagged(torch: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([tensor(torch), tensor(torch)], layout=torch.jagged)


def freed(torch: Any) -> Any:
    made = tensor(torch)
    made.untyped_storage().resize_(0)
    return made


WITHOUT_MEMORY: dict[str, Callable[[Any], Any]] = {
    "meta": lambda torch: tensor(torch).to("meta"),
    "fake": fake,
    "sparse": lambda torch: tensor(torch).to_sparse(),
    "csr": csr,
    "nested": nested,
    "jagged": jagged,
    "freed": freed,
    "uninitialized": lambda torch: torch.nn.UninitializedParameter(dtype=torch.float64),
}
OF_GRADIENT = "the gradient (is on|is a|does not share its memory|has shape)"


@pytest.mark.parametrize("kind", WITHOUT_MEMORY)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_gradients_without_memory(torch: Any, name: str, kind: str) -> None:
    bad = {"gradient": WITHOUT_MEMORY[kind](torch)}
    match = rf"^layers\.0\.w: {OF_GRADIENT}|^layers\.0\.w: gradient has"
    refused(name, lambda: tensor(torch), bad, (ox.ArrayMemoryError, ox.ShapeError), match)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [kind for kind in WITHOUT_MEMORY if kind not in ("jagged", "uninitialized")])
def test_gradients_without_memory_in_the_pure_step(torch: Any, kind: str) -> None:
    bad = {"gradient": WITHOUT_MEMORY[kind](torch)}
    pure_step_is_refused("Adam", lambda: tensor(torch), bad, ox.ArrayMemoryError, r"^layers\.0\.w: the gradient is ")


@pytest.mark.parametrize("kind", WITHOUT_MEMORY)
@pytest.mark.parametrize("name", ["Adam", "Muon"])
def test_parameters_without_memory(torch: Any, name: str, kind: str) -> None:
    bad = {"parameter": WITHOUT_MEMORY[kind](torch)}
    match = r"^layers\.0\.w: (the parameter is a|the gradient is on|the slot \w+ is on)"
    refused(name, lambda: tensor(torch), bad, ox.ArrayMemoryError, match)


def test_models_on_meta_take_steps(torch: Any) -> None:
    for name in OPTIMIZERS:
        w = tensor(torch).to("meta")
        model = OPTIMIZERS[name]().update({"w": w}, {"w": torch.ones_like(w)})
        assert model["w"].device.type == "meta" and model["w"].shape == w.shape


def test_slots_on_another_device_than_the_parameter(torch: Any) -> None:
    opt = optim.Adam(0.1)
    params = {"w": tensor(torch)}
    state = opt.init(params)
    moved = {"w": tensor(torch).to("meta")}
    with pytest.raises(ox.ArrayMemoryError, match="^w: the slot m is on cpu, the parameter on meta$"):
        opt.apply(moved, moved, state)


@pytest.mark.parametrize("name", ["Adam", "Muon"])
def test_quantized_gradients(torch: Any, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated
        g = torch.quantize_per_tensor(tensor(torch).float(), 0.1, 0, torch.qint8)
        errors: Any = (ox.DtypeError, ox.ArrayMemoryError)
        refused(name, lambda: tensor(torch), {"gradient": g}, errors, r"^layers\.0\.w: (the )?gradient")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_tensors_inside_a_transform_of_torch(torch: Any, name: str) -> None:
    opt, model = OPTIMIZERS[name](), {"a": tensor(torch), "w": tensor(torch)}
    opt.update(model, {"a": tensor(torch), "w": tensor(torch)})
    before, state = frozen(model), frozen(opt.state_dict())

    grads = {"a": tensor(torch), "w": tensor(torch)}

    def of_parameter(w: Any) -> Any:
        return opt.update({"a": model["a"], "w": w}, grads)["w"].sum()

    def of_gradient(g: Any) -> Any:
        return opt.update(model, {"a": grads["a"], "w": g})["w"].sum()

    rows = torch.stack([tensor(torch)] * 2)
    for transform in (torch.func.grad(of_parameter), lambda x: torch.func.vmap(of_parameter)(rows)):
        with pytest.raises(ox.StateError, match=r"^w: the parameter is a \w+ inside of a transformation.*opt.apply"):
            transform(tensor(torch))
    for transform in (torch.func.grad(of_gradient), lambda x: torch.func.vmap(of_gradient)(rows)):
        # PyTorch exports no memory inside of `vmap`, not even that of tensors from outside.
        with pytest.raises((ox.StateError, ox.ArrayMemoryError), match="^[aw]: the gradient"):
            transform(tensor(torch))
    assert frozen(model) == before and frozen(opt.state_dict()) == state
    opt.update(model, {"a": tensor(torch), "w": tensor(torch)})


def test_inference_tensors_take_steps(torch: Any) -> None:
    with torch.inference_mode():
        w, g = tensor(torch), tensor(torch)
    for name in OPTIMIZERS:
        assert OPTIMIZERS[name]().update({"w": w}, {"w": g})["w"] is w


DTENSORS = """
import os, sys, warnings
warnings.simplefilter("ignore")
import torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
import oxigrad as ox
from oxigrad import optim

dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
mesh = init_device_mesh("cpu", (1,))
plain = lambda: torch.arange(6.0, dtype=torch.float64).reshape(2, 3) + 1
placed = lambda placement: distribute_tensor(plain(), mesh, [placement])
for make in (lambda: optim.Adam(0.1), optim.Muon, lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.SGD(0.1))):
    alone = make().update({"w": plain()}, {"w": plain()})["w"]
    for placement in (Shard(0), Replicate()):
        found = make().update({"w": placed(placement)}, {"w": placed(placement)})["w"]
        assert found.placements == (placement,), found
        torch.testing.assert_close(found.full_tensor(), alone, rtol=1e-5, atol=1e-6)
    for p, g in (
        (placed(Shard(0)), placed(Replicate())),
        (placed(Replicate()), placed(Shard(1))),
        (placed(Shard(0)), plain()),
        (plain(), placed(Shard(0))),
    ):
        opt, other = make(), plain()
        try:
            opt.update({"a": other, "w": p}, {"a": plain(), "w": g})
        except ox.ArrayMemoryError as error:
            assert str(error).startswith("w: the gradient "), error
        else:
            raise AssertionError((p, g))
        assert opt.step == 0 and torch.equal(other, plain()), "changed"
dist.destroy_process_group()
print("done")
"""


def test_dtensors(torch: Any) -> None:
    if not torch.distributed.is_available():
        pytest.skip("PyTorch without torch.distributed")
    done = subprocess.run([sys.executable, "-c", DTENSORS], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "done", done.stderr[-3000:]


# --- JAX ---------------------------------------------------------------------------------------------------------------


def leaked(jnp: Any) -> Any:
    import jax

    kept: list[Any] = []
    jax.jit(lambda x: kept.append(x) or x)(jnp.asarray(VALUES))
    return kept[0]


def deleted(jnp: Any) -> Any:
    array = jnp.asarray(VALUES)
    array.delete()
    return array


def donated(jnp: Any) -> Any:
    import jax

    array = jnp.asarray(VALUES) + 0.0
    jax.jit(lambda x: x * 2.0, donate_argnums=0)(array)
    assert array.is_deleted()
    return array


@pytest.mark.parametrize(
    ("make", "what"),
    [(leaked, "tracer outside of the transformation"), (deleted, "deleted"), (donated, "deleted, or donated")],
)
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("which", ["parameter", "gradient"])
def test_arrays_of_jax_that_are_gone(jnp: Any, name: str, which: str, make: Any, what: str) -> None:
    match = rf"^layers\.0\.w: the {which} is an? .*{what}"
    for expect in (refused, pure_step_is_refused):
        expect(name, lambda: jnp.asarray(VALUES), {which: make(jnp)}, ox.ArrayMemoryError, match)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_inside_of_a_transformation_of_jax(jnp: Any, name: str) -> None:
    import jax

    opt, model = OPTIMIZERS[name](), {"w": jnp.asarray(VALUES)}
    model = opt.update(model, model)
    state = frozen(opt.state_dict())
    for function in (
        lambda w: opt.update({"w": w}, {"w": jnp.asarray(VALUES)})["w"],
        lambda g: opt.update(model, {"w": g})["w"],
    ):
        with pytest.raises(ox.StateError, match=r"^w: the (parameter|gradient) is a \w*Tracer inside of a.*opt.apply"):
            jax.jit(function)(jnp.asarray(VALUES))
    with pytest.raises(ox.StateError, match=r"^w: the gradient is a \w*Tracer inside of a.*opt.apply"):
        jax.jit(lambda g: optim.Muon().update({"w": np.array(VALUES)}, {"w": g})["w"])(jnp.asarray(VALUES))
    assert frozen(opt.state_dict()) == state and opt.step == 1
    found = jax.jit(lambda w: opt.apply({"w": w}, {"w": w}, opt.init({"w": w}))[0]["w"])(jnp.asarray(VALUES))
    expected = OPTIMIZERS[name]().update({"w": np.array(VALUES)}, {"w": np.array(VALUES)})["w"]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_arrays_of_jax_are_never_written(jnp: Any, name: str) -> None:
    w, g = jnp.asarray(VALUES), jnp.asarray(VALUES)
    view = np.asarray(w)
    opt, model = OPTIMIZERS[name](), {"w": w}
    for _ in range(2):
        model = opt.update(model, {"w": g})
    assert model["w"] is not w
    np.testing.assert_array_equal(view, VALUES)
    np.testing.assert_array_equal(g, VALUES)


def test_random_keys_are_no_parameters(jnp: Any) -> None:
    import jax

    key = jax.random.key(0)
    model = optim.Adam(0.1).update({"w": jnp.asarray(VALUES), "key": key}, {"w": jnp.asarray(VALUES), "key": key})
    assert model["key"] is key
    match = r"^layers\.0\.w: gradient has (shape \(\)|dtype key)"
    errors: Any = (ox.ShapeError, ox.DtypeError)
    refused("Adam", lambda: jnp.asarray(VALUES), {"gradient": key}, errors, match)


TWO_DEVICES = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, numpy as np, oxigrad as ox
first, second = jax.devices("cpu")
w, g = jax.device_put(np.ones(3, np.float32), first), jax.device_put(np.ones(3, np.float32), second)
opt = ox.optim.Adam(0.1)
try:
    opt.update({"w": w}, {"w": g})
except ox.ArrayMemoryError as error:
    assert str(error).startswith("w: the gradient is on "), error
    assert opt.step == 0
    opt.update({"w": g}, {"w": g})
    print("done")
"""


def test_arrays_of_jax_on_two_devices() -> None:
    pytest.importorskip("jax")
    done = subprocess.run([sys.executable, "-c", TWO_DEVICES], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "done", done.stderr[-3000:]


# --- arrays of several libraries ---------------------------------------------------------------------------------------


def test_a_gradient_of_another_library_where_rules_are_called(jnp: Any, torch: Any) -> None:
    strict = pytest.importorskip("array_api_strict")
    for p, g in (
        (jnp.asarray(VALUES), tensor(torch)),
        (strict.asarray(VALUES), jnp.asarray(VALUES)),
    ):
        opt = optim.Adam(0.1)
        names = r"\w[\w.]* , the parameter one of \w+".replace(" ,", ",")
        with pytest.raises(ox.DtypeError, match=rf"^w: (the gradient is an array of {names}|gradient has dtype)"):
            opt.apply({"w": p}, {"w": g}, opt.init({"w": p}))
        assert opt.step == 0


def test_a_gradient_on_another_device_than_the_parameter() -> None:
    device = pytest.importorskip("device")
    p, g = (
        device.asarray(np.ones(3), device=device.DEVICE),
        device.asarray(np.ones(3), device=device.strict.Device("CPU_DEVICE")),
    )
    for name in ("Adam", "clipped"):
        for w, given in ((p, g), (g, p)):
            opt, other = OPTIMIZERS[name](), np.ones(2)
            with pytest.raises((ox.ArrayMemoryError, ox.DtypeError), match="^w: the gradient "):
                opt.update({"a": other, "w": w}, {"a": np.ones(2), "w": given})
            assert opt.step == 0 and other.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_mixed_models_agree_with_one_library(jnp: Any, torch: Any, name: str) -> None:
    def make(kinds: list[Any]) -> dict[str, Any]:
        return {f"w{at}": kind(np.array(VALUES) * (at + 1)) for at, kind in enumerate(kinds)}

    alone, mixed = [np.array] * 3, [np.array, torch.tensor, jnp.asarray]
    for kinds in (mixed, mixed[::-1], mixed[1:]):
        found, expected = make(kinds), make(alone[: len(kinds)])
        opt, other = OPTIMIZERS[name](nonfinite="skip"), OPTIMIZERS[name](nonfinite="skip")
        for _ in range(3):
            found, expected = opt.update(found, make(kinds)), other.update(expected, make(alone[: len(kinds)]))
        for path, array in expected.items():
            np.testing.assert_allclose(np.asarray(found[path]), array, rtol=1e-5, err_msg=path)
            assert type(found[path]) is type(make(kinds)[path])
        bad = make(kinds) | {"w1": make(kinds)["w1"] * np.nan}
        opt.update(found, bad)
        assert opt.skipped == 1


def test_rules_with_other_totals_are_named_by_path(jnp: Any) -> None:
    parts = {"a": optim.Prodigy(), "w": optim.chain(optim.ClipByGlobalNorm(1.0), optim.SGD(0.1))}
    for kind in (np.array, jnp.asarray):
        model = {"a": kind([1.0, 2.0]), "w": kind([1.0, 2.0])}
        opt = optim.partition(parts)
        with pytest.raises(ox.RuleError, match=r"a.*prodigy.*w.*clip|w.*clip.*prodigy of a"):
            opt.update(model, {"a": kind([1.0, 1.0]), "w": kind([1.0, 1.0])})
        with pytest.raises(ox.RuleError, match=r"a.*prodigy.*w.*clip|w.*clip.*prodigy of a"):
            opt.apply(model, {"a": kind([1.0, 1.0]), "w": kind([1.0, 1.0])}, opt.init(model))
        assert opt.step == 0 and frozen(model) == {"a": [1.0, 2.0], "w": [1.0, 2.0]}


# --- NumPy -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_read_only_leaves_are_replaced(name: str) -> None:
    w = np.array(VALUES)
    w.flags.writeable = False
    opt, expected = OPTIMIZERS[name](), OPTIMIZERS[name]().update({"w": np.array(VALUES)}, {"w": np.array(VALUES)})
    model = opt.update({"w": w}, {"w": np.array(VALUES)})
    assert model["w"] is not w and w.tolist() == VALUES
    np.testing.assert_allclose(model["w"], expected["w"])


@pytest.mark.parametrize("which", ["parameter", "gradient"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_masked_arrays(name: str, which: str) -> None:
    masked = np.ma.MaskedArray(VALUES, mask=np.array(VALUES) < 0)
    for expect in (refused, pure_step_is_refused):
        match = rf"^layers\.0\.w: the {which} is a MaskedArray"
        expect(name, lambda: np.array(VALUES), {which: masked}, ox.DtypeError, match)


@pytest.mark.parametrize("name", ["Shampoo", "SOAP"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("library", ["numpy", "torch", "jax.numpy"])
def test_matrix_rules_with_gradients_that_are_not_finite(name: str, value: float, library: str) -> None:
    module = pytest.importorskip(library)
    make = lambda x: module.asarray(np.array(x, np.float32))  # noqa: E731
    model, good = {"a": make(np.ones((2, 2))), "w": make(np.ones((2, 2)))}, {"a": make(np.eye(2)), "w": make(np.eye(2))}
    bad = {"a": make(np.eye(2)), "w": make(np.full((2, 2), value))}
    skipping = getattr(optim, name)(nonfinite="skip")
    model = skipping.update(model, good)
    before = frozen((model, skipping.state_dict()["slots"]))
    model = skipping.update(model, bad)
    assert (skipping.step, skipping.skipped) == (1, 1)
    assert frozen((model, skipping.state_dict()["slots"])) == before
    raising = getattr(optim, name)(nonfinite="raise")
    with pytest.raises(ox.NonFiniteError, match="^w: the gradient has infinities or NaN; nothing was changed"):
        raising.update(model, bad)
    assert raising.step == 0 and frozen(model) == before[0]
    propagating = getattr(optim, name)()
    for _ in range(2):
        model = propagating.update(model, bad)
    assert np.isnan(np.asarray(model["w"])).all() and np.isfinite(np.asarray(model["a"])).all()


def test_clips_of_arrays_in_the_other_byte_order() -> None:
    for part in (optim.ClipByValue, optim.ClipByNorm, optim.ClipByGlobalNorm):
        opt, other = (optim.chain(part(0.5), optim.SGD(0.1)) for _ in range(2))
        model = opt.update({"w": np.array(VALUES, ">f8")}, {"w": np.array(VALUES, ">f8")})
        expected = other.update({"w": np.array(VALUES)}, {"w": np.array(VALUES)})
        assert model["w"].dtype == ">f8"
        np.testing.assert_allclose(model["w"], expected["w"])
    x = np.array(VALUES, ">f4")
    for bounds in ((-1.0,), (-1.0, 1.0), (None, 1.0)):
        np.testing.assert_array_equal(
            xp.clip(x, *bounds), np.clip(np.array(VALUES, np.float32), bounds[0], (*bounds, None)[1])
        )


@pytest.mark.parametrize("protocol", range(2, 6))
def test_numbers_in_an_unpickled_state_are_written(protocol: int) -> None:
    def again(value: Any) -> Any:
        if protocol < 5:
            return pickle.loads(pickle.dumps(value, protocol))  # noqa: S301
        buffers: list[Any] = []
        data = pickle.dumps(value, protocol, buffer_callback=buffers.append)
        return pickle.loads(data, buffers=[bytes(each.raw()) for each in buffers])  # noqa: S301  read-only memory

    def grads() -> dict[str, Any]:
        return {"w": np.array(1.0), "v": np.array([1.0, 2.0])}

    opt, model = optim.Prodigy(0.1), {"w": np.array(2.0), "v": np.array([1.0, 2.0])}
    opt.update(model, grads())
    expected = opt.apply(model, grads(), {"step": opt.step, "slots": opt.state_dict()["slots"]})[0]
    loaded = optim.Prodigy(0.1)
    loaded.load_state_dict(again(opt.state_dict()))
    for each in (again(opt), loaded):
        found = each.update({path: array.copy() for path, array in model.items()}, grads())
        for path, array in expected.items():
            np.testing.assert_allclose(found[path], array)
        assert all(slot.flags.writeable for slots in each.slots.values() for slot in slots.values())


# --- derivatives ---------------------------------------------------------------------------------------------------------


def test_gradients_and_minimize_of_arrays_that_are_gone(jnp: Any) -> None:
    def loss(model: Any) -> Any:
        return xp.sum(model["layers"][0]["w"] ** 2)

    for make in (leaked, deleted):
        model = {"layers": [{"w": make(jnp)}]}
        opt = optim.SGD(0.1)
        with pytest.raises((ox.ArrayMemoryError, RuntimeError, TypeError), match="deleted|tracer"):
            opt.minimize(loss, model)
        assert opt.step == 0
    masked = {"layers": [{"w": np.ma.MaskedArray(VALUES, mask=np.array(VALUES) < 0)}]}
    with pytest.raises(ox.DtypeError, match="MaskedArray"):
        ox.grad(loss)(masked)
