//! Calls on scalars, numbers of Python and NumPy, which need no Python object, and runs of calls on small arrays.

use std::sync::OnceLock;

use oxigrad_core::exec::array_run::small::{Read, SmallCall, SmallRun, View};
use oxigrad_core::recording::ScalarOp;
use oxigrad_core::scalar::{Precision, Scalar};
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::arrays::compute::run::{read_of, run_small, scalar_in};
use crate::arrays::value::Value;

/// The result of an op on values, of which one at least is a float of Python or NumPy; `None` where the function has to be called.
pub fn on_values(op: ScalarOp, py: Python<'_>, values: &[&Value]) -> Option<Scalar> {
    if !values.iter().any(|value| value.is_scalar()) {
        return None;
    }
    let scalars = values.iter().map(|value| scalar_in(py, value)).collect::<Option<SmallVec<[Scalar; 3]>>>()?;
    op.compute(&scalars)
}

/// The precision of this name: "float" is that of Python's numbers.
pub fn precision_named(name: &str) -> Option<Precision> {
    match name {
        "float" => Some(Precision::Weak),
        "<f4" => Some(Precision::F32),
        "<f8" => Some(Precision::F64),
        _ => None,
    }
}

/// Calls on small arrays and numbers, which are planned for the values of the first replay.
pub struct Small {
    pub calls: Vec<(SmallCall, SmallVec<[usize; 3]>)>,
    pub writes: Vec<usize>,
    pub run: OnceLock<Option<SmallRun>>,
}

impl Small {
    /// The results that are needed later; `None` where the calls do not take the values, or these are of another kind than those of the first
    /// replay.
    pub fn run(&self, py: Python<'_>, read: &[&Value]) -> PyResult<Option<Vec<Value>>> {
        let mut reads: SmallVec<[_; 8]> = SmallVec::new();
        for value in read {
            let Some(read) = read_of(py, value)? else { return Ok(None) };
            reads.push(read);
        }
        let planned = || {
            let kinds = reads.iter().map(Read::kind).collect::<Option<_>>()?;
            SmallRun::new(&self.calls, kinds, &self.writes)
        };
        self.run.get_or_init(planned).as_ref().map_or(Ok(None), |run| run_small(py, run, &reads))
    }
}

/// The view of a shape with these parts.
pub fn view_of(shape: &[usize], parts: &[isize]) -> Option<View> {
    let (own, axes) = parts.split_at_checked(parts.len().checked_sub(2 * shape.len())?)?;
    let mut view = View {
        of: SmallVec::new(),
        starts: SmallVec::new(),
        index: None,
        extents: SmallVec::from_slice(shape),
        axes: axes.chunks_exact(2).map(|axis| (usize::try_from(axis[0]).ok(), axis[1])).collect(),
    };
    for (axis, part) in own.chunks_exact(3).enumerate() {
        view.of.push(usize::try_from(part[0]).ok()?);
        view.starts.push(usize::try_from(part[1]).ok()?);
        let position = usize::try_from(part[2]).ok()?;
        if position > 0 && view.index.replace((axis, position)).is_some() {
            return None;
        }
    }
    Some(view)
}
