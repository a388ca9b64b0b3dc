"""Values of another type in parameter groups: the error names the group, the option, the value and what is expected."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
ours: Any = pytest.importorskip("oxigrad.torch")

NUMBER, PAIR = "expected a number", "expected 2 numbers"
VALUES: list[tuple[str, str, Any, str, str]] = [
    ("SGD", "lr", "x", "['lr'] is 'x'", NUMBER),
    ("SGD", "lr", [1.0], "['lr'] is [1.0]", NUMBER),
    ("SGD", "momentum", "x", "['momentum'] is 'x'", NUMBER),
    ("SGD", "nesterov", "x", "['nesterov'] is 'x'", "expected True or False"),
    ("SGD", "maximize", "x", "['maximize'] is 'x'", "expected True or False"),
    ("AdamW", "betas", 0.9, "['betas'] is 0.9", PAIR),
    ("AdamW", "betas", (0.9,), "['betas'] is (0.9,)", PAIR),
    ("AdamW", "betas", ("a", 0.9), "['betas'][0] is 'a'", NUMBER),
    ("AdamW", "eps", None, "['eps'] is None", NUMBER),
    ("AdamW", "amsgrad", "x", "['amsgrad'] is 'x'", "expected None, True, False"),
    ("Muon", "momentum", "x", "['momentum'] is 'x'", NUMBER),
    ("Adafactor", "eps", 1.0, "['eps'] is 1.0", PAIR),
    ("Rprop", "etas", 0.5, "['etas'] is 0.5", PAIR),
    ("LAMB", "betas", 0.9, "['betas'] is 0.9", PAIR),
    ("Lion", "lr", None, "['lr'] is None", NUMBER),
]


def weight() -> Any:
    return torch.nn.Parameter(torch.ones(3, 2, device="cpu"))


@pytest.mark.parametrize(("name", "key", "value", "shown", "expected"), VALUES)
def test_a_value_of_another_type_is_refused(name: str, key: str, value: Any, shown: str, expected: str) -> None:
    cls, first = getattr(ours, name), {"params": [weight()]}
    of_group = re.escape(f"param_groups[1]{shown}: {expected}")
    in_constructor = re.escape(f"{name}: {shown.replace(repr(key), key, 1)[1:].replace(']', '', 1)}: {expected}")
    with pytest.raises((TypeError, ValueError), match=of_group):
        cls([first, {"params": [weight()], key: value}])
    with pytest.raises((TypeError, ValueError), match=in_constructor):
        cls([weight()], **{key: value})


@pytest.mark.parametrize("steps", [0, 2])
@pytest.mark.parametrize(("name", "key", "value", "shown", "expected"), VALUES)
def test_a_value_that_is_set_later_is_refused_before_anything_changes(
    name: str, key: str, value: Any, shown: str, expected: str, steps: int
) -> None:
    params = [weight(), weight()]
    opt = getattr(ours, name)([{"params": [p]} for p in params])
    for p in params:
        p.grad = torch.ones_like(p)
    for _ in range(steps):
        opt.step()
    before = copy.deepcopy([p.detach() for p in params]), copy.deepcopy([*opt.state.values()])
    opt.param_groups[1][key] = value
    with pytest.raises((TypeError, ValueError), match=re.escape(f"param_groups[1]{shown}: {expected}")):
        opt.step()
    torch.testing.assert_close(([p.detach() for p in params], [*opt.state.values()]), before, rtol=0, atol=0)


ADAMW = [float("nan"), math.inf, -1.0, True, "x", "two elements", "nan of a tensor"]
# The ways to take a step: the options of the optimizer.
WAYS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "plain": lambda _: {},
    "clipped": lambda _: {"max_norm": 1.0},
    "in the backward": lambda _: {"in_backward": True},
    "state on the host": lambda _: {"state_device": "host"},
    "state in a file": lambda folder: {"state_device": folder / "state.safetensors"},
}


def value_of(text: Any) -> Any:
    """The value of a name of a case: tensors are made on the host."""
    tensors = {
        "two elements": torch.tensor([0.1, 0.1], device="cpu"),
        "nan of a tensor": torch.tensor(math.nan, device="cpu"),
    }
    return tensors.get(text, text) if isinstance(text, str) else text


def backward(params: list[Any]) -> None:
    for p in params:
        p.grad = None
    sum((p**2).sum() for p in params).backward()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", ADAMW, ids=str)
@pytest.mark.parametrize("name", ["AdamW", "Lion"])
def test_a_number_out_of_range_is_refused_before_anything_changes(
    name: str, value: Any, way: str, tmp_path: Path
) -> None:
    params = [weight(), weight()]
    opt = getattr(ours, name)([{"params": [p]} for p in params], lr=0.1, **WAYS[way](tmp_path))
    for _ in range(2):
        backward(params)
        opt.step()
    before = copy.deepcopy([p.detach() for p in params]), copy.deepcopy([*opt.state.values()])
    opt.param_groups[1]["lr"] = value_of(value)
    shown = r"param_groups\[1\]\['lr'\] (is|has shape \(2,\))"
    for _ in range(2):  # again, as the values that were refused are not taken for values that were read
        error = raised(lambda: (backward(params), opt.step()))
        assert error is not None
        assert re.search(shown, str(error))
        now = [p.detach() for p in params], [*opt.state.values()]
        torch.testing.assert_close(now, before, rtol=0, atol=0)
    opt.param_groups[1]["lr"] = 0.05
    backward(params)
    opt.step()
    assert not any(torch.equal(p, q) for p, q in zip(params, before[0], strict=True))


def test_a_tensor_that_is_changed_in_place_is_read_in_each_step() -> None:
    p, rate = weight(), torch.tensor(0.1, device="cpu")
    opt = ours.SGD([p], lr=rate)
    backward([p])
    opt.step()
    before = p.detach().clone()
    rate.fill_(math.nan)
    with pytest.raises(ValueError, match=r"param_groups\[0\]\['lr'\] is nan: expected a number in \[0, inf\)"):
        opt.step()
    torch.testing.assert_close(p.detach(), before, rtol=0, atol=0)


def raised(call: Callable[[], Any]) -> Exception | None:
    """The error of a call, if any."""
    try:
        call()
    except (TypeError, ValueError) as error:
        return error
    return None
