//! Derivative rules of structured ops on NumPy arrays, without a call of the Python layer.
//!
//! The rules are stated once, in `oxigrad/autodiff/rules/vjp_rules.py`, for every array library, for tapes of tapes and for
//! both modes. A few of them are repeated here for cotangents that are plain NumPy arrays or scalars, because the call
//! of a Python function costs more than most of these rules compute. Each function here does what the Python rule of
//! the same op does on NumPy arrays, operation by operation, so that both give the same bits;
//! `tests/autodiff/test_structured.py` compares them. Every function returns `None` if it does not apply, and the
//! Python rule runs.

use oxigrad_core::autodiff::tape::Origin;
use oxigrad_core::op::{Op, Structured};
use pyo3::basic::CompareOp;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyEllipsis, PySlice, PyTuple};
use smallvec::SmallVec;

use crate::arrays::compute::elementwise::repeat_to;
use crate::arrays::compute::numpy_functions::{
    Extents, Functions, extents, insert_axis, integers, is_array, is_host, reshape,
};
use crate::arrays::compute::reduce::sum_to;
use crate::arrays::memory::numpy::Numpy;
use crate::arrays::value::Value;
use crate::autodiff::graph::entry::{Entry, cotangent_type, named, shape_of};
use crate::autodiff::graph::tape::CotangentType;
use crate::autodiff::operations::record::record;
use crate::autodiff::replay::scatter::{IndexKey, scatter};

type Object<'py> = Bound<'py, PyAny>;

/// The cotangent of the `which`-th argument of a structured op; `None` if the Python rule has to run.
pub fn pull<'py>(entry: &Entry<'_>, which: usize, g: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    use Structured as S;
    let Origin::Op(Op::Structured(op)) = entry.origin else { return Ok(None) };
    if !is_host(g)? {
        return Ok(None);
    }
    match op {
        S::Sum => Reduction::of(entry, g.py())?.unreduce(g).map(Some),
        S::Mean => mean(entry, g).map(Some),
        S::Max | S::Min => extremum(entry, g),
        S::Matmul => matmul(entry, which, g),
        S::Reshape | S::ExpandDims | S::Squeeze => reshape(g, &shape_of(entry, 0, g.py())).map(Some),
        S::PermuteDims => permute_dims(entry, g),
        S::BroadcastTo => match cotangent_type(entry, 0) {
            Some(CotangentType::Array { shape, dtype }) => unbroadcast(g, shape.bind(g.py()), dtype.bind(g.py())),
            _ => Ok(None),
        },
        S::Concat => concat(entry, which, g),
        S::Stack => stack(entry, which, g),
        S::Astype => match cotangent_type(entry, 0) {
            Some(CotangentType::Array { dtype, .. }) => match_dtype(g.clone(), dtype.bind(g.py())),
            _ => Ok(None),
        },
        S::Index => {
            let (Some(key), shape) = (named(entry, intern!(g.py(), "key"))?, shape_of(entry, 0, g.py())) else {
                return Ok(None);
            };
            match IndexKey::of(&key) {
                Some(key) => scatter(&key, g, &shape).map(Some),
                None => Ok(None),
            }
        }
        S::ScatterAdd => named(entry, intern!(g.py(), "key"))?.map(|key| g.get_item(key)).transpose(),
        S::CumulativeSum
        | S::Flip
        | S::TakeAlongAxis
        | S::Call
        | S::Item
        | S::Inv
        | S::Solve
        | S::Cholesky
        | S::Qr
        | S::Svd
        | S::Eigh
        | S::Eig
        | S::Det
        | S::Cofactor
        | S::Slogdet
        | S::Sqrtm
        | S::Pinv
        | S::VectorNorm
        | S::Fftn
        | S::Ifftn
        | S::Rfft
        | S::Irfft => Ok(None),
    }
}

/// The cotangent `g` summed over what broadcasting repeated, in the dtype of the argument; `None` if it is not
/// NumPy's.
pub fn unbroadcast<'py>(g: &Object<'py>, shape: &Object<'py>, dtype: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    let py = g.py();
    if !is_host(g)? {
        return Ok(None);
    }
    let (from, to): (Extents, Extents) = (extents(g), integers(shape)?);
    if from == to {
        return match_dtype(g.clone(), dtype);
    }
    if !to.is_empty()
        && let Some(summed) = sum_to(g, shape, dtype)?
    {
        return Ok(Some(summed));
    }
    let Some(added) = from.len().checked_sub(to.len()) else { return Ok(None) };
    let differs = |axis: &usize| *axis < added || to[axis - added] != from[*axis];
    let axes: SmallVec<[usize; 6]> = (0..from.len()).filter(differs).collect();
    let attributes = PyDict::new(py);
    attributes.set_item(intern!(py, "axis"), PyTuple::new(py, axes)?)?;
    attributes.set_item(intern!(py, "keepdims"), false)?;
    let summed = record(py, Op::Structured(Structured::Sum), std::slice::from_ref(g), Some(&attributes))?;
    match_dtype(reshape(&summed, shape)?, dtype)
}

// --- the rules
// ---------------------------------------------------------------------------------------------------------

/// The cotangent of `mean`: that of `sum`, `g` repeated along the axes that were reduced, divided by the number of
/// elements that each mean is of.
fn mean<'py>(entry: &Entry<'_>, g: &Object<'py>) -> PyResult<Object<'py>> {
    let reduction = Reduction::of(entry, g.py())?;
    let (means, elements) = (extents(g).iter().product::<usize>(), reduction.shape.iter().product::<usize>().max(1));
    #[allow(clippy::cast_precision_loss, reason = "no array has 2^53 elements")]
    let scaled = g.mul(means as f64 / elements as f64)?;
    reduction.unreduce(&scaled)
}

/// The cotangent of `max` and `min`: that of `sum`, shared evenly among the elements that are the extremum.
fn extremum<'py>(entry: &Entry<'_>, g: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    let py = g.py();
    let (x, y) = (&entry.arg(0).object(py), &entry.result().object(py));
    let reduction = Reduction::of(entry, py)?;
    if !is_host(x)? || !is_host(y)? {
        return Ok(None);
    }
    let dtype = x.getattr(intern!(py, "dtype"))?;
    let is_chosen = x.rich_compare(reduction.keepdims(y)?, CompareOp::Eq)?;
    let chosen = is_chosen.call_method1(intern!(py, "astype"), (dtype,))?;
    if reduction.shape.is_empty() {
        return reduction.unreduce(g)?.mul(chosen).map(Some);
    }
    let axis = reduction.axis.clone().unwrap_or_else(|| py.None().into_bound(py));
    let count = Functions::get(py)?.add_reduce.bind(py).call1((&chosen, axis, py.None(), py.None(), true))?;
    Ok(Some(reduction.unreduce(g)?.mul(chosen.div(count)?)?))
}

/// The cotangent of a factor of `matmul`.
fn matmul<'py>(entry: &Entry<'_>, which: usize, g: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    let py = g.py();
    let Value::Object(other) = entry.arg(1 - which) else { return Ok(None) };
    let other = other.bind(py);
    if !is_array(other) {
        return Ok(None);
    }
    let is_vector = shape_of(entry, which, py).len()? == 1;
    let column = || insert_axis(g, 1);
    let matrix = || other.getattr(intern!(py, "mT"));
    let product = |left: &Object<'py>, right: &Object<'py>| {
        record(py, Op::Structured(Structured::Matmul), &[left.clone(), right.clone()], None)
    };
    let as_vector = |product: Object<'py>| product.call_method1(intern!(py, "squeeze"), (-1,));
    Ok(Some(match (which, extents(other).len(), is_vector) {
        (_, 1, true) => g.mul(other)?,
        (0, 1, false) => column()?.mul(other)?,
        (0, _, true) => as_vector(product(other, &column()?)?)?,
        (0, _, false) => product(g, &matrix()?)?,
        (_, 1, false) => insert_axis(other, 1)?.mul(insert_axis(g, 2)?)?,
        (_, _, true) => as_vector(product(&matrix()?, &column()?)?)?,
        (_, _, false) => product(&matrix()?, g)?,
    }))
}

/// The cotangent of `permute_dims`: the dimensions in their former order.
fn permute_dims<'py>(entry: &Entry<'_>, g: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    let Some(axes) = named(entry, intern!(g.py(), "axes"))? else { return Ok(None) };
    let axes: Extents = integers(&axes)?;
    let mut inverse: Extents = SmallVec::from_elem(0, axes.len());
    for (at, axis) in axes.iter().enumerate() {
        let Some(place) = inverse.get_mut(*axis) else { return Ok(None) };
        *place = at;
    }
    let inverse = PyTuple::new(g.py(), inverse)?;
    g.call_method1(intern!(g.py(), "transpose"), (inverse,)).map(Some)
}

/// The cotangent of one of the arrays of `concat`: its part of `g`.
fn concat<'py>(entry: &Entry<'_>, which: usize, g: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    let py = g.py();
    let Some(ends) = named(entry, intern!(py, "ends"))? else { return Ok(None) };
    let (start, end): (isize, isize) = (ends.get_item(which)?.extract()?, ends.get_item(which + 1)?.extract()?);
    part(entry, g, PySlice::new(py, start, end, 1).into_any())
}

/// The cotangent of one of the arrays of `stack`: its part of `g`.
fn stack<'py>(entry: &Entry<'_>, which: usize, g: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    part(entry, g, which.into_pyobject(g.py())?.into_any())
}

/// A part of `g` along the axis of the op.
fn part<'py>(entry: &Entry<'_>, g: &Object<'py>, part: Object<'py>) -> PyResult<Option<Object<'py>>> {
    let py = g.py();
    let Some(axis) = named(entry, intern!(py, "axis"))? else { return Ok(None) };
    let whole = || PySlice::full(py).into_any();
    let before = (0..axis.extract::<usize>()?).map(|_| whole());
    let key: SmallVec<[Object<'py>; 6]> = before.chain([part, PyEllipsis::get(py).to_owned().into_any()]).collect();
    g.get_item(PyTuple::new(py, key)?).map(Some)
}

// --- what the rules share
// ----------------------------------------------------------------------------------------------

/// The axes of a reduction, and the shape of its argument.
struct Reduction<'py> {
    axis: Option<Object<'py>>,
    reduced: SmallVec<[bool; 6]>,
    shape: Extents,
}

impl<'py> Reduction<'py> {
    fn of(entry: &Entry<'_>, py: Python<'py>) -> PyResult<Self> {
        let shape = integers(&shape_of(entry, 0, py))?;
        let axis = named(entry, intern!(py, "axis"))?.filter(|axis| !axis.is_none());
        let axes: SmallVec<[isize; 6]> = match &axis {
            None => (0..shape.len().cast_signed()).collect(),
            Some(axis) if axis.is_instance_of::<PyTuple>() => integers(axis)?,
            Some(axis) => SmallVec::from_elem(axis.extract()?, 1),
        };
        let mut reduced = SmallVec::from_elem(false, shape.len());
        for axis in axes.into_iter().filter(|_| !shape.is_empty()) {
            reduced[axis.rem_euclid(shape.len().cast_signed()).unsigned_abs()] = true;
        }
        Ok(Self { axis, reduced, shape })
    }

    /// An array of the shape of the result, reshaped as by `keepdims=True`.
    fn keepdims(&self, array: &Object<'py>) -> PyResult<Object<'py>> {
        let extent = |(extent, reduced): (&usize, &bool)| if *reduced { 1 } else { *extent };
        let kept: Extents = self.shape.iter().zip(&self.reduced).map(extent).collect();
        if is_array(array) && extents(array) == kept {
            return Ok(array.clone());
        }
        reshape(array, PyTuple::new(array.py(), kept)?.as_any())
    }

    /// The cotangent `g` repeated along the reduced dimensions: that of the argument of `sum`.
    fn unreduce(&self, g: &Object<'py>) -> PyResult<Object<'py>> {
        if self.axis.is_none() && extents(g).is_empty() {
            return repeated(g, &self.shape);
        }
        if self.shape.is_empty() { Ok(g.clone()) } else { repeated(&self.keepdims(g)?, &self.shape) }
    }
}

/// The array or scalar repeated to a shape, as `broadcast_to` of the Python layer does it.
fn repeated<'py>(array: &Object<'py>, shape: &[usize]) -> PyResult<Object<'py>> {
    let py = array.py();
    if let Some(repeated) = repeat_to(array, shape)? {
        return Ok(repeated);
    }
    let (functions, to) = (Functions::get(py)?, PyTuple::new(py, shape)?);
    if !extents(array).is_empty() {
        return functions.broadcast_to.bind(py).call1((array, to));
    }
    let array = match Numpy::get(py) {
        Some(numpy) if !is_array(array) => numpy.asarray(array)?,
        _ => array.clone(),
    };
    let strides = PyTuple::new(py, std::iter::repeat_n(0, shape.len()))?;
    let dtype = array.getattr(intern!(py, "dtype"))?;
    let view = functions.ndarray.bind(py).call1((to, dtype, array, 0, strides))?;
    view.getattr(intern!(py, "flags"))?.setattr(intern!(py, "writeable"), false)?;
    Ok(view)
}

/// The cotangent `g` in the dtype of the argument, its real part where that is real; `None` if the dtype is stated as
/// a class, as that of a Python number is.
fn match_dtype<'py>(g: Object<'py>, dtype: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    let py = g.py();
    let of = |g: &Object<'py>| g.getattr(intern!(py, "dtype"));
    let own = of(&g)?;
    if own.is(dtype) || own.eq(dtype)? {
        return Ok(Some(g));
    }
    let Some(kind) = dtype.getattr_opt(intern!(py, "kind"))? else { return Ok(None) };
    let is_discarded = own.getattr(intern!(py, "kind"))?.eq("c")? && !kind.eq("c")?;
    let g = if is_discarded { g.getattr(intern!(py, "real"))? } else { g };
    if is_discarded && of(&g)?.eq(dtype)? {
        return Ok(Some(g));
    }
    g.call_method1(intern!(py, "astype"), (dtype,)).map(Some)
}
