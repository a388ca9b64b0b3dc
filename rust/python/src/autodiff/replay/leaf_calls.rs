//! Rules of users in a replay: see [`LeafCall`].

use oxigrad_core::autodiff::tape::Value as _;
use oxigrad_core::scalar::Precision;
use pyo3::intern;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use crate::arrays::compute::numpy_functions::lent;
use crate::arrays::memory::numpy::are_alike;
use crate::arrays::value::Value;
use crate::autodiff::graph::entry::{Entry, named};
use crate::autodiff::graph::open_tapes::OpenTapes;
use crate::autodiff::graph::tape::Tape;
use crate::autodiff::graph::variable::Variable;
use crate::autodiff::operations::leaf_calls::{LeafCall, is_float_leaf};
use crate::autodiff::replay::fusion::{Cotangent, known};
use crate::autodiff::vjp_rules::{seed, zero_tangent};
use crate::prelude::*;

/// The cotangents of the arguments of a call, by the function of the user's alone; `None` where Python has to adapt something.
pub fn pull<'py>(py: Python<'py>, entry: &Entry<'_>, g: &Object<'py>) -> PyResult<Option<Vec<Cotangent>>> {
    let Some(call) = named(entry, intern!(py, "pull"))? else { return Ok(None) };
    let Ok(call) = call.cast_exact::<LeafCall>() else { return Ok(None) };
    let call = call.get();
    let Some(g) = g.cast::<PyDict>()?.get_item(0)?.filter(is_float_leaf) else { return Ok(None) };
    let values: SmallVec<[Object<'py>; 4]> = (0..entry.args.len()).map(|which| entry.arg(which).object(py)).collect();
    let y = lent(&entry.result().object(py).cast::<PyTuple>()?.get_item(0)?)?;
    if !is_float_leaf(&y) || !values.iter().all(is_float_leaf) {
        return Ok(None);
    }
    let mut args: SmallVec<[Object<'py>; 4]> = call.args.bind(py).iter().collect();
    let count = args.len();
    for (at, value) in call.at.iter().zip(&values) {
        args[*at] = lent(value)?;
    }
    if let Ok(rules) = call.pull.bind(py).cast_exact::<PyTuple>() {
        return transposed(call, rules, (&g, &y), &args, &values).map(Some);
    }
    let args = PyTuple::new(py, args)?;
    let at = PyTuple::new(py, &call.at)?;
    let pulled = call.pull.bind(py).call1((g, y, args, &call.named, at, call.residuals.as_ref()))?;
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

/// The cotangents of the variables' values from the cotangent of the result, by rules of tangents, each linear in one of these.
fn transposed<'py>(
    call: &LeafCall,
    rules: &Bound<'py, PyTuple>,
    (g, y): (&Object<'py>, &Object<'py>),
    args: &[Object<'py>],
    values: &[Object<'py>],
) -> PyResult<Vec<Cotangent>> {
    let py = g.py();
    let tape = Bound::new(py, Tape::new(false))?;
    let (mut directions, mut seeds) = (Vec::with_capacity(values.len()), Vec::with_capacity(values.len()));
    {
        let _open = OpenTapes::with(&tape);
        for (at, value) in call.at.iter().zip(values) {
            let direction = Tape::input(&tape, zero_tangent(py, Value::new(value))?, None)?.into_any();
            directions.push(direction.clone());
            let rule = rules.get_item(*at)?;
            if rule.is_none() {
                continue;
            }
            let read: SmallVec<[&Object<'py>; 6]> = [&direction, y].into_iter().chain(args).collect();
            let mut term = rule.call1((PyTuple::new(py, read)?, &call.named))?;
            if !is_tangent(&term, &tape, y)? {
                term = call.expanded(py)?.call_method1(intern!(py, "seed"), (&tape, term, y))?;
            }
            if let Ok(term) = term.cast_exact::<Variable>() {
                seeds.push((term.get().entry(py)?, seed(term, Some(g))?));
            }
        }
    }
    tape.get().end();
    let pulled = Tape::pull_back(&tape, seeds, &directions, true, None, false)?;
    Ok(pulled.iter().map(|each| of_python(&each)).collect())
}

/// Whether a value is a variable of the tape, of the shape and dtype of a result.
fn is_tangent(term: &Object<'_>, tape: &Bound<'_, Tape>, y: &Object<'_>) -> PyResult<bool> {
    let Ok(term) = term.cast_exact::<Variable>() else { return Ok(false) };
    if !term.get().tape.is(tape) {
        return Ok(false);
    }
    let (value, y) = (term.get().current(y.py())?.1, Value::new(y));
    Ok(match (&value, &y) {
        (Value::Object(value), Value::Object(y)) => are_alike(value.bind(term.py()), y.bind(term.py())) == Some(true),
        _ => value.own_scalar().zip(y.own_scalar()).is_some_and(|(value, y)| value.precision == y.precision),
    })
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
