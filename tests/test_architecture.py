"""ARCHITECTURE.md: its length, the existence of its paths, and its list of files with ``unsafe``."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
MAP = re.findall(r"```\n(.*?)```", PAGE, re.DOTALL)[0]
SOURCES = [
    path for folder in ("python", "rust") for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".rs")
]


def test_it_is_one_page() -> None:
    assert len(PAGE.split()) <= 1200


def test_make_shows_few_targets() -> None:
    shown, _, rest = (ROOT / "Makefile").read_text().partition("# --- for maintainers")
    assert 5 < len(re.findall(r"^[\w-]+:.* ## ", shown, re.MULTILINE)) <= 15
    assert re.findall(r"^[\w-]+:.* ## ", rest, re.MULTILINE) == []


def mapped() -> list[str]:
    """The paths of the map: an entry is below the last folder with less indentation."""
    found, folders = [], {-1: ""}
    for line in MAP.splitlines():
        indent = len(line) - len(line.lstrip())
        names, *_ = re.split(r"\s{2,}", line.strip())
        if indent > 4:  # the description of the line before goes on
            continue
        above = folders[max(at for at in folders if at < indent)]
        found += [above + name for name in names.split()]
        folders = {at: name for at, name in folders.items() if at < indent} | {indent: above + names.split()[-1]}
    return found


@pytest.mark.parametrize("path", mapped())
def test_a_path_of_the_map_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_map_names_folders() -> None:
    assert {"python/oxigrad/ops/backends/", "rust/core/src/array/", "rust/python/src/stepper/", "tools/"} <= {*mapped()}


@pytest.mark.parametrize("path", sorted({*re.findall(r"`((?:rust|python|tests)/[\w/.]+\.\w+)`", PAGE)}))
def test_a_path_in_the_text_exists(path: str) -> None:
    assert (ROOT / path).is_file()


def test_unsafe_code_is_in_the_listed_files_only() -> None:
    core = r"core/src/(array/(buffer|sum|scatter|matmul)|exec/[\w/]+|simd/[\w/]+)\.rs"
    binding = r"python/src/(arrays/[\w/]+|xla|autodiff/replay/fusion|stepper/(parameters/slot|slices|update))\.rs"
    assert "`array/{buffer,sum,scatter,matmul}`, `exec/` and `simd/`" in PAGE
    assert "`arrays/`, `xla`, `autodiff/replay/fusion` and\n   `stepper/{parameters/slot,slices,update}`" in PAGE
    stated = re.compile(f"(?:{core}|{binding})")
    code = re.compile(r"\bunsafe (?:\{|fn|impl|extern)")
    for path in (path for path in SOURCES if path.suffix == ".rs" and "src" in path.parts):
        if code.search(path.read_text()):
            assert stated.fullmatch(str(path.relative_to(ROOT / "rust"))), path


# Where a class gives any name a value: arrays, which have the attributes of another, and namespaces of array libraries;
# a distribution with parameters has the methods of its distribution, and an optimizer of parts the attributes of these.
OF_ANY_NAME = """
autodiff/batching: Batched _Namespace _Extension
ops/backends/mlx: _Namespace _Linalg
optax/displacement: _Namespace
optim/settings/attributes: Sealed
recording/traced: Traced
xp/_scipy/stats/distribution: FrozenDistribution
"""


def python_with(*words: str) -> list[tuple[Path, str]]:
    """The Python files that have one of the words, in order, with their texts: others need not be parsed."""
    pattern = re.compile(rf"\b(?:{'|'.join(words)})\b")
    texts = ((path, path.read_text()) for path in sorted(path for path in SOURCES if path.suffix == ".py"))
    return [(path, text) for path, text in texts if pattern.search(text)]


def test_no_object_is_a_proxy_of_any_name() -> None:
    """Elsewhere `__getattr__` of a class raises an error that helps, or is for type checkers."""
    root, of_any_name = ROOT / "python/oxigrad", []
    for path, text in python_with("__getattr__"):
        classes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
        names = [node.name for node in classes if any(map(_gives_values, _own_nodes(node)))]
        if names:
            of_any_name.append(f"{path.relative_to(root).with_suffix('').as_posix()}: {' '.join(names)}")
    assert of_any_name == OF_ANY_NAME.strip().splitlines()


def _own_nodes(node: ast.ClassDef) -> list[ast.stmt]:
    """The statements of a class, those at run time in an ``if`` included."""
    nested = [each for statement in node.body if isinstance(statement, ast.If) for each in statement.body]
    return [*node.body, *nested]


def _gives_values(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.FunctionDef)
        and node.name == "__getattr__"
        and any(isinstance(each, ast.Return) for each in ast.walk(node))
    )


PARTICIPLES = {"found", "own", "given", "kept", "known", "told", "made"}
# Names that users write: an argument of `centralize`, and an attribute of `Changes`.
PUBLIC = {("rules/gradient_transforms", "kept"), ("step/parameters/presence", "kept")}


def test_values_are_called_by_nouns() -> None:
    root, participles = ROOT / "python/oxigrad", []
    for path, text in python_with(*PARTICIPLES):
        name = path.relative_to(root).with_suffix("").as_posix()
        nodes = [*ast.walk(ast.parse(text))]
        declared = [node.target for node in nodes if isinstance(node, ast.AnnAssign) and node.value is None]
        for node in nodes:
            is_set = isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
            word = getattr(node, "arg", None) or getattr(node, "id", "")
            if is_set and word in PARTICIPLES and node not in declared and (name, word) not in PUBLIC:
                participles.append(f"{name}:{node.lineno}: {word}")
    assert not participles


OPENING = r"(?:What|How|Where|Which|Whose)\b"
# A docstring, or the first line of a block of documentation comments.
RIDDLE = re.compile(rf'"""{OPENING}|(?:^|\n)(?!\s*//[/!])[^\n]*\n\s*//[/!] {OPENING}|\A//! {OPENING}')


def test_documentation_opens_with_the_name_of_a_thing() -> None:
    riddles = {str(path.relative_to(ROOT)): RIDDLE.search(path.read_text()) for path in SOURCES}
    assert len(riddles) > 600
    assert not {path: riddle.group() for path, riddle in riddles.items() if riddle}


def test_riddles_are_found() -> None:
    for text in ('"""What it does."""', "x\n    /// How many.\n", "//! Where it lies.\n"):
        assert RIDDLE.search(text), text
    assert not RIDDLE.search("/// The number of rows.\n/// Where there are none, zero.\n")
