"""Steps where tensors are created on another device than the parameters', ``torch.set_default_device``."""

from __future__ import annotations

import ast
import io
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

import oxigrad  # noqa: E402
from torch_problems import OURS, backward, equal, gradients, parameters, shapes_for, states, train, values  # noqa: E402

FACTORIES = set("arange as_tensor asarray empty eye full linspace ones rand randn scalar_tensor tensor zeros".split())
LARGE = ((70, 64), (3,))
OPTIONS: list[tuple[str, dict[str, Any], Any]] = [
    ("AdamW", {"state_dtype": "8bit"}, torch.float32),
    ("AdamW", {"state_dtype": "4bit"}, torch.float32),
    ("AdamW", {"master": True, "max_norm": 0.5}, torch.bfloat16),
    ("AdamW", {"rounding": "kahan"}, torch.bfloat16),
    ("AdamW", {"rounding": "stochastic", "seed": 3}, torch.bfloat16),
    ("AdamW", {"state_device": "host"}, torch.float32),
    ("SGD", {"momentum": 0.9}, torch.float64),
]


@pytest.mark.parametrize("name", OURS.names)
def test_every_class_has_the_same_bits(name: str) -> None:
    check_same(name, {}, shapes_for(name), torch.float32)


@pytest.mark.parametrize(("name", "options", "dtype"), OPTIONS)
def test_every_precision_has_the_same_bits(name: str, options: dict[str, Any], dtype: Any) -> None:
    check_same(name, options, LARGE, dtype)


def check_same(name: str, options: dict[str, Any], shapes: Any, dtype: Any) -> None:
    found = []
    for default in ("cpu", "meta"):
        params = parameters(shapes, dtype)
        opt = OURS.make(name, params, **options)
        with torch.device(default):
            train(opt, params)
            torch.save(opt.state_dict(), file := io.BytesIO())
            again = OURS.make(name, params, **options)
            again.load_state_dict(torch.load(io.BytesIO(file.getvalue()), weights_only=True))
            train(again, params, range(3, 5))
        found.append((values(params), states(again)))
    assert equal(found[0][0], found[1][0])
    assert equal(found[0][1], found[1][1])


def test_steps_in_the_backward_have_the_same_bits() -> None:
    found = []
    for default in ("cpu", "meta"):
        params = parameters(LARGE)
        opt = ours.AdamW(params, in_backward=True)
        for step in range(3):
            with torch.device("cpu"):
                backward(params, step)
            with torch.device(default):
                opt.step()
        found.append(values(params))
    assert equal(*found)


def test_models_of_optim_have_the_same_bits() -> None:
    found = []
    for default in ("cpu", "meta"):
        params = parameters(((70, 64), (5, 3)))
        model = {str(number): p for number, p in enumerate(params)}
        opt = oxigrad.optim.chain(oxigrad.optim.ClipByGlobalNorm(0.5), oxigrad.optim.Muon(0.1), accumulate=2)
        with torch.device(default):
            for step in range(4):
                given = zip(model, gradients(params, step), strict=True)
                opt.update(model, dict(given))
        found.append(values(params))
    assert equal(*found)


def test_tensors_are_created_on_a_device_that_is_named() -> None:
    unnamed = []
    for path in sorted(Path(oxigrad.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_factory = (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "torch"
                and node.func.attr in FACTORIES
            )
            if is_factory and not any(keyword.arg == "device" for keyword in node.keywords):
                unnamed.append(f"{path.name}:{node.lineno}")
    assert not unnamed
