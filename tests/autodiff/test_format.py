"""Formatting and rounding of variables, which read plain values."""

import math
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp


@pytest.mark.parametrize("value", [2.567, np.float64(2.567), np.array(2.567), np.array(2.567, np.float32)])
def test_a_format_reads_the_value(value: Any) -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append((f"{x:.3f}", f"{x:8.1e}", format(x, "+.2f"), f"{x:.1%}", str(x) == f"{x}" == "%s" % x))  # noqa: UP031
        return x * x

    assert ox.grad(f)(value) == pytest.approx(5.134)
    assert seen == [("2.567", " 2.6e+00", "+2.57", "256.7%", True)]
    assert ox.grad(ox.grad(f))(float(value)) == pytest.approx(2.0)
    assert seen[1][:2] == seen[0][:2]


def test_a_percent_format_reads_the_value_and_nothing_else_does() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        text = "%.1f and %d, %s"
        text %= (x, x, "more")
        seen.extend(["%.3f" % x, text, b"%.2f" % x, "%(x)5.1f" % {"x": x}, math.fmod(7, 4) % 2])  # noqa: UP031
        for use in (math.sin, float, lambda x: math.fmod(x, 2.0)):
            with pytest.raises(TypeError):
                use(x)
        return x % 2.0 + 5.0 % x

    value, slope = ox.value_and_grad(f)(2.567)
    assert value == pytest.approx(0.567 + 5.0 % 2.567) and slope == pytest.approx(1.0 - 1.0)
    assert seen == ["2.567", "2.6 and 2, more", b"2.57", "  2.6", 1.0]


def test_a_format_over_libraries(asarray: Any) -> None:
    def f(x: Any) -> Any:
        assert f"{x[0]:.2f}" == "1.50"
        assert [f"{each:.1f}" for each in x] == ["1.5", "2.5"]
        return xp.sum(x)

    ox.grad(f)(asarray(np.array([1.5, 2.5])))


def test_containers_of_variables_print() -> None:
    with ox.Tape() as tape:
        x = tape.watch(2.5, name="x")
        assert repr([x, {"a": (x,)}]) == '[Variable(2.5, name="x"), {\'a\': (Variable(2.5, name="x"),)}]'


def test_an_invalid_format_is_refused() -> None:
    with ox.Tape() as tape:
        x, w, z = tape.watch(2.5), tape.watch(np.ones(2)), tape.watch(np.array(1.0 + 2.0j))
        with pytest.raises(TypeError, match=r"format '.2f': found a variable of shape \(2,\)"):
            f"{w:.2f}"
        with pytest.raises(ValueError, match="format"):
            f"{x:.2q}"
        with pytest.raises(TypeError, match=r'f"\{x:.3f\}" its text'):
            float(x)
        assert f"{z:.1f}" == "1.0+2.0j"

    def rule(xp: Any, p: Any, g: Any, *, rate: float = 1.0) -> Any:
        return p - rate * g if f"{rate:.3f}" else p

    with pytest.raises(ox.RuleError, match="a rule cannot use the value"):
        ox.optim.define(rule, elementwise=True)


def test_round_is_the_namespace_s() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append((round(x), round(x, 1)))
        return x * round(x) + round(x, 1)

    assert ox.grad(f)(2.567) == 3.0
    assert seen == [(3.0, 2.6)]
    np.testing.assert_array_equal(
        ox.grad(lambda x: xp.sum(round(x) * x + round(x, 2)))(np.array([1.4, 2.6])), [1.0, 3.0]
    )
    with ox.Tape() as tape:
        x = tape.watch(np.array([1.25, 2.55]))
        assert not isinstance(round(x), ox.Variable)
        np.testing.assert_array_equal(round(x), xp.round(x))
