"""The formulas on the pages of optimizers: they are printed from the rules."""

import math
import re
from typing import Any

import pytest

pytest.importorskip("matplotlib")
from oxigrad import rules
from oxigrad.optim.table.row import TABLE
from oxigrad.rules.core import rule
from pages import formulas, optimizers


def test_the_formula_of_adam() -> None:
    assert formulas.lines(TABLE["Adam"].optimizer._rule) == [
        r"m_t = \beta_1 \, m_{t-1} + \left(1 - \beta_1\right) \, g_t",
        r"v_t = \beta_2 \, v_{t-1} + \left(1 - \beta_2\right) \, g_t^{2}",
        r"\theta_t = \theta_{t-1} - \frac{\frac{\eta}{1 - \beta_1^{t}} \, m_t}{\frac{\sqrt{v_t}}{\sqrt{1 - \beta_2^{t}}} + \epsilon}",
    ]


def test_an_expression_that_occurs_twice_has_a_letter() -> None:
    assert formulas.lines(TABLE["Adadelta"].optimizer._rule)[1:] == [
        r"a_t = \frac{\sqrt{u_{t-1} + \epsilon}}{\sqrt{v_t + \epsilon}} \, g_t",
        r"u_t = \rho \, u_{t-1} + \left(1 - \rho\right) \, a_t^{2}",
        r"\theta_t = \theta_{t-1} - \eta \, a_t",
    ]


@pytest.mark.parametrize("name", sorted({*TABLE} - {"LBFGS"}))
def test_each_optimizer_has_a_formula_that_defines_what_it_reads(name: str) -> None:
    lines = formulas.MATRICES.get(name) or formulas.lines(TABLE[name].optimizer._rule)
    assert lines[-1].startswith(r"\theta_t = ")
    defined = [line.partition(" = ")[0] for line in lines]
    assert len(defined) == len({*defined})
    if name in formulas.MATRICES:
        return
    known = {"g_t", "f_t"}
    for line in lines:
        named, _, text = line.partition(" = ")
        read = set(re.findall(r"(?:\\text\{[^}]*\}|\\hat\{v\}|[a-z])_t(?!\w)", text))
        assert read <= known, (name, line)
        known.add(named)


def test_precedence() -> None:
    x, y, z = (formulas.atom(each) for each in "xyz")
    found: list[Any] = [(x - (y - z)) * 2.0, -x * y, (x + y) ** z, x * (y / z), 1.0 - x, x - y - z, (x * y) * y]
    assert [each.text({}) for each in found] == [
        r"\left(x - \left(y - z\right)\right) \, 2",
        r"\left(-x\right) \, y",
        r"\left(x + y\right)^{z}",
        r"x \, \frac{y}{z}",
        "1 - x",
        "x - y - z",
        r"x \, y^{2}",
    ]
    assert formulas.of(math.inf).raw == r"\infty" and formulas.of(1e-16).raw == r"1 \cdot 10^{-16}"


def test_a_rule_of_arrays_has_no_printed_formula() -> None:
    assert formulas.lines(rule.read(rules.muon)) == []


def test_the_page_has_all_sections() -> None:
    text = optimizers.page("AdamW", TABLE["AdamW"], "AdamW.png")
    headings = re.findall(r"^#{1,3} (.*)", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    assert headings[:3] == ["AdamW", "Formula", "Example"]
    assert headings[3:8] == ["Arguments", "Hyperparameters", "Precision", "Gradients", "State"]
    assert headings[8:] == ["Methods", "Memory and cost", "In PyTorch, optax and Keras", "Source"]
    assert "oxigrad.torch.AdamW(module.parameters(), lr=0.001)" in text and "epsilon_root` |" in text
