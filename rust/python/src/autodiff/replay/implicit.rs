//! Solutions of equations whose residual is elementwise: its derivative by the solution is a number for each element, and no matrix.

use std::iter::once;

use oxigrad_core::autodiff::tape::{Id, Origin, Value as _};
use oxigrad_core::op::Op;
use oxigrad_core::scalar::Scalar;
use pyo3::types::{PyFloat, PyTuple};
use smallvec::SmallVec;

use crate::arrays::memory::contiguous::is_float_array;
use crate::arrays::value::Value;
use crate::autodiff::graph::entry::cotangent_type;
use crate::autodiff::graph::open_tapes::OpenTapes;
use crate::autodiff::graph::tape::{CotangentType, Tape};
use crate::autodiff::graph::variable::Variable;
use crate::autodiff::vjp_rules::{watchable, zeros};
use crate::callbacks;
use crate::prelude::*;
use crate::tree::type_info;

/// The cotangents of the arguments at the positions `at` from the cotangent `g` of the solution `x` of ``residual(x, *args) = 0``.
///
/// None where `x` or one of these arguments is a tree, where the residual is complex, and where an element of the residual may
/// depend on elements of `x` at other places.
#[pyfunction]
pub fn elementwise_implicit<'py>(
    residual: &Object<'py>,
    g: &Object<'py>,
    x: &Object<'py>,
    args: &Bound<'py, PyTuple>,
    at: Vec<usize>,
) -> PyResult<Option<Vec<Object<'py>>>> {
    let py = g.py();
    let tape = Bound::new(py, Tape::new(false))?;
    let mut filled: SmallVec<[Object<'py>; 4]> = once(x.clone()).chain(args).collect();
    let mut sources = Vec::with_capacity(at.len() + 1);
    for place in once(0).chain(at.iter().map(|at| at + 1)) {
        if !type_info(&filled[place].get_type())?.is_leaf() {
            return Ok(None);
        }
        filled[place] = Tape::input(&tape, watchable(&filled[place])?, None)?.into_any();
        sources.push(filled[place].clone());
    }
    let value = {
        let _open = OpenTapes::with(&tape);
        residual.call1(PyTuple::new(py, filled)?)?
    };
    tape.get().end();
    let Some(target) = value.cast_exact::<Variable>().ok().filter(|target| target.get().tape.is(&tape)) else {
        return Ok(None);
    };
    let (to, value) = (target.get().entry(py)?, target.get().current(py)?.1);
    // The variables that are watched are the first entries.
    let mut are_elementwise = (0..sources.len()).map(|from| is_elementwise(tape.get(), to, from));
    if is_complex(py, &value)? || are_elementwise.next() != Some(true) {
        return Ok(None);
    }
    let ones = match value.own_scalar() {
        Some(scalar) => Value::from_scalar(Scalar { number: 1.0, ..scalar }),
        None => Value::from(zeros(py, &value)?.add(1.0)?),
    };
    let slopes = Tape::pull_back(&tape, vec![(to, ones)], &sources, false, None, true)?;
    let direction = negative_quotient(g, &slopes.get_item(0)?)?;
    if are_elementwise.all(|is_elementwise| is_elementwise) {
        return slopes.iter().skip(1).map(|slope| direction.mul(slope)).collect::<PyResult<_>>().map(Some);
    }
    let pulled = Tape::pull_back(&tape, vec![(to, Value::from(direction))], &sources[1..], true, None, true)?;
    Ok(Some(pulled.iter().collect()))
}

fn is_complex(py: Python<'_>, value: &Value) -> PyResult<bool> {
    match value {
        Value::Object(object) if !is_float_array(object.bind(py)) => callbacks::is_complex(py, (object,))?.is_truthy(),
        _ => Ok(false),
    }
}

/// Whether each entry from `from` to `to` is an elementwise op, of the shape and dtype of its result.
fn is_elementwise(tape: &Tape, to: Id, from: usize) -> bool {
    let inner = tape.lock();
    let mut are_reached = vec![false; inner.tape.len()];
    are_reached[from] = true;
    for view in inner.tape.views().skip(from + 1).take_while(|view| view.id <= to) {
        let reached = (0..view.args.len()).filter(|which| are_reached[view.args[*which] as usize]);
        let reached: SmallVec<[usize; 3]> = reached.collect();
        let is_alike = |which: &usize| matches!(cotangent_type(&view, *which), None | Some(CotangentType::Same));
        let is_elementwise = matches!(view.origin, Origin::Op(Op::Elementwise(_))) && reached.iter().all(is_alike);
        if !reached.is_empty() && !is_elementwise {
            return false;
        }
        are_reached[view.id as usize] = !reached.is_empty();
    }
    are_reached[to as usize]
}

/// `-g / slope`; of floats of Python, too, infinite where the slope is zero.
fn negative_quotient<'py>(g: &Object<'py>, slope: &Object<'py>) -> PyResult<Object<'py>> {
    match (g.cast_exact::<PyFloat>(), slope.cast_exact::<PyFloat>()) {
        (Ok(g), Ok(slope)) => Ok(PyFloat::new(slope.py(), -g.value() / slope.value()).into_any()),
        _ => g.neg()?.div(slope),
    }
}
