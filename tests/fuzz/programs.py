"""Random programs over arrays: statements of NumPy, and their equivalents in PyTorch without assignment.

A program is run three times: by NumPy on arrays, by Oxigrad on variables, and here, where each memory is one PyTorch
tensor and an array is a set of places in it. What moves elements (indexing, joining, `numpy.put`) is learned from NumPy,
which moves the numbers of the places in place of what is there; what computes is PyTorch's.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

X = np.random.default_rng(0).uniform(-1.5, 1.5, (3, 4))
W = np.random.default_rng(1).uniform(-1.5, 1.5, 4)
S = 0.8

# --- statements --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Statement:
    """One statement of a program, and what kind of thing it does to the array that it makes or changes.

    compute
        ``target`` is a new array, ``function`` of the operands.
    move
        ``target`` is a new array, or a view, of elements of the operands.
    write
        Elements of the operands are moved into ``target``.
    update
        The elements of ``target`` at ``key`` become ``function`` of themselves and the operands.
    at
        As update, one element after the other.
    loop
        Each item of ``target`` but the first becomes ``function`` of itself and the one before.
    alias
        ``target`` is another name of the operand.
    plain
        ``target`` is a mask, or indices.
    """

    kind: str
    text: str
    target: str
    operands: tuple[str, ...] = ()
    function: Callable[..., Any] | None = None
    key: str = "..."

    @property
    def changes(self) -> bool:
        """Whether an array is changed in place."""
        return self.kind in ("write", "update", "at", "loop")


@dataclass(frozen=True)
class Program:
    """Statements, and the arrays of which a number is made at the end."""

    statements: tuple[Statement, ...]
    results: tuple[str, ...]

    def text(self) -> str:
        """The body of a function of two arrays ``x`` and ``w`` and a number ``s``."""
        total = " + ".join(f"np.sum(np.sin({name}) * {0.5 + 0.25 * at})" for at, name in enumerate(self.results))
        return "\n".join([*(statement.text for statement in self.statements), f"total = {total}"])

    def snippet(self, wrong: str) -> str:
        """The program as a script that can be run, with what is wrong with it."""
        body = "\n".join("    " + line for line in self.text().splitlines())
        return f"""
import numpy as np
import oxigrad as ox

X = np.random.default_rng(0).uniform(-1.5, 1.5, (3, 4))
W = np.random.default_rng(1).uniform(-1.5, 1.5, 4)

def f(x, w, s):
{body}
    return total

print(f(X.copy(), W.copy(), 0.8))
print(ox.value_and_grad(f, argnums=(0, 1, 2))(X, W, 0.8))
# {wrong}
"""

    def run(self, x: Any, w: Any, s: Any) -> Any:
        """The number, of NumPy's arrays or of variables."""
        names = {"np": np, "x": x, "w": w, "s": s}
        exec(compile(self.text(), "<program>", "exec"), names)  # noqa: S102
        return names["total"]

    def simulated(self, x: torch.Tensor, w: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        """The number, computed by PyTorch."""
        memory = Memory(x, w, s)
        for statement in self.statements:
            memory.execute(statement)
        terms = [torch.sum(torch.sin(memory.read(name)) * (0.5 + 0.25 * at)) for at, name in enumerate(self.results)]
        return torch.stack(terms).sum()

    def without(self, at: int) -> Program:
        """The program with a statement less, or with a result less where the number is negative."""
        if at < 0:
            return Program(self.statements, tuple(name for name in self.results if name != self.results[at]))
        return Program(self.statements[:at] + self.statements[at + 1 :], self.results)


class Memory:
    """Tensors of one dimension; arrays as places in them; and NumPy's arrays, which do the same."""

    def __init__(self, x: torch.Tensor, w: torch.Tensor, s: torch.Tensor) -> None:
        self.names: dict[str, Any] = {"np": np, "x": X.copy(), "w": W.copy(), "s": S}
        self.tensors: list[torch.Tensor] = []
        self.arrays: dict[str, tuple[int, np.ndarray]] = {}
        self._add("x", x)
        self._add("w", w)
        self._add("s", s)

    def read(self, name: str) -> torch.Tensor:
        """The elements of an array."""
        which, places = self.arrays[name]
        return self._read(which, places)

    def execute(self, statement: Statement) -> None:
        """Does what a statement does."""
        operands = [self.read(name) for name in statement.operands]
        if statement.kind == "move":  # whether it is a view is for NumPy's arrays to say
            exec(statement.text, self.names)  # noqa: S102
            self._move(statement, operands)
        else:
            getattr(self, f"_{statement.kind}")(statement, operands)
            exec(statement.text, self.names)  # noqa: S102

    def _add(self, name: str, value: torch.Tensor) -> None:
        self.tensors.append(value.reshape(-1))
        self.arrays[name] = (len(self.tensors) - 1, np.arange(value.numel()).reshape(tuple(value.shape)))

    def _read(self, which: int, places: Any) -> torch.Tensor:
        return self.tensors[which][torch.as_tensor(np.array(places))]

    def _put(self, which: int, places: Any, value: torch.Tensor) -> None:
        keys = (torch.as_tensor(np.array(places).reshape(-1)),)
        values = value.expand(np.shape(places)).reshape(-1)
        self.tensors[which] = self.tensors[which].index_put(keys, values)

    def _of(self, expression: str, **names: Any) -> Any:
        return eval(expression, {**self.names, **names})  # noqa: S307

    def _plain(self, statement: Statement, operands: list[torch.Tensor]) -> None:
        """Nothing of it is here."""

    def _alias(self, statement: Statement, operands: list[torch.Tensor]) -> None:
        self.arrays[statement.target] = self.arrays[statement.operands[0]]

    def _compute(self, statement: Statement, operands: list[torch.Tensor]) -> None:
        self._add(statement.target, statement.function(*operands))

    def _move(self, statement: Statement, operands: list[torch.Tensor]) -> None:
        result, expression = self.names[statement.target], statement.text.partition(" = ")[2]
        for name in statement.operands:
            if isinstance(result, np.ndarray) and np.shares_memory(result, self.names[name]):
                which, places = self.arrays[name]
                self.arrays[statement.target] = which, self._of(expression, **{name: places})
                return
        numbers, elements = numbered(dict(zip(statement.operands, operands, strict=True)))
        self._add(statement.target, elements[torch.as_tensor(np.array(self._of(expression, **numbers)))])

    def _write(self, statement: Statement, operands: list[torch.Tensor]) -> None:
        values = dict(zip(statement.operands, operands, strict=True))
        numbers, elements = numbered({**values, statement.target: self.read(statement.target)})
        exec(statement.text, {**self.names, **numbers})  # noqa: S102
        which, places = self.arrays[statement.target]
        self._put(which, places, elements[torch.as_tensor(numbers[statement.target])])

    def _update(self, statement: Statement, operands: list[torch.Tensor]) -> None:
        which, chosen = self._chosen(statement)
        self._put(which, chosen, statement.function(self._read(which, chosen), *operands))

    def _chosen(self, statement: Statement) -> tuple[int, np.ndarray]:
        which, places = self.arrays[statement.target]
        return which, np.asarray(self._of(f"_[{statement.key}]", _=places))

    def _at(self, statement: Statement, operands: list[torch.Tensor]) -> None:
        which, chosen = self._chosen(statement)
        values = [torch.broadcast_to(value, chosen.shape).reshape(-1) for value in operands]
        for turn, place in enumerate(chosen.reshape(-1)):
            new = statement.function(self._read(which, place), *(value[turn] for value in values))
            self._put(which, [place], new)

    def _loop(self, statement: Statement, operands: list[torch.Tensor]) -> None:
        which, places = self.arrays[statement.target]
        for i in range(1, len(places)):
            self._put(
                which, places[i], statement.function(self._read(which, places[i]), self._read(which, places[i - 1]))
            )


def numbered(values: dict[str, torch.Tensor]) -> tuple[dict[str, Any], torch.Tensor]:
    """Arrays of numbers of elements, and the elements, the first of which is zero."""
    start, numbers = 1, {}
    for name, value in values.items():
        numbers[name] = np.arange(start, start + value.numel()).reshape(tuple(value.shape))
        start += value.numel()
    zero = torch.zeros(1, dtype=torch.float64)
    return numbers, torch.cat([zero, *(value.reshape(-1) for value in values.values())])


# --- what programs are made of -----------------------------------------------------------------------------------------

Compute = Callable[..., Any]


def _std(a: torch.Tensor) -> torch.Tensor:
    return torch.sqrt(torch.var(a, dim=0, correction=0))


UNARY: list[tuple[str, Compute]] = [
    ("np.tanh({a})", torch.tanh),
    ("np.sin({a})", torch.sin),
    ("np.exp(-np.square({a}))", lambda a: torch.exp(-a * a)),
    ("np.sqrt(1.0 + {a} * {a})", lambda a: torch.sqrt(1.0 + a * a)),
    ("np.log1p(np.abs({a}))", lambda a: torch.log1p(torch.abs(a))),
    ("np.arctan({a}) * 2.0", lambda a: torch.arctan(a) * 2.0),
    ("-{a}", lambda a: -a),
    ("{a} ** 3 * 0.1", lambda a: a**3 * 0.1),
    ("1.0 / (2.0 + np.sin({a}))", lambda a: 1.0 / (2.0 + torch.sin(a))),
    ("np.clip({a}, -0.913, 0.817)", lambda a: torch.clamp(a, -0.913, 0.817)),
    ("np.where({a} > 0.1, {a}, 0.3 * {a})", lambda a: torch.where(a > 0.1, a, 0.3 * a)),
    ("np.copy({a})", torch.clone),
    ("np.sum({a})", torch.sum),
    ("np.sum({a}, axis=0)", lambda a: torch.sum(a, dim=0)),
    ("np.sum({a}, axis=-1, keepdims=True)", lambda a: torch.sum(a, dim=-1, keepdim=True)),
    ("np.mean({a}, axis=-1)", lambda a: torch.mean(a, dim=-1)),
    ("np.max({a}, axis=0)", lambda a: torch.amax(a, dim=0)),
    ("np.min({a}, axis=-1, keepdims=True)", lambda a: torch.amin(a, dim=-1, keepdim=True)),
    ("np.prod({a}, axis=0)", lambda a: torch.prod(a, dim=0)),
    ("np.var({a}, axis=0)", lambda a: torch.var(a, dim=0, correction=0)),
    ("np.std({a}, axis=0)", _std),
    ("np.cumsum({a}, axis=0)", lambda a: torch.cumsum(torch.atleast_1d(a), dim=0)),
    ("np.cumsum({a})", lambda a: torch.cumsum(a.reshape(-1), dim=0)),
    ("np.cumprod({a}, axis=-1)", lambda a: torch.cumprod(torch.atleast_1d(a), dim=-1)),
    ("np.sort({a}, axis=-1)", lambda a: torch.sort(a, dim=-1, stable=True).values),
    ("np.diff({a}, axis=-1)", lambda a: torch.diff(a, dim=-1)),
    ("np.add.reduce({a})", lambda a: torch.sum(a, dim=0)),
]
BINARY: list[tuple[str, Compute]] = [
    ("{a} + {b}", torch.add),
    ("{a} - 0.5 * {b}", lambda a, b: a - 0.5 * b),
    ("{a} * {b}", torch.mul),
    ("np.divide({a}, 1.5 + {b} * {b})", lambda a, b: a / (1.5 + b * b)),
    ("np.maximum({a}, {b})", torch.maximum),
    ("np.minimum({a}, {b})", torch.minimum),
    ("np.logaddexp({a}, {b})", torch.logaddexp),
    ("np.arctan2({a}, 1.5 + {b} * {b})", lambda a, b: torch.atan2(a, 1.5 + b * b)),
    ("np.power(1.2 + {a} * {a}, {b})", lambda a, b: torch.pow(1.2 + a * a, b)),
    ("np.where({a} > {b}, {a}, 0.5 * {b})", lambda a, b: torch.where(a > b, a, 0.5 * b)),
    ("{a} @ {b}", torch.matmul),
    ("{a}.T @ {b}", lambda a, b: a.T @ b),
    ("np.dot({a}, {b})", lambda a, b: torch.tensordot(a, b, dims=([-1], [max(b.ndim - 2, 0)]))),
    ("np.outer({a}, {b})", lambda a, b: torch.outer(a.reshape(-1), b.reshape(-1))),
    ("np.einsum('ij,j->i', {a}, {b})", lambda a, b: torch.einsum("ij,j->i", a, b)),
    ("np.einsum('ij,ij->j', {a}, {b})", lambda a, b: torch.einsum("ij,ij->j", a, b)),
]
# Keys that name no element twice; m is a mask of the array's shape.
KEYS = ["0", "-1", "1:", ":2", "::-1", "::2", "...", ":, 1", "..., -1", "[2, 0]", "np.array([1, 0])", "[0, 1], [1, 0]"]
KEYS += ["m", ":2, 1:", "1:1", "0, ::-2", "None, 1", "::2, [1, 0]"]
MOVES = [f"{{a}}[{key}]" for key in [*KEYS, "[0, 0, 1]", "None", ":, None", "[[0, 1], [1, 0]]"]]
MOVES += [
    "np.reshape({a}, (-1,))",
    "np.ravel({a})",
    "np.reshape({a}, (2, -1))",
    "{a}.T",
    "np.transpose({a})",
    "np.swapaxes({a}, 0, -1)",
    "np.expand_dims({a}, axis=0)",
    "np.squeeze({a})",
    "np.flip({a})",
    "np.flip({a}, axis=-1)",
    "np.moveaxis({a}, 0, -1)",
    "np.broadcast_to({a}, (2, *{a}.shape))",
    "np.split({a}, [1])[1]",
    "np.array_split({a}, 2)[0]",
    "np.roll({a}, 1, axis=0)",
    "np.roll({a}, -2)",
    "np.tile({a}, 2)",
    "np.repeat({a}, 2, axis=0)",
    "np.pad({a}, 1)",
    "np.pad({a}, 1, mode='reflect')",
    "np.take({a}, [1, 0, 1], axis=0)",
    "np.diagonal({a})",
    "np.tril({a})",
    "np.triu({a}, k=1)",
    "np.rot90({a})",
    "np.atleast_2d({a})",
]
JOINS = [
    "np.concatenate([{a}, {b}])",
    "np.concatenate([{a}, {b}], axis=-1)",
    "np.concatenate([{a}, {b}], axis=None)",
    "np.stack([{a}, {b}])",
    "np.stack([{a}, {b}], axis=-1)",
    "np.vstack([{a}, {b}])",
    "np.hstack([{a}, {b}])",
    "np.column_stack([{a}, {b}])",
    "np.where(m, {a}, {b})",
]
WRITES = [f"{{a}}[{key}] = {{b}}" for key in KEYS]
WRITES += [
    "np.put({a}, [0, 3, 1], {b})",
    "np.put({a}, [-1, 2, 2], {b})",
    "np.put({a}, [0, 99, 7], {b}, mode='wrap')",
    "np.put({a}, [0, 99, -7], {b}, mode='clip')",
    "np.place({a}, m, {b})",
    "np.putmask({a}, m, {b})",
    "np.copyto({a}, {b})",
    "np.copyto({a}, {b}, where=m)",
    "np.fill_diagonal({a}, {b})",
    "np.fill_diagonal({a}, {b}, wrap=True)",
    "np.put_along_axis({a}, n, {b}, axis=-1)",
]
OPERATORS: list[tuple[str, Compute]] = [
    ("+=", torch.add),
    ("-=", torch.sub),
    ("*=", torch.mul),
    ("/=", torch.div),
]
NUMBERS = ["0.7", "-1.3", "2.0"]
OUTS: list[tuple[str, Compute]] = [
    ("np.add({b}, {c}, out={a})", lambda a, b, c: b + c),
    ("np.multiply({a}, {b}, out={a})", lambda a, b, c: a * b),
    ("np.tanh({b}, out={a})", lambda a, b, c: torch.tanh(b)),
    ("np.sin({b}, {a})", lambda a, b, c: torch.sin(b)),
    ("np.cumsum({a}, axis=0, out={a})", lambda a, b, c: torch.cumsum(a, dim=0)),
    ("np.clip({a}, -0.913, 0.817, out={a})", lambda a, b, c: torch.clamp(a, -0.913, 0.817)),
    ("np.sum({b}, axis=0, out={a})", lambda a, b, c: torch.sum(b, dim=0)),
    ("np.matmul({b}, {c}, out={a})", lambda a, b, c: b @ c),
    ("np.stack([{b}, {c}], out={a})", lambda a, b, c: torch.stack([b, c])),
    ("np.nan_to_num({a}, copy=False)", lambda a, b, c: a),
]
MASKED: list[tuple[str, Compute]] = [
    ("np.multiply({a}, 0.5, out={a}, where=m)", lambda a: a * 0.5),
    ("np.exp({a}, out={a}, where=m)", torch.exp),
]
AT: list[tuple[str, Compute]] = [
    ("np.add.at({a}, {k}, {b})", torch.add),
    ("np.subtract.at({a}, {k}, {b})", torch.sub),
    ("np.multiply.at({a}, {k}, {b})", torch.mul),
    ("np.maximum.at({a}, {k}, {b})", torch.maximum),
]
LOOPS: list[tuple[str, Compute]] = [
    ("{a}[i] = {a}[i] * 0.5 + np.tanh({a}[i - 1])", lambda a, before: a * 0.5 + torch.tanh(before)),
    ("{a}[i] *= np.cos({a}[i - 1])", lambda a, before: a * torch.cos(before)),
]

# --- programs ----------------------------------------------------------------------------------------------------------


class Author:
    """Writes a program, statement by statement, running it on the way: what NumPy refuses is left out."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.memory = Memory(*(torch.tensor(value, dtype=torch.float64) for value in (X, W, S)))
        self.statements: list[Statement] = []
        self.names = ["x", "w"]
        self.changes: dict[int, int] = {}
        self.seen: dict[int, int] = {}

    def write(self) -> Program:
        """A program of up to fourteen statements."""
        for _ in range(self.random.randint(2, 14)):
            for _attempt in range(20):
                if self.attempt():
                    break
        read = [name for name in self.names if self.is_fresh(name)] or self.names
        results = dict.fromkeys([*self.random.sample(read, min(2, len(read))), read[-1]])
        return Program(tuple(self.statements), tuple(results))

    def is_fresh(self, name: str) -> bool:
        """Whether an array was not changed through another one: variables refuse to be read after that."""
        changes = self.changes.get(self.memory.arrays[name][0], 0)
        return self.seen.get(id(self.memory.names[name]), 0) == changes

    def pick(self) -> str:
        fresh = [name for name in self.names if self.is_fresh(name)]
        late = self.names[-4:] if self.random.random() < 0.5 else self.names
        chosen = [name for name in late if name in fresh] or fresh
        return self.random.choice(chosen if chosen and self.random.random() < 0.97 else self.names)

    def attempt(self) -> bool:
        """Adds a statement, with what prepares it, if it can be run."""
        new, m = f"a{len(self.statements)}", f"m{len(self.statements)}"
        a, b, c = self.pick(), self.pick(), self.pick()
        b = "s" if self.random.random() < 0.1 else b
        prepare: list[Statement] = []
        if self.random.random() < 0.2 and self.memory.arrays[a][1].ndim:
            prepare = [Statement("compute", f"b{new} = np.copy({a})", f"b{new}", (a,), torch.clone)]
            a = f"b{new}"
        statement = self.statement(new, a, b, c)
        fill = {" m": f" {m}", "[m]": f"[{m}]", "=m)": f"={m})", "(m,": f"({m},", " n,": f" n{m},"}
        text, key = statement.text, m if statement.key == "m" else statement.key
        for old, by in fill.items():
            text = text.replace(old + ",", by + ",") if old == " m" else text.replace(old, by)
        if text != statement.text and f"n{m}" in text:
            prepare.append(Statement("plain", f"n{m} = np.argsort({a}, axis=-1)[..., :1]", f"n{m}"))
        elif text != statement.text:
            prepare.append(Statement("plain", f"{m} = {a} > 0.1", m))
        return self.add((*prepare, replace(statement, text=text, key=key)))

    def statement(self, new: str, a: str, b: str, c: str) -> Statement:
        """A statement that makes an array, or changes ``a``."""
        pick, names = self.random.choice, {"a": a, "b": b, "c": c}
        kind = pick(
            "unary unary binary binary move move move join write write number out masked at whole part loop".split()
        )
        if kind == "unary":
            text, function = pick(UNARY)
            return Statement("compute", f"{new} = {text.format(**names)}", new, (a,), function)
        if kind == "binary":
            text, function = pick(BINARY)
            return Statement("compute", f"{new} = {text.format(**names)}", new, (a, b), function)
        if kind == "move":
            if self.random.random() < 0.1:
                return Statement("alias", f"{new} = {a}", new, (a,))
            return Statement("move", f"{new} = {pick(MOVES).format(**names)}", new, (a,))
        if kind == "join":
            return Statement("move", f"{new} = {pick(JOINS).format(**names)}", new, tuple(dict.fromkeys((a, b))))
        if kind == "write":
            return Statement("write", pick(WRITES).format(**names), a, (b,))
        if kind == "number":
            key, number = pick(KEYS), pick(NUMBERS)
            return Statement("update", f"{a}[{key}] = {number}", a, (), constant(float(number)), key)
        if kind == "out":
            text, function = pick(OUTS)
            return Statement("update", text.format(**names), a, (b, c), function)
        if kind == "masked":
            text, function = pick(MASKED)
            return Statement("update", text.format(**names), a, (), function, "m")
        if kind == "at":
            (text, function), key = pick(AT), pick(["[0, 0, 1]", "[1, 0]", "([0, 1, 0], [1, 1, 1])", "slice(1, None)"])
            return Statement("at", text.format(k=key, **names), a, (b,), function, key)
        if kind == "loop":
            text, function = pick(LOOPS)
            return Statement("loop", f"for i in range(1, len({a})):\n    {text.format(**names)}", a, (), function)
        (operator, function), key = pick(OPERATORS), "..." if kind == "whole" else pick(KEYS)
        place = a if kind == "whole" else f"{a}[{key}]"
        if operator == "/=":
            return Statement("update", f"{place} /= 1.5 + {b} * {b}", a, (b,), lambda a, b: a / (1.5 + b * b), key)
        return Statement("update", f"{place} {operator} {b}", a, (b,), function, key)

    def add(self, statements: tuple[Statement, ...]) -> bool:
        """Whether the statements can be run, and were added."""
        copies = {name: np.array(value) if name != "np" else np for name, value in self.memory.names.items()}
        for statement in statements:
            target = self.memory.names.get(statement.target)
            if statement.changes and statement.target in self.memory.names and not is_changeable(target):
                return False
            if self.reads_what_it_writes(statement):
                return False
            if ".T" in statement.text and np.ndim(copies[statement.operands[0]]) != 2:
                return False
            if "column_stack" in statement.text and not all(np.ndim(copies[name]) for name in statement.operands):
                return False
            try:
                exec(statement.text, copies)  # noqa: S102
            except (ValueError, IndexError, TypeError):
                return False
            if statement.kind != "plain" and not is_modest(copies[statement.target]):
                return False
        for statement in statements:
            try:
                self.memory.execute(statement)
            except (RuntimeError, IndexError):  # of PyTorch: it has no such product, say
                return False
            self.statements.append(statement)
            if statement.kind != "plain" and statement.target not in self.names:
                self.names.append(statement.target)
            self.count(statement)
        return True

    def reads_what_it_writes(self, statement: Statement) -> bool:
        """Whether elements are read from the memory that is written to, by a function that does not read all of them first."""
        called = statement.text.partition("(")[0]
        if called not in ("np.place", "np.putmask", "np.fill_diagonal", "np.put_along_axis") and statement.kind != "at":
            return False
        own = self.memory.arrays.get(statement.target, (None,))[0]
        return any(self.memory.arrays[name][0] == own for name in statement.operands if name in self.memory.arrays)

    def count(self, statement: Statement) -> None:
        if statement.kind in ("plain", "alias"):
            return
        which, _ = self.memory.arrays[statement.target]
        self.changes[which] = self.changes.get(which, 0) + statement.changes
        self.seen[id(self.memory.names[statement.target])] = self.changes[which]


def constant(number: float) -> Compute:
    return lambda a: torch.full_like(a, number)


def is_changeable(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.ndim > 0 and array.flags.writeable


def is_modest(array: Any) -> bool:
    return np.size(array) <= 60 and np.ndim(array) <= 4 and bool(np.all(np.abs(array) < 100.0))
