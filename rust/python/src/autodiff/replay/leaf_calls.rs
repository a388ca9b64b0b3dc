//! Rules of users in a replay: see [`LeafCall`].

use oxigrad_core::autodiff::tape::Value as _;
use oxigrad_core::scalar::Precision;
use pyo3::intern;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use crate::arrays::memory::numpy::are_alike;
use crate::arrays::value::Value;
use crate::autodiff::graph::entry::{Entry, named};
use crate::autodiff::operations::leaf_calls::{LeafCall, is_float_leaf};
use crate::autodiff::replay::fusion::{Cotangent, known};
use crate::prelude::*;

/// The cotangents of the arguments of a call, by the function of the user's alone; `None` where Python has to adapt something.
pub fn pull<'py>(py: Python<'py>, entry: &Entry<'_>, g: &Object<'py>) -> PyResult<Option<Vec<Cotangent>>> {
    let Some(call) = named(entry, intern!(py, "pull"))? else { return Ok(None) };
    let Ok(call) = call.cast_exact::<LeafCall>() else { return Ok(None) };
    let call = call.get();
    let Some(g) = g.cast::<PyDict>()?.get_item(0)?.filter(is_float_leaf) else { return Ok(None) };
    let values: SmallVec<[Object<'py>; 4]> = (0..entry.args.len()).map(|which| entry.arg(which).object(py)).collect();
    let y = entry.result().object(py).cast::<PyTuple>()?.get_item(0)?;
    if !is_float_leaf(&y) || !values.iter().all(is_float_leaf) {
        return Ok(None);
    }
    let mut args: SmallVec<[Object<'py>; 4]> = call.args.bind(py).iter().collect();
    let count = args.len();
    for (at, value) in call.at.iter().zip(&values) {
        args[*at] = value.clone();
    }
    let args = PyTuple::new(py, args)?;
    let at = PyTuple::new(py, &call.at)?;
    let pulled = call.pull.bind(py).call1((g, y, args, &call.named, at, call.residuals.as_ref()))?;
    if pulled.is(py.NotImplemented()) {
        return Ok(None);
    }
    let tuple = match pulled.cast_exact::<PyTuple>() {
        Ok(tuple) => tuple.clone(),
        Err(_) if count == 1 => PyTuple::new(py, [&pulled])?,
        Err(_) => PyTuple::empty(py),
    };
    let fitted = if tuple.len() == count {
        call.at.iter().zip(&values).map(|(at, value)| fitted(&tuple.get_item(*at).ok()?, value)).collect()
    } else {
        None
    };
    if fitted.is_some() {
        return Ok(fitted);
    }
    let cotangents = call.expanded(py)?.call_method1(intern!(py, "fitted"), (pulled, PyTuple::new(py, values)?))?;
    let cotangents = cotangents.try_iter()?.map(|each| each.map(|each| of_python(&each)));
    cotangents.collect::<PyResult<_>>().map(Some)
}

/// A cotangent that has the shape and dtype of the value; `None` where Python has to unbroadcast or cast it.
fn fitted(pulled: &Object<'_>, value: &Object<'_>) -> Option<Cotangent> {
    if pulled.is_none() || are_alike(pulled, value) == Some(true) {
        return Some(of_python(pulled));
    }
    let (own, like) = (Value::new(pulled), Value::new(value));
    match (own.own_scalar(), like.own_scalar()) {
        (Some(own), Some(like)) if like.precision == Precision::Weak => {
            Some(Cotangent::Known(Value::Number(own.number)))
        }
        (Some(own_scalar), Some(like)) if own_scalar.precision == like.precision => Some(Cotangent::Known(own)),
        _ => None,
    }
}

fn of_python(cotangent: &Object<'_>) -> Cotangent {
    if cotangent.is_none() { Cotangent::absent() } else { known(cotangent) }
}
