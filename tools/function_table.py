"""The catalogue of functions, `oxigrad.support`, and from it docs/numpy.md and docs/scipy.md.

Each form of ``tests/tables`` is evaluated in every space and differentiated to second order, in both modes; functions of the
standard over each library that is installed. The printer fails where a form does not do what its row says.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import forms
import forms_numpy
import forms_over
import libraries
import standard
from forms import Form, Section
from oxigrad.autodiff.inspection import support
from oxigrad.autodiff.inspection.support import Support
from printed_tables import DOCS, markdown

# The sections of the page of NumPy's functions, in order.
SECTIONS: list[Section] = [*forms_numpy.SECTIONS]

HEAD = """\
# NumPy's functions

<!-- Printed by `make generated`: do not edit. -->

NumPy's functions accept variables: `np.median(x)` records the call, and has derivatives of every order in both modes. `xp` has
the same functions under the same names, such as `xp.median(x)`, for arrays of every library. If the Array API standard has a
function of the name, `xp` follows the standard. `ox.support()` returns this table.

```python
>>> import numpy as np
>>> import oxigrad as ox
>>> ox.grad(lambda x: np.median(x))(np.array([3.0, 1.0, 2.0]))
array([0., 0., 1.])
>>> ox.grad(lambda x: np.add.outer(x, x)[0, 1])(np.array([3.0, 1.0]))
array([1., 1.])

```

* *Calls* is the number of tested calls. *Keywords* lists their keyword arguments.
* *First* and *second*: derivatives of this order agree with central differences, in forward and reverse mode. For the second
  order, all four combinations of modes are tested. A function without derivatives shows the reason.
* Functions that move elements (`np.append`, `np.block`, `np.lib.stride_tricks.sliding_window_view`) accept all keywords of NumPy.
  Functions that sort by value (`np.sort`, `np.unique`, `np.quantile`) have the derivatives of the elements that they select.
* NumPy does not dispatch on lists, so `np.sum([v, w])` of variables raises an error. Use `xp.sum([v, w])`.
  Functions of several arrays (`np.stack([v, w])`, `np.block`, `np.select`) accept lists under both names. `np.array` accepts
  a list of variables with `like=`: `np.array([v[0], 1.0], like=v)`.
* NumPy does not dispatch `np.r_[v, w]` and `np.c_` either. Use `xp.r_[v, w]` and `xp.c_`. In `xp`, `out=` must be a keyword, and
  so must `decimals=` of `xp.round`.
* A plain array never holds variables. For a plain `a`, `a += x` and `np.add(a, x, out=a)` raise `DerivativeError`.
"""

OF_SCIPY = """\
# SciPy's functions

<!-- Printed by `make generated`: do not edit. -->

This table lists the functions of SciPy, as `ox.support()` returns them. See also [NumPy's functions](numpy.md).

| SciPy's | takes variables under SciPy's name | under ours |
|---|---|---|
| ufuncs of `scipy.special` | yes, `scipy.special.erf(x)` | `xp.special` |
| other functions of `scipy.special` | no | `xp.special` |
| cosine and sine transforms of `scipy.fft` | no | `xp.fft` |
| `scipy.integrate`, `scipy.interpolate`, `scipy.linalg`, `scipy.ndimage`, `scipy.signal` | no | `xp.integrate`, `xp.interpolate`, `xp.linalg`, `xp.ndimage`, `xp.signal` |
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
* SciPy's other functions convert their arguments to NumPy arrays, and no protocol intercepts them. `scipy.stats` also computes
  in place, with masks. Use `xp`, which has the same names, arguments and defaults. An argument that is not implemented is refused by
  name. Inside `with oxigrad.scipy.names():`, SciPy's functions accept variables, if `xp` has them. Functions without a twin, such as
  `medfilt` and `interp1d`, raise `TypeError`. So do a `CubicSpline` of plain data at a variable, frozen distributions and `scipy.optimize`.
* Values are SciPy's, for arrays of every library that can be read in host memory. For other arrays, `NotImplementedError` names the
  function.
* `xp.linalg` also has the functions of `numpy.linalg`, listed in the [table of NumPy's functions](numpy.md).
* A call of a distribution gives a frozen one: `xp.stats.norm(m, s).logpdf(x)` is `xp.stats.norm.logpdf(x, m, s)`, and `m` and `s` may be
  variables.
* A continuous distribution has `logpdf`, `pdf`, `cdf`, `logcdf`, `sf`, `logsf`, `ppf` and `isf`. A discrete distribution has `logpmf`, `pmf`,
  `cdf`, `logcdf`, `sf` and `logsf`. Each has derivatives by the point, the shape parameters, `loc` and `scale`. Sampling, moments and fits
  are SciPy's. If a parameter is invalid, the value and its derivatives are NaN.
* A ufunc without a rule raises `DerivativeError`. So does a parameter without a derivative: the order of a Bessel function, or the
  weights of `filtfilt` and `upfirdn`. The error names the function and the parameter.
* `dirichlet` does not check that proportions sum to one; SciPy raises an error.
* *Calls* is the number of different calls that are tested, *keywords* lists the keyword arguments among them. *First* and
  *second*: derivatives of this order agree with central differences, as in the table of NumPy's functions.
"""


@dataclasses.dataclass(frozen=True)
class Page:
    """A page of the documentation: its file, its head, and the origins of the functions in its tables."""

    path: Path
    head: str
    origins: tuple[str, ...]

    def text(self) -> str:
        """The text of the page: a table for each section of the catalogue."""
        rows = [row for row in support.read(support.FILE) if row.origin in self.origins]
        sections = itertools.groupby(rows, lambda row: row.section)
        return "\n".join([self.head, *(table(title, [*found]) for title, found in sections)])


NUMPY = Page(DOCS / "numpy.md", HEAD, ("NumPy", "Array API"))
SCIPY = Page(DOCS / "scipy.md", OF_SCIPY, ("SciPy",))


# --- the catalogue -----------------------------------------------------------------------------------------------------------


def of_scipy() -> list[Section]:
    """The sections of SciPy's functions, which need SciPy."""
    import forms_scipy

    return forms_scipy.SECTIONS


def catalogue(sections: dict[str, list[Section]], orders: dict[str, dict[str, int]]) -> Iterator[Support]:
    """The rows of the catalogue: of forms by origin, then of functions of the standard, with their orders over libraries."""
    known = {(row.origin, row.function): dict(row.libraries) for row in support.read(support.FILE)}
    for origin, found in sections.items():
        for section in found:
            for form in section.forms:
                yield of_form(form, origin, section, over(form, section, known.get((origin, form.name), {})))
    for name, of in orders.items():
        plain = standard.PLAIN.get(name)
        order = 0 if plain else max(of.values(), default=2)
        yield support.row(name, "Array API", STANDARD, order=order, libraries=of, reason=plain.reason if plain else "")


def over(form: Form, section: Section, known: dict[str, int]) -> dict[str, int]:
    """The orders of a form over the libraries that forms are tested over: those that are installed found anew, else as they were."""
    found = dict(known)
    for library in map(libraries.named, OF_FORMS):
        if library.is_there():
            order = forms_over.order(form, section, library)
            found = (
                {**found, library.name: order}
                if order
                else {name: of for name, of in found.items() if name != library.name}
            )
    return dict(sorted(found.items()))


def of_form(form: Form, origin: str, section: Section, orders: dict[str, int]) -> Support:
    """The row of a form, with its orders over libraries."""
    spaces = dict.fromkeys(section.spaces, not form.refused)
    return support.row(
        form.name,
        origin,
        section.title,
        calls=len(form.calls),
        keywords=tuple(form.keywords),
        spaces=spaces,
        order=form.order,
        libraries=orders,
        reason=form.reason,
    )


def measured() -> dict[str, dict[str, int]]:
    """The orders of the functions of the standard over each library: over those that are installed found anew, else as they were."""
    import array_api_strict

    known = {row.function: dict(row.libraries) for row in support.read(support.FILE)} if support.FILE.exists() else {}
    found = {name: known.get(name, {}) for name in sorted(standard.names(array_api_strict))}
    for library in (*libraries.LIBRARIES, *libraries.OTHERS):
        if library.is_there() and library.name not in EMULATED:
            cases = libraries.cases(library)
            for name in found.keys() - standard.PLAIN.keys():
                if standard.cases_of(name, cases):
                    found[name][library.name] = standard.order(name, library)
    return {name: dict(sorted(of.items())) for name, of in found.items()}


STANDARD = "Functions of the Array API standard"
# The libraries that forms, of names of NumPy and SciPy, are tested over beside NumPy.
OF_FORMS = ("torch",)
# What stands for other libraries in tests.
EMULATED = {"read-only", "device", "tiny"}


# --- the pages ---------------------------------------------------------------------------------------------------------------


def table(title: str, rows: list[Support]) -> str:
    """A section as a Markdown table, a line a name."""
    differentiable = sum(row.order > 0 for row in rows)
    if rows[0].spaces:
        spaces = [*rows[0].spaces]
        refused = sum(row.is_refused for row in rows)
        counts = f"{len(rows)} names, {sum(row.calls for row in rows)} calls: {differentiable} differentiable, "
        counts += f"{len(rows) - differentiable - refused} with plain results, {refused} refused."
        heads = ["calls", "keywords", *spaces, "first", "second", "why not"]
    else:
        counts = f"{len(rows)} names, {differentiable} differentiable; `ox.support(library=...)` has the orders over each library."
        heads = ["first", "second", "why not"]
    return f"## {title}\n\n{counts}\n\n{markdown(('name', *heads), map(cells, rows))}"


def cells(row: Support) -> tuple[str, ...]:
    """The cells of a row of the table."""
    orders = ["yes" if order <= row.order else "" for order in (1, 2)]
    keywords = ", ".join(f"`{name}`" for name in row.keywords)
    answers = ["yes" if answer else "no" for answer in row.spaces.values()]
    forms = [str(row.calls), keywords, *answers] if row.spaces else []
    return f"`{row.function}`", *forms, *orders, row.reason


# --- checks ------------------------------------------------------------------------------------------------------------------


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


def print_functions() -> int:
    """Checks every form, writes the catalogue and the pages, and prints how many names there are, by order."""
    sections = {"NumPy": SECTIONS, "SciPy": of_scipy()}
    failed = failures_of_the_standard() + failures(itertools.chain(*sections.values()))
    support.FILE.write_text(support.written(catalogue(sections, measured())))
    support.read.cache_clear()
    for page in (NUMPY, SCIPY):
        page.path.write_text(page.text())
    for title, found in itertools.groupby(support.read(support.FILE), lambda row: row.section):
        rows = [*found]
        first, second = (sum(row.order >= order for row in rows) for order in (1, 2))
        print(f"{title:40}{len(rows):5} names, first order{first:4}, second order{second:4}")
    print("\n".join([*failed, f"{len(failed)} do not do what the pages say"]))
    return bool(failed)
