"""`sparse_jacobian` and `sparse_hessian`: matrices of derivatives in CSR, from as few products as a coloring allows."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from oxigrad import tree
from oxigrad._core import DerivativeError, ShapeError, Variable, plain, record
from oxigrad._names import check_callable
from oxigrad.autodiff.arguments import by_position, resolve
from oxigrad.autodiff.jacobians import COLUMNS, Mode, library_of, shape_of, total_size
from oxigrad.autodiff.rules.tangents import is_numeric
from oxigrad.autodiff.sparse import colorings
from oxigrad.autodiff.sparse.dependences import scipy_sparse
from oxigrad.autodiff.sparse.programs import Program
from oxigrad.autodiff.sparse.propagation import pattern_of
from oxigrad.autodiff.transforms import Argnums, Recording, grad
from oxigrad.ops.backends import device_of, dtype_of, is_array, is_batched, is_complex, namespace, to_host

# The cost of a reverse pass, one for each color of rows, in tangents of a batch.
COST_OF_REVERSE = 2.0
# The maximum number of elements of an array of a batch of tangents: a few products then fit into the processor's cache.
ELEMENTS = 1 << 18


class _Compression:
    """A pattern, and where the products of seeds hold its nonzeros."""

    def __init__(self, pattern: Any, mode: Mode, *, symmetric: bool = False) -> None:
        self.pattern = pattern
        rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
        if symmetric:
            self.is_forward, self.colors = True, colorings.star(pattern)
            line, color = colorings.star_places(pattern, self.colors)
        else:
            self.is_forward, self.colors = _cheapest(pattern, mode)
            line, color = (rows, pattern.indices) if self.is_forward else (pattern.indices, rows)
            color = self.colors[color]
        # For each nonzero, its place among the products, line by line.
        self.places = color.astype(np.intp) * pattern.shape[0 if self.is_forward else 1] + line

    @property
    def count(self) -> int:
        return colorings.count(self.colors)

    def seeds(self, chosen: np.ndarray) -> np.ndarray:
        """For each of these colors, the vector that is one at the lines of this color."""
        return (self.colors == chosen[:, None]).astype(np.float64)

    def groups(self, lengths: Sequence[int], most: int) -> list[np.ndarray]:
        """The colors in groups of at most ``most``, whose lines are in the same parts, of these lengths."""
        parts = np.split(self.colors, np.cumsum(lengths)[:-1])
        inside = np.stack([np.isin(np.arange(self.count), part) for part in parts], axis=1)
        _, group = np.unique(inside, axis=0, return_inverse=True)
        groups = [np.flatnonzero(group == each) for each in range(int(group.max(initial=-1)) + 1)]
        return [each[begin : begin + most] for each in groups for begin in range(0, len(each), most)]

    def matrix(self, products: np.ndarray) -> Any:
        """The CSR matrix, given the products with all seeds, of shape (colors, elements)."""
        parts = (products.take(self.places), self.pattern.indices.copy(), self.pattern.indptr.copy())
        return scipy_sparse().csr_array(parts, shape=self.pattern.shape)


def _cheapest(pattern: Any, mode: Mode) -> tuple[bool, np.ndarray]:
    """Whether products go forward, and the colors of columns then, of rows otherwise."""
    candidates: list[tuple[float, bool, np.ndarray]] = []
    # The nonzeros of one line differ in color: the fewest colors that there can be.
    forward = (1.0, True, int(np.diff(pattern.indptr).max(initial=0)))
    reverse = (COST_OF_REVERSE, False, int(np.bincount(pattern.indices).max(initial=0)))
    for cost, is_forward, least in sorted((forward, reverse), key=lambda each: each[0] * each[2]):
        wanted = mode is None or is_forward == (mode == "forward")
        if wanted and not (candidates and candidates[0][0] <= cost * least):
            colors = colorings.columns(pattern if is_forward else pattern.T.tocsr())
            candidates.append((cost * colorings.count(colors), is_forward, colors))
    _, is_forward, colors = min(candidates, key=lambda each: each[0])
    return is_forward, colors


class _LastCall(NamedTuple):
    """Cached results of a call: its program (None if it does not repeat), the layout, and the compression."""

    program: Program | None
    layout: list[int]
    compression: _Compression


class SparseDerivative:
    """A function that returns a Jacobian or a Hessian as `scipy.sparse.csr_array`.

    See `sparse_jacobian` and `sparse_hessian`.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        argnums: Argnums,
        *,
        of: Callable[..., Any],
        has_aux: bool,
        pattern: Any,
        mode: Mode,
    ) -> None:
        functools.update_wrapper(self, f)
        self._f, self._of, self._argnums, self._has_aux = f, of, argnums, has_aux
        self._mode: Mode = mode
        self._symmetric = of is not f
        self._name = "sparse_hessian" if self._symmetric else "sparse_jacobian"
        self._stated_compression = None if pattern is None else self._compressed(_boolean(pattern, self._name), mode)
        self._last: _LastCall | None = None

    @property
    def pattern(self) -> Any:
        """The pattern of the last call, or the user's, as a boolean `scipy.sparse.csr_array`; None before a call."""
        compression = self._compression
        return None if compression is None else compression.pattern.copy()

    @property
    def colors(self) -> np.ndarray | None:
        """The color of each column of the last call, or of each row if `by_rows`; -1 for a line without nonzeros.

        None before the first call.
        """
        compression = self._compression
        return None if compression is None else compression.colors.copy()

    @property
    def products(self) -> int:
        """The number of colors, which is the number of products of the last call. Zero before the first call."""
        compression = self._compression
        return 0 if compression is None else compression.count

    @property
    def by_rows(self) -> bool:
        """Whether rows were colored, for passes in reverse."""
        compression = self._compression
        return compression is not None and not compression.is_forward

    @property
    def _compression(self) -> _Compression | None:
        return self._stated_compression if self._last is None else self._last.compression

    def __repr__(self) -> str:
        """The function, and the sizes of its last call."""
        compression, of = self._compression, getattr(self._f, "__name__", None) or repr(self._f)
        if compression is None:
            return f"<{self._name} of {of}, not called yet>"
        rows, columns = compression.pattern.shape
        return (
            f"<{self._name} of {of}, {rows} x {columns}, {compression.pattern.nnz} nonzeros, {self.products} products>"
        )

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The matrix at these arguments; with ``has_aux``, the matrix and the auxiliary result."""
        args, named = by_position(self._f, args, named, self._argnums)
        call = Recording.of(
            _marked(self._of, self._has_aux), args, self._argnums, named=named, has_aux=self._has_aux, forward=True
        )
        results = _Results(call, self._name, only_watched=self._symmetric)
        compression = self._stated_compression or self._compression_of(call, results)
        shape = (results.rows, results.columns)
        if compression.pattern.shape != shape:
            raise ShapeError(f"{self._name}: the pattern has shape {compression.pattern.shape}, the matrix {shape}")
        if results.is_complex and not compression.is_forward:
            raise DerivativeError(f"{self._name}: the result is complex: expected mode 'forward'")
        products = (
            results.products(compression) if self._stated_compression is None else self._checked(results, compression)
        )
        matrix = compression.matrix(products)
        return (matrix, call.aux) if self._has_aux else matrix

    def _compression_of(self, call: Recording, results: "_Results") -> _Compression:
        """The compression for a call, reused if the previous call recorded the same program."""
        last, variables = self._last, call.watched.variables
        recorded = last.program if last is not None and last.layout == results.layout else None
        if last is not None and recorded is not None and recorded.is_of(call.tape, variables, len(results.variables)):
            return last.compression
        program = Program(call.tape, variables, len(results.variables))
        mode = "forward" if results.is_complex and self._mode is None else self._mode
        compression = self._compressed(results.placed(pattern_of(program)), mode)
        # User-defined functions are other objects in each call, and would keep the objects that they hold alive.
        repeats = all(name != "call" for name, _, _ in program.entries)
        program.forget_tape()
        self._last = _LastCall(program if repeats else None, results.layout, compression)
        return compression

    def _compressed(self, pattern: Any, mode: Mode) -> _Compression:
        if not self._symmetric:
            return _Compression(pattern, mode)
        if pattern.shape[0] != pattern.shape[1]:
            raise ShapeError(f"{self._name}: the pattern has shape {pattern.shape}, expected a square one")
        both = scipy_sparse().csr_array(pattern + pattern.T)
        both.sum_duplicates()
        return _Compression(both, None, symmetric=True)

    def _checked(self, results: "_Results", compression: _Compression) -> np.ndarray:
        """The products with all seeds, for a user's pattern. Raises an error if it lacks a nonzero.

        A further product with a random vector shows this.
        """
        lines = results.columns if compression.is_forward else results.rows
        probe = np.random.default_rng(0).uniform(0.5, 1.5, lines)
        with_probe = results.products(compression, probe)
        products, expected = with_probe[:-1], with_probe[-1]
        matrix = compression.matrix(products)
        matrix = matrix if compression.is_forward else matrix.T
        again, scale = matrix @ probe, abs(matrix) @ probe + np.abs(expected)
        # Far above what rounding makes of either, beside its line and beside the whole matrix.
        finite, eps = np.flatnonzero(np.isfinite(scale)), float(np.finfo(expected.dtype).eps)
        tolerance = math.sqrt(eps) * scale[finite] + 1024.0 * eps * scale[finite].max(initial=0.0)
        wrong = finite[np.abs(again[finite] - expected[finite]) > tolerance]
        if len(wrong):
            line = "row" if compression.is_forward else "column"
            raise DerivativeError(
                f"{self._name}: {line} {wrong[0]} has a nonzero outside of the pattern that was given"
            )
        return products


class _Results:
    """The results of a recorded call as rows of a matrix, whose columns are the elements of the arguments."""

    def __init__(self, call: Recording, name: str, *, only_watched: bool) -> None:
        self._call, self._inputs = call, call.watched.variables
        leaves = tree.leaves(call.value)
        chosen = _watched(call) if only_watched else [at for at, leaf in enumerate(leaves) if is_numeric(leaf)]
        self._leaves = [(leaves[at], call.outputs[at]) for at in chosen]
        #: The leaves of the result that are variables, in the order in which they were marked.
        self.variables = [output for output in call.outputs if output is not None]
        #: The number of rows of each leaf, negative for a leaf that is not a variable.
        self.layout = [_size(leaf) if variable is not None else -1 - _size(leaf) for leaf, variable in self._leaves]
        self.rows, self.columns = total_size(leaf for leaf, _ in self._leaves), total_size(self._inputs)
        for variable in self._inputs:
            if isinstance(variable.value, Variable) or is_batched(variable.value):
                raise DerivativeError(
                    f"{name}: a sparse matrix has no derivatives, and no batches: call it outside of others"
                )
            if is_complex(variable):
                raise DerivativeError(f"{name}: an argument is complex: take real and imaginary parts")
        self.is_complex = any(map(is_complex, self.variables))

    def placed(self, pattern: Any) -> Any:
        """The pattern of all variables, with empty rows for other leaves, and only the rows of chosen leaves."""
        begins = dict(zip(map(id, self.variables), np.cumsum([0, *(_size(v) for v in self.variables)]), strict=False))
        empty = pattern.shape[0]
        rows = [
            np.full(_size(leaf), empty) if variable is None else begins[id(variable)] + np.arange(_size(leaf))
            for leaf, variable in self._leaves
        ]
        at = np.concatenate(rows) if rows else np.zeros(0, np.int64)
        if np.array_equal(at, np.arange(empty)):
            return pattern
        last = scipy_sparse().csr_array((1, pattern.shape[1]), dtype=bool)
        stacked = scipy_sparse().csr_array(scipy_sparse().vstack([pattern, last], format="csr"))
        return stacked[at]

    def products(self, compression: _Compression, extra: np.ndarray | None = None) -> Any:
        """The products with all seeds of a compression, and with an extra one: an array of shape (seeds, elements)."""
        rows, columns = [_size(leaf) for leaf, _ in self._leaves], [_size(variable) for variable in self._inputs]
        lines, across = (columns, rows) if compression.is_forward else (rows, columns)
        product = self._pushed if compression.is_forward else self._pulled
        together = max(1, min(COLUMNS, ELEMENTS // max(1, *rows, *columns)))
        groups = compression.groups(lines, together) if compression.count else []
        parts = [product(compression.seeds(group)) for group in groups]
        order = np.argsort(np.concatenate(groups)) if groups else np.zeros(0, int)
        products = np.concatenate(parts)[order] if parts else np.zeros((0, sum(across)))
        return products if extra is None else np.concatenate([products, product(extra[None])])

    def _pushed(self, seeds: np.ndarray) -> np.ndarray:
        """The products of the Jacobian with tangents."""
        outputs = [output for _, output in self._leaves if output is not None]
        library, device = library_of([*self._inputs, *outputs])
        tangents = []
        for variable, part in _split(seeds, self._inputs):
            if part.any():
                dtype = library.float64 if not is_array(plain(variable)) else variable.dtype
                units = np.reshape(part, (len(seeds), *shape_of(variable)))
                tangents.append((variable, library.asarray(units, dtype=dtype, device=device)))
        pushed = iter(self._call.tape.push(tangents, outputs, len(seeds)) if tangents else ())
        rows = [
            np.zeros((len(seeds), _size(leaf)))
            if output is None or not tangents
            else np.reshape(_host(next(pushed)), (len(seeds), -1))
            for leaf, output in self._leaves
        ]
        return np.concatenate(rows, axis=1) if rows else np.zeros((len(seeds), 0))

    def _pulled(self, seeds: np.ndarray) -> np.ndarray:
        """The products of cotangents with the Jacobian, a pass for each."""
        rows = []
        for seed in seeds:
            parts = zip(self._leaves, _split(seed[None], [leaf for leaf, _ in self._leaves]), strict=True)
            cotangents = [(output, _cotangent(part, output)) for (_, output), (_, part) in parts if output is not None]
            pulled = self._call.tape.pull(cotangents, self._inputs)
            rows.append(np.concatenate([np.ravel(_host(each)) for each in pulled]))
        return np.stack(rows)


def sparse_jacobian(
    f: Callable[..., Any],
    argnums: Argnums | None = None,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    pattern: Any = None,
    mode: Mode = None,
) -> SparseDerivative:
    """A function that returns the Jacobian of ``f`` as a `scipy.sparse.csr_array`, at the cost of a few products.

    Args:
        f: function to differentiate; its arguments and results are arrays, numbers or trees of them.
        argnums: position of the argument to differentiate, or a tuple of positions; the first argument by default.
        has_aux: whether ``f`` returns a pair ``(value, aux)``, whose second item is passed through.
        argnames: name of the parameter to differentiate, or several names, instead of ``argnums``.
        pattern: known sparsity pattern, a sparse matrix or a boolean array; None detects it.
        mode: direction of replay: "forward", "reverse", or None for the cheaper one.

    Rows are the elements of the result of ``f``, columns the elements of the argument, or of all arguments,
    concatenated, if ``argnums`` is a tuple; ``argnames`` names parameters instead. Trees are flattened leaf by leaf, in
    the order of `oxigrad.tree.leaves`, arrays in C order. Leaves that are not differentiated have no column, and
    constant results have rows of zeros.

    The pattern is derived from the operations that the call recorded. It holds every place where they can give a
    nonzero, for any values of the arguments and the same operations; its zeros are stored. Columns that share no row
    get one color and one tangent; all tangents are pushed forward together (``mode="forward"``). "reverse" colors rows,
    with a reverse pass for each color; None chooses the cheaper mode. Pattern and colors are computed again if a call
    records other operations, shapes, indices, or zeros of constant factors. The function has the attributes
    ``pattern``, ``colors``, ``products`` (their number) and ``by_rows`` of its last call.

    ``pattern``, a sparse matrix or a boolean array, saves the search: it must hold all nonzeros. A random product is
    compared with the matrix's product, and `DerivativeError` raised if a nonzero is missing.

    A function with a user-defined rule (`oxigrad.custom_vjp`), and a checkpoint, is assumed to depend on all its
    arguments. Raises `ImportError` without SciPy, `ShapeError` if ``pattern`` has another shape than the matrix,
    `DerivativeError` for complex arguments and inside of other transforms, and as `oxigrad.jacobian`.

    >>> import numpy as np
    >>> f = sparse_jacobian(lambda x: x[1:] ** 2 - x[:-1])
    >>> f(np.array([1.0, 2.0, 3.0, 4.0])).toarray()
    array([[-1.,  4.,  0.,  0.],
           [ 0., -1.,  6.,  0.],
           [ 0.,  0., -1.,  8.]])
    >>> f.colors
    array([0, 1, 0, 1])
    """
    if mode not in ("forward", "reverse", None):
        raise ValueError(f"mode is {mode!r}: expected 'forward', 'reverse' or None")
    check_callable(f, "sparse_jacobian")
    f, argnums = resolve(f, argnums, argnames)
    return SparseDerivative(f, argnums, of=f, has_aux=has_aux, pattern=pattern, mode=mode)


def sparse_hessian(
    f: Callable[..., Any],
    argnums: Argnums | None = None,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    pattern: Any = None,
) -> SparseDerivative:
    """A function that returns the Hessian of the scalar function ``f`` as a symmetric `scipy.sparse.csr_array`.

    Args:
        f: scalar function of arrays, numbers or trees of them.
        argnums: position of the argument to differentiate, or a tuple of positions; the first argument by default.
        has_aux: whether ``f`` returns a pair ``(value, aux)``, whose second item is passed through.
        argnames: name of the parameter to differentiate, or several names, instead of ``argnums``.
        pattern: known sparsity pattern, a sparse matrix or a boolean array; None detects it.

    Rows and columns are the elements of the argument, as the columns of `sparse_jacobian`. The pattern is derived from
    the operations of the gradient. A star coloring uses its symmetry: an arrow matrix takes two products with the
    Hessian, and a chain three. Other arguments, attributes and errors are as in `sparse_jacobian`.

    >>> import numpy as np
    >>> f = sparse_hessian(lambda x: np.sum(x[0] * x[1:] ** 2))
    >>> f(np.array([1.0, 2.0, 3.0])).toarray()
    array([[0., 4., 6.],
           [4., 2., 0.],
           [6., 0., 2.]])
    """
    check_callable(f, "sparse_hessian")
    f, argnums = resolve(f, argnums, argnames)
    gradient = grad(f, argnums, has_aux)
    return SparseDerivative(f, argnums, of=gradient, has_aux=has_aux, pattern=pattern, mode=None)


def _marked(f: Callable[..., Any], has_aux: bool) -> Callable[..., Any]:
    """The function ``f``, with an entry for each variable of its result at the end of the tape."""

    def marked(*args: Any, **named: Any) -> Any:
        result = f(*args, **named)
        is_pair = has_aux and isinstance(result, tuple) and len(result) == 2
        value, *rest = result if is_pair else (result,)
        leaves, structure = tree.flatten(value)
        value = tree.unflatten(structure, [_mark(leaf) if isinstance(leaf, Variable) else leaf for leaf in leaves])
        return (value, *rest) if is_pair else value

    return marked


def _mark(leaf: Variable) -> Any:
    return record("positive", [leaf])


def _boolean(pattern: Any, name: str) -> Any:
    """A pattern that the user gave, as a boolean CSR matrix."""
    sparse = scipy_sparse()
    if not sparse.issparse(pattern):
        pattern = np.asarray(pattern)
        if pattern.ndim != 2 or pattern.dtype.kind not in "biuf":
            raise ShapeError(f"{name}: pattern has shape {pattern.shape}: expected a matrix")
    matrix = sparse.csr_array(pattern, dtype=bool, copy=True)
    matrix.sum_duplicates()
    matrix.data[:] = True  # stored zeros are places too
    return matrix


def _watched(call: Recording) -> list[int]:
    """The positions of variables among the leaves of a gradient."""
    positions, begin = [], 0
    for each in call.watched.structures:
        count, chosen = (1, [0]) if each is None else (len(each[0]), each[1])
        positions += [begin + at for at in chosen]
        begin += count
    return positions


def _size(value: Any) -> int:
    return math.prod(shape_of(value))


def _split(seeds: np.ndarray, values: Sequence[Any]) -> list[tuple[Any, np.ndarray]]:
    """The columns of each value."""
    ends = np.cumsum([_size(value) for value in values])
    return list(zip(values, np.split(seeds, ends[:-1], axis=1) if len(ends) else [], strict=True))


def _cotangent(part: np.ndarray, value: Variable) -> Any:
    """A row of seeds in the shape, library, dtype and device of a variable."""
    bare = plain(value)
    if not is_array(bare):
        return float(part[0, 0])
    seeds = np.reshape(part, tuple(value.shape))
    return namespace(bare).asarray(seeds, dtype=dtype_of(bare), device=device_of(bare))


def _host(value: Any) -> np.ndarray:
    return np.asarray(to_host(value) if is_array(value) else value)
