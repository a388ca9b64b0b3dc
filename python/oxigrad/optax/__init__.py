"""Optimizers under optax's names, as gradient transformations of optax. Nothing imports this package.

* `aliases`, `composed`: the functions under optax's names; `transformation`: any optimizer of `oxigrad.optim` as a transformation.
* `flat`: states of one array a slot, for many small parameters.
* `displacement`: the change of a parameter, computed without the rounding of the new parameter.

They compose with ``optax.chain``, ``optax.MultiSteps``, ``optax.inject_hyperparams``, ``optax.masked`` and the like, and work under ``jit``,
``vmap`` and ``scan``. Arguments have optax's names and defaults, and may be arrays and schedules, optax's or ours. See docs/jax.md for
what differs.

>>> import jax.numpy as jnp
>>> import optax
>>> import oxigrad.optax
>>> tx = optax.chain(optax.clip_by_global_norm(1.0), oxigrad.optax.adamw(1e-1))
>>> params = {"w": jnp.array([1.0, -1.0])}
>>> updates, state = tx.update({"w": jnp.array([0.3, 0.4])}, tx.init(params), params)
>>> optax.apply_updates(params, updates)["w"].round(2)
Array([ 0.9, -1.1], dtype=float32)

``apply`` takes the whole step, and does not write the updates:

>>> tx = oxigrad.optax.adamw(1e-1)
>>> params, state = tx.apply({"w": jnp.array([0.3, 0.4])}, tx.init(params), params)

Importing it raises `ModuleNotFoundError` where JAX or optax is missing.
"""

from typing import NoReturn

from oxigrad._names import unknown_name
from oxigrad.optax.aliases import function
from oxigrad.optax.composed import muon, noisy_sgd, optimistic_adam, polyak_sgd
from oxigrad.optax.flat import flat
from oxigrad.optax.transformation import State, Transformation, transformation

sgd = function("sgd")
sign_sgd = function("sign_sgd")
signum = function("signum")
rprop = function("rprop")
lion = function("lion")
lars = function("lars")
fromage = function("fromage")
optimistic_gradient_descent = function("optimistic_gradient_descent")
adagrad = function("adagrad")
adadelta = function("adadelta")
rmsprop = function("rmsprop")
madgrad = function("madgrad")
adam = function("adam")
adamw = function("adamw")
amsgrad = function("amsgrad")
nadam = function("nadam")
nadamw = function("nadamw")
optimistic_adam_v2 = function("optimistic_adam_v2")
adamax = function("adamax")
adamaxw = function("adamaxw")
radam = function("radam")
adabelief = function("adabelief")
ademamix = function("ademamix")
adopt = function("adopt")
adan = function("adan")
yogi = function("yogi")
lamb = function("lamb")
novograd = function("novograd")
sophia = function("sophia")
prodigy = function("prodigy")
schedule_free_sgd = function("schedule_free_sgd")
schedule_free_adamw = function("schedule_free_adamw")
adafactor = function("adafactor")
sm3 = function("sm3")
adam_lrd = function("adam_lrd")
asgd = function("asgd")
ftrl = function("ftrl")
shampoo = function("shampoo")
soap = function("soap")

__all__ = [
    "State",
    "Transformation",
    "adabelief",
    "adadelta",
    "adafactor",
    "adagrad",
    "adam",
    "adam_lrd",
    "adamax",
    "adamaxw",
    "adamw",
    "adan",
    "ademamix",
    "adopt",
    "amsgrad",
    "asgd",
    "flat",
    "fromage",
    "ftrl",
    "lamb",
    "lars",
    "lion",
    "madgrad",
    "muon",
    "nadam",
    "nadamw",
    "noisy_sgd",
    "novograd",
    "optimistic_adam",
    "optimistic_adam_v2",
    "optimistic_gradient_descent",
    "polyak_sgd",
    "prodigy",
    "radam",
    "rmsprop",
    "rprop",
    "schedule_free_adamw",
    "schedule_free_sgd",
    "sgd",
    "shampoo",
    "sign_sgd",
    "signum",
    "sm3",
    "soap",
    "sophia",
    "transformation",
    "yogi",
]

__dir__ = __all__.copy


def __getattr__(name: str) -> NoReturn:
    raise unknown_name(__name__, name, __all__)
