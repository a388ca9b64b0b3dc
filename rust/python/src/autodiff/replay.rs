//! The replay's host: numbers stay in the core, anything else goes through the rule that Python states.

use oxigrad_core::autodiff::replay::Host;
use oxigrad_core::autodiff::rule::Rules;
use oxigrad_core::autodiff::tape::{Id, Origin, Value as _, View};
use oxigrad_core::op::{Elementwise, Op};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use crate::arrays::array_pool;
use crate::arrays::elementwise::{add_to, compute};
use crate::arrays::reduce::sum_to;
use crate::autodiff::fusion::{Flow, Fusion};
use crate::autodiff::record::{by_operator, innermost, record};
use crate::autodiff::tape::{Attributes, CoreTape, Tape};
use crate::autodiff::value::Value;
use crate::autodiff::variable::Variable;
use crate::autodiff::vjp_rules::{Derivative, Fit, Registry, Row, Source, hook, is_variadic, missing, registry};
use crate::tree::is_inexact;

pub struct PythonHost<'py> {
    pub py: Python<'py>,
    pub registry: &'py Registry,
    /// How many tangents go forwards at once, along a leading axis; none where a tangent is shaped like its value.
    pub batch: Option<usize>,
    fusion: Fusion,
}

/// Replays a tape from the seeds; gives the cotangents of `inputs`.
pub fn replay(
    py: Python<'_>,
    tape: &mut CoreTape,
    seeds: Vec<(Id, Value)>,
    inputs: &[Id],
    release: bool,
) -> PyResult<Vec<Value>> {
    let mut host = PythonHost::new(py, None)?;
    let seeds = seeds.into_iter().map(|(id, seed)| (id, Flow::Known(seed))).collect();
    let found = tape.replay(seeds, inputs, release, &mut host)?;
    found.iter().map(|flow| host.settle(flow)).collect()
}

impl Host<Value, Attributes> for PythonHost<'_> {
    type Error = PyErr;
    type Flow = Flow;

    fn rules(&self) -> &Rules {
        &self.registry.rules
    }

    fn pullback(&mut self, entry: &View<'_, Value, Attributes>, which: usize, cotangent: &Flow) -> PyResult<Flow> {
        let Origin::Op(op) = entry.origin else { return Ok(Flow::absent()) };
        let derivative = match self.registry.row(op, which) {
            Row::Missing(reason) => return Err(missing(op, which, reason)),
            Row::Zero => return Ok(Flow::absent()),
            Row::Rule(derivative) => derivative,
        };
        let (py, fit) = (self.py, entry.attributes.and_then(|attributes| attributes.fits.get(which)));
        let (shape, dtype) = match fit {
            Some(Fit::Number) => {
                let pulled = self.through(derivative, entry, which, cotangent)?;
                return Ok(Flow::new(&hook(py, "unbroadcast_to_number")?.call1((self.settle(&pulled)?.object(py),))?));
            }
            Some(Fit::Array { shape, dtype }) if entry.args.len() > 1 => (shape.bind(py), dtype.bind(py)),
            _ => return self.through(derivative, entry, which, cotangent),
        };
        if derivative.is_negation() {
            // There is less to negate after the sum.
            let fitted = Flow::new(&fit_to(self.settle(cotangent)?.object(py), shape, dtype)?);
            return self.through(derivative, entry, which, &fitted);
        }
        let pulled = self.through(derivative, entry, which, cotangent)?;
        Ok(Flow::new(&fit_to(self.settle(&pulled)?.object(py), shape, dtype)?))
    }

    fn pull_together(&mut self, entry: &View<'_, Value, Attributes>, cotangent: &Flow) -> PyResult<Option<Vec<Flow>>> {
        let Origin::Op(op) = entry.origin else { return Ok(None) };
        let Row::Rule(derivative) = self.registry.row(op, 0) else { return Ok(None) };
        if !derivative.is_together() {
            return Ok(None);
        }
        let cotangent = self.settle(cotangent)?;
        let pulled = self.call(derivative, entry, 0, &cotangent)?;
        let flow = |(which, pulled): (usize, PyResult<Bound<'_, PyAny>>)| {
            pulled.map(
                |pulled| if pulled.is_none() || !entry.is_active(which) { Flow::absent() } else { Flow::new(&pulled) },
            )
        };
        pulled.try_iter()?.enumerate().map(flow).collect::<PyResult<_>>().map(Some)
    }

    fn pushforward(&mut self, entry: &View<'_, Value, Attributes>, tangents: &[&Flow]) -> PyResult<Flow> {
        let tangents = tangents.iter().map(|tangent| self.settle(tangent)).collect::<PyResult<Vec<_>>>()?;
        self.push(entry, &tangents.iter().collect::<Vec<_>>()).map(Flow::Known)
    }

    fn add(&mut self, a: Flow, b: Flow) -> PyResult<Flow> {
        if let Some(sum) = self.fusion.add(self.py, &a, &b)? {
            return Ok(sum);
        }
        let (sum, term) = (self.settled(a)?, self.settled(b)?);
        self.sum(sum, term).map(Flow::Known)
    }

    fn retire(&mut self, value: Value) {
        array_pool::keep(self.py, value);
    }

    fn spend(&mut self, cotangent: Flow) {
        if let Some(value) = cotangent.last() {
            array_pool::keep(self.py, value);
        }
    }

    fn pulse(&mut self) -> PyResult<()> {
        self.py.check_signals()
    }
}

impl<'py> PythonHost<'py> {
    /// A host for one replay; `batch` tells how many tangents go forwards at once.
    pub fn new(py: Python<'py>, batch: Option<usize>) -> PyResult<Self> {
        Ok(Self { py, registry: registry(py)?, batch, fusion: Fusion::default() })
    }

    /// The value of a cotangent; computed now, if it has waited.
    pub fn settle(&mut self, flow: &Flow) -> PyResult<Value> {
        self.fusion.settle(self.py, flow)
    }

    /// The same, without another reference to a value that is known.
    fn settled(&mut self, flow: Flow) -> PyResult<Value> {
        if let Flow::Known(value) = flow {
            return Ok(value);
        }
        let value = self.settle(&flow)?;
        Ok(flow.last().unwrap_or(value))
    }

    /// The sum of two cotangents, in the memory of the first if it is nobody else's.
    pub fn sum(&self, a: Value, b: Value) -> PyResult<Value> {
        let (sum, term) = (a.into_object(self.py), b.into_object(self.py));
        if add_to(&sum, &term)? {
            array_pool::keep(self.py, Value::Object(term.unbind()));
            return Ok(Value::Object(sum.unbind()));
        }
        Ok(Value::new(&record(self.py, Op::Elementwise(Elementwise::Add), &[sum, term], None)?))
    }

    /// What a rule gives for a cotangent: at once, or later.
    fn through(
        &mut self,
        derivative: &Derivative,
        entry: &View<'_, Value, Attributes>,
        which: usize,
        cotangent: &Flow,
    ) -> PyResult<Flow> {
        if derivative.is_identity {
            return Ok(cotangent.share(self.py));
        }
        if let Origin::Op(Op::Elementwise(op)) = entry.origin
            && let Some(rule) = self.registry.rules.get(op, which)
            && let Some(waiting) = self.fusion.wait(self.py, rule, entry, cotangent)?
        {
            return Ok(waiting);
        }
        let pulled = match cotangent {
            Flow::Known(cotangent) => self.apply(derivative, entry, which, cotangent)?,
            Flow::Waiting(_) => {
                let cotangent = self.settle(cotangent)?;
                self.apply(derivative, entry, which, &cotangent)?
            }
        };
        Ok(Flow::Known(Value::from(pulled)))
    }

    /// What a rule gives for a cotangent, or for a tangent of the shape of the result.
    pub fn apply(
        &mut self,
        derivative: &Derivative,
        entry: &View<'_, Value, Attributes>,
        which: usize,
        cotangent: &Value,
    ) -> PyResult<Bound<'py, PyAny>> {
        if derivative.is_identity {
            return Ok(cotangent.object(self.py));
        }
        if let Some(result) = self.run(derivative, entry, cotangent)? {
            return Ok(result);
        }
        match self.operate(derivative, entry, cotangent) {
            Some(result) => result,
            None => self.call(derivative, entry, which, cotangent),
        }
    }

    /// Does a rule that is one operator on two values, without calling Python's function of it.
    fn operate(
        &self,
        derivative: &Derivative,
        entry: &View<'_, Value, Attributes>,
        cotangent: &Value,
    ) -> Option<PyResult<Bound<'py, PyAny>>> {
        let (op, read) = derivative.only.as_ref()?;
        let mut args: SmallVec<[Bound<'py, PyAny>; 3]> = SmallVec::new();
        for source in read {
            args.push(kept(&derivative.sources[*source], entry, cotangent)?.object(self.py));
        }
        if innermost(&args).is_some() {
            return Some(record(self.py, *op, &args, None));
        }
        by_operator(*op, &args)
    }

    /// Runs the rule of an elementwise op as a kernel, where all that it reads are numbers and NumPy arrays.
    fn run(
        &mut self,
        derivative: &Derivative,
        entry: &View<'_, Value, Attributes>,
        cotangent: &Value,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, Some(kernel)) = (self.py, &derivative.kernel) else { return Ok(None) };
        let Value::Object(g) = cotangent else { return Ok(None) };
        let values = derivative.sources.iter().map(|source| kept(source, entry, cotangent));
        let Some(values) = values.collect::<Option<SmallVec<[&Value; 4]>>>() else { return Ok(None) };
        compute(kernel, values.into_iter(), g.bind(py))
    }

    fn call(
        &self,
        derivative: &Derivative,
        entry: &View<'_, Value, Attributes>,
        which: usize,
        cotangent: &Value,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let mut args = Vec::with_capacity(derivative.sources.len());
        for source in &derivative.sources {
            // The rule of an op with any number of arguments speaks of the one that it is asked for.
            let of =
                |at: u8| if matches!(entry.origin, Origin::Op(op) if is_variadic(op)) { which } else { at as usize };
            let fit = |at: u8| entry.attributes.and_then(|attributes| attributes.fits.get(of(at)));
            args.push(match source {
                Source::Cotangent => cotangent.object(py),
                Source::Result => entry.result().object(py),
                Source::Arg(at) => entry.arg(of(*at)).object(py),
                Source::Shape(at) => match fit(*at) {
                    Some(Fit::Array { shape, .. }) => shape.bind(py).clone(),
                    _ => PyTuple::empty(py).into_any(),
                },
                Source::Dtype(at) => match fit(*at) {
                    Some(Fit::Array { dtype, .. }) => dtype.bind(py).clone(),
                    _ => py.None().into_bound(py),
                },
                Source::Args => {
                    let values = (0..entry.args.len()).map(|which| entry.arg(which).object(py));
                    PyTuple::new(py, values)?.into_any()
                }
                Source::Which => which.into_pyobject(py)?.into_any(),
                Source::Attribute(name) => {
                    let named = entry.attributes.and_then(|attributes| attributes.named.as_ref());
                    let value = named.map(|named| named.bind(py).get_item(name)).transpose()?.flatten();
                    value.unwrap_or_else(|| py.None().into_bound(py))
                }
            });
        }
        if !derivative.is_together() {
            lift(&mut args, &derivative.sources)?;
        }
        derivative.call.bind(py).call1(PyTuple::new(py, args)?)
    }
}

/// Turns plain arrays that a rule of Python's reads into constants of the tape whose variables it reads as well: operators of
/// some array libraries fail, where they should leave it to the variable on their right what to do.
fn lift(args: &mut [Bound<'_, PyAny>], sources: &[Source]) -> PyResult<()> {
    let mut variable = innermost(args).cloned();
    let is_read = |source: &Source| matches!(source, Source::Cotangent | Source::Result | Source::Arg(_));
    for (arg, _) in args.iter().zip(sources).filter(|(_, source)| is_read(source)) {
        let parts = parts(arg);
        if !parts.is_empty() {
            let known: Vec<_> = parts.into_iter().chain(variable.map(Bound::into_any)).collect();
            variable = innermost(&known).cloned();
        }
    }
    let Some(variable) = variable else { return Ok(()) };
    let tape = variable.get().tape.bind(variable.py());
    for (arg, _) in args.iter_mut().zip(sources).filter(|(_, source)| is_read(source)) {
        *arg = lifted(tape, arg)?;
    }
    Ok(())
}

/// What is in the tuple of an op with several results, or in its cotangent; nothing of an array.
fn parts<'py>(arg: &Bound<'py, PyAny>) -> Vec<Bound<'py, PyAny>> {
    if let Ok(results) = arg.cast::<PyTuple>() {
        return results.iter().collect();
    }
    arg.cast::<PyDict>().map_or_else(|_| Vec::new(), |parts| parts.values().iter().collect())
}

fn lifted<'py>(tape: &Bound<'py, Tape>, arg: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = arg.py();
    if let Ok(results) = arg.cast::<PyTuple>() {
        let results = results.iter().map(|result| lifted(tape, &result)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyTuple::new(py, results)?.into_any());
    }
    if let Ok(parts) = arg.cast::<PyDict>() {
        let copy = parts.copy()?;
        for (which, part) in parts {
            copy.set_item(which, lifted(tape, &part)?)?;
        }
        return arg.get_type().call1((copy,));
    }
    if arg.is_exact_instance_of::<Variable>() || !is_inexact(arg)? {
        return Ok(arg.clone());
    }
    Tape::lift(tape, arg)
}

/// The cotangent, in the shape and dtype of the argument.
fn fit_to<'py>(
    pulled: Bound<'py, PyAny>,
    shape: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = pulled.py();
    if let Some(fitted) = sum_to(&pulled, shape, dtype)? {
        return Ok(fitted);
    }
    if pulled.getattr(intern!(py, "dtype"))?.is(dtype) && pulled.getattr(intern!(py, "shape"))?.eq(shape)? {
        return Ok(pulled);
    }
    hook(py, "unbroadcast")?.call1((pulled, shape, dtype))
}

/// The value that a rule of an elementwise op reads.
fn kept<'v>(source: &Source, entry: &View<'v, Value, Attributes>, cotangent: &'v Value) -> Option<&'v Value> {
    match source {
        Source::Cotangent => Some(cotangent),
        Source::Result => Some(entry.result()),
        Source::Arg(at) => Some(entry.arg(*at as usize)),
        Source::Args | Source::Shape(_) | Source::Dtype(_) | Source::Which | Source::Attribute(_) => None,
    }
}
