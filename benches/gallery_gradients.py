"""The ten programs of `examples/gallery`: gradients as they run, and recorded, beside autograd and jax.jit where these can run them.

    python benches/gallery_gradients.py [OPTIONS of benches/versus.py]

Everybody runs the same text, with another library for ``np``. Autograd and JAX lack assignments to arrays. The reference is a directional
derivative by central differences of the program in NumPy.
"""

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import oxigrad as ox
from measure import Contestant, Goal, Ready, Row, WrongResultError
from oxigrad import tree
from rows.recorded import require_recorded

FOLDER = Path(__file__).parents[1] / "examples" / "gallery"
IMPORT, CHANGED = "from oxigrad import xp as np", "  # changed: "
# The programs that neither assign to arrays nor call SciPy's functions by oxigrad's names.
IN_AUTOGRAD = IN_JAX = ("crf", "hierarchical_logistic", "phase_retrieval")


def program(name: str, library: Any = None) -> Any:
    """The program with a library for ``np``, or as it is; for NumPy, with the lines that were changed as they were."""
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    if library is np:
        text = "\n".join(line.partition(CHANGED)[2] or line for line in text.splitlines())
    module = types.ModuleType(name)
    if library is not None:
        text = text.replace(IMPORT, "")
        vars(module)["np"] = library
    exec(compile(text, str(FOLDER / name), "exec"), vars(module))  # noqa: S102 (a program of this repository)
    return module


def checked(name: str, call: Callable[[Any], tuple[Any, Any]]) -> Ready:
    """A contestant whose call returns value and gradient at the start, compared with central differences."""
    module = program(name, np)
    start = module.start()
    flat, unflatten = tree.ravel(start)
    along = np.random.default_rng(7).standard_normal(flat.shape)
    step = 1e-6
    ahead, behind = (module.loss(unflatten(flat + sign * step * along)) for sign in (1.0, -1.0))
    slope, value = (ahead - behind) / (2.0 * step), module.loss(start)

    def check() -> None:
        found, gradient = call(start)
        inner = np.dot(tree.ravel(tree.map(lambda _, g: np.asarray(g), start, gradient))[0], along)
        for what, got, right in (("value", found, value), ("slope", inner, slope)):
            if not abs(got - right) <= 1e-6 * max(1.0, abs(right)):
                raise WrongResultError(f"the {what} is {got!r}, the reference {right!r}")

    return Ready(lambda: call(start), check)


def ours(name: str) -> Ready:
    """`value_and_grad` of the program as it is."""
    return checked(name, ox.value_and_grad(program(name).loss))


def recorded(name: str) -> Ready:
    """Its recording."""
    module = program(name)
    both: Any = ox.value_and_grad(module.loss)
    require_recorded(both, module.start())
    return checked(name, ox.record(both))


def in_autograd(name: str) -> Ready:
    """HIPS autograd."""
    import autograd
    import autograd.numpy

    value_and_grad: Any = autograd.value_and_grad
    return checked(name, value_and_grad(program(name, autograd.numpy).loss))


def in_jax(name: str) -> Ready:
    """JAX, compiled, with NumPy's random numbers for the data."""
    import jax

    jax.config.update("jax_enable_x64", True)
    library = types.SimpleNamespace(**{**vars(jax.numpy), "random": np.random})
    compiled = jax.jit(jax.value_and_grad(program(name, library).loss))
    return checked(name, lambda start: jax.block_until_ready(compiled(start)))


def row(name: str) -> Row:
    """The program as it runs, beside autograd."""

    def build() -> list[Contestant]:
        peers = [Contestant("autograd", "peer", lambda: in_autograd(name))] if name in IN_AUTOGRAD else []
        module = program(name, np)
        plain = Ready(lambda: module.loss(module.start()), lambda: None)
        return [
            Contestant("oxigrad", "ours", lambda: ours(name)),
            *peers,
            Contestant("NumPy, forward only", "ceiling", lambda: plain),
        ]

    return Row(f"gallery: {name}", build, (Goal(3, "autograd"),) if name in IN_AUTOGRAD else (), samples=15)


def recorded_row(name: str) -> Row:
    """The program recorded, beside jax.jit and beside itself as it runs."""

    def build() -> list[Contestant]:
        peers = [Contestant("jax, jit", "peer", lambda: in_jax(name))] if name in IN_JAX else []
        as_it_runs = Contestant("oxigrad, not recorded", "peer", lambda: ours(name))
        return [Contestant("oxigrad, recorded", "ours", lambda: recorded(name)), *peers, as_it_runs]

    return Row(f"gallery, recorded: {name}", build, (Goal(1, "jax, jit"),) if name in IN_JAX else (), samples=15)


NAMES = sorted(file.stem for file in FOLDER.glob("*.py"))
ROWS = [*map(row, NAMES), *map(recorded_row, NAMES)]
FAMILIES = ()
GROUPS: dict[str, str] = {}

if __name__ == "__main__":
    import versus

    sys.exit(versus.main(sys.argv[1:], "gallery_gradients"))
