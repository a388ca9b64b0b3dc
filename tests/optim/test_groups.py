"""Patterns of key paths: matching, and patterns that match nothing."""

import json
import re
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim

DOTTED = ("0.weight", "0.bias", "conv/kernel", "2")


def dotted() -> dict[str, Any]:
    """A model with the keys of torch's ``named_parameters()`` and others that print in quotes."""
    return {name: np.ones(2) for name in DOTTED}


def frozen_by(pattern: Any) -> set[str]:
    """Parameters of the model above that match a pattern."""
    model = dotted()
    optim.SGD(1.0, groups={pattern: None}).update(model, dotted())
    return {name for name, array in model.items() if array[0] == 1.0}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.bias", {"0.bias"}),
        ("0.*", {"0.bias", "0.weight"}),
        ("0.bias", {"0.bias"}),
        ("conv/*", {"conv/kernel"}),
        ("2", {"2"}),
        ('"*.bias"', {"0.bias"}),
        ('*.bias"', {"0.bias"}),
        (re.compile(r"\d+[.]bias"), {"0.bias"}),
        (re.compile(r'"\d+[.]bias"'), {"0.bias"}),
        (re.compile(r"(?!.*bias$)0.*"), {"0.weight"}),
        (lambda path, array: path.endswith(".bias"), {"0.bias"}),
        (lambda path, array: path in DOTTED[:2], {"0.bias", "0.weight"}),
    ],
)
def test_dotted_keys_are_matched_without_quotes(pattern: Any, expected: set[str]) -> None:
    assert frozen_by(pattern) == expected


def test_a_partition_matches_dotted_keys() -> None:
    model = dotted()
    optim.partition({"*.bias": optim.SGD(1.0), "*": None}).update(model, dotted())
    assert {name for name, array in model.items() if array[0] == 0.0} == {"0.bias"}
    opt = optim.SGD(groups={"*.bias": None})
    assert re.search(r'"0\.bias" .* frozen', opt.table(dotted()))


def test_a_pure_step_matches_dotted_keys() -> None:
    opt = optim.SGD(1.0, groups={"*.bias": None})
    model, _ = opt.apply(dotted(), dotted(), opt.init(dotted()))
    assert [float(model[name][0]) for name in DOTTED] == [0.0, 1.0, 0.0, 0.0]


def test_quotes_tell_a_dotted_key_from_nested_ones() -> None:
    model = {"a.b": np.ones(1), "a": {"b": np.ones(1)}}
    grads = ox.tree.map(np.ones_like, model)
    paths = [str(path) for path in ox.tree.parameters(model)]
    assert paths == ['"a.b"', "a.b"]
    assert [
        ox.tree.path(path, model)(model) is array
        for path, array in zip(paths, (model["a.b"], model["a"]["b"]), strict=True)
    ]
    optim.SGD(1.0, groups={'"a.b"': None}).update(model, grads)
    assert (model["a.b"][0], model["a"]["b"][0]) == (1.0, 0.0)
    optim.SGD(1.0, groups={"a.b": None, "*": {}}).build({**model, "c": np.ones(1)})
    with pytest.raises(ox.StructureError, match="no parameters"):
        optim.SGD(1.0, groups={"a.b": None}).build(model)


def test_slots_by_dotted_keys() -> None:
    opt = optim.Adam()
    opt.build(dotted())
    assert opt.slots["0.bias"] is opt.slots['"0.bias"']
    opt = optim.Adam()
    opt.build({"a.b": np.ones(1), "a": {"b": np.ones(2)}})
    assert opt.slots["a.b"]["m"].shape == (2,)
    assert opt.slots['"a.b"']["m"].shape == (1,)
    with pytest.raises(KeyError, match="b: no slots"):
        opt.slots["b"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (
            "*.bais",
            r"the pattern '\*.bais' matches no parameter of the model; near: bias; there are l1.weight, l1.bias",
        ),
        ("bias", r"the pattern 'bias' matches no parameter"),
        ("l1.Bias", "the pattern 'l1.Bias' .* near: bias"),
        (re.compile("l2[.].*"), r"the pattern 'l2\[.\].*' .*; there are l1.weight"),
    ],
)
@pytest.mark.parametrize("kind", ["groups", "chain", "partition", "inside", "sam"])
def test_a_pattern_that_matches_nothing(kind: str, pattern: Any, message: str) -> None:
    def model() -> dict[str, Any]:
        return {"l1": {"weight": np.ones(2), "bias": np.ones(2)}}

    group = {pattern: {"learning_rate": 0.5}}
    opt: optim.Optimizer = {
        "groups": lambda: optim.SGD(1.0, groups=group),
        "chain": lambda: optim.chain(optim.ClipByValue(), optim.SGD(1.0), groups=group),
        "partition": lambda: optim.partition({pattern: optim.SGD(1.0), "*": optim.Adam()}),
        "inside": lambda: optim.partition({"*": optim.SGD(1.0, groups=group)}),
        "sam": lambda: optim.SAM(optim.SGD(1.0, groups=group)),
    }[kind]()
    given = model()
    loss = lambda m: ox.xp.sum(m["l1"]["weight"])  # noqa: E731
    for act in (
        lambda: opt.minimize(loss, given),
        lambda: opt.build(given),
        lambda: opt.init(given),
        lambda: opt.apply(given, model(), {"step": 0, "slots": {}}),
        lambda: opt.table(given),
    ):
        with pytest.raises(ox.StructureError, match=message):
            act()
    assert opt.step == 0 and not opt.slots
    np.testing.assert_array_equal(given["l1"]["weight"], 1.0)


def test_a_pattern_may_match_parameters_of_earlier_patterns() -> None:
    model = {"w": np.ones(2), "b": np.ones(2)}
    groups = {"*": {}, "w": {"learning_rate": 0.0}, lambda path, array: array.ndim == 5: None}
    optim.SGD(1.0, groups=groups).update(model, {"w": np.ones(2), "b": np.ones(2)})
    np.testing.assert_array_equal(model["w"], 0.0)
    optim.partition({"*": optim.SGD(), "w": optim.SGD()}).build(model)
    optim.partition({"w": optim.SGD(groups={"b": {}}), "*": None}).build(model)


def test_a_pattern_that_is_set_later_is_checked() -> None:
    opt, model = optim.SGD(1.0), {"w": np.ones(2)}
    opt.update(model, {"w": np.ones(2)})
    opt.groups = {"v": None}
    with pytest.raises(ox.StructureError, match="'v' matches no parameter of the model; there are w"):
        opt.update(model, {"w": np.ones(2)})
    assert opt.step == 1


def test_a_regular_expression_keeps_its_flags_in_a_config() -> None:
    opt = optim.SGD(1.0, groups={re.compile("W", re.IGNORECASE): None, "*": {}})
    config = json.loads(json.dumps(opt.get_config()))
    (pattern, *_) = optim.from_config(config).groups
    assert pattern == re.compile("W", re.IGNORECASE)
    with pytest.raises(TypeError, match="expected a glob"):
        optim.SGD(groups={re.compile(b"w"): None})


def test_a_dtype_is_configured_by_name() -> None:
    for dtype in (np.float32, np.dtype("float32"), "float32"):
        opt = optim.from_config(json.loads(json.dumps(optim.SGD(1.0, dtype=dtype).get_config())))
        model = {"a": np.ones(1, np.float32), "b": np.ones(1)}
        opt.update(model, {"a": np.ones(1, np.float32), "b": np.ones(1)})
        assert (model["a"][0], model["b"][0]) == (0.0, 1.0)
