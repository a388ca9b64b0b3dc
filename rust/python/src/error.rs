//! The core's errors as Python exceptions: one class a variant.

use oxigrad_core::error::Error;
use pyo3::exceptions::{PyArithmeticError, PyLookupError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::panic::PanicException;
use pyo3::prelude::*;

/// The signature `(*args)`, which `inspect.signature` does not find on exceptions by itself.
fn any_arguments(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let inspect = py.import("inspect")?;
    let class = inspect.getattr("Parameter")?;
    let args = class.call1(("args", class.getattr("VAR_POSITIONAL")?))?;
    inspect.getattr("Signature")?.call1(([args],))
}

macro_rules! exceptions {
    ($($variant:ident $class:ident $base:ident;)*) => {
        mod class {
            #![allow(missing_docs, reason = "the macro of pyo3 writes them")]
            use super::*;
            $(pyo3::create_exception!(oxigrad, $class, $base);)*
        }

        /// Adds every exception class to the module.
        pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
            let signature = any_arguments(module.py())?;
            $(
                let class = module.py().get_type::<class::$class>();
                class.setattr("__signature__", &signature)?;
                module.add(stringify!($class), class)?;
            )*
            register_panics(module)
        }

        /// The core's error as a Python exception.
        pub fn to_python(error: &Error) -> PyErr {
            match error { $(Error::$variant(message) => class::$class::new_err(message.clone())),* }
        }
    };
}

/// Makes a panic, which `PyO3` raises as an exception that is no `Exception`, one that `except Exception` catches.
fn register_panics(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let class = py.get_type::<PanicException>();
    class.setattr("__bases__", (py.get_type::<PyRuntimeError>(),))?;
    class.setattr("__name__", "InternalError")?;
    class.setattr("__qualname__", "InternalError")?;
    class.setattr("__module__", "oxigrad")?;
    class.setattr("__signature__", any_arguments(py)?)?;
    class.setattr("__doc__", "A mistake in oxigrad itself: please report it.")?;
    module.add("InternalError", class)
}

exceptions! {
    KeyPath KeyPathError PyLookupError;
    Structure StructureError PyValueError;
    Shape ShapeError PyValueError;
    Dtype DtypeError PyTypeError;
    Alias AliasError PyValueError;
    Memory ArrayMemoryError PyValueError;
    Rule RuleError PyTypeError;
    TapeEnded TapeEndedError PyRuntimeError;
    TapeThread TapeThreadError PyRuntimeError;
    Derivative DerivativeError PyTypeError;
    NonFinite NonFiniteError PyArithmeticError;
    State StateError PyValueError;
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
