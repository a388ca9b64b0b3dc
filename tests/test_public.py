"""Every public name says where it is from, pickles, and has a signature; optimizers print what they are made with."""

import inspect
import pickle
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim, xp

SPACES = [
    ox,
    optim,
    ox.schedules,
    ox.tree,
    ox.testing,
    ox.state,
    xp,
    xp.linalg,
    xp.fft,
    xp.special,
    xp.stats,
    xp.integrate,
]


def public() -> dict[str, Any]:
    """What is called or made by users, by name."""
    found = {}
    for space in SPACES:
        for name in getattr(space, "__all__", None) or [name for name in vars(space) if not name.startswith("_")]:
            value = getattr(space, name)
            is_ours = str(getattr(value, "__module__", "")).partition(".")[0] == "oxigrad"
            if callable(value) and not isinstance(value, types.ModuleType) and is_ours:
                found[f"{space.__name__}.{name}"] = value
    return found


def again(value: Any) -> Any:
    """The value, from its pickle."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301


@pytest.mark.parametrize(("name", "value"), public().items(), ids=public())
def test_a_public_name(name: str, value: Any) -> None:
    assert isinstance(inspect.signature(value), inspect.Signature)
    assert again(value) is value
    found: Any = sys.modules[value.__module__]
    for part in value.__qualname__.split("."):
        found = getattr(found, part)
    assert found is value


def test_there_are_public_names() -> None:
    names = public()
    assert len(names) > 400
    assert {"oxigrad.optim.Adam", "oxigrad.xp.sin", "oxigrad.ops.special.erf", "oxigrad.tree.KeyPath"} <= names.keys()
    assert optim.Adam.__module__ == optim.ClipByNorm.__module__ == optim.LBFGS.__module__ == "oxigrad.optim"


def test_signatures() -> None:
    assert str(inspect.signature(xp.sin)) == "(x, /)"
    assert str(inspect.signature(xp.add)) == "(x1, x2, /)"
    assert str(inspect.signature(optim.LossScale)).startswith("(initial: float = 65536.0")
    assert next(iter(inspect.signature(optim.SAM).parameters)) == "optimizer"
    assert [*inspect.signature(optim.SGD).parameters][:3] == ["learning_rate", "momentum", "nesterov"]


def test_a_function_of_the_standard_that_is_passed_on_is_one_object() -> None:
    assert again(xp.isdtype) is xp.isdtype
    assert xp.isdtype.__qualname__ == "isdtype"


# --- optimizers of one's own -------------------------------------------------------------------------------------------


def drift(xp: Any, p: Any, g: Any, *, rate: float = 0.5) -> Any:
    """Descent."""
    return p - rate * g


Drift = optim.define(drift)
Halve = optim.transform(lambda xp, p, g, *, share=0.5: share * g, "Halve")
MADE = {
    "one": Drift(0.25),
    "chain": optim.chain(Halve(0.1), Drift(0.25)),
    "partition": optim.partition({"w": Drift(0.25), "*": None}),
    "sam": optim.SAM(Drift(0.25)),
}


def test_classes_of_one_s_own_are_of_the_module_that_defines_them() -> None:
    assert Drift.__module__ == Halve.__module__ == __name__
    assert again(Drift) is Drift
    assert again(Halve) is Halve


@pytest.mark.parametrize("kind", MADE)
def test_a_pickle_brings_the_modules_of_its_classes(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "opt.pickle"
    file.write_bytes(pickle.dumps(MADE[kind]))
    code = "import pathlib, pickle, sys; print(pickle.loads(pathlib.Path(sys.argv[1]).read_bytes()))"
    path = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r}); {code}", file],
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == repr(MADE[kind]), done.stderr


def test_an_optimizer_that_no_module_has_pickles_by_name() -> None:
    local = optim.define(lambda xp, p, g, *, rate=0.5: p - rate * g, "OfNoModule")
    assert repr(again(local(0.25))) == "OfNoModule(rate=0.25)"


# --- repr --------------------------------------------------------------------------------------------------------------

OPTIONS = {
    "seed": 3,
    "accumulate": 2,
    "nonfinite": "raise",
    "zero_gradients": True,
    "slot_dtype": "float32",
    "master": True,
}


@pytest.mark.parametrize(
    "make",
    [
        optim.Adam,
        lambda **options: optim.chain(optim.ClipByValue(), optim.SGD(), **options),
        lambda **options: optim.partition({"*": optim.SGD()}, **options),
        lambda **options: optim.SAM(optim.SGD(), **options),
    ],
    ids=["one", "chain", "partition", "sam"],
)
def test_repr_shows_every_option_that_is_not_the_default(make: Any) -> None:
    plain = repr(make())
    for name, value in {**OPTIONS, "loss_scale": optim.LossScale(8.0), "rounding": "kahan", "sparse": "lazy"}.items():
        assert f", {name}={value!r}" in repr(make(**{name: value}))
        assert f"{name}=" not in plain


def test_repr_shows_groups_and_dtype() -> None:
    opt = optim.SGD(0.1, groups={"*.bias": {"weight_decay": 0.5}, "body.*": None}, dtype="float32")
    expected = "groups={'*.bias': {'weight_decay': 0.5}, 'body.*': None}, dtype='float32')"
    assert (
        repr(opt) == f"SGD(learning_rate=0.1, momentum=0.0, nesterov=False, weight_decay=0.0, dampening=0.0, {expected}"
    )
    assert eval(repr(opt), vars(optim)).get_config() == opt.get_config()  # noqa: S307
    assert "<lambda>" in repr(optim.SGD(groups={lambda path, array: True: {}}))
    with np.printoptions(precision=1):
        assert repr(optim.SGD(lambda step: 0.1)).startswith("SGD(learning_rate=<function")
