"""Symbols: arguments of a derivative rule that is traced into a program.

The core runs the program on NumPy arrays without Python.

`traced` calls the rule of a structured op with symbols. A `Symbol` is an array of which the rule may read the rank and
the dtype, in the way that an `Argument` has them; ops on it are appended to the program. A `Datum` is a number or an
attribute of the op: the size of a dimension, the position of the argument, a key. The rule may pass it on, add,
multiply and index with it, but not read it. One program therefore serves all shapes of these ranks. A rule that reads
more raises an error here, and the core calls it in Python.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._core import BatchLevel, EntryId, new_batch_level


class UntraceableError(Exception):
    """Raised when a rule reads a fact that differs between the calls that one program serves."""


# Errors of functions that receive a symbol but expect an array or a number.
_REFUSALS = (UntraceableError, AttributeError, IndexError, TypeError, ValueError)

# An op, its operands (the number of a value, a datum, or a constant), and its attributes.
Step = tuple[str, list[Any], dict[str, Any]]


class Program:
    """The steps that a rule takes, as data. Values are numbered: first the arguments of the rule, then the steps."""

    def __init__(self) -> None:
        self.level: int = new_batch_level()
        self.data: list[tuple[Any, ...]] = []
        self.steps: list[Step] = []
        self.read: set[int] = set()
        self.arguments: int = 0

    def argument(self, kind: str, *facts: Any) -> Any:
        """The next argument of the rule.

        It is an ``array`` with its rank and dtype, the ``shape`` of an array with its rank, a ``known`` value, or a
        ``datum``.
        """
        at, self.arguments = self.arguments, self.arguments + 1
        if kind == "array":
            return Argument(self, at, *facts)
        if kind == "shape":
            return self.extents(at, *facts)
        return facts[0] if kind == "known" else self.datum("argument", at)

    def extents(self, at: int, dimensions: int) -> tuple["Datum", ...]:
        """The shape of an argument."""
        return tuple(self.datum("extent", at, axis) for axis in range(dimensions))

    def datum(self, kind: str, *parts: Any) -> "Datum":
        """The datum that is computed from others, or from whole numbers."""
        self.data.append((kind, *parts))
        return Datum(self, len(self.data) - 1)

    def step(self, name: str, args: Any, named: dict[str, Any] | None) -> "Symbol":
        """The result of an op, or of ``fit``: see `oxigrad.autodiff.rules.cotangents.unbroadcast`."""
        self.steps.append((name, [self._operand(arg) for arg in args], named or {}))
        return Symbol(self, self.arguments + len(self.steps) - 1)

    def _operand(self, value: Any) -> Any:
        if isinstance(value, Symbol) and value.program is self:
            return value.number
        if isinstance(value, Datum):
            return value
        if isinstance(value, (int, float)) and not isinstance(value, np.generic):
            return float(value)
        raise UntraceableError(f"the rule computes with {type(value).__name__}")


def _refused(*_: Any) -> Any:
    raise UntraceableError("the rule reads what its program does not know")


class Datum(EntryId):
    """A number, or an attribute of the op, that the rule may pass on and compute with."""

    program: Program

    def __new__(cls, program: Program, number: int) -> "Datum":
        """The datum of this number of a program."""
        self = super().__new__(cls, number)
        self.program = program
        return self

    def __getitem__(self, at: Any) -> "Datum":
        return self.program.datum("item", self, at)

    def __add__(self, other: Any) -> "Datum":
        return self.program.datum("add", self, other)

    def __mul__(self, other: Any) -> Any:
        return self.program.datum("multiply", self, other) if isinstance(other, (int, Datum)) else NotImplemented

    __rmul__ = __mul__


class Symbol(BatchLevel):
    """An array that a rule computes; its rank is known if it equals an argument's."""

    __slots__ = ("dimensions", "number", "program")

    program: Program
    number: int
    dimensions: int | None

    def __new__(cls, program: Program, number: int, dimensions: int | None = None, *_: Any) -> Any:
        """The value of this number of a program."""
        self = super().__new__(cls, program.level)
        self.program, self.number, self.dimensions = program, number, dimensions
        return self

    def computed(self, name: str, args: Any, named: dict[str, Any] | None) -> "Symbol":
        """An op, of which this is the argument with the highest level."""
        return self.program.step(name, args, named)

    @property
    def shape(self) -> tuple[Datum, ...]:
        """The sizes, as data."""
        return self.program.extents(self.number, _refused() if self.dimensions is None else self.dimensions)

    @property
    def dtype(self) -> Any:
        """The dtype, known only for dtypes of arguments."""
        return _refused()

    __hash__: Any = None

    def _operator(self, name: str, *args: Any) -> "Symbol":
        """The result of an operator, which has the shape of this if the other operand is a number."""
        result = self.program.step(name, args, None)
        if not any(isinstance(arg, Symbol) and arg is not self for arg in args):
            result.dimensions = self.dimensions
        return result

    def __neg__(self) -> "Symbol":
        return self._operator("negative", self)


for _name in "array array_function array_ufunc bool float index int iter len".split():
    setattr(Datum, f"__{_name}__", _refused)
    setattr(Symbol, f"__{_name}__", _refused)
for _name in "eq ne hash".split():
    setattr(Datum, f"__{_name}__", _refused)
for _name, _op in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "eq": "equal"}.items():
    setattr(Symbol, f"__{_name}__", lambda self, other, op=_op: self._operator(op, self, other))
    setattr(Symbol, f"__r{_name}__", lambda self, other, op=_op: self._operator(op, other, self))


class Argument(Symbol):
    """An array argument of the rule: its rank and dtype are known."""

    __slots__ = ("_dtype",)

    def __new__(cls, program: Program, number: int, dimensions: int, dtype: Any) -> Any:
        """The argument of this number of a program."""
        self = super().__new__(cls, program, number, dimensions)
        self._dtype = dtype
        return self

    @property
    def dtype(self) -> Any:
        """The dtype, on which the program depends from now on."""
        self.program.read.add(self.number)
        return self._dtype

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return np


def quotient(a: Any, b: Any) -> Any:
    """``a / b`` of sizes; ``a`` where ``b`` is 0."""
    if isinstance(b, Datum):
        return b.program.datum("quotient", a, b)
    if isinstance(a, Datum):
        return a.program.datum("quotient", a, b)
    return a / (b or 1)


def traced(rule: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    """The program of a rule: data, steps, number of the result, and arguments whose dtypes it depends on.

    ``arguments`` are the arguments of `Program.argument`. None if the rule reads more than symbols have.
    """
    program = Program()
    try:
        result = rule(*[program.argument(*facts) for facts in arguments])
    except _REFUSALS:
        return None
    if not isinstance(result, Symbol):
        return None
    return program.data, program.steps, result.number, sorted(program.read)
