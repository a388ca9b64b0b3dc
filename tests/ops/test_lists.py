"""Functions of `oxigrad.xp` take nested lists in place of arrays, as NumPy's and SciPy's do."""

import ast

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("matplotlib")  # of the tools
from oxigrad import xp
from pages import examples

# In these a list is a tree, a block of blocks, returned as a list, or an error in NumPy too.
OTHER_MEANINGS = {
    "xp.block",
    "xp.trim_zeros",
    "xp.astype",
    "xp.from_dlpack",
    "xp.apply_over_axes",
}


def arguments_alone(example: examples.Example) -> set[str]:
    """The values of an example that are only passed to its functions; empty where an operator, or an index, needs an array too."""
    tree = ast.parse(example.program)
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            child.parent = node
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in example.values]
    is_passed = all(isinstance(node.parent, (ast.Call, ast.keyword, ast.List, ast.Tuple)) for node in names)
    return {node.id for node in names} if is_passed and len(tree.body) == 1 else set()


TAKES_ARRAYS = {
    name: values
    for name, (example, *_) in examples.table().items()
    if name.startswith("xp.") and name not in OTHER_MEANINGS and (values := arguments_alone(example))
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(TAKES_ARRAYS))
@pytest.mark.one_in(4)
def test_a_list_is_taken_for_an_array(name: str) -> None:
    example = examples.table()[name][0]
    arrays = {value: eval(example.values[value], {"np": np}) for value in TAKES_ARRAYS[name]}  # noqa: S307
    lists = {value: array.tolist() for value, array in arrays.items()}
    expected, result = (eval(example.program, {"xp": xp, "np": np, **each}) for each in (arrays, lists))  # noqa: S307
    assert type(result) is type(expected)
    for part, other in zip(parts(result), parts(expected), strict=True):
        np.testing.assert_array_equal(part, other)


def parts(result: object) -> list[object]:
    return [part for each in result for part in parts(each)] if isinstance(result, (list, tuple)) else [result]


@pytest.mark.parametrize("function", [xp.equal, xp.not_equal])
def test_lists_are_compared_element_by_element(function: object) -> None:
    import oxigrad as ox

    sought = [True, False] if function is xp.equal else [False, True]
    assert function((1.0, 2.0), (1.0, 3.0)).tolist() == sought
    with ox.Tape() as tape:
        x = tape.watch(np.array([1.0, 2.0]))
        assert function(x, [1.0, 3.0]).tolist() == function([1.0, 3.0], x).tolist() == sought
        assert function([x, x], [[1.0, 3.0]]).tolist() == [sought, sought]
        assert bool(np.all(function(x, None))) is bool(np.all(function(x, "a"))) is (function is xp.not_equal)


def test_there_are_such_functions() -> None:
    assert len(TAKES_ARRAYS) > 400


@pytest.mark.parametrize("method", ["logpdf", "ppf"])
def test_distributions_take_lists_of_variables_and_of_parameters(method: str) -> None:
    import oxigrad as ox

    f = getattr(xp.stats.gamma, method)
    value, slope = ox.value_and_grad(lambda x: xp.sum(f([x, 0.3], [1.5, 2.0], scale=[1.0, 2.0])))(0.7)
    assert value == pytest.approx(
        float(np.sum(f(np.array([0.7, 0.3]), np.array([1.5, 2.0]), scale=np.array([1.0, 2.0]))))
    )
    assert slope == pytest.approx(ox.grad(lambda x: f(x, 1.5))(0.7))
