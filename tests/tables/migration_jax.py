"""The claims of each row of from_jax.md, run with JAX and with ours: numbers that must agree."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import oxigrad as ox
from migration import Pair, V, X, cubes
from migration_steps import GRADS, START, moved, raises, trained
from oxigrad import optim, xp

TREE = {"b": np.ones(2), "a": [np.zeros(1), np.full((2, 2), 3.0)]}


@dataclasses.dataclass
class Point:
    x: Any
    y: Any


def of_jax() -> dict[str, Callable[[], Iterator[Pair]]]:
    """The rows of from_jax.md by their first name."""
    return {**of_derivatives(), **of_trees()}


# --- the table of docs/jax.md -------------------------------------------------------------------------------------------


def shown_by_jax(expression: str) -> str:
    """The value of an expression with JAX's transforms, and with ``jax.numpy`` as ``xp``."""
    import jax

    return shown(lambda: evaluated(expression, jax, jax.numpy))


def shown_by_ours(expression: str) -> str:
    return shown(lambda: evaluated(expression, ox, xp))


def evaluated(expression: str, library: Any, xp: Any) -> Any:
    wrong = library.custom_vjp(lambda x: x**2)
    wrong.defvjp(lambda x: (x**2, x), lambda x, g: (10 * g,))
    names = ("grad", "jvp", "vjp", "jacrev", "jacfwd", "jacobian", "value_and_grad")
    return eval(expression, {**{name: getattr(library, name) for name in names}, "xp": xp, "np": np, "f": wrong})  # noqa: S307 - of our page


def shown(run: Callable[[], Any]) -> str:
    """A result as it stands in the table: rounded numbers, ``float0``, or the class of an error."""
    try:
        found = run()
    except Exception as error:  # noqa: BLE001 - of any library
        return type(error).__name__
    if isinstance(found, dict):
        return str({name: np.asarray(value).item() for name, value in found.items()})
    found = np.asarray(found)
    return "float0" if found.dtype.kind == "V" else str(found.round(3))


# --- the rows of from_jax.md --------------------------------------------------------------------------------------------


def of_derivatives() -> dict[str, Callable[[], Iterator[Pair]]]:
    import jax
    import jax.numpy as jnp
    import jax.test_util

    theirs, ours = cubes(jnp), cubes(xp)

    def vector(np_: Any) -> Callable[[Any], Any]:
        return lambda x: np_.sin(x) * x[0]

    def grads() -> Iterator[Pair]:
        yield jax.grad(theirs)(X), ox.grad(ours)(X)
        yield from zip(jax.value_and_grad(theirs)(X), ox.value_and_grad(ours)(X), strict=True)
        their = jax.grad(lambda x, y: (jnp.sum(x * y**2), x), argnums=(0, 1), has_aux=True)(X, V)
        own = ox.grad(lambda x, y: (xp.sum(x * y**2), x), argnums=(0, 1), has_aux=True)(X, V)
        yield from zip(jax.tree.leaves(their), ox.tree.leaves(own), strict=True)

    def vjps() -> Iterator[Pair]:
        value, pullback = jax.vjp(vector(jnp), X)
        own_value, own_pullback = ox.vjp(vector(xp), X)
        yield from ((value, own_value), (pullback(V)[0], own_pullback(V)[0]))
        yield from zip(jax.jvp(vector(jnp), (X,), (V,)), ox.jvp(vector(xp), (X,), (V,)), strict=True)

    def linear() -> Iterator[Pair]:
        value, pushforward = jax.linearize(vector(jnp), X)
        own_value, own_pushforward = ox.linearize(vector(xp), X)
        yield from ((value, own_value), (pushforward(V), own_pushforward(V)))

    def jacobians() -> Iterator[Pair]:
        for their, own in ((jax.jacfwd, ox.jacfwd), (jax.jacrev, ox.jacrev), (jax.jacobian, ox.jacobian)):
            yield their(vector(jnp))(X), own(vector(xp))(X)

    def rules() -> Iterator[Pair]:
        """A rule that is no derivative, so that it is seen to be used, in both forms."""

        def cube(x: Any, y: Any) -> Any:
            return y * x**3

        def forward(x: Any, y: Any) -> Any:
            return cube(x, y), (x, y)

        def backward(kept: Any, g: Any) -> Any:
            return 10 * g * kept[0], -g * kept[1]

        their, own = jax.custom_vjp(cube), ox.custom_vjp(cube)
        their.defvjp(forward, backward)
        own.defvjp(forward, backward)
        short = ox.custom_vjp(cube, lambda g, out, x, y: (10 * g * x, -g * y))
        expected = jax.grad(their, argnums=(0, 1))(2.0, 3.0)
        for made in (own, short):
            yield from zip(expected, ox.grad(made, argnums=(0, 1))(2.0, 3.0), strict=True)
            yield jax.grad(jax.grad(their))(2.0, 3.0), ox.grad(ox.grad(made))(2.0, 3.0)

    def checks() -> Iterator[Pair]:
        wrong_theirs, wrong = jax.custom_vjp(theirs), ox.custom_vjp(ours, lambda g, out, x: g * x)
        wrong_theirs.defvjp(lambda x: (theirs(x), x), lambda x, g: (g * x,))
        for their, own in ((theirs, ours), (wrong_theirs, wrong)):
            yield (
                raises(lambda their=their: jax.test_util.check_grads(their, (X,), order=1, modes=["rev"])),
                raises(lambda own=own: ox.testing.check_grads(own, (X,))),
            )

    def sums() -> Iterator[Pair]:
        for name in ("sum", "mean", "std", "prod", "max", "cumulative_sum", "concatenate", "matmul", "where"):
            args = {"matmul": (V,), "where": (V > 0, V), "concatenate": ()}.get(name, ())
            first = (X, V) if name == "concatenate" else X
            given = (args[0], first, *args[1:]) if name == "where" else (first, *args)
            yield getattr(jnp, name)(*given), getattr(xp, name)(*given)

    def compiled() -> Iterator[Pair]:
        opt = optim.AdamW(0.1)
        params = {"w": jnp.asarray(START)}
        state, step = opt.init(params), jax.jit(opt.apply)
        for g in GRADS:
            params, state = step(params, {"w": jnp.asarray(g)}, state)
        yield moved(np.asarray(params["w"]), trained(optim.AdamW(0.1)))

    return {
        "jax.grad": grads,
        "jax.vjp": vjps,
        "jax.linearize": linear,
        "jax.jacfwd": jacobians,
        "jax.hessian": lambda: iter([(jax.hessian(theirs)(X), ox.hessian(ours)(X))]),
        "jax.checkpoint": lambda: iter(
            [(jax.grad(jax.checkpoint(theirs))(X), ox.grad(ox.checkpoint(ours))(X))],
        ),
        "jax.custom_vjp": rules,
        "jax.lax.stop_gradient": lambda: iter(
            [
                (
                    jax.grad(lambda x: jnp.sum(jax.lax.stop_gradient(jnp.exp(x)) * x))(X),
                    ox.grad(lambda x: xp.sum(ox.stop_gradient(xp.exp(x)) * x))(X),
                )
            ]
        ),
        "jax.numpy.sum": sums,
        "jax.test_util.check_grads": checks,
        "jax.jit": compiled,
    }


def of_trees() -> dict[str, Callable[[], Iterator[Pair]]]:
    import jax
    import jax.flatten_util
    import jax.numpy as jnp

    ordered = dict(sorted(TREE.items()))

    def maps() -> Iterator[Pair]:
        their, own = jax.tree.map(np.exp, TREE), ox.tree.map(np.exp, TREE)
        yield from zip(jax.tree.leaves(their), jax.tree.leaves(own), strict=True)
        yield from zip(jax.tree.leaves(TREE), ox.tree.leaves(ordered), strict=True)
        yield jax.tree.leaves(TREE)[-1], ox.tree.leaves(TREE)[0]  # "b", which comes first here

    def flat() -> Iterator[Pair]:
        leaves, structure = jax.tree.flatten(ordered)
        own_leaves, own_structure = ox.tree.flatten(ordered)
        yield from zip(leaves, own_leaves, strict=True)
        their = jax.tree.unflatten(structure, [2 * leaf for leaf in leaves])
        own = ox.tree.unflatten(own_structure, [2 * leaf for leaf in own_leaves])
        yield from zip(jax.tree.leaves(their), jax.tree.leaves(own), strict=True)

    def dataclasses_() -> Iterator[Pair]:
        own = ox.grad(lambda p: xp.sum(p.x**2) * p.y)(Point(X, 2.0))
        jax.tree_util.register_dataclass(Point, data_fields=["x", "y"], meta_fields=[])
        their = jax.grad(lambda p: jnp.sum(p.x**2) * p.y)(Point(X, 2.0))
        yield from ((their.x, own.x), (their.y, own.y))

    def raveled() -> Iterator[Pair]:
        vector, unravel = jax.flatten_util.ravel_pytree(ordered)
        own_vector, own_unravel = ox.tree.ravel(ordered)
        yield vector, own_vector
        yield from zip(jax.tree.leaves(unravel(2 * vector)), jax.tree.leaves(own_unravel(2 * own_vector)), strict=True)

    return {
        "jax.tree.map": maps,
        "jax.tree.flatten": flat,
        "jax.tree_util.register_dataclass": dataclasses_,
        "jax.flatten_util.ravel_pytree": raveled,
    }
