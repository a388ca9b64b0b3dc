"""Writes a page for each optimizer of the table: what it is, its memory, its names elsewhere, its path down two valleys, and its rule."""

import inspect
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from oxigrad import rules
from oxigrad.optim.table.row import TABLE, Row
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
    bytes_of, computed = measured(name)
    about, _, rest = inspect.cleandoc(row.optimizer.__doc__ or "").partition("\n\n")
    lines = ["---", "orphan: true", "---", f"# {name}", "", plain(about), ""]
    if rest:
        lines += [plain(rest), ""]
    lines += ["**When to take it.** " + CHOICE.get(name, "Nothing is said of it yet."), ""]
    if picture:
        rates = " and ".join(f"{rate:g}" for rate in row.valleys or ())
        said = f"{gallery.STEPS} steps on Rosenbrock's function and on Beale's, with the learning rates {rates}, which a search"
        said += f" over 1, 2, 3 and 5 times the powers of ten has found for each ({source('examples/gallery.py')}). The cross is the minimum, the dot the end of the path; darker is lower."
        lines += [f"![The path of {name} down Rosenbrock's function, and Beale's]({picture})", "", said, ""]
    lines += ["| | |", "|---|---|", f"| slots | {slots(row)} |"]
    lines += [
        f"| memory of the slots | {bytes_of:g} bytes an element of float32; {bytes_of / 4:.3g} times the parameters |"
    ]
    lines += [f"| a step is | {computed} |"]
    lines += [f"| {library} | {said} |" for library, said in names(name, row)]
    reference = f"/reference/oxigrad.optim/{name}"
    lines += [
        "",
        f"Arguments: {{doc}}`oxigrad.optim.{name} <{reference}>`. All optimizers: {{doc}}`/gallery/index`.",
        "",
    ]
    if (text := code_of(row.optimizer._rule.name)) is not None:
        lines += [
            "## The rule",
            "",
            "The update of one parameter `p` with the gradient `g`, as it runs:",
            "",
            "```py",
            text,
            "```",
            "",
        ]
    return "\n".join(lines)


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


def write(folder: Path) -> None:
    """Writes the pages of all optimizers into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, row in TABLE.items():
        picture = None
        if row.valleys is not None:
            picture = f"pictures/{name}.png"
            draw(name, row, folder / picture)
        (folder / f"{name}.md").write_text(page(name, row, picture))
