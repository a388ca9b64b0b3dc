//! Masked cotangents over Python values: see [`oxigrad_core::autodiff::mask`].

use std::rc::Rc;

use oxigrad_core::autodiff::fusion::Masked;
use oxigrad_core::autodiff::mask::{Zeros, unselected};
use oxigrad_core::autodiff::replay::Host as _;
use oxigrad_core::autodiff::tape::{Origin, Value as _};
use oxigrad_core::op::{Elementwise, Op, Structured};
use pyo3::intern;
use pyo3::types::{PyEllipsis, PyFloat, PySlice, PyTuple};

use crate::arrays::compute::numpy_functions::{extents, is_host};
use crate::arrays::value::Value;
use crate::autodiff::graph::entry::{Entry, cotangent_type, named, shape_of};
use crate::autodiff::graph::tape::CotangentType;
use crate::autodiff::graph::variable::plain;
use crate::autodiff::operations::record::record;
use crate::autodiff::replay::fusion::{Cotangent, NumpyArrays, known};
use crate::autodiff::replay::reverse::{Mask, PulledZeros, PythonHost};
use crate::autodiff::vjp_rules::{Derivative, Row};
use crate::callbacks;
use crate::prelude::*;

impl<'py> PythonHost<'py> {
    /// The zeros that the rule of an elementwise op gives: by the op, which selects another argument, and by the mask of the
    /// cotangent. The mask of the cotangent, for a structured op.
    pub fn pulled_zeros(&mut self, entry: &Entry<'_>, which: usize, cotangent: &Cotangent) -> PyResult<PulledZeros> {
        let before = if let Cotangent::Masked(masked) = cotangent { Some(masked.zeros.clone()) } else { None };
        let Origin::Op(op) = entry.origin else { return Ok(PulledZeros::None) };
        if before.is_none()
            && let Some(key) = self.mask_key(entry)?
        {
            return Ok(PulledZeros::Some(Rc::new(Zeros::Unless(Value::new(&key)))));
        }
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
            (Some(before), Some(made)) => PulledZeros::Some(self.combined(Elementwise::LogicalOr, &before, &made)?),
        })
    }

    /// Whether the mask of a cotangent is to be carried through an index, or the index makes one.
    pub fn masks_index(&self, entry: &Entry<'_>, cotangent: &Cotangent) -> PyResult<bool> {
        if entry.is_input(0) {
            return Ok(false);
        }
        Ok(self.mask_key(entry)?.is_some() || matches!(cotangent, Cotangent::Masked(_)) && self.keeps_all(entry)?)
    }

    /// The key of `x[key]` that is an array of truth values of the shape of `x`.
    fn mask_key(&self, entry: &Entry<'_>) -> PyResult<Option<Object<'py>>> {
        let py = self.py;
        if entry.origin != Origin::Op(Op::Structured(Structured::Index)) {
            return Ok(None);
        }
        let key = named(entry, intern!(py, "key"))?.filter(|key| !key.is_instance_of::<PyTuple>());
        let Some(key) = key else { return Ok(None) };
        let Some(dtype) = key.getattr_opt(intern!(py, "dtype"))? else { return Ok(None) };
        let is_truth = dtype.str()?.to_cow()?.ends_with("bool");
        Ok((is_truth && key.getattr(intern!(py, "shape"))?.eq(shape_of(entry, 0, py))?).then_some(key))
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

    /// The cotangent of an argument, with its mask.
    pub fn pull_masked(
        &mut self,
        derivative: &Derivative,
        entry: &Entry<'_>,
        which: usize,
        cotangent: &Cotangent,
        zeros: Mask,
    ) -> PyResult<Cotangent> {
        let Origin::Op(op) = entry.origin else { return Ok(Cotangent::absent()) };
        // A kink has the shape and the mask of its argument, as an elementwise op.
        if matches!(op, Op::Structured(op) if op != Structured::Kink) {
            let g = self.resolve(cotangent)?;
            let pulled = self.pull(derivative, entry, which, &Cotangent::Known(g.share(self.py)))?;
            if !matches!(cotangent, Cotangent::Masked(_)) {
                return Ok(masked(pulled, zeros, false));
            }
            return Ok(match self.carried(derivative, entry, which, &g, &zeros)? {
                Some(zeros) => masked(pulled, zeros, false),
                None => pulled,
            });
        }
        let (inner, was_pending) = match cotangent {
            Cotangent::Masked(masked) => (&masked.cotangent, masked.is_pending),
            Cotangent::Known(_) | Cotangent::Deferred(_) => (cotangent, false),
        };
        let is_pending = was_pending || !keeps_zeros(derivative, op, which, entry);
        let pulled = self.through(derivative, entry, which, inner)?;
        let pulled = masked(pulled, zeros.clone(), is_pending);
        match cotangent_type(entry, which) {
            None | Some(CotangentType::Same) => Ok(pulled),
            Some(CotangentType::Array { .. }) if entry.args.len() == 1 => Ok(pulled),
            Some(CotangentType::Number) => self.fit(entry, which, pulled),
            Some(CotangentType::Array { .. }) if entry.is_input(which) || is_cheap(&zeros) => {
                self.fit(entry, which, pulled)
            }
            Some(CotangentType::Array { .. }) => {
                let value = self.resolve(&pulled)?;
                let live = Cotangent::Known(self.live(&value, &zeros)?);
                let live = self.fit(entry, which, live)?;
                let zeros = self.zeros_of(&live)?;
                Ok(masked(self.fit(entry, which, Cotangent::Known(value))?, zeros, false))
            }
        }
    }

    /// The sum of two cotangents, of which one or both have a mask.
    pub fn add_masked(&mut self, a: Cotangent, b: Cotangent) -> PyResult<Cotangent> {
        match (a, b) {
            (Cotangent::Masked(a), Cotangent::Masked(b)) if Rc::ptr_eq(&a.zeros, &b.zeros) => {
                let is_pending = a.is_pending || b.is_pending;
                let sum = self.add(a.cotangent, b.cotangent)?;
                Ok(masked(sum, a.zeros, is_pending))
            }
            (Cotangent::Masked(a), Cotangent::Masked(b)) => {
                let (one, other) = (self.settled(&a)?, self.settled(&b)?);
                let sum = self.add(one, other)?;
                if are_opposite(&a.zeros, &b.zeros, self.py) {
                    return Ok(sum);
                }
                Ok(masked(sum, self.combined(Elementwise::LogicalAnd, &a.zeros, &b.zeros)?, false))
            }
            (Cotangent::Masked(a), b) => {
                let a = self.settled(&a)?;
                self.add(a, b)
            }
            (a, Cotangent::Masked(b)) => {
                let b = self.settled(&b)?;
                self.add(a, b)
            }
            (a, b) => self.add(a, b),
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
        let g = self.resolve(&masked.cotangent)?.object(py);
        let zero = PyFloat::new(py, 0.0).into_any();
        let args = match &*masked.zeros {
            Zeros::If(condition) => [condition.object(py), zero, g],
            Zeros::Unless(condition) => [condition.object(py), g, zero],
            less @ Zeros::Less(..) => [self.array(less)?, zero, g],
        };
        Ok(known(&record(py, Op::Elementwise(Elementwise::Where), &args, None)?))
    }

    /// A mask as an array of truth values.
    fn array(&self, zeros: &Zeros<Value>) -> PyResult<Object<'py>> {
        let py = self.py;
        let elementwise = |op, args: &[Object<'py>]| record(py, Op::Elementwise(op), args, None);
        match zeros {
            Zeros::If(condition) => Ok(condition.object(py)),
            Zeros::Unless(condition) => elementwise(Elementwise::LogicalNot, &[condition.object(py)]),
            Zeros::Less(a, b) => elementwise(Elementwise::Less, &[a.object(py), b.object(py)]),
        }
    }

    fn combined(&self, op: Elementwise, a: &Zeros<Value>, b: &Zeros<Value>) -> PyResult<Mask> {
        let args = [self.array(a)?, self.array(b)?];
        Ok(Rc::new(Zeros::If(Value::from(record(self.py, Op::Elementwise(op), &args, None)?))))
    }

    /// The mask behind a structured op that moves, repeats or adds elements; `None` for other ops.
    fn carried(
        &mut self,
        derivative: &Derivative,
        entry: &Entry<'_>,
        which: usize,
        g: &Value,
        zeros: &Zeros<Value>,
    ) -> PyResult<Option<Mask>> {
        use Structured as S;
        let Origin::Op(Op::Structured(op)) = entry.origin else { return Ok(None) };
        if entry.is_input(which) || is_cheap(zeros) {
            return Ok(None);
        }
        let derivative = match op {
            S::Index if self.masks_index(entry, &Cotangent::absent())? || self.keeps_all(entry)? => derivative,
            // What moves elements, or gives their sums.
            S::Sum
            | S::Mean
            | S::CumulativeSum
            | S::Flip
            | S::Reshape
            | S::PermuteDims
            | S::ExpandDims
            | S::Squeeze
            | S::BroadcastTo
            | S::Concat
            | S::Stack
            | S::Astype
            | S::TakeAlongAxis
            | S::ScatterAdd => derivative,
            // Each result depends on the elements along its axes, as a sum does.
            S::Max | S::Min | S::VectorNorm => match self.registry.row(Op::Structured(S::Sum), 0) {
                Row::Rule(sum) => sum,
                _ => return Ok(None),
            },
            S::Matmul
            | S::Index
            | S::Call
            | S::Item
            | S::Inv
            | S::Solve
            | S::Cholesky
            | S::Qr
            | S::Svd
            | S::Eigh
            | S::Kink
            | S::Eig
            | S::Det
            | S::Cofactor
            | S::Slogdet
            | S::Sqrtm
            | S::Pinv
            | S::Fftn
            | S::Ifftn
            | S::Rfft
            | S::Irfft => return Ok(None),
        };
        let live = Cotangent::Known(self.live(g, zeros)?);
        let live = self.pull(derivative, entry, which, &live)?;
        self.zeros_of(&live).map(Some)
    }

    /// Ones of the shape and dtype of a cotangent, and zeros where a mask has them.
    fn live(&self, g: &Value, zeros: &Zeros<Value>) -> PyResult<Value> {
        let py = self.py;
        let nothing = callbacks::zeros_like(py, (plain(&g.object(py))?,))?;
        let args = [self.array(zeros)?, nothing, PyFloat::new(py, 1.0).into_any()];
        record(py, Op::Elementwise(Elementwise::Where), &args, None).map(Value::from)
    }

    /// The zeros of sums of ones and zeros.
    fn zeros_of(&mut self, live: &Cotangent) -> PyResult<Mask> {
        let args = [self.resolve(live)?.object(self.py), PyFloat::new(self.py, 0.0).into_any()];
        let equal = record(self.py, Op::Elementwise(Elementwise::Equal), &args, None)?;
        Ok(Rc::new(Zeros::If(Value::from(equal))))
    }
}

fn masked(cotangent: Cotangent, zeros: Mask, is_pending: bool) -> Cotangent {
    Cotangent::Masked(Box::new(Masked { cotangent, zeros, is_pending }))
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
fn keeps_zeros(derivative: &Derivative, op: Op, which: usize, entry: &Entry<'_>) -> bool {
    use Elementwise as E;
    let is_number = |at: usize| matches!(entry.arg(at), Value::Number(number) if number.is_finite() && *number != 0.0);
    let is_op = |ops: &[Elementwise]| matches!(op, Op::Elementwise(op) if ops.contains(&op));
    derivative.is_identity
        || derivative.is_negation()
        || is_op(&[E::Where, E::Maximum, E::Minimum, E::Real, E::Imag, E::Conj])
        || is_op(&[E::Multiply]) && is_number(1 - which)
        || is_op(&[E::Divide]) && which == 0 && is_number(1)
}
