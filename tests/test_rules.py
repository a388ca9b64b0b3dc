"""Rules: the native code in the core is theirs."""

import pytest

import generated
from oxigrad import optim


@pytest.mark.skipif(not generated.PATH.exists(), reason="the sources of the core are not here")
def test_native_code_is_printed_from_the_rules() -> None:
    assert generated.PATH.read_text() == generated.text(), "the rules have changed: make generated"


@pytest.mark.parametrize(
    "make", [optim.SGD, optim.Momentum, lambda: optim.Momentum(nesterov=True), optim.Adam, optim.AdamW]
)
def test_shipped_rules_run_as_native_code(make) -> None:
    assert make().program.is_native


def test_a_rule_of_one_s_own_is_interpreted() -> None:
    assert not optim.define(lambda xp, p, g: p - xp.tanh(g), "Own")().program.is_native
