"""Writes the pages of the reference: one for each module of the public API, and one for each public name.

The names are those of ``__all__``. Modules of libraries that need not be installed, PyTorch and JAX, are read without an import, from
their stubs and sources.
"""

import ast
import importlib
import inspect
import itertools
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import oxigrad
from oxigrad.autodiff.inspection.support import Support
from oxigrad.optim.settings.documentation import SECTIONS, Argument
from oxigrad.optim.settings.documentation import sections as documented
from oxigrad.optim.table.row import TABLE
from oxigrad.rules.core.arguments import NOTES, TORCH
from pages import examples
from pages.examples import Example, rubric
from pages.tables import MIGRATION, elsewhere, support

PACKAGE = Path(oxigrad.__file__).parent

# What the reference is made of: modules, and what they are for.
MODULES = {
    "oxigrad": "Derivatives, variables and tapes, and errors",
    "oxigrad.xp": "Differentiable functions, by the names of the Array API standard and of NumPy",
    "oxigrad.xp.linalg": "Linear algebra",
    "oxigrad.xp.fft": "Fourier transforms",
    "oxigrad.xp.special": "Special functions, by SciPy's names",
    "oxigrad.xp.stats": "Probability distributions, by SciPy's names",
    "oxigrad.xp.signal": "Signals, by SciPy's names",
    "oxigrad.xp.ndimage": "Filters and interpolation, by SciPy's names",
    "oxigrad.xp.spatial.distance": "Distances, by SciPy's names",
    "oxigrad.xp.integrate": "Integrals and differential equations, by SciPy's names",
    "oxigrad.xp.interpolate": "Interpolation, by SciPy's names",
    "oxigrad.tree": "Models as trees, and key paths",
    "oxigrad.optim": "Optimizers, chains and their options",
    "oxigrad.schedules": "Schedules of hyperparameters",
    "oxigrad.torch": "Optimizers for PyTorch",
    "oxigrad.optax": "Transformations for optax",
    "oxigrad.keras": "Optimizers for Keras",
    "oxigrad.interop.torch": "Functions between oxigrad and PyTorch",
    "oxigrad.interop.jax": "Functions between oxigrad and JAX",
    "oxigrad.interop.autograd": "Functions of HIPS autograd in oxigrad",
    "oxigrad.scipy": "SciPy's solvers, with derivatives by oxigrad",
    "oxigrad.distributed": "Training with several workers",
    "oxigrad.cuda": "Kernels on CUDA devices",
    "oxigrad.testing": "Checks of derivatives and rules",
    "oxigrad.extend": "What packages of array libraries, optimizers and wrappers build on",
}
# Of these, those that import a library which is not installed with the documentation.
READ = {
    "oxigrad.torch",
    "oxigrad.optax",
    "oxigrad.keras",
    "oxigrad.interop.torch",
    "oxigrad.interop.jax",
    "oxigrad.interop.autograd",
}


def summary(doc: str | None) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join((inspect.cleandoc(doc or "").split("\n\n")[0]).split())


def is_of_numpy(name: str, value: Any) -> bool:
    """Whether a name of `xp` is NumPy's own object, or a function that has NumPy's docstring."""
    theirs = getattr(np, name, None)
    return theirs is not None and (value is theirs or (bool(value.__doc__) and value.__doc__ == theirs.__doc__))


class Entry:
    """A public name: its page, its summary, and what it is."""

    def __init__(self, module: str, name: str, kind: str, about: str, body: str) -> None:
        self.module, self.name, self.kind, self.about, self.body = module, name, kind, about, body
        self.page = f"{module}/{name}"  # below the folder of the reference

    @property
    def place(self) -> str:
        """The name below the package."""
        return f"{self.module}.{self.name}".removeprefix("oxigrad.")

    def text(
        self, others: dict[str, dict[str, list[str]]], supported: dict[str, Support], shown: dict[str, list[Example]]
    ) -> str:
        """The page."""
        place = self.place
        parts = [":orphan:", heading(f"{self.module}.{self.name}"), self.body]
        if place in shown:
            parts.append(rubric(shown[place]))
        if optimizer := described(self.module, self.name):
            said = f"its formula, memory and cost, and when to take it: :doc:`/gallery/{optimizer}`"
            parts.append(f".. rubric:: See also\n\nThe page of the optimizer: {said}.")
        if (names := others.get(place)) or (names := others.get(self.name) if self.module == "oxigrad" else None):
            stated = [
                f"* {library}: "
                + ", ".join(f"``{each}``" for each in dict.fromkeys(theirs))
                + f" (:doc:`/{page(library)}`)"
                for library, theirs in names.items()
            ]
            parts.append(".. rubric:: In other libraries\n\n" + "\n".join(stated))
        if self.module.startswith("oxigrad.xp") and (row := supported.get(place.removeprefix("xp."))):
            orders = [name for at, name in enumerate(("first", "second"), 1) if at <= row.order]
            said = f"derivatives of {' and '.join(orders)} order are tested" if orders else row.reason
            parts.append(f".. rubric:: Derivatives\n\nForward and reverse mode: {said} (:doc:`/{row.origin.lower()}`).")
        parts.append(f"Up: :doc:`/reference/{self.module}/index`")
        return "\n\n".join(parts) + "\n"


def described(module: str, name: str) -> str:
    """The optimizer in the gallery of a class or function; empty for other names."""
    if module in ("oxigrad.optim", "oxigrad.torch"):
        return name if name in TABLE else ""
    return next((each for each, row in TABLE.items() if module == "oxigrad.optax" and name in row.optax), "")


def page(library: str) -> str:
    """The name of the page that compares with a library."""
    return MIGRATION[library].removesuffix(".md")


def heading(text: str, mark: str = "=") -> str:
    """A heading of reStructuredText."""
    return f"{text}\n{mark * len(text)}"


def directive(kind: str, name: str, text: str, *options: str) -> str:
    """A directive with an indented body."""
    lines = "".join(f"\n   {option}" for option in options)
    return f".. {kind}:: {name}{lines}\n\n{textwrap.indent(text, '   ')}"


def imported(module: str) -> Iterator[Entry]:
    """The entries of a module that can be imported."""
    values = importlib.import_module(module)
    for name in values.__all__:
        value = getattr(values, name)
        full = f"{module}.{name}"
        about = summary(inspect.getdoc(value))
        if inspect.ismodule(value) or full in MODULES or (module == "oxigrad" and f"oxigrad.{name}" in MODULES):
            continue
        if module == "oxigrad.xp" and is_of_numpy(name, value):
            yield of_numpy(module, name, value)
        elif inspect.isclass(value):
            options = [":members:", ":show-inheritance:"]
            options += [":inherited-members:"] * (full == "oxigrad.optim.Optimizer")  # which pages of optimizers link
            yield Entry(module, name, "class", about, directive("autoclass", full, "", *options))
        elif module == "oxigrad.xp.stats":
            yield distribution(module, name, value)
        elif inspect.isroutine(value) or callable(value):
            yield Entry(module, name, "function", about, directive("autofunction", full, "").rstrip())
        else:
            yield constant(module, name, value)


def is_error(value: Any) -> bool:
    """Whether a value is a class of errors."""
    return inspect.isclass(value) and issubclass(value, BaseException)


def of_numpy(module: str, name: str, value: Any) -> Entry:
    """An entry for what NumPy documents: its signature and summary, and where the rest stands."""
    kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
    about = "" if kind == "data" or value is getattr(np, name) else first_sentence(value.__doc__)
    own = value is getattr(np, name)
    said = (
        f"NumPy's own ``numpy.{name}``."
        if own
        else f"{about}\n\nArguments and results are those of ``numpy.{name}``; calls of variables are recorded."
    )
    signature = "" if own else str(inspect.signature(value))
    return Entry(
        module,
        name,
        "function" if not own else "numpy",
        about or f"NumPy's own ``numpy.{name}``.",
        directive(f"py:{kind}", f"{module}.{name}{signature}", said, *[":no-index:"] * own),
    )


def first_sentence(doc: str | None) -> str:
    """The summary of a docstring of NumPy, without its signature."""
    for paragraph in inspect.cleandoc(doc or "").split("\n\n"):
        if "(" not in paragraph.split(" ")[0]:
            return " ".join(paragraph.split())
    return ""


def distribution(module: str, name: str, value: Any) -> Entry:
    """An entry for a distribution: its methods."""
    methods = [each for each in "pdf logpdf pmf logpmf cdf logcdf sf logsf ppf isf rvs".split() if hasattr(value, each)]
    shapes = ", ".join(f"``{shape}``" for shape in (getattr(value, "shapes", "") or "").split())
    about = f"The {name} distribution" + (f", with the shape parameters {shapes}." if shapes else ".")
    text = f"{about}\n\nParameters have SciPy's names and meaning, as those of ``scipy.stats.{name}``.\n\n"
    for method in methods:
        bound = getattr(value, method)
        text += directive("py:method", f"{method}{inspect.signature(bound)}", inspect.getdoc(bound) or "") + "\n\n"
    return Entry(module, name, "function", about, directive("py:class", f"{module}.{name}", text))


def constant(module: str, name: str, value: Any) -> Entry:
    """An entry for a number or an object that is indexed."""
    said = (
        f"``{value!r}``"
        if isinstance(value, (int, float, str, dict, type(None)))
        else summary(inspect.getdoc(value)).split(". ")[0]
    )
    return Entry(module, name, "data", said, directive("py:data", f"{module}.{name}", said))


# --- modules that are read -----------------------------------------------------------------------------------------------


def source(module: str) -> Path:
    """The stub of a module, or its file."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return next(
        each for each in (path / "__init__.pyi", path / "__init__.py", path.with_suffix(".py")) if each.exists()
    )


def read(module: str) -> Iterator[Entry]:
    """The entries of a module, from its stub or source: definitions, and names that it imports from our own modules."""
    tree = ast.parse(source(module).read_text())
    for node in tree.body:
        match node:
            case ast.ImportFrom(module=str(place), names=names) if place.startswith("oxigrad"):
                for each in names:
                    if each.asname == each.name and (found := defined(place, each.name)):
                        yield entry(module, found)
            case ast.FunctionDef() | ast.ClassDef() if not node.name.startswith("_") and ast.get_docstring(node):
                yield entry(module, node)


def defined(module: str, name: str) -> ast.FunctionDef | ast.ClassDef | None:
    """A definition in a module of ours."""
    for node in ast.parse(source(module).read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return node
    return None


def sections(doc: str) -> str:
    """A docstring with sections such as ``Args:`` as reStructuredText."""
    from sphinx.ext.napoleon import Config, GoogleDocstring  # tests read names without Sphinx

    custom: list[str | tuple[str, str]] = [(name.capitalize(), "params_style") for name in SECTIONS]
    return str(GoogleDocstring(doc, Config(napoleon_custom_sections=custom)))


def torch_options(arguments: ast.arguments) -> str:
    """The sections of the options among the arguments of an optimizer for PyTorch, which stubs leave out."""
    notes = {**NOTES, **TORCH}
    defaults = zip(
        reversed([*arguments.args, *arguments.kwonlyargs]),
        reversed([*arguments.defaults, *arguments.kw_defaults]),
        strict=False,
    )
    rows = [
        Argument(each.arg, ast.literal_eval(default), "", notes[each.arg].sentence, section=notes[each.arg].section)
        for each, default in defaults
        if default is not None and each.arg in notes and notes[each.arg].section
    ]
    return documented(reversed(rows))


def entry(module: str, node: ast.FunctionDef | ast.ClassDef) -> Entry:
    """An entry of a definition that was read."""
    doc = ast.get_docstring(node) or ""
    made = None
    if isinstance(node, ast.FunctionDef):
        signature, kind = f"({ast.unparse(node.args)})", "function"
    else:
        made = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
        signature, kind = "", "class"
        if made is not None:
            made.args.args = made.args.args[1:]
            signature = f"({ast.unparse(made.args)})"
    text = sections(doc)
    if module == "oxigrad.torch" and "Hyperparameters:" in doc and made is not None:
        text += "\n\n" + sections(torch_options(made.args))
    for each in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_") and (about := ast.get_docstring(each)):
            each.args.args = each.args.args[1:]
            text += "\n\n" + directive("py:method", f"{each.name}({ast.unparse(each.args)})", sections(about))
    return Entry(
        module, node.name, kind, summary(doc), directive(f"py:{kind}", f"{module}.{node.name}{signature}", text)
    )


# --- pages ------------------------------------------------------------------------------------------------------------------


def entries(module: str) -> list[Entry]:
    """The entries of a module, by name."""
    found = sorted(read(module) if module in READ else imported(module), key=lambda each: each.name.lower())
    for before, each in itertools.pairwise(found):
        if before.name.lower() == each.name.lower():  # one file, where file systems ignore cases
            upper = before if before.name[0].isupper() else each
            upper.page += "-class"
    return found


def index(module: str, found: list[Entry]) -> str:
    """The page of a module: a table of its names."""
    lines = [heading(module), MODULES[module] + "."]
    groups: dict[str, list[Entry]] = {}
    for each in found:
        title = "Errors" if "Error" in each.name else "NumPy's own" if each.kind == "numpy" else "Names"
        groups.setdefault(title, []).append(each)
    for title in sorted(groups, key=["Names", "Errors", "NumPy's own"].index):
        if len(groups) > 1:
            lines.append(heading(title, "-"))
        if title == "NumPy's own":
            lines.append(
                "These are NumPy's objects: "
                + ", ".join(f":doc:`{each.name} </reference/{each.page}>`" for each in groups[title])
                + "."
            )
            continue
        table = [".. list-table::", "   :widths: 25 75", "   :class: filtered", ""]
        for each in groups[title]:
            table += [f"   * - :doc:`{each.name} </reference/{each.page}>`", f"     - {each.about}"]
        lines.append("\n".join(table))
    return "\n\n".join(lines) + "\n"


def write(folder: Path) -> dict[str, list[Entry]]:
    """Writes all pages into a folder; returns the entries by module."""
    others, supported, shown = elsewhere(), support(), examples.table()
    found = {module: entries(module) for module in MODULES}
    for module, each in found.items():
        (folder / module).mkdir(parents=True, exist_ok=True)
        (folder / module / "index.rst").write_text(index(module, each))
        for one in each:
            (folder / f"{one.page}.rst").write_text(one.text(others, supported, shown))
        print(f"reference/{module}: {len(each)} pages, whose examples ran", flush=True)
    (folder / "errors.rst").write_text(errors(found))
    return found


def errors(found: dict[str, list[Entry]]) -> str:
    """The page of all errors: what causes each, and what to do."""
    text = (
        heading("Errors")
        + "\n\nAn error names the key path, what was wrong, and what is expected, and is raised before anything is changed.\n"
    )
    for module, each in found.items():
        for one in each:
            value = getattr(importlib.import_module(module), one.name, None) if module not in READ else None
            if is_error(value):
                built_in = next(base.__name__ for base in value.__mro__[1:] if base.__module__ == "builtins")
                text += f"\n{heading(f'{module}.{one.name}', '-')}\n\nA ``{built_in}``. {inspect.getdoc(value)}\n"
    return text
