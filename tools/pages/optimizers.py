"""Writes a page for each optimizer of the table: what it is, its memory, its names elsewhere, its path down two valleys, and its rule."""

import inspect
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from oxigrad import rules
from oxigrad.optim.settings import documentation
from oxigrad.optim.table.row import TABLE, Row
from pages import formulas
from pages.tables import DOCS, rows

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "examples")]

import gallery  # noqa: E402 - found by the line above

RULES = {row["optimizer"]: row for row in rows(DOCS / "rules.md")}
CHOICE: dict[str, str] = tomllib.loads(Path(__file__).with_name("choice.toml").read_text())


LIBRARIES = {"torch": "PyTorch", "optax": "optax", "keras": "Keras"}


def measured(name: str) -> tuple[float, str]:
    """The bytes of the slots for each element, and how a step is computed, as docs/rules.md has them."""
    words = {"yes": "compiled into the core", "called": "called on whole arrays"}
    row = RULES[name]
    return float(row["bytes"]), words.get(row["compiled"], "traced once, then interpreted by the core, block by block")


def names(name: str, row: Row) -> list[tuple[str, str]]:
    """The names of an optimizer elsewhere: the library, and what to write."""
    found = [("oxigrad", f"`oxigrad.optim.{name}`"), ("PyTorch programs", f"`oxigrad.torch.{name}`")]
    if row.optax:
        found.append(("optax programs", ", ".join(f"`oxigrad.optax.{alias}`" for alias in row.optax)))
    for library, given in row.presets.items():
        said = "the defaults" if not given else f'`compat="{library}"`, which sets ' + arguments(given)
        found.append((f"with the results of {LIBRARIES[library]}", said))
    return found


def arguments(given: Any) -> str:
    """Hyperparameters as they are written."""
    return ", ".join(f"`{name}={value!r}`" for name, value in given.items())


def slots(row: Row) -> str:
    """The slots in words."""
    said = []
    for slot in row.optimizer._rule.slots:
        of = "a number" if slot.is_number else "an array"
        said.append(f"`{slot.name}` ({of}{f', where `{slot.when}` is given' if slot.when else ''})")
    return ", ".join(said) or "none"


def page(name: str, row: Row, picture: str | None) -> str:
    """The page of an optimizer."""
    about, _, rest = inspect.cleandoc(row.optimizer._rule.call.__doc__ or "").partition("\n\n")
    lines = ["---", "orphan: true", "---", f"# {name}", "", plain(about), ""]
    lines += ["**When to take it.** " + CHOICE.get(name, "Nothing is said of it yet."), ""]
    lines += formula(name, row) + ([plain(rest), ""] if rest else [])
    lines += example(row)
    if picture:
        rates = " and ".join(f"{rate:g}" for rate in row.valleys or ())
        said = f"{gallery.STEPS} steps on the functions of Rosenbrock and Beale, with learning rates {rates}. A search over 1, 2, 3 and 5 times"
        said += f" the powers of ten chose them ({source('examples/gallery.py')}). The cross is the minimum, the dot the end of the path."
        lines += [f"![The path of {name} down Rosenbrock's function, and Beale's]({picture})", "", said, ""]
    lines += arguments_of(row) + METHODS + cost(name, row) + elsewhere(name, row)
    reference = f"/reference/oxigrad.optim/{name}"
    lines += [f"Reference: {{doc}}`oxigrad.optim.{name} <{reference}>`. All optimizers: {{doc}}`/gallery/index`.", ""]
    if (text := code_of(row.optimizer._rule.name)) is not None:
        about = "The update of one parameter `p` with the gradient `g`, as it runs:"
        lines += ["## Source", "", about, "", "```py", text, "```", ""]
    return "\n".join(lines)


def formula(name: str, row: Row) -> list[str]:
    """The section of the formula: the rule with its default flags."""
    lines = formulas.MATRICES.get(name) or formulas.lines(row.optimizer._rule)
    if not lines:
        return []
    shown = [part for line in lines for part in ("$$", line, "$$", "")]
    shown_letters = " ".join(lines)
    letters = [each for each in row.optimizer._declared if formulas.LETTERS.get(each, "?") in shown_letters]
    words = ", ".join(f"${formulas.LETTERS[each]}$ is `{each}`" for each in letters)
    said = r"$\theta$ is the parameter, $g$ its gradient and $t$ the step, from 1 on"
    return ["## Formula", "", *shown, f"{said}{'; ' if words else ''}{words}. Flags have their defaults.", ""]


def example(row: Row) -> list[str]:
    """The section of the example, which is that of the docstring."""
    _, _, text = (row.optimizer.__doc__ or "").partition("Example:\n")
    return ["## Example", "", "```python", inspect.cleandoc(text), "", "```", ""]


def arguments_of(row: Row) -> list[str]:
    """The sections of arguments: a table for each."""
    parameters = inspect.signature(row.optimizer).parameters
    options = {each.name: each.default for each in parameters.values() if each.kind is each.KEYWORD_ONLY}
    rows = [*documentation.hyperparameters(row.optimizer._rule), *documentation.options(options)]
    lines = ["## Arguments", ""]
    for section in documentation.SECTIONS:
        if chosen := [each for each in rows if each.section == section]:
            has_range = any(each.range for each in chosen)
            head = ["argument", "default", *["range"] * has_range, "meaning"]
            lines += [f"### {section.capitalize()}", "", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
            for each in chosen:
                notes = [
                    each.sentence,
                    f"Unit: {each.unit}." * bool(each.unit),
                    f"Cost: {each.cost}." * bool(each.cost),
                    f"See {' and '.join(f'`{name}`' for name in each.see)}." * bool(each.see),
                ]
                said = plain(" ".join(filter(None, notes)))
                cells = [f"`{each.name}`", f"`{each.default!r}`", *[each.range] * has_range, said]
                lines.append(f"| {' | '.join(cells)} |")
            lines.append("")
    return lines


def method(name: str) -> str:
    """A link to a method of all optimizers."""
    return f"{{py:meth}}`{name} <oxigrad.optim.Optimizer.{name}>`"


METHODS = [
    "## Methods",
    "",
    f"* Steps: {method('update')}, {method('minimize')}, {method('compute_gradients')}, {method('apply')}, {method('flush')}.",
    f"* State: {method('build')}, {method('rebuild')}, {method('state_dict')}, {method('load_state_dict')}, {method('save')}, {method('load')}.",
    f"* Averages: {method('averaged_parameters')}, {method('swap_in')}.",
    "",
]


def cost(name: str, row: Row) -> list[str]:
    """The section of memory and cost."""
    bytes_of, computed = measured(name)
    size = f"{bytes_of:g} bytes an element of float32, {bytes_of / 4:.3g} times the parameters"
    lines = ["## Memory and cost", "", "| property | value |", "|---|---|", f"| slots | {slots(row)} |"]
    return [*lines, f"| memory of the slots | {size} |", f"| a step is | {computed} |", ""]


def elsewhere(name: str, row: Row) -> list[str]:
    """The section of the same optimizer in other libraries."""
    rate = row.optimizer._rule.defaults.get("learning_rate", 0.1)
    lines = ["## In PyTorch, optax and Keras", "", "```py", "# PyTorch: a torch.optim.Optimizer"]
    lines += [f"opt = oxigrad.torch.{name}(module.parameters(), lr={rate!r})"]
    if row.optax:
        first = next(iter(row.optax))
        lines += ["# optax: a gradient transformation", f"tx = oxigrad.optax.{first}({rate!r})"]
    lines += [
        f'# the defaults and the formula of {LIBRARIES[library]}\nopt = oxigrad.optim.{name}(compat="{library}")'
        for library in row.presets
    ]
    return [
        *lines,
        "```",
        "",
        "| for | name |",
        "|---|---|",
        *(f"| {where} | {said} |" for where, said in names(name, row)),
        "",
    ]


def source(path: str) -> str:
    """A file of the repository, which the collected pages link."""
    return f"{{doc}}`{Path(path).name} </{Path(path).with_suffix('')}>`"


def code_of(name: str) -> str | None:
    """The source of a rule without its docstring, and without type annotations' modules; None for steps that are no rule."""
    function = getattr(rules, name, None)
    if function is None:
        return None
    text, doc = inspect.getsource(function), function.__doc__
    before, quoted, after = text.partition(f'"""{doc}"""')
    return (before.rstrip() + after if quoted else text).rstrip()


def plain(text: str) -> str:
    """A docstring as Markdown."""
    return text.replace("``", "`")


def draw(name: str, row: Row, file: Path) -> None:
    """The paths of an optimizer down both valleys."""
    figure = Figure(figsize=(7.2, 2.9), layout="constrained")
    for axes, valley, rate in zip(figure.subplots(1, 2), gallery.VALLEYS, row.valleys or (), strict=True):
        points = gallery.path(name, rate, valley)
        gallery.draw_valley(axes, valley)
        axes.plot(*points.T, color="tab:blue", linewidth=1.2)
        axes.plot(*points[-1], "o", color="tab:orange", markersize=5)
        axes.set_title(f"{valley.function.__name__.capitalize()}, learning rate {rate:g}", fontsize=9)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)


def linked(text: str) -> str:
    """A page with the names of optimizers as links."""
    return re.sub(r"(?<!})`(\w+)`", lambda name: f"{{doc}}`{name[1]}`" if name[1] in TABLE else name[0], text)


def index() -> str:
    """The table of all optimizers."""
    lines = ["| optimizer | when to take it | bytes of slots an element |", "|---|---|---|"]
    for name in TABLE:
        size, _ = measured(name)
        lines.append(f"| {{doc}}`{name}` | {CHOICE.get(name, '')} | {size:g} |")
    return "\n".join(lines) + "\n"


# Optimizers whose paths differ most.
PANELS = ("LBFGS", "SGD", "Adagrad", "AdamW", "Lion", "Prodigy")


def panels() -> str:
    """Six pictures of paths, each with a link to the page of its optimizer."""
    lines = ["::::{grid} 1 2 2 3", ":gutter: 2", ""]
    for name in PANELS:
        said = f"The path of {name} down Rosenbrock's function, and Beale's"
        lines += [f":::{{grid-item-card}} {name}", f":link: {name}", ":link-type: doc"]
        lines += [f":img-bottom: pictures/{name}.png", f":img-alt: {said}", ":::", ""]
    return "\n".join([*lines, "::::"])


def write(folder: Path) -> None:
    """Writes the pages of all optimizers into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, row in TABLE.items():
        picture = None
        if row.valleys is not None:
            picture = f"pictures/{name}.png"
            draw(name, row, folder / picture)
        (folder / f"{name}.md").write_text(page(name, row, picture))
