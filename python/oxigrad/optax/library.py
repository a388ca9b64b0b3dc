"""JAX and optax, imported by name: a type checker needs no stubs of them, and this package has the name of one.

The base class of transformations is the exception: to a type checker that has optax, transformations of oxigrad are
optax's.
"""

from typing import TYPE_CHECKING, Any

from oxigrad._names import library

jax: Any = library("jax", "oxigrad.optax needs JAX and optax: python -m pip install optax")
optax: Any = library("optax", "oxigrad.optax needs JAX and optax: python -m pip install optax")

if TYPE_CHECKING:
    from optax import GradientTransformationExtraArgs as GradientTransformationExtraArgs
else:
    GradientTransformationExtraArgs = optax.GradientTransformationExtraArgs
