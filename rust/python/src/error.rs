//! The core's errors as Python exceptions: one class a variant.

use std::sync::{Mutex, MutexGuard, PoisonError};

use oxigrad_core::error::Error;
use pyo3::exceptions::{
    PyArithmeticError, PyAttributeError, PyBufferError, PyLookupError, PyRecursionError, PyRuntimeError, PyTypeError,
    PyValueError,
};
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::type_object::PyTypeInfo;
use pyo3::types::{PyList, PyTuple};

/// The signature `(*args)`, which `inspect.signature` does not find on exceptions.
fn any_arguments(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let inspect = py.import("inspect")?;
    let class = inspect.getattr("Parameter")?;
    let args = class.call1(("args", class.getattr("VAR_POSITIONAL")?))?;
    inspect.getattr("Signature")?.call1(([args],))
}

macro_rules! exceptions {
    ($($variant:ident $class:ident $base:ident $doc:literal;)*) => {
        $(pyo3::create_exception!(oxigrad, $class, $base, $doc);)*

        /// Adds every exception class to the module.
        pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
            let signature = any_arguments(module.py())?;
            $(
                let class = module.py().get_type::<$class>();
                class.setattr("__signature__", &signature)?;
                module.add(stringify!($class), class)?;
            )*
            register_panics(module)
        }

        /// The core's error as a Python exception.
        pub fn to_python(error: &Error) -> PyErr {
            match error { $(Error::$variant(message) => $class::new_err(message.clone())),* }
        }
    };
}

/// Raises a panic as an `Exception`: `PyO3`'s own `PanicException` is a `BaseException`.
fn register_panics(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let class = py.get_type::<PanicException>();
    class.setattr("__bases__", (py.get_type::<PyRuntimeError>(),))?;
    class.setattr("__name__", "InternalError")?;
    class.setattr("__qualname__", "InternalError")?;
    class.setattr("__module__", "oxigrad")?;
    class.setattr("__signature__", any_arguments(py)?)?;
    class.setattr(
        "__doc__",
        "An internal error of oxigrad: no input should cause it. Please report it, with the program and the message.",
    )?;
    module.add("InternalError", class)
}

exceptions! {
    KeyPath KeyPathError PyLookupError
        "A key path names nothing in this tree, or cannot be parsed. `oxigrad.tree.key_paths(tree)` lists the paths that there are.";
    Structure StructureError PyValueError
        "Trees differ in structure, or a model cannot be used as it is: it has no parameters, a cycle, or a container that cannot be changed.\n\nGive gradients and states the structure of the model; take the tree that `update` returns where a container is immutable.";
    Shape ShapeError PyValueError
        "An array has another shape than the one that is expected; the message names the place and both shapes.";
    Dtype DtypeError PyTypeError
        "An array has another dtype than the one that is expected, or one that cannot be differentiated or updated.\n\nConvert it, as by `xp.astype`: parameters and what is differentiated are of floating-point dtype.";
    Alias AliasError PyValueError
        "Different arrays of one step share memory, and one of them would be written.\n\nGive each parameter a separate array. The same array at both places is one parameter.";
    Memory ArrayMemoryError PyValueError
        "The memory of an array cannot be used: it is read-only, not in the place that is expected, or has changed since a view of it was taken.\n\nPass a copy, or take the view after the change.";
    Rule RuleError PyTypeError
        "An update rule or a derivative rule is invalid, or a method does not apply to this optimizer. The message says what to call or write instead.";
    TapeEnded TapeEndedError PyRuntimeError
        "A variable is used after its tape has ended, as one that a differentiated function has stored, or a tape after its release.\n\nReturn values from the function, by `has_aux` those that are not differentiated; `oxigrad.stop_gradient` gives the plain value.";
    TapeThread TapeThreadError PyRuntimeError
        "A variable is used on another thread than its tape. Open a tape, or call the transform, on each thread.";
    Derivative DerivativeError PyTypeError
        "A derivative is asked for that does not exist, or that oxigrad does not have.\n\nUse another function, `oxigrad.stop_gradient` on the argument, or a rule of your own by `oxigrad.define_vjp`.";
    NonFinite NonFiniteError PyArithmeticError
        "A value, a gradient or a derivative has infinities or NaN, where the caller has asked for an error: `nonfinite=\"raise\"`, or `oxigrad.debug_nans`.\n\nThe parameters are unchanged: the step may be left out, or repeated with another batch or learning rate.";
    State StateError PyValueError
        "A saved state is damaged, or does not match the optimizer that loads it. Nothing is changed.\n\nLoad it into an optimizer of the same configuration (`from_config`), or by `strict=False` what matches.";
}

/// The core's results as Python's.
pub trait IntoPython<T> {
    /// Maps the error.
    fn python(self) -> PyResult<T>;
}

impl<T> IntoPython<T> for oxigrad_core::error::Result<T> {
    fn python(self) -> PyResult<T> {
        self.map_err(|error| to_python(&error))
    }
}

/// The result, or `None` if the error is of the expected class. Any other error, such as an interrupt, is returned.
pub fn unless<E: PyTypeInfo, T>(py: Python<'_>, result: PyResult<T>) -> PyResult<Option<T>> {
    match result {
        Err(error) if error.is_instance_of::<E>(py) => Ok(None),
        result => result.map(Some),
    }
}

/// The result, or `None` if an object refuses to share its memory with one of the errors that exporters raise for this.
pub fn unless_refused<T>(py: Python<'_>, result: PyResult<T>) -> PyResult<Option<T>> {
    match result {
        Err(error) if is_refusal(py, &error) => Ok(None),
        result => result.map(Some),
    }
}

fn is_refusal(py: Python<'_>, error: &PyErr) -> bool {
    (error.is_instance_of::<PyBufferError>(py)
        || error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyAttributeError>(py)
        || error.is_instance_of::<PyRuntimeError>(py))
        && !error.is_instance_of::<PyRecursionError>(py)
}

/// The contents of a mutex, also where a thread that had it locked panicked. While it is locked, nothing of Python's may be called or
/// dropped: another thread may wait for the lock.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the contents of a mutex; the former ones are dropped after the lock.
pub fn set_locked<T>(mutex: &Mutex<T>, contents: T) {
    let before = std::mem::replace(&mut *locked(mutex), contents);
    drop(before);
}

/// The items of an iterable. Unlike `collect`, this does not ask for a length first, whose errors would be lost.
pub fn items<'py>(iterable: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut found = Vec::new();
    for item in iterable.try_iter()? {
        found.push(item?);
    }
    Ok(found)
}

/// The items of a list or a tuple, as an argument. `PyO3`'s own `Vec` asks any sequence for its length, drops the
/// error, and takes as much memory as that says.
pub struct Items<'py>(pub Vec<Bound<'py, PyAny>>);

impl<'py> FromPyObject<'_, 'py> for Items<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(list) = given.cast::<PyList>() {
            return Ok(Self(list.iter().collect()));
        }
        if let Ok(tuple) = given.cast::<PyTuple>() {
            return Ok(Self(tuple.iter().collect()));
        }
        let class = given.get_type().name()?;
        Err(PyTypeError::new_err(format!("expected a list or a tuple, found {}", class.to_cow()?)))
    }
}
