"""Prints the tables of functions under other libraries' names: NumPy's, SciPy's and those of the Array API standard.

``python tools/function_table.py`` writes docs/numpy.md and docs/scipy.md.

Each form of ``tests/tables`` is evaluated in every space and differentiated to second order, in both modes. The command fails
where a form does not do what its row says.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable
from pathlib import Path

import forms
import forms_numpy
import libraries
import standard
from forms import Form, Section

DOCS = Path(__file__).parent.parent / "docs"

# The sections of the page of NumPy's functions, in order.
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

OF_SCIPY = """\
# SciPy's functions

Generated from the table of tests by `make generated`; do not edit. [NumPy's functions](numpy.md) are in a table of their own.

| SciPy's | takes variables under SciPy's name | under ours |
|---|---|---|
| ufuncs of `scipy.special` | yes, `scipy.special.erf(x)` | `xp.special` |
| other functions of `scipy.special` | no | `xp.special` |
| cosine and sine transforms of `scipy.fft` | no | `xp.fft` |
| `scipy.integrate`, `scipy.linalg`, `scipy.ndimage`, `scipy.signal` | no | `xp.integrate`, `xp.linalg`, `xp.ndimage`, `xp.signal` |
| `scipy.spatial.distance` | no | `xp.spatial.distance` |
| distributions of `scipy.stats` | no | `xp.stats` |
| `scipy.optimize` | its objectives: [`oxigrad.scipy`](interop.md) | |

```python
>>> import numpy as np
>>> import scipy.special
>>> import oxigrad as ox
>>> from oxigrad import xp
>>> print(round(ox.grad(scipy.special.erf)(0.5), 6))
0.878783
>>> print(round(ox.grad(xp.stats.norm.logpdf)(0.5), 6))
-0.5
>>> ox.grad(lambda x: xp.sum(xp.ndimage.laplace(x) ** 2))(np.array([1.0, 4.0, 2.0]))
array([-16.,  30., -14.])

```

* A function of `scipy.special` that is a ufunc is recorded through NumPy's protocols, as `np.sin` is. With `SCIPY_ARRAY_API=1` in
  the environment SciPy refuses a call of a variable and a plain array together (`TypeError`); `xp.special` takes both.
* SciPy's other functions convert their arguments to arrays of NumPy, and no protocol intercepts them: those of `scipy.stats` compute
  in place, with masks, too. `xp` has the same names, arguments and defaults;
  an argument that is not implemented is refused by name.
* Values are SciPy's, for the arrays of every library that can be read in host memory; `NotImplementedError` names the function
  otherwise.
* `xp.linalg` has the functions of `numpy.linalg` as well; they are in the [table of NumPy's functions](numpy.md).
* A distribution has `logpdf`, `pdf`, `cdf`, `logcdf`, `sf`, `logsf`, `ppf` and `isf`, or `logpmf`, `pmf` and `cdf` if it is discrete, each with
  derivatives by the point, the shape parameters, `loc` and `scale`. Sampling, moments and fits are SciPy's.
* A ufunc without a rule, and a parameter without a derivative, such as the order of a Bessel function, raises `DerivativeError`, which
  names the function and the parameter.
* *Calls* is the number of different calls that are tested, *keywords* lists the keyword arguments among them. *First* and
  *second*: derivatives of this order agree with central differences, as in the table of NumPy's functions.
"""


@dataclasses.dataclass(frozen=True)
class Page:
    """A page of the documentation: its file, its head, its sections, and whether the standard's functions come after them."""

    path: Path
    head: str
    sections: list[Section]
    standard: bool = False

    def text(self) -> str:
        """The text of the page, where every form does what its row says."""
        after = [of_the_standard()] if self.standard else []
        return "\n".join([self.head, *map(table, self.sections), *after])


NUMPY = Page(DOCS / "numpy.md", HEAD, SECTIONS, standard=True)


def of_scipy() -> Page:
    """The page of SciPy's functions, which needs SciPy."""
    import forms_scipy

    return Page(DOCS / "scipy.md", OF_SCIPY, forms_scipy.SECTIONS)


def table(section: Section) -> str:
    """A section as a Markdown table, a line a name."""
    spaces = list(section.spaces)
    differentiable = sum(form.order > 0 for form in section.forms)
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
    orders = ["yes" if order <= form.order else "" for order in (1, 2)]
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
        for title, space in section.spaces.items():
            for form in section.forms:
                order, error = forms.reached(form, space, section.own)
                if order < form.order:
                    found.append(f"{section.title}, {title}: {form.name}, order {order}: {error}")
    return found


def failures_of_the_standard() -> list[str]:
    """The functions of the standard that do not have derivatives of both orders over NumPy."""
    import array_api_strict

    orders = standard.orders(array_api_strict, libraries.LIBRARIES[:1])
    return [f"standard: {name}" for name, of in orders.items() if min(of.values()) < 2]


def main() -> int:
    """Checks every form, writes the pages, and prints how many names there are, by order."""
    failed = failures_of_the_standard()
    for page in (NUMPY, of_scipy()):
        failed += failures(page.sections)
        page.path.write_text(page.text())
        for section in page.sections:
            first, second = (sum(form.order >= order for form in section.forms) for order in (1, 2))
            print(f"{section.title:40}{len(section.forms):5} names, first order{first:4}, second order{second:4}")
    print("\n".join([*failed, f"{len(failed)} do not do what the pages say"]))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
