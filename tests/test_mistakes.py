"""Mistakes of newcomers: the text of the error names the argument, what was found, and what to write."""

import dataclasses
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.integrate

import oxigrad as ox
from oxigrad import distributed, optim, schedules, xp
from oxigrad.ops.protocols.other_libraries import FUNCTIONS

X: Any = np.array([1.0, 2.0])
NUMBER: Any = 2.0
NUMBERS: Any = X
# The modules without their types: a type checker names these mistakes itself.
NAMES: Any = xp
SCHEDULES: Any = schedules
PACKAGE: Any = ox
OPTIMIZERS: Any = optim
DISTRIBUTED: Any = distributed


def cubes(x: Any) -> Any:
    return xp.sum(x**3)


def descent(xp: Any, p: Any, g: Any, *, lr: Any = 0.1) -> Any:
    return p - lr * g


class Plain:
    """A class that is no container."""

    def __init__(self) -> None:
        self.w = np.ones(2)


def model() -> dict[str, Any]:
    return {"w": np.ones(2)}


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "hvp without tuples": (lambda: ox.hvp(cubes, X, X), TypeError, "hvp: primals is ndarray: expected a tuple"),
    "jvp without tuples": (lambda: ox.jvp(cubes, X, X), TypeError, "jvp: primals is ndarray: expected a tuple"),
    "jvp of a number": (lambda: ox.jvp(lambda x: x * x, NUMBER, NUMBER), TypeError, "jvp: primals is float: expected a tuple"),
    "a tangent without a tuple": (lambda: ox.jvp(cubes, (X,), X), TypeError, "jvp: tangents is ndarray"),
    "a list of gradients": (
        lambda: optim.SGD(0.1).update(model(), [X]),
        ox.StructureError,
        "w: the gradient is missing: expected an array, or None for no update; found 0",
    ),
    "optax's order, with a part of the gradients": (
        lambda: optim.Adam(0.1).update({"w": X}, {"w": X, "b": X}),
        ox.StructureError,
        "b: there is a gradient, but no parameter in the model",
    ),
    "optax's order, with a gradient of None": (
        lambda: optim.Adam(0.1).update({"w": X, "b": None}, {"w": X, "b": X}),
        ox.StructureError,
        "b: there is a gradient, but no parameter in the model",
    ),
    "optax's order, with another shape": (
        lambda: optim.Adam(0.1).update({"w": np.ones((1, 2))}, model()),
        ox.ShapeError,
        "w: gradient has shape (2,), the parameter (1, 2)",
    ),
    "optax's order, with another dtype": (
        lambda: optim.Adam(0.1).update({"w": np.ones(2, np.float32)}, model()),
        ox.DtypeError,
        "w: gradient has dtype float64, the parameter float32",
    ),
    "optax's order, with a state": (
        lambda: optim.Adam(0.1).update(model(), optim.Adam(0.1).init(model()), model()),  # type: ignore[misc]
        TypeError,
        "Adam.update: found 3 arguments, as optax gives (updates, state, params): expected (model, grads); optax takes oxigrad.optax.transf",
    ),
    "optax's order, with a state, of a wrapper": (
        lambda: distributed.LargeBatch(optim.SGD(0.1)).update(model(), optim.SGD(0.1).init(model()), model()),  # type: ignore[misc]
        TypeError,
        "LargeBatch(SGD).update: found 3 arguments, as optax gives (updates, state, params)",
    ),
    "a regular expression of a part of a path": (
        lambda: optim.Adam(0.1, groups={re.compile("w"): {"learning_rate": 1.0}}).build({"net": {"w": X}}),
        ox.StructureError,
        "the pattern 'w' matches no parameter of the model, but a part of net.w: a regular expression matches the whole path, as '.*(w).*' does",
    ),
    "a glob of a part of a path": (
        lambda: optim.partition({"bias": optim.SGD(0.1), "*": optim.Adam(0.1)}).build({"net.bias": X}),
        ox.StructureError,
        "but a part of \"net.bias\": a glob matches the whole path, as '*bias*' does",
    ),
    "a gradient that is a list": (
        lambda: optim.SGD(0.1).update(model(), {"w": [1.0, 2.0]}),
        ox.StructureError,
        "w: the gradient is missing: expected an array, or None for no update; found w.0, w.1",
    ),
    "a plain class as model": (
        lambda: optim.SGD(0.1).update(Plain(), Plain()),
        ox.StructureError,
        "Plain is no container: make it a dataclass, or register it by ox.tree.register",
    ),
    "a plain class as argument": (
        lambda: ox.grad(lambda m: xp.sum(m.w))(Plain()),
        ox.DtypeError,
        "found Plain; to be a tree, its class is made a dataclass or registered by ox.tree.register",
    ),
    "a model in the constructor": (
        lambda: optim.Adam(model(), 1e-3),  # type: ignore[call-arg]
        TypeError,
        "the parameters are an argument of opt.update(model, grads)",
    ),
    "lr": (lambda: optim.Adam(lr=1e-3), TypeError, "lr: use learning_rate"),  # type: ignore[call-arg]
    "a function of torch": (lambda: NAMES.relu, AttributeError, "has no attribute 'relu': use xp.maximum(x, 0)"),
    "another function of torch": (lambda: NAMES.sigmoid, AttributeError, "use xp.special.expit(x)"),
    "a method of torch": (
        lambda: ox.grad(lambda x: xp.sum(x.detach()))(X),
        AttributeError,
        "a variable has no attribute 'detach': use ox.stop_gradient(x)",
    ),
    "a batched value in a function of JAX": (
        lambda: ox.vmap(lambda x: pytest.importorskip("jax").numpy.sum(x))(np.ones((2, 3))),
        NotImplementedError,
        "a function of JAX got a batched value of oxigrad: expected the function of oxigrad.xp with its name",
    ),
    "a batched value in a function of PyTorch": (
        lambda: ox.vmap(lambda x: pytest.importorskip("torch").sum(x))(np.ones((2, 3))),
        ox.DerivativeError,
        "torch.sum takes tensors, and found a batched value: xp.sum takes variables over tensors",
    ),
    "to_numpy()": (
        lambda: ox.grad(lambda x: xp.sum((pytest.importorskip("pandas").Series(X) * x).to_numpy()))(X),
        AttributeError,
        "the result of pandas and a variable is a variable",
    ),
    "numpy()": (lambda: ox.grad(lambda x: xp.sum(x.numpy()))(X), AttributeError, "use ox.stop_gradient(x)"),
    "backward()": (lambda: ox.grad(lambda x: cubes(x).backward())(X), AttributeError, "ox.grad(f)(x)"),
    "a scheduler of torch": (
        lambda: SCHEDULES.CosineAnnealingLR,
        AttributeError,
        "use schedules.cosine",
    ),
    "options of a part": (
        lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.AdamW(groups={"w": {"learning_rate": 0.1}})),
        ValueError,
        "AdamW: groups must be set on the chain instead",
    ),
    "a model that is an array": (
        lambda: optim.SGD(0.1).update(np.ones(2), np.ones(3)),
        ox.ShapeError,
        "the root: gradient has shape (3,), the parameter (2,)",
    ),
    "an array that is not finite": (
        lambda: optim.SGD(0.1, nonfinite="raise").update(np.ones(2), np.array([np.nan, 1.0])),
        ox.NonFiniteError,
        "the root: the gradient has infinities or NaN",
    ),
    "a read-only gradient of the root": (
        lambda: optim.SGD(0.1).update(np.ones(2), 3.0),
        ox.StructureError,
        "the root: the gradient is float: expected an array",
    ),
    "a value in place of the loss": (lambda: optim.SGD(0.1).minimize(cubes(X), model()), TypeError, "minimize: found np.float64(9.0), expected a function"),
    "model before loss": (lambda: OPTIMIZERS.LBFGS().minimize(model(), cubes), TypeError, "minimize: found {'w': array([1., 1.])}, expected a function"),
    "a list of parts": (lambda: OPTIMIZERS.chain([optim.Lion()]), TypeError, "expected optimizers of one rule, transforms and at most one partition: write chain(*parts)"),
    "a class as a part": (lambda: OPTIMIZERS.chain(optim.SGD), TypeError, "at most one partition: write SGD(...)"),
    "a function of xp": (lambda: PACKAGE.cumsum, AttributeError, "module 'oxigrad' has no attribute 'cumsum': use oxigrad.xp.cumsum"),
    "an optimizer of optim": (lambda: PACKAGE.Adam, AttributeError, "module 'oxigrad' has no attribute 'Adam': use oxigrad.optim.Adam"),
    "arguments beside the function": (lambda: PACKAGE.grad(cubes, X), TypeError, "argnums is array([1., 2.]): expected an int, or a tuple of them; the transformed function takes the arguments, as in grad(f)(x)"),
    "arguments beside the function of vmap": (lambda: PACKAGE.vmap(cubes, X), TypeError, "vmap: in_axes is array([1., 2.]): expected an int, None, or a tree of these"),
    "arguments of check_grads without a tuple": (lambda: ox.testing.check_grads(cubes, X), TypeError, "check_grads: args is ndarray: expected a tuple, one for each argument"),
    "a class of schedules": (lambda: OPTIMIZERS.SGD(schedules.cosine), TypeError, "learning_rate is <class 'oxigrad.schedules.curves.cosine'>: expected a number or a schedule, a function of the step"),
    "a rate that takes no step": (lambda: OPTIMIZERS.SGD(lambda: 0.1), TypeError, "expected a number or a schedule, a function of the step"),
    "a rate of two arguments": (lambda: OPTIMIZERS.SGD(lambda step, rate: rate), TypeError, "expected a number or a schedule, a function of the step"),
    "a class within a schedule": (lambda: SCHEDULES.warmup(schedules.cosine, 5), TypeError, "warmup: schedule: found <class 'oxigrad.schedules.curves.cosine'>: expected a number"),
    "a tape of TensorFlow": (lambda: PACKAGE.GradientTape, AttributeError, "use oxigrad.Tape"),
    "a tensor of torch": (lambda: PACKAGE.tensor, AttributeError, "use arrays of NumPy, PyTorch or JAX as they are"),
    "a layer of torch": (lambda: PACKAGE.nn, AttributeError, "a model is a tree of arrays"),
    "optax's apply_updates": (lambda: OPTIMIZERS.apply_updates, AttributeError, "use opt.update(model, grads)"),
    "torch's clip_grad_norm_": (lambda: OPTIMIZERS.clip_grad_norm_, AttributeError, "use optim.chain(optim.ClipByGlobalNorm(...), optimizer)"),
    "JAX's pmap": (lambda: PACKAGE.pmap, AttributeError, "oxigrad.distributed.run starts several workers"),
    "a misspelt hyperparameter beside options": (lambda: OPTIMIZERS.define(descent, "Descent")(rate=0.1), TypeError, "Descent: unknown: rate; its hyperparameters are lr"),
    "a wrapper in a chain": (lambda: OPTIMIZERS.chain(optim.ClipByGlobalNorm(1.0), DISTRIBUTED.DataParallel(optim.SGD(0.1))), TypeError, "at most one partition: write DataParallel(chain(...))"),
    "PyTorch's DistributedDataParallel": (lambda: DISTRIBUTED.DistributedDataParallel, AttributeError, "use distributed.DataParallel(optimizer), around the optimizer"),
    "random numbers of a distribution": (lambda: NAMES.stats.norm.rvs(size=3), AttributeError, "xp.stats.norm has no attribute 'rvs': scipy.stats.norm has further functions"),
    "a rank of PyTorch's": (lambda: DISTRIBUTED.get_rank, AttributeError, "use distributed.current().rank"),
    "a call in place of a worker": (lambda: DISTRIBUTED.run(3, workers=2), TypeError, "run: found 3, expected a function of a communicator"),
    "a function that is no function, of curve_fit": (lambda: ox.scipy.curve_fit(NUMBERS, cubes, X), TypeError, "curve_fit: found array([1., 2.]), expected a function"),
    "SciPy's root": (lambda: ox.scipy.root(NUMBERS, 1.0), TypeError, "root: found array([1., 2.]), expected a function"),
    "SciPy's minimize": (lambda: ox.scipy.minimize(NUMBERS, X), TypeError, "minimize: found array([1., 2.]), expected a function"),
    "SciPy's least_squares": (lambda: ox.scipy.least_squares(NUMBERS, X), TypeError, "least_squares: found array([1., 2.]), expected a function"),
    "SciPy's quad": (lambda: xp.integrate.quad(NUMBERS, 0.0, 1.0), TypeError, "quad: found array([1., 2.]), expected a function"),
    "SciPy's odeint": (lambda: xp.integrate.odeint(NUMBERS, X, X), TypeError, "odeint: found array([1., 2.]), expected a function"),
    "SciPy's solve_ivp": (lambda: xp.integrate.solve_ivp(NUMBERS, X, X), TypeError, "solve_ivp: found array([1., 2.]), expected a function"),
    "odeint with one argument": (lambda: xp.integrate.odeint(lambda y, t, a: a * y, X, X, args=NUMBER), TypeError, "odeint: args is 2.0: expected a tuple, such as (a,)"),
    "solve_ivp with one argument": (lambda: xp.integrate.solve_ivp(lambda t, y, a: a * y, (0, 1), X, args=2.0), TypeError, "solve_ivp: args is 2.0: expected a tuple, such as (a,)"),
    "SciPy's quad of a variable": (lambda: ox.grad(lambda a: scipy.integrate.quad(lambda x: a * x, 0, 1)[0])(NUMBER), TypeError, "xp.integrate.quad is scipy.integrate.quad for variables"),
    "a root of fewer numbers": (lambda: ox.scipy.root(lambda x: x[:1], X), ox.ShapeError, "root: f returns 1 numbers: expected 2, the number of elements of x0"),
    "bounds of another shape": (lambda: ox.scipy.least_squares(lambda x: x, X, bounds=(np.zeros(3), np.ones(3))), ox.ShapeError, "bounds has a side of shape (3,): expected a number, or (2,), as in x0"),
    "SciPy's pairs of bounds": (lambda: ox.scipy.minimize(lambda x: x[0] ** 2 + x[1], [1.0, 1.0], bounds=[[0, 1], [0, 2]]), TypeError, "expected scipy.optimize.Bounds(lowest, greatest), since SciPy would read two pairs as the bounds of each number"),
    "a model of objects": (lambda: optim.SGD(0.1).update({"w": np.array([1.0, None], object)}, model()), ox.StructureError, "the model has no parameters: expected an array of floating-point dtype somewhere; found ndarray of dtype object"),
    "no rule": (lambda: optim.define(NUMBERS), TypeError, "define: found array([1., 2.]), expected a function"),
    "no rule of a transform": (lambda: optim.transform(NUMBERS), TypeError, "transform: found array([1., 2.]), expected a function"),
    "no rule to check": (lambda: ox.testing.check_rule(NUMBERS), TypeError, "check_rule: found array([1., 2.]), expected a function"),
    "no rule of a derivative": (lambda: ox.define_vjp(NUMBERS)(cubes), TypeError, "define_vjp, rule: found array([1., 2.]), expected a function"),
    "no function with a rule": (lambda: ox.define_jvp(lambda t: t)(NUMBERS), TypeError, "define_jvp: found array([1., 2.]), expected a function"),
    "L-BFGS in a partition": (lambda: optim.partition({"*": optim.LBFGS()}), TypeError, "the pattern '*': found LBFGS, which evaluates the loss: expected an optimizer that takes a step by a gradient"),
    "an optimizer that is not defined": (lambda: optim.from_config({"optimizer": "Adan2"}), ValueError, "optimizer is 'Adan2' (did you mean Adan?): expected the name of a class of oxigrad.optim"),
    "has_aux as text": (lambda: ox.grad(cubes, has_aux="no"), TypeError, "has_aux is 'no': expected True or False"),
    "has_aux as a number": (lambda: ox.value_and_grad(cubes, has_aux=1), TypeError, "has_aux is 1: expected True or False"),
    "holomorphic as text": (lambda: ox.grad(cubes, holomorphic="no"), TypeError, "holomorphic is 'no': expected True"),
    "a Jacobian that is holomorphic by text": (lambda: ox.jacobian(cubes, holomorphic="no"), TypeError, "holomorphic is 'no'"),
    "reassociate as text": (lambda: ox.record(cubes, reassociate="no"), TypeError, "reassociate is 'no': expected True or"),
    "an empty model": (lambda: optim.SGD(0.1).minimize(lambda m: 0.0, {}), ox.DtypeError, "found an empty dict"),
    "no model": (lambda: ox.grad(lambda m: 0.0)(None), ox.DtypeError, "found NoneType"),
    "integers in a model": (lambda: ox.grad(cubes)({"a": [np.arange(2), "b"]}), ox.DtypeError, "found dict with a.0: ndarray of dtype int64, a.1: str"),
    "a function of ox.tree": (lambda: PACKAGE.tree.flaten, AttributeError, "did you mean flatten?"),
    "a function of ox.testing": (lambda: PACKAGE.testing.check_grad, AttributeError, "did you mean check_grads?"),
    "a function of ox.scipy": (lambda: PACKAGE.scipy.minimise, AttributeError, "did you mean minimize?"),
    "TensorFlow's Momentum": (lambda: OPTIMIZERS.Momentum, AttributeError, "use optim.SGD(learning_rate, momentum=0.9)"),
}  # fmt: skip

TAKE_FUNCTIONS = sorted(
    name
    for name in ox.__all__
    if inspect.isfunction(each := getattr(ox, name))
    and next(iter(inspect.signature(each).parameters), None) in ("f", "residual")
)


def test_every_transform_says_that_it_takes_a_function() -> None:
    assert {"grad", "vjp", "jvp", "linearize", "vmap", "checkpoint", "custom_vjp", "jacfwd"} <= {*TAKE_FUNCTIONS}
    for name in TAKE_FUNCTIONS:
        transform: Any = getattr(ox, name)
        others = [p for p in inspect.signature(transform).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        required = [(X,) for p in others[1:] if p.default is p.empty]
        with pytest.raises(TypeError, match=rf"^{name}.*: found array\(\[1., 2.\]\), expected a function"):
            transform(X, *required)


@pytest.mark.parametrize("library", ["numpy", "torch", "jax.numpy"])
@pytest.mark.parametrize("form", ["update", "apply", "array"])
def test_gradients_before_the_model_are_refused(library: str, form: str) -> None:
    namespace = pytest.importorskip(library)
    array = (namespace.asarray if library != "torch" else namespace.tensor)([1.0, 2.0])
    params: Any = array if form == "array" else {"b": array}
    loss = lambda m: xp.sum((m if form == "array" else m["b"]) ** 2)  # noqa: E731
    opt = optim.Adam(0.1)
    state = opt.init(params)
    gradients = ox.grad(loss)(params)
    before = (gradients if form == "array" else gradients["b"]).tolist()
    step = (lambda model, grads: opt.apply(model, grads, state)) if form == "apply" else opt.update
    with pytest.raises(TypeError, match="expected the model before its gradients"):
        step(gradients, params)
    assert (gradients if form == "array" else gradients["b"]).tolist() == before
    step(params, gradients)  # the right order goes on


@pytest.mark.parametrize(
    "program",
    [
        "-xp.mean(xp.take_along_axis(xp.special.log_softmax(x, 1), labels[:, None], 1))",
        "xp.mean(xp.special.softplus(x) - x * y)",
        "xp.mean((x - y) ** 2)",
    ],
)
def test_losses_of_torch_are_what_the_advice_says(program: str, library: Any) -> None:
    functional = library("torch").nn.functional
    tensor = library("torch").tensor
    name = next(name for name, text in FUNCTIONS.items() if text == f"use {program}")
    rng = np.random.default_rng(0)
    values = {"x": rng.standard_normal((4, 3)), "y": rng.random((4, 3)), "labels": np.array([0, 2, 1, 1])}
    second = "labels" if name == "cross_entropy" else "y"
    expected = getattr(functional, name)(tensor(values["x"]), tensor(values[second]))
    found = eval(program, {"xp": xp, **values})  # noqa: S307 - a text of the table
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", MISTAKES)
def test_the_error_names_what_to_write(name: str) -> None:
    mistake, kind, text = MISTAKES[name]
    with pytest.raises(kind, match=re.escape(text)) as raised:
        mistake()
    assert not str(raised.value).startswith(":")


def test_a_tape_gives_the_gradient_of_one_variable() -> None:
    with ox.Tape() as tape:
        x = tape.watch(2.0)
        y = x * x
    assert tape.gradient(y, x) == 4.0
    assert tape.gradient(y, [x]) == [4.0]


def test_a_module_is_trained_by_the_optimizers_of_torch(library: Any) -> None:
    torch = library("torch")
    with pytest.raises(
        ox.DerivativeError,
        match=r"a module of PyTorch is trained by its own backward and the optimizers of oxigrad\.torch",
    ):
        optim.SGD(0.1).minimize(lambda m: m(torch.ones(1, 2)).sum(), torch.nn.Linear(2, 1))


def test_modules_of_equinox_are_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dataclass that refuses assignment by a method of its own, as Equinox's modules do."""

    class Module:
        def __setattr__(self, name: str, value: object) -> None:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    Module.__module__ = "equinox"

    @dataclasses.dataclass(init=False)
    class Linear(Module):
        weight: Any
        activation: Callable[[Any], Any]

        def __init__(self, weight: Any) -> None:
            object.__setattr__(self, "weight", weight)
            object.__setattr__(self, "activation", np.tanh)

    monkeypatch.setitem(sys.modules, "equinox", type(sys)("equinox"))
    sys.modules["equinox"].Module = Module  # type: ignore[attr-defined]
    linear = Linear(np.ones(2))
    stepped = optim.SGD(0.5).update(linear, Linear(np.array([1.0, 2.0])))
    np.testing.assert_array_equal(stepped.weight, [0.5, 0.0])
    assert stepped.activation is np.tanh


def test_names_of_schedules_elsewhere_are_in_the_table_of_the_page() -> None:
    table = Path(__file__).parent.parent.joinpath("docs/schedules.md").read_text()
    for other, advice in SCHEDULES._ELSEWHERE.items():
        name = advice.removeprefix("use schedules.")
        if name in schedules.__all__ and f"`{name}`" in table:
            assert other in table or other in ("ConstantLR", "SequentialLR", "ChainedScheduler", "join_schedules"), (
                other
            )


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("AdamW8bit", 'use AdamW(..., state_dtype="8bit")'),
        ("PagedLion8bit", 'use Lion(..., state_dtype="8bit")'),
        ("Adam4bit", 'use Adam(..., state_dtype="4bit")'),
        ("AdamX", "has no attribute 'AdamX' (did you mean Adam"),
    ],
)
def test_names_of_bitsandbytes(library: Any, name: str, advice: str) -> None:
    library("torch")
    tensors = importlib.import_module("oxigrad.torch")
    with pytest.raises(AttributeError) as raised:
        getattr(tensors, name)
    assert advice in str(raised.value)


def test_mistakes_with_optimizers_of_torch(library: Any, tmp_path: Path) -> None:
    torch = library("torch")
    tensors = importlib.import_module("oxigrad.torch")
    parameter = torch.nn.Parameter(torch.ones(2))
    opt = tensors.AdamW([parameter])
    theirs = torch.optim.SGD([parameter], lr=0.1)
    with pytest.raises(ox.StateError, match=r"param_groups\[0\] of the state has no betas, eps: .* of the class AdamW"):
        opt.load_state_dict(theirs.state_dict())
    assert opt.param_groups[0]["betas"] == (0.9, 0.999)
    momentum = tensors.SGD([parameter], lr=0.5, momentum=0.9)
    with pytest.raises(ox.StateError, match=r"param_groups\[0\] of the state has no dampening, momentum: .* class SGD"):
        momentum.load_state_dict(opt.state_dict())
    assert (momentum.param_groups[0]["lr"], momentum.param_groups[0]["momentum"]) == (0.5, 0.9)
    ours = optim.AdamW()
    with pytest.raises(
        ox.StateError, match=r"of an optimizer of PyTorch: .* oxigrad\.torch\.load_state_dict converts it"
    ):
        ours.load_state_dict(theirs.state_dict())
    for each in (opt, tensors.LBFGS([parameter])):
        with pytest.raises(ox.StateError, match=r"of oxigrad\.optim: .* oxigrad\.torch\.state_dict converts it"):
            each.load_state_dict(ours.state_dict())
    with pytest.raises(TypeError, match=r"chain: found torch\.optim\.sgd\.SGD, expected optimizers of one rule"):
        optim.chain(theirs)
    with pytest.raises(FileNotFoundError, match="state_device is .*its folder does not exist"):
        tensors.AdamW([parameter], state_device=tmp_path / "none" / "state.safetensors")
    expected = "found torch.optim.sgd.SGD, expected an optimizer that takes a step by a gradient, of oxigrad.optim"
    with pytest.raises(TypeError, match=re.escape(expected)):
        DISTRIBUTED.LargeBatch(theirs)


def test_the_state_of_a_module_is_not_that_of_its_named_parameters(library: Any) -> None:
    torch = library("torch")
    module, trained = torch.nn.Sequential(torch.nn.Linear(2, 1)), optim.Adam(0.1)
    module(torch.ones(1, 2)).sum().backward()
    trained.update(module)
    opt, named = optim.Adam(0.1), dict(module.named_parameters())
    opt.load_state_dict(trained.state_dict())
    with pytest.raises(
        ox.StateError, match=r'missing: "0\.weight"(.|\n)*unexpected: 0\.weight(.|\n)*"a\.b" is one key'
    ):
        opt.update(named, {name: p.grad for name, p in named.items()})


def test_modules_that_a_program_imports_itself() -> None:
    program = """
import oxigrad
for name in ("autograd", "distributed", "interop", "keras", "launch", "optax", "torch"):
    try:
        getattr(oxigrad, name)
    except AttributeError as error:
        assert f"import oxigrad.{name}" in str(error), error
    else:
        raise AssertionError(name)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_mistakes_with_transformations_of_optax(library: Any) -> None:
    library("optax")
    transformations = importlib.import_module("oxigrad.optax")
    tx, params = transformations.adam(0.1), {"w": np.ones(2, np.float32)}
    state = tx.init(params)
    with pytest.raises(
        TypeError, match=r"the updates are a State: expected the order update\(updates, state, params\)"
    ):
        tx.update(state, params, params)
    with pytest.raises(TypeError, match="params is a State: expected the order"):
        tx.apply(params, params, state)
    with pytest.raises(
        TypeError, match="adam: missing a required argument: 'learning_rate'; its arguments are learning_r"
    ):
        transformations.adam()
    for dtype in ("bf16", "int32", 8):
        with pytest.raises(ValueError, match=rf"mu_dtype is {dtype!r}: expected a floating-point dtype, such as"):
            transformations.adam(0.1, mu_dtype=dtype)
    clip = library("optax").clip(1.0)
    with pytest.raises(TypeError, match=r"chain: found GradientTransformation.*at most one partition$"):
        optim.chain(clip, optim.SGD(0.1))
    with pytest.raises(AttributeError) as raised:
        transformations.chain  # noqa: B018
    assert "use optax.chain, which works with oxigrad.optax" in str(raised.value)
    with pytest.raises(AttributeError, match=r"use optax\.cosine_decay_schedule, which works with oxigrad\.optax"):
        _ = transformations.cosine_decay_schedule
    with pytest.raises(AttributeError, match=r"\(did you mean adamw\?\)"):
        _ = transformations.adamW


def test_a_job_of_torch_without_torchrun(library: Any) -> None:
    library("torch")
    program = "import oxigrad.distributed as d; d.run(lambda comm: None, engine='torch')"
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "RANK, WORLD_SIZE are not in the environment: expected a process of a job" in completed.stderr


@pytest.mark.parametrize(
    ("engine", "name", "advice"), [("mpi", "mpi4py", "oxigrad[mpi]"), ("ray", "ray", "oxigrad[ray]")]
)
def test_an_engine_whose_library_is_not_installed(engine: str, name: str, advice: str) -> None:
    program = (
        f"import sys; sys.modules[{name!r}] = None\n"
        f"import oxigrad.distributed as d; d.run(lambda comm: None, engine={engine!r})"
    )
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert f"python -m pip install '{advice}'" in completed.stderr, completed.stderr


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("lr_scheduler", "use torch.optim.lr_scheduler, which takes our optimizers"),
        ("clip_grad_norm_", "the argument max_norm of an optimizer"),
        ("GradScaler", "use torch.amp.GradScaler"),
        ("FusedAdam", "every step is fused"),
        ("AdamW8bit", 'use AdamW(..., state_dtype="8bit")'),
    ],
)
def test_names_of_others_in_torch(library: Any, name: str, advice: str) -> None:
    library("torch")
    with pytest.raises(AttributeError, match=re.escape(advice)):
        getattr(importlib.import_module("oxigrad.torch"), name)
