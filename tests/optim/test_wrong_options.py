"""Options, names in dicts, and flags that no call takes: the error names the argument, and suggests the nearest name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oxigrad import optim, xp

ANY: Any = optim
GRADS = {"w": np.ones(2)}


def model() -> dict[str, Any]:
    return {"w": np.ones(2)}


def loss(m: Any) -> Any:
    return xp.sum(m["w"])


OPT: Any = optim.AdamW()
MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "groups": (lambda: ANY.AdamW(groups={"*": {"weight_decy": 0.0}}), "did you mean weight_decay"),
    "groups of apply": (
        lambda: OPT.apply(model(), GRADS, OPT.init(model()), groups={"*": {"weight_decy": 0.0}}),
        "did you mean weight_decay",
    ),
    "hyperparameters of apply": (
        lambda: OPT.apply(model(), GRADS, OPT.init(model()), weight_decy=0.0),
        "apply: found weight_decy .did you mean weight_decay",
    ),
    "hyperparameters of init": (lambda: OPT.init(model(), weight_decy=0.0), "init: found weight_decy"),
    "a configuration": (
        lambda: optim.from_config({"optimizer": "AdamW", "weight_decy": 0.0}),
        "did you mean weight_decay",
    ),
    "a preset": (lambda: ANY.muon_with_adamw(adamw={"weight_decy": 0.0}), "did you mean weight_decay"),
    "an exclude list of numbers": (lambda: ANY.muon_with_adamw(excluded=[3]), "excluded is .3.: expected globs"),
    "an exclude list": (lambda: ANY.muon_with_adamw(excluded=3), "excluded is 3: expected globs"),
    "record_norms": (lambda: ANY.SGD(record_norms=3), "record_norms is 3: expected some of 'gradient'"),
    "dtype of a number": (lambda: ANY.SGD(dtype=3), "dtype is 3: expected 'float16'"),
    "dtype of integers": (lambda: ANY.SGD(dtype=np.int64), "dtype is .*int64"),
    "dtype of a class": (lambda: ANY.SGD(dtype=dict), "dtype is .*dict"),
    "a list of dtypes": (lambda: ANY.SGD(dtype=[np.float32]), "dtype is .*float32"),
    "compat": (lambda: ANY.SGD(compat=["torch"]), "compat is .'torch'.: expected 'torch'"),
    "a flag of state_dict": (lambda: ANY.SGD().state_dict(copy="no"), "copy is 'no': expected True or False"),
    "a flag of load_state_dict": (
        lambda: ANY.SGD().load_state_dict(optim.SGD().state_dict(), strict="no"),
        "strict is 'no'",
    ),
    "a flag of rebuild": (lambda: ANY.SGD().rebuild(model(), remove=1), "remove is 1"),
    "record": (lambda: ANY.SGD().minimize(loss, model(), record="no"), "record is 'no'"),
    "in_backward": (lambda: ANY.SGD().minimize(loss, model(), in_backward=1), "in_backward is 1"),
    "has_aux": (lambda: ANY.SGD().minimize(loss, model(), has_aux=None), "has_aux is None"),
    "rho": (lambda: ANY.SAM(optim.SGD(), rho="a"), "rho is 'a': expected a number in"),
    "eta": (lambda: ANY.SAM(optim.SGD(), eta=True), "eta is True: expected a number in"),
    "a rate of the range test": (
        lambda: ANY.range_test(optim.SGD(), loss, model(), initial="a"),
        "initial is 'a': expected a number",
    ),
    "steps of the range test": (lambda: ANY.range_test(optim.SGD(), loss, model(), steps=2.5), "steps is 2.5"),
    "divergence": (lambda: ANY.range_test(optim.SGD(), loss, model(), divergence=-1), "divergence is -1"),
    "the name of a rule": (lambda: ANY.define(lambda xp, p, g: p, name=3), "define: name is 3"),
    "elementwise": (lambda: ANY.define(lambda xp, p, g: p, elementwise="no"), "define: elementwise is 'no'"),
    "average": (lambda: ANY.define(lambda xp, p, g: p, average=3), "define: average is 3"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_wrong_option_is_refused(name: str) -> None:
    make, text = MISTAKES[name]
    with pytest.raises((TypeError, ValueError), match=text):
        make()


def test_dtypes_of_libraries_are_taken(library: Any) -> None:
    torch, jax = library("torch"), library("jax")
    for dtype in ("float32", np.float32, np.dtype("float32"), torch.float32, jax.numpy.float32, jax.numpy.bfloat16):
        assert optim.SGD(0.5, dtype=dtype).dtype is dtype
    for dtype in ("float32", np.float32, np.dtype("float32")):
        stepped: dict[str, Any] = {"a": np.ones(2, np.float32), "b": np.ones(2)}
        optim.SGD(0.5, dtype=dtype).update(stepped, {"a": np.ones(2, np.float32), "b": np.ones(2)})
        np.testing.assert_array_equal(stepped["a"], 0.5)
        np.testing.assert_array_equal(stepped["b"], 1.0)


def test_keys_of_groups_of_torch(library: Any) -> None:
    """Misspelt keys are refused, as are names of `oxigrad.optim`; other keys are the user's, as in PyTorch."""
    torch, own = library("torch"), importlib.import_module("oxigrad.torch")

    def parameters() -> list[Any]:
        return [torch.nn.Parameter(torch.ones(2))]

    wrong = {
        "weight_decy": "weight_decay",
        "beta": "betas",
        "epsilon": "eps",
        "maximise": "maximize",
        "ams_grad": "amsgrad",
    }
    for key, meant in wrong.items():
        with pytest.raises(TypeError, match=rf"AdamW: unknown: {key} \(did you mean {meant}\?\)"):
            own.AdamW([{"params": parameters(), key: 0.0}])
    keys = ("lr_scale", "name", "initial_lr", "max_lr", "min_lr", "max_momentum", "base_momentum", "layer", "group")
    for cls in (own.AdamW, own.SGD, own.Lion):
        opt = cls([{"params": parameters(), **dict.fromkeys(keys, 1)}], lr=0.1)
        assert opt.param_groups[0]["layer"] == 1
        opt.add_param_group({"params": parameters(), **{k: v for k, v in opt.param_groups[0].items() if k != "params"}})


def test_names_and_expressions_of_keras(library: Any) -> None:
    library("keras")
    own = importlib.import_module("oxigrad.keras")
    with pytest.raises(TypeError, match=r"AdamW: unknown: weight_decy \(did you mean weight_decay\?\)"):
        own.AdamW(weight_decy=0.0)
    for wrong in (3, [3]):
        with pytest.raises(TypeError, match="no_weight_decay is .*: expected regular expressions"):
            own.AdamW(no_weight_decay=wrong)
        with pytest.raises(TypeError, match="excluded is .*: expected regular expressions"):
            own.Muon(excluded=wrong)
    with pytest.raises(ValueError, match=r"no_weight_decay has '\(': expected a regular expression"):
        own.AdamW(no_weight_decay=["("])
