"""Prints the table of functions under other libraries' names: ``python tools/function_table.py`` writes docs/numpy.md.

Each form of ``tests/tables`` is evaluated in every space and differentiated to second order, in both modes. The command fails
where a form does not do what its row says.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import forms
import forms_numpy
import libraries
import standard
from forms import Form, Section

PATH = Path(__file__).parent.parent / "docs" / "numpy.md"

# The sections of the page, in order.
SECTIONS: list[Section] = [*forms_numpy.SECTIONS]

HEAD = """\
# NumPy's functions

Generated from the table of tests by `make generated`; do not edit.

NumPy's own functions take variables: `np.median(x)` of a variable is recorded, through NumPy's protocols, and has derivatives
of every order in both modes. `xp` has the same functions by the same names, `xp.median(x)`, for arrays of every library; where
the Array API standard has a function of that name, it is the standard's.

```python
>>> import numpy as np
>>> import oxigrad as ox
>>> ox.grad(lambda x: np.median(x))(np.array([3.0, 1.0, 2.0]))
array([0., 0., 1.])
>>> ox.grad(lambda x: np.add.outer(x, x)[0, 1])(np.array([3.0, 1.0]))
array([1., 1.])

```

* *Calls* is the number of different calls that are tested, *keywords* lists the keyword arguments among them.
* *First* and *second*: derivatives of this order agree with central differences, in forward and reverse mode and, for the second
  order, all four combinations of them. A function without derivatives has the reason instead.
* A function that only moves elements (`np.append`, `np.block`, `np.lib.stride_tricks.sliding_window_view`) takes all keywords that NumPy's
  takes: NumPy moves indices, and the elements follow them. One that moves them by their values (`np.sort`, `np.unique`,
  `np.quantile`) has the derivative of the elements where it put them.
* NumPy does not dispatch on lists: of a list of variables, `np.sum([v, w])` raises, and `xp.sum([v, w])` does what is meant.
  NumPy's functions of several arrays (`np.stack([v, w])`, `np.block`, `np.select`) take lists under both names. `np.array` takes
  a list of variables with `like=`: `np.array([v[0], 1.0], like=v)`.
* `np.r_[v, w]` and `np.c_` are not dispatched either: `xp.r_[v, w]` and `xp.c_` are. `out=` is a keyword in `xp`; `xp.round` takes
  NumPy's `decimals=` by keyword.
* A plain array is never changed to hold a variable: `a += x` and `np.add(a, x, out=a)` of a plain `a` raise `DerivativeError`.
"""


def text(sections: Iterable[Section] = SECTIONS) -> str:
    """The text of the page, where every form does what its row says."""
    return "\n".join([HEAD, *map(table, sections), of_the_standard()])


def table(section: Section) -> str:
    """A section as a Markdown table, a line a name."""
    spaces = list(section.spaces)
    differentiable = sum(not form.reason for form in section.forms)
    calls = sum(len(form.calls) for form in section.forms)
    refused = sum(form.refused for form in section.forms)
    plain = len(section.forms) - differentiable - refused
    return "\n".join(
        [
            f"## {section.title}\n",
            f"{len(section.forms)} names, {calls} calls: {differentiable} differentiable, {plain} with plain results, {refused} refused.\n",
            f"| name | calls | keywords | {' | '.join(spaces)} | first | second | why not |",
            "|---|---|---|" + "---|" * (len(spaces) + 3),
            *(row(form, spaces) for form in section.forms),
            "",
        ]
    )


def row(form: Form, spaces: Iterable[str]) -> str:
    """A form as a line of the table."""
    answers = ["no" if form.refused else "yes"] * len(list(spaces))
    orders = ["", ""] if form.reason else ["yes", "yes"]
    keywords = ", ".join(f"`{name}`" for name in form.keywords)
    return f"| {' | '.join([f'`{form.name}`', str(len(form.calls)), keywords, *answers, *orders, form.reason])} |"


def of_the_standard() -> str:
    """The functions of the Array API standard as a Markdown table."""
    import array_api_strict

    names = sorted(standard.names(array_api_strict))  # whose order depends on what is imported first
    rows = [
        f"| `{name}` | | | {standard.PLAIN[name].reason} |" if name in standard.PLAIN else f"| `{name}` | yes | yes | |"
        for name in names
    ]
    head = [
        "## Functions of the Array API standard\n",
        f"{len(names)} names, {len(names) - len(standard.PLAIN)} differentiable; `make standard` prints the orders over each library.\n",
        "| name | first | second | why not |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])


def failures(sections: Iterable[Section] = SECTIONS) -> list[str]:
    """The forms that do not do what their rows say: the section, the space, the name and the error."""
    found = []
    for section in sections:
        own = next(iter(section.spaces.values()))
        for title, space in section.spaces.items():
            for form in section.forms:
                order, error = forms.reached(form, space, own)
                if order < 2:
                    found.append(f"{section.title}, {title}: {form.name}, order {order}: {error}")
    found += [
        f"standard: {name}"
        for name, of in standard.orders(__import__("array_api_strict"), libraries.LIBRARIES[:1]).items()
        if min(of.values()) < 2
    ]
    return found


def main() -> int:
    """Checks every form, writes the page, and prints how many there are."""
    failed = failures()
    for line in failed:
        print(line, file=sys.stderr)
    PATH.write_text(text())
    for section in SECTIONS:
        print(
            f"{section.title:40} {len(section.forms):4} names {sum(len(form.calls) for form in section.forms):5} calls"
        )
    print(f"{len(failed)} do not do what the page says")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
