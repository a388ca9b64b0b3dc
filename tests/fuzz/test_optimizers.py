"""Random configurations of all optimizers against PyTorch, optax and Keras, in double precision.

Each test goes through a fixed number of seeds, or with ``--fuzz-seconds=N`` through new ones for N seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from random_optimizers import (
    FUSED,
    IN_KERAS,
    IN_OPTAX,
    IN_TORCH,
    STEPS,
    TOLERANCES,
    Draw,
    keras_clips,
    optax_clips,
)

import oxigrad as ox
from optimizers import like_torch
from oxigrad import optim

# The shapes of parameters: few, since JAX compiles each op once for each shape.
SHAPES: dict[str, tuple[int, ...]] = {"number": (), "vector": (3,), "matrix": (4, 3), "cube": (2, 3, 4)}
Tree = dict[str, Any]


@pytest.fixture
def seeds(request: pytest.FixtureRequest) -> Callable[[int], Iterator[int]]:
    """The seeds of one test: so many, or as many as there is time for."""
    seconds = request.config.getoption("--fuzz-seconds")

    def numbers(count: int) -> Iterator[int]:
        end, seed = time.monotonic() + (seconds or 0.0), 0
        while time.monotonic() < end if seconds else seed < count:
            yield seed
            seed += 1

    return numbers


def problem(d: Draw, shapes: dict[str, tuple[int, ...]]) -> tuple[Tree, list[Tree]]:
    """A model of some of the shapes, and a gradient for each step; some are zero, in part or in whole."""
    scale = d.one_of(1.0, d.log(1e-2, 1e2))

    def draw(name: str) -> Any:
        kept = d.random.random(shapes[name]) < (d.one_of(0.0, 0.7, 1.0, 1.0, 1.0) if d.zeros else 1.0)
        return np.asarray(scale * d.random.standard_normal(shapes[name]) * kept)

    names = [name for name in shapes if d.flag()] or [next(iter(shapes))]
    return {name: draw(name) for name in names}, [{name: draw(name) for name in names} for _ in range(STEPS)]


def follow(
    opt: Any, model: Tree, gradients: list[Tree], step: Callable[[Tree], Tree], what: str, rtol: float = 1e-9
) -> None:
    """Takes the same steps with ours and with theirs: ``step`` returns their parameters."""
    scales = {name: np.max(np.abs(value), initial=1e-3) for name, value in model.items()}
    for t, grads in enumerate(gradients, 1):
        expected = step(grads)
        model = opt.update(model, grads)
        for name, value in expected.items():
            scales[name] = max(scales[name], np.max(np.abs(value), initial=0.0))
            message = f"{what}: {name}, step {t}, {opt!r}"
            np.testing.assert_allclose(model[name], value, rtol=rtol, atol=0.1 * rtol * scales[name], err_msg=message)


# --- PyTorch -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def torch(library: Callable[[str], Any]) -> Iterator[Any]:
    """PyTorch, with the numbers that it keeps beside arrays in double precision."""
    module = library("torch")
    before = module.get_default_dtype()
    module.set_default_dtype(module.float64)
    yield module
    module.set_default_dtype(before)


def random_shapes(d: Draw) -> dict[str, tuple[int, ...]]:
    """Parameters of no to three axes."""
    return {f"w{axes}": tuple(map(int, d.random.integers(1, 6, axes))) for axes in range(4)}


def groups_of_torch(d: Draw, name: str, names: list[str]) -> list[tuple[list[str], dict[str, Any]]]:
    """The arguments of one or two groups, which are of the same parts in ours."""
    first = {"lr": d.values[0], **IN_TORCH[name](d)}
    if len(names) == 1 or d.flag():
        return [(names, first)]
    while True:
        second = {"lr": d.log(1e-3, 0.3), **IN_TORCH[name](d)}
        # These are parts of our chain, and torch's Adagrad has one initial value for all groups.
        common = ("maximize", "decoupled_weight_decay", "initial_accumulator_value")
        second |= {key: first[key] for key in common if key in first}
        if like_torch(name, first).hyperparameters.keys() == like_torch(name, second).hyperparameters.keys():
            return [(names[1:], first), (names[:1], second)]


@pytest.mark.parametrize("name", IN_TORCH)
def test_torch(name: str, torch: Any, seeds: Any) -> None:
    for seed in seeds(25):
        d = Draw(seed)
        if name == "Rprop":
            d.constant()  # it is a first step size
        model, gradients = problem(d, random_shapes(d))
        theirs = {key: torch.tensor(value, requires_grad=True) for key, value in model.items()}
        found = groups_of_torch(d, name, list(model))
        given = [{"params": [theirs[key] for key in keys], **values} for keys, values in found]
        way = d.one_of({}, {"foreach": True}, {"fused": True} if name in FUSED else {"foreach": False})
        peer = getattr(torch.optim, name)(given, **found[0][1], **way)
        opt = like_torch(name, found[0][1])
        opt.learning_rate = d.rate
        opt.groups = {key: like_torch(name, values).hyperparameters for keys, values in found[1:] for key in keys}
        rates = iter(d.values)

        def step(grads: Tree) -> Tree:
            peer.param_groups[0]["lr"] = next(rates)  # noqa: B023 - called within the loop
            for key, value in grads.items():
                theirs[key].grad = torch.tensor(value)  # noqa: B023
            peer.step()  # noqa: B023
            return {key: value.detach().numpy() for key, value in theirs.items()}  # noqa: B023

        follow(opt, model, gradients, step, f"seed {seed}: {found} {way}")


@pytest.mark.parametrize("name", ["SGD", "Adagrad", "SparseAdam"])
def test_torch_of_sparse_gradients(name: str, torch: Any, seeds: Any) -> None:
    for seed in seeds(25):
        d = Draw(seed)
        d.constant()
        rows, columns = map(int, d.random.integers(1, 7, 2))
        start = d.random.standard_normal((rows, columns))
        p = torch.tensor(start, requires_grad=True)
        way = d.one_of("lazy", "dense")
        if name == "SGD":
            peer, opt = torch.optim.SGD([p], d.rate), optim.SGD(d.rate, sparse=way)
        elif name == "Adagrad":
            given = {"lr_decay": d.decay(), "initial_accumulator_value": d.decay(), "eps": d.epsilon()}
            peer = torch.optim.Adagrad([p], d.rate, **given)
            opt = optim.Adagrad(d.rate, *given.values(), compat="torch", sparse=way)
        else:
            b1, b2, epsilon = d.beta(), d.beta(), d.epsilon()
            peer = torch.optim.SparseAdam([p], d.rate, (b1, b2), epsilon)
            opt = optim.Adam(d.rate, b1, b2, epsilon, epsilon_mode="hat", sparse="lazy")
        model = {"w": start.copy()}
        for _ in range(STEPS):
            indices = d.random.integers(0, rows, d.random.integers(1, 5))
            values = d.random.standard_normal((len(indices), columns))
            p.grad = torch.sparse_coo_tensor(indices[None], values, (rows, columns), check_invariants=True)
            with torch.sparse.check_sparse_tensor_invariants():
                peer.step()
            model = opt.update(model, {"w": ox.SparseRows(indices, values, (rows, columns))})
            np.testing.assert_allclose(model["w"], p.detach().numpy(), 1e-9, 1e-12, err_msg=f"seed {seed}: {opt!r}")


# --- optax ---------------------------------------------------------------------------------------------------------------


def where_it_applies(name: str) -> dict[str, tuple[int, ...]]:
    """The shapes that an optimizer of optax or Keras has the same rule for."""
    if name.lower() == "muon":
        return {"matrix": (4, 3), "wide": (2, 5)}
    if name == "sm3":
        return {key: shape for key, shape in SHAPES.items() if shape}
    return SHAPES


@pytest.mark.parametrize("name", IN_OPTAX)
def test_optax(name: str, library: Callable[[str], Any], precision: Any, seeds: Any) -> None:
    jax, optax = library("jax"), library("optax")
    as_schedule = lambda values: lambda count: jax.numpy.asarray(values)[count]  # noqa: E731
    with precision(True):
        for seed in seeds(2):
            d = Draw(seed, as_schedule)
            d.zeros = name != "prodigy"
            model, gradients = problem(d, where_it_applies(name))
            parts, transformation = IN_OPTAX[name](d, optax)
            before, clips = optax_clips(d, optax)
            if {n for part in before for n in part._declared} & {n for part in parts for n in part._declared}:
                before, clips = [], []  # names of a chain's hyperparameters are unique
            every = d.one_of(1, 1, 2)
            opt = optim.chain(*before, *parts, accumulate=every)
            peer = optax.chain(*clips, transformation)
            params = jax.tree.map(jax.numpy.asarray, model)
            state = peer.init(params)

            waiting: list[Tree] = []

            def step(grads: Tree) -> Tree:
                nonlocal params, state, waiting
                waiting.append(grads)
                if len(waiting) == every:  # noqa: B023 - optax's MultiSteps divides in single precision
                    mean = {key: jax.numpy.asarray(np.mean([g[key] for g in waiting], 0)) for key in grads}
                    updates, state = peer.update(mean, state, params)  # noqa: B023
                    params, waiting = optax.apply_updates(params, updates), []
                return jax.tree.map(np.asarray, params)

            rtol = TOLERANCES.get(f"optax {name}", 1e-9)
            follow(opt, model, gradients, step, f"seed {seed}: {name}, {before}", rtol)


# --- Keras ---------------------------------------------------------------------------------------------------------------


def schedule_of_keras(keras: Any, values: list[float]) -> Any:
    class Table(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step: Any) -> Any:
            return keras.ops.take(keras.ops.convert_to_tensor(values, "float64"), keras.ops.cast(step, "int32"))

    return Table()


@pytest.mark.parametrize("name", IN_KERAS)
def test_keras(name: str, keras: Any, seeds: Any) -> None:
    make, has_decay = IN_KERAS[name]
    for seed in seeds(3):
        d = Draw(seed, lambda values: schedule_of_keras(keras, values))
        model, gradients = problem(d, where_it_applies(name))
        made, given = make(d)
        (before, clips), decay, average = keras_clips(d), d.decay(), d.one_of(None, d.uniform())
        average = None if name == "ScheduleFreeAdamW" else average  # it has its own
        decay = decay if has_decay else 0.0
        every = 1 if average is not None else d.one_of(None, 2)
        d.constant("keras: schedules count batches", where=every == 2)
        after = [optim.WeightDecay(decay)] if decay else []
        after += [] if average is None else [optim.EMA(average, compat="keras")]
        opt = optim.chain(*before, made, *after, accumulate=every or 1)
        options = {"weight_decay": decay} if decay else {}
        options |= {"use_ema": True, "ema_momentum": average} if average is not None else {}
        peer = getattr(keras.optimizers, name)(
            d.theirs, **given, **clips, **options, gradient_accumulation_steps=every if every == 2 else None
        )
        rtol = TOLERANCES.get(f"keras {name}", 1e-9)
        variables = {key: keras.Variable(value, dtype="float64", name=key) for key, value in model.items()}

        def step(grads: Tree) -> Tree:
            peer.apply([keras.ops.convert_to_tensor(g) for g in grads.values()], list(variables.values()))  # noqa: B023
            return {key: keras.ops.convert_to_numpy(value) for key, value in variables.items()}  # noqa: B023

        follow(opt, model, gradients, step, f"seed {seed}: {name} {given} {clips} {options}", rtol)
        if average is not None:
            for key, value in zip(variables, peer._model_variables_moving_average, strict=True):
                found = opt.averaged_parameters(model)[key]
                np.testing.assert_allclose(
                    found, keras.ops.convert_to_numpy(value), rtol, rtol / 1e3, err_msg=f"seed {seed}"
                )


# --- differences by design -----------------------------------------------------------------------------------------------

RATES = [0.1, 0.2, 0.05, 0.3, 0.1]
BY_DESIGN_IN_OPTAX: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "optax: schedule-free schedules": (
        lambda rate: optim.ScheduleFreeSGD(rate, compat="optax"),
        lambda optax, rate: optax.contrib.schedule_free_sgd(rate),
    ),
}


@pytest.mark.parametrize("name", BY_DESIGN_IN_OPTAX)
def test_schedules_that_optax_applies_elsewhere(name: str, library: Any, precision: Any) -> None:
    """Equal while the learning rate is constant, and not where it changes."""
    jax, optax = library("jax"), library("optax")
    ours, theirs = BY_DESIGN_IN_OPTAX[name]
    with precision(True):
        for rate, schedule, is_equal in (
            (0.1, 0.1, True),
            (lambda step: RATES[int(step)], lambda count: jax.numpy.asarray([*RATES, 0.1])[count], False),
        ):
            opt, peer, model = ours(rate), theirs(optax, schedule), {"w": np.ones(3)}
            params = {"w": jax.numpy.ones(3)}
            state = peer.init(params)
            for t in range(STEPS):
                g = np.array([1.0, -2.0, 0.5]) * (t - 1.5)
                updates, state = peer.update({"w": jax.numpy.asarray(g)}, state, params)
                params, model = optax.apply_updates(params, updates), opt.update(model, {"w": g})
            difference = np.max(np.abs(model["w"] - np.asarray(params["w"])))
            assert difference < 1e-12 if is_equal else difference > 1e-4
