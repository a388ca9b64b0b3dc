"""`oxigrad.torch`: optimizers of PyTorch, compared with PyTorch, and the others, compared with `oxigrad.optim`."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
from typing import Any

import numpy as np
import pytest

from oxigrad import optim
from oxigrad.optim.table.row import TABLE

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("oxigrad.torch")

# PyTorch's optimizers, with the arguments that select other formulas.
CONFIGURATIONS: dict[str, list[dict[str, Any]]] = {
    "SGD": [{"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"momentum": 0.9, "dampening": 0.5}],
    "Adam": [{"amsgrad": True}, {"weight_decay": 0.1, "decoupled_weight_decay": True}, {"betas": (0.5, 0.8)}],
    "AdamW": [{"amsgrad": True}, {"eps": 1e-3}],
    "Adamax": [{"betas": (0.5, 0.8)}],
    "NAdam": [{"momentum_decay": 6e-3}, {"weight_decay": 0.1, "decoupled_weight_decay": True}],
    "RAdam": [{"weight_decay": 0.1, "decoupled_weight_decay": True}, {"betas": (0.5, 0.8)}],
    "Adagrad": [{"lr_decay": 0.5}, {"initial_accumulator_value": 0.1}],
    "Adadelta": [{"rho": 0.95}],
    "RMSprop": [{"centered": True}, {"momentum": 0.9, "centered": True}, {"alpha": 0.5}],
    "Rprop": [{"etas": (0.2, 1.5)}, {"step_sizes": (1e-3, 2e-2)}],
    "ASGD": [{"t0": 2}, {"lambd": 0.1, "alpha": 0.5}],
    "Adafactor": [{"d": 1.5}, {"beta2_decay": -1.0}, {"eps": (1e-5, 1e-2)}],
}
COMMON: list[dict[str, Any]] = [{}, {"lr": 0.02}, {"weight_decay": 0.1}, {"maximize": True}, {"lr": torch.tensor(0.02)}]
CASES = [
    pytest.param(name, arguments, id=f"{name}-{','.join(map(str, arguments.items())) or 'default'}")
    for name, own in CONFIGURATIONS.items()
    for arguments in (*COMMON, *own)
    if not arguments.keys() - inspect.signature(getattr(torch.optim, name)).parameters.keys()
]
SHAPES = ((3, 4), (5,), (), (2, 3, 2), (0, 3))


def parameters(shapes: Any = SHAPES, dtype: Any = torch.float64, seed: int = 0) -> list[Any]:
    made = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(shape, dtype=dtype, generator=made)) for shape in shapes]


def copied_by_pickle(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own


def give_gradients(params: list[Any], step: int, missing: tuple[int, ...] = ()) -> None:
    made = torch.Generator().manual_seed(100 + step)
    for number, p in enumerate(params):
        g = torch.randn(p.shape, dtype=p.dtype, generator=made)
        p.grad = None if number in missing else g


# Few optimizers read it; to PyTorch's it is unknown.
LOSS = {"loss": 2.5}


def take_steps(opt: Any, params: list[Any], steps: Any = range(7)) -> None:
    """Steps of which the fourth lacks some gradients."""
    for step in steps:
        give_gradients(params, step, missing=(0, 2) if step == 3 else ())
        opt.step(**(LOSS if hasattr(opt, "entry") else {}))


def assert_states_agree(ours: Any, reference: Any, pairs: Any, **tolerance: float) -> None:
    for p, q in pairs:
        own, expected = ours.state[p], reference.state[q]
        assert own.keys() == expected.keys()
        for name, value in expected.items():
            assert type(own[name]) is type(value)
            if isinstance(value, torch.Tensor):
                assert own[name].dtype == value.dtype, name
                torch.testing.assert_close(own[name], value, **tolerance)
            else:
                assert own[name] == value


@pytest.mark.parametrize(("name", "arguments"), CASES)
def test_agrees_with_torch(name: str, arguments: dict[str, Any]) -> None:
    shapes = SHAPES[:-1] if name == "Adafactor" else SHAPES  # PyTorch's divides by the number of elements.
    params, reference = parameters(shapes), parameters(shapes)
    ours, oracle = getattr(theirs, name)(params, **arguments), getattr(torch.optim, name)(reference, **arguments)
    take_steps(ours, params)
    take_steps(oracle, reference)
    for p, q in zip(params, reference, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-9)
    assert_states_agree(ours, oracle, zip(params, reference, strict=True), rtol=1e-6, atol=1e-9)
    assert [{**group, "params": 0} for group in ours.param_groups] == [
        {**group, "params": 0} for group in oracle.param_groups
    ]


@pytest.mark.parametrize("arguments", [{}, {"momentum": 0.8}, {"adjust_lr_fn": "match_rms_adamw"}, {"ns_steps": 6}])
def test_muon_agrees_with_torch_as_far_as_bfloat16_goes(arguments: dict[str, Any]) -> None:
    params, reference = parameters([(6, 4), (3, 8)]), parameters([(6, 4), (3, 8)])
    ours, oracle = theirs.Muon(params, lr=0.01, **arguments), torch.optim.Muon(reference, lr=0.01, **arguments)
    for step in range(7):
        give_gradients(params, step)
        give_gradients(reference, step)
        ours.step()
        oracle.step()
    for p, q in zip(params, reference, strict=True):
        torch.testing.assert_close(p, q, rtol=0, atol=7 * 0.01 * 0.02)
    assert_states_agree(ours, oracle, zip(params, reference, strict=True))


def test_sparse_adam_agrees_with_torch() -> None:
    table, reference = torch.nn.Embedding(10, 3, sparse=True), torch.nn.Embedding(10, 3, sparse=True)
    reference.load_state_dict(table.state_dict())
    ours, oracle = theirs.SparseAdam(table.parameters(), lr=0.1), torch.optim.SparseAdam(reference.parameters(), lr=0.1)
    for step in range(5):
        ids = torch.tensor([[1, 2, 2, step], [7, 1, 0, step]])
        for module, opt in ((table, ours), (reference, oracle)):
            opt.zero_grad()
            (module(ids) ** 2).sum().backward()
            opt.step()
    torch.testing.assert_close(table.weight, reference.weight)
    assert_states_agree(ours, oracle, [(table.weight, reference.weight)])


@pytest.mark.parametrize("sparse_dim", [1, 2])
def test_sparse_adam_takes_elements_as_well_as_rows(sparse_dim: int) -> None:
    params, reference = parameters([(4, 3)], torch.float32), parameters([(4, 3)], torch.float32)
    ours, oracle = theirs.SparseAdam(params), torch.optim.SparseAdam(reference)
    for _ in range(3):
        gradient = torch.zeros(4, 3)
        gradient[[1, 3]] = torch.tensor([1.0, 0.0, -2.0])
        params[0].grad = gradient.to_sparse(sparse_dim)
        reference[0].grad = gradient.to_sparse(sparse_dim)
        ours.step()
        oracle.step()
    torch.testing.assert_close(params[0], reference[0])


def test_sparse_adam_rounds_by_other_numbers_for_each_seed_and_step() -> None:
    def after_steps(seed: int) -> list[Any]:
        weight = torch.nn.Parameter(torch.ones(64, 8, dtype=torch.bfloat16))
        opt, rounded = theirs.SparseAdam([weight], lr=1e-3, rounding="stochastic", seed=seed), []
        for _ in range(2):
            weight.data.fill_(1.0)
            weight.grad = torch.ones_like(weight).to_sparse(1)
            opt.step()
            rounded.append(weight.detach().clone())
        return rounded

    first, again, other = after_steps(0), after_steps(0), after_steps(1)
    assert torch.equal(first[0], again[0])
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first[0], other[0])


@pytest.mark.parametrize("arguments", [{}, {"line_search_fn": "strong_wolfe"}])
def test_lbfgs_is_torchs_and_pickles(arguments: dict[str, Any]) -> None:
    params, reference = parameters([(3, 2)]), parameters([(3, 2)])
    ours, oracle = theirs.LBFGS(params, max_iter=3, **arguments), torch.optim.LBFGS(reference, max_iter=3, **arguments)

    def run(opt: Any, p: Any) -> Any:
        def closure() -> Any:
            opt.zero_grad()
            loss = ((p - 1) ** 4).sum()
            loss.backward()
            return loss.detach()

        return opt.step(closure)

    for _ in range(2):
        assert float(run(ours, params[0])) == float(run(oracle, reference[0]))
    again = copied_by_pickle(ours)
    p = again.param_groups[0]["params"][0]
    assert float(run(again, p)) == float(run(ours, params[0]))
    assert torch.equal(p, params[0])


# --- ours --------------------------------------------------------------------------------------------------------------

OWN = [name for name, row in TABLE.items() if "torch" not in row.presets]
# Other hyperparameters than the defaults: those here, and those of `oxigrad.torch`.
OTHERS: dict[str, dict[str, Any]] = {
    "AdamLRD": {"dropout_rate": 0.3},
    "LAMB": {"weight_decay": 0.1},
    "Lion": {"weight_decay": 0.1},
    "Shampoo": {"momentum": 0.9},
}


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ours_gives_the_bits_of_the_optimizer_for_arrays(name: str, dtype: Any) -> None:
    shapes = [(4, 3), (5,), ()]
    params = parameters(shapes, dtype)
    model = {str(number): p.detach().clone().numpy() for number, p in enumerate(params)}
    others = OTHERS.get(name, {})
    opt, oracle = getattr(theirs, name)(params, lr=0.05, **others), getattr(optim, name)(learning_rate=0.05, **others)
    elementwise = oracle._rule.elementwise
    for step in range(7):
        give_gradients(params, step)
        opt.step(**LOSS)
        model = oracle.update(model, {str(number): p.grad.numpy() for number, p in enumerate(params)}, **LOSS)
        for number, p in enumerate(params):
            if elementwise:
                np.testing.assert_array_equal(p.detach().numpy(), model[str(number)])
            else:
                np.testing.assert_allclose(p.detach().numpy(), model[str(number)], rtol=1e-4, atol=1e-5)


def test_every_optimizer_is_there() -> None:
    made = {name for name, value in vars(optim).items() if isinstance(value, type) and hasattr(value, "_rule")}
    there = {name for name in vars(theirs) if isinstance(getattr(theirs, name), type)}
    made -= {"RuleOptimizer", "Transform"} | {
        name for name in made if not issubclass(getattr(optim, name), optim.Optimizer)
    }
    assert made <= there


@pytest.mark.parametrize("name", [*CONFIGURATIONS, *OWN, "Muon", "SparseAdam", "LBFGS"])
def test_classes_say_what_they_are(name: str) -> None:
    cls = getattr(theirs, name)
    assert (cls.__name__, cls.__module__) == (name, "oxigrad.torch")
    assert issubclass(cls, torch.optim.Optimizer)
    assert ">>> " in cls.__doc__
    assert next(iter(inspect.signature(cls).parameters)) == "params"
    if hasattr(torch.optim, name):
        assert issubclass(cls, getattr(torch.optim, name))
        own, reference = inspect.signature(cls).parameters, inspect.signature(getattr(torch.optim, name)).parameters
        assert {n: p.default for n, p in reference.items()} == {n: own[n].default for n in reference}


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("Lion", {"lr": -1.0}, r"lr is -1.0: expected a number in \[0, inf\)"),
        ("Lion", {"betas": (0.9, 1.5)}, r"betas\[1\] is 1.5: expected a number in \[0, 1\]"),
        ("Lion", {"lr": torch.ones(2)}, "Tensor lr must be 1-element"),
        ("LAMB", {"eps": -1.0}, r"eps is -1.0"),
        ("Lion", {"rounding": "up"}, "rounding is 'up'"),
        ("AdamW", {"state_dtype": "2bit"}, "slot_dtype is '2bit'|state_dtype is '2bit'"),
    ],
)
def test_bad_arguments_are_refused_by_name(name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(theirs, name)(parameters(), **arguments)


# --- state -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*CONFIGURATIONS, *OWN])
@pytest.mark.parametrize("copied", [copy.deepcopy, copied_by_pickle], ids=["deepcopy", "pickle"])
def test_copies_go_on_with_the_same_bits(name: str, copied: Any) -> None:
    params = parameters(dtype=torch.float32)
    opt = getattr(theirs, name)(params)
    take_steps(opt, params)
    again = copied(opt)
    other = again.param_groups[0]["params"]
    take_steps(opt, params, range(7, 10))
    take_steps(again, other, range(7, 10))
    assert all(p is not q and torch.equal(p, q) for p, q in zip(params, other, strict=True))
    assert [{**group, "params": 0} for group in again.param_groups] == [
        {**group, "params": 0} for group in opt.param_groups
    ]


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("saved", [False, True], ids=["as it is", "by torch.save"])
def test_states_go_to_torch_and_back(name: str, saved: bool) -> None:
    params, reference = parameters(SHAPES[:-1]), parameters(SHAPES[:-1])
    arguments = CONFIGURATIONS[name][0]
    ours, oracle = getattr(theirs, name)(params, **arguments), getattr(torch.optim, name)(reference, **arguments)
    for first, second, of_first, of_second in ((ours, oracle, params, reference), (oracle, ours, reference, params)):
        take_steps(first, of_first)
        state = first.state_dict() if second is ours else copy.deepcopy(first.state_dict())  # PyTorch's does not copy
        if saved:
            torch.save(state, file := io.BytesIO())
            state = torch.load(io.BytesIO(file.getvalue()))
        second.load_state_dict(state)
        if second is oracle:  # which casts the numbers of ASGD to the dtype of the parameter
            for own in second.state.values():
                own.update({key: own[key].to(torch.float32) for key in ("eta", "mu", "mu_product") if key in own})
        assert_states_agree(second, first, zip(of_second, of_first, strict=True), rtol=0.0, atol=0.0)
        with torch.no_grad():
            for p, q in zip(of_first, of_second, strict=True):
                q.copy_(p)
        before = copy.deepcopy(first.state_dict())
        take_steps(second, of_second, range(2))
        for number, own in before["state"].items() if second is ours else ():
            kept = first.state[of_first[number]]
            assert all(torch.equal(kept[key], own[key]) for key in own), "state is shared after a load"
        take_steps(first, of_first, range(2))
        for p, q in zip(of_first, of_second, strict=True):
            torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-9)


def test_groups_have_their_own_hyperparameters_and_can_be_added() -> None:
    params, reference = parameters(), parameters()
    made: list[Any] = []
    for cls, own in ((theirs.AdamW, params), (torch.optim.AdamW, reference)):
        opt = cls([{"params": own[:2], "lr": 0.1}, {"params": own[2:3], "betas": (0.5, 0.6), "amsgrad": True}], lr=0.01)
        take_steps(opt, own, range(3))
        opt.add_param_group({"params": iter(own[3:]), "weight_decay": 0.5})
        take_steps(opt, own, range(3, 7))
        opt.param_groups[0]["lr"] = 0.5
        take_steps(opt, own, range(7, 9))
        made.append(opt)
    for p, q in zip(params, reference, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-9)
    assert_states_agree(made[0], made[1], zip(params, reference, strict=True), rtol=1e-6, atol=1e-9)


def test_replaced_parameters_are_found() -> None:
    params = parameters([(3,), (2,)])
    opt = theirs.SGD(params, lr=1.0)
    take_steps(opt, params, range(2))
    new = torch.nn.Parameter(torch.ones(3))
    opt.param_groups[0]["params"][0] = new
    new.grad = torch.ones(3)
    opt.step()
    assert torch.equal(new, torch.zeros(3))
    new.data = torch.ones(4)  # other memory in the same tensor
    new.grad = torch.ones(4)
    opt.step()
    assert torch.equal(new, torch.zeros(4))


def test_a_state_that_does_not_fit_is_refused_by_name() -> None:
    params = parameters([(3,)])
    opt = theirs.AdamW([("weight", params[0])])
    take_steps(opt, params, range(1))
    opt.state[params[0]]["exp_avg"] = torch.zeros(4, dtype=torch.float64)
    before = params[0].detach().clone()
    give_gradients(params, 1)
    with pytest.raises(ValueError, match=r"weight.*\bm\b|weight.*exp_avg"):
        opt.step()
    assert torch.equal(params[0], before)


# --- dtypes and layouts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in CONFIGURATIONS if name != "Adafactor"])
def test_complex_parameters_agree_with_torch(name: str) -> None:
    arguments = CONFIGURATIONS[name][0]
    if name == "SGD":
        arguments = {**arguments, "weight_decay": 0.1}
    params, reference = parameters(dtype=torch.complex128), parameters(dtype=torch.complex128)
    ours, oracle = getattr(theirs, name)(params, **arguments), getattr(torch.optim, name)(reference, **arguments)
    take_steps(ours, params)
    take_steps(oracle, reference)
    for p, q in zip(params, reference, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-9)
    assert_states_agree(ours, oracle, zip(params, reference, strict=True), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_layouts_agree_with_torch(name: str) -> None:
    def made(cls: Any) -> tuple[Any, list[Any]]:
        first, second = parameters([(6, 8), (2, 3, 4, 5)])
        params = [
            torch.nn.Parameter(first.detach()[:, ::2]),
            torch.nn.Parameter(second.detach().to(memory_format=torch.channels_last)),
            torch.nn.Parameter(first.detach().t()[1::2]),
        ]
        return cls(params), params

    (ours, params), (oracle, reference) = made(getattr(theirs, name)), made(getattr(torch.optim, name))
    for step in range(4):
        for own in (params, reference):
            give_gradients(own, step)
            own[0].grad = own[0].grad.t().contiguous().t()
            own[1].grad = own[1].grad.to(memory_format=torch.channels_last)
        ours.step()
        oracle.step()
    for p, q in zip(params, reference, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-9)
    for p, q in zip(params, reference, strict=True):
        for key, value in oracle.state[q].items():
            if value.ndim and key != "step_size":  # which PyTorch's class lays out like the gradient
                assert ours.state[p][key].stride() == value.stride(), key


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["AdamW", "SGD"])
def test_half_precision_has_states_of_torchs_dtypes(name: str, dtype: Any) -> None:
    arguments = {"momentum": 0.9} if name == "SGD" else {"eps": 1e-3}
    params, reference = parameters([(30,)], dtype), parameters([(30,)], dtype)
    ours = getattr(theirs, name)(params, lr=0.1, **arguments)
    oracle = getattr(torch.optim, name)(reference, lr=0.1, **arguments)
    for step in range(3):
        give_gradients(params, step)
        give_gradients(reference, step)
        ours.step()
        oracle.step()
    torch.testing.assert_close(params[0], reference[0], rtol=0.05, atol=0.02)
    for key, value in oracle.state[reference[0]].items():
        assert ours.state[params[0]][key].dtype == value.dtype


@pytest.mark.parametrize(
    ("options", "ours"),
    [
        ({"state_dtype": "8bit"}, {"slot_dtype": "8bit"}),
        ({"state_dtype": "4bit"}, {"slot_dtype": "4bit"}),
        ({"state_dtype": "bfloat16"}, {"slot_dtype": "bfloat16"}),
        (
            {"state_dtype": "bfloat16", "rounding": "stochastic", "seed": 3},
            {"slot_dtype": "bfloat16", "rounding": "stochastic", "seed": 3},
        ),
    ],
)
@pytest.mark.parametrize("name", ["AdamW", "Lion"])
def test_state_of_fewer_bits_is_that_of_the_optimizer_for_arrays(
    name: str, options: dict[str, Any], ours: dict[str, Any]
) -> None:
    params = parameters([(64, 65), (5,)], torch.float32)
    arrays = [p.detach().clone() for p in params]
    opt, oracle = getattr(theirs, name)(params, lr=0.05, **options), getattr(optim, name)(learning_rate=0.05, **ours)

    def step(number: int) -> None:
        give_gradients(params, number)
        opt.step()
        oracle.update(arrays, [p.grad for p in params])
        for p, array in zip(params, arrays, strict=True):
            assert torch.equal(p, array)

    for number in range(3):
        step(number)
    opt.load_state_dict(copied_by_pickle(opt.state_dict()))
    step(3)
    if options["state_dtype"] in ("8bit", "4bit"):
        codes = dict(opt.state[params[0]]["exp_avg"])
        assert codes.pop("shape", None) == ((64, 65) if options["state_dtype"] == "4bit" else None)
        assert {name: part.dtype for name, part in codes.items()} == {"codes": torch.uint8, "scales": torch.float32}
    else:
        assert opt.state[params[0]]["exp_avg"].dtype == torch.bfloat16


@pytest.mark.parametrize("options", [{"master": True}, {"rounding": "kahan"}, {"rounding": "stochastic"}])
def test_bfloat16_parameters_round_as_the_optimizer_for_arrays(options: dict[str, Any]) -> None:
    params = parameters([(50, 100), (5,)], torch.bfloat16)
    arrays = [p.detach().clone() for p in params]
    opt, oracle = theirs.Lion(params, lr=1e-3, **options), optim.Lion(1e-3, **options)
    for step in range(5):
        give_gradients(params, step)
        opt.step()
        oracle.update(arrays, [p.grad for p in params])
        again = theirs.Lion(params, lr=1e-3, **options)
        again.load_state_dict(opt.state_dict())  # nothing is lost on the way
        opt = again
    for p, array in zip(params, arrays, strict=True):
        assert torch.equal(p, array)


def test_differentiable_steps_are_recorded() -> None:
    for cls in (theirs.AdamW, torch.optim.AdamW, theirs.Lion):
        leaf = torch.ones(3, dtype=torch.float64, requires_grad=True)
        p = leaf.clone()
        opt = cls([p], lr=0.1, differentiable=True)
        p.grad = (2.0 * leaf).detach().requires_grad_()
        opt.step()
        p.sum().backward()
        assert leaf.grad is not None
        assert bool((leaf.grad != 0).all())


# --- schedule-free -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ScheduleFreeSGD", "ScheduleFreeAdamW"])
def test_schedule_free_modes(name: str) -> None:
    params = parameters([(4, 3), ()])
    model = [p.detach().clone() for p in params]
    opt, oracle = getattr(theirs, name)(params, lr=0.1), getattr(optim, name)(0.1)
    for step in range(4):
        give_gradients(params, step)
        opt.step()
        oracle.update(model, [p.grad for p in params])
        opt.eval()
        opt.eval()
        averages = [*oracle.averaged_parameters(model).values()]
        for p, average in zip(params, averages, strict=True):
            torch.testing.assert_close(p.detach(), average)
        with pytest.raises(RuntimeError, match=r"call train\(\) before a step"):
            opt.step()
        opt.train()
        for p, point in zip(params, model, strict=True):
            torch.testing.assert_close(p.detach(), point)


def test_the_rate_of_asgd_is_exact_where_pytorch_keeps_it_in_double_precision() -> None:
    """Beside 60 digits: PyTorch keeps ``eta`` and ``mu`` in its default dtype, float32, whose rounding `optim.ASGD` does not have.

    So the two differ by 1e-8 in float64, and `oxigrad.optim` has the formula's values. `oxigrad.torch` keeps them as PyTorch does.
    """
    mpmath = pytest.importorskip("mpmath")
    start, slopes, given = (
        [0.3, -1.7, 2.5],
        [1.0, -2.0, 0.5],
        {"lambd": 0.1, "alpha": 0.6, "t0": 5, "weight_decay": 0.1},
    )
    gradients = [np.array(slopes) * (step % 3 - 1) for step in range(40)]

    def trained(kind: Any, default: torch.dtype) -> np.ndarray:
        torch.set_default_dtype(default)
        try:
            p = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
            opt = kind([p], lr=0.1, **given)
            for gradient in gradients:
                p.grad = torch.from_numpy(gradient)
                opt.step()
        finally:
            torch.set_default_dtype(torch.float32)
        assert opt.state[p]["eta"].dtype == default
        return p.detach().numpy()

    with mpmath.workdps(60):
        rate, lambd, alpha, decay = map(mpmath.mpf, (0.1, 0.1, 0.6, 0.1))
        exact, eta = [*map(mpmath.mpf, start)], rate
        for step, gradient in enumerate(gradients, 1):
            exact = [
                p * (1 - lambd * eta) - eta * (mpmath.mpf(float(g)) + decay * p)
                for p, g in zip(exact, gradient, strict=True)
            ]
            eta = rate / (1 + lambd * rate * step) ** alpha
    formula = np.array([float(p) for p in exact])
    own, model = optim.ASGD(0.1, compat="torch", **given), {"w": np.array(start)}
    for gradient in gradients:
        own.update(model, {"w": gradient})
    np.testing.assert_allclose(model["w"], formula, rtol=2e-15)
    for kind in (torch.optim.ASGD, theirs.ASGD):
        np.testing.assert_allclose(trained(kind, torch.float64), formula, rtol=2e-15)
        error = np.max(np.abs(trained(kind, torch.float32) / formula - 1.0))
        assert 1e-9 < error < 2.0**-24
    np.testing.assert_allclose(
        trained(theirs.ASGD, torch.float32), trained(torch.optim.ASGD, torch.float32), rtol=2e-15
    )
