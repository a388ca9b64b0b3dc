//! Masked cotangents over Python values: see [`oxigrad_core::autodiff::mask`].

use std::rc::Rc;

use oxigrad_core::autodiff::fusion::Masked;
use oxigrad_core::autodiff::mask::{Zeros, unselected};
use oxigrad_core::autodiff::replay::Host as _;
use oxigrad_core::autodiff::rule;
use oxigrad_core::autodiff::tape::{Origin, Value as _};
use oxigrad_core::op::{Elementwise, Op, Structured};
use pyo3::intern;
use pyo3::types::{PyEllipsis, PyFloat, PyList, PySlice, PyTuple};

use crate::arrays::compute::numpy_functions::{extents, is_host};
use crate::arrays::compute::reduce::is_finite;
use crate::arrays::value::Value;
use crate::autodiff::graph::entry::{Entry, cotangent_type, named};
use crate::autodiff::graph::tape::CotangentType;
use crate::autodiff::operations::record::record;
use crate::autodiff::replay::fusion::{Cotangent, Mask, NumpyArrays, PulledZeros, known, masked};
use crate::autodiff::replay::reverse::PythonHost;
use crate::autodiff::vjp_rules::{Derivative, Source};
use crate::callbacks;
use crate::prelude::*;

impl<'py> PythonHost<'py> {
    /// The zeros that the rule of an elementwise op gives: by the op, which selects another argument, and by the mask of the
    /// cotangent.
    pub fn pulled_zeros(&self, entry: &Entry<'_>, which: usize, cotangent: &Cotangent) -> PyResult<PulledZeros> {
        let before = if let Cotangent::Masked(masked) = cotangent { Some(masked.zeros.clone()) } else { None };
        let Origin::Op(op) = entry.origin else { return Ok(PulledZeros::None) };
        let made = unselected(op, which, entry, |value| value.share(self.py));
        if let Some(Zeros::If(condition) | Zeros::Unless(condition)) = &made
            && let Some(holds) = self.scalar_truth(condition)?
        {
            let is_zero = matches!(made, Some(Zeros::If(_))) == holds;
            return Ok(if is_zero { PulledZeros::All } else { before.map_or(PulledZeros::None, PulledZeros::Some) });
        }
        Ok(match (before, made) {
            (None, None) => PulledZeros::None,
            (Some(zeros), None) => PulledZeros::Some(zeros),
            (None, Some(zeros)) => PulledZeros::Some(Rc::new(zeros)),
            (Some(before), Some(made)) if self.depth(&before)? >= DEEPEST => {
                drop(before);
                PulledZeros::Some(Rc::new(made))
            }
            (Some(before), Some(made)) => PulledZeros::Some(self.combined(Elementwise::LogicalOr, &before, &made)?),
        })
    }

    /// The truth of a condition that is a number or one truth value of NumPy.
    fn scalar_truth(&self, condition: &Value) -> PyResult<Option<bool>> {
        let condition = match condition {
            Value::Number(number) => return Ok(Some(*number != 0.0)),
            Value::Object(condition) => condition,
            _ => return Ok(None),
        };
        let condition = condition.bind(self.py);
        let is_one = is_host(condition)? && extents(condition).is_empty();
        is_one.then(|| condition.is_truthy()).transpose()
    }

    /// The cotangent of an argument of an elementwise op, with its mask.
    pub fn pull_masked(
        &mut self,
        derivative: &Derivative,
        entry: &Entry<'_>,
        which: usize,
        cotangent: &Cotangent,
        zeros: Mask,
    ) -> PyResult<Cotangent> {
        let Origin::Op(op) = entry.origin else { return Ok(Cotangent::absent()) };
        let (inner, was_pending) = match cotangent {
            Cotangent::Masked(masked) => (&masked.cotangent, masked.is_pending),
            Cotangent::Known(_) | Cotangent::Deferred(_) => (cotangent, false),
        };
        let is_pending = was_pending
            || !keeps_zeros(self.py, derivative, op, which, entry)?
                && (!matches!(&*zeros, Zeros::Described(_)) || !is_regular(op) || self.is_on_host(inner)?);
        let pulled = self.through(derivative, entry, which, inner)?;
        let pulled = masked(pulled, zeros.clone(), is_pending);
        let is_last = entry.is_input(which) || is_cheap(&zeros) || self.depth(&zeros)? >= DEEPEST;
        match cotangent_type(entry, which) {
            None | Some(CotangentType::Same) => Ok(pulled),
            Some(CotangentType::Array { .. }) if entry.args.len() == 1 => Ok(pulled),
            Some(CotangentType::Number) => self.fit(entry, which, pulled),
            Some(CotangentType::Array { .. }) if is_last => self.fit(entry, which, pulled),
            Some(CotangentType::Array { shape, dtype }) => {
                let value = self.resolve(&pulled)?;
                let args = PyTuple::new(self.py, [shape, dtype])?;
                let mask = self.outside(self.py.None().bind(self.py), args, &value.object(self.py), Some(&zeros))?;
                Ok(masked(self.fit(entry, which, Cotangent::Known(value))?, mask, false))
            }
        }
    }

    /// The cotangent of an argument of a structured op, with its mask.
    pub fn pull_structured(
        &mut self,
        derivative: &Derivative,
        entry: &Entry<'_>,
        which: usize,
        cotangent: &Cotangent,
    ) -> PyResult<Cotangent> {
        let is_plain = !matches!(cotangent, Cotangent::Masked(_)) && !is_selection(entry);
        if is_plain || entry.is_input(which) {
            return self.pull(derivative, entry, which, cotangent);
        }
        let g = self.resolve(cotangent)?;
        let mask = self.unreached(entry, which, &g.object(self.py), cotangent)?;
        let is_read = derivative.needs.reads_values();
        let flow = Cotangent::Known(g);
        let is_pending =
            is_read && (!matches!(entry.origin, Origin::Op(op) if is_regular(op)) || self.is_on_host(&flow)?);
        let pulled = self.pull(derivative, entry, which, &flow)?;
        Ok(match mask {
            Some(mask) => masked(pulled, mask, is_pending),
            None => pulled,
        })
    }

    /// The elements of an argument of a structured op that get no cotangent: those that the op does not select, and those that
    /// only masked elements depend on. `None` where all get one, or no rule tells.
    pub fn unreached(
        &self,
        entry: &Entry<'_>,
        which: usize,
        g: &Object<'py>,
        cotangent: &Cotangent,
    ) -> PyResult<Option<Mask>> {
        let Origin::Op(op) = entry.origin else { return Ok(None) };
        let before = match cotangent {
            Cotangent::Masked(masked) if !is_cheap(&masked.zeros) && self.depth(&masked.zeros)? < DEEPEST => {
                Some(&masked.zeros)
            }
            _ => None,
        };
        if entry.is_input(which) || before.is_none() && (!is_selection(entry) || self.keeps_all(entry)?) {
            return Ok(None);
        }
        let Some(derivative) = self.registry.mask_row(op, which) else { return Ok(None) };
        let is_other = |source: &&Source| !matches!(source, Source::Value(rule::Source::Cotangent));
        let others = derivative.sources.iter().filter(is_other).map(|source| source.value(entry, which, g));
        let args = PyTuple::new(self.py, others.collect::<PyResult<Vec<_>>>()?)?;
        self.outside(derivative.call.bind(self.py), args, g, before).map(Some)
    }

    /// Zeros where a rule gives zero for ones of the shape of `g`, with zeros where its mask has them; `None` for a rule is
    /// unbroadcasting.
    fn outside(
        &self,
        rule: &Object<'py>,
        args: Bound<'py, PyTuple>,
        g: &Object<'py>,
        before: Option<&Mask>,
    ) -> PyResult<Mask> {
        let py = self.py;
        let shape = match g.getattr_opt(intern!(py, "shape"))? {
            Some(shape) => shape,
            None => PyTuple::empty(py).into_any(),
        };
        let depth = before.map_or(Ok(0), |zeros| self.depth(zeros))?;
        let before = before.map(|zeros| self.description(zeros)).transpose()?;
        let part = (rule, args, shape, before).into_pyobject(py)?;
        described(py, OUTSIDE, depth + 1, [PyList::new(py, [part])?.into_any()])
    }

    /// Zeros where both masks have them; `None` for masks of too many ops.
    pub fn joined(&self, mask: Option<Mask>, other: Mask) -> PyResult<Option<Mask>> {
        let Some(mask) = mask else { return Ok(Some(other)) };
        let depth = self.depth(&mask)?.max(self.depth(&other)?);
        // A list of lists: thousands of reads of one array by index are joined one by one.
        if let (Some(parts), Some(others)) = (self.parts(&mask)?, self.parts(&other)?) {
            return described(self.py, OUTSIDE, depth, [PyList::new(self.py, [parts, others])?.into_any()]).map(Some);
        }
        if depth >= DEEPEST { Ok(None) } else { self.combined(Elementwise::LogicalAnd, &mask, &other).map(Some) }
    }

    /// The number of ops that a description goes through.
    fn depth(&self, zeros: &Zeros<Value>) -> PyResult<usize> {
        let Zeros::Described(Value::Object(mask)) = zeros else { return Ok(0) };
        mask.bind(self.py).cast::<PyList>()?.get_item(1)?.extract()
    }

    /// The parts of a mask of what structured ops do not reach.
    fn parts(&self, zeros: &Zeros<Value>) -> PyResult<Option<Bound<'py, PyList>>> {
        let Zeros::Described(Value::Object(mask)) = zeros else { return Ok(None) };
        let mask = mask.bind(self.py).cast::<PyList>()?;
        Ok(if mask.get_item(0)?.eq(OUTSIDE)? { Some(mask.get_item(2)?.cast_into()?) } else { None })
    }

    /// Whether `x[key]` has all elements of `x`, as its key of slices and `None` has no numbers and no bounds.
    fn keeps_all(&self, entry: &Entry<'_>) -> PyResult<bool> {
        let Some(key) = named(entry, intern!(self.py, "key"))? else { return Ok(false) };
        let is_whole = |part: &Object<'py>| {
            let whole = PySlice::full(self.py);
            Ok::<_, PyErr>(
                part.is_none()
                    || part.is(PyEllipsis::get(self.py))
                    || part.cast_exact::<PySlice>().is_ok() && part.eq(whole)?,
            )
        };
        let Ok(parts) = key.cast::<PyTuple>() else { return is_whole(&key) };
        for part in parts {
            if !is_whole(&part)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The sum of two cotangents, of which one or both have a mask.
    pub fn add_masked(&mut self, a: Cotangent, b: Cotangent) -> PyResult<Cotangent> {
        if let (Cotangent::Masked(a), Cotangent::Masked(b)) = (&a, &b)
            && Rc::ptr_eq(&a.zeros, &b.zeros)
        {
            let share = |masked: &Masked<Value>| masked.cotangent.share(|value| value.share(self.py));
            let (one, other) = (share(a), share(b));
            let sum = self.add(one, other)?;
            return Ok(masked(sum, a.zeros.clone(), a.is_pending || b.is_pending));
        }
        let ((a, zeros), (b, others)) = (self.unmasked(a)?, self.unmasked(b)?);
        let sum = self.add(a, b)?;
        match (zeros, others) {
            (Some(zeros), Some(others)) if !are_opposite(&zeros, &others, self.py) => {
                Ok(match self.joined(Some(zeros), others)? {
                    Some(zeros) => masked(sum, zeros, false),
                    None => sum,
                })
            }
            _ => Ok(sum),
        }
    }

    /// The cotangent with its zeros, and its mask.
    pub fn unmasked(&mut self, flow: Cotangent) -> PyResult<(Cotangent, Option<Mask>)> {
        match flow {
            Cotangent::Masked(masked) if masked.is_pending => Ok((self.settled(&masked)?, Some(masked.zeros))),
            Cotangent::Masked(masked) => Ok((masked.cotangent, Some(masked.zeros))),
            flow => Ok((flow, None)),
        }
    }

    /// The cotangent with its zeros, without the mask.
    pub fn settled(&mut self, masked: &Masked<Value>) -> PyResult<Cotangent> {
        let py = self.py;
        if !masked.is_pending {
            return Ok(masked.cotangent.share(|value| value.share(py)));
        }
        if let Some(zeroed) = self.fusion.zeroed(&NumpyArrays(py), &masked.cotangent, &masked.zeros)? {
            return Ok(zeroed);
        }
        let value = self.resolve(&masked.cotangent)?;
        let is_described = matches!(&*masked.zeros, Zeros::Described(_));
        if is_described && is_finite(py, &value)? {
            return Ok(Cotangent::Known(value)); // the rules gave zeros for zeros
        }
        let (g, zero) = (value.object(py), PyFloat::new(py, 0.0).into_any());
        let shape = g.getattr_opt(intern!(py, "shape"))?;
        let is_number = shape.is_some_and(|shape| shape.len().is_ok_and(|dimensions| dimensions == 0));
        let args = match &*masked.zeros {
            Zeros::If(condition) => [condition.object(py), zero, g],
            Zeros::Unless(condition) => [condition.object(py), g, zero],
            less @ Zeros::Less(..) => [self.array(less)?, zero, g],
            Zeros::Described(mask) => {
                // Rules give zeros, of either sign, for zeros, unless something is not finite.
                let elementwise = |op, args: &[Object<'py>]| record(py, Op::Elementwise(op), args, None);
                let is_finite = elementwise(Elementwise::IsFinite, std::slice::from_ref(&g))?;
                let is_other = elementwise(Elementwise::LogicalNot, &[is_finite])?;
                let is_zero = callbacks::masked_zeros(py, (mask.object(py), &g))?;
                [elementwise(Elementwise::LogicalAnd, &[is_zero, is_other])?, zero, g]
            }
        };
        let zeroed = record(py, Op::Elementwise(Elementwise::Where), &args, None)?;
        // A choice of numbers is an array without dimensions.
        Ok(known(&if is_number { zeroed.get_item(PyTuple::empty(py))? } else { zeroed }))
    }

    /// A mask as an array of truth values.
    fn array(&self, zeros: &Zeros<Value>) -> PyResult<Object<'py>> {
        let py = self.py;
        let elementwise = |op, args: &[Object<'py>]| record(py, Op::Elementwise(op), args, None);
        match zeros {
            Zeros::If(condition) | Zeros::Described(condition) => Ok(condition.object(py)),
            Zeros::Unless(condition) => elementwise(Elementwise::LogicalNot, &[condition.object(py)]),
            Zeros::Less(a, b) => elementwise(Elementwise::Less, &[a.object(py), b.object(py)]),
        }
    }

    /// A mask as a list, which `oxigrad.autodiff.rules.masks` reads: the name of its kind, and its parts.
    fn description(&self, zeros: &Zeros<Value>) -> PyResult<Object<'py>> {
        let py = self.py;
        Ok(match zeros {
            Zeros::Described(mask) => mask.object(py),
            zeros => ("if", 0, self.array(zeros)?).into_pyobject(py)?.to_list().into_any(),
        })
    }

    /// Zeros where one mask has them, or where both have.
    fn combined(&self, op: Elementwise, a: &Zeros<Value>, b: &Zeros<Value>) -> PyResult<Mask> {
        if matches!(a, Zeros::Described(_)) || matches!(b, Zeros::Described(_)) {
            let (one, other) = (self.depth(a)?, self.depth(b)?);
            return described(self.py, op.name(), one.max(other) + 1, [self.description(a)?, self.description(b)?]);
        }
        let args = [self.array(a)?, self.array(b)?];
        Ok(Rc::new(Zeros::If(Value::from(record(self.py, Op::Elementwise(op), &args, None)?))))
    }

    /// Whether a cotangent is a number or a NumPy array: it is cheap to see whether it is finite.
    fn is_on_host(&self, cotangent: &Cotangent) -> PyResult<bool> {
        match cotangent {
            Cotangent::Known(Value::Object(object)) => is_host(object.bind(self.py)),
            _ => Ok(true),
        }
    }
}

/// The kind of a mask of what structured ops do not reach.
const OUTSIDE: &str = "outside";

/// The most ops that a description goes through: behind more of them, as in a long loop, a cotangent has plain zeros.
const DEEPEST: usize = 64;

fn described<'py>(
    py: Python<'py>,
    kind: &str,
    depth: usize,
    parts: impl IntoIterator<Item = Object<'py>>,
) -> PyResult<Mask> {
    let mask = (kind, depth).into_pyobject(py)?.to_list();
    for part in parts {
        mask.append(part)?;
    }
    Ok(Rc::new(Zeros::Described(Value::Object(mask.into_any().unbind()))))
}

/// Whether a structured op selects elements of its argument: the others get no cotangent.
fn is_selection(entry: &Entry<'_>) -> bool {
    use Structured as S;
    matches!(entry.origin, Origin::Op(Op::Structured(S::Index | S::TakeAlongAxis | S::Max | S::Min)))
}

/// Whether derivatives of every order of an op are finite at finite arguments: only an overflow gives more than zero for zero.
fn is_regular(op: Op) -> bool {
    use Elementwise as E;
    use Structured as S;
    match op {
        Op::Elementwise(op) => [
            E::Add,
            E::Subtract,
            E::Multiply,
            E::Square,
            E::Exp,
            E::Expm1,
            E::Sin,
            E::Cos,
            E::Sinh,
            E::Cosh,
            E::Tanh,
            E::Atan,
            E::Erf,
            E::Erfc,
            E::Expit,
        ]
        .contains(&op),
        Op::Structured(op) => matches!(op, S::Matmul | S::Max | S::Min),
    }
}

/// Whether a mask is that of a maximum or a minimum, which programs have where no derivative is infinite: elementwise ops alone
/// keep it.
const fn is_cheap(zeros: &Zeros<Value>) -> bool {
    matches!(zeros, Zeros::Less(..))
}

/// Whether one mask has zeros where the other has none, as those of the two arguments of a `where`.
fn are_opposite(a: &Zeros<Value>, b: &Zeros<Value>, py: Python<'_>) -> bool {
    let ((Zeros::If(a), Zeros::Unless(b)) | (Zeros::Unless(b), Zeros::If(a))) = (a, b) else { return false };
    a.object(py).is(b.object(py))
}

/// Whether a rule gives zero for zero, whatever the values that it reads.
fn keeps_zeros(py: Python<'_>, derivative: &Derivative, op: Op, which: usize, entry: &Entry<'_>) -> PyResult<bool> {
    use Elementwise as E;
    let is_op = |ops: &[Elementwise]| matches!(op, Op::Elementwise(op) if ops.contains(&op));
    let keeps_all = derivative.is_identity
        || derivative.is_negation()
        || is_op(&[E::Where, E::Maximum, E::Minimum, E::Real, E::Imag, E::Conj]);
    if keeps_all {
        return Ok(true);
    }
    let factor = match which {
        _ if is_op(&[E::Multiply]) => 1 - which,
        0 if is_op(&[E::Divide]) => 1,
        _ => return Ok(false),
    };
    match entry.arg(factor) {
        Value::Number(number) => Ok(number.is_finite() && *number != 0.0),
        // A recording takes this for any such number.
        factor => match factor.object(py).getattr_opt(intern!(py, "_is_finite_number"))? {
            Some(is_number) => is_number.is_truthy(),
            None => Ok(false),
        },
    }
}
