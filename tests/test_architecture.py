"""ARCHITECTURE.md: its length, the existence of its paths, and its list of files with ``unsafe``."""

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
    core = r"core/src/(array/(buffer|sum|matmul)|exec/[\w/]+|simd/[\w/]+)\.rs"
    binding = r"python/src/(arrays/[\w/]+|xla|autodiff/replay/fusion|stepper/(parameters/slot|update))\.rs"
    assert "`array/{buffer,sum,matmul}`, `exec/` and `simd/`" in PAGE
    assert "`arrays/`, `xla`, `autodiff/replay/fusion` and\n   `stepper/{parameters/slot,update}`" in PAGE
    stated = re.compile(f"(?:{core}|{binding})")
    code = re.compile(r"\bunsafe (?:\{|fn|impl|extern)")
    for path in (path for path in SOURCES if path.suffix == ".rs" and "src" in path.parts):
        if code.search(path.read_text()):
            assert stated.fullmatch(str(path.relative_to(ROOT / "rust"))), path


OPENING = r"(?:What|How|Where|Which|Whose)\b"
# A docstring, or the first line of a block of documentation comments.
RIDDLE = re.compile(rf'"""{OPENING}|(?:^|\n)(?!\s*//[/!])[^\n]*\n\s*//[/!] {OPENING}|\A//! {OPENING}')


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_documentation_opens_with_the_name_of_a_thing(path: Path) -> None:
    found = RIDDLE.search(path.read_text())
    assert not found, found and found.group()


def test_riddles_are_found() -> None:
    for text in ('"""What it does."""', "x\n    /// How many.\n", "//! Where it lies.\n"):
        assert RIDDLE.search(text), text
    assert not RIDDLE.search("/// The number of rows.\n/// Where there are none, zero.\n")
