//! Kernels as custom calls of XLA's: see [`oxigrad_core::exec::xla`]. Nothing here touches Python while a call runs.

use std::ptr;

use oxigrad_core::exec::xla::{self, CallFrame, CallLeaf, Calls, Stated, StatedProgram};
use pyo3::exceptions::PyValueError;
use pyo3::ffi::PyCapsule_New;

use crate::prelude::*;
use crate::stepper::symbols::Program;
use crate::threads;

/// The text of a call of `programs`, each with the length of its sets of scalars and the numbers of array operands and of
/// slots that are numbers. A leaf has the number of its program, the start of its set among `scalars`, its position, and
/// whether halves are rounded stochastically. The other arguments are fields of a call.
#[pyfunction]
#[pyo3(signature = (programs, leaves, scalars, traced, *, seed, totals=None, measures=false))]
pub fn xla_call(
    programs: Vec<(PyRef<'_, Program>, usize, usize, usize)>,
    leaves: Vec<(usize, usize, u64, bool)>,
    scalars: Vec<f64>,
    traced: Vec<(usize, usize)>,
    seed: u64,
    totals: Option<usize>,
    measures: bool,
) -> PyResult<String> {
    let leaf = |(program, scalars, position, stochastic)| CallLeaf { program, scalars, position, stochastic };
    let leaves = leaves.into_iter().map(leaf).collect();
    let programs = programs.iter().map(|(program, set, arrays, numbers)| {
        let (text, written) = (program.text(), &program.written[..]);
        StatedProgram { text, written, set: *set, arrays: *arrays, numbers: *numbers }
    });
    let programs = programs.collect();
    let call = Stated { programs, leaves, scalars, traced, totals, seed, measures };
    call.print().map_err(PyValueError::new_err)
}

/// The function that runs `xla_call`s, in a capsule for JAX.
#[pyfunction]
pub fn xla_handler(py: Python<'_>) -> PyResult<Object<'_>> {
    let address = handle as unsafe extern "C" fn(*const CallFrame) -> *mut xla::Error;
    // SAFETY: the address of a function lives as long as the process. The capsule has no name, since JAX asks for none.
    let capsule = unsafe { PyCapsule_New(address as *mut _, ptr::null(), None) };
    // SAFETY: a new reference, or null and an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }
}

/// Runs a call, or states the version; the error, or null.
///
/// # Safety
/// As [`xla::handle`].
unsafe extern "C" fn handle(frame: *const CallFrame) -> *mut xla::Error {
    static CALLS: Calls = Calls::new();
    // SAFETY: the caller's promise.
    unsafe { xla::handle(frame, &CALLS, || (threads::isa(), threads::pool())) }
}
