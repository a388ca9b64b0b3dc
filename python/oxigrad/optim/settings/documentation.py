"""The documentation of optimizers, from the rows of their arguments: composed when it is read.

The row of a hyperparameter is its declaration in the rule, with `oxigrad.rules.core.arguments.NOTES` for names that
several rules share. The rows of options are in `NOTES` too.
"""

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from oxigrad._names import is_ours
from oxigrad.rules.core import ranges
from oxigrad.rules.core.rule import Rule, is_flag

_WIDTH = 100
# The options by section, in the order of the documentation.
SECTIONS = ("hyperparameters", "precision", "gradients", "state", "flags")


class Documentation:
    """A docstring that is composed when it is read: the value of ``__doc__`` in the body of a class."""

    def __init__(self, compose: Callable[[], str]) -> None:
        self._compose = compose

    def __get__(self, instance: Any, owner: type | None = None) -> str:
        return self._compose()


@dataclasses.dataclass(frozen=True)
class Argument:
    """The row of an argument: its name, its default, the range of its values, and what `Note` describes."""

    name: str
    default: Any
    range: str
    sentence: str
    unit: str = ""
    cost: str = ""
    see: tuple[str, ...] = ()
    section: str = SECTIONS[0]

    @property
    def text(self) -> str:
        """All of the row but the name, as sentences."""
        values = f"{self.range[:1].upper()}{self.range[1:]}; default" if self.range else "Default"
        said = [self.sentence, f"{values} {self.default!r}." if self.default is not inspect.Parameter.empty else ""]
        said += [f"Unit: {self.unit}." if self.unit else "", f"Cost: {self.cost}." if self.cost else ""]
        said += ["See " + " and ".join(f"`{each}`" for each in self.see) + "." if self.see else ""]
        return " ".join(filter(None, said))


def hyperparameters(rule: Rule) -> list[Argument]:
    """The rows of the hyperparameters of a rule."""
    from oxigrad.rules.core.arguments import NOTES, Note  # read with documentation alone

    rows = []
    for name, default in rule.defaults.items():
        domain = rule.domains.get(name)
        values = "" if domain is None else domain.expected()
        values += "" if is_flag(default) or not values else ", or a schedule"
        note = NOTES.get(name, Note(""))
        said = ranges.sentence(rule.call, name) or note.sentence
        rows.append(Argument(name, default, values, said, note.unit, note.cost, note.see))
    return rows


def options(defaults: Mapping[str, Any]) -> list[Argument]:
    """The rows of options with these defaults."""
    from oxigrad.rules.core.arguments import NOTES

    rows = []
    for name, default in defaults.items():
        note = NOTES[name]
        rows.append(Argument(name, default, "", note.sentence, note.unit, note.cost, note.see, note.section))
    return rows


def sections(rows: Iterable[Argument]) -> str:
    """The sections of a docstring that describe arguments."""
    listed = list(rows)
    by_section = {name: [entry(row.name, row.text) for row in listed if row.section == name] for name in SECTIONS}
    return "\n\n".join("\n".join([f"{name.capitalize()}:", *lines]) for name, lines in by_section.items() if lines)


def entry(name: str, text: str) -> str:
    """The lines of an argument in a section."""
    return textwrap.fill(
        f"{name}: {text}",
        _WIDTH,
        initial_indent=" " * 4,
        subsequent_indent=" " * 8,
        break_on_hyphens=False,
        break_long_words=False,
    )


def of_rule(rule: Rule, title: str, defaults: Mapping[str, Any]) -> Documentation:
    """The documentation of the class of a rule, which has this name and these options."""

    def compose() -> str:
        about = inspect.cleandoc(rule.call.__doc__ or f"{title}, a rule without a description.")
        rows = [*hyperparameters(rule), *options(defaults)]
        return "\n\n".join([about, sections(rows), *([_example(rule, title)] if is_ours(rule.call) else [])]) + "\n"

    return Documentation(compose)


def with_options(about: str | None, defaults: Mapping[str, Any]) -> Documentation:
    """A docstring, followed by the sections of options with these defaults."""

    def compose() -> str:
        return f"{inspect.cleandoc(about or '')}\n\n{sections(options(defaults))}\n"

    return Documentation(compose)


def elsewhere(
    signature: inspect.Signature,
    rules: Sequence[Rule],
    meaning: Callable[[str], Sequence[str]],
    notes: Mapping[str, Any],
    *,
    has_schedules: bool = True,
) -> list[Argument]:
    """The rows of the arguments of a function under a name of another library.

    ``meaning`` are the hyperparameters of the rules that an argument sets; the ``notes`` are of arguments that set
    none, or other values.
    """
    from oxigrad.rules.core.arguments import NOTES

    declared = {row.name: row for rule in rules for row in hyperparameters(rule)}
    meant = {name: [each for each in meaning(name) if each in declared] for name in signature.parameters}
    words = {ours[0]: name for name, ours in meant.items() if len(ours) == 1}
    rows = []
    for name, parameter in signature.parameters.items():
        if len(meant[name]) == 1 and name not in notes:
            row = declared[meant[name][0]]
            values = row.range if has_schedules else row.range.removesuffix(", or a schedule")
            said = re.sub(r"\b(\w+)\b(?!\()", lambda word: words.get(word[0], word[0]), row.sentence)
            row = dataclasses.replace(row, name=name, default=parameter.default, range=values, sentence=said)
            rows.append(row if has_schedules else dataclasses.replace(row, see=()))
        else:
            note = notes.get(name) or NOTES.get(name)
            said = note.sentence if note else " ".join(declared[each].sentence for each in meant[name])
            section = note.section if note and note.section else SECTIONS[0]
            rows.append(Argument(name, parameter.default, "", said, section=section))
    return rows


_STEPS = """Example:
    >>> import numpy as np
    >>> from oxigrad import optim, xp
    >>> model, opt = {{"w": np.ones((2, 2))}}, optim.{title}()
    >>> for step in range(3):
    ...     value = opt.minimize(lambda model: xp.sum(model["w"] ** 2), model)
    >>> bool(np.all(model["w"] < 1.0))
    True"""
_PART = """Example:
    >>> import numpy as np
    >>> from oxigrad import optim
    >>> opt = optim.chain({parts})
    >>> model = opt.update({{"w": np.ones((2, 2))}}, {{"w": np.ones((2, 2))}})
    >>> opt.step
    1"""


def _example(rule: Rule, title: str) -> str:
    if rule.kind == "update":
        return _STEPS.format(title=title)
    arguments = '"float16"' if "copy_dtype" in rule.defaults else ""  # NumPy alone has no bfloat16, the default
    parts = [f"optim.{title}({arguments})", "optim.SGD(0.1)"]
    return _PART.format(parts=", ".join(parts if rule.kind == "gradient" else reversed(parts)))
