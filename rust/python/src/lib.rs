//! Module `oxigrad._core`: newtypes and conversions around `oxigrad_core`.

mod error;
mod tree;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        error::register(module)?;
        tree::register(module)
    }
}
