//! Module `oxigrad._core`: newtypes and conversions around `oxigrad_core`.

mod derivatives;
mod error;
mod record;
mod replay;
mod tape;
mod tree;
mod value;
mod variable;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use crate::derivatives::install;
    #[pymodule_export]
    use crate::record::{Function, elementwise_functions, record_named};
    #[pymodule_export]
    use crate::tape::Tape;
    #[pymodule_export]
    use crate::variable::{Variable, plain};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        error::register(module)?;
        tree::register(module)
    }
}
