"""The table of the house, `tools/house.py`: the goals that are reached, and the combinations of options and ways to a step."""

import ast
from pathlib import Path

import pytest

import house
import ways
from imports import python, sibling_pairs

# The most frames and files of a call; no number grows.
CALLS = {
    "Adam": (7, 5),
    "Adam with a schedule": (9, 6),
    "chain of three": (7, 5),
    "Muon": (127, 26),
    "Adam.apply": (23, 10),
    "Adam.minimize": (21, 9),
    "Adam.minimize, in the backward": (40, 13),
    "Adam, construction and first step": (192, 39),
    "LargeBatch of one worker": (52, 15),
    "DataParallel of one worker": (52, 15),
    # A wait may wake more than once: 2 frames each, and 4 in a wait for a message.
    "DataParallel, one of two workers": (94, 28),
    "SyncReplicas, one of two workers": (122, 32),
    "torch AdamW": (10, 4),
    "torch AdamW, in the backward": (39, 9),
    "torch AdamW, construction and first step": (219, 29),
    "torch Muon": (164, 25),
    "optax adamw, eager": (20, 8),
}
# The combinations that are not accepted with the bits of `Optimizer.update`, or have no effect, by the way and the option. A rule that is
# called on the arrays of a library has the bits of the products and sums of that library.
OTHERS = {
    **{(way, "zero_gradients"): "no effect" for way in ("minimize", "minimize-in-backward", "minimize-record")},
    **{(way, "zero_gradients"): "refused" for way in ("optax", "optax-jit")},  # whose gradients cannot be written
    # The state of a pure step has its slots whole.
    **{(way, "slot_dtype=8bit"): "refused" for way in ("apply", "optax", "optax-jit")},
    ("optax-jit", "nonfinite=raise"): "other bits",  # a compiled function raises no error
    ("optax", "LAMB"): "other bits",
    **{(way, "Muon"): "other bits" for way, (_, library) in ways.WAYS.items() if library != "numpy"},
    ("update-torch", "Muon"): "other bits",
    ("torch-norm-pass", "max_norm"): "no effect",  # which it requires
    ("torch-norm-pass", "DoG"): "refused",
    ("torch-norm-pass", "Muon"): "refused",
}


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[pytest.mark.slow] * (kind == "optax")) for way, (_, kind) in ways.WAYS.items()]
)
def test_a_way_takes_every_option(way: str) -> None:
    """A way that has a word for an option takes it with the bits of `Optimizer.update`, and the option has an effect."""
    library = ways.WAYS[way][1]
    if library != "numpy":
        pytest.importorskip("torch" if library == "torch" else "jax")
        pytest.importorskip(library)
    marks = {option: ways.cell(way, option).mark for option in ways.OPTIONS}
    expected = {option: OTHERS.get((way, option), "ok") for option in ways.OPTIONS}
    assert {option: mark for option, mark in marks.items() if mark not in ("-", expected[option])} == {}
    assert sum(mark != "-" for mark in marks.values()) >= 10


def test_a_cell_compares_bits_and_effects(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ways.Cell().mark == "ok"
    assert ways.Cell(has_bits=False).mark == "other bits" and ways.Cell(has_effect=False).mark == "no effect"
    assert ways.Cell("reason").mark == "refused" and ways.Cell("reason", is_expressible=False).mark == "-"
    ignored = ways.Option({"nonfinite": "skip"})  # of finite gradients
    monkeypatch.setitem(ways.OPTIONS, "ignored", ignored)
    assert ways.cell("update", "ignored").mark == "no effect"
    assert ways.outcome("update", "max_norm").parameters != ways.outcome("update", "plain").parameters
    assert ways.outcome("update", "nonfinite=raise").raised == "NonFiniteError"


@pytest.mark.parametrize("name", CALLS)
def test_a_call_runs_no_more_functions_than_before(name: str) -> None:
    measure, libraries = house.CALLS[name]
    for library in libraries:
        pytest.importorskip(library)
    found = measure()
    assert 1 <= found.frames <= CALLS[name][0] and 1 <= found.files <= CALLS[name][1], found


def test_the_sources_keep_the_goals_that_are_reached() -> None:
    whole = house.sizes()
    assert whole.files > 400
    assert house.long_lines("python") == []
    assert len(house.protocols()) <= 10, house.protocols()
    assert whole.any_per_thousand < 63.5
    assert sibling_pairs(python()) == {}


def test_the_size_of_a_file_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "made.py"
    file.write_text(
        '"""Text."""\n\n# A comment.\nfrom typing import Any\n\nclass A:\n    """Text\n    of two."""\n\n    x: Any = b._y\n'
    )
    assert house.size(file) == house.Size(files=1, lines=10, code=3, classes=1, any=1, private_reads=1)


def test_siblings_that_import_each_other_are_found() -> None:
    graph = {"a/x": {"b/y"}, "b/y": {"c/z"}, "b/d/w": {"a/x"}, "c/z": set[str]()}
    assert sibling_pairs(graph) == {("a", "b"): ["a/x -> b/y", "b/d/w -> a/x"]}


def test_a_private_read_is_counted() -> None:
    reads = [
        node
        for node in ast.walk(ast.parse("a._x; self._x; super()._x; f()._x; a.__dict__; a._replace()"))
        if house.is_private_read(node)
    ]
    assert [ast.unparse(node) for node in reads] == ["a._x", "f()._x"]
