"""The interpreter of PTX beside NumPy, on small kernels that NVRTC compiles."""

import re
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from ptx import Memory, Module
from ptx_values import PtxError, fma32, fma64, operation

from oxigrad.cuda.compiler import Compiler, compile_text

BLOCK = 64


def specials(dtype: Any) -> Any:
    """Pairs of all numbers with a property that arithmetic may get wrong."""
    info = np.finfo(dtype)
    tiny, largest = info.smallest_subnormal, info.max
    positive = np.array(
        [0, tiny, 3 * tiny, info.smallest_normal, 1, 1.5, 3, 0.1, 2**31, largest, np.inf, np.nan], dtype
    )
    every = np.concatenate([positive, -positive])
    return np.repeat(every, every.size), np.tile(every, every.size)


def normal(dtype: Any, count: int = 500) -> Any:
    rng = np.random.default_rng(0)
    return tuple((rng.normal(size=count) * 10.0 ** rng.integers(-8, 8, count)).astype(dtype) for _ in range(3))


def same(result: Any, expected: Any) -> None:
    """Equal to the bit, but for the payloads of NaN."""
    assert result.dtype == expected.dtype
    wrong = ~(
        (result == expected) & (np.signbit(result) == np.signbit(expected))
        | (result != result) & (expected != expected)
    )
    assert not wrong.any(), (np.flatnonzero(wrong)[:5], result[wrong][:5], expected[wrong][:5])


# --- the kernels -------------------------------------------------------------------------------------------------------

# Functions of one to three numbers, by element: the type of the result, the types of the arguments, and C++.
FUNCTIONS: dict[str, tuple[str, str, str]] = {
    f"{name}_{kind}": (kind, " ".join([kind] * count), code)
    for kind, f in (("float", "f"), ("double", ""))
    for name, count, code in [
        ("add", 2, "a + b"),
        ("sub", 2, "a - b"),
        ("mul", 2, "a * b"),
        ("div", 2, "a / b"),
        ("sqrt", 1, f"sqrt{f}(a)"),
        ("rcp", 1, f"1.0{f} / a"),
        ("fma", 3, f"fma{f}(a, b, c)"),
        ("muladd", 3, "a * b + c"),
        ("min", 2, f"fmin{f}(a, b)"),
        ("max", 2, f"fmax{f}(a, b)"),
        ("abs", 1, f"fabs{f}(a)"),
        ("neg", 1, "-a"),
        ("copysign", 2, f"copysign{f}(a, b)"),
        ("select", 3, "a < b ? b : c"),
        ("rint", 1, f"rint{f}(a)"),
        ("trunc", 1, f"trunc{f}(a)"),
        ("floor", 1, f"floor{f}(a)"),
        ("ceil", 1, f"ceil{f}(a)"),
        ("isnan", 1, f"isnan(a) ? 1.0{f} : 0.0{f}"),
        ("isinf", 1, f"isinf(a) ? 1.0{f} : 0.0{f}"),
        (
            "compare",
            2,
            f"(a < b ? 1 : 0) + (a <= b ? 2 : 0) + (a == b ? 4 : 0) + (a != b ? 8 : 0) + (!(a > b) ? 16 : 0) + (!(a >= b) ? 32{f[:0]} : 0)",
        ),
    ]
}
_ROUNDINGS = ("rn", "rz", "rd", "ru")
FUNCTIONS |= {
    f"{of}2{to}_{rounding}": (types[to], types[of], f"__{of}2{to}_{rounding}(a)")
    for types in [{"float": "float", "double": "double", "int": "int", "uint": "unsigned", "ll": "i64", "ull": "u64"}]
    for of, to in [
        *[(of, to) for of in ("float", "double") for to in ("int", "uint", "ll", "ull")],
        *[
            (of, to)
            for of in ("int", "uint", "ll", "ull")
            for to in ("float", "double")
            if (of, to) not in {("int", "double"), ("uint", "double")}
        ],
        ("double", "float"),
    ]
    for rounding in _ROUNDINGS
}
FUNCTIONS |= {
    f"{kind}_{rounding}": (
        "unsigned short",
        "float",
        f'([](float x) {{ unsigned short h; asm("cvt.{rounding}.{kind}.f32 %0, %1;" : "=h"(h) : "f"(x)); return h; }})(a)',
    )
    for kind, rounding in [("f16", "rn"), ("f16", "rz"), ("bf16", "rn"), ("bf16", "rz")]
}
FUNCTIONS |= {
    f"from_{kind}": (
        "float",
        "u16",
        f'([](unsigned short h) {{ float x; asm("cvt.f32.{kind} %0, %1;" : "=f"(x) : "h"(h)); return x; }})(a)',
    )
    for kind in ("f16", "bf16")
}
FUNCTIONS |= {
    f"two_{kind}": (
        "unsigned",
        "float float",
        f'([](float x, float y) {{ unsigned h; asm("cvt.rn.{kind}x2.f32 %0, %1, %2;" : "=r"(h) : "f"(x), "f"(y)); return h; }})(a, b)',
    )
    for kind in ("f16", "bf16")
}
FUNCTIONS |= {
    f"{name}_{kind}": (kind, " ".join([kind] * count), code)
    for kind in ("int", "unsigned", "i64", "u64")
    for name, count, code in [
        ("add", 2, "a + b"),
        ("mul", 2, "a * b"),
        (
            "high",
            2,
            {"int": "__mulhi(a, b)", "unsigned": "__umulhi(a, b)", "i64": "__mul64hi(a, b)", "u64": "__umul64hi(a, b)"}[
                kind
            ],
        ),
        ("div", 2, "a / (b ? b : 3)"),
        ("rem", 2, "a % (b ? b : 3)"),
        ("bits", 3, "(a & b) | (~a & c) ^ (b + 7)"),
        ("left", 2, f"a << (b & {31 if kind in ('int', 'unsigned') else 63})"),
        ("right", 2, f"a >> (b & {31 if kind in ('int', 'unsigned') else 63})"),
        ("least", 2, "a < b ? a : b"),
        ("neg", 1, "-a"),
    ]
}
FUNCTIONS |= {
    "popc": ("int", "unsigned", "__popc(a)"),
    "popcll": ("int", "u64", "__popcll(a)"),
    "clz": ("int", "unsigned", "__clz(a)"),
    "clzll": ("int", "u64", "__clzll(a)"),
    "brev": ("unsigned", "unsigned", "__brev(a)"),
    "prmt": ("unsigned", "unsigned unsigned unsigned", "__byte_perm(a, b, c)"),
    "funnel_left": ("unsigned", "unsigned unsigned unsigned", "__funnelshift_l(a, b, c)"),
    "funnel_right": ("unsigned", "unsigned unsigned unsigned", "__funnelshift_rc(a, b, c)"),
    "wide": ("u64", "unsigned unsigned", "(u64)a * b + 5"),
    "narrow": ("signed char", "int", "(signed char)(a * 3)"),
    "halfword": ("short", "short short", "(short)(a * b + (a >> 3))"),
    "bits_of_float": ("unsigned", "float", "__float_as_uint(a) ^ 0x80000000u"),
    "bits_of_double": ("u64", "double", "(u64)__double_as_longlong(a) >> 52"),
    "words_of_double": ("double", "double", "__hiloint2double(__double2hiint(a) + (1 << 20), __double2loint(a))"),
    "extract": ("int", "int", "(a << 5) >> 27"),
}
_DTYPES = {
    "float": np.float32,
    "double": np.float64,
    "int": np.int32,
    "unsigned": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
    "u16": np.uint16,
    "unsigned short": np.uint16,
    "short": np.int16,
    "signed char": np.int8,
}

OTHERS = """
extern "C" __global__ void sum(float* total, const float* x, int n) {
  __shared__ float part[64];
  int t = threadIdx.x;
  float own = 0;
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) own += x[i];
  part[t] = own;
  for (int width = 32; width > 0; width /= 2) {
    __syncthreads();
    if (t < width) part[t] += part[t + width];
  }
  if (t == 0) total[blockIdx.x] = part[0];
}
extern "C" __global__ void collatz(int* steps, const int* start, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;  // early
  long long x = start[i];
  int count = 0;
  while (x != 1) {
    if (x % 2) x = 3 * x + 1; else x /= 2;
    if (++count > 1000) return;
  }
  steps[i] = count;
}
extern "C" __global__ void choose(int* y) {
  int i = threadIdx.x, r;
  switch (i % 7) {
    case 0: r = i * i; break;
    case 1: r = i - 100; break;
    case 2: for (r = 0; r * r < i; r++) {} break;
    case 3: r = i ^ 0x55; break;
    case 4: r = i % 3 ? 1 : 2; break;
    case 5: r = -i; break;
    default: r = y[i];
  }
  y[i] = r;
}
extern "C" __global__ void vectors(float4* x, const uint2* y, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  uint2 w = y[i];
  x[i] = make_float4(v.w, v.z + w.x, v.y * w.y, v.x);
}
__constant__ float table[5] = {1.5f, -2.0f, 0.25f, 4.0f, 8.0f};
extern "C" __global__ void look_up(float* x) { x[threadIdx.x] = table[threadIdx.x % 5]; }
struct Args { double* x; float scale[9]; short count; };
extern "C" __global__ void arguments(Args args) {
  if (threadIdx.x < args.count) args.x[threadIdx.x] *= args.scale[threadIdx.x % 9];
}
extern "C" __global__ void own_array(int* x) {
  int digits[16];
  int n = x[threadIdx.x], count = 0;
  do { digits[count++] = n % 10; n /= 10; } while (n);
  int y = 0;
  for (int i = 0; i < count; i++) y = y * 10 + digits[i] * digits[count - 1 - i] % 10;
  x[threadIdx.x] = y;
}

// What must not be done.
extern "C" __global__ void beyond(float* x, int at) { x[at + (int)threadIdx.x] = 1; }
extern "C" __global__ void unaligned(float* x) { *(float4*)(x + 4 * threadIdx.x) = make_float4(1, 2, 3, 4); }
extern "C" __global__ void together(float* x) { x[threadIdx.x / 2] = threadIdx.x; }
extern "C" __global__ void half_waits(float* x) {
  __shared__ float s[64];
  s[threadIdx.x] = 1;
  if (threadIdx.x < 32) { __syncthreads(); x[threadIdx.x] = s[0]; }
  else if (x[threadIdx.x] > 0) { __syncthreads(); x[threadIdx.x] = s[threadIdx.x - 32]; }
}
extern "C" __global__ void no_barrier(float* x) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" __global__ void overwritten_early(float* x) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  float y = s[63 - threadIdx.x];
  s[threadIdx.x] = y;
  __syncthreads();
  x[threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void unwritten(float* x) {
  __shared__ float s[64];
  if (threadIdx.x < 60) s[threadIdx.x] = 1;
  __syncthreads();
  x[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" __global__ void neighbour(float* x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0) x[i - 1] = i;
  __syncthreads();
  x[i] += 1;
}
extern "C" __global__ void wrongly_constant(float* x) {
  x[threadIdx.x] = 1;
  x[threadIdx.x] += __ldg(x + threadIdx.x);
}
extern "C" __global__ void endless(volatile int* x) { while (x[threadIdx.x] == 0) {} }
extern "C" __global__ void __launch_bounds__(32) small_blocks(int* x) { x[threadIdx.x] = 1; }
"""


def _kernel(name: str) -> str:
    result, of, code = FUNCTIONS[name]
    kinds = of.split()
    params = "".join(f", const {kind}* x{number}" for number, kind in enumerate(kinds))
    loads = " ".join(
        f"{kind} {letter} = x{number}[i];" for number, (kind, letter) in enumerate(zip(kinds, "abc", strict=False))
    )
    body = f"int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) {{ {loads} y[i] = {code}; }}"
    return f'extern "C" __global__ void k_{name}({result}* y{params}, int n) {{ {body} }}\n'


@pytest.fixture(scope="module")
def module(nvrtc: Compiler) -> Module:
    types = "typedef long long i64; typedef unsigned long long u64; typedef unsigned short u16;\n"
    text = types + "".join(map(_kernel, FUNCTIONS)) + OTHERS
    return Module(compile_text(text, "compute_90").code.decode())


@pytest.fixture
def call(nvrtc: Compiler, module: Module) -> Callable[..., Any]:
    """Calls a function of `FUNCTIONS` on arrays."""

    def called(name: str, *arrays: Any) -> Any:
        result, of, _ = FUNCTIONS[name]
        arrays = tuple(np.asarray(each, _DTYPES[kind]) for each, kind in zip(arrays, of.split(), strict=True))
        memory, n = Memory(), arrays[0].size
        y = memory.put(np.zeros(n, _DTYPES[result]))
        inputs = [memory.put(each, writable=False) for each in arrays]
        params = struct.pack(f"<{1 + len(inputs)}Qi", y.address, *[each.address for each in inputs], n)
        module.launch(f"k_{name}", grid=-(-n // BLOCK), block=BLOCK, params=params, memory=memory)
        return y.array

    return called


@pytest.fixture
def run(nvrtc: Compiler, module: Module) -> Callable[..., Any]:
    """Runs a kernel of `OTHERS` on copies of arrays and numbers, and gives the arrays."""

    def launched(name: str, *arguments: Any, grid: int = 1, block: int = BLOCK, **options: Any) -> list[Any]:
        memory = Memory()
        buffers = [memory.put(each, **options) if isinstance(each, np.ndarray) else each for each in arguments]
        kinds = "<" + "".join("i" if isinstance(each, int) else "Q" for each in buffers)
        params = struct.pack(kinds, *[each if isinstance(each, int) else each.address for each in buffers])
        module.launch(name, grid=grid, block=block, params=params, memory=memory)
        return [each.array for each in buffers if not isinstance(each, int)]

    return launched


# --- arithmetic --------------------------------------------------------------------------------------------------------

NUMPY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
    "rcp": lambda a: a.dtype.type(1) / a,
    "muladd": lambda a, b, c: a * b + c,
    "abs": np.abs,
    "neg": np.negative,
    "copysign": np.copysign,
    "select": lambda a, b, c: np.where(a < b, b, c),
    "rint": np.rint,
    "trunc": np.trunc,
    "floor": np.floor,
    "ceil": np.ceil,
    "isnan": lambda a: np.isnan(a).astype(a.dtype),
    "isinf": lambda a: np.isinf(a).astype(a.dtype),
    "compare": lambda a, b: (
        (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * ~(a > b) + 32 * ~(a >= b)
    ).astype(a.dtype),
}


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("name", NUMPY)
def test_floating_point(call: Callable[..., Any], name: str, kind: str) -> None:
    dtype = _DTYPES[kind]
    count = len(FUNCTIONS[f"{name}_{kind}"][1].split())
    a, b = specials(dtype)
    for arrays in ((a, b, np.roll(a, 5)), normal(dtype)):
        with np.errstate(all="ignore"):
            same(call(f"{name}_{kind}", *arrays[:count]), NUMPY[name](*arrays[:count]))


@pytest.mark.parametrize("kind", ["float", "double"])
def test_extrema_leave_out_nan_and_order_zeros(call: Callable[..., Any], kind: str) -> None:
    a, b = specials(_DTYPES[kind])
    for name, numpy, zero in (("min", np.fmin, -0.0), ("max", np.fmax, 0.0)):
        with np.errstate(invalid="ignore"):
            expected = numpy(a, b)
        expected[(a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))] = zero
        same(call(f"{name}_{kind}", a, b), expected)


def exact_fma(a: Any, b: Any, c: Any, dtype: Any) -> Any:
    """The fused product and sum by fractions, of finite numbers."""
    wide = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c, strict=True)]
    return np.array([_rounded(each, dtype) for each in wide], dtype)


def _rounded(exact: Fraction, dtype: Any) -> Any:
    """The nearest number of a type, even where two are as near."""
    info = np.finfo(dtype)
    if exact == 0:
        return dtype(0)
    exponent = abs(exact).numerator.bit_length() - abs(exact).denominator.bit_length()
    exponent -= abs(exact) < Fraction(2) ** exponent
    step = Fraction(2) ** (max(exponent, info.minexp) - info.nmant)
    rounded = round(exact / step) * step  # half to even
    size = np.inf if abs(rounded) > Fraction(float(info.max)) else float(abs(rounded))
    return dtype(np.copysign(size, 1 if exact > 0 else -1))


@pytest.mark.parametrize(("dtype", "function"), [(np.float32, fma32), (np.float64, fma64)])
def test_fma_is_rounded_once(dtype: Any, function: Callable[..., Any]) -> None:
    rng = np.random.default_rng(1)
    info = np.finfo(dtype)
    a, b, c = (rng.normal(size=2000).astype(dtype) for _ in range(3))
    c[:500] = -(a * b)[:500]  # what remains is the error of the product
    c[500:1000] = (a * b)[500:1000] * dtype(2.0**info.nmant)  # near ties
    b[1000:1200] = 1 + rng.integers(0, 4, 200) * info.eps
    c[1000:1200] = a[1000:1200] * info.eps / 2
    a[1200:1400] *= dtype(2.0 ** (info.minexp + 3))  # subnormal results
    c[1200:1400] *= dtype(info.smallest_normal)
    a[1400:1500] *= info.max / 4
    b[1400:1500] *= 8
    c[1400:1500] *= info.max / 4
    with np.errstate(all="ignore"):
        result = function(a, b, c)
    same(result, exact_fma(a, b, c, dtype))


@pytest.mark.parametrize("kind", ["float", "double"])
def test_fma_of_special_numbers(call: Callable[..., Any], kind: str) -> None:
    dtype = _DTYPES[kind]
    a, b = specials(dtype)
    for shift in (1, 7, 13):
        c = np.roll(b, shift)
        with np.errstate(all="ignore"):
            finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & (a != 0) & (b != 0)
            expected = a * b + c
            overflows = np.isfinite(a) & np.isfinite(b) & ~np.isfinite(c)  # of the product, not of the sum
            expected[overflows] = c[overflows]
            expected[finite] = exact_fma(a[finite], b[finite], c[finite], dtype)
        same(call(f"fma_{kind}", a, b, c), expected)


def test_nan_of_arithmetic_is_the_one_of_hardware(call: Callable[..., Any]) -> None:
    payload = np.array([0xFF800001, 0x7FC12345], np.uint32).view(np.float32)
    assert (call("add_float", payload, payload).view(np.uint32) == 0x7FFFFFFF).all()


# --- conversion --------------------------------------------------------------------------------------------------------

_TO_WHOLE = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
_INTEGERS = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}


@pytest.mark.parametrize("rounding", _ROUNDINGS)
@pytest.mark.parametrize("to", _INTEGERS)
@pytest.mark.parametrize("of", ["float", "double"])
def test_float_to_integer(call: Callable[..., Any], of: str, to: str, rounding: str) -> None:
    dtype, info = _DTYPES[of], np.iinfo(_INTEGERS[to])
    edges = np.array([info.min, info.max], np.float64)
    values = np.concatenate(
        [normal(dtype)[0], specials(dtype)[1], *[edges + shift for shift in (-1024, -1.5, 0, 0.5, 1024)]]
    ).astype(dtype)
    expected = [
        (0 if of == "float" and info.bits == 32 else 1 << 63 if to == "ull" else 1 << 31 if to == "uint" else info.min)
        if np.isnan(value)
        else int(min(max(Fraction(float(_TO_WHOLE[rounding](value))), info.min), info.max))
        if np.isfinite(value)
        else (info.max if value > 0 else info.min)
        for value in values
    ]
    np.testing.assert_array_equal(call(f"{of}2{to}_{rounding}", values), np.array(expected, _INTEGERS[to]))


def directed(exact: Fraction, dtype: Any, rounding: str) -> Any:
    nearest = _rounded(exact, dtype)
    as_fraction = Fraction(float(nearest)) if np.isfinite(nearest) else Fraction(2) ** 2000 * (1 if nearest > 0 else -1)
    down = rounding == "rd" or (rounding == "rz" and exact > 0)
    if rounding != "rn" and down and as_fraction > exact:
        return np.nextafter(nearest, dtype(-np.inf))
    if rounding != "rn" and not down and as_fraction < exact:
        return np.nextafter(nearest, dtype(np.inf))
    return nearest


@pytest.mark.parametrize("rounding", _ROUNDINGS)
@pytest.mark.parametrize(
    "name",
    [
        name
        for name in FUNCTIONS
        if re.fullmatch(r"u?(int|ll)2(float|double)_rn|ull2(float|double)_rn|double2float_rn", name)
    ],
)
def test_rounding_to_fewer_bits(call: Callable[..., Any], name: str, rounding: str) -> None:
    name = name.replace("_rn", f"_{rounding}")
    result, of, _ = FUNCTIONS[name]
    dtype = _DTYPES[of]
    if dtype == np.float64:
        values = np.concatenate(
            [normal(dtype)[0], [1e300, -1e300, 1e-300, 3e-45, -1e-40, 3.4028235e38, 3.4028236e38, 1 + 2**-24]]
        )
    else:
        info, rng = np.iinfo(dtype), np.random.default_rng(2)
        values = np.concatenate(
            [
                rng.integers(info.min, info.max, 200, dtype, endpoint=True),
                np.array([0, 1, info.min, info.max, (1 << 24) + 1, (1 << 25) + 2], dtype),
            ]
        )
    exact = [Fraction(float(each)) if dtype == np.float64 else Fraction(int(each)) for each in values]
    with np.errstate(over="ignore", under="ignore"):
        expected = np.array([directed(each, _DTYPES[result], rounding) for each in exact], _DTYPES[result])
    expected[(values == 0)] = 0
    np.testing.assert_array_equal(call(name, values), expected)


def test_halves(call: Callable[..., Any]) -> None:
    every = np.arange(1 << 16, dtype=np.uint16)[::7]
    widened = call("from_f16", every)
    same(widened, every.view(np.float16).astype(np.float32))
    as_bfloat16 = (every.astype(np.uint32) << 16).view(np.float32)
    same(call("from_bf16", every), as_bfloat16)
    with np.errstate(all="ignore"):
        between = [widened * np.float32(1 + 2**-11), as_bfloat16 * np.float32(1 + 2**-8)]
        values = np.concatenate([normal(np.float32)[0], widened, as_bfloat16, *between])
        rounded = values.astype(np.float16)
    same(call("f16_rn", values).view(np.float16), rounded)
    exact = {name: call(f"{name}_rz", values) for name in ("f16", "bf16")}
    back = exact["f16"].view(np.float16).astype(np.float32)
    ok = ~np.isnan(values)
    assert (np.abs(back[ok]) <= np.abs(values[ok])).all() and (
        np.abs(call("f16_rn", values).view(np.float16)[ok]) >= np.abs(back[ok])
    ).all()
    assert (exact["bf16"][ok] == (values.view(np.uint32) >> 16)[ok]).all()
    bits = values.view(np.uint32).astype(np.uint64)
    nearest = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    np.testing.assert_array_equal(call("bf16_rn", values), np.where(ok, nearest, 0x7FFF))
    both = call("two_bf16", values, values[::-1])
    np.testing.assert_array_equal(
        both, np.where(ok, nearest, 0x7FFF).astype(np.uint32) << 16 | np.where(ok, nearest, 0x7FFF)[::-1]
    )
    halves = call("f16_rn", values).astype(np.uint32)
    np.testing.assert_array_equal(call("two_f16", values, values[::-1]), halves << 16 | halves[::-1])


# --- integers ----------------------------------------------------------------------------------------------------------


def _integers(dtype: Any, count: int = 300) -> list[Any]:
    rng, info = np.random.default_rng(3), np.iinfo(dtype)
    edges = np.array([0, 1, 2, info.max, info.min, info.max - 1, 5], dtype)
    arrays = [np.concatenate([rng.integers(info.min, info.max, count, dtype, endpoint=True), edges]) for _ in range(3)]
    return [np.roll(each, number) for number, each in enumerate(arrays)]


def _python(name: str, bits: int) -> Callable[..., int]:
    """The functions on Python's integers."""

    def quotient(a: int, b: int) -> int:
        b = b or 3
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    return {
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "high": lambda a, b: a * b >> bits,
        "div": quotient,
        "rem": lambda a, b: a - quotient(a, b) * (b or 3),
        "bits": lambda a, b, c: (a & b) | (~a & c) ^ (b + 7),
        "left": lambda a, b: a << (b & bits - 1),
        "right": lambda a, b: a >> (b & bits - 1),
        "least": lambda a, b: min(a, b),
        "neg": lambda a: -a,
    }[name]


@pytest.mark.parametrize("kind", ["int", "unsigned", "i64", "u64"])
@pytest.mark.parametrize("name", ["add", "mul", "high", "div", "rem", "bits", "left", "right", "least", "neg"])
def test_integers(call: Callable[..., Any], name: str, kind: str) -> None:
    arrays = _integers(_DTYPES[kind])[: len(FUNCTIONS[f"{name}_{kind}"][1].split())]
    bits = 8 * np.dtype(_DTYPES[kind]).itemsize
    function = _python(name, bits)
    expected = [function(*map(int, row)) & (1 << bits) - 1 for row in zip(*arrays, strict=True)]
    np.testing.assert_array_equal(
        call(f"{name}_{kind}", *arrays).view(f"u{bits // 8}"), np.array(expected, f"u{bits // 8}")
    )


def test_bits(call: Callable[..., Any]) -> None:
    a, b, c = _integers(np.uint32)
    wide = _integers(np.uint64)[0]
    np.testing.assert_array_equal(call("popc", a), np.bitwise_count(a))
    np.testing.assert_array_equal(call("popcll", wide), np.bitwise_count(wide))
    np.testing.assert_array_equal(call("clz", a), [32 - int(each).bit_length() for each in a])
    np.testing.assert_array_equal(call("clzll", wide), [64 - int(each).bit_length() for each in wide])
    np.testing.assert_array_equal(call("brev", a), [int(f"{int(each):032b}"[::-1], 2) for each in a])
    np.testing.assert_array_equal(call("wide", a, b), a.astype(np.uint64) * b + np.uint64(5))
    both = [int(high) << 32 | int(low) for low, high in zip(a, b, strict=True)]
    left = [(value << (int(shift) & 31)) >> 32 & 0xFFFFFFFF for value, shift in zip(both, c, strict=True)]
    np.testing.assert_array_equal(call("funnel_left", a, b, c), left)
    right = [value >> min(int(shift), 32) & 0xFFFFFFFF for value, shift in zip(both, c, strict=True)]
    np.testing.assert_array_equal(call("funnel_right", a, b, c), right)
    taken = [
        sum((value >> 8 * (int(choice) >> 4 * place & 7) & 255) << 8 * place for place in range(4))
        for value, choice in zip(both, c, strict=True)
    ]
    np.testing.assert_array_equal(call("prmt", a, b, c & np.uint32(0x7777)), taken)
    signed = _integers(np.int32)[0]
    np.testing.assert_array_equal(call("narrow", signed), (signed * np.int32(3)).astype(np.int8))
    np.testing.assert_array_equal(call("extract", signed), (signed << 5) >> 27)
    short = _integers(np.int16)
    np.testing.assert_array_equal(call("halfword", *short[:2]), short[0] * short[1] + (short[0] >> 3))
    single, double = normal(np.float32)[0], normal(np.float64)[0]
    np.testing.assert_array_equal(call("bits_of_float", single), single.view(np.uint32) ^ 0x80000000)
    np.testing.assert_array_equal(call("bits_of_double", double), double.view(np.uint64) >> 52)
    np.testing.assert_array_equal(call("words_of_double", double), 2 * double)


@pytest.mark.parametrize(
    ("opcode", "arguments", "expected"),
    [
        ("shl.b32", (5, 40), 0),
        ("shr.s32", (-5, 40), -1),
        ("shr.u32", (5, 40), 0),
        ("bfe.u32", (0xABCD, 4, 8), 0xBC),
        ("bfe.s32", (0xABCD, 4, 8), 0xBC - 256),
        ("bfe.s32", (-2, 28, 16), -1),
        ("bfi.b32", (0xF, 0xABCD, 4, 8), 0xA0FD),
        ("lop3.b32", (0b1100, 0b1010, 0b0110, 0xE8), 0b1110),
        ("prmt.b32", (0x80, 0, 0x8888), 0xFFFFFFFF),
    ],
)
def test_instructions_that_no_kernel_here_has(opcode: str, arguments: tuple[int, ...], expected: int) -> None:
    meaning = operation(opcode)
    dtype = np.int32 if ".s32" in opcode else np.uint32
    values = [np.array([each & 0xFFFFFFFF], np.uint32) for each in arguments]
    if opcode == "lop3.b32":
        values[-1] = values[-1][0]
    values[0] = values[0].view(dtype)
    assert int(meaning.function(*values)[0]) == expected


# --- threads and memory ------------------------------------------------------------------------------------------------


def test_a_sum_in_shared_memory(run: Callable[..., Any]) -> None:
    x = normal(np.float32, 1000)[0]
    total, _ = run("sum", np.zeros(3, np.float32), x, x.size, grid=3)
    own = np.zeros((3, 64), np.float32)
    for at in range(0, x.size, 192):
        part = np.zeros(192, np.float32)
        part[: x[at : at + 192].size] = x[at : at + 192]
        own += part.reshape(3, 64)
    while own.shape[1] > 1:
        own = own[:, : own.shape[1] // 2] + own[:, own.shape[1] // 2 :]
    np.testing.assert_array_equal(total, own[:, 0])


def test_loops_of_different_lengths_and_early_exits(run: Callable[..., Any]) -> None:
    def steps(x: int) -> int:
        count = 0
        while x != 1:
            x, count = (3 * x + 1 if x % 2 else x // 2), count + 1
        return count

    start = np.arange(1, 101, dtype=np.int32)
    result, _ = run("collatz", np.zeros(100, np.int32), start, 100, grid=2)
    np.testing.assert_array_equal(result, [steps(int(each)) for each in start])


def test_a_branch_of_many_ways(run: Callable[..., Any]) -> None:
    (result,) = run("choose", np.arange(1000, 1064, dtype=np.int32))
    ways: list[Callable[[int], int]] = [
        lambda i: i * i,
        lambda i: i - 100,
        lambda i: next(r for r in range(9) if r * r >= i),
        lambda i: i ^ 0x55,
        lambda i: 1 if i % 3 else 2,
        lambda i: -i,
        lambda i: 1000 + i,
    ]
    np.testing.assert_array_equal(result, [ways[i % 7](i) for i in range(64)])


def test_vectors(run: Callable[..., Any], module: Module) -> None:
    x = np.arange(80, dtype=np.float32).reshape(20, 4)
    y = np.arange(40, dtype=np.uint32).reshape(20, 2)
    result, _ = run("vectors", x, y, 20)
    np.testing.assert_array_equal(result, np.stack([x[:, 3], x[:, 2] + y[:, 0], x[:, 1] * y[:, 1], x[:, 0]], axis=1))
    assert {"ld.global.v4.f32", "ld.global.v2.u32", "st.global.v4.f32"} <= module.opcodes("vectors")


def test_constants_arguments_and_local_memory(run: Callable[..., Any], module: Module) -> None:
    (result,) = run("look_up", np.zeros(64, np.float32))
    np.testing.assert_array_equal(result, np.resize([1.5, -2, 0.25, 4, 8], 64))
    memory = Memory()
    x, scale = memory.put(np.arange(64.0)), np.arange(1, 10, dtype=np.float32) / 3
    params = struct.pack("<Q9fh2x", x.address, *scale, 40)
    module.launch("arguments", grid=1, block=64, params=params, memory=memory)
    np.testing.assert_array_equal(x.array, np.arange(64.0) * np.where(np.arange(64) < 40, np.resize(scale, 64), 1.0))
    digits = np.arange(100, 6500, 100, dtype=np.int32) + 7
    (result,) = run("own_array", digits)
    expected = []
    for each in digits:
        text = [int(digit) for digit in str(each)[::-1]]
        expected.append(int("".join(str(a * b % 10) for a, b in zip(text, text[::-1], strict=True))))
    np.testing.assert_array_equal(result, expected)


# --- what must not be done ---------------------------------------------------------------------------------------------

X = np.zeros(64, np.float32)
WRONG: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], str]] = {
    "after the end": ("beyond", (X, 1), {}, "lane 63 accesses 4 bytes at .* byte 256 of buffer 0, which has 256 bytes"),
    "before the start": ("beyond", (X, -1), {}, "lane 0 accesses 4 bytes at .* byte -4 of buffer 0"),
    "far away": ("beyond", (X, 1 << 29), {}, "lane 0 accesses 4 bytes"),
    "read-only": ("beyond", (X, 0), {"writable": False}, "write to buffer 0, which is read-only"),
    "unaligned": ("unaligned", (np.zeros(256, np.float32),), {"offset": 4}, "16 bytes at .*, which is not aligned"),
    "one address": ("together", (X,), {}, "lane 0 and another write one address in one instruction"),
    "barrier of some": ("half_waits", (X,), {}, r"bar(rier)?\.sync 0: 32 of 32 threads|bar\.sync 0: 32 of 64 threads"),
    "barrier of some and others": ("half_waits", (X + 1,), {}, "32 of 64 threads of block 0 wait at this barrier"),
    "no barrier": ("no_barrier", (X,), {}, "reads what another thread wrote, with no barrier between"),
    "no barrier before a write": ("overwritten_early", (X,), {}, "writes what another thread read, with no barrier"),
    "unwritten": ("unwritten", (X,), {}, "shared memory is read before it is written"),
    "another block": (
        "neighbour",
        (np.zeros(128, np.float32),),
        {"grid": 2},
        "what another thread (wrote|read), with no barrier",
    ),
    "constant": ("wrongly_constant", (X,), {}, r"memory that the kernel writes is read as constant \(\.nc\)"),
    "large blocks": ("small_blocks", (X,), {}, r"\.maxntid 32: it is launched with blocks of 64"),
    "parameters": ("small_blocks", (X, 1), {"block": 32}, "8 bytes of parameters: 12 were given"),
}


@pytest.mark.parametrize("case", WRONG)
def test_undefined_behaviour_is_an_error(run: Callable[..., Any], case: str) -> None:
    name, arguments, options, message = WRONG[case]
    if case == "barrier of some":  # the others return: those that are left may wait
        (x,) = run(name, *arguments, **options)
        assert (x[:32] == 1).all() and (x[32:] == 0).all()
        return
    with pytest.raises(PtxError, match=message):
        run(name, *arguments, **options)


def test_a_loop_without_end_is_an_error(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptx._MOST_SECTIONS", 1000)
    with pytest.raises(PtxError, match="endless does not end"):
        run("endless", np.zeros(64, np.int32))


def test_neighbours_within_a_block_are_ordered_by_a_barrier(run: Callable[..., Any]) -> None:
    (x,) = run("neighbour", X)
    np.testing.assert_array_equal(x, np.append(np.arange(2, 65), 1))


def assembled(body: str) -> Module:
    registers = ".reg .pred %p<9>; .reg .f32 %f<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>;"
    return Module(
        f".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 k_param_0) {{ {registers} {body} ret; }}"
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "mov.f32 %f1, 0f3F800000; ex2.approx.f32 %f2, %f1;",
            r"k: ex2\.approx\.f32 .*: unknown opcode ex2\.approx\.f32",
        ),
        ("mov.f32 %f1, 0f3F800000; rcp.approx.ftz.f32 %f2, %f1;", r"unknown opcode rcp\.approx\.ftz\.f32"),
        ("mov.f32 %f1, 0f3F800000; add.f32 %f2, %f1, %f1;", r"unknown opcode add\.f32"),  # ptxas may contract it
        ("mov.f32 %f1, 0f3F800000; fma.rn.ftz.f32 %f2, %f1, %f1, %f1;", r"unknown opcode fma\.rn\.ftz\.f32"),
        ("ld.global.relaxed.gpu.u32 %r1, [%rd1];", r"unknown opcode ld\.global\.relaxed"),
        ("call.uni foo;", r"unknown opcode call\.uni"),
        ("add.s32 %r1, %r2, 1;", "%r2 is read before it is written"),
        ("mov.u32 %q1, 1;", "%q1 is not declared"),
        ("mov.u32 %rd1, 1; cvt.u32.u64 %f9, %r1;", "%r1 is read before it is written"),
        ("mov.u64 %r1, 1;", "%r1 cannot hold uint64"),
        ("mov.f64 %rd1, 0f3F800000;", "0f3F800000 is not of 64 bits"),
        ("bar.sync 1;", "a barrier with a guard, a number or a count"),
        ("trap;", "unknown opcode trap"),
        ("ld.param.u64 %rd1, [k_param_0+8];", "a parameter is read out of bounds"),
        ("mov.u32 %r1, nothing;", "unknown operand nothing"),
    ],
)
def test_what_is_not_known_is_an_error(body: str, message: str) -> None:
    with pytest.raises(PtxError, match=message):
        assembled(body).launch("k", grid=1, block=4, params=bytes(8), memory=Memory())


def test_a_function_that_is_called_is_an_error() -> None:
    with pytest.raises(PtxError, match=r"functions that are called: \.func .*__nv_sinf"):
        Module(".version 8.0\n.func (.param .b32 r) __nv_sinf(.param .b32 a) { ret; }")


def test_memory_that_is_registered_twice_is_an_error() -> None:
    memory, array = Memory(), np.zeros(64)
    memory.register(array)
    memory.register(array[5:7])
    with pytest.raises(PtxError, match="two buffers share memory"):
        assembled("").launch("k", grid=1, block=4, params=bytes(8), memory=memory)
