"""The border for other packages: what `oxigrad.distributed` imports, private names that are read, and three packages as examples."""

import ast
import functools
import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import house
import libraries
import oxigrad as ox
from oxigrad import distributed, extend, optim, testing, xp
from oxigrad.extend import adapters
from oxigrad.ops.backends import dispatch

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "oxigrad"


# --- imports and private names -----------------------------------------------------------------------------------------

# The modules that other packages import from. `_typing` has aliases for annotations alone.
PUBLIC = {
    "oxigrad",
    *(f"oxigrad.{name}" for name in "_typing cuda extend launch optim rules schedules testing tree xp".split()),
    *(f"oxigrad.xp.{name}" for name in "fft integrate interpolate linalg ndimage signal spatial special stats".split()),
}
# The families of SciPy's functions, with the number of private modules below `xp` that each imports from; no number grows.
FAMILIES = {"integrate": 10, "interpolate": 5, "ndimage": 8, "signal": 8, "spatial": 5, "special": 8, "stats": 6}
# Reads of a name with one leading underscore on another object, in all of the package and in parts of it; no number grows.
READS = {"": 150, "distributed": 4, "extend": 15}


def imported(path: Path) -> Iterator[str]:
    """The modules of the package that a file imports from, absolutely."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "oxigrad":
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == "oxigrad")


def private_imports(*parts: str) -> list[str]:
    """The imports of a part of the package from modules that are neither public nor its own."""
    place = PACKAGE.joinpath(*parts)
    own = ".".join(("oxigrad", *parts))
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    assert files
    found = [(file, module) for file in files for module in imported(file)]
    return [
        f"{file.relative_to(PACKAGE)}: {module}"
        for file, module in found
        if module not in PUBLIC and module != own and not module.startswith(f"{own}.")
    ]


def test_distributed_imports_public_modules_and_extend_alone() -> None:
    assert private_imports("distributed") == []


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_of_scipy_imports_no_more_private_modules_than_before(name: str) -> None:
    own = f"xp/_scipy/{name}/"
    modules = {each.partition(": ")[2] for each in private_imports("xp", "_scipy") if each.startswith(own)}
    assert len(modules) <= FAMILIES[name], sorted(modules)


@pytest.mark.parametrize("part", READS)
def test_no_more_private_names_of_other_objects_are_read_than_before(part: str) -> None:
    found = house.sizes(*part.split("/"))
    assert found.files > 5
    assert found.private_reads <= READS[part]


def test_the_border_is_small_and_documented() -> None:
    assert len(extend.__all__) <= 25
    for name in extend.__all__:
        value = getattr(extend, name)
        assert not callable(value) or (value.__doc__ and len(value.__doc__.split()) >= 5), name


# --- adapters ----------------------------------------------------------------------------------------------------------


def test_an_adapter_is_refused_for_a_library_that_has_one() -> None:
    class Other(extend.Adapter):
        pass

    for library in ("numpy", "torch", "jax"):
        with pytest.raises(ValueError, match=f"library is '{library}', which has the adapter"):
            extend.register_adapter(library, Other)
    with pytest.raises(ValueError, match="library is 'a.b': expected the name of a top-level module"):
        extend.register_adapter("a.b", Other)
    with pytest.raises(TypeError, match="adapter is .*: expected a subclass of Adapter"):
        extend.register_adapter("nonesuch", int)  # type: ignore[arg-type]
    assert "nonesuch" not in dispatch.REGISTERED
    assert adapters.register_adapter is extend.register_adapter


def test_an_adapter_takes_effect_after_arrays_were_used() -> None:
    strict = pytest.importorskip("array_api_strict")
    x = strict.asarray([1.0, 4.0])
    ox.grad(lambda x: xp.sum(xp.sqrt(x)))(x)
    assert type(extend.adapter_of(x)) is extend.Adapter
    calls = []

    class Strict(extend.Adapter):
        def op_sqrt(self, x: Any) -> Any:
            calls.append(x)
            return self.library.sqrt(x)

    try:
        extend.register_adapter("array_api_strict", Strict)
        assert isinstance(extend.adapter_of(x), Strict)
        np.testing.assert_array_equal(np.asarray(ox.grad(lambda x: xp.sum(xp.sqrt(x)))(x)), [0.5, 0.25])
        assert calls
    finally:
        del dispatch.REGISTERED["array_api_strict"]
        dispatch.forget_library("array_api_strict")
    assert type(extend.adapter_of(x)) is extend.Adapter


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "examples")
    return importlib.import_module("extend_adapter")


def shelf(adapter: Any, *, is_slow: bool) -> libraries.Library:
    """The library of the example, as a row of the table of libraries."""
    return libraries.Library("shelf", "shelf", lambda module: module.Array, is_strict=True, is_slow=is_slow)


def check_cases(adapter: Any, monkeypatch: pytest.MonkeyPatch, *, is_slow: bool) -> int:
    host = libraries.host
    monkeypatch.setattr(libraries, "host", lambda x: x.read() if isinstance(x, adapter.Array) else host(x))
    library = shelf(adapter, is_slow=is_slow)
    names = libraries.cases(library)
    for name in names:
        libraries.check.__wrapped__(name, library)
    return len(names)


def test_the_adapter_of_the_example_passes_the_table_of_libraries(adapter: Any, monkeypatch: Any) -> None:
    assert check_cases(adapter, monkeypatch, is_slow=True) > 200


@pytest.mark.slow
def test_the_adapter_of_the_example_passes_all_cases(adapter: Any, monkeypatch: Any) -> None:
    assert check_cases(adapter, monkeypatch, is_slow=False) > 600


def test_optimizers_run_over_the_library_of_the_example(adapter: Any) -> None:
    np.testing.assert_allclose(adapter.main(), 0.0, atol=1e-3)
    values, gradient = np.array([1.0, -2.0, 0.5]), np.array([0.5, 0.25, -1.0])
    for name in ("SGD", "AdamW", "Lion", "LAMB"):
        expected = getattr(optim, name)(0.1).update({"w": values.copy()}, {"w": gradient})["w"]
        stepped = getattr(optim, name)(0.1).update({"w": adapter.Array(values)}, {"w": adapter.Array(gradient)})["w"]
        np.testing.assert_allclose(stepped.read(), expected, rtol=1e-12)


# --- optimizers --------------------------------------------------------------------------------------------------------


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "examples")
    return importlib.import_module("extend_optimizer")


def test_the_optimizer_of_the_example_passes_check_rule(package: Any) -> None:
    testing.check_rule(package.averaged_sign, beta=0.5, mix=0.25)
    testing.check_rule(package.averaged_sign, weight_decay=0.1)
    assert package.main() < 1e-3


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "accumulate": {"accumulate": 2},
    "loss_scale": {"loss_scale": optim.LossScale(8.0)},
    "skip": {"nonfinite": "skip"},
    "raise": {"nonfinite": "raise"},
    "zero_gradients": {"zero_gradients": True},
    "lazy": {"sparse": "lazy"},
    "catch_up": {"sparse": "catch_up"},
    "stochastic": {"rounding": "stochastic"},
    "kahan": {"rounding": "kahan"},
    "master": {"master": True},
    "8bit": {"slot_dtype": "8bit"},
    "norms": {"record_norms": "gradient"},
}


def loss(model: Any) -> Any:
    return xp.sum(model["w"] ** 2) + xp.sum(model["b"] ** 2)


def by_update(opt: Any, model: Any) -> Any:
    return opt.update(model, opt.compute_gradients(loss, model)[1])


def by_minimize(opt: Any, model: Any, **options: Any) -> Any:
    opt.minimize(loss, model, **options)
    return model


def by_apply(opt: Any, model: Any) -> Any:
    return opt.apply(model, ox.grad(loss)(model), opt.init(model))[0]


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "update": by_update,
    "minimize": by_minimize,
    "record": functools.partial(by_minimize, record=True),
    "in_backward": functools.partial(by_minimize, in_backward=True),
    "apply": by_apply,
    "LargeBatch": lambda opt, model: by_minimize(distributed.LargeBatch(opt), model),
    "DataParallel": lambda opt, model: by_minimize(distributed.DataParallel(opt), model),
    "shards": lambda opt, model: by_minimize(distributed.DataParallel(opt, shard_state=True), model),
    "SyncReplicas": lambda opt, model: by_minimize(distributed.SyncReplicas(opt, 1), model),
    "ModelAverage": lambda opt, model: by_minimize(distributed.ModelAverage(opt, interval=1), model),
}


def stepped(make: Callable[..., Any], options: dict[str, Any], way: str) -> dict[str, np.ndarray] | str:
    """The parameters after one step, or the class of the error by which the way refuses the options."""
    draws = np.random.default_rng(0)
    model = {"w": draws.standard_normal((70, 70), np.float32), "b": draws.standard_normal(3, np.float32)}
    try:
        return WAYS[way](make(0.01, **options), model)
    except (TypeError, ValueError, ox.StateError, distributed.NotSupported) as error:
        return type(error).__name__


@pytest.mark.parametrize("option", OPTIONS)
def test_the_optimizer_of_the_example_takes_the_options_of_a_built_in_one(option: str, package: Any) -> None:
    """In each way that a built-in optimizer takes them, with the bits of `update`."""
    options = OPTIONS[option]
    expected = stepped(package.AveragedSign, options, "update")
    assert isinstance(expected, dict)
    for way in WAYS:
        result, of_built_in = stepped(package.AveragedSign, options, way), stepped(optim.Adam, options, way)
        if isinstance(result, str) or isinstance(of_built_in, str):
            assert result == of_built_in, way
        elif way != "apply" or option != "accumulate":
            for name, array in expected.items():
                np.testing.assert_array_equal(result[name], array, err_msg=f"{way}: {name}")


# --- wrappers ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def wrapper(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "examples")
    return importlib.import_module("extend_wrapper")


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_the_wrapper_of_the_example_trains_with_several_workers(workers: int, wrapper: Any) -> None:
    means = wrapper.main(workers)
    assert len(means) == workers and len(set(means)) == 1
    assert abs(means[0] - 1.0) < 0.05  # whatever the damaged numbers of the last worker are


def test_the_wrapper_of_the_example_takes_the_median(wrapper: Any) -> None:
    rows = np.random.default_rng(0).standard_normal((4, 3))

    def worker(comm: Any) -> Any:
        opt = wrapper.MedianOfGradients(optim.SGD(1.0))
        return opt.update({"w": np.zeros(3)}, {"w": rows[comm.rank]})["w"]

    for result in distributed.run(worker, workers=4):
        np.testing.assert_allclose(-result, np.median(rows, axis=0), rtol=1e-15)


def test_a_wrapper_is_an_optimizer(wrapper: Any, tmp_path: Path) -> None:
    opt, model = wrapper.MedianOfGradients(optim.Adam(0.1), trim=1), {"w": np.ones(3)}
    plain, other = optim.Adam(0.1), {"w": np.ones(3)}
    for _ in range(2):
        opt.minimize(lambda model: xp.sum(model["w"] ** 2), model)
        plain.minimize(lambda model: xp.sum(model["w"] ** 2), other)
    np.testing.assert_array_equal(model["w"], other["w"])
    assert opt.learning_rate == 0.1 and opt.step == 2 and [*opt.slots] == ["w"]
    assert opt.get_config() == {"optimizer": "MedianOfGradients", "parts": [plain.get_config()], "trim": 1}
    opt.save(tmp_path / "opt.safetensors")
    again = optim.from_config(opt.get_config())
    assert not again.load(tmp_path / "opt.safetensors")
    np.testing.assert_array_equal(again.slots["w"]["m"], plain.slots["w"]["m"])
    with pytest.raises(AttributeError, match="has no attribute lerning_rate"):
        opt.lerning_rate = 1.0
    with pytest.raises(TypeError, match="expected an optimizer that takes a step by a gradient"):
        wrapper.MedianOfGradients(optim.LBFGS())
    with pytest.raises(TypeError, match="which reads the loss"):
        wrapper.MedianOfGradients(optim.MoMo(0.1))
    assert isinstance(inspect.signature(wrapper.MedianOfGradients), inspect.Signature)


# --- states ------------------------------------------------------------------------------------------------------------


def test_a_state_comes_back_from_its_bytes() -> None:
    opt = optim.Adam(0.1, slot_dtype="8bit")
    opt.update({"w": np.ones((70, 70))}, {"w": np.full((70, 70), 0.5)})
    state = extend.unpack_state(extend.pack_state(opt.state_dict()))
    again = optim.Adam(0.1, slot_dtype="8bit")
    assert not again.load_state_dict(state) and again.step == 1
    np.testing.assert_array_equal(np.asarray(again.slots["w"]["m"].codes), np.asarray(opt.slots["w"]["m"].codes))
    with pytest.raises(ox.StateError, match="no state"):
        extend.unpack_state(b"nothing", "theirs")


def test_slices_refuse_wrappers() -> None:
    with pytest.raises(TypeError, match="expected an optimizer that is not a wrapper"):
        extend.SlicedSteps(distributed.LargeBatch(optim.SGD(0.1)), ValueError("of slices"))
    opt = optim.Adam(0.1)
    extend.SlicedSteps(opt, ValueError("of slices"))
    with pytest.raises(ValueError, match="of slices"):
        opt.build({"w": np.ones(3)})


def test_methods_of_adapters_have_names_of_ops() -> None:
    class Misspelt(extend.Adapter):
        def op_sqrrt(self, x: Any) -> Any:
            return x

    with pytest.raises(TypeError, match=r"adapter Misspelt has op_sqrrt.*did you mean op_sqrt\?"):
        extend.register_adapter("misspelt", Misspelt)
    assert "misspelt" not in dispatch.REGISTERED


def test_a_wrapper_without_a_step_says_so() -> None:
    class Stepless(extend.WrappingOptimizer):
        pass

    with pytest.raises(NotImplementedError, match="Stepless has no _step"):
        Stepless(optim.SGD()).update({"w": np.ones(2)}, {"w": np.ones(2)})
