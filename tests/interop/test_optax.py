"""Gradient transformations of `oxigrad.optax` compared with optax: values, dtypes, composition, and program transformations."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optimizers import OPTIMIZERS
from oxigrad import SparseRows, optim, schedules
from oxigrad._core import DtypeError, NonFiniteError, StructureError

# optax's configurations of its aliases, of those that oxigrad has, and one of each argument that is no number.
CONFIGURATIONS: list[tuple[str, dict[str, Any]]] = [
    ("adabelief", {"learning_rate": 1e-2}),
    ("adadelta", {"learning_rate": 0.1}),
    ("adafactor", {"learning_rate": 5e-3}),
    ("adafactor", {}),
    ("adagrad", {"learning_rate": 1.0}),
    ("adam", {"learning_rate": 1e-1}),
    ("adamax", {"learning_rate": 1e-1}),
    ("adamaxw", {"learning_rate": 1e-1}),
    ("adamw", {"learning_rate": 1e-1}),
    ("adan", {"learning_rate": 1e-1}),
    ("amsgrad", {"learning_rate": 1e-1}),
    ("fromage", {"learning_rate": 5e-3}),
    ("lamb", {"learning_rate": 1e-3}),
    ("lars", {"learning_rate": 1.0}),
    ("lion", {"learning_rate": 1e-2, "weight_decay": 1e-4}),
    ("nadam", {"learning_rate": 1e-2}),
    ("nadamw", {"learning_rate": 1e-2}),
    ("novograd", {"learning_rate": 1e-3}),
    ("optimistic_adam", {"learning_rate": 2e-3}),
    ("optimistic_adam_v2", {"learning_rate": 2e-3}),
    ("optimistic_gradient_descent", {"learning_rate": 2e-3, "alpha": 0.7, "beta": 0.1}),
    ("polyak_sgd", {"max_learning_rate": 1.0}),
    ("radam", {"learning_rate": 5e-3}),
    ("rmsprop", {"learning_rate": 5e-3}),
    ("rmsprop", {"learning_rate": 5e-3, "momentum": 0.9}),
    ("rprop", {"learning_rate": 1e-1}),
    ("sgd", {"learning_rate": 1e-3, "momentum": 0.9}),
    ("sign_sgd", {"learning_rate": 1e-1}),
    ("signum", {"learning_rate": 1e-2}),
    ("sm3", {"learning_rate": 1.0}),
    ("yogi", {"learning_rate": 1e-1}),
]
MORE: list[tuple[str, dict[str, Any]]] = [
    ("ademamix", {"learning_rate": 0.1, "weight_decay": 0.1}),
    ("simplified_ademamix", {"learning_rate": 0.1, "alpha": 2.0, "weight_decay": 0.1, "eps_root": 1e-2}),
    ("adopt", {"learning_rate": 0.1}),
    ("adopt", {"learning_rate": 0.1, "use_clipping": False}),
    ("madgrad", {"learning_rate": 0.1, "weight_decay": 0.1}),
    ("muon", {"learning_rate": 0.1}),
    ("muon", {"learning_rate": 0.1, "nesterov": False, "ns_coeffs": "dion", "adam_learning_rate": 0.01}),
    ("prodigy", {"weight_decay": 0.1}),
    ("schedule_free_adamw", {"learning_rate": 0.1}),
    ("schedule_free_sgd", {"learning_rate": 0.1}),
    ("dog", {"init_step": ("heuristic", 0.1)}),
    ("dog", {"learning_rate": 0.5, "init_step": ("distance", 0.1), "weight_decay": 0.1}),
    ("dog", {"init_step": ("learning_rate", 0.1), "eps": 1.0}),
    ("dowg", {}),
    ("dowg", {"learning_rate": 0.5, "init_estim_sq_dist": 0.1, "weight_decay": 0.1, "eps": 0.1}),
    ("dadapt_adamw", {"estim_lr0": 0.1, "weight_decay": 0.1, "betas": (0.8, 0.9), "eps": 0.1}),
    ("cocob", {"alpha": 10.0}),
    ("cocob", {"learning_rate": 0.5, "weight_decay": 0.1, "eps": 1e-2}),
    ("adadelta", {"learning_rate": 0.1, "weight_decay": 0.1}),
    ("adafactor", {"learning_rate": 0.1, "min_dim_size_to_factor": 2, "momentum": 0.9, "clipping_threshold": None}),
    ("adafactor", {"learning_rate": 0.1, "factored": False, "multiply_by_parameter_scale": False}),
    ("adam", {"learning_rate": 0.1, "nesterov": True}),
    ("adamw", {"learning_rate": 0.1, "nesterov": True}),
    ("nadam", {"learning_rate": 0.1, "nesterov": False}),
    ("lars", {"learning_rate": 0.1, "weight_decay": 0.1, "nesterov": True}),
    ("rmsprop", {"learning_rate": 0.1, "eps_in_sqrt": False, "bias_correction": True, "initial_scale": 0.3}),
    ("rmsprop", {"learning_rate": 0.1, "centered": True, "momentum": 0.9, "nesterov": True}),
    ("sgd", {"learning_rate": 0.1}),
    ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    *((name, {"learning_rate": 0.1, "eps_root": 1e-2}) for name in "adam adamw amsgrad nadam lamb novograd".split()),
    *((name, {"learning_rate": 0.1, "eps_root": 0.0}) for name in "adabelief adam adan novograd".split()),
    ("ademamix", {"learning_rate": 0.1, "eps_root": 1e-2}),
    ("radam", {"learning_rate": 0.1, "eps_root": 1e-2, "b2": 0.9}),
    ("fromage", {"learning_rate": 0.1, "min_norm": 3.0}),
    ("optimistic_adam", {"learning_rate": 0.1, "optimism": 0.3, "nesterov": False}),
    ("optimistic_adam_v2", {"learning_rate": 0.1, "alpha": 0.7, "beta": 0.3, "b1": 0.8, "b2": 0.9, "eps_root": 1e-2}),
    ("polyak_sgd", {"max_learning_rate": 0.05, "scaling": 0.5}),
    ("polyak_sgd", {"scaling": 0.5, "f_min": 0.1, "eps": 1.0}),
    ("polyak_sgd", {"f_min": 9.0, "variant": "sps+"}),
    ("polyak_sgd", {"f_min": 9.0}),
    ("momo", {"learning_rate": 0.5, "beta": 0.8}),
    ("momo", {"learning_rate": 3.0, "lower_bound": -1.0, "adapt_lower_bound": True}),
    ("momo_adam", {"learning_rate": 0.5, "b1": 0.8, "b2": 0.9, "eps": 1e-3}),
    ("momo_adam", {"learning_rate": 0.5, "lower_bound": -1.0, "adapt_lower_bound": True}),
]
# Further arguments of `update`: each optimizer is given the loss, and most ignore it.
LOSS = {"value": 2.5}
# Those that optax has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:`optimistic_adam` is deprecated:DeprecationWarning")
# As CONFIGURATIONS; optax draws other numbers.
NOISY = ("noisy_sgd", {"learning_rate": 1e-3, "eta": 1e-4, "key": 0})
# What optax computes in float32 at any precision: powers of the step, cube roots, and iterations of Newton and Schulz.
SINGLE = {"adafactor", "madgrad", "muon"}


def titled(configuration: tuple[str, dict[str, Any]]) -> str:
    name, given = configuration
    return " ".join([name, *(f"{key}={value}" for key, value in given.items())])


@pytest.fixture
def jax(library: Any) -> Any:
    return library("jax")


@pytest.fixture
def optax(library: Any) -> Any:
    library("jax")
    return library("optax")


@pytest.fixture
def ours(library: Any) -> Any:
    library("jax"), library("optax")
    return importlib.import_module("oxigrad.optax")


def of_optax(optax: Any, name: str) -> Any:
    return getattr(optax, name, None) or getattr(optax.contrib, name)


def draws(jax: Any, dtype: Any = "float32", count: int = 5) -> Iterator[Any]:
    """Trees of parameters or gradients."""
    generator = np.random.default_rng(7)
    shapes = {"w": (4, 5), "layers": [{"b": (7,)}]}
    for _ in range(count):
        yield jax.tree.map(
            lambda shape: jax.numpy.asarray(generator.standard_normal(shape), dtype),
            shapes,
            is_leaf=lambda each: isinstance(each, tuple),
        )


def distance(jax: Any, these: Any, those: Any) -> float:
    """The largest difference in a leaf, as a share of its largest element."""

    def of(a: Any, b: Any) -> float:
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        return float(np.max(np.abs(a - b)) / max(np.max(np.abs(b)), 1e-30))

    return max(jax.tree.leaves(jax.tree.map(of, these, those)))


def stepped(jax: Any, optax: Any, tx: Any, trees: list[Any]) -> list[Any]:
    """The updates of each step under jit, and the parameters at the end."""
    params, *gradients = trees
    state, update, found = tx.init(params), jax.jit(optax.with_extra_args_support(tx).update), []
    for g in gradients:
        updates, state = update(g, state, params, **LOSS)
        params = optax.apply_updates(params, updates)
        found.append(updates)
    return [*found, params]


# --- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("configuration", "x64"),
    [*((each, False) for each in CONFIGURATIONS), *((each, True) for each in [*CONFIGURATIONS, *MORE])],
    ids=lambda value: titled(value) if isinstance(value, tuple) else "float64" if value else "float32",
)
def test_updates_are_optax_s(configuration: Any, x64: bool, jax: Any, optax: Any, ours: Any, precision: Any) -> None:
    """Of `update`, and the parameters of `apply`."""
    name, given = configuration
    with precision(x64):
        trees = [*draws(jax, "float64" if x64 else "float32")]
        tx = getattr(ours, name)(**given)
        expected = stepped(jax, optax, of_optax(optax, name)(**given), trees)
        found = stepped(jax, optax, tx, trees)
        # Optax computes 1 - 0.999 in float32, with a relative error of 1.3e-5, and takes its root; XLA computes
        # 1 - 0.999**step in float32, to four digits. An update that is the difference of parameters rounds as they do.
        bound = 2e-5
        if x64:
            bound = 2e-6 if name in SINGLE else 1e-13
        for here, there in zip(found, expected, strict=True):
            assert distance(jax, here, there) < bound
        params, state, apply = trees[0], tx.init(trees[0]), jax.jit(tx.apply)
        for g in trees[1:]:
            params, state = apply(g, state, params, **LOSS)
        assert distance(jax, params, expected[-1]) < bound
        assert int(state.count) == len(trees) - 1


@pytest.mark.parametrize("x64", [False, True], ids=["float32", "float64"])
@pytest.mark.parametrize(
    "name", "fromage optimistic_adam optimistic_adam_v2 optimistic_gradient_descent polyak_sgd".split()
)
def test_eager_steps_of_other_losses_are_optax_s(
    name: str, x64: bool, jax: Any, optax: Any, ours: Any, precision: Any
) -> None:
    """The rate follows a schedule where the transformation takes one."""
    rate = optax.linear_schedule(0.1, 0.5, 4)
    given: dict[str, Any] = {"learning_rate": 0.1 if name == "optimistic_adam" else rate}
    given = {"scaling": rate} if name == "polyak_sgd" else given
    with precision(x64):
        params, *gradients = draws(jax, "float64" if x64 else "float32")
        ends = []
        for make in (ours, optax):
            tx, held = getattr(make, name)(**given), params
            tx, state = optax.with_extra_args_support(tx), tx.init(params)
            for loss, g in zip((3.0, 0.0, 700.0, 1e-3), gradients, strict=True):
                updates, state = tx.update(g, state, held, value=jax.numpy.asarray(loss))
                held = optax.apply_updates(held, updates)
            ends.append(held)
        # optax computes its schedules, and under float32 1 - 0.999**step, to the digits of float32.
        assert distance(jax, *ends) < (1e-7 if x64 else 2e-5)


def test_the_loss_of_polyak_sgd(jax: Any, optax: Any, ours: Any) -> None:
    """It passes through chains; without a gradient there is no step; a missing loss is named."""
    params, g, *_ = draws(jax)
    pair = [optax.chain(optax.clip_by_global_norm(1.0), make.polyak_sgd(3.0)) for make in (ours, optax)]
    found, expected = (tx.update(g, tx.init(params), params, value=2.0)[0] for tx in pair)
    assert distance(jax, found, expected) < 1e-6
    tx = ours.polyak_sgd()
    nothing = jax.tree.map(jax.numpy.zeros_like, params)
    assert distance(jax, tx.update(nothing, tx.init(params), params, value=2.0)[0], nothing) == 0.0
    with pytest.raises(TypeError, match="the rule polyak_sgd reads the loss, which the step was not given"):
        tx.update(g, tx.init(params), params)
    with pytest.raises(
        ValueError, match=r"the loss, which the rule polyak_sgd reads, has shape \(4, 5\): expected a number"
    ):
        tx.update(g, tx.init(params), params, value=g["w"])
    with pytest.raises(ValueError, match="variant is 'sps-': expected 'sps' or 'sps\\+'"):
        ours.polyak_sgd(variant="sps-")


def test_without_variance_noisy_sgd_is_optax_s(jax: Any, optax: Any, ours: Any) -> None:
    trees = [*draws(jax)]
    given = {"learning_rate": optax.linear_schedule(0.1, 0.5, 4), "eta": 0.0, "key": 0}
    found, expected = (stepped(jax, optax, make.noisy_sgd(**given), trees) for make in (ours, optax))
    for here, there in zip(found, expected, strict=True):
        assert distance(jax, here, there) < 2e-7


@pytest.mark.parametrize("of", ["ours", "optax"])
def test_moments_of_the_noise_of_noisy_sgd(of: str, jax: Any, optax: Any, ours: Any) -> None:
    """Of optax's noise too, so that the bounds are known to admit it."""
    params = {"a": jax.numpy.zeros((200, 500)), "b": jax.numpy.zeros(100_000)}
    make = ours if of == "ours" else optax
    tx = make.noisy_sgd(0.5, eta=0.04, gamma=0.8, key=3)
    *found, _ = stepped(jax, optax, tx, [params] * 5)
    draws = []
    for step, updates in enumerate(found, 1):
        for leaf in updates.values():
            numbers = np.asarray(leaf, np.float64).ravel() / (-0.5 * np.sqrt(0.04 / step**0.8))
            draws.append(numbers)
            # Six standard errors of each moment.
            for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
                assert abs((numbers**power).mean() - moment) < 6 * np.sqrt(variance / numbers.size)
    correlations = np.corrcoef(draws) - np.eye(len(draws))
    assert np.abs(correlations).max() < 6 / np.sqrt(100_000)


def test_the_key_of_noisy_sgd(jax: Any, optax: Any, ours: Any) -> None:
    trees = [*draws(jax)]
    expected = stepped(jax, optax, ours.noisy_sgd(0.1, key=3), trees)
    for key in (jax.random.key(3), np.int32(3), jax.numpy.asarray(3)):
        for here, there in zip(stepped(jax, optax, ours.noisy_sgd(0.1, key=key), trees), expected, strict=True):
            assert distance(jax, here, there) == 0.0
    assert distance(jax, stepped(jax, optax, ours.noisy_sgd(0.1, key=4), trees)[0], expected[0]) > 1e-3
    params, g, *_ = trees
    tx = ours.noisy_sgd(0.1, key=3)
    assert distance(jax, tx.update(g, tx.init(params), params)[0], expected[0]) < 1e-6
    new, state = tx.apply(g, tx.init(params), params)
    assert distance(jax, new, optax.apply_updates(params, expected[0])) < 1e-6 and int(state.count) == 1
    with pytest.raises(TypeError, match="key is 'three': expected a whole number or a key of JAX"):
        ours.noisy_sgd(0.1, key="three")
    with pytest.raises(ValueError, match="eta is -1.0: expected a number"):
        ours.noisy_sgd(0.1, eta=-1.0)


def test_without_a_rate_adadelta_descends(jax: Any, optax: Any, ours: Any) -> None:
    """Unlike optax's, whose updates then lack the factor and its sign."""
    trees = [*draws(jax)]
    expected, found = optax.adadelta(), ours.adadelta()
    up, down = (tx.update(trees[1], tx.init(trees[0]), trees[0])[0] for tx in (expected, found))
    assert distance(jax, down, jax.tree.map(lambda update: -update, up)) < 1e-6


def test_small_updates_keep_their_bits(jax: Any, optax: Any, ours: Any) -> None:
    """The change is computed directly: a difference of parameters of size 1000 would lose all bits.

    optax corrects Adam's bias in float32, which costs some of them.
    """
    params, g = {"w": jax.numpy.full(3, 1000.0)}, {"w": jax.numpy.array([1.0, -2.0, 3.0])}
    for name in ("adam", "adamw", "sgd", "lion", "lamb", "rmsprop"):
        tx, theirs = getattr(ours, name)(1e-6), getattr(optax, name)(1e-6)
        found, expected = (each.update(g, each.init(params), params)[0]["w"] for each in (tx, theirs))
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def is_own(alias: Any) -> bool:
    """Whether optax has no such function, so that its arguments are those of `oxigrad.optim`."""
    return alias.arguments == " ".join(getattr(optim, alias.parts[0])._declared)


def test_defaults_are_optax_s(optax: Any, ours: Any) -> None:
    import inspect

    from oxigrad.optax.aliases import ALIASES

    own = {name for name, alias in ALIASES.items() if is_own(alias)}
    composed = {"muon", "noisy_sgd", "optimistic_adam"}
    for name in ALIASES.keys() - own | composed:
        found = inspect.signature(getattr(ours, name)).parameters
        expected = inspect.signature(of_optax(optax, name)).parameters
        further = set(found) - set(expected)
        assert further == ({"batch_size", "estimate"} if name == "sophia" else set()), name
        for key in set(found) & set(expected):
            a, b = found[key].default, expected[key].default
            same = a == b or (a or 0.0) == (b or 0.0) or np.dtype(a) == np.dtype(b)
            assert same, (name, key, a, b)
        in_order = [key for key, each in found.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
        assert in_order == list(expected)[: len(in_order)], name


def test_the_page_names_the_arguments_that_are_left_out(optax: Any, ours: Any) -> None:
    import inspect

    page = (Path(__file__).parents[2] / "docs" / "jax.md").read_text().partition("## What differs")[2]
    for name in ours.__all__:
        theirs = getattr(optax, name, None) or getattr(optax.contrib, name, None)
        if theirs is None:
            continue
        left_out = inspect.signature(theirs).parameters.keys() - inspect.signature(getattr(ours, name)).parameters
        missing = {each for each in left_out if f"`{each}`" not in page and f"`_{each.rpartition('_')[2]}`" not in page}
        assert not missing, name


# --- dtypes, and the state as a pytree -----------------------------------------------------------------------------------

OWN = [
    ("adam_lrd", {"dropout_rate": 0.5}),
    ("asgd", {}),
    ("ftrl", {}),
    ("shampoo", {}),
    ("soap", {}),
    ("sophia", {"learning_rate": 0.1}),
]
EVERY = [*CONFIGURATIONS, *MORE, *OWN, NOISY]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("configuration", EVERY, ids=titled)
def test_shapes_and_dtypes_do_not_change(configuration: Any, dtype: str, jax: Any, optax: Any, ours: Any) -> None:
    name, given = configuration
    tx = getattr(ours, name)(**given)
    params, g, *_ = draws(jax, dtype)
    state = tx.init(params)
    shape = lambda array: (array.shape, array.dtype, array.weak_type)  # noqa: E731
    for step in (tx.update, tx.apply):
        assert jax.tree.map(shape, jax.eval_shape(step, g, state, params, **LOSS)) == jax.tree.map(
            shape, (params, state)
        )


def test_slots_of_half_precision_are_float32_unless_they_are_asked_for(jax: Any, optax: Any, ours: Any) -> None:
    params, g, *_ = draws(jax, "bfloat16")
    state = ours.adamw(0.1).init(params)
    assert {str(array.dtype) for array in jax.tree.leaves(state.slots)} == {"float32"}
    tx = ours.adamw(0.1, mu_dtype="bfloat16")
    _, state = jax.jit(tx.update)(g, tx.init(params), params)
    kinds = {name: {str(array.dtype) for array in jax.tree.leaves(slot)} for name, slot in state.slots.items()}
    assert kinds == {"m": {"bfloat16"}, "v": {"float32"}}
    assert optax.tree.get(state, "m") is state.slots["m"]


def test_a_gradient_of_another_precision_is_converted(jax: Any, ours: Any) -> None:
    params, g, *_ = draws(jax)
    tx = ours.sgd(0.5)
    updates, _ = tx.update(jax.tree.map(lambda each: each.astype("bfloat16"), g), tx.init(params), params)
    assert updates["w"].dtype == np.float32
    np.testing.assert_array_equal(updates["w"], -0.5 * g["w"].astype("bfloat16").astype("float32"))


@pytest.mark.parametrize("configuration", EVERY, ids=titled)
def test_optax_maps_over_the_parameters_in_the_state(configuration: Any, jax: Any, optax: Any, ours: Any) -> None:
    name, given = configuration
    tx = getattr(ours, name)(**given)
    state = tx.init(next(draws(jax)))
    marked = optax.tree.map_params(tx, lambda array: [array], state, transform_non_params=lambda count: "count")
    assert marked.count == "count"
    assert jax.tree.structure(marked.slots) == jax.tree.structure(
        {name: jax.tree.map(lambda array: [array], slot) for name, slot in state.slots.items()}
    )


def test_the_state_is_serializable(jax: Any, ours: Any) -> None:
    params, g, *_ = draws(jax)
    tx = ours.adamw(0.1)
    _, state = tx.update(g, tx.init(params), params)
    leaves, structure = jax.tree.flatten(state)
    again = jax.tree.unflatten(structure, [np.asarray(leaf) for leaf in leaves])
    again = pickle.loads(pickle.dumps(again))  # noqa: S301
    expected, found = tx.update(g, state, params), tx.update(g, again, params)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), expected, found))


# --- composition -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("configuration", [*CONFIGURATIONS, NOISY], ids=titled)
def test_injected_hyperparameters(configuration: Any, jax: Any, optax: Any, ours: Any) -> None:
    name, given = configuration
    static = {"static_args": ("min_dim_size_to_factor",)} if name == "adafactor" else {}
    rate = "max_learning_rate" if name == "polyak_sgd" else "learning_rate"
    given = {rate: 0.01, **given}
    make = getattr(ours, name)
    trees = [*draws(jax)]
    injected = optax.inject_hyperparams(make, **static)(**given)
    expected = stepped(jax, optax, make(**given), trees)
    for found, own in zip(stepped(jax, optax, injected, trees), expected, strict=True):
        assert distance(jax, found, own) < 1e-3  # as near as numbers in float32 allow, such as 1 - 0.999
    state = injected.init(trees[0])
    state.hyperparams[rate] = jax.numpy.asarray(0.0)
    if name != "rprop":  # whose learning rate is its first step
        updates, _ = jax.jit(injected.update)(trees[1], state, trees[0], **LOSS)
        assert distance(jax, updates, jax.tree.map(jax.numpy.zeros_like, updates)) == 0.0


@pytest.mark.parametrize("configuration", [*CONFIGURATIONS, NOISY], ids=titled)
def test_accumulated_gradients_change_no_dtype(configuration: Any, jax: Any, optax: Any, ours: Any) -> None:
    name, given = configuration
    params, g, *_ = draws(jax, "bfloat16")
    every = optax.MultiSteps(getattr(ours, name)(**given), every_k_schedule=4)
    updates, _ = jax.eval_shape(every.update, g, every.init(params), params, **LOSS)
    assert jax.tree.map(lambda array: array.dtype, updates) == jax.tree.map(lambda array: array.dtype, params)


@pytest.mark.parametrize("name", ["adamw", "lamb", "sgd"])
def test_gradients_that_are_accumulated(name: str, jax: Any, optax: Any, ours: Any) -> None:
    params, *gradients = draws(jax, count=9)
    tx = getattr(ours, name)(0.1)
    found = stepped(jax, optax, optax.MultiSteps(tx, every_k_schedule=4), [params, *gradients])
    means = [jax.tree.map(lambda *all: sum(all) / 4, *gradients[k : k + 4]) for k in (0, 4)]
    assert distance(jax, found[-1], stepped(jax, optax, tx, [params, *means])[-1]) < 1e-5
    assert all(not np.any(np.asarray(each)) for each in jax.tree.leaves(found[0]))


def test_a_mask_that_is_a_callable_pytree_is_a_pytree(jax: Any, optax: Any, ours: Any) -> None:
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class Layer:  # as a module of Equinox
        w: Any
        b: Any

        def __call__(self, x: Any) -> Any:
            raise AssertionError("the mask was called")

    params = Layer(jax.numpy.ones((2, 3)), jax.numpy.ones(3))
    zeros = jax.tree.map(jax.numpy.zeros_like, params)
    for mask in (Layer(True, False), lambda params: Layer(True, False)):
        tx = ours.adamw(0.1, weight_decay=0.5, mask=mask)
        updates, _ = tx.update(zeros, tx.init(params), params)
        np.testing.assert_allclose(updates.w, -0.05, rtol=1e-6)
        np.testing.assert_array_equal(updates.b, 0.0)


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        ({"w": "decay", "b": "no"}, r"mask\['b'\] is 'no': expected True or False"),
        ({"w": True, "b": 0}, r"mask\['b'\] is 0: expected True or False"),
        ("*.w", r"mask is '\*.w': expected True or False"),
        (lambda params: "w", "mask is 'w': expected True or False"),
        ({"w": np.ones(2, bool), "b": True}, r"mask\['w'\] is array\(\[ True,  True\]\): expected True or False"),
        ({"w": True}, "the mask has another structure than the parameters"),
    ],
)
def test_wrong_masks(jax: Any, ours: Any, mask: Any, text: str) -> None:
    params = {"w": jax.numpy.ones((2, 3)), "b": jax.numpy.ones(3)}
    with pytest.raises((TypeError, StructureError), match=f"^{text}"):
        ours.adamw(0.1, mask=mask).init(params)


def test_masks_of_arrays_of_one_bool(jax: Any, ours: Any) -> None:
    params = {"w": jax.numpy.ones(2), "b": jax.numpy.ones(2)}
    grads = jax.tree.map(jax.numpy.ones_like, params)
    mask = {"w": jax.numpy.array(True), "b": np.False_}
    updates = [
        tx.update(grads, tx.init(params), params)[0]
        for tx in (ours.adamw(0.1, weight_decay=0.5, mask=each) for each in (mask, {"w": True, "b": False}))
    ]
    jax.tree.map(np.testing.assert_array_equal, *updates)
    assert float(updates[0]["w"][0]) < float(updates[0]["b"][0])


@pytest.mark.parametrize("name", ["adamw", "adam", "sgd", "muon"])
@pytest.mark.parametrize("value", ["yes", 1, None])
def test_nesterov_that_is_no_flag(ours: Any, name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"^nesterov is {value!r}: expected True or False"):
        getattr(ours, name)(0.1, nesterov=value)


def test_chains_schedules_and_masks(jax: Any, optax: Any, ours: Any) -> None:
    trees = [*draws(jax)]
    rate = optax.warmup_cosine_decay_schedule(0.0, 0.1, 2, 8)
    mask = lambda params: jax.tree.map(lambda p: p.ndim > 1, params)  # noqa: E731
    pairs = [
        (optax.chain(optax.clip_by_global_norm(1.0), make.adamw(rate), optax.scale(0.5)) for make in (ours, optax)),
        (make.adamw(0.1, weight_decay=0.1, mask=mask) for make in (ours, optax)),
        (make.adamw(0.1, weight_decay=0.1, mask={"w": False, "layers": True}) for make in (ours, optax)),
        (make.adadelta(0.1, weight_decay=0.1, weight_decay_mask=mask) for make in (ours, optax)),
        (make.adamaxw(0.1, weight_decay=0.1, mask=mask) for make in (ours, optax)),
        (make.lion(rate, weight_decay=optax.linear_schedule(0.1, 0.0, 5)) for make in (ours, optax)),
        (optax.masked(make.adam(0.1), mask) for make in (ours, optax)),
        (optax.masked(make.adamw(0.1, mask=mask), {"w": True, "layers": False}) for make in (ours, optax)),
        (
            optax.masked(make.sgd(0.1), mask=lambda params: jax.tree.map(lambda p: False, params))
            for make in (ours, optax)
        ),
        (optax.flatten(make.adam(0.1)) for make in (ours, optax)),
        (optax.apply_if_finite(make.adam(0.1), 3) for make in (ours, optax)),
        (
            optax.multi_transform({"a": make.adam(0.1), "b": make.sgd(0.2)}, {"w": "a", "layers": "b"})
            for make in (ours, optax)
        ),
    ]
    for each in pairs:
        found, expected = (stepped(jax, optax, tx, trees[:4]) for tx in each)
        for here, there in zip(found, expected, strict=True):
            assert distance(jax, here, there) < 2e-5  # as in test_updates_are_optax_s


def test_a_schedule_of_ours_and_one_of_optax(jax: Any, optax: Any, ours: Any) -> None:
    trees = [*draws(jax)]
    own = stepped(jax, optax, ours.sgd(schedules.linear(0.1, 0.0, 10)), trees)
    theirs = stepped(jax, optax, ours.sgd(optax.linear_schedule(0.1, 0.0, 10)), trees)
    for a, b in zip(own, theirs, strict=True):
        assert distance(jax, a, b) < 1e-6
    for rate in (jax.numpy.asarray(0.1), np.float32(0.1), np.asarray(0.1)):
        found = stepped(jax, optax, ours.adam(rate), trees)
        assert distance(jax, found[-1], stepped(jax, optax, ours.adam(0.1), trees)[-1]) < 1e-6


def test_steps_that_are_not_finite_are_skipped(jax: Any, optax: Any, ours: Any) -> None:
    params, g, *_ = draws(jax)
    tx = optax.apply_if_finite(ours.adam(0.1), 3)
    state = tx.init(params)
    updates, after = jax.jit(tx.update)(jax.tree.map(lambda each: each * np.nan, g), state, params)
    assert all(not np.any(np.asarray(each)) for each in jax.tree.leaves(updates))
    assert int(after.total_notfinite) == 1 and int(after.inner_state.count) == 0


# --- transformations of programs ------------------------------------------------------------------------------------------


EACH = dict(EVERY)


@pytest.mark.parametrize("name", EACH)
def test_eager_scan_and_vmap_agree(name: str, jax: Any, optax: Any, ours: Any) -> None:
    tx = getattr(ours, name)(**EACH[name])
    params, *gradients = draws(jax, count=4)
    held, state = params, tx.init(params)
    for g in gradients:
        updates, state = tx.update(g, state, held, **LOSS)
        held = optax.apply_updates(held, updates)

    def body(carry: Any, g: Any) -> Any:
        updates, state = tx.update(g, carry[1], carry[0], **LOSS)
        return (optax.apply_updates(carry[0], updates), state), None

    def scanned(params: Any, gradients: Any) -> Any:
        return jax.lax.scan(body, (params, tx.init(params)), gradients)[0]

    stacked = jax.tree.map(lambda *each: jax.numpy.stack(each), *gradients)
    twice = lambda tree: jax.tree.map(lambda array: jax.numpy.stack([array, array]), tree)  # noqa: E731
    ends, states = jax.jit(jax.vmap(scanned))(twice(params), twice(stacked))
    for k in range(2):
        end, last = (jax.tree.map(lambda array, k=k: array[k], tree) for tree in (ends, states))
        assert distance(jax, end, held) < 1e-4
        assert int(last.count) == int(state.count) == len(gradients)


def test_a_second_step_compiles_nothing(jax: Any, ours: Any) -> None:
    params, *gradients = draws(jax)
    tx, traces = ours.adamw(schedules.cosine(0.1, 10)), []

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params: Any, state: Any, g: Any) -> Any:
        traces.append(1)
        return tx.apply(g, state, params)

    state = tx.init(params)
    for g in gradients:
        params, state = step(params, state, g)
    assert len(traces) == 1 and int(state.count) == len(gradients)


def test_one_array_at_two_paths_is_two_parameters(jax: Any, ours: Any) -> None:
    """As it is under jit, where an array has no identity."""
    zeros = jax.numpy.zeros(2)
    params, g = {"a": zeros, "b": zeros}, {"a": jax.numpy.ones(2), "b": -jax.numpy.ones(2)}
    tx = ours.sgd(0.5)
    for update in (tx.update, jax.jit(tx.update)):
        updates, _ = update(g, tx.init(params), params)
        np.testing.assert_array_equal(updates["a"], [-0.5, -0.5])
        np.testing.assert_array_equal(updates["b"], [0.5, 0.5])


# --- any optimizer -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, make in OPTIMIZERS.items() if "noise" not in make()._rule.supplied])
def test_any_optimizer_is_a_transformation(name: str, jax: Any, optax: Any, ours: Any, precision: Any) -> None:
    with precision(True):
        params, *gradients = draws(jax, "float64")
        opt = OPTIMIZERS[name]()
        expected, state = params, opt.init(params)
        for g in gradients:
            expected, state = opt.apply(expected, g, state)
        found = stepped(jax, optax, ours.transformation(OPTIMIZERS[name]()), [params, *gradients])[-1]
        assert distance(jax, found, expected) < (1e-7 if name in SINGLE else 1e-10)


@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.AdamLRD(0.1, dropout_rate=0.5, seed=3),
        lambda: optim.chain(optim.GradientNoise(0.1), optim.SGD(0.1)),
    ],
)
def test_noise_under_jit(make: Any, jax: Any, optax: Any, ours: Any) -> None:
    trees = [*draws(jax)]
    tx = ours.transformation(make())
    found = stepped(jax, optax, tx, trees)
    held, state = trees[0], tx.init(trees[0])
    for g in trees[1:]:
        updates, state = tx.update(g, state, held)
        held = optax.apply_updates(held, updates)
    assert distance(jax, found[-1], held) < 1e-4
    assert distance(jax, found[0], found[1]) > 1e-2  # other numbers in each step


def test_groups_chains_partitions_and_frozen_parameters(jax: Any, optax: Any, ours: Any) -> None:
    params, g, *_ = draws(jax)
    tx = ours.transformation(optim.SGD(1.0, groups={"layers.0.*": {"learning_rate": 0.5}}))
    updates, state = jax.jit(tx.update)(g, tx.init(params), params)
    np.testing.assert_array_equal(updates["w"], -g["w"])
    np.testing.assert_array_equal(updates["layers"][0]["b"], -0.5 * g["layers"][0]["b"])
    tx = ours.transformation(optim.SGD(1.0, groups={"layers.*": None}))
    updates, state = jax.jit(tx.update)(g, tx.init(params), params)
    np.testing.assert_array_equal(updates["layers"][0]["b"], np.zeros(7))
    new, _ = tx.apply(g, tx.init(params), params)
    np.testing.assert_array_equal(new["layers"][0]["b"], params["layers"][0]["b"])
    tx = ours.transformation(optim.partition({"w": optim.Adam(0.1), "*": optim.SGD(0.1, 0.9)}))
    updates, state = jax.jit(tx.update)(g, tx.init(params), params)
    assert state.slots["v"]["layers"] == [{"b": None}]
    np.testing.assert_allclose(updates["w"], -0.1 * np.sign(g["w"]), rtol=1e-5)
    averaging = ours.transformation(optim.chain(optim.SGD(1.0), optim.EMA(0.5)))
    updates, state = averaging.update(g, averaging.init(params), params)
    expected = params["w"] - 0.5 * g["w"]
    np.testing.assert_allclose(averaging.averaged_parameters(state, params)["w"], expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["schedule_free_sgd", "schedule_free_adamw"])
def test_the_average_of_schedule_free_rules(name: str, jax: Any, optax: Any, ours: Any) -> None:
    params, *gradients = draws(jax)
    found, expected = [], []
    for make, ends in ((ours, found), (optax.contrib, expected)):
        tx = getattr(make, name)(0.1)
        held, state = params, tx.init(params)
        for g in gradients:
            updates, state = jax.jit(tx.update)(g, state, held)
            held = optax.apply_updates(held, updates)
        is_ours = make is ours
        average = tx.averaged_parameters if is_ours else optax.contrib.schedule_free_eval_params
        ends.append(jax.jit(average)(state, held))
    assert distance(jax, found[0], expected[0]) < 1e-5


def test_parameters_of_other_kinds(jax: Any, ours: Any) -> None:
    tx = ours.adam(0.1)
    params = {"count": jax.numpy.arange(3), "w": jax.numpy.ones(2), "none": None, "s": jax.numpy.ones(())}
    state = tx.init(params)
    updates, state = jax.jit(tx.update)(params, state, params)
    np.testing.assert_array_equal(updates["count"], np.zeros(3, np.int32))
    assert updates["count"].dtype == params["count"].dtype and updates["none"] is None
    assert state.slots["m"]["count"] is None
    updates, _ = tx.update(jax.numpy.ones(3), tx.init(jax.numpy.ones(3)), jax.numpy.ones(3))
    np.testing.assert_allclose(updates, -0.1 * np.ones(3), rtol=1e-5)
    nothing = tx.init({})
    assert tx.update({}, nothing, {})[0] == {}


# --- options of steps that leave parameters as they are --------------------------------------------------------------------


STEPS_THAT_LEAVE_SOME: dict[str, Any] = {
    "accumulate": lambda: optim.AdamW(0.1, accumulate=2),
    "skip": lambda: optim.AdamW(0.1, nonfinite="skip"),
    "loss_scale": lambda: optim.AdamW(0.1, loss_scale=optim.LossScale(8.0, factor=1.0)),
    "lazy": lambda: optim.AdamW(0.1, sparse="lazy"),
    "catch_up": lambda: optim.AdamW(0.1, sparse="catch_up"),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", STEPS_THAT_LEAVE_SOME)
def test_options_have_the_numbers_of_update(jax: Any, ours: Any, name: str, compiled: bool) -> None:
    opt, model = STEPS_THAT_LEAVE_SOME[name](), {"w": np.ones((6, 4), np.float32), "b": np.ones(3, np.float32)}
    tx = ours.transformation(STEPS_THAT_LEAVE_SOME[name]())
    displaced = stepped = {key: jax.numpy.asarray(array) for key, array in model.items()}
    state = other = tx.init(stepped)
    update, apply = (jax.jit(tx.update), jax.jit(tx.apply)) if compiled else (tx.update, tx.apply)
    for step in range(5):
        random = np.random.default_rng(step)
        grads: Any = {key: random.standard_normal(array.shape).astype(np.float32) for key, array in model.items()}
        if step == 2 and name in ("skip", "loss_scale"):
            grads["b"][0] = np.nan
        if step > 2 and name in ("lazy", "catch_up") and not compiled:
            grads["w"] = SparseRows(np.array([1, 3]), grads["w"][:2], (6, 4))
        of_jax = {key: g if isinstance(g, SparseRows) else jax.numpy.asarray(g) for key, g in grads.items()}
        of_jax = {key: g.map(jax.numpy.asarray) if isinstance(g, SparseRows) else g for key, g in of_jax.items()}
        stepped, state = apply(of_jax, state, stepped)
        updates, other = update(of_jax, other, displaced)
        displaced = {key: array + updates[key] for key, array in displaced.items()}
        opt.update(model, grads)
        assert int(state.count) == int(other.count) == opt.step
    for key, array in model.items():
        np.testing.assert_allclose(stepped[key], array, rtol=1e-6)
        np.testing.assert_allclose(displaced[key], array, rtol=1e-6)


def test_gradients_that_are_not_finite_raise_outside_of_compiled_functions(jax: Any, ours: Any) -> None:
    tx, params = ours.transformation(optim.SGD(0.1, nonfinite="raise")), {"w": jax.numpy.ones(2)}
    bad = {"w": jax.numpy.array([1.0, np.nan])}
    for take in (tx.update, tx.apply):
        with pytest.raises(NonFiniteError, match="^w: the gradient has infinities or NaN"):
            take(bad, tx.init(params), params)
    updates, state = jax.jit(tx.update)(bad, tx.init(params), params)
    assert int(state.count) == 0 and not np.any(updates["w"])


# --- errors --------------------------------------------------------------------------------------------------------------


def test_errors_name_the_argument(jax: Any, ours: Any) -> None:
    params, g, *_ = draws(jax)
    tx = ours.adam(0.1)
    state = tx.init(params)
    for wrong, kind, message in (
        (lambda: tx.update(g, state), ValueError, "params is None: expected the parameters"),
        (lambda: tx.update({"w": g["w"]}, state, params), StructureError, "updates have another structure"),
        (lambda: tx.update(g, ours.State(state.count, {"m": 1}), params), StructureError, "slots m have another"),
        (lambda: tx.init({"w": jax.numpy.ones(2, "complex64")}), DtypeError, "w: the parameter has dtype complex64"),
        (lambda: ours.adam(-0.1), ValueError, "learning_rate is -0.1: expected a number"),
        (lambda: ours.adam(0.1, beta=0.9), TypeError, "beta"),
        (lambda: ours.adam(), TypeError, "learning_rate"),
        (lambda: ours.transformation(optim.LBFGS()), TypeError, "LBFGS evaluates the loss"),
        (lambda: ours.transformation(3), TypeError, "found 3: expected an optimizer"),
        (lambda: ours.transformation(optim.SGD(0.1, zero_gradients=True)), ValueError, "zero_gradients is True"),
    ):
        with pytest.raises(kind, match=message):
            wrong()
    with pytest.raises(Exception, match=r"layers\.0\.b: gradient has shape"):
        tx.update({**g, "layers": [{"b": g["w"]}]}, state, params)


def test_a_guarded_rule_skips_steps(jax: Any, ours: Any) -> None:
    def guarded(xp: Any, p: Any, g: Any, *, guard: Any, learning_rate: float = 0.1) -> Any:
        guard(xp.sum(g) > 0)
        return p - learning_rate * g

    tx, params = ours.transformation(optim.define(guarded, elementwise=False)()), {"w": jax.numpy.ones(3)}
    updates, state = tx.update({"w": -jax.numpy.ones(3)}, tx.init(params), params)
    assert int(state.count) == 0 and not np.any(updates["w"])
    updates, state = tx.update({"w": jax.numpy.ones(3)}, state, params)
    assert int(state.count) == 1
    np.testing.assert_allclose(updates["w"], -0.1 * np.ones(3), rtol=1e-6)


@pytest.mark.parametrize("missing", ["jax", "optax"])
def test_without_a_library_the_import_says_what_to_install(missing: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; import oxigrad; import oxigrad.optax"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert found.returncode == 1
    assert "ModuleNotFoundError: oxigrad.optax needs JAX and optax: python -m pip install optax" in found.stderr
