"""Ctrl-C, and errors of user objects: inspection of an object propagates whatever it raises."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import _core, optim, tree, xp
from oxigrad.ops import backends


class Stop(KeyboardInterrupt):
    """Stands for an interrupt that comes while a method runs."""


raised: list[str] = []


def _stop(name: str) -> Any:
    raised.append(name)
    raise Stop(name)


def _method(name: str) -> Callable[..., Any]:
    return lambda *args, **named: _stop(name)


def _raising(name: str, **others: Any) -> Any:
    """An object of which one method, or attribute, raises."""
    found = _method(name) if name.startswith("__") and name not in ATTRIBUTES else property(_method(name))
    return type("Raising", (), {**others, name: found})()


ATTRIBUTES = ("__class__", "__array_interface__", "__array_struct__", "__dict__")
ARRAY = {"shape": (2,), "dtype": np.dtype("float64"), "ndim": 1}
ON_HOST = {"__dlpack_device__": lambda self: (1, 0)}
KINDS: dict[str, Callable[[], Any]] = {
    **{
        name: lambda name=name: _raising(name)
        for name in (
            "__class__ __array_interface__ __array_struct__ __array__ __dlpack_device__ __eq__ __index__ __float__ __len__"
            " __iter__ __repr__ __hash__ dtype shape ndim __length_hint__ __buffer__ __getattr__ __bool__ __array_namespace__"
        ).split()
    },
    "an array's __dlpack__": lambda: _raising("__dlpack__", **ARRAY, **ON_HOST),
    "an array's __dlpack_device__": lambda: _raising("__dlpack_device__", **ARRAY),
    "an array's __class__": lambda: _raising("__class__", **ARRAY, **ON_HOST),
    "an array's requires_grad": lambda: _raising("requires_grad", **ARRAY, **ON_HOST),
    "a dtype's kind": lambda: type("Array", (), {"shape": (2,), "dtype": _raising("kind")})(),
    "a dtype's __str__": lambda: type("Array", (), {"shape": (2,), "dtype": _raising("__str__")})(),
    "a class's __instancecheck__": lambda: type("Meta", (type,), {"__instancecheck__": _method("__instancecheck__")})(
        "C", (), {}
    )(),
    "a class's __getattribute__": lambda: type("Meta", (type,), {"__getattribute__": _method("__getattribute__")})(
        "C", (), {}
    )(),
    "a class's __eq__": lambda: type("Meta", (type,), {"__eq__": _method("__eq__"), "__hash__": type.__hash__})(
        "C", (), {}
    )(),
}

W = np.array([1.0, 2.0])
LEAVES, STRUCTURE = _core.tree_flatten({"w": W})


def _on_tape(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def called(x: Any) -> Any:
        return ox.grad(lambda w: xp.sum(f((w, x))))(W)

    return called


CALLS: dict[str, Callable[[Any], Any]] = {
    "exports_memory": _core.exports_memory,
    "is_floating": _core.is_floating,
    "is_writable": _core.is_writable,
    "is_inexact": _core.is_inexact,
    "copy from": lambda x: _core.copy(x, np.zeros(2)),
    "copy to": lambda x: _core.copy(np.zeros(2), x),
    "compute": lambda x: _core.compute("exp", [x]),
    "record": lambda x: _core.record("add", [x, 1.0]),
    "record named": lambda x: _core.record("sum", [W], {"axis": x, "keepdims": x}),
    "plain": _core.plain,
    "flatten": tree.flatten,
    "flatten below": lambda x: tree.flatten({"a": [x]}),
    "flatten key": lambda x: tree.flatten({x: 1.0}),
    "unflatten": lambda x: tree.unflatten(STRUCTURE, x),
    "leaves like": lambda x: _core.tree_leaves(x, STRUCTURE),
    "leaves like, or none": lambda x: _core.tree_leaves_like(x, STRUCTURE),
    "leaves like below": lambda x: _core.tree_leaves({"w": x}, STRUCTURE),
    "leaves like key": lambda x: _core.tree_leaves({x: 1.0}, STRUCTURE),
    "map": lambda x: tree.map(lambda leaf: leaf, x),
    "parameters": lambda x: tree.parameters({"a": x}),
    "key_paths": lambda x: list(tree.key_paths({"a": x}, to=np.dtype("float64"))),
    "key_paths to": lambda x: list(tree.key_paths({"a": W, "b": 1.0}, to=x)),
    "Key.Item": lambda x: tree.Key.Item(x),
    "Key.Index": lambda x: tree.Key.Index(x),
    "KeyPath": lambda x: tree.KeyPath(x),
    "KeyPath of": lambda x: tree.KeyPath([x]),
    "KeyPath of tree": lambda x: STRUCTURE.path(0)(x),
    "KeyPath / x": lambda x: STRUCTURE.path(0) / x,
    "structure == x": lambda x: x == STRUCTURE,
    "a parameter": lambda x: optim.Adam().update({"w": x, "v": W.copy()}, {"w": x, "v": W}),
    "a model": lambda x: optim.Adam().update(x, x),
    "a gradient": lambda x: optim.Adam().update({"w": W.copy()}, {"w": x}),
    "a gradient of a rule on arrays": lambda x: optim.Adafactor().update({"w": W.copy()}, {"w": x}),
    "a leaf that is no parameter": lambda x: optim.Adam().update({"w": W.copy(), "x": x}, {"w": W, "x": x}),
    "watch": lambda x: ox.Tape().watch(x),
    "grad": lambda x: ox.grad(lambda w: xp.sum(w * w))(x),
    "gradient of": lambda x: ox.Tape().gradient(x, [x]),
    "sum's axis": _on_tape(lambda pair: xp.sum(pair[0], axis=pair[1])),
    "sum's keepdims": _on_tape(lambda pair: xp.sum(pair[0], keepdims=pair[1])),
    "w + x": _on_tape(lambda pair: pair[0] + pair[1]),
    "x * w": _on_tape(lambda pair: pair[1] * pair[0]),
    "w[x]": _on_tape(lambda pair: pair[0][pair[1]]),
    "w[0, x]": _on_tape(lambda pair: pair[0][0, pair[1]]),
    "w == x": _on_tape(lambda pair: pair[0] == pair[1]),
    "np.add": _on_tape(lambda pair: np.add(pair[0], pair[1])),
    "xp.maximum": _on_tape(lambda pair: xp.maximum(pair[0], pair[1])),
    "a rule's constant": lambda x: optim.define(lambda xp, p, g, *, rate=1.0: p - g * x)().update(
        {"w": W.copy()}, {"w": W}
    ),
    # Called on arrays, as to find out whether a rule is elementwise, it is NumPy that drops the errors of a result.
    "a rule's result": lambda x: optim.define(lambda xp, p, g, *, rate=1.0: x, elementwise=True)().update(
        {"w": W.copy()}, {"w": W}
    ),
    "is_array": backends.is_array,
    "on_host": backends.on_host,
    "to_host": backends.to_host,
    "namespace": backends.namespace,
    "a schedule's value": lambda x: optim.SGD(lambda step: x).update({"w": W.copy()}, {"w": W}),
    "a printed tape": lambda x: str(_tape_with(x)),
}


# NumPy's part in a call. What it drops itself is not asked of us.
NUMPYS: dict[str, Callable[[Any], Any]] = {
    "key_paths to": lambda x: W.dtype == x,
    "w + x": lambda x: W + x,
    "x * w": lambda x: x * W,
    "w[x]": lambda x: W[x],
    "w[0, x]": lambda x: W[0, x],
    "w == x": lambda x: x == W,
    "np.add": lambda x: np.add(W, x),
    "xp.maximum": lambda x: np.maximum(W, x),
}


def _tape_with(x: Any) -> ox.Tape:
    tape = ox.Tape()
    with tape:
        w = tape.watch(W)
        _core.record("astype", [w], {"dtype": W.dtype, "copy": True, "more": x})
    return tape


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Exceptions that were unraisable."""
    found: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: found.append((what.exc_value, what.object)))
    return found


@pytest.mark.parametrize("call", CALLS)
def test_an_error_of_an_object_is_not_dropped(call: str, unraisable: list[Any]) -> None:
    by_numpy = NUMPYS.get(call, lambda x: _stop("not asked"))
    lost = [
        f"{kind}: {what}"
        for kind, make in KINDS.items()
        if (what := _lost(CALLS[call], make)) and not _lost(by_numpy, make)
    ]
    assert not lost, "\n".join(lost)
    assert not unraisable


def _lost(call: Callable[[Any], Any], make: Callable[[], Any]) -> str:
    """The exception that replaced the one that the object raised; None if none did."""
    raised.clear()
    try:
        call(make())
    except Stop:
        return ""
    except Exception as error:  # noqa: BLE001  any of them is wrong
        return f"{raised} became {type(error).__name__}" if raised else ""
    return f"{raised} was dropped" if raised else ""


def test_the_functions_of_a_registered_class() -> None:
    class Registered:
        pass

    flatten, unflatten = [lambda x: ([W.copy()], None)], [lambda rest, children: Registered()]
    tree.register(
        Registered, flatten=lambda x: flatten[0](x), unflatten=lambda rest, children: unflatten[0](rest, children)
    )
    for broken in (flatten, unflatten):
        kept, broken[0] = broken[0], _method("function")
        with pytest.raises(Stop):
            tree.map(lambda leaf: leaf, Registered())
        broken[0] = kept


def test_classes_are_looked_at_again_after_an_interrupt() -> None:
    """A class whose first look was interrupted is not taken for something else from then on."""
    import dataclasses

    @dataclasses.dataclass
    class Model:
        w: Any

    fields, dataclasses.fields = dataclasses.fields, _method("fields")
    try:
        with pytest.raises(Stop):
            tree.flatten(Model(W))
    finally:
        dataclasses.fields = fields
    (leaf,) = tree.leaves(Model(W))
    assert leaf is W


def test_refusals_are_those_of_exporters() -> None:
    for error in (BufferError, TypeError, ValueError, AttributeError, RuntimeError, NotImplementedError):
        refusing = type(
            "Refusing", (), {**ON_HOST, "__dlpack__": lambda self, error=error, **named: (_ for _ in ()).throw(error)}
        )()
        assert not _core.exports_memory(refusing)
    for error in (MemoryError, RecursionError, OSError, ZeroDivisionError, SystemExit):
        failing = type(
            "Failing", (), {**ON_HOST, "__dlpack__": lambda self, error=error, **named: (_ for _ in ()).throw(error)}
        )()
        with pytest.raises(error):
            _core.exports_memory(failing)


# --- signals -------------------------------------------------------------------------------------------------------------

CHILD = """
import os, random, signal, sys
import numpy as np

def first_steps():
    import oxigrad as ox
    from oxigrad import optim, xp
    import dataclasses
    @dataclasses.dataclass
    class Model:
        w: object
        b: object
    model = Model(np.ones((3, 4), np.float32), {"b": np.ones(3)})
    value, grads = ox.value_and_grad(lambda m: xp.sum(m.w ** 2) + xp.sum(xp.tanh(m.b["b"])))(model)
    opt = optim.chain(optim.ClipByGlobalNorm(1.0), optim.Adam(0.1))
    opt.update(model, grads)
    optim.Muon(0.1).update({"w": np.ones((3, 4))}, {"w": np.ones((3, 4))})
    class Tree(list): pass
    ox.tree.map(lambda x: x, Tree([1.0]))

def run(seconds):
    state = {"hit": False, "dropped": ""}
    def handler(number, frame):
        state["hit"] = True
        raise KeyboardInterrupt
    def unraisable(what):
        state["dropped"] = repr(what.object)
    signal.signal(signal.SIGALRM, handler)
    sys.unraisablehook = unraisable
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        first_steps()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return "interrupted"
    except BaseException as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        return f"turned into {error!r} {error.__cause__!r} {error.__context__!r}" if state["hit"] else f"failed: {error!r}"
    if not state["hit"]:
        return "finished"
    return "dropped by " + state["dropped"] if state["dropped"] else "lost"

def child(seconds):
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(write, run(seconds).encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = pipe.read().decode()
    os.waitpid(pid, 0)
    return found

import time
start = time.perf_counter()
assert child(1000.0) == "finished"
whole = time.perf_counter() - start
generator = random.Random(int(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    print(child(max(1e-4, generator.random() * whole)))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_interrupts_in_the_first_steps_of_a_process() -> None:
    """Any interrupt of a process that imports the package and takes its first steps ends in a KeyboardInterrupt."""
    count = int(os.environ.get("OXIGRAD_INTERRUPTS", "40"))
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, str(random.randrange(2**30)), str(count)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = ran.stdout.splitlines()
    assert len(found) == count
    wrong = [line for line in found if line not in ("interrupted", "finished") and not _is_pythons(line)]
    assert not wrong, textwrap.indent("\n".join(wrong), "  ")
    assert found.count("interrupted") > count // 4


def _is_pythons(line: str) -> bool:
    """Whether Python itself dropped or replaced the interrupt.

    It drops one that comes in a callback of a weak reference or of the collector. Before 3.12 it replaces one that comes in
    ``__set_name__``, while a class is made, by a `RuntimeError`.
    """
    if line.startswith("turned into RuntimeError(") and "Error calling __set_name__" in line:
        return sys.version_info < (3, 12) and line.endswith("KeyboardInterrupt() KeyboardInterrupt()")
    return line.startswith("dropped by") and ("_weakref" in line or "importlib" in line or "<function" in line)
