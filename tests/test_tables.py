"""Tables for people: their width, their cells, and their HTML."""

import pickle
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim
from oxigrad._tables import WIDTH, Table, middle_cut

LONG = "encoder.layers.{}.attention_with_a_long_name.query_projection.{}"
OPTIMIZERS = {
    "one rule": lambda: optim.Adam(0.1),
    "a chain": lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.AdamW(0.1), optim.EMA(0.9)),
    "a partition": lambda: optim.partition({"*bias": optim.SGD(0.1, 0.9), "*": optim.AdamW(0.1)}),
    "SAM": lambda: optim.SAM(optim.SGD(0.1)),
}


def model(depth: int, name: str = "weight") -> Any:
    tree: Any = {name: np.ones((2, 3)), "bias": np.ones(3)}
    for level in range(depth):
        tree = {f"a_module_of_level_{level}": tree, "rest": [np.ones((1000, 1, 1, 1, 1))]}
    return tree


@pytest.mark.parametrize("made", OPTIMIZERS)
@pytest.mark.parametrize("tree", [model(0), model(3), model(12), model(1, "w" * 300)], ids=["flat", "3", "12", "name"])
def test_a_table_of_any_model_has_at_most_100_columns(made: str, tree: Any) -> None:
    table = OPTIMIZERS[made]().table(tree)
    assert max(map(len, table.splitlines())) <= WIDTH
    assert [row[0] for row in table.rows] == [str(path) for path in ox.tree.parameters(tree)]


def test_a_summary_has_at_most_100_columns() -> None:
    opt, tree = OPTIMIZERS["a chain"](), model(6)
    opt.build(tree)
    assert max(map(len, opt.summary().splitlines())) <= WIDTH


def test_paths_that_differ_stay_different() -> None:
    names = [LONG.format(layer, name) for layer in range(12) for name in ("weight", "bias")]
    table = Table(("parameter", "hyperparameters"), [(name, "rate=0.1, " * 20) for name in names])
    cut = {line.split("  ")[0] for line in table.splitlines() if line[0] != " "}
    assert len(cut) == len(names) + 1
    assert table.count("as above") == len(names) - 1


@pytest.mark.parametrize("width", range(2, 12))
def test_the_middle_is_cut(width: int) -> None:
    assert middle_cut("abcdefghij", 10) == "abcdefghij"
    cut = middle_cut("abcdefghijk", width)
    assert len(cut) == min(width, 11) and cut[-1] == "k"


def test_a_table_is_text_that_notebooks_show() -> None:
    table = Table(("a", "b"), [("<i>", "1 & 2"), ("", "")], "of <x>\nand y")
    assert repr(table) == str(table) == "a    b\n<i>  1 & 2\n"
    shown = table._repr_html_()
    assert (
        "<td>&lt;i&gt;</td><td>1 &amp; 2</td>" in shown and "<code>of &lt;x&gt;</code><br><code>and y</code>" in shown
    )
    copied = pickle.loads(pickle.dumps(table))  # noqa: S301
    assert copied == table and copied._repr_html_() == shown


def test_a_recording_is_a_table_in_notebooks() -> None:
    f = ox.record(lambda x: ox.xp.sum(x * x))
    f(np.ones(3))
    shown = f._repr_html_()
    assert (
        "1 recording" in shown and "float64[3]" in shown and "<th>entries</th>" in shown and "&lt;lambda&gt;" in shown
    )
    g = ox.record(print)
    assert "<table>" not in g._repr_html_()
