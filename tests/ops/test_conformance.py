"""The functions of the Array API standard beside NumPy's: values, special cases, dtypes and shapes, of plain arrays and of variables.

What NumPy gives, `xp` gives; and so it does on variables, wherever no plain number is asked for.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import tree, xp
from oxigrad.ops.backends import strip

FLOATS = (np.float32, np.float64)
COMPLEX = (np.complex64, np.complex128)
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
NUMBERS = (*FLOATS, *COMPLEX, *INTEGERS)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e30, 1e-30])

UNARY: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys("abs negative positive square sign".split(), NUMBERS),
    **dict.fromkeys("ceil floor round trunc isfinite isinf isnan".split(), (*FLOATS, *INTEGERS)),
    **dict.fromkeys(
        """acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 reciprocal signbit sin sinh sqrt tan
        tanh""".split(),
        FLOATS,
    ),
    **dict.fromkeys("conj imag real exp log sqrt sin cos tanh".split(), (*FLOATS, *COMPLEX)),
    "bitwise_invert": (*INTEGERS, np.bool_),
    "logical_not": (np.bool_,),
}
BINARY: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys("add subtract multiply equal not_equal".split(), NUMBERS),
    **dict.fromkeys("less less_equal greater greater_equal maximum minimum".split(), (*FLOATS, *INTEGERS)),
    **dict.fromkeys("atan2 copysign divide hypot logaddexp nextafter pow remainder floor_divide".split(), FLOATS),
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor".split(), (*INTEGERS, np.bool_)),
    **dict.fromkeys("bitwise_left_shift bitwise_right_shift".split(), (np.int32, np.uint8)),
    **dict.fromkeys("logical_and logical_or logical_xor".split(), (np.bool_,)),
}
STEPS = set("sign ceil floor round trunc floor_divide nextafter".split())


def values(dtype: Any) -> np.ndarray:
    """The special values of a dtype."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([False, True])
    if kind in "iu":
        return np.array([0, 1, 2, 3, 5, 100]).astype(dtype)
    if kind == "c":
        parts = [0.0, 1.0, -0.5, 2.0]
        return np.array([complex(a, b) for a, b in itertools.product(parts, parts)], dtype)
    return SPECIAL.astype(dtype)


def pairs(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of special values, as a column and a row that broadcast."""
    each = values(dtype)
    return each[:, np.newaxis], each


def agree(own: Any, expected: Any) -> None:
    """Asserts that two trees of results have the same shapes, dtypes and values, NaN and signs of zeros among them."""
    own, expected = [strip(leaf) for leaf in tree.leaves(own)], tree.leaves(expected)
    assert len(own) == len(expected)
    for one, other in zip(own, expected, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        single = other.dtype in (np.float32, np.complex64)
        np.testing.assert_allclose(one, other, rtol=2e-6 if single else 1e-13, atol=1e-300, equal_nan=True)
        if one.dtype.kind == "f":
            is_zero = (one == 0) & (other == 0)
            np.testing.assert_array_equal(np.signbit(one[is_zero]), np.signbit(other[is_zero]))


def both(function: Callable[..., Any], *args: np.ndarray, recorded: bool = True) -> None:
    """Compares a function of a namespace and arrays: plain ones, and variables where they are of floating-point dtype."""
    with np.errstate(all="ignore"):
        expected = function(np, *args)
        agree(function(xp, *args), expected)
        if recorded:
            with ox.Tape() as tape:
                own = [tape.watch(x) if x.dtype.kind in "fc" else x for x in args]
                agree(function(xp, *own), expected)


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name: str) -> None:
    for dtype in UNARY[name]:
        for shape in ((-1,), (-1, 1)):
            both(lambda library, x: getattr(library, name)(x), np.reshape(values(dtype), shape))
        both(lambda library, x: getattr(library, name)(x), values(dtype)[:1].reshape(()))
        both(lambda library, x: getattr(library, name)(x), values(dtype)[:0])


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arrays(name: str) -> None:
    for dtype in BINARY[name]:
        left, right = pairs(dtype)
        both(lambda library, a, b: getattr(library, name)(a, b), left, right, recorded=name != "nextafter")


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "subtract", "less"])
@pytest.mark.parametrize(
    ("first", "second"), list(itertools.product((*FLOATS, np.int16, np.uint8, np.int64), repeat=2))
)
def test_dtypes_are_promoted(name: str, first: Any, second: Any) -> None:
    both(lambda library, a, b: getattr(library, name)(a, b), np.array([1, 2], first), np.array([[3], [4]], second))


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32])
@pytest.mark.parametrize("number", [2, 1.5])
def test_python_numbers_are_weak(dtype: Any, number: float) -> None:
    if isinstance(number, float) and np.dtype(dtype).kind == "i":
        return  # the standard leaves it open
    for name in ("add", "multiply", "pow", "maximum"):
        both(lambda library, x, name=name: getattr(library, name)(x, number), np.array([1, 2], dtype))
        both(lambda library, x, name=name: getattr(library, name)(number, x), np.array([1, 2], dtype))


X = np.random.default_rng(0).standard_normal((2, 3, 4))
SQUARE = X[:, :, :3] + 3.0 * np.eye(3)
AXES = (None, 0, -1, (0, 2))

# A function of a namespace and arrays, and its arguments.
FORMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    **{
        f"{name}-{axis}-{keepdims}": (
            lambda m, x, name=name, axis=axis, keepdims=keepdims: getattr(m, name)(x, axis=axis, keepdims=keepdims),
            (X,),
        )
        for name in "sum prod mean max min std var all any count_nonzero".split()
        for axis in AXES
        for keepdims in (False, True)
    },
    **{
        f"{name}-{axis}": (lambda m, x, name=name, axis=axis: getattr(m, name)(x, axis=axis), (X,))
        for name in "argmax argmin argsort sort cumulative_sum cumulative_prod flip diff".split()
        for axis in (0, 1, -1)
    },
    "sum-dtype": (lambda m, x: m.sum(x, dtype=m.float32), (X,)),
    "prod-dtype": (lambda m, x: m.prod(x, dtype=m.float32), (X,)),
    "sum-small-integers": (lambda m, x: m.sum(x), (np.ones(3, np.int8),)),
    "prod-small-integers": (lambda m, x: m.prod(x), (np.ones(3, np.uint8),)),
    "cumulative_sum-small-integers": (lambda m, x: m.cumulative_sum(x), (np.ones(3, np.int8),)),
    "sum-empty": (lambda m, x: m.sum(x, axis=0), (X[:0],)),
    "prod-empty": (lambda m, x: m.prod(x, axis=0), (X[:0],)),
    "sum-no-axis": (lambda m, x: m.sum(x, axis=()), (X,)),
    "cumulative_sum-initial": (lambda m, x: m.cumulative_sum(x, axis=1, include_initial=True), (X,)),
    "cumulative_prod-initial": (lambda m, x: m.cumulative_prod(x, axis=1, include_initial=True), (X,)),
    "var-correction": (lambda m, x: m.var(x, axis=1, correction=1), (X,)),
    "std-correction": (lambda m, x: m.std(x, correction=2.0), (X,)),
    "reshape": (lambda m, x: m.reshape(x, (4, -1)), (X,)),
    "reshape-copy": (lambda m, x: m.reshape(x, (4, -1), copy=True), (X,)),
    "permute_dims": (lambda m, x: m.permute_dims(x, (2, 0, 1)), (X,)),
    "matrix_transpose": (lambda m, x: m.matrix_transpose(x), (X,)),
    "moveaxis": (lambda m, x: m.moveaxis(x, (0, 1), (-1, 0)), (X,)),
    "expand_dims": (lambda m, x: m.expand_dims(x, axis=-2), (X,)),
    "squeeze": (lambda m, x: m.squeeze(x, axis=1), (X[:, :1],)),
    "flip": (lambda m, x: m.flip(x), (X,)),
    "roll": (lambda m, x: m.roll(x, (1, -2), axis=(0, 2)), (X,)),
    "roll-flat": (lambda m, x: m.roll(x, 5), (X,)),
    "repeat": (lambda m, x: m.repeat(x, 2, axis=1), (X,)),
    "tile": (lambda m, x: m.tile(x, (2, 1, 1, 2)), (X,)),
    "concat": (lambda m, x: m.concat([x, x], axis=-1), (X,)),
    "concat-flat": (lambda m, x: m.concat([x, x[0]], axis=None), (X,)),
    "stack": (lambda m, x: m.stack([x, x], axis=-1), (X,)),
    "unstack": (lambda m, x: m.unstack(x, axis=1), (X,)),
    "broadcast_to": (lambda m, x: m.broadcast_to(x, (5, 2, 3, 4)), (X,)),
    "broadcast_arrays": (lambda m, x, y: m.broadcast_arrays(x, y), (X, X[0, :1])),
    "broadcast_shapes": (lambda m: m.broadcast_shapes((3, 1), (1, 4), (4,)), ()),
    "meshgrid": (lambda m, x, y: m.meshgrid(x, y, indexing="ij"), (X[0, 0], X[0, 1])),
    "tril": (lambda m, x: m.tril(x, k=1), (X,)),
    "triu": (lambda m, x: m.triu(x, k=-1), (X,)),
    "take": (lambda m, x: m.take(x, np.array([1, 0, 1]), axis=1), (X,)),
    "take_along_axis": (lambda m, x: m.take_along_axis(x, np.array([[[1], [0], [2]]] * 2), axis=2), (X,)),
    "where": (lambda m, x: m.where(x > 0, x, -1.0), (X,)),
    "clip": (lambda m, x: m.clip(x, -0.5, 0.5), (X,)),
    "clip-one-side": (lambda m, x: m.clip(x, max=0.5), (X,)),
    "nonzero": (lambda m, x: m.nonzero(x > 0), (X,)),
    "searchsorted": (lambda m, x: m.searchsorted(m.sort(x), x, side="right"), (X[0, 0],)),
    "isin": (lambda m, x: m.isin(x, x[:2], invert=True), (np.arange(5),)),
    **{
        name: (lambda m, x, name=name: getattr(m, name)(x), (np.array([2.0, 1.0, 2.0, -0.5]),))
        for name in "unique_all unique_counts unique_inverse unique_values".split()
    },
    "matmul": (lambda m, x: m.matmul(x, m.matrix_transpose(x)), (X,)),
    "matmul-vector": (lambda m, x: m.matmul(x, x[0, 0]), (X,)),
    "tensordot": (lambda m, x: m.tensordot(x, x, axes=((0, 1), (0, 1))), (X,)),
    "vecdot": (lambda m, x: m.vecdot(x, 2.0 * x, axis=1), (X,)),
    "vecdot-complex": (lambda m, x: m.vecdot(x * 1j, x + 1j), (X,)),
    **{
        f"linalg.{name}": (lambda m, x, name=name: getattr(m.linalg, name)(x), (SQUARE,))
        for name in "det inv slogdet svdvals matrix_norm vector_norm trace diagonal pinv matrix_rank matrix_transpose".split()
    },
    "linalg.cholesky": (lambda m, x: m.linalg.cholesky(x @ m.matrix_transpose(x)), (SQUARE,)),
    "linalg.cross": (lambda m, x, y: m.linalg.cross(x, y), (X[:, :, :3], X[::-1, :, 1:])),
    "linalg.eigvalsh": (lambda m, x: m.linalg.eigvalsh(x + m.matrix_transpose(x)), (SQUARE,)),
    "linalg.matrix_power": (lambda m, x: m.linalg.matrix_power(x, -3), (SQUARE,)),
    "linalg.outer": (lambda m, x: m.linalg.outer(x, x), (X[0, 0],)),
    "linalg.solve": (lambda m, x: m.linalg.solve(x, x[0, 0]), (SQUARE,)),
    "linalg.matrix_norm-nuc": (lambda m, x: m.linalg.matrix_norm(x, ord="nuc", keepdims=True), (X,)),
    **{
        f"linalg.vector_norm-{order}": (
            lambda m, x, order=order: m.linalg.vector_norm(x, axis=(0, 1), ord=order),
            (X,),
        )
        for order in (1, 3, math.inf, -math.inf)
    },
    **{
        f"fft.{name}": (lambda m, x, name=name: getattr(m.fft, name)(x), (X,))
        for name in "fft fftn rfft rfftn ihfft fftshift ifftshift".split()
    },
    **{
        f"fft.{name}": (lambda m, x, name=name: getattr(m.fft, name)(x), (X + 0j,))
        for name in "ifft ifftn irfft irfftn hfft".split()
    },
    "fft.fft-n": (lambda m, x: m.fft.fft(x, n=6, axis=0, norm="ortho"), (X,)),
    "fft.fftfreq": (lambda m: m.fft.fftfreq(5, d=0.1), ()),
    "fft.rfftfreq": (lambda m: m.fft.rfftfreq(5, d=0.1), ()),
    "astype": (lambda m, x: m.astype(x, m.float32), (X,)),
    "astype-integers": (lambda m, x: m.astype(x, m.int16), (X,)),
    "arange": (lambda m: m.arange(1, 10, 3, dtype=m.float32), ()),
    "eye": (lambda m: m.eye(3, 4, k=1, dtype=m.int8), ()),
    "full": (lambda m: m.full((2, 3), 1.5, dtype=m.float32), ()),
    "linspace": (lambda m: m.linspace(0.0, 1.0, 5, endpoint=False), ()),
    "zeros": (lambda m: m.zeros((2, 3), dtype=m.complex64), ()),
    "ones": (lambda m: m.ones(3), ()),
    "full_like": (lambda m, x: m.full_like(x, 2), (X,)),
    "zeros_like": (lambda m, x: m.zeros_like(x, dtype=m.int8), (X,)),
    "ones_like": (lambda m, x: m.ones_like(x), (X,)),
    "asarray": (lambda m, x: m.asarray(x, dtype=m.float32), (X,)),
    "index-slice": (lambda m, x: x[1:, ::-2, 0], (X,)),
    "index-newaxis": (lambda m, x: x[..., None, 1], (X,)),
    "index-mask": (lambda m, x: x[np.array([True, False])], (X,)),
    "index-arrays": (lambda m, x: x[np.array([0, 1]), np.array([2, 0])], (X,)),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    function, args = FORMS[form]
    recorded = not form.startswith(("broadcast_shapes",)) and bool(args)
    both(function, *args, recorded=recorded)
    if (
        form.partition("-")[0].removeprefix("linalg.")
        in "sum prod max min sort cumulative_sum flip reshape concat roll".split()
    ):
        both(function, *(x.astype(np.int32) for x in args))


# --- dtypes ------------------------------------------------------------------------------------------------------------

KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")
DTYPES = (np.bool_, *NUMBERS)


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_dtypes_take_scalar_types_and_dtypes(dtype: Any) -> None:
    for given in (dtype, np.dtype(dtype)):
        for kind in (*KINDS, ("bool", "integral"), np.float32, (np.int8, "real floating")):
            expected = np.isdtype(np.dtype(dtype), kind)
            assert xp.isdtype(given, kind) is bool(expected), (given, kind)
        for other in DTYPES:
            assert xp.can_cast(given, other) == np.can_cast(dtype, other)
            assert xp.result_type(given, other) == np.result_type(dtype, other)
        if np.dtype(dtype).kind in "fc":
            assert (xp.finfo(given).eps, xp.finfo(np.ones(2, dtype)).max) == (np.finfo(dtype).eps, np.finfo(dtype).max)
        if np.dtype(dtype).kind in "iu":
            assert (xp.iinfo(given).max, xp.iinfo(np.ones(2, dtype)).min) == (np.iinfo(dtype).max, np.iinfo(dtype).min)
        assert xp.astype(np.ones(2), given).dtype == dtype


def test_functions_of_dtypes_take_variables_and_numbers() -> None:
    with ox.Tape() as tape:
        x = tape.watch(np.ones(2, np.float32))
        assert xp.result_type(x, 1.0) == np.float32
        assert xp.result_type(x, np.float64) == np.result_type(x, np.float64) == np.float64
        assert xp.can_cast(x, np.float64) and not xp.can_cast(x, np.float16)
        assert xp.finfo(x).bits == 32
    assert xp.result_type(np.float32, 1j) == np.complex64
    assert xp.result_type(1.0, 2) == np.result_type(1.0, 2)
    with pytest.raises(ox.DtypeError, match="found 5, expected a dtype"):
        xp.isdtype(5, "bool")


def test_functions_of_dtypes_of_other_libraries(library: Any) -> None:
    torch, strict = library("torch"), library("array_api_strict")
    for module in (torch, strict):
        assert xp.isdtype(module.float32, "real floating") and not xp.isdtype(module.int8, module.float32)
        assert xp.result_type(module.float32, module.float64) == module.float64
        assert xp.can_cast(module.float32, module.float64) and xp.finfo(module.float32).bits == 32
        assert xp.iinfo(module.int8).max == 127
        assert xp.fft.fftfreq(4, dtype=module.float32).dtype == module.float32


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies_have_the_dtype_asked_for(name: str) -> None:
    own = getattr(xp.fft, name)(5, d=0.5, dtype=np.float32, device="cpu")
    assert own.dtype == np.float32
    np.testing.assert_array_equal(own, getattr(np.fft, name)(5, 0.5).astype(np.float32))
    with pytest.raises(ox.DtypeError, match=f"{name}: dtype is .*int8.*: expected a real"):
        getattr(xp.fft, name)(5, dtype=np.int8)


def test_methods_of_variables_that_the_standard_has() -> None:
    with ox.Tape() as tape:
        x, z = tape.watch(np.ones(2)), tape.watch(2.0)
        assert x.to_device("cpu") is x
        assert "to_device" in dir(x)
        with pytest.raises(ValueError, match="device is 'elsewhere': expected 'cpu'"):
            x.to_device("elsewhere")
        with pytest.raises(ValueError, match="device is 'elsewhere'"):
            xp.astype(x, np.float32, device="elsewhere")
        with pytest.raises(AttributeError, match="would lose its derivative"):
            np.from_dlpack(x)
        assert not hasattr(x, "__dlpack__")
        with pytest.raises(TypeError, match="into a complex number by itself"):
            complex(z)
        with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
            range(z)
    assert complex(z) == 2.0 + 0.0j
