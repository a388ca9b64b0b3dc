"""The meaning of PTX instructions that compute a value of each lane from values of the same lane, as functions of NumPy arrays.

A table by opcode: the type of the result, the types of the operands, and the function. What the hardware computes is stated in
the manual "Parallel Thread Execution ISA"; an opcode that is not in the table is an error, and so is every approximate one.
"""

import functools
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np


class PtxError(Exception):
    """An instruction that is not known, or one that a GPU would not execute as intended."""


# The dtype of each type. Values of bfloat16 are their bits.
TYPES = {
    f"{kind}{bits}": np.dtype(f"{code}{bits // 8}") for kind, code in ("uu", "si", "bu") for bits in (8, 16, 32, 64)
}
TYPES |= {"f16": np.dtype("f2"), "f32": np.dtype("f4"), "f64": np.dtype("f8"), "bf16": np.dtype("u2")}
TYPES |= {"pred": np.dtype(bool), "f16x2": np.dtype("u4"), "bf16x2": np.dtype("u4")}


@dataclass(frozen=True)
class Operation:
    """A function of arrays: the types of its result and operands."""

    result: str
    operands: tuple[str, ...]
    function: Callable[..., Any]


_ROWS: list[tuple[re.Pattern[str], Callable[[re.Match[str]], Operation]]] = []


def _row(pattern: str) -> Callable[[Callable[[re.Match[str]], Operation]], Callable[[re.Match[str]], Operation]]:
    """Adds a row for the opcodes that match a pattern entirely."""

    def added(row: Callable[[re.Match[str]], Operation]) -> Callable[[re.Match[str]], Operation]:
        _ROWS.append((re.compile(pattern), row))
        return row

    return added


@functools.cache
def operation(opcode: str) -> Operation:
    """The meaning of an opcode with its modifiers, such as ``"add.rn.f32"``."""
    for pattern, row in _ROWS:
        if found := pattern.fullmatch(opcode):
            return row(found)
    raise PtxError(f"unknown opcode {opcode}")


# --- floating point ----------------------------------------------------------------------------------------------------

_NAN = {"f16": np.uint16(0x7FFF), "bf16": np.uint16(0x7FFF), "f32": np.uint32(0x7FFFFFFF)}


def canonical(kind: str, values: Any) -> Any:
    """Values with every NaN replaced by the only one that arithmetic on 32 and 16 bits gives."""
    values = np.asarray(values)
    if kind not in _NAN or (kind == "f32" and (total := np.dot(values, values)) == total):  # NaN if any is
        return values
    return np.where(values != values, _NAN[kind].view(values.dtype), values)


def _float_row(pattern: str, count: int, functions: dict[str, Callable[..., Any]]) -> None:
    """Adds the functions of a pattern whose first group names the function, and whose second is the type."""

    def row(found: re.Match[str]) -> Operation:
        kind, function = found[2], functions[found[1]]
        return Operation(kind, (kind,) * count, lambda *values: canonical(kind, function(*values)))

    _row(pattern)(row)


_float_row(
    r"(add|sub|mul|div)\.rn\.(f32|f64)", 2, {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
)
_float_row(r"(sqrt|rcp)\.rn\.(f32|f64)", 1, {"sqrt": np.sqrt, "rcp": lambda a: np.divide(a.dtype.type(1), a)})


@_row(r"fma\.rn\.(f32|f64)")
def _fma(found: re.Match[str]) -> Operation:
    kind, function = found[1], fma32 if found[1] == "f32" else fma64
    return Operation(kind, (kind,) * 3, lambda a, b, c: canonical(kind, function(a, b, c)))


def fma32(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` of float32, rounded once: the exact product and the sum rounded to odd in float64, then rounded to float32."""
    high, low = _two_sum(np.multiply(a, b, dtype=np.float64), np.asarray(c, np.float64))
    return _odd(high, low).astype(np.float32)


def fma64(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` of float64, rounded once (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).

    Numbers so large or small that a term overflows or underflows are computed as fractions.
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    product_high, product_low = _two_product(a, b)
    high, low = _two_sum(c, product_low)
    sum_high, sum_low = _two_sum(product_high, high)
    exact = sum_high + _odd(*_two_sum(low, sum_low))
    is_finite = np.isfinite(a) & np.isfinite(b)
    plain = np.where(is_finite & ~np.isfinite(c), c, a * b + c)  # the product may overflow
    trivial = (a == 0) | (b == 0) | ~is_finite | ~np.isfinite(c)
    usual = _between(product_high, -900, 900) & ((c == 0) | _between(c, -900, 900))
    usual &= (np.abs(a) < 2.0**990) & (np.abs(b) < 2.0**990)  # so that they can be split
    result = np.where(trivial, plain, exact)
    for at in np.flatnonzero(~(trivial | usual)):
        result.flat[at] = _fraction_fma(a.flat[at], b.flat[at], c.flat[at])
    return result


def _between(values: Any, low: int, high: int) -> Any:
    return (np.abs(values) > 2.0**low) & (np.abs(values) < 2.0**high)


def _fraction_fma(a: Any, b: Any, c: Any) -> float:
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    try:
        return float(exact)
    except OverflowError:
        return np.inf if exact > 0 else -np.inf


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum and its error (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded product and its error (Dekker, Veltkamp)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _split(a: Any) -> tuple[Any, Any]:
    scaled = 134217729.0 * a  # 2 ** 27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def _odd(rounded: Any, error: Any) -> Any:
    """A rounded float64 and its error as one number, rounded to odd: the last bit says whether anything was lost."""
    is_even = (np.asarray(rounded).view(np.uint64) & np.uint64(1)) == 0
    inexact = is_even & np.isfinite(rounded) & np.isfinite(error) & (error != 0)
    return np.where(inexact, np.nextafter(rounded, np.copysign(np.inf, error)), rounded)


@_row(r"(abs|neg)\.(f32|f64)")
def _sign(found: re.Match[str]) -> Operation:
    kind = found[2]
    bits = TYPES[kind.replace("f", "u")].type
    sign = bits(1) << bits(8 * bits().itemsize - 1)
    function = (lambda a: a & ~sign) if found[1] == "abs" else (lambda a: a ^ sign)
    return Operation(f"b{kind[1:]}", (f"b{kind[1:]}",), function)


@_row(r"copysign\.f(32|64)")
def _copysign(found: re.Match[str]) -> Operation:
    kind = f"f{found[1]}"
    return Operation(kind, (kind, kind), lambda sign, value: np.copysign(value, sign))


@_row(r"(min|max)(\.NaN)?\.(f32|f64)")
def _float_extremum(found: re.Match[str]) -> Operation:
    smaller, nan, kind = found[1] == "min", found[2], found[3]
    bits = TYPES[kind.replace("f", "u")]

    def function(a: Any, b: Any) -> Any:
        a, b = np.broadcast_arrays(a, b)
        equal = a.view(bits) | b.view(bits) if smaller else a.view(bits) & b.view(bits)  # -0 is below +0
        chosen = np.where(a == b, equal.view(a.dtype), np.where((a < b) == smaller, a, b))
        chosen = np.where(a != a, a if nan else b, np.where(b != b, b if nan else a, chosen))
        return canonical(kind, chosen)

    return Operation(kind, (kind, kind), function)


@_row(r"testp\.(finite|infinite|number|notanumber|normal|subnormal)\.(f32|f64)")
def _testp(found: re.Match[str]) -> Operation:
    smallest = np.finfo(TYPES[found[2]]).smallest_normal
    functions = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= smallest),
        "subnormal": lambda a: (np.abs(a) < smallest) & (a != 0),
    }
    return Operation("pred", (found[2],), functions[found[1]])


# --- comparison and choice ---------------------------------------------------------------------------------------------

_COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_BOOLEANS = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _comparison(name: str, kind: str) -> Callable[[Any, Any], Any]:
    if kind[0] == "f":
        if name in {"num", "nan"}:
            return lambda a, b: ((a == a) & (b == b)) == (name == "num")
        function = _COMPARISONS[name[:2]]
        if name.endswith("u"):  # true where a number is NaN
            return lambda a, b: function(a, b) | (a != a) | (b != b)
        return lambda a, b: function(a, b) & (a == a) & (b == b)
    if (name in _UNSIGNED and kind[0] != "u") or name not in _COMPARISONS | _UNSIGNED:
        raise PtxError(f"unknown comparison {name} of {kind}")
    return _COMPARISONS[_UNSIGNED.get(name, name)]


@_row(r"setp\.(\w+?)(?:\.(and|or|xor))?\.([bsuf](?:16|32|64))")
def _setp(found: re.Match[str]) -> Operation:
    compare, kind = _comparison(found[1], found[3]), found[3]
    if found[2] is None:
        return Operation("pred", (kind, kind), compare)
    combine = _BOOLEANS[found[2]]
    return Operation("pred", (kind, kind, "pred"), lambda a, b, c: combine(compare(a, b), c))


@_row(r"selp\.([bsuf](?:16|32|64))")
def _selp(found: re.Match[str]) -> Operation:
    kind = "b" + found[1][1:]
    return Operation(kind, (kind, kind, "pred"), lambda a, b, chosen: np.where(chosen, a, b))


# --- integers ----------------------------------------------------------------------------------------------------------


def _wide(kind: str) -> str:
    return f"{kind[0]}{2 * int(kind[1:])}"


def _multiply_high(kind: str) -> Callable[[Any, Any], Any]:
    if kind in {"u64", "s64"}:
        return functools.partial(_multiply_high64, is_signed=kind == "s64")
    wide, bits = TYPES[_wide(kind)], int(kind[1:])
    return lambda a, b: (np.multiply(a, b, dtype=wide) >> wide.type(bits)).astype(TYPES[kind])


def _multiply_high64(a: Any, b: Any, is_signed: bool) -> Any:
    """The upper 64 bits of the product, from products of 32 bits."""
    dtype = np.int64 if is_signed else np.uint64
    a, b = np.broadcast_arrays(a, b)
    u, v = a.view(np.uint64), b.view(np.uint64)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    middle = (u & low) * (v >> half) + (((u & low) * (v & low)) >> half)
    other = (u >> half) * (v & low) + (middle & low)
    result = (u >> half) * (v >> half) + (middle >> half) + (other >> half)
    if is_signed:
        result = result - np.where(a < 0, v, 0).astype(np.uint64) - np.where(b < 0, u, 0).astype(np.uint64)
    return result.view(dtype)


_INTEGERS = r"([us](?:16|32|64))"


@_row(rf"(add|sub|min|max)\.{_INTEGERS}")
def _integer(found: re.Match[str]) -> Operation:
    functions = {"add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum}
    return Operation(found[2], (found[2],) * 2, functions[found[1]])


@_row(rf"(mul|mad)\.(lo|hi|wide)\.{_INTEGERS}")
def _multiply(found: re.Match[str]) -> Operation:
    name, part, kind = found.groups()
    result = _wide(kind) if part == "wide" else kind
    dtype = TYPES.get(result)
    if dtype is None:
        raise PtxError(f"unknown opcode {found[0]}")
    product = _multiply_high(kind) if part == "hi" else functools.partial(np.multiply, dtype=dtype)
    if name == "mul":
        return Operation(result, (kind, kind), product)
    return Operation(result, (kind, kind, result), lambda a, b, c: product(a, b) + c)


@_row(rf"(div|rem)\.{_INTEGERS}")
def _divide(found: re.Match[str]) -> Operation:
    name, kind = found.groups()

    def function(a: Any, b: Any) -> Any:
        if np.any(b == 0):
            raise PtxError("division of an integer by 0")
        rest = np.fmod(a, b)
        return rest if name == "rem" else (a - rest) // b

    return Operation(kind, (kind, kind), function)


@_row(r"(neg|abs)\.(s(?:16|32|64))")
def _integer_sign(found: re.Match[str]) -> Operation:
    return Operation(found[2], (found[2],), np.negative if found[1] == "neg" else np.abs)


@_row(r"(and|or|xor|not)\.(pred|b(?:16|32|64))")
def _bits(found: re.Match[str]) -> Operation:
    name, kind = found.groups()
    if name == "not":
        return Operation(kind, (kind,), np.invert)
    return Operation(kind, (kind, kind), {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[name])


@_row(r"(shl|shr)\.([bsu](?:16|32|64))")
def _shift(found: re.Match[str]) -> Operation:
    """Amounts beyond the width are clamped to it: what remains are zeros, or signs."""
    name, kind = found.groups()
    bits = int(kind[1:])

    def function(a: Any, amount: Any) -> Any:
        a = np.asarray(a)
        last = np.minimum(amount, bits - 1).astype(a.dtype)
        shifted = a << last if name == "shl" else a >> last
        filled = a >> a.dtype.type(bits - 1) if kind[0] == "s" and name == "shr" else a.dtype.type(0)
        return np.where(amount >= bits, filled, shifted)

    return Operation(kind, (kind, "u32"), function)


@_row(r"shf\.([lr])\.(clamp|wrap)\.b32")
def _funnel(found: re.Match[str]) -> Operation:
    is_left, clamp = found[1] == "l", found[2] == "clamp"

    def function(low: Any, high: Any, amount: Any) -> Any:
        both = (np.asarray(high).astype(np.uint64) << np.uint64(32)) | np.asarray(low).astype(np.uint64)
        shift = (np.minimum(amount, 32) if clamp else amount & np.uint32(31)).astype(np.uint64)
        moved = (both << shift) >> np.uint64(32) if is_left else both >> shift
        return moved.astype(np.uint32)

    return Operation("b32", ("b32", "b32", "u32"), function)


@_row(r"lop3\.b32")
def _lop3(found: re.Match[str]) -> Operation:
    """Any function of three bits: a bit of the table for each combination."""

    def function(a: Any, b: Any, c: Any, table: Any) -> Any:
        result = np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(c)), np.uint32)
        for row in range(8):
            if int(table) >> row & 1:
                result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
        return result

    return Operation("b32", ("b32", "b32", "b32", "b32"), function)


@_row(r"prmt\.b32")
def _permute(found: re.Match[str]) -> Operation:
    """Bytes of two words, by four numbers of which the highest bit asks for the sign instead."""

    def function(a: Any, b: Any, selector: Any) -> Any:
        both = (np.asarray(b).astype(np.uint64) << np.uint64(32)) | np.asarray(a).astype(np.uint64)
        result = np.uint32(0)
        for place in range(4):
            chosen = (np.asarray(selector).astype(np.uint64) >> np.uint64(4 * place)) & np.uint64(0xF)
            byte = (both >> ((chosen & np.uint64(7)) * np.uint64(8))) & np.uint64(0xFF)
            byte = np.where(chosen & np.uint64(8), np.where(byte & np.uint64(0x80), 0xFF, 0), byte)
            result = result | (byte.astype(np.uint32) << np.uint32(8 * place))
        return result

    return Operation("b32", ("b32", "b32", "b32"), function)


@_row(r"bfe\.([us](?:32|64))")
def _extract(found: re.Match[str]) -> Operation:
    kind, bits = found[1], int(found[1][1:])

    def one(value: Any, start: Any, count: Any) -> int:
        value, start, count = int(value) & (1 << bits) - 1, int(start) & 0xFF, int(count) & 0xFF
        if count == 0:
            return 0
        field = value >> min(start, bits) & (1 << count) - 1
        sign = value >> min(start + count - 1, bits - 1) & 1
        if kind[0] == "s" and sign:
            field |= -1 << min(count, max(bits - start, 0))
        return field if field < 1 << (bits - (kind[0] == "s")) else field - (1 << bits)

    return Operation(kind, (kind, "u32", "u32"), lambda *values: _by_element(one, *values).astype(TYPES[kind]))


@_row(r"bfi\.b(32|64)")
def _insert(found: re.Match[str]) -> Operation:
    bits, dtype = int(found[1]), TYPES[f"b{found[1]}"]

    def one(field: Any, into: Any, start: Any, count: Any) -> int:
        mask = ((1 << (int(count) & 0xFF)) - 1) << (int(start) & 0xFF) & (1 << bits) - 1
        return int(into) & ~mask | int(field) << (int(start) & 0xFF) & mask

    kind = f"b{bits}"
    return Operation(kind, (kind, kind, "u32", "u32"), lambda *values: _by_element(one, *values).astype(dtype))


@_row(r"(popc|clz|brev)\.b(32|64)")
def _count(found: re.Match[str]) -> Operation:
    name, bits = found[1], int(found[2])
    functions = {
        "popc": lambda a: int(a).bit_count(),
        "clz": lambda a: bits - int(a).bit_length(),
        "brev": lambda a: int(f"{int(a):0{bits}b}"[::-1], 2),
    }
    kind = f"b{bits}"
    result = kind if name == "brev" else "b32"
    return Operation(result, (kind,), lambda a: _by_element(functions[name], a).astype(TYPES[result]))


def _by_element(function: Callable[..., Any], *arrays: Any) -> Any:
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays))


# --- conversion --------------------------------------------------------------------------------------------------------

_ROUND = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def widen(kind: str, values: Any) -> Any:
    """Floating-point values in float64, exactly."""
    if kind == "bf16":
        return (np.asarray(values).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return np.asarray(values).astype(np.float64)


def narrow(kind: str, values: Any, rounding: str) -> Any:
    """Values of float64 rounded to a type: ``rn`` to nearest even, ``rz`` to zero, ``rm`` down, ``rp`` up."""
    if kind == "bf16":
        return _narrow_bf16(values, rounding)
    dtype = TYPES[kind]
    rounded = values.astype(dtype)
    if rounding != "rn":
        back = rounded.astype(np.float64)
        down = {"rm": back > values, "rp": False, "rz": (back > values) & (values > 0)}[rounding]
        up = {"rm": False, "rp": back < values, "rz": (back < values) & (values < 0)}[rounding]
        rounded = np.where(down, np.nextafter(rounded, dtype.type(-np.inf)), rounded)
        rounded = np.where(up, np.nextafter(rounded, dtype.type(np.inf)), rounded)
    return canonical(kind, rounded)


def _narrow_bf16(values: Any, rounding: str) -> Any:
    single = values.astype(np.float32)
    if not np.all((single == values) | (values != values)):
        raise PtxError("conversion of float64 to bfloat16")
    bits = single.view(np.uint32)
    if rounding == "rn":
        rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    elif rounding == "rz":
        rounded = bits >> np.uint32(16)
    else:
        raise PtxError(f"rounding {rounding} to bfloat16")
    return np.where(values != values, _NAN["bf16"], rounded.astype(np.uint16))


@_row(r"cvt(?:\.(rn|rz|rm|rp))?\.(f16|bf16|f32|f64)\.(f16|bf16|f32|f64)")
def _float_to_float(found: re.Match[str]) -> Operation:
    rounding, to, of = found.groups()
    width = {"bf16": 0, "f16": 1, "f32": 2, "f64": 3}
    if (rounding is None) != (width[to] > width[of]) or {to, of} == {"f16", "bf16"}:
        raise PtxError(f"unknown opcode {found[0]}")
    return Operation(to, (of,), lambda a: narrow(to, widen(of, a), rounding or "rn"))


@_row(r"cvt\.(rn|rz)\.(f16|bf16)x2\.f32")
def _two_halves(found: re.Match[str]) -> Operation:
    rounding, kind = found.groups()

    def function(high: Any, low: Any) -> Any:
        halves = [narrow(kind, widen("f32", a), rounding).view(np.uint16).astype(np.uint32) for a in (high, low)]
        return halves[0] << np.uint32(16) | halves[1]

    return Operation(f"{kind}x2", ("f32", "f32"), function)


@_row(r"cvt\.(rni|rzi|rmi|rpi)\.(f32|f64)\.(f32|f64)")
def _to_whole(found: re.Match[str]) -> Operation:
    if found[2] != found[3]:
        raise PtxError(f"unknown opcode {found[0]}")
    return Operation(found[2], (found[2],), lambda a: canonical(found[2], _ROUND[found[1]](a)))


@_row(r"cvt\.(rni|rzi|rmi|rpi)\.([us](?:8|16|32|64))\.(f16|f32|f64)")
def _float_to_integer(found: re.Match[str]) -> Operation:
    """Values beyond the range become its ends; NaN becomes 0, or the highest bit alone where 64 bits take part."""
    rounding, to, of = found.groups()
    info, bits = np.iinfo(TYPES[to]), int(to[1:])
    of_nan = 0 if of != "f64" and bits != 64 else info.min if to[0] == "s" else 1 << (bits - 1)

    def function(a: Any) -> Any:
        whole = _ROUND[rounding](widen(of, a))
        inside = (whole >= float(info.min)) & (whole < 2.0 ** (bits - (to[0] == "s")))
        result = np.where(inside, whole, 0.0).astype(TYPES[to])
        result = np.where(inside, result, np.where(whole < 0, info.min, info.max).astype(TYPES[to]))
        return np.where(whole != whole, TYPES[to].type(of_nan), result)

    return Operation(to, (of,), function)


@_row(r"cvt\.(rn|rz|rm|rp)\.(f16|f32|f64)\.([us](?:8|16|32|64))")
def _integer_to_float(found: re.Match[str]) -> Operation:
    rounding, to, of = found.groups()

    def function(a: Any) -> Any:
        rounded = np.asarray(a).astype(TYPES[to])
        if rounding == "rn" or np.isinf(rounded).any():
            return rounded
        exact = np.asarray(a).astype(object)
        above = _by_element(lambda r, x: int(r) > x, rounded, exact).astype(bool)
        below = _by_element(lambda r, x: int(r) < x, rounded, exact).astype(bool)
        down = {"rm": above, "rp": False, "rz": above & (rounded > 0)}[rounding]
        up = {"rm": False, "rp": below, "rz": below & (rounded < 0)}[rounding]
        rounded = np.where(down, np.nextafter(rounded, TYPES[to].type(-np.inf)), rounded)
        return np.where(up, np.nextafter(rounded, TYPES[to].type(np.inf)), rounded)

    return Operation(to, (of,), function)


@_row(r"cvt\.([us](?:8|16|32|64))\.([us](?:8|16|32|64))")
def _integer_to_integer(found: re.Match[str]) -> Operation:
    return Operation(found[1], (found[2],), lambda a: np.asarray(a).astype(TYPES[found[1]]))


@_row(r"(?:mov|cvta(?:\.to)?\.global)\.([bsuf](?:16|32|64)|pred)")
def _copy(found: re.Match[str]) -> Operation:
    """An address in global memory is its generic address."""
    kind = found[1] if found[1] == "pred" else f"b{found[1][1:]}"
    return Operation(kind, (kind,), operator.pos if kind != "pred" else np.array)
