//! Forward replay of a tape over Python values, by the rules of reverse mode.

use oxigrad_core::autodiff::replay::Host as _;
use oxigrad_core::autodiff::tape::{Id, Origin};
use oxigrad_core::op::Op;
use pyo3::intern;
use pyo3::types::{PyList, PyTuple};

use crate::arrays::memory::numpy::are_one_dtype;
use crate::arrays::value::Value;
use crate::autodiff::graph::entry::{Entry, cotangent_type};
use crate::autodiff::graph::tape::{CoreTape, CotangentType, Tape};
use crate::autodiff::graph::variable::Variable;
use crate::autodiff::replay::fusion::{Cotangent, known};
use crate::autodiff::replay::reverse::PythonHost;
use crate::autodiff::vjp_rules::{Row, missing};
use crate::callbacks;
use crate::prelude::*;

/// Replays a tape forwards from the seeds; returns the tangents of `targets`. With `batch`, each tangent is a batch of
/// that size along a leading axis.
pub fn replay_forward(
    py: Python<'_>,
    tape: &CoreTape,
    seeds: Vec<(Id, Value)>,
    targets: &[Id],
    batch: Option<usize>,
) -> PyResult<Vec<Value>> {
    let mut host = PythonHost::new(py, batch)?;
    let seeds = seeds.into_iter().map(|(id, seed)| (id, Cotangent::Known(seed))).collect();
    let found = tape.replay_forward(seeds, targets, &mut host)?;
    found.iter().map(|flow| host.resolve(flow)).collect()
}

impl<'py> PythonHost<'py> {
    /// The tangent of an entry's result.
    pub fn push(&mut self, entry: &Entry<'_>, tangents: &[&Value]) -> PyResult<Value> {
        match entry.origin {
            Origin::Op(Op::Elementwise(_)) => self.sum_of(entry, tangents, Self::push_through),
            Origin::Op(Op::Structured(_)) => self.push_structured(entry, tangents),
            Origin::Input | Origin::Constant => Ok(Value::Absent),
        }
    }

    fn sum_of(
        &mut self,
        entry: &Entry<'_>,
        tangents: &[&Value],
        push: fn(&mut Self, &Entry<'_>, usize, &Value) -> PyResult<Value>,
    ) -> PyResult<Value> {
        let mut sum = Value::Absent;
        for (which, tangent) in tangents.iter().enumerate().filter(|(_, tangent)| !matches!(tangent, Value::Absent)) {
            sum = match (sum, push(self, entry, which, tangent)?) {
                (sum, Value::Absent) => sum,
                (Value::Absent, pushed) => pushed,
                (sum, pushed) => self.sum(sum, pushed)?,
            };
        }
        Ok(sum)
    }

    /// An elementwise op's rule for one argument, with the tangent in place of the cotangent.
    fn push_through(&mut self, entry: &Entry<'_>, which: usize, tangent: &Value) -> PyResult<Value> {
        let Origin::Op(op) = entry.origin else { return Ok(Value::Absent) };
        let derivative = match self.registry.tangent_row(op, which, self.of_square) {
            Row::Missing(reason) => return Err(missing(op, reason)),
            Row::Zero => return Ok(Value::Absent),
            Row::Rule(derivative) => derivative,
        };
        let pushed = if matches!(cotangent_type(entry, which), None | Some(CotangentType::Same)) {
            self.apply(derivative, entry, which, tangent)?
        } else {
            let args = (tangent.object(self.py), entry.result().object(self.py), self.batch);
            let spread = Value::new(&callbacks::spread(self.py, args)?);
            self.apply(derivative, entry, which, &spread)?
        };
        self.in_dtype(entry, pushed)
    }

    /// The tangent cast to the dtype of the result, if the result is kept; otherwise it already has that dtype.
    fn in_dtype(&self, entry: &Entry<'_>, pushed: Object<'py>) -> PyResult<Value> {
        if matches!(entry.result(), Value::Absent | Value::Number(_)) {
            return Ok(Value::new(&pushed));
        }
        let result = entry.result().object(self.py);
        let dtype = |object: &Object<'py>| object.getattr_opt(intern!(self.py, "dtype"));
        Ok(match (dtype(&pushed)?, dtype(&result)?) {
            (Some(own), Some(dtype)) if !are_one_dtype(&own, &dtype)? => {
                Value::new(&callbacks::in_dtype(self.py, (pushed, result))?)
            }
            _ => Value::new(&pushed),
        })
    }

    /// By the forward rule in Python, one tangent at a time if it does not support batches; else by the reverse rule.
    fn push_structured(&mut self, entry: &Entry<'_>, tangents: &[&Value]) -> PyResult<Value> {
        let Origin::Op(op) = entry.origin else { return Ok(Value::Absent) };
        let py = self.py;
        let given = PyTuple::new(py, tangents.iter().map(|tangent| tangent.object(py)))?;
        let args = PyTuple::new(py, (0..entry.args.len()).map(|which| entry.arg(which).object(py)))?;
        let named = entry.attributes.and_then(|attributes| attributes.named.as_ref());
        let result = entry.result().object(py);
        let pushed = if self.of_square {
            py.NotImplemented().into_bound(py)
        } else {
            self.registry.push.bind(py).call1((op.name(), &given, args, result, named, self.batch))?
        };
        if !pushed.is(py.NotImplemented()) {
            return Ok(if pushed.is_none() { Value::Absent } else { Value::new(&pushed) });
        }
        match self.batch.take() {
            None => self.sum_of(entry, tangents, Self::push_transposed),
            Some(batch) => {
                let pushed = self.push_one_by_one(entry, &given, batch);
                self.batch = Some(batch);
                pushed
            }
        }
    }

    fn push_one_by_one(&mut self, entry: &Entry<'_>, tangents: &Bound<'py, PyTuple>, batch: usize) -> PyResult<Value> {
        let results = PyList::empty(self.py);
        for at in 0..batch {
            let of = |tangent: Object<'py>| Ok(Value::new(&callbacks::part(self.py, (tangent, at))?));
            let parts = tangents.iter().map(of).collect::<PyResult<Vec<_>>>()?;
            let parts: Vec<&Value> =
                parts.iter().map(|part| if is_none(part, self.py) { &Value::Absent } else { part }).collect();
            results.append(self.push_structured(entry, &parts)?.object(self.py))?;
        }
        let stacked = callbacks::stack_parts(self.py, (results,))?;
        Ok(if stacked.is_none() { Value::Absent } else { Value::new(&stacked) })
    }

    /// Transposes the reverse rule: it is linear in the cotangent, so that its own reverse replay computes the tangent.
    fn push_transposed(&mut self, entry: &Entry<'_>, which: usize, tangent: &Value) -> PyResult<Value> {
        let py = self.py;
        let tape = Bound::new(py, Tape::new(false))?;
        let given = callbacks::zero_cotangent(py, (&tape, entry.result().object(py)))?;
        let (cotangent, variables): (Object<'py>, Object<'py>) = given.extract()?;
        let pulled = self.pullback(entry, which, &known(&cotangent))?;
        let Value::Object(pulled) = self.resolve(&pulled)? else { return Ok(Value::Absent) };
        if !pulled.bind(py).cast::<Variable>().is_ok_and(|pulled| pulled.get().tape.is(&tape)) {
            return Ok(Value::Absent);
        }
        let pushed = tape.call_method1(intern!(py, "pull"), ([(pulled, tangent.object(py))], variables))?;
        Ok(Value::new(&callbacks::like_cotangent(py, (cotangent, pushed))?))
    }
}

fn is_none(value: &Value, py: Python<'_>) -> bool {
    matches!(value, Value::Object(object) if object.is_none(py))
}
