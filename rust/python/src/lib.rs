//! Module `oxigrad._core`: newtypes and conversions around `oxigrad_core`.

#![allow(
    clippy::needless_pass_by_value,
    clippy::unused_self,
    reason = "PyO3 hands over what it has converted, and Python calls methods on an instance"
)]

mod arrays;
mod autodiff;
mod callbacks;
mod class_cache;
mod error;
mod prelude;
mod recording;
mod stepper;
mod threads;
mod tree;
mod xla;

use pyo3::prelude::*;

// On a free-threaded interpreter the import turns the interpreter lock on: locks here were not examined without it.
#[pymodule(gil_used = true)]
mod _core {
    use super::*;

    #[pymodule_export]
    use crate::arrays::batch_level::BatchLevel;
    #[pymodule_export]
    use crate::arrays::checksum::crc32c;
    #[pymodule_export]
    use crate::arrays::compute::elementwise::{compute_named, copy};
    #[pymodule_export]
    use crate::arrays::memory::device_places::Places;
    #[pymodule_export]
    use crate::arrays::memory::host_array::{exports_memory, is_floating, is_writable};
    #[pymodule_export]
    use crate::arrays::memory::numpy::meaning;
    #[pymodule_export]
    use crate::arrays::memory::overlap::{aliases, first_shared_of, is_same_memory, overlaps_itself};
    #[pymodule_export]
    use crate::autodiff::graph::batched::new_batch_level;
    #[pymodule_export]
    use crate::autodiff::graph::tape::{Tape, set_debug_nans};
    #[pymodule_export]
    use crate::autodiff::graph::template::EntryId;
    #[pymodule_export]
    use crate::autodiff::graph::variable::{Variable, assignable, is_constant, plain, value_of_constant};
    #[pymodule_export]
    use crate::autodiff::operations::evaluate::forget_functions;
    #[pymodule_export]
    use crate::autodiff::operations::function::{Function, elementwise_functions, operators, ops, record_named};
    #[pymodule_export]
    use crate::autodiff::operations::leaf_calls::{LeafCall, call_leaves};
    #[pymodule_export]
    use crate::autodiff::replay::implicit::elementwise_implicit;
    #[pymodule_export]
    use crate::autodiff::replay::scatter::{assigned, scatter_into};
    #[pymodule_export]
    use crate::autodiff::transforms::{Watched, are_swapped, record_call, value_and_grad};
    #[pymodule_export]
    use crate::autodiff::vjp_rules::install;
    #[pymodule_export]
    use crate::callbacks::install_callbacks;
    #[pymodule_export]
    use crate::recording::floating_errors::is_watched;
    #[pymodule_export]
    use crate::recording::function::{RecordedFunction, call_traced};
    #[pymodule_export]
    use crate::recording::guards::{Guards, is_equal};
    #[pymodule_export]
    use crate::recording::kinds::LeafKind;
    #[pymodule_export]
    use crate::recording::replay::Replay;
    #[pymodule_export]
    use crate::recording::rule::compute_named_in_rule;
    #[pymodule_export]
    use crate::recording::trace::arguments::{plain_of, traced_in, with_leaves_of_python};
    #[pymodule_export]
    use crate::recording::trace::entry::TraceEntry;
    #[pymodule_export]
    use crate::recording::trace::state::{Recorder, TracedValue};
    #[pymodule_export]
    use crate::recording::trace::traits::TargetTraits;
    #[pymodule_export]
    use crate::stepper::cuda::{CudaEntry, CudaSource};
    #[pymodule_export]
    use crate::stepper::lock::Lock;
    #[pymodule_export]
    use crate::stepper::signature::Signature;
    #[pymodule_export]
    use crate::stepper::slices::Totals;
    #[pymodule_export]
    use crate::stepper::stated::{HostParameter, Misfit, Writes};
    #[pymodule_export]
    use crate::stepper::step::Stepper;
    #[pymodule_export]
    use crate::stepper::symbols::{Program, Symbols, print_generated, rounding, symbols, uniform};
    #[pymodule_export]
    use crate::threads::{get_num_threads, instruction_set, limit_threads, process, set_num_threads};
    #[pymodule_export]
    use crate::tree::functions::{
        tree_flatten, tree_leaves, tree_leaves_like, tree_map, tree_parameters, tree_register_fields,
        tree_register_functions, tree_tied, tree_unflatten, tree_unquoted,
    };
    #[pymodule_export]
    use crate::tree::{Key, KeyPath, Structure, is_array, is_inexact, tree_key_paths, tree_path};
    #[pymodule_export]
    use crate::xla::{xla_call, xla_handler};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("LARGE_EXTREMUM", autodiff::replay::traced::LARGE_EXTREMUM)?;
        module.add("TRAINABLE", tree::TRAINABLE)?;
        module.add("MOST_STEPS", oxigrad_core::exec::MOST_STEPS)?;
        error::register(module)?;
        arrays::memory::numpy::Numpy::load(module.py())?;
        threads::register(module.py())?;
        autodiff::operations::variable_methods::register(module.py())
    }
}
