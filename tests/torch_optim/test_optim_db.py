"""PyTorch's table of optimizer configurations, ``optim_db``: valid ones agree with torch in values and state, invalid ones in the error."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # which torch.testing._internal imports
ours = pytest.importorskip("oxigrad.torch")

from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db  # noqa: E402

from torch_problems import MATRICES, bowl, copies, gradients, parameters  # noqa: E402

pytestmark = pytest.mark.usefixtures("default_device")

STEPS, WITHOUT_GRADIENTS = 7, 3
SHAPES = ((4, 3), (3,), (0, 2), (2, 2, 2), ())
INFOS = {info.optim_cls.__name__: info for info in optim_db}


def inputs_of(name: str) -> list[Any]:
    """The valid configurations of an optimizer on the default device, made anew."""
    return INFOS[name].optim_inputs_func(device=torch.get_default_device().type)


CONFIGURATIONS = [(name, i) for name in INFOS for i in range(len(inputs_of(name)))]
# Relative and absolute; torch keeps numbers beside tensors of float64 in float32, and Muon multiplies in bfloat16.
TOLERANCES = {torch.float32: (1e-5, 1e-6), torch.float64: (1e-9, 1e-10), torch.complex64: (1e-5, 1e-6)}


def errors_of(name: str) -> list[Any]:
    """The invalid configurations of an optimizer, made anew."""
    return list(INFOS[name].optim_error_inputs_func(device=torch.get_default_device().type, dtype=torch.float32))


ERRORS = [(name, i) for name in INFOS for i in range(len(errors_of(name)))]


def described(pair: tuple[str, int]) -> str:
    name, i = pair
    return f"{name}-{inputs_of(name)[i].desc}"


def error_described(pair: tuple[str, int]) -> str:
    name, i = pair
    return f"{name}-{errors_of(name)[i].optimizer_error_input.desc}"


def test_all_configurations_are_included() -> None:
    """torch 2.13 has 91 and 124, and later ones have more."""
    assert len(CONFIGURATIONS) >= 91 and len(ERRORS) >= 124
    assert len({described(pair) for pair in CONFIGURATIONS}) >= 91
    missing = INFOS.keys() - set(dir(ours))
    assert not missing, f"torch has optimizers that oxigrad.torch has not: {sorted(missing)}"
    for name in INFOS:
        assert getattr(ours, name).__name__ == name and issubclass(getattr(ours, name), torch.optim.Optimizer)


def shapes_for(name: str) -> tuple[tuple[int, ...], ...]:
    if name == "Muon":
        return MATRICES
    if name == "SparseAdam":
        return (4, 3), (3,)
    return (
        tuple(shape for shape in SHAPES if 0 not in shape) if name == "Adafactor" else SHAPES
    )  # torch's divides by the size


def steps(name: str, opt: Any, params: list[Any], sparse: bool = False) -> Iterator[int]:
    """Takes the steps and yields after each; in one step the first and the last parameter have no gradient."""
    for step in range(3 if name == "LBFGS" else STEPS):  # each of its steps takes up to 20
        if INFOS[name].step_requires_closure:
            opt.step(bowl(opt, params))
        else:
            for p, g in zip(params, gradients(params, step), strict=True):
                p.grad = _sparse(g) if sparse or name == "SparseAdam" else g
            if step == WITHOUT_GRADIENTS:
                params[0].grad = params[-1].grad = None
            opt.step()
        yield step


def _sparse(g: torch.Tensor) -> torch.Tensor:
    """An uncoalesced gradient of two rows, one of which is given twice."""
    if g.ndim == 0 or g.shape[0] < 3:
        return g.to_sparse() if g.ndim else g
    indices = torch.tensor([[0, 2, 0]])
    return torch.sparse_coo_tensor(indices, torch.stack([g[0], g[2], 0.5 * g[0]]), g.shape, check_invariants=False)


def close(found: Any, expected: Any, what: str, name: str) -> None:
    """Asserts the same type, dtype and shape, and close values."""
    assert isinstance(found, torch.Tensor) == isinstance(expected, torch.Tensor), what
    if isinstance(expected, torch.Tensor):
        rtol, atol = (2e-2, 1e-3) if name == "Muon" else TOLERANCES.get(expected.dtype, (1e-5, 1e-6))
        torch.testing.assert_close(found, expected, rtol=rtol, atol=atol, msg=lambda text: f"{what}: {text}")
    elif isinstance(expected, (list, tuple)):
        for i, (a, b) in enumerate(zip(found, expected, strict=True)):
            close(a, b, f"{what}[{i}]", name)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-4), what
    else:
        assert found == expected, what


def same_state(found: Any, expected: Any, params: Any, theirs: Any, name: str) -> None:
    """Asserts equal state of two optimizers, parameter by parameter and key by key."""
    for i, (p, q) in enumerate(zip(params, theirs, strict=True)):
        assert (p in found.state) == (q in expected.state), f"parameter {i}"
        if q in expected.state:
            a, b = found.state[p], expected.state[q]
            assert set(a) == set(b), f"parameter {i}"
            for key, value in b.items():
                close(a[key], value, f"parameter {i}: {key}", name)


def pair(name: str, options: dict[str, Any], dtype: Any, flags: dict[str, Any], shapes: Any = None) -> tuple[Any, ...]:
    """The optimizer of oxigrad.torch, torch's, and the parameters of each."""
    params = parameters(shapes or shapes_for(name), dtype)
    theirs = copies(params)
    opt = getattr(ours, name)(params, **copy.deepcopy(options), **flags)
    expected = getattr(torch.optim, name)(theirs, **copy.deepcopy(options))
    return opt, expected, params, theirs


def agree(name: str, made: tuple[Any, ...], sparse: bool = False) -> None:
    opt, expected, params, theirs = made
    for step, _ in zip(steps(name, opt, params, sparse), steps(name, expected, theirs, sparse), strict=True):
        for i, (p, q) in enumerate(zip(params, theirs, strict=True)):
            close(p.detach(), q.detach(), f"step {step}: parameter {i}", name)
        same_state(opt, expected, params, theirs, name)


def flags_of(name: str) -> list[dict[str, bool]]:
    """The flags of torch's implementations of an optimizer on the CPU."""
    info = INFOS[name]
    flags: list[dict[str, bool]] = [{}]
    if "foreach" in info.supported_impls:
        flags += [{"foreach": False}, {"foreach": True}]
    if "fused" in info.supported_impls and "cpu" in info.supports_fused_on:
        flags.append({"fused": True})
    return flags


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=described)
def test_a_valid_configuration(configuration: Any, dtype: Any) -> None:
    name, i = configuration
    options = inputs_of(name)[i].kwargs
    agree(name, pair(name, options, dtype, {}))


@pytest.mark.parametrize("eps", [(None, 1e-3), (1e-3, 1e-2)], ids=["None", "number"])
@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.float32], ids=["bfloat16", "float16", "float32"]
)
def test_the_machine_epsilon_of_adafactor_is_that_of_the_parameter(dtype: Any, eps: Any) -> None:
    """Gradients below it, whose mean squares it bounds, so that the steps are small."""
    found = []
    for library in (torch.optim, ours):
        p = torch.nn.Parameter(torch.linspace(-1, 1, 12, dtype=torch.float32).reshape(3, 4).to(dtype))
        opt = library.Adafactor([p], lr=0.1, eps=eps, foreach=False)
        p.grad = (torch.linspace(1, 2, 12) * 4e-4).reshape(3, 4).to(dtype)
        opt.step()
        found.append(p.detach())
    torch.testing.assert_close(*found, rtol=0, atol=2 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=described)
def test_implementation_flags(configuration: Any) -> None:
    name, i = configuration
    options = inputs_of(name)[i].kwargs
    for flags in flags_of(name)[1:]:
        made = pair(name, options, torch.float32, flags)
        assert made[0].param_groups[0].items() >= flags.items()
        agree(name, made)


@pytest.mark.parametrize("name", [name for name, info in INFOS.items() if info.supports_complex])
def test_complex_parameters(name: str) -> None:
    for options in inputs_of(name):
        if name == "LBFGS" and options.kwargs.get("line_search_fn"):
            continue  # rounding may end a line search one evaluation earlier
        agree(name, pair(name, options.kwargs, torch.complex64, {}, ((3, 2), (2,))))


@pytest.mark.parametrize("name", [name for name, info in INFOS.items() if info.supports_sparse])
def test_uncoalesced_sparse_gradients(name: str) -> None:
    for options in inputs_of(name):
        made = pair(name, options.kwargs, torch.float32, {}, ((4, 3), (5, 2)))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse invariant checks are implicitly disabled")  # by torch's Adagrad
            outcomes = [_outcome(lambda m=m: [*steps(name, *m, sparse=True)]) for m in (made[::2], made[1::2])]
        assert outcomes[0] == outcomes[1], options.desc
        if outcomes[1] is None:
            for p, q in zip(made[2], made[3], strict=True):
                close(p.detach(), q.detach(), options.desc, name)
            same_state(*made, name)


def _outcome(call: Callable[[], Any]) -> tuple[type, str] | None:
    """The error of a call, or None."""
    try:
        call()
    except (Exception, Warning) as error:  # noqa: BLE001 - compared
        return type(error), str(error)
    return None


@pytest.mark.parametrize("configuration", ERRORS, ids=error_described)
def test_an_invalid_configuration(configuration: Any) -> None:
    name, i = configuration

    def outcome(made: Any) -> tuple[type, str] | None:
        invalid = errors_of(name)[i]
        given = invalid.optimizer_error_input
        params = [torch.nn.Parameter(torch.ones(2, 3))] if given.params is None else given.params
        build = lambda: made(params, **given.kwargs)  # noqa: E731
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if invalid.error_on is OptimizerErrorEnum.CONSTRUCTION_ERROR:
                return _outcome(build)
            opt = build()
            return _outcome(lambda: opt.step(lambda: torch.tensor(0.0)) if name == "LBFGS" else opt.step())

    expected = outcome(getattr(torch.optim, name))
    assert expected is not None, "torch accepts this"
    assert outcome(getattr(ours, name)) == expected


@pytest.mark.parametrize("name", INFOS)
def test_state_is_exchanged_with_torch(name: str) -> None:
    """The optimizers exchange their ``state_dict`` during training, and continue alike."""
    made = pair(name, {}, torch.float64, {})
    opt, expected, params, theirs = made
    run, other = steps(name, opt, params), steps(name, expected, theirs)
    for _ in range(2):
        next(run)
        next(other)
    mine, reference = copy.deepcopy(opt.state_dict()), copy.deepcopy(expected.state_dict())
    opt.load_state_dict(reference)
    expected.load_state_dict(mine)
    for _ in zip(run, other, strict=True):  # torch casts scalars of float32 to float64 in load_state_dict
        for i, (p, q) in enumerate(zip(params, theirs, strict=True)):
            close(p.detach(), q.detach(), f"parameter {i}", name)
            for key, value in expected.state[q].items():
                torch.testing.assert_close(opt.state[p][key], value, rtol=1e-5, atol=1e-6, check_dtype=False)
