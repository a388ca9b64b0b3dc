//! The functions of the Python layer that the core calls: handed over once, by keyword, when the package is imported. Each is a function
//! here of the same name and of a tuple of its arguments; `RuntimeError` before [`install_callbacks`] was called.

use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

static CALLBACKS: PyOnceLock<Callbacks> = PyOnceLock::new();

/// The installed callbacks.
#[inline]
fn callbacks(py: Python<'_>) -> PyResult<&Callbacks> {
    CALLBACKS.get(py).ok_or_else(|| PyRuntimeError::new_err("the callbacks of the core are not installed"))
}

/// Whether the callbacks are installed: they are not while the package is being imported.
pub fn are_installed(py: Python<'_>) -> bool {
    CALLBACKS.get(py).is_some()
}

macro_rules! callbacks {
    ($($(#[$doc:meta])+ $name:ident;)+) => {
        /// One field a callback.
        struct Callbacks {
            $($name: Py<PyAny>,)+
        }

        $(
            $(#[$doc])+
            pub fn $name<'py>(py: Python<'py>, args: impl PyCallArgs<'py>) -> PyResult<Bound<'py, PyAny>> {
                callbacks(py)?.$name.bind(py).call1(args)
            }
        )+

        impl Callbacks {
            /// Each callback with its name.
            fn named(&self) -> impl Iterator<Item = (&'static str, &Py<PyAny>)> {
                [$((stringify!($name), &self.$name)),+].into_iter()
            }
        }

        /// Installs the callbacks, each given by its name.
        ///
        /// Raises `TypeError` if one is missing, unknown or not callable, and `RuntimeError` on a second call.
        #[pyfunction]
        #[pyo3(signature = (*, $($name),+))]
        #[allow(clippy::too_many_arguments, reason = "one keyword a callback")]
        pub fn install_callbacks(py: Python<'_>, $($name: Py<PyAny>),+) -> PyResult<()> {
            install(py, Callbacks { $($name),+ })
        }
    };
}

fn install(py: Python<'_>, given: Callbacks) -> PyResult<()> {
    for (name, callback) in given.named() {
        if !callback.bind(py).is_callable() {
            let class = callback.bind(py).get_type().name()?;
            return Err(PyTypeError::new_err(format!("callback {name} is a {}: expected a callable", class.to_cow()?)));
        }
    }
    CALLBACKS.set(py, given).map_err(|_| PyRuntimeError::new_err("the callbacks of the core are installed already"))
}

callbacks! {
    /// `(primals, gradients)`: the gradients; of those of one primal that are the same array, all but the first are
    /// copied.
    copy_duplicates;
    /// `(function, args, named, x)`: NumPy's `__array_function__` protocol, of a variable.
    array_function;
    /// `(value, arrays)`: a list or tuple as an array of the library of `arrays`.
    array_of;
    /// `(name, text, arguments)`: the docstring of an elementwise function, with a section of its arguments.
    documentation;
    /// `(name)`: NumPy's ufunc of the name of an op, or None.
    numpy_ufunc;
    /// `(ufunc, method, inputs, named)`: NumPy's `__array_ufunc__` protocol.
    array_ufunc;
    /// `(value)`: an array of integers as one of the default floating-point dtype of its library; None for anything else.
    as_floats;
    /// `(x, key, value)`: the array after `x[key] = value`.
    assigned;
    /// `(x)`: the object behind `x.at`.
    at;
    /// `(x, name)`: an attribute of the array that a variable wraps, or `AttributeError`.
    attribute;
    /// `(x)`: the names of all attributes of a variable.
    attribute_names;
    /// `(x, result)`: the result of an operator that changes `x` in place, cast to the dtype of `x`.
    cast_in_place;
    /// `(a, b)`: raises for shapes that are not those of a matrix product.
    check_matmul;
    /// `(value)`: a Python complex number as NumPy's.
    complex_number;
    /// `(class)`: the attributes that hold the children of its instances, and that of a child's gradient, or `None`.
    container;
    /// `(x)`: the device of an array.
    device_of;
    /// `(x)`: the dtype of an array or a number.
    dtype_of;
    /// `(array)`: a hash of the contents of an array in host memory, or `None`.
    fingerprint;
    /// `(name, args, named, is_operator)`: an op of which an argument is of no array library; `NotImplemented` for an operator that is to be
    /// left to the other operand, or an op that takes any object.
    foreign;
    /// `(value, spec)`: a number as text.
    formatted;
    /// `(x)`: a variable as HTML.
    html;
    /// `(op, sample)`: the function of an op in the library of `sample`.
    implementation;
    /// `(tangent, y)`: a tangent, cast to the dtype of `y`.
    in_dtype;
    /// `(x, key)`: `x[key]`.
    index;
    /// `(value, cotangent)`: the validated cotangent that a replay of `value` starts from.
    initial_cotangent;
    /// `(x)`: whether the dtype of `x` is complex.
    is_complex;
    /// `(value)`: whether a value is of no array library, and no number.
    is_foreign;
    /// `()`: whether `float` is called by the operator `%` of a string.
    is_formatting;
    /// `(x)`: an iterator over the first axis.
    iterate;
    /// `(x)`: an iterator over the first axis, from its end.
    iterate_reversed;
    /// `(cotangent, tangents)`: the tangents, in the structure of the cotangent.
    like_cotangent;
    /// `(mask, g)`: the mask of a cotangent `g` as an array of truth values, true where it has zeros.
    masked_zeros;
    /// `(x)`: the transpose of each matrix of a stack.
    matrix_transpose;
    /// `(boxes, left_out)`: the diagram of a tape as Mermaid text.
    mermaid;
    /// `(api_version)`: the module behind `__array_namespace__`.
    namespace_module;
    /// `(ufunc)`: the name of the op that a ufunc computes, or `None`.
    op_of_ufunc;
    /// `(tangents, at)`: one tangent of a batch.
    part;
    /// `(tape, seeds, cotangents)`: raises `NonFiniteError` where a cotangent is NaN, with the entry where it first is.
    pulled;
    /// `(tape, number, name, variable)`: raises `NonFiniteError` where the value of a new entry is NaN.
    recorded;
    /// `(holder)`: raises `StateError` where the thread that holds a lock waits for this one.
    refuse_deadlock;
    /// `(x, digits)`: `round(x, digits)`.
    rounded;
    /// `(tangent, y, batch)`: a tangent, broadcast to the shape of `y`.
    spread;
    /// `(tangents)`: tangents as a batch.
    stack_parts;
    /// `(boxes, left_out)`: the diagram of a tape as SVG text.
    svg;
    /// `(rule, arguments)`: the program of a rule of a structured op, or `None`.
    traced;
    /// `(x)`: the axes in reverse order.
    transpose;
    /// `(cotangent, shape, dtype)`: a cotangent, summed over the axes that broadcasting added or stretched, and cast.
    unbroadcast;
    /// `(cotangent)`: a cotangent, summed to one number.
    unbroadcast_to_number;
    /// `(tape, y)`: a watched cotangent of zeros like `y`, and its variables.
    zero_cotangent;
    /// `(value, batch)`: a tangent of zeros like `value`.
    zero_tangent;
    /// `(x)`: an array of zeros like `x`.
    zeros_like;
}
