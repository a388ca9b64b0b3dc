"""The ways to an optimizer's step: `oxigrad.optim` with its two forms, over NumPy and PyTorch, `oxigrad.torch` and `oxigrad.optax`;
whole, in the backward, and by a wrapper of workers.

Each is a class with the same methods, so that a test of a situation runs through all of them. A method that a way cannot express skips the
test, and says why.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
import pytest

from oxigrad import distributed, optim, xp
from oxigrad.optim.settings import config

Values = dict[str, np.ndarray]

SHAPES = {"a": (3,), "b": (2, 4), "c": ()}
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9},
    "AdamW": {"weight_decay": 0.1},
    "RMSprop": {"momentum": 0.5},
    "Lion": {"weight_decay": 0.1},
    "LAMB": {"weight_decay": 0.1},
}
# Those whose rules are kernels, and called on whole arrays.
KERNEL, CALLED = "AdamW", "LAMB"
OPTIONS = {name: name for name in ("rounding", "seed", "master", "max_norm")} | {"slot_dtype": "state_dtype"}


def drawn(seed: int) -> Values:
    """A gradient, or parameters, of float32."""
    generator = np.random.default_rng(seed)
    return {
        name: np.asarray(generator.standard_normal(shape), np.float32).reshape(shape) for name, shape in SHAPES.items()
    }


def cannot(reason: str) -> NoReturn:
    """Skips the test of a situation that a way cannot express."""
    pytest.skip(reason)


class Door:
    """A way to the step of an optimizer: parameters, a step with given gradients, and all arrays that there are.

    With ``tied``, parameter "a" is the array of "b". Those at the paths of ``frozen`` are not updated.
    """

    # The pattern of the name of parameter "b" in errors.
    b = "b"
    # Further options of the optimizer.
    further: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any],
        values: Values,
        *,
        tied: bool = False,
        frozen: Sequence[str] = (),
    ) -> None:
        self._opt = self.made(
            name, {"learning_rate": 0.1, **arguments, **self.further, "groups": dict.fromkeys(frozen)}
        )
        self._params: dict[str, Any] = {path: self.array(value) for path, value in values.items()}
        if tied:
            self._params["a"] = self._params["b"]

    @staticmethod
    def made(name: str, arguments: Mapping[str, Any]) -> Any:
        """The optimizer; with the argument ``max_norm``, after a clipping."""
        if "max_norm" not in arguments:
            return getattr(optim, name)(**arguments)
        options = {key: value for key, value in arguments.items() if key in config.OPTIONS}
        own = {key: value for key, value in arguments.items() if key not in options and key != "max_norm"}
        return optim.chain(optim.ClipByGlobalNorm(arguments["max_norm"]), getattr(optim, name)(**own), **options)

    def array(self, value: np.ndarray) -> Any:
        """A copy as a parameter, a slot or a gradient."""
        return np.array(value)

    def step(self, grads: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def raw(self, path: str) -> Any:
        """The parameter as the door holds it."""
        return self._params[path]

    def parameter(self, path: str) -> np.ndarray:
        return self._params[path]

    def raw_slots(self, path: str) -> Mapping[str, Any]:
        """The slots of a parameter as the door holds them, by the names of `oxigrad.optim`."""
        return self._opt.slots.get(path, {})

    def set_slot(self, path: str, name: str, value: np.ndarray) -> None:
        raise NotImplementedError

    def parameters(self) -> Values:
        return {path: self.parameter(path) for path in self._params}

    def slots_of(self, path: str) -> dict[str, np.ndarray]:
        return {name: np.asarray(slot) for name, slot in self.raw_slots(path).items()}

    def slots(self) -> dict[str, dict[str, np.ndarray]]:
        return {path: self.slots_of(path) for path in self._params}

    def array_slot(self, path: str = "b") -> str:
        """The name of the first slot of a parameter that is an array."""
        return next(name for name, array in self.raw_slots(path).items() if np.shape(array))

    def held(self, *, without: Sequence[str] = ()) -> dict[str, bytes]:
        """The bytes of parameters and slots, but for those at some paths."""
        paths = [path for path in self._params if path not in without]
        slots = {f"{path}.{name}": slot for path in paths for name, slot in self.slots_of(path).items()}
        return {name: array.tobytes() for name, array in {**{p: self.parameter(p) for p in paths}, **slots}.items()}

    # --- situations ----------------------------------------------------------------------------------------------------

    def move(self) -> None:
        """Gives parameter "b" other memory, with the same values."""
        self._params["b"] = self.array(self._params["b"])

    def overlap(self) -> None:
        """Makes parameter "a" a part of the memory of "b"."""
        self._params["a"] = self._params["b"].reshape(-1)[:3]

    def of_own_memory(self) -> Any:
        """An array in the memory of parameter "b"."""
        return self._params["b"]

    def foreign(self, value: np.ndarray) -> np.ndarray:
        """The value in the byte order that the machine does not have."""
        return value.astype(value.dtype.newbyteorder())

    def read_only(self, value: np.ndarray) -> Any:
        """The value as an array that cannot be written."""
        array = value.copy()
        array.setflags(write=False)
        return array

    def lock(self, array: Any) -> None:
        """Makes an array one that cannot be written."""
        array.setflags(write=False)

    def lazy(self, kind: str, value: np.ndarray) -> Any:
        """The value as a tensor with a bit set by which it is read, of a kind in `LAZY`."""
        cannot("arrays of NumPy and JAX have no negative or conjugate bit")

    def shrink(self, array: Any, left: int) -> None:
        """Leaves ``left`` bytes of the memory of an array."""
        array.resize(left // array.itemsize, refcheck=False)

    def swap(self, array: Any, how: str) -> None:
        """Gives an array other memory, with three times the values, in one of the ways of `SWAPS`."""
        values = np.array(array) * 3
        if how == "resize":
            array.resize(4096, refcheck=False)
            array.resize(values.shape, refcheck=False)
            array[...] = values
        elif how == "state":
            array.__setstate__((1, values.shape, values.dtype, False, values.tobytes()))
        else:
            cannot("an array of NumPy has no such method")

    def set_step(self, number: int) -> None:
        """Sets the number of steps that have been taken."""
        cannot("the number of steps of an optimizer cannot be assigned")

    def add(self, path: str, value: np.ndarray) -> None:
        """Adds a parameter, in the way that is meant for it."""
        cannot("a state is made by init for its parameters: another structure is refused")

    def remove(self, path: str) -> None:
        """Removes a parameter, in the way that is meant for it."""
        cannot("a state is made by init for its parameters: another structure is refused")

    def appear(self, path: str, value: np.ndarray) -> None:
        """Adds a parameter to the model alone."""
        self._params = {**self._params, path: self.array(value)}

    def vanish(self, path: str) -> None:
        """Removes a parameter from the model alone."""
        self._params = {other: array for other, array in self._params.items() if other != path}


LAZY = ("negative", "imaginary", "zero")
SWAPS = ("data", "set_", "resize", "state")


class Update(Door):
    """`Optimizer.update` on NumPy arrays."""

    def step(self, grads: Mapping[str, Any]) -> None:
        self._params = self._opt.update(self._params, dict(grads))

    def set_slot(self, path: str, name: str, value: np.ndarray) -> None:
        self._opt.slots[path][name] = value

    def add(self, path: str, value: np.ndarray) -> None:
        self.appear(path, value)
        self._opt.rebuild(self._params)

    def remove(self, path: str) -> None:
        self.vanish(path)
        self._opt.rebuild(self._params, remove=True)


class UpdateReadOnly(Update):
    """`Optimizer.update` on arrays that may not be written, which it replaces."""

    def step(self, grads: Mapping[str, Any]) -> None:
        for array in self._params.values():
            array.setflags(write=False)
        super().step(grads)

    def overlap(self) -> None:
        cannot("arrays that are replaced may share memory")

    of_own_memory = overlap

    def shrink(self, array: Any, left: int) -> None:
        array.setflags(write=True)
        super().shrink(array, left)


def refuse_wrong(grads: Mapping[str, Any], params: Values) -> None:
    """Skips the test of gradients that a derivative cannot have."""
    for path, g in grads.items():
        if g is not None and (np.shape(g) != params[path].shape or np.asarray(g).dtype != params[path].dtype):
            cannot("derivatives have the shape and dtype of their parameter")
        if g is not None and np.iscomplexobj(g):
            cannot("a loss is real")


class Minimize(Update):
    """`Optimizer.minimize` on NumPy arrays, with the step after the backward: the loss is linear in the parameters."""

    in_backward = False
    record = False

    def step(self, grads: Mapping[str, Any]) -> None:
        if set(grads) != set(self._params):
            cannot("a loss that lacks parameters has zeros as their gradients")
        refuse_wrong(grads, self.parameters())
        terms = {path: np.array(g) for path, g in grads.items()}
        loss = lambda params: sum((xp.sum(params[path] * g) for path, g in terms.items()), start=0.0)  # noqa: E731
        self._opt.minimize(loss, self._params, in_backward=self.in_backward, record=self.record)

    def of_own_memory(self) -> Any:
        cannot("derivatives have memory of their own")

    def shrink(self, array: Any, left: int) -> None:
        cannot("the loss reads the parameters, and computes their gradients")

    def foreign(self, value: np.ndarray) -> np.ndarray:
        cannot("derivatives have the byte order of the machine")


class MinimizeInBackward(Minimize):
    """`Optimizer.minimize` with steps of the parameters in the backward."""

    in_backward = True


class Workers(Update):
    """`Optimizer.update` of `DataParallel`, of a job of one worker."""

    wrapper: Callable[[Any], Any] = distributed.DataParallel

    def __init__(self, name: str, arguments: Mapping[str, Any], values: Values, **how: Any) -> None:
        super().__init__(name, arguments, values, **how)
        self._opt = type(self).wrapper(self._opt)


class OfTensors(Door):
    """A way whose arrays are tensors of PyTorch."""

    def array(self, value: Any) -> Any:
        torch = importlib.import_module("torch")
        if isinstance(value, torch.Tensor):
            return value.clone()
        if isinstance(value, np.ndarray) and not value.dtype.isnative:
            cannot("PyTorch has the byte order of the machine alone")
        return torch.tensor(value)

    def gradient(self, value: Any) -> Any:
        """A gradient as a tensor, in the same memory where that can be."""
        if not isinstance(value, (np.ndarray, np.generic)):
            return value
        value = np.asarray(value)
        torch = importlib.import_module("torch")
        return torch.from_numpy(value) if value.flags.writeable else self.array(value)

    def overlap(self) -> None:
        self._params["a"].data = self._params["b"].data.view(-1)[:3]

    def of_own_memory(self) -> Any:
        return self._params["b"].data

    def foreign(self, value: np.ndarray) -> np.ndarray:
        cannot("PyTorch has the byte order of the machine alone")

    def read_only(self, value: np.ndarray) -> Any:
        cannot("PyTorch has no read-only tensors")

    def lock(self, array: Any) -> None:
        cannot("PyTorch has no read-only tensors")

    def lazy(self, kind: str, value: np.ndarray) -> Any:
        torch = importlib.import_module("torch")
        if kind == "zero":
            return torch._efficientzerotensor(value.shape)
        negative = torch.tensor(-value)
        if kind == "negative":
            return torch._neg_view(negative)
        return torch.complex(torch.zeros_like(negative), negative).conj().imag

    def shrink(self, array: Any, left: int) -> None:
        array.untyped_storage().resize_(left)

    def swap(self, array: Any, how: str) -> None:
        values = array.detach().clone() * 3
        if how == "data":
            array.data = values
        elif how == "set_":
            with importlib.import_module("torch").no_grad():
                array.set_(values)
        elif how == "resize":
            if array.requires_grad:
                cannot("PyTorch resizes no tensor that requires a gradient")
            array.resize_(4096).resize_(values.shape).copy_(values)
        else:
            cannot("a tensor keeps its memory in __setstate__")


class UpdateTensors(OfTensors, Update):
    """`Optimizer.update` on tensors of PyTorch."""

    def step(self, grads: Mapping[str, Any]) -> None:
        super().step({path: self.gradient(g) for path, g in grads.items()})

    def set_slot(self, path: str, name: str, value: np.ndarray) -> None:
        super().set_slot(path, name, self.array(value))

    def parameter(self, path: str) -> np.ndarray:
        return self._params[path].numpy()


class Apply(Door):
    """`Optimizer.apply` on NumPy arrays."""

    def __init__(self, name: str, arguments: Mapping[str, Any], values: Values, **how: Any) -> None:
        super().__init__(name, arguments, values, **how)
        self._state = self._opt.init(self._params)

    def step(self, grads: Mapping[str, Any]) -> None:
        self._params, self._state = self._opt.apply(self._params, dict(grads), self._state)

    def raw_slots(self, path: str) -> Mapping[str, Any]:
        return self._state["slots"].get(path, {})

    def set_slot(self, path: str, name: str, value: np.ndarray) -> None:
        self._state["slots"][path][name] = value

    def set_step(self, number: int) -> None:
        self._state["step"] = number

    def of_own_memory(self) -> Any:
        cannot("a pure function writes no array")


class Tensors(OfTensors):
    """A class of `oxigrad.torch`."""

    options: Mapping[str, Any] = MappingProxyType({})
    b = r"param_groups\[0\]\['params'\]\[1\]"

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any],
        values: Values,
        *,
        tied: bool = False,
        frozen: Sequence[str] = (),
    ) -> None:
        torch, module = importlib.import_module("torch"), importlib.import_module("oxigrad.torch")
        self._params = {path: torch.nn.Parameter(self.array(value)) for path, value in values.items()}
        if tied:
            self._params["a"] = self._params["b"]
        for path in frozen:
            self._params[path].requires_grad_(False)
        options = {theirs: arguments[ours] for ours, theirs in OPTIONS.items() if ours in arguments}
        ours = {key: value for key, value in arguments.items() if key not in OPTIONS}
        made = getattr(module, name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's, for a tensor that is given twice
            self._opt = made([*self._params.values()], **self._keywords(made, name, ours), **options, **self.options)

    @staticmethod
    def _keywords(made: Any, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of `oxigrad.optim` by PyTorch's names."""
        made_of = getattr(optim, {"SparseAdam": "Adam"}.get(name, name))
        preset = made_of(**{"learning_rate": 0.1, **arguments}).get_config()
        keywords: dict[str, Any] = {}
        for ours, (key, item) in made.entry.places.items():
            value = preset.get(ours, made.entry.rule.defaults[ours])
            if item is not None:
                keywords.setdefault(key, {})[item] = value
            elif key in made.__signature__.parameters:
                keywords[key] = value
        return {key: tuple(v[i] for i in sorted(v)) if isinstance(v, dict) else v for key, v in keywords.items()}

    def step(self, grads: Mapping[str, Any]) -> None:
        for p in self._params.values():
            p.grad = None
        for path, p in self._params.items():
            g = self.gradient(grads[path])
            if g is None or not p.requires_grad:
                continue
            if p.grad is not None:
                p.grad = p.grad + g
            elif g.shape != p.shape or g.dtype != p.dtype:
                p.grad_dtype = None
                p.grad = stand_in = p.detach().clone()
                stand_in.data = g
            else:
                p.grad = g
        self._opt.step()

    def move(self) -> None:
        self._params["b"].data = self._params["b"].data.clone()

    def parameter(self, path: str) -> np.ndarray:
        return self._params[path].detach().numpy()

    def _key(self, slot: str) -> str:
        return self._opt.entry.key_of_slot(slot)

    def raw_slots(self, path: str) -> Mapping[str, Any]:
        state = self._opt.state.get(self._params[path], {})
        names = [slot.name for slot in self._opt.entry.rule.slots]
        return {name: state[self._key(name)] for name in names if self._key(name) in state}

    def set_slot(self, path: str, name: str, value: np.ndarray) -> None:
        self._opt.state[self._params[path]][self._key(name)] = self.array(value)

    def set_step(self, number: int) -> None:
        for p in self._params.values():
            step = self._opt.state[p]["step"]
            step.data = step.data * 0 + number

    def add(self, path: str, value: np.ndarray) -> None:
        self._params[path] = importlib.import_module("torch").nn.Parameter(self.array(value))
        self._opt.add_param_group({"params": [self._params[path]]})

    def remove(self, path: str) -> None:
        removed = self._params.pop(path)
        for group in self._opt.param_groups:
            group["params"] = [p for p in group["params"] if p is not removed]

    def appear(self, path: str, value: np.ndarray) -> None:
        cannot("a parameter of PyTorch is one that add_param_group was given")

    def vanish(self, path: str) -> None:
        cannot("a parameter of PyTorch is one that a group has")


class TensorsInBackward(Tensors):
    """A class of `oxigrad.torch` with ``in_backward=True``: the loss is linear in the parameters."""

    options: Mapping[str, Any] = MappingProxyType({"in_backward": True})

    def step(self, grads: Mapping[str, Any]) -> None:
        refuse_wrong(grads, self.parameters())
        self._opt.zero_grad()
        self.loss(grads).backward()
        self._opt.step()

    def loss(self, grads: Mapping[str, Any]) -> Any:
        """A loss with these gradients."""
        given = {path: self.gradient(g) for path, g in grads.items() if g is not None}
        terms = [(p * given[path]).sum() for path, p in self._params.items() if path in given and p.requires_grad]
        return sum(terms)

    def of_own_memory(self) -> Any:
        cannot("derivatives have memory of their own")

    def shrink(self, array: Any, left: int) -> None:
        cannot("the loss reads the parameters, and computes their gradients")

    def lazy(self, kind: str, value: np.ndarray) -> Any:
        cannot("derivatives of the loss are plain tensors")


class Pytrees(Door):
    """A transformation of `oxigrad.optax`, outside of a compiled function."""

    def __init__(self, name: str, arguments: Mapping[str, Any], values: Values, **how: Any) -> None:
        self._jnp, module = importlib.import_module("jax.numpy"), importlib.import_module("oxigrad.optax")
        if how.get("tied"):
            cannot("arrays of JAX are values: one at two key paths is two parameters")
        super().__init__(name, arguments, values, **how)
        self._tx = module.transformation(self._opt)
        self._state = self._tx.init(self._params)
        self._apply = self._tx.apply

    def array(self, value: Any) -> Any:
        if isinstance(value, np.ndarray) and not value.dtype.isnative:
            cannot("JAX has the byte order of the machine alone")
        return self._jnp.array(value, copy=True)

    def step(self, grads: Mapping[str, Any]) -> None:
        given = {path: self._jnp.asarray(g) for path, g in grads.items()}
        self._params, self._state = self._apply(given, self._state, self._params)

    def overlap(self) -> None:
        cannot("arrays of JAX share no memory that can be written")

    of_own_memory = overlap

    def foreign(self, value: np.ndarray) -> np.ndarray:
        cannot("JAX has the byte order of the machine alone")

    def parameter(self, path: str) -> np.ndarray:
        return np.asarray(self._params[path])

    def raw_slots(self, path: str) -> Mapping[str, Any]:
        slots = self._state.slots.items()
        return {name: tree[path] for name, tree in slots if tree[path] is not None}

    def set_slot(self, path: str, name: str, value: np.ndarray) -> None:
        self._state.slots[name][path] = self._jnp.asarray(value)

    def set_step(self, number: int) -> None:
        self._state = self._state._replace(count=self._jnp.asarray(number, self._state.count.dtype))

    def shrink(self, array: Any, left: int) -> None:
        if left:
            cannot("JAX deletes whole arrays")
        array.delete()

    def swap(self, array: Any, how: str) -> None:
        cannot("arrays of JAX are immutable")

    def lock(self, array: Any) -> None:
        cannot("arrays of JAX are immutable")


class CompiledPytrees(Pytrees):
    """A transformation of `oxigrad.optax` under ``jax.jit``."""

    def __init__(self, name: str, arguments: Mapping[str, Any], values: Values, **how: Any) -> None:
        super().__init__(name, arguments, values, **how)
        self._apply = importlib.import_module("jax").jit(self._tx.apply)


DOORS: dict[str, tuple[type[Door], str]] = {
    "update": (Update, "numpy"),
    "update-read-only": (UpdateReadOnly, "numpy"),
    "update-torch": (UpdateTensors, "torch"),
    "apply": (Apply, "numpy"),
    "minimize": (Minimize, "numpy"),
    "minimize-in-backward": (MinimizeInBackward, "numpy"),
    "workers": (Workers, "numpy"),
    "torch": (Tensors, "torch"),
    "torch-in-backward": (TensorsInBackward, "torch"),
    "optax": (Pytrees, "optax"),
    "optax-jit": (CompiledPytrees, "optax"),
}
