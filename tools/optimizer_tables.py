"""The tables of all optimizers in docs/rules.md, docs/jax.md, docs/torch.md and docs/libraries.md."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import importlib.metadata
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

import libraries
from oxigrad import optim, tree
from oxigrad.optim.table.row import TABLE, Alias
from oxigrad.step.parameters import rule_executors
from printed_tables import DOCS, PrintedTable, cells, markdown

PATH = DOCS / "rules.md"
ALIASES = PrintedTable("jax.md", "aliases")

HEAD = """\
# List of optimizers

<!-- Printed by `make generated`: do not edit. -->

See [Optimizers](optimizers.md) for options, chains and groups.

Each rule is a function in [python/oxigrad/rules](../python/oxigrad/rules), with the source of its formula and differences
between libraries. Slots have the shape and dtype of the parameter. A slot in italics is one number for each parameter. A slot
in brackets exists only with the named hyperparameter. *Bytes* is the size of the slots for each element of a
float32 matrix of 256 by 256. *Same as* lists the libraries whose results the defaults reproduce. Libraries in
brackets need `compat="..."`. Compiled rules run as native code; others are interpreted block by block, or called on whole arrays.

| optimizer | summary | slots | bytes | same as | compiled |
|---|---|---|---|---|---|
"""


def rules() -> str:
    """The text of docs/rules.md."""
    return HEAD + "\n".join(row(each.optimizer) for each in TABLE.values()) + "\n"


def row(made: type[optim.RuleOptimizer]) -> str:
    """An optimizer as a line of the table."""
    names = {
        slot.name: f"({slot.name}: `{slot.when}`)"
        if slot.when is not None
        else f"*{slot.name}*"
        if slot.is_number
        else slot.name
        for slot in made._rule.slots
    }
    matrix, opt = np.zeros((256, 256), np.float32), made()
    opt.build({"w": matrix})
    kept = sum(array.nbytes for array in opt.slots["w"].values() if array.shape)
    like = ", ".join(name if not values else f"({name})" for name, values in made._presets.items())
    summary = (made.__doc__ or "").partition("\n")[0].replace("``", "`")
    compiled = "called" if not made._rule.elementwise else "yes" if opt.program.is_native else ""
    size = f"{kept / matrix.size:.2g}"
    return f"| {made.__name__} | {summary} | {', '.join(names.values())} | {size} | {like} | {compiled} |"


def aliases() -> str:
    """The table of the functions of `oxigrad.optax`, a line for those of each row of the table of optimizers."""
    rows = [
        (", ".join(f"`{name}`" for name in row.optax), ", ".join(map(composed, row.optax.values())))
        for row in TABLE.values()
        if row.optax
    ]
    return markdown(("`oxigrad.optax`", "the rule of `oxigrad.optim`"), rows)


def composed(alias: Alias) -> str:
    """The optimizer of an alias in words."""
    names = alias.nesterov if alias.defaults.get("nesterov") else alias.parts
    parts = f"`{names[0]}`" if len(names) == 1 else f"`chain({', '.join(names)})`"
    fixed = ", ".join(f"{name}={value!r}" for name, value in alias.fixed.items())
    return f"{parts} with `{fixed}`" if fixed else parts


def print_rules() -> None:
    """Writes docs/rules.md, and the table of optax's names."""
    PATH.write_text(rules())
    ALIASES.print(aliases())


# --- oxigrad.torch ---------------------------------------------------------------------------------------------------

PROPERTIES, CLASSES = (PrintedTable("torch.md", name) for name in ("properties", "classes"))
PEERS = ("torch", "bitsandbytes")
FLAGS = ("params", "maximize", "foreach", "capturable", "differentiable", "fused")


def sentence(requirement: Callable[..., Any]) -> str:
    """The first line of a requirement."""
    return (requirement.__doc__ or "").partition("\n")[0].replace("``", "`")


def version(peer: str) -> str:
    """The release of a peer, without its build tag."""
    return importlib.metadata.version(peer).partition("+")[0]


def documented() -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """The releases of the peers, and the outcomes of each requirement, by library."""
    head, _, *rows = PROPERTIES.printed().splitlines()
    releases = dict(name.split() for name in cells(head)[2:])
    libraries = ("oxigrad.torch", *releases)
    return releases, {row[0]: dict(zip(libraries, row[1:], strict=True)) for row in map(cells, rows)}


def properties() -> str:
    """The table of requirements, for the installed releases."""
    from torch_problems import BITSANDBYTES, OURS, TORCH
    from torch_requirements import REQUIREMENTS, outcome

    rows = (
        (sentence(requirement), *(outcome(requirement, library) for library in (OURS, TORCH, BITSANDBYTES)))
        for requirement in REQUIREMENTS
    )
    return markdown(("", "oxigrad.torch", *(f"{peer} {version(peer)}" for peer in PEERS)), rows)


def classes() -> str:
    """The table of optimizers with their arguments."""
    import torch

    from oxigrad.torch.optimizer import OPTIONS
    from torch_problems import OURS

    rows: list[tuple[str, str, str]] = []
    for name in sorted(OURS.names, key=str.lower):
        parameters = inspect.signature(OURS.type(name)).parameters.values()
        own = [f"{p.name}={p.default!r}" for p in parameters if p.name not in (*FLAGS, *OPTIONS)]
        there = "yes" if hasattr(torch.optim, name) else ""
        rows.append((name, there, f"`{', '.join(own)}`"))
    return markdown(("optimizer", "also in torch", "arguments"), rows)


def print_torch() -> None:
    """Writes the tables of docs/torch.md for the installed PyTorch and bitsandbytes."""
    PROPERTIES.print(properties())
    CLASSES.print(classes())


# --- array libraries -------------------------------------------------------------------------------------------------

# A step is taken, and its result compared with NumPy's. Its road is *Rust* where the core computed it and no rule was called, *rule* where the
# rule was called on the arrays, *ffi* where the traced program calls the core, and *-* where the library lacks a function that the rule calls.
ROADS = PrintedTable("libraries.md", "roads")

Cells = dict[str, dict[str, str]]  # by optimizer and column

_RANDOM = np.random.default_rng(0)
VALUES = {"w": _RANDOM.standard_normal((4, 3))}
GRADIENTS = {"w": _RANDOM.standard_normal((4, 3))}
# Read by few rules.
LOSS = 1.5
STEPS = 2


@dataclasses.dataclass(frozen=True)
class Column:
    """An array library, and how the road of a step over its arrays is found: by ``update`` or by ``apply``."""

    title: str
    module: str
    measured: Callable[[Any], tuple[str, dict[str, np.ndarray]]]
    rtol: float = 1e-9


def _by_update(name: str) -> Callable[[Any], tuple[str, dict[str, np.ndarray]]]:
    """Finds the road of `update` over the library of that name in the table of tests."""

    def measured(opt: Any) -> tuple[str, dict[str, np.ndarray]]:
        asarray = libraries.named(name).asarray
        model, grads = tree.map(asarray, VALUES), tree.map(asarray, GRADIENTS)
        with _called() as paths:
            for _ in range(STEPS):
                model = opt.update(model, grads, loss=LOSS)
        return "rule" if paths else "Rust", tree.map(libraries.host, model)

    return measured


def _by_jax(opt: Any) -> tuple[str, dict[str, np.ndarray]]:
    """The road of `apply`, in the program that JAX traces."""
    jax = importlib.import_module("jax")
    asarray = libraries.named("jax").asarray
    model, grads = tree.map(asarray, VALUES), tree.map(asarray, GRADIENTS)
    state = opt.init(model)
    apply = functools.partial(opt.apply, loss=LOSS)
    program, step = str(jax.make_jaxpr(apply)(model, grads, state)), jax.jit(apply)
    for _ in range(STEPS):
        model, state = step(model, grads, state)
    return "ffi" if "ffi_call" in program else "rule", tree.map(np.asarray, model)


def _by_onnx(opt: Any) -> tuple[str, dict[str, np.ndarray]]:
    """The road of `apply` in an ONNX graph, which its reference implementation evaluates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it would use a runtime, which is not installed
        ndonnx = importlib.import_module("ndonnx")
    evaluator = importlib.import_module("onnx.reference").ReferenceEvaluator
    argument = lambda value: ndonnx.argument(shape=value.shape, dtype=ndonnx.float64)  # noqa: E731
    model, grads = tree.map(argument, VALUES), tree.map(argument, GRADIENTS)
    inputs = {**model, **{f"{path}_gradient": g for path, g in grads.items()}}
    given = {**VALUES, **{f"{path}_gradient": g for path, g in GRADIENTS.items()}}
    state = opt.init(model)
    with _called() as paths:
        for _ in range(STEPS):
            model, state = opt.apply(model, grads, state, loss=LOSS)
    results = {f"{path}_new": p for path, p in model.items()}
    found = evaluator(ndonnx.build(inputs, results)).run(list(results), given)
    return "rule" if paths else "Rust", dict(zip(VALUES, found, strict=True))


COLUMNS = [
    Column("NumPy", "numpy", _by_update("numpy")),
    Column("NumPy, read-only", "numpy", _by_update("read-only")),
    Column("PyTorch", "torch", _by_update("torch")),
    Column("JAX", "jax", _by_jax),
    Column("array-api-strict", "array_api_strict", _by_update("array-api-strict")),
    Column("Dask", "dask.array", _by_update("dask")),
    Column("MLX", "mlx.core", _by_update("mlx"), rtol=1e-4),
    Column("ndonnx", "ndonnx", _by_onnx),
    Column("any other", "tiny", _by_update("tiny")),
]


@contextlib.contextmanager
def _called() -> Iterator[set[str]]:
    """The key paths of the parameters that rules are called on."""
    paths: set[str] = set()

    def noting(leaf: Any, *args: Any) -> Any:
        paths.add(leaf.path)
        return stages(leaf, *args)

    stages = rule_executors._stages
    with mock.patch.object(rule_executors, "_stages", noting):
        yield paths


def optimizers() -> dict[str, type[optim.RuleOptimizer]]:
    """The optimizers by name, in the order of their families."""
    found = {
        name: row.optimizer for name, row in TABLE.items() if name != "LBFGS"
    }  # whose steps are those of `minimize`
    return dict(sorted(found.items(), key=lambda item: (family(item[1]), item[0].lower())))


def family(made: type[optim.RuleOptimizer]) -> str:
    """The module that an optimizer's rule is in."""
    return made._rule.call.__module__.rpartition(".")[2]


def roads_over(column: Column) -> dict[str, str]:
    """The road of each optimizer over a library, where its step has the result that it has over NumPy."""
    found = {}
    for name, made in optimizers().items():
        expected, reference = VALUES, made()
        state = reference.init(expected)
        for _ in range(STEPS):
            expected, state = reference.apply(expected, GRADIENTS, state, loss=LOSS)
        try:
            found[name], values = column.measured(made())
        except NotImplementedError:
            found[name] = "-"
            continue
        for path, value in expected.items():
            message = f"{name} over {column.title}, {path}"
            np.testing.assert_allclose(values[path], value, rtol=column.rtol, atol=column.rtol, err_msg=message)
    return found


def roads_table(roads: Cells) -> str:
    """The table, a row for the optimizers of a family that have the same cells."""
    made = optimizers()
    rows: dict[tuple[str, ...], list[str]] = {}
    for name in made:
        rows.setdefault((family(made[name]), *(roads[name].get(column.title, "?") for column in COLUMNS)), []).append(
            name
        )
    head = ("optimizers", *(column.title for column in COLUMNS))
    return markdown(head, ((", ".join(names), *found) for (_, *found), names in rows.items()))


def stated_roads() -> Cells:
    """The cells of the table in the page, by optimizer and column; empty ones of optimizers that are not in it."""
    head, _, *rows = map(cells, ROADS.printed().splitlines() or ["", ""])
    found = {name: dict(zip(head[1:], row[1:], strict=True)) for row in rows for name in row[0].split(", ")}
    return {name: found.get(name, {}) for name in optimizers()}


def print_roads() -> None:
    """Writes the table of roads; the columns of libraries that are not installed stay as they are."""
    roads = stated_roads()
    for column in COLUMNS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                importlib.import_module(column.module)
        except ImportError:
            continue
        for name, cell in roads_over(column).items():
            roads[name][column.title] = cell
    ROADS.print(roads_table(roads))
