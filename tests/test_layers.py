"""The imports of all files: no cycle between files, and none against the layers.

A file of Rust, unless it holds tests, depends on the files that its `mod` items declare, and on those that its paths (``crate::``, ``super::``,
``self::``, ``oxigrad_core::``) lead to, as far as modules go. A file of Python depends on the modules that it imports, in
functions too.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from imports import Graph, cycles, python, python_graph

ROOT = Path(__file__).parent.parent

# What each family of SciPy's functions imports.
FAMILY = "__init__ _core _names _typing extend ops xp xp/_scipy"
# Each layer and the layers that it imports. A file belongs to the layer with the longest name that its own begins with.
PYTHON = {
    "_core": "",
    "_names": "",
    "_tables": "",
    "_typing": "",
    "ops": "_core _names _typing",
    "xp": "_core _names ops",
    "tree": "_core _names ops xp",
    "autodiff": "_core _names _tables _typing ops xp tree",
    "rules": "_core _names _typing ops",
    "schedules": "_core _names _typing ops xp",
    "cuda": "_core _names ops",
    "step": "_core _names ops xp tree rules schedules cuda",
    "recording": "_core _names _tables _typing ops tree step",
    "optim": "_core _names _tables _typing ops xp tree autodiff recording rules schedules step",
    "testing": "_core _names ops xp tree autodiff optim rules step",
    "torch": "_core _names ops xp cuda optim rules step",
    "optax": "_core _names ops xp tree optim rules step",
    "interop": "_core _names _typing ops xp tree autodiff",
    "keras": "_core _names optim schedules tree",
    "scipy": "_core _names _typing ops xp tree autodiff",
    "autograd": "_core ops xp tree autodiff optim recording scipy testing",
    "_callbacks": "_core ops xp autodiff",
    "extend": "_core _names _tables _typing ops xp tree autodiff rules schedules cuda step optim",
    "__init__": "_core _callbacks _names autodiff cuda extend optim recording rules schedules scipy step testing tree xp",
    "doctor": "_core ops xp cuda step optim",
    "__main__": "__init__ doctor",
    "xp/_scipy": "_core _typing ops xp",
    **{f"xp/_scipy/{part}": FAMILY for part in ("integrate", "interpolate", "ndimage", "special")},
    **{f"xp/{part}": f"ops xp/_scipy xp/_scipy/{part}" for part in ("integrate", "interpolate", "ndimage", "special")},
    **dict.fromkeys(("xp/_scipy/spatial", "xp/_scipy/stats"), f"{FAMILY} xp/special xp/_scipy/special"),
    "xp/_scipy/signal": f"{FAMILY} xp/ndimage xp/_scipy/ndimage",
    **{f"xp/{part}": f"_names ops xp/_scipy/{part}" for part in ("signal", "spatial", "stats")},
    "launch": "",
    "distributed/errors": "",
    "distributed/messages/reports/clock": "",
    "distributed/messages/reports": "extend distributed/messages/reports/clock",
    "distributed/decisions": "distributed/errors",
    "distributed/messages": "__init__ _typing extend distributed/errors",
    "distributed/engines/backoff": "",
    "distributed/engines/background": "distributed/engines/backoff distributed/errors distributed/messages/reports/clock",
    "distributed/engines/mailbox": "distributed/errors distributed/messages",
    "distributed/communicator": "extend optim distributed/decisions distributed/engines/background distributed/engines/backoff "
    "distributed/engines/mailbox distributed/errors distributed/messages distributed/messages/reports/clock",
    "distributed/engines/devices": "cuda extend distributed/communicator",
    "distributed/engines": "__init__ extend launch distributed/communicator distributed/decisions distributed/engines/background "
    "distributed/engines/backoff distributed/engines/mailbox distributed/errors distributed/messages",
    "distributed": "__init__ _typing extend optim schedules tree xp distributed/communicator distributed/decisions "
    "distributed/engines/backoff distributed/engines/background distributed/engines/devices distributed/errors distributed/messages distributed/messages/reports "
    "distributed/messages/reports/clock",
}
FAMILIES = "adagrad adam adam_variants factored layerwise low_rank orthogonal parameter_free preconditioned sgd".split()
# The same for the files of a folder.
ROOMS = {
    "ops": {
        "backends": "",
        "core": "backends",
        "scipy_signatures": "backends core",
        "fft": "backends core scipy_signatures",
        "linalg": "backends core scipy_signatures",
        "numpy": "backends core linalg",
        "polynomial_bases": "backends core numpy",
        "protocols": "backends core linalg numpy",
        "__init__": "",
    },
    "autodiff": {
        "arguments": "",
        "rules": "",
        "batching": "rules",
        "function_calls": "rules batching",
        "checkpoint": "arguments function_calls",
        "custom_rules": "rules arguments function_calls",
        "transforms": "rules arguments",
        "vmap": "rules arguments batching",
        "jacobians": "rules arguments transforms",
        "products": "rules arguments function_calls transforms vmap jacobians",
        "sparse": "rules arguments transforms jacobians",
        "implicit": "arguments custom_rules function_calls transforms jacobians",
        "inspection": "",
        "__init__": "",
    },
    "rules": {
        "core": "",
        **dict.fromkeys(FAMILIES, "core"),
        "schedule_free": "core",
        "gradient_transforms": "core schedule_free",
        "__init__": " ".join([*FAMILIES, "schedule_free"]),
    },
    "step": {
        "slice": "",
        "arrays": "",
        "parameters": "arrays",
        "plan": "arrays parameters slice",
        "state": "arrays parameters",
        "slots": "arrays parameters plan state",
        "device": "arrays parameters plan slots",
        "placement": "arrays parameters plan slice",
        "writes": "arrays device parameters plan slots",
        "pure": "arrays parameters plan slots state writes",
        "stepper": "arrays device parameters plan slice slots state writes",
        "parts": "arrays device parameters plan slots stepper writes",
        "changes": "parameters plan slots stepper",
        "placement/host_placement": "arrays parameters parts placement plan stepper",
        "__init__": "",
    },
    "recording": {
        "targets": "",
        "bits": "",
        "writes": "targets",
        "traced": "targets writes",
        "trace": "bits targets traced writes",
        "captures": "bits traced",
        "answers": "captures targets trace traced writes",
        "program/__init__": "",
        "program/replay": "bits targets trace traced",
        "program/encoding": "",
        "files": "program/encoding program/replay targets trace",
        "inputs": "bits captures files traced",
        "shadows": "answers captures inputs trace traced",
        "cases": "bits captures files inputs program/replay trace",
        "function": "answers bits captures cases files inputs shadows trace traced",
        "__init__": "",
    },
    "optim": {
        "settings": "",
        "summary": "",
        "losses": "",
        "recorded_losses": "losses",
        "in_backward": "losses",
        "stateful": "settings summary",
        "optimizer": "in_backward losses recorded_losses settings stateful",
        "rule_optimizer": "optimizer settings",
        "partition": "optimizer rule_optimizer settings",
        "closures": "losses optimizer rule_optimizer settings",
        "chain": "optimizer rule_optimizer settings",
        "composition": "chain partition settings",
        "table": "chain closures partition rule_optimizer settings",
        "__init__": "chain closures composition optimizer partition rule_optimizer settings stateful table",
    },
    "torch": {
        "library": "",
        "formulas": "",
        "table": "formulas",
        "group": "formulas table",
        "state": "group library table",
        "step": "group formulas library state table",
        "optimizer": "library state step table",
        "drop_in": "group library optimizer state step table",
        "additional": "drop_in library optimizer step table",
        "schedule_free": "additional library state table",
        "sparse": "group drop_in library state step",
        "lbfgs": "library state",
        "interchange": "library state table",
        "__init__": "drop_in formulas interchange lbfgs additional schedule_free sparse state step",
    },
}
CORE = {
    "error": "",
    "parallel": "",
    "special": "",
    "tree": "error",
    "array/half": "",
    "array/dtype": "array/half",
    "array/quantized": "",
    "simd": "array/half special",
    "op": "simd",
    "scalar": "op simd",
    "array": "array/dtype array/half array/quantized error parallel simd",
    "kernel": "array/dtype array/quantized error op simd",
    "exec": "array array/dtype array/half array/quantized error kernel op parallel scalar simd",
    "autodiff": "array error exec kernel op scalar",
    "recording": "error op scalar simd",
    "lib": "array autodiff error exec kernel op parallel recording scalar simd special tree",
}
BINDING = {
    "error": "core",
    "prelude": "error",
    "threads": "core error",
    "callbacks": "",
    "class_cache": "error",
    "tree": "core callbacks class_cache error prelude",
    "arrays": "core callbacks class_cache error prelude threads",
    "autodiff": "core arrays callbacks class_cache error prelude threads tree",
    "stepper": "core arrays autodiff callbacks class_cache error prelude threads tree",
    "recording": "core arrays autodiff error prelude tree",
    "xla": "core prelude stepper threads",
    "lib": "core arrays autodiff callbacks class_cache error prelude recording stepper threads tree xla",
}
# The same for the files of a folder of a crate.
CORE_ROOMS = {
    "simd": {
        **dict.fromkeys("crc32c float_env noise prefetch".split(), ""),
        "lane": "noise",
        "functions": "lane",
        "math": "functions lane",
        "instruction_sets": "lane noise",
        "traced": "instruction_sets lane",
        "dispatch": "crc32c float_env instruction_sets lane",
        "mod": "crc32c dispatch float_env functions instruction_sets lane math noise prefetch traced",
    },
}
BINDING_ROOMS = {
    "arrays": {
        "batch_level": "",
        "checksum": "",
        "memory": "batch_level",
        "value": "memory",
        "compute": "memory value",
        "mod": "batch_level checksum compute memory value",
    },
    "autodiff": {
        "graph": "",
        "vjp_rules": "graph",
        "operations": "graph vjp_rules",
        "replay": "graph operations vjp_rules",
        "tape_methods": "graph replay vjp_rules",
        "transforms": "graph vjp_rules",
        "mod": "graph operations replay tape_methods transforms vjp_rules",
    },
    "stepper": {
        **dict.fromkeys("cuda launches lock signature".split(), ""),
        "stated": "launches",
        "write": "stated",
        "symbols": "cuda",
        "parameters": "stated symbols",
        "slices": "parameters symbols",
        "update": "parameters slices",
        "step": "parameters slices stated symbols update write",
        "mod": "cuda launches lock parameters signature slices stated step symbols update write",
    },
}


def layer(file: str, layers: Mapping[str, str]) -> str:
    """The layer of a file, named by its path from the root of its sources, without the suffix."""
    matching = [name for name in layers if file == name or file.startswith(f"{name}/")]
    assert matching, f"{file} belongs to no layer"
    return max(matching, key=len)


def violations(graph: Graph, layers: Mapping[str, str]) -> list[str]:
    """The imports that the layers do not allow."""
    found = []
    for file, others in sorted(graph.items()):
        of_file = layer(file, layers)
        allowed = {of_file, *layers[of_file].split()}
        wrong = {other for other in others if layer(other, layers) not in allowed}
        found += [f"{file} ({of_file}) imports {other} ({layer(other, layers)})" for other in sorted(wrong)]
    return found


def within(graph: Graph, folder: str) -> Graph:
    """The part of the graph that is a folder's, with names from the folder on."""

    def inside(files: Iterable[str]) -> set[str]:
        return {file.removeprefix(f"{folder}/") for file in files if file.startswith(f"{folder}/")}

    return {name: inside(graph[f"{folder}/{name}"]) for name in inside(graph)}


# --- Rust ------------------------------------------------------------------------------------------------------------

_NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|\br(\#*)".*?"\1|b?"(?:\\.|[^"\\])*"|'(?:\\[^']*|[^'\\])'""", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*|::|[^\s]")


def rust_graph(roots: Mapping[str, Path]) -> Graph:
    """The files of crates and those that each depends on. Crates are given by the name that paths begin with."""
    modules: dict[tuple[str, ...], str] = {}
    sources: dict[str, tuple[tuple[str, ...], str]] = {}
    for crate, root in roots.items():
        for file in sorted(file for file in root.rglob("*.rs") if file.stem != "tests"):
            parts = file.relative_to(root).with_suffix("").parts
            module = (crate, *(parts[:-1] if parts[-1] in {"mod", "lib"} else parts))
            name = "/".join([crate, *parts])
            modules[module] = name
            sources[name] = (module, file.read_text())
    return {
        name: {modules[to] for to in _rust_modules(module, text, modules)} - {name}
        for name, (module, text) in sources.items()
    }


Module = tuple[str, ...]


def _rust_modules(module: Module, text: str, modules: Mapping[Module, str]) -> Iterator[Module]:
    words = _WORD.findall(_NO_CODE.sub(" ", text))
    crates = {known[0] for known in modules}
    inline: list[tuple[int, str]] = []  # the modules inside of the file, with the depth of braces at which each ends
    depth, at = 0, 0
    while at < len(words):
        word, following = words[at], words[at + 1 : at + 3]
        here = (*module, *(name for _, name in inline))
        if word == "mod" and following[1:] == ["{"]:
            inline.append((depth, following[0]))
        elif word == "mod" and following[1:] == [";"]:
            yield from _resolve((*here, following[0]), len(here), modules)
        elif word == "use":
            end = words.index(";", at)
            for path in _paths(words[at + 1 : end]):
                yield from _target(path, here, crates, modules, in_use=True)
            at = end
        elif word in {"crate", "super", "self", *crates} and following[:1] == ["::"] and words[at - 1] != "::":
            end = _path_end(words, at)
            for path in _paths(words[at:end]):
                yield from _target(path, here, crates, modules, in_use=False)
            at = end - 1
        elif word == "{":
            depth += 1
        elif word == "}":
            depth -= 1
            if inline and inline[-1][0] == depth:
                inline.pop()
        at += 1


def _path_end(words: list[str], at: int) -> int:
    while words[at + 1] == "::":
        at += 2
        if words[at] == "{":
            return words.index("}", at) + 1
        if words[at] in {"$", "<", "("}:  # a name that a macro fills in, or arguments
            return at
    return at + 1


def _paths(words: list[str]) -> Iterator[list[str]]:
    """The paths of a tree such as ``a::{b, c::{self, d as e}}``."""
    prefixes: list[list[str]] = []
    path: list[str] = []
    before: list[str] = []
    for word in words:
        if word == "{":
            prefixes.append(path)
        elif word in {",", "}"}:
            if path != before:
                yield path
            before = path = prefixes[-1] if word == "," else prefixes.pop()
            if word == "}":
                before = path
        elif word != "::" and "as" not in path:
            path = [*path, word]
        if word == "{":
            before = path
    if path != before:
        yield path


def _target(
    path: list[str], here: Module, crates: set[str], modules: Mapping[Module, str], *, in_use: bool
) -> Iterator[Module]:
    names = path[: path.index("as")] if "as" in path else path
    start = here
    while names and names[0] in {"crate", "self", "super", *crates}:
        first, names = names[0], names[1:]
        start = {"crate": here[:1], "self": start, "super": start[:-1]}.get(first, (first,))
    if in_use and start == here and path[0] != "self" and (*here, *names[:1]) not in modules:
        return  # the path of another crate, or of the standard library
    if not names and not in_use:
        return  # the rest is filled in by a macro
    yield from _resolve((*start, *names), len(start), modules)


def _resolve(path: Module, known: int, modules: Mapping[Module, str]) -> Iterator[Module]:
    """The deepest module of a file on the way of a path. What is not below a file is in an inline module of it."""
    end = known
    while end < len(path) and path[: end + 1] in modules:
        end += 1
    while path[:end] not in modules:
        end -= 1
    yield path[:end]


@functools.cache
def rust() -> Graph:
    return rust_graph({"oxigrad_core": ROOT / "rust/core/src", "binding": ROOT / "rust/python/src"})


def of_crate(graph: Graph, crate: str) -> Graph:
    """The part of the graph that is a crate's, with names as in the tables; files of the core are ``core`` elsewhere."""

    def renamed(name: str) -> str:
        return name.removeprefix(f"{crate}/") if name.startswith(f"{crate}/") else "core"

    return {
        renamed(file): {renamed(other) for other in others} for file, others in graph.items() if file.startswith(crate)
    }


# --- the tests -------------------------------------------------------------------------------------------------------


def test_python_has_no_import_cycle() -> None:
    assert cycles(python()) == []


def test_python_keeps_its_layers() -> None:
    assert violations(python(), PYTHON) == []


@pytest.mark.parametrize("folder", ROOMS)
def test_a_folder_keeps_its_layers(folder: str) -> None:
    assert violations(within(python(), folder), ROOMS[folder]) == []


def test_rust_has_no_import_cycle() -> None:
    assert cycles(rust()) == []


@pytest.mark.parametrize(("crate", "layers"), [("oxigrad_core", CORE), ("binding", BINDING)])
def test_rust_keeps_its_layers(crate: str, layers: dict[str, str]) -> None:
    assert violations(of_crate(rust(), crate), {"core": "", **layers}) == []


@pytest.mark.parametrize(
    ("crate", "folder", "layers"),
    [("oxigrad_core", *item) for item in CORE_ROOMS.items()] + [("binding", *item) for item in BINDING_ROOMS.items()],
)
def test_a_folder_of_rust_keeps_its_layers(crate: str, folder: str, layers: dict[str, str]) -> None:
    assert violations(within(of_crate(rust(), crate), folder), layers) == []


@pytest.mark.parametrize(
    "layers", [PYTHON, *ROOMS.values(), CORE, BINDING, *CORE_ROOMS.values(), *BINDING_ROOMS.values()]
)
def test_layers_are_listed_after_those_that_they_import(layers: dict[str, str]) -> None:
    names = list(layers)
    for number, (name, imported) in enumerate(layers.items()):
        assert set(imported.split()) <= {"core", *names[:number]}, name


# The most entries of a folder of sources, and lines of a file; and what has more: folders with their entries, and files. Nothing
# that is written by hand is added here, and what has shrunk enough is taken out.
SOURCES = {"python/oxigrad": ".py", "rust/core/src": ".rs", "rust/core/tests": ".rs", "rust/python/src": ".rs"}
ENTRIES, LINES = 14, 450
FULLER = {"python/oxigrad": 27}
LONGER = """
rust/core/src/kernel/native/generated
"""


def sources() -> Iterator[Path]:
    return (file for root, suffix in SOURCES.items() for file in (ROOT / root).rglob(f"*{suffix}"))


def entries(folder: Path, suffix: str) -> int:
    """The number of source files of a folder, and of folders in it that have some."""
    return sum(each.suffix == suffix or any(each.glob(f"*{suffix}")) for each in folder.iterdir())


def test_folders_have_few_entries() -> None:
    folders = {(file.parent, file.suffix) for file in sources()}
    counts = {folder.relative_to(ROOT).as_posix(): entries(folder, suffix) for folder, suffix in folders}
    fuller = {folder: count for folder, count in counts.items() if count > ENTRIES}
    assert fuller.keys() == FULLER.keys()
    assert not {folder: count for folder, count in fuller.items() if count > FULLER[folder]}


def test_files_have_few_lines() -> None:
    files = {file.relative_to(ROOT).with_suffix("").as_posix(): file for file in sources()}
    assert {name for name, file in files.items() if file.read_text().count("\n") > LINES} == {*LONGER.split()}


def test_lines_of_python_are_short() -> None:
    """Ruff leaves lines alone that end in a comment for a tool."""
    files = [file for file in sources() if file.suffix == ".py"]
    assert [f"{file}: {line}" for file in files for line in file.read_text().splitlines() if len(line) > 120] == []


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def test_a_cycle_of_python_files_is_found(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from made import a\n",
        "a.py": "import made.b.c\n",
        "b/__init__.py": "",
        "b/c.py": "from ..d import f\n",
        "d.py": "def f():\n    from made.a import g\n",
        "e.py": "from made import d\nfrom made._core import x\n",
    }
    graph = python_graph(write(tmp_path / "made", files))
    assert graph["e"] == {"d", "_core"} and cycles(graph) == [["a", "b/c", "d"]]
    assert violations({"d": graph["d"]}, {"a": "d", "d": ""}) == ["d (d) imports a (a)"]
    assert within(graph, "b") == {"__init__": set(), "c": set()}


def test_a_cycle_of_rust_files_is_found(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\nmod b;\nmod c;\nmod d;",
        "a.rs": "use std::fmt::{self, Write};\n\nuse crate::{b::inner::{self as other, Thing}, c::{Deep as _}};",
        "b/mod.rs": "mod inner;\npub use inner::Thing;",
        "b/inner.rs": "/// As [`crate::a`].\nfn f() -> &'static str { let _ = 'a'; \"crate::a\" }\nstruct Thing;",
        "c.rs": "fn f() { crate::d::g(); }\nmod tests { use super::*; mod deeper { use super::super::Deep; } }",
        "d.rs": "macro_rules! m { ($x:ident) => { $crate::a::f(super::$x::y) } }",
    }
    graph = rust_graph({"made": write(tmp_path, files)})
    assert graph["made/a"] == {"made/b/inner", "made/c"} and graph["made/c"] == {"made/d"}
    assert graph["made/b/inner"] == set() and graph["made/b/mod"] == {"made/b/inner"}
    assert cycles(graph) == [["made/a", "made/c", "made/d"]]


def test_a_child_that_imports_its_parent_is_a_cycle(tmp_path: Path) -> None:
    files = {"lib.rs": "mod a;", "a/mod.rs": "mod b;\npub struct X;", "a/b.rs": "use super::X;"}
    assert cycles(rust_graph({"made": write(tmp_path, files)})) == [["made/a/b", "made/a/mod"]]
