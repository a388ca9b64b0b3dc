//! The host of a replay over Python values.
//!
//! Rules of numbers run in the core. Rules run on NumPy arrays without Python, elementwise ones as kernels, those of
//! structured ops as in [`traced`]; everything else calls the Python rule.

use oxigrad_core::autodiff::replay::Host;
use oxigrad_core::autodiff::rule::Rules;
use oxigrad_core::autodiff::tape::{Id, Origin, Value as _};
use oxigrad_core::op::{Elementwise, Op, Structured};
use pyo3::intern;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use crate::arrays::batch_level::BatchLevel;
use crate::arrays::compute::array_pool;
use crate::arrays::compute::elementwise::{add_to, compute};
use crate::arrays::value::Value;
use crate::autodiff::graph::batched::{is_above, released};
use crate::autodiff::graph::entry::{Entry, cotangent_type};
use crate::autodiff::graph::tape::{Attributes, CoreTape, CotangentType, Tape};
use crate::autodiff::graph::variable::Variable;
use crate::autodiff::operations::evaluate::by_operator;
use crate::autodiff::operations::record::{innermost, record};
use crate::autodiff::replay::fit::unbroadcast;
use crate::autodiff::replay::fusion::{Cotangent, Fusion, NumpyArrays, PulledZeros, known, masked};
use crate::autodiff::replay::{leaf_calls, scatter, traced};
use crate::autodiff::vjp_rules::{Derivative, Registry, Row, Source, missing, registry};
use crate::callbacks;
use crate::prelude::*;
use crate::tree::is_inexact;

pub struct PythonHost<'py> {
    pub py: Python<'py>,
    pub registry: &'py Registry,
    /// The number of tangents along a leading batch axis; `None` if a tangent has the shape of its value.
    pub batch: Option<usize>,
    /// Whether the rules in use are those of the square of an entry, which is a modulus.
    pub of_square: bool,
    pub fusion: Fusion<'py>,
    /// Takes final cotangents, if given: `take(which, cotangent)` returns whether it has.
    take: Option<Object<'py>>,
}

/// Replays a tape in reverse from the seeds and returns the cotangents of `inputs`; 0.0 in the place of those that `take`,
/// called with the position of an input and its final cotangent, has taken. It may then change the input in place.
pub fn replay<'py>(
    py: Python<'py>,
    tape: &mut CoreTape,
    seeds: Vec<(Id, Value)>,
    inputs: &[Id],
    release: bool,
    take: Option<Object<'py>>,
) -> PyResult<Vec<Value>> {
    let mut host = PythonHost { take, ..PythonHost::new(py, None)? };
    let seeds = seeds.into_iter().map(|(id, seed)| (id, Cotangent::Known(seed))).collect();
    let found = tape.replay(seeds, inputs, release, &mut host)?;
    found.iter().map(|flow| host.resolve(flow)).collect()
}

impl Host<Value, Attributes> for PythonHost<'_> {
    type Error = PyErr;
    type Flow = Cotangent;

    fn rules(&self) -> &Rules {
        self.rules_in_use()
    }

    fn are_equal(&self, a: Option<&Attributes>, b: Option<&Attributes>) -> PyResult<bool> {
        match (a.and_then(|each| each.named.as_ref()), b.and_then(|each| each.named.as_ref())) {
            (Some(a), Some(b)) => a.bind(self.py).eq(b),
            (a, b) => Ok(a.is_none() && b.is_none()),
        }
    }

    fn is_real(&self, value: &Value) -> PyResult<bool> {
        Ok(value.is_scalar() || !callbacks::is_complex(self.py, (value.object(self.py),))?.is_truthy()?)
    }

    fn with_squares<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.of_square = true;
        let result = f(self);
        self.of_square = false;
        result
    }

    fn pullback(&mut self, entry: &Entry<'_>, which: usize, cotangent: &Cotangent) -> PyResult<Cotangent> {
        let Origin::Op(op) = entry.origin else { return Ok(Cotangent::absent()) };
        let derivative = match self.registry.row_of(op, which, self.of_square) {
            Row::Missing(reason) => return Err(missing(op, reason)),
            Row::Zero => return Ok(Cotangent::absent()),
            Row::Rule(derivative) => derivative,
        };
        if matches!(op, Op::Structured(op) if op != Structured::Kink) {
            return self.pull_structured(derivative, entry, which, cotangent);
        }
        match self.pulled_zeros(entry, which, cotangent)? {
            PulledZeros::None => self.pull(derivative, entry, which, cotangent),
            PulledZeros::All => Ok(Cotangent::absent()),
            PulledZeros::Some(zeros) => self.pull_masked(derivative, entry, which, cotangent, zeros),
        }
    }

    fn pull_into(
        &mut self,
        entry: &Entry<'_>,
        which: usize,
        cotangent: &Cotangent,
        sum: &mut Cotangent,
    ) -> PyResult<bool> {
        if which != 0 || entry.origin != Origin::Op(Op::Structured(Structured::Index)) {
            return Ok(false);
        }
        let g = self.resolve(cotangent)?.into_object(self.py);
        let (before, mask) = self.unmasked(std::mem::replace(sum, Cotangent::absent()))?;
        let is_first = before.is_absent();
        let mut value = self.resolve_owned(before)?;
        let added = scatter::pull_into(entry, &g, &mut value)?;
        let mask = match (added && (is_first || mask.is_some()), mask) {
            (true, mask) => match self.unreached(entry, which, &g, cotangent)? {
                Some(other) => self.joined(mask, other)?,
                None => None,
            },
            (false, mask) => mask,
        };
        *sum = match mask {
            Some(mask) => masked(Cotangent::Known(value), mask, false),
            None => Cotangent::Known(value),
        };
        Ok(added)
    }

    fn pull_together(&mut self, entry: &Entry<'_>, cotangent: &Cotangent) -> PyResult<Option<Vec<Cotangent>>> {
        let Origin::Op(op) = entry.origin else { return Ok(None) };
        let Row::Rule(derivative) = self.registry.row(op, 0) else { return Ok(None) };
        if !derivative.is_together() {
            return Ok(None);
        }
        let cotangent = self.resolve(cotangent)?;
        if op == Op::Structured(Structured::Call)
            && let Some(pulled) = leaf_calls::pull(self.py, entry, &cotangent.object(self.py))?
        {
            return Ok(Some(pulled));
        }
        let pulled = self.call(derivative, entry, 0, &cotangent)?;
        let flow = |(which, pulled): (usize, PyResult<Object<'_>>)| {
            pulled.map(
                |pulled| if pulled.is_none() || !entry.is_active(which) { Cotangent::absent() } else { known(&pulled) },
            )
        };
        pulled.try_iter()?.enumerate().map(flow).collect::<PyResult<_>>().map(Some)
    }

    fn pushforward(&mut self, entry: &Entry<'_>, tangents: &[&Cotangent]) -> PyResult<Cotangent> {
        let tangents = tangents.iter().map(|tangent| self.resolve(tangent)).collect::<PyResult<Vec<_>>>()?;
        self.push(entry, &tangents.iter().collect::<Vec<_>>()).map(Cotangent::Known)
    }

    fn add(&mut self, a: Cotangent, b: Cotangent) -> PyResult<Cotangent> {
        if matches!(a, Cotangent::Masked(_)) || matches!(b, Cotangent::Masked(_)) {
            return self.add_masked(a, b);
        }
        if let Some(sum) = self.fusion.add(&NumpyArrays(self.py), &a, &b)? {
            return Ok(sum);
        }
        let (sum, term) = (self.resolve_owned(a)?, self.resolve_owned(b)?);
        self.sum(sum, term).map(Cotangent::Known)
    }

    fn takes(&self) -> bool {
        self.take.is_some()
    }

    fn take(&mut self, which: usize, cotangent: Cotangent) -> PyResult<Cotangent> {
        let value = self.resolve_owned(cotangent)?;
        self.fusion.flush(&NumpyArrays(self.py))?;
        let Some(take) = &self.take else { return Ok(Cotangent::Known(value)) };
        let is_taken = take.call1((which, value.object(self.py)))?.is_truthy()?;
        Ok(Cotangent::Known(if is_taken { Value::Number(0.0) } else { value }))
    }

    fn retire(&mut self, value: Value) {
        array_pool::keep(self.py, value);
    }

    fn spend(&mut self, cotangent: Cotangent) {
        if let Some(value) = cotangent.into_computed() {
            array_pool::keep(self.py, value);
        }
    }

    fn pulse(&mut self) -> PyResult<()> {
        self.py.check_signals()
    }
}

impl<'py> PythonHost<'py> {
    /// A host for one replay; see [`PythonHost::batch`].
    pub fn new(py: Python<'py>, batch: Option<usize>) -> PyResult<Self> {
        Ok(Self { py, registry: registry(py)?, batch, of_square: false, fusion: Fusion::default(), take: None })
    }

    fn rules_in_use(&self) -> &'py Rules {
        if self.of_square { &self.registry.square_rules } else { &self.registry.rules }
    }

    /// The value of a cotangent, computed now where it was deferred.
    pub fn resolve(&mut self, flow: &Cotangent) -> PyResult<Value> {
        if let Cotangent::Masked(masked) = flow {
            let settled = self.settled(masked)?;
            return self.resolve_owned(settled);
        }
        self.fusion.resolve(&NumpyArrays(self.py), flow)
    }

    /// As [`PythonHost::resolve`], without another reference to the value.
    pub fn resolve_owned(&mut self, flow: Cotangent) -> PyResult<Value> {
        let (flow, _) = self.unmasked(flow)?;
        if let Cotangent::Known(value) = flow {
            return Ok(value);
        }
        let value = self.resolve(&flow)?;
        Ok(flow.into_computed().unwrap_or(value))
    }

    /// The sum of two cotangents, in the memory of one of them if it has no other reference.
    pub fn sum(&self, a: Value, b: Value) -> PyResult<Value> {
        let (sum, term) = (a.into_object(self.py), b.into_object(self.py));
        if add_to(&sum, &term)? {
            array_pool::keep(self.py, Value::Object(term.unbind()));
            return Ok(Value::Object(sum.unbind()));
        }
        if add_to(&term, &sum)? {
            return Ok(Value::Object(term.unbind()));
        }
        Ok(Value::new(&record(self.py, Op::Elementwise(Elementwise::Add), &[sum, term], None)?))
    }

    /// The cotangent of an argument, unbroadcast to its shape.
    pub fn pull(
        &mut self,
        derivative: &Derivative,
        entry: &Entry<'_>,
        which: usize,
        cotangent: &Cotangent,
    ) -> PyResult<Cotangent> {
        if derivative.is_negation()
            && entry.args.len() > 1
            && let Some(CotangentType::Array { .. }) = cotangent_type(entry, which)
        {
            // Summing first leaves fewer elements to negate.
            let fitted = self.fit(entry, which, cotangent.share(|value| value.share(self.py)))?;
            return self.through(derivative, entry, which, &fitted);
        }
        let pulled = self.through(derivative, entry, which, cotangent)?;
        self.fit(entry, which, pulled)
    }

    /// A cotangent in the shape and dtype of the argument.
    pub fn fit(&mut self, entry: &Entry<'_>, which: usize, pulled: Cotangent) -> PyResult<Cotangent> {
        let py = self.py;
        match cotangent_type(entry, which) {
            Some(CotangentType::Number) => {
                Ok(known(&callbacks::unbroadcast_to_number(py, (self.resolve(&pulled)?.object(py),))?))
            }
            Some(CotangentType::Array { shape, dtype }) if entry.args.len() > 1 => {
                let g = self.resolve(&pulled)?.object(py);
                Ok(known(&unbroadcast(g, shape.bind(py), dtype.bind(py))?))
            }
            _ => Ok(pulled),
        }
    }

    /// The cotangent of an argument before unbroadcasting and casting; its computation may be deferred.
    pub fn through(
        &mut self,
        derivative: &Derivative,
        entry: &Entry<'_>,
        which: usize,
        cotangent: &Cotangent,
    ) -> PyResult<Cotangent> {
        // Of a masked scalar, in its precision; the replay computes that of any other.
        if let Origin::Op(Op::Elementwise(op)) = entry.origin
            && let Cotangent::Known(value) = cotangent
            && let Some(g) = value.scalar()
            && let Some(pulled) = self.rules_in_use().pull(op, which, g, entry)
        {
            return Ok(Cotangent::Known(Value::from_scalar(pulled)));
        }
        if derivative.is_identity {
            return Ok(cotangent.share(|value| value.share(self.py)));
        }
        if let Origin::Op(Op::Elementwise(op)) = entry.origin
            && let Some(rule) = self.rules_in_use().get(op, which)
            && let Some(deferred) = self.fusion.defer(&NumpyArrays(self.py), rule, entry, cotangent)?
        {
            return Ok(deferred);
        }
        let cotangent = self.resolve(cotangent)?;
        let pulled = self.apply(derivative, entry, which, &cotangent)?;
        Ok(Cotangent::Known(Value::from(pulled)))
    }

    /// The result of a rule for a cotangent, or for a tangent of the shape of the result.
    pub fn apply(
        &mut self,
        derivative: &Derivative,
        entry: &Entry<'_>,
        which: usize,
        cotangent: &Value,
    ) -> PyResult<Object<'py>> {
        if derivative.is_identity {
            return Ok(cotangent.object(self.py));
        }
        if matches!(entry.origin, Origin::Op(Op::Structured(_)))
            && !matches!(cotangent, Value::Absent | Value::Number(_))
            && let Some(result) = traced::pull(derivative, entry, which, &cotangent.object(self.py))?
        {
            return Ok(result);
        }
        if let Some(result) = self.run(derivative, entry, cotangent)? {
            return Ok(result);
        }
        match self.operate(derivative, entry, cotangent) {
            Some(result) => result,
            None => self.call(derivative, entry, which, cotangent),
        }
    }

    /// Runs a rule that is a single operator, without a call of the Python rule.
    fn operate(&self, derivative: &Derivative, entry: &Entry<'_>, cotangent: &Value) -> Option<PyResult<Object<'py>>> {
        let (op, read) = derivative.only.as_ref()?;
        let mut args: SmallVec<[Object<'py>; 3]> = SmallVec::new();
        for source in read {
            args.push(kept(&derivative.sources[*source], entry, cotangent)?.object(self.py));
        }
        if innermost(&args).is_some() {
            return Some(record(self.py, *op, &args, None));
        }
        if let Err(error) = of_rule(&mut args) {
            return Some(Err(error));
        }
        by_operator(*op, &args).map(|result| result.and_then(out_of_rule))
    }

    /// Runs the rule of an elementwise op as a kernel, where its operands are numbers and NumPy arrays.
    fn run(&mut self, derivative: &Derivative, entry: &Entry<'_>, cotangent: &Value) -> PyResult<Option<Object<'py>>> {
        let (py, Some(kernel)) = (self.py, &derivative.kernel) else { return Ok(None) };
        let Value::Object(g) = cotangent else { return Ok(None) };
        let values = derivative.sources.iter().map(|source| kept(source, entry, cotangent));
        let Some(values) = values.collect::<Option<SmallVec<[&Value; 4]>>>() else { return Ok(None) };
        if let Some(result) = compute(kernel, values.iter().copied(), g.bind(py))? {
            return Ok(Some(result));
        }
        let Some(plain) = released(py, values.into_iter())? else { return Ok(None) };
        let g = released(py, [cotangent].into_iter())?.map_or_else(|| g.bind(py).clone(), |g| g[0].object(py));
        compute(kernel, plain.iter(), &g)
    }

    fn call(
        &self,
        derivative: &Derivative,
        entry: &Entry<'_>,
        which: usize,
        cotangent: &Value,
    ) -> PyResult<Object<'py>> {
        let (py, g) = (self.py, cotangent.object(self.py));
        let read = |source: &Source| source.value(entry, which, &g);
        let mut args = derivative.sources.iter().map(read).collect::<PyResult<Vec<_>>>()?;
        if !derivative.is_together() {
            lift(&mut args, &derivative.sources)?;
        }
        let is_elementwise = matches!(entry.origin, Origin::Op(Op::Elementwise(_)));
        if is_elementwise && innermost(&args).is_none() {
            of_rule(&mut args)?;
        }
        let result = derivative.call.bind(py).call1(PyTuple::new(py, args)?)?;
        if is_elementwise { out_of_rule(result) } else { Ok(result) }
    }
}

/// Marks values of a recording as operands of the rule of an elementwise op: the core computes such a rule, and not the
/// array library.
fn of_rule(args: &mut [Object<'_>]) -> PyResult<()> {
    let mut marks = args.iter().filter(|arg| arg.is_instance_of::<BatchLevel>());
    let mark = marks.find_map(|arg| arg.getattr_opt(intern!(arg.py(), "operands")).transpose());
    let Some(mark) = mark.transpose()? else { return Ok(()) };
    let marked = mark.call1((PyTuple::new(mark.py(), &*args)?,))?;
    args.iter_mut().zip(marked.try_iter()?).try_for_each(|(arg, marked)| marked.map(|marked| *arg = marked))
}

/// The result of a rule, without the mark.
fn out_of_rule(result: Object<'_>) -> PyResult<Object<'_>> {
    if !result.is_instance_of::<BatchLevel>() {
        return Ok(result);
    }
    Ok(result.getattr_opt(intern!(result.py(), "out_of_rule"))?.unwrap_or(result))
}

/// Lifts plain arrays among the arguments of a Python rule to constants of the tape that its variables are on:
/// operators of some array libraries raise an error where they should return `NotImplemented` for a variable on their
/// right. Values of a `vmap` inside of that tape stay what they are.
fn lift(args: &mut [Object<'_>], sources: &[Source]) -> PyResult<()> {
    let mut variable = innermost(args).cloned();
    let is_read = |source: &Source| matches!(source, Source::Value(_));
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

/// The items of the tuple of an op with several results, or of its cotangent; empty for an array.
fn parts<'py>(arg: &Object<'py>) -> Vec<Object<'py>> {
    if let Ok(results) = arg.cast::<PyTuple>() {
        return results.iter().collect();
    }
    arg.cast::<PyDict>().map_or_else(|_| Vec::new(), |parts| parts.values().iter().collect())
}

fn lifted<'py>(tape: &Bound<'py, Tape>, arg: &Object<'py>) -> PyResult<Object<'py>> {
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
    if arg.is_exact_instance_of::<Variable>() || is_above(arg, tape.get().serial) || !is_inexact(arg)? {
        return Ok(arg.clone());
    }
    Tape::lift(tape, arg, false)
}

/// The operand of a rule of an elementwise op.
fn kept<'v>(source: &Source, entry: &Entry<'v>, cotangent: &'v Value) -> Option<&'v Value> {
    if let Source::Value(source) = source { Some(source.kept(entry).unwrap_or(cotangent)) } else { None }
}
