//! Module `oxigrad._core`: newtypes and conversions around `oxigrad_core`.

#![allow(
    clippy::needless_pass_by_value,
    clippy::unused_self,
    reason = "PyO3 hands over what it has converted, and Python calls methods on an instance"
)]

mod arrays;
mod assign;
mod classes;
mod collect;
mod dense;
mod derivatives;
mod dlpack;
mod error;
mod forward;
mod fusion;
mod guard;
mod lock;
mod memory;
mod numpy;
mod overlap;
mod products;
mod record;
mod reduce;
mod replay;
mod spare;
mod step;
mod symbols;
mod tape;
mod threads;
mod torch;
mod trace;
mod tree;
mod value;
mod variable;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use crate::arrays::{compute_named, copy};
    #[pymodule_export]
    use crate::derivatives::install;
    #[pymodule_export]
    use crate::lock::Lock;
    #[pymodule_export]
    use crate::memory::{exports_memory, is_floating, is_writable};
    #[pymodule_export]
    use crate::numpy::meaning_of;
    #[pymodule_export]
    use crate::overlap::{aliases, first_shared_of, is_same_memory, overlaps_itself};
    #[pymodule_export]
    use crate::record::{Function, elementwise_functions, ops, record_named};
    #[pymodule_export]
    use crate::step::Stepper;
    #[pymodule_export]
    use crate::symbols::{Program, Symbols, print_generated, rounding, symbols, uniform};
    #[pymodule_export]
    use crate::tape::Tape;
    #[pymodule_export]
    use crate::threads::{forks, get_num_threads, set_num_threads};
    #[pymodule_export]
    use crate::variable::{Variable, plain};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("MOST_STEPS", step::MOST)?;
        error::register(module)?;
        numpy::Numpy::load(module.py())?;
        dense::load(module.py())?;
        threads::register(module.py())?;
        variable::register(module.py())?;
        tree::register(module)
    }
}
