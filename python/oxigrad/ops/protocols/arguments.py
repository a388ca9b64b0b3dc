"""The sentences on the arguments of functions of `oxigrad.xp`, and the sections that docstrings get from them.

A row of a function comes before one of its namespace, and that before one of "xp". "*" is for all other arguments of a
namespace.
"""

import inspect
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from oxigrad._names import is_ours

SENTENCES: dict[str, dict[str, str]] = {
    "xp": {
        "x": "Array, number or variable on which the function works.",
        "x1": "First operand; elementwise functions broadcast it with the second one.",
        "x2": "Second operand; elementwise functions broadcast it with the first one.",
        "axis": "Axis along which the function works, or several axes; negative numbers count from the last axis.",
        "axes": "Axes on which the function works, in their order; negative numbers count from the last axis.",
        "axis1": "First of the two axes.",
        "axis2": "Second of the two axes.",
        "keepdims": "Whether the result keeps the reduced axes, with size 1.",
        "dtype": "Dtype of the result; None takes the dtype that the standard prescribes.",
        "device": "Device of the result; None takes the device of the arguments, or the default device.",
        "copy": "Whether to copy: True always does, False never does or raises an error, None copies if necessary.",
        "arrays": "Arrays, numbers or variables, which are recorded.",
        "arrs": "Matrices, numbers or variables, which are recorded.",
        "shape": "Shape of the result, an integer or a tuple of integers.",
        "shapes": "Shapes that are broadcast with each other, tuples of integers.",
        "where": "Boolean array that selects the elements to include; it broadcasts with ``x``.",
        "initial": "Value with which the reduction begins.",
        "offset": "Diagonal: 0 is the main one, positive numbers are above it.",
        "order": 'Order of the elements: "C" counts the last axis fastest, "F" the first one.',
        "sections": "Number of equal parts, or the indices at which the array is cut.",
        "start": "First number of the sequence.",
        "stop": "End of the sequence, which is excluded unless the function says otherwise.",
        "step": "Distance of neighbouring numbers.",
        "num": "Number of elements of the result.",
        "endpoint": "Whether the end of the interval is the last number.",
        "shift": "Number of places by which elements move, for each axis.",
        "k": "Diagonal: 0 is the main one, positive numbers are above it.",
        "n_rows": "Number of rows of the result.",
        "n_cols": "Number of columns of the result; None takes the number of rows.",
        "fill_value": "Number with which the result is filled.",
        "descending": "Whether the largest element comes first.",
        "stable": "Whether equal elements keep their order.",
        "include_initial": "Whether the result begins with the initial value, and is one element longer.",
        "casting": 'Casts that are allowed, by NumPy\'s names, such as "same_kind".',
        "tol": "Tolerance: in units of machine epsilon if above 1, absolute otherwise.",
        "side": 'Place among equal elements: "left" of them or "right" of them.',
        "sorter": "Indices that sort the array, if it is not sorted.",
        "correction": "Number that is subtracted from the count: 0 for the population, 1 for a sample.",
        "indices": "Indices of the elements to take, integers.",
        "obj": "Array, number, variable or nested sequence of them, which becomes an array.",
        "from_": "Array or dtype that is to be cast.",
        "to": "Dtype after the cast.",
        "min": "Lower bound of the result, a number or an array; None is no bound.",
        "max": "Upper bound of the result, a number or an array; None is no bound.",
        "n": "Number of times that the function is applied.",
        "prepend": "Values before the first element, along the axis.",
        "append": "Values after the last element, along the axis.",
        "subscripts": 'Labels of the axes of each operand and of the result, such as "ij,jk->ik".',
        "operands": "Arrays to multiply and sum, one for each group of labels.",
        "optimize": "Order of contraction, as in NumPy: a flag, a name or a path.",
        "f": "Values of the function on a grid, an array.",
        "spacing": "Distances of the grid, or its coordinates, for each axis.",
        "edge_order": "Order of the differences at the boundaries, 1 or 2.",
        "kind": 'Kind of dtype, such as "real floating", or a tuple of kinds.',
        "invert": "Whether to negate the result.",
        "indexing": 'Order of the first two axes: "xy" for plots or "ij" for matrices.',
        "source": "Axes before the move.",
        "destination": "Places of these axes after the move.",
        "nan": "Number that replaces NaN.",
        "posinf": "Number that replaces infinity; None takes the largest number of the dtype.",
        "neginf": "Number that replaces negative infinity; None takes the lowest number of the dtype.",
        "pad_width": "Numbers of elements that are added before and after each axis.",
        "constant_values": 'Values of the border, for the mode "constant".',
        "stat_length": "Number of elements at the edge whose statistic fills the border; None takes all.",
        "end_values": 'Values at the outer end of the border, for the mode "linear_ramp".',
        "reflect_type": 'Kind of reflection, "even" or "odd".',
        "kth": "Index of the element that is at its sorted place afterwards.",
        "repeats": "Number of repetitions, for all elements or for each one.",
        "repetitions": "Number of repetitions along each axis.",
        "arrays_and_dtypes": "Arrays, numbers and dtypes, whose common dtype is returned.",
        "condition": "Boolean array that selects elements of ``x1`` where it is true.",
        "type": "Dtype, or an array with this dtype.",
        "z": "Complex array, number or variable on which the function works.",
        "v": "Vector for the diagonal, or matrix whose diagonal is taken.",
        "out": "Array to which the result is also written; variables cannot be written to plain arrays.",
    },
    "xp.pad": {
        "mode": 'Values of the border: "constant", "edge", "reflect", "wrap" or another mode of NumPy.',
    },
    "xp.convolve": {
        "mode": 'Part of the result: "full", "same" or "valid".',
    },
    "xp.rot90": {
        "k": "Number of quarter turns, from the first axis towards the second.",
    },
    "xp.swapaxes": {
        "axis1": "Axis that trades places with the other one.",
    },
    "xp.finfo": {
        "type": "Floating-point dtype, or an array with this dtype.",
    },
    "xp.searchsorted": {
        "x1": "Sorted vector in which places are searched.",
        "x2": "Values whose places are searched, an array or number.",
    },
    "xp.isin": {
        "x1": "Elements that are looked up, an array or number.",
        "x2": "Elements to compare with, an array or number.",
    },
    "xp.tensordot": {
        "x1": "First operand, an array, which is recorded.",
        "x2": "Second operand, an array, which is recorded.",
        "axes": "Number of axes to sum over, or two sequences of axes, one for each operand.",
    },
    "xp.linspace": {
        "stop": "Last number of the sequence, or the end that ``endpoint`` excludes.",
    },
    "xp.rollaxis": {
        "start": "Place before which the axis is moved.",
    },
    "xp.linalg": {
        "x1": "First operand: a matrix, a vector, or a stack of them.",
        "x2": "Second operand: a matrix, a vector, or a stack of them.",
        "x": "Matrix or stack of matrices in the last two axes, or a vector; it is recorded.",
        "a": "Matrix, which is recorded; some functions also take stacks of matrices.",
        "A": "Square matrix, which is recorded; some functions also take stacks of matrices.",
        "b": "Right-hand side or second matrix, which is recorded.",
        "mode": 'Form of the result: "reduced" or "complete".',
        "axes": "Number of axes to sum over, or the axes to bring to the end.",
        "n": "Exponent, an integer; negative ones invert the matrix.",
        "p": "Order of the norm, as in ``norm``; None takes the spectral norm.",
        "check_finite": "Whether to raise an error for infinite or NaN elements, as in SciPy.",
        "overwrite_a": "Accepted as in SciPy; no argument is overwritten.",
        "overwrite_b": "Accepted as in SciPy; no argument is overwritten.",
        "overwrite_ab": "Accepted as in SciPy; no argument is overwritten.",
        "method": "Algorithm, by SciPy's names; None lets the function choose.",
        "c": "First column of the matrix, a vector.",
        "r": "Last or first row of the matrix, a vector; None derives it from the column.",
        "q": "Matrix of the right-hand side of the equation.",
        "t": "Exponent, a real number.",
        "lower": "Whether the lower triangle is read, or returned.",
        "upper": "Whether the result is the upper triangular factor.",
        "ord": 'Order of the norm: a number, infinity, "fro" or "nuc".',
        "rtol": "Relative tolerance below which singular values count as zero.",
        "rcond": "Relative tolerance below which singular values count as zero.",
        "disp": "Accepted as in SciPy: False also returns an estimate of the error.",
        "trans": "System to solve: 0 for the matrix, 1 for its transpose, 2 for its adjoint.",
        "ab": "Band of the matrix: a row for each diagonal.",
        "side": 'Side of the symmetric factor: "right" or "left".',
        "c_and_lower": "Factor and flag that ``cho_factor`` returned.",
        "E": "Direction of the derivative, a matrix like ``A``.",
        "compute_expm": "Whether to return the exponential too.",
        "permute_l": "Whether to multiply the permutation with L.",
        "p_indices": "Whether to return the permutation as indices.",
        "lu_and_piv": "Factors and pivots that ``lu_factor`` returned.",
        "l_and_u": "Numbers of diagonals below and above the main one.",
        "c_or_cr": "First column of the matrix, or a pair of column and row.",
        "unit_diagonal": "Whether the diagonal counts as ones, and is not read.",
        "blocksize": "Accepted as in SciPy: the size of blocks in its algorithm.",
        "full_matrices": "Whether the factors are square, with as many vectors as the space has dimensions.",
        "ind": "Number of axes that form the rows of the matrix.",
    },
    "xp.linalg.tensordot": {
        "x1": "First operand, an array, which is recorded.",
        "x2": "Second operand, an array, which is recorded.",
        "axes": "Number of axes to sum over, or two sequences of axes, one for each operand.",
    },
    "xp.fft": {
        "x": "Array to transform, which is recorded.",
        "n": "Length of the transform; the array is cut or padded with zeros.",
        "s": "Lengths of the transform, for each axis; the array is cut or padded with zeros.",
        "norm": 'Normalization: "backward", "ortho" or "forward".',
        "type": "Type of the transform, from 1 to 4.",
        "overwrite_x": "Accepted as in SciPy; no argument is overwritten.",
        "a": "Values at equal steps of the logarithm, along the last axis.",
        "A": "Values at equal steps of the logarithm, along the last axis.",
        "dln": "Step of the logarithm.",
        "mu": "Order of the Bessel function of the transform.",
        "offset": "Logarithm of the product of the central places of the two sequences.",
        "bias": "Exponent of the power law by which the values are divided before the transform.",
        "plan": "Accepted as in SciPy, without effect.",
        "workers": "Accepted as in SciPy: the number of its threads.",
        "orthogonalize": 'Whether the variant is orthogonal; None means yes for the norm "ortho".',
        "d": "Distance of the samples.",
    },
    "xp.fft.fftfreq": {
        "n": "Number of samples of the transform.",
    },
    "xp.fft.rfftfreq": {
        "n": "Number of samples of the transform.",
    },
    "xp.special": {
        "x": "Point at which the function is evaluated; an array is evaluated element by element.",
        "axis": "Axis over which the function sums; None means all axes.",
        "exact": "Accepted as in SciPy: whether integers are computed without rounding.",
        "repetition": "Whether elements may be chosen repeatedly.",
        "extend": 'Values at negative arguments: "zero" or "complex", as in SciPy.',
        "keepdims": "Whether the result keeps the reduced axes, with size 1.",
        "return_sign": "Whether to return the sign of the sum too.",
        "tol": "Tolerance of the iteration, as in SciPy.",
        "out": "Accepted as in SciPy; variables cannot be written to plain arrays.",
        "kwargs": "Further arguments of SciPy's function, by keyword.",
        "*": "Argument of the formula under SciPy's name: a number or an array that broadcasts with the others.",
    },
    "xp.signal": {
        "x": "Signal to filter, an array, which is recorded.",
        "in1": "First signal, which is recorded.",
        "in2": "Second signal, with as many axes as the first one; it is recorded.",
        "mode": 'Part of the result: "full", "valid" or "same".',
        "method": 'Algorithm: "direct", "fft" or "auto".',
        "boundary": 'Values beyond the edges: "fill", "wrap" or "symm".',
        "fillvalue": 'Value beyond the edges, for the boundary "fill".',
        "b": "Coefficients of the numerator of the filter.",
        "a": "Coefficients of the denominator of the filter.",
        "zi": "State of the filter at the beginning; None begins with zeros and returns no state.",
        "data": "Signal to detrend, an array, which is recorded.",
        "type": 'Trend that is removed: "linear" or "constant".',
        "bp": "Indices at which a new trend begins.",
        "overwrite_data": "Accepted as in SciPy; no argument is overwritten.",
        "padtype": 'Extension at the ends: "odd", "even", "constant" or None.',
        "padlen": "Number of elements by which each end is extended.",
        "irlen": 'Length of the filter\'s response, for the method "gust".',
        "N": "Length of the transform; None takes the length of the signal.",
        "num": "Number of samples of the result.",
        "t": "Places of the samples; with them, the new places are returned too.",
        "window": "Window that is applied in the frequency domain, as in SciPy.",
        "domain": 'Domain of the signal, "time" or "freq".',
        "window_length": "Number of samples of the window, odd for most modes.",
        "polyorder": "Degree of the fitted polynomials.",
        "deriv": "Order of the derivative that is computed.",
        "delta": "Distance of the samples, for derivatives.",
        "cval": 'Value beyond the edges, for the mode "constant".',
        "sos": "Second-order sections, an array of shape (sections, 6).",
        "h": "Coefficients of the filter, a vector.",
        "up": "Factor by which the signal is upsampled.",
        "down": "Factor by which the result is downsampled.",
    },
    "xp.signal.filtfilt": {
        "method": 'Treatment of the ends: "pad" or "gust".',
    },
    "xp.signal.savgol_filter": {
        "mode": 'Treatment of the ends: "interp", "mirror", "nearest", "constant" or "wrap".',
    },
    "xp.signal.upfirdn": {
        "mode": 'Values beyond the ends, by SciPy\'s names, such as "constant".',
    },
    "xp.ndimage": {
        "input": "Image, an array of any number of axes, which is recorded.",
        "output": "Dtype of the result, or an array to which it is also written; None takes the input's dtype.",
        "mode": 'Values beyond the borders: "reflect", "constant", "nearest", "mirror" or "wrap".',
        "cval": 'Value beyond the borders, for the mode "constant".',
        "origin": "Shift of the window, for all axes or for each one.",
        "size": "Size of the window, for all axes or for each one.",
        "footprint": "Boolean array that selects elements of the window.",
        "structure": "Array that is added to the window before the extremum is taken.",
        "sigma": "Standard deviation of the Gaussian, for all axes or for each one.",
        "order": "Degree of the splines, from 0 to 5.",
        "prefilter": "Whether to compute spline coefficients first.",
        "weights": "Weights of the window, which are recorded.",
        "n": "Length of the real transform; a negative number means a complex one.",
        "shift": "Distance by which the image moves, for all axes or for each one.",
        "labels": "Integers that assign elements to regions; None is one region.",
        "index": "Labels of the regions to reduce; None is all elements that have a label.",
        "truncate": "Radius of the window, in standard deviations.",
        "radius": "Radius of the window; None derives it from ``truncate``.",
        "matrix": "Matrix that maps coordinates of the result to coordinates of the input.",
        "offset": "Vector that is added to the mapped coordinates.",
        "output_shape": "Shape of the result; None takes the input's shape.",
        "coordinates": "Coordinates of the samples, one row for each axis of the image.",
        "percentile": "Percentile of the window, from -100 to 100.",
        "rank": "Place of the element in the sorted window; -1 is the largest.",
        "angle": "Angle of the rotation, in degrees.",
        "reshape": "Whether the result is large enough for the whole rotated image.",
        "zoom": "Factor of the sizes, for all axes or for each one.",
        "grid_mode": "Whether sizes count whole pixels, and not the distances of their centres.",
        "kwargs": "Further arguments of the Gaussian filter, by keyword.",
    },
    "xp.ndimage.gaussian_filter": {
        "order": "Order of the derivative of the Gaussian, for all axes or for each one; 0 smooths.",
    },
    "xp.ndimage.gaussian_filter1d": {
        "order": "Order of the derivative of the Gaussian; 0 smooths.",
    },
    "xp.spatial.distance": {
        "XA": "Points, one in each row, which are recorded.",
        "XB": "Points, one in each row, which are recorded.",
        "X": "Points, one in each row, which are recorded.",
        "metric": 'Distance by SciPy\'s name, such as "euclidean".',
        "kwargs": "Parameters of the distance, by keyword.",
    },
    "xp.integrate": {
        "y": "Values of the function at the samples, which are recorded.",
        "x": "Places of the samples, which are recorded; None means equal distances.",
        "dx": "Distance of the samples, where ``x`` is None.",
        "initial": "Value with which the result begins, one element longer; None leaves it out.",
        "func": "Function to integrate; its variables are recorded.",
        "fun": "Right-hand side ``fun(t, y, *args)`` of the differential equation.",
        "a": "Lower limit, which is recorded.",
        "b": "Upper limit, which is recorded.",
        "args": "Further arguments of the function, a tuple, which are recorded.",
        "y0": "Initial value, which is recorded.",
        "t": "Times at which the solution is returned; the first one is the initial time.",
        "t_span": "First and last time, which are recorded.",
        "t_eval": "Times at which the solution is returned; None takes the solver's steps.",
        "method": 'Solver of SciPy, such as "RK45" or "Radau".',
        "dense_output": "Whether to return a continuous solution too.",
        "events": "Functions whose zeros are found, as in SciPy.",
        "vectorized": "Whether the function takes several states at once, as in SciPy.",
        "options": "Further options of the solver, by keyword, such as ``rtol``.",
        "rtol": "Relative tolerance of the solver.",
        "atol": "Absolute tolerance of the solver.",
        "tfirst": "Whether the time is the first argument of the function.",
        "full_output": "Whether to return SciPy's report too.",
        "epsabs": "Absolute tolerance of the integral.",
        "epsrel": "Relative tolerance of the integral.",
        "limit": "Largest number of intervals.",
        "points": "Places within the limits where the function is not smooth.",
        "*": "Option of SciPy's function of this name, with its meaning there.",
    },
    "xp.interpolate": {
        "x": "Places of the samples, in increasing order.",
        "y": "Values at the samples, which are recorded.",
        "t": "Knots of the spline; None chooses them.",
        "k": "Degree of the spline.",
        "bc_type": "Conditions at the ends, as in SciPy.",
        "axis": "Axis of the samples in the values.",
        "check_finite": "Whether to raise an error for infinite or NaN elements, as in SciPy.",
    },
}


def rows(place: str, name: str, parameters: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """The parameters of a function in a namespace such as "xp.fft" that have a row, each with its group and its key."""
    for parameter in parameters:
        keys = ((f"{place}.{name}", parameter), (place, parameter), (place, "*"), ("xp", parameter))
        for group, key in keys:
            if key in SENTENCES.get(group, ()):
                yield parameter, group, key
                break


def documentation(place: str, name: str, text: str, parameters: Iterable[str]) -> str:
    """A docstring with a section of arguments after its first paragraph."""
    lines = [f"    {parameter}: {SENTENCES[group][key]}" for parameter, group, key in rows(place, name, parameters)]
    if not lines or "\nArgs:\n" in text:
        return text
    first, *further = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join([first, "\n".join(["Args:", *lines]), *further])


def document(place: str, namespace: Any, names: Iterable[str]) -> None:
    """Adds the section to the docstrings of the functions with these names, but for texts of NumPy."""
    for name in names:
        function = getattr(namespace, name, None)
        if not isinstance(function, FunctionType) or not is_ours(function):
            continue
        if (text := function.__doc__) and text != getattr(getattr(np, name, None), "__doc__", None):
            function.__doc__ = documentation(place, name, text, parameters(function))


def parameters(function: Any) -> Iterable[str]:
    """The names of the parameters of a function; `inspect.signature` takes longer."""
    if hasattr(function, "__signature__"):
        return function.__signature__.parameters
    code = inspect.unwrap(function).__code__
    number = code.co_argcount + code.co_kwonlyargcount
    return code.co_varnames[
        : number + bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    ]
