"""Values of another type in parameter groups: the error names the group, the option, the value and what is expected."""

from __future__ import annotations

import copy
import re
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
