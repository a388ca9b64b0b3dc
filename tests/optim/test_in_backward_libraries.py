"""`minimize` with the step in the backward over each array library, and in half precision: the bits of a step after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import libraries
import oxigrad as ox
from libraries import Library, host
from oxigrad import optim, xp

RANDOM = np.random.default_rng(0)
INPUTS = RANDOM.normal(size=(3, 8, 6))

MAKES: dict[str, Callable[[], Any]] = {
    "AdamW": lambda: optim.AdamW(0.05),
    "SGD": lambda: optim.SGD(0.1, 0.9, nesterov=True),
    "Adafactor": lambda: optim.Adafactor(),
    "LAMB": lambda: optim.LAMB(0.05),
    "Prodigy": lambda: optim.Prodigy(),
    "clipped": lambda: optim.chain(optim.ClipByGlobalNorm(0.1), optim.AdamW(0.05)),
    "averaged": lambda: optim.chain(optim.SGD(0.1), optim.EMA(decay=0.9)),
    "partition": lambda: optim.Partition({"layers.*": optim.Muon(0.05), "*": optim.Lion(0.01)}),
}


def new_model(convert: Callable[[Any], Any]) -> dict[str, Any]:
    """Parameters at several depths: a tied one, one that no gradient reaches, one without axes, and what is no parameter."""
    rng = np.random.default_rng(1)
    first = convert(rng.normal(size=(6, 6)))
    return {
        "first": first,
        "layers": [convert(rng.normal(size=(6, 6))) for _ in range(2)],
        "gain": convert(np.ones(6)),
        "scale": convert(np.asarray(1.5)),
        "tied": first,
        "unused": convert(np.ones(3)),
        "name": "net",
    }


def net(model: Any, x: Any) -> Any:
    h = xp.tanh(xp.matmul(x, model["first"])) * model["gain"]
    for layer in model["layers"]:
        h = xp.tanh(h @ xp.matrix_transpose(layer) + xp.matmul(x, layer)) * model["gain"]
    return xp.mean((h @ model["tied"] * model["scale"]) ** 2)


def trained(opt: Any, convert: Callable[[Any], Any], in_backward: bool) -> tuple[list[np.ndarray], Any]:
    """The losses of some steps, and the model."""
    model, losses = new_model(convert), []
    for x in INPUTS:
        batch = convert(x)
        loss = opt.minimize(lambda model, x=batch: net(model, x), model, in_backward=in_backward)
        losses.append(host(loss))
    return losses, model


def bits(tree: Any) -> list[tuple[str, bytes]]:
    """The dtypes and bytes of the arrays in a tree."""
    found = [host(leaf) for leaf in ox.tree.leaves(tree) if hasattr(leaf, "dtype")]
    return [(str(array.dtype), array.tobytes()) for array in found]


def check(make: Callable[[], Any], convert: Callable[[Any], Any]) -> None:
    """Fails unless losses, parameters and state are those of steps after the backward, to the bit."""
    after, inside = make(), make()
    expected, found = (trained(opt, convert, flag) for opt, flag in ((after, False), (inside, True)))
    assert [each.tobytes() for each in found[0]] == [each.tobytes() for each in expected[0]]
    assert [each.tobytes() for each in expected[0]] != [expected[0][0].tobytes()] * len(INPUTS)
    assert bits(found[1]) == bits(expected[1])
    assert bits(inside.slots) == bits(after.slots)
    assert (inside.ahead, inside.step) == ([], after.step)


@pytest.mark.parametrize("name", MAKES)
def test_every_library_has_the_bits_of_a_step_after_the_backward(name: str, arrays: Library) -> None:
    check(MAKES[name], arrays.asarray)


@pytest.mark.parametrize("module", ["mlx", "dask"])
def test_libraries_whose_arrays_are_replaced_have_the_same_bits(module: str) -> None:
    library = libraries.named(module)
    if not library.is_there():
        pytest.skip(f"{module} is not installed")
    check(MAKES["AdamW"], library.asarray)


def halves(library: str, dtype: str) -> Callable[[Any], Any]:
    """Makes arrays of half precision."""
    if library == "numpy":
        kind = np.dtype(dtype) if dtype == "float16" else np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
        return lambda values: np.asarray(values).astype(kind)
    if library == "torch":
        torch = pytest.importorskip("torch")
        return lambda values: torch.asarray(np.array(values)).to(getattr(torch, dtype))
    jax = pytest.importorskip("jax")
    return lambda values: jax.numpy.asarray(values, dtype=dtype)


PRECISIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "master": {"master": True},
    "stochastic": {"rounding": "stochastic"},
    "kahan": {"rounding": "kahan"},
    "float32 slots": {"slot_dtype": "float32"},
    "8bit": {"rounding": "stochastic", "slot_dtype": "8bit"},
}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_half_precision_has_the_bits_of_a_step_after_the_backward(library: str, dtype: str, precision: str) -> None:
    options = PRECISIONS[precision]
    bit16 = halves(library, dtype)
    after, inside = (optim.AdamW(0.05, seed=3, **options) for _ in range(2))
    found = []
    for opt, in_backward in ((after, False), (inside, True)):
        model = new_model(bit16)
        for x in INPUTS:
            batch = bit16(x)
            opt.minimize(lambda model, x=batch: net(model, x), model, in_backward=in_backward)
        found.append(([as_bytes(leaf) for leaf in ox.tree.leaves(model) if hasattr(leaf, "dtype")], states(opt)))
    assert found[0] == found[1]


def as_bytes(x: Any) -> bytes:
    """The bytes of an array of half precision, or of another one."""
    if type(x).__module__.startswith("torch"):
        return x.detach().contiguous().view(-1).numpy(force=True).tobytes() if x.dtype.itemsize != 2 else _words(x)
    return np.asarray(x).tobytes()


def _words(x: Any) -> bytes:
    torch = pytest.importorskip("torch")
    return x.detach().contiguous().view(torch.int16).numpy().tobytes()


def states(opt: Any) -> list[bytes]:
    """The bytes of all slots."""
    return [as_bytes(array) for own in opt.slots.values() for slot in own.values() for array in ox.tree.leaves(slot)]
