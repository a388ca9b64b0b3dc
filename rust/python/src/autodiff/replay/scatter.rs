//! The derivative of `x[key]` on NumPy arrays: cotangents that are added to the elements of a key.

use oxigrad_core::op::{Elementwise, Op, Structured};
use pyo3::intern;
use pyo3::types::{PyBool, PyDict, PyEllipsis, PyInt, PySlice, PyTuple};
use smallvec::SmallVec;

use crate::arrays::batch_level::BatchLevel;
use crate::arrays::compute::numpy_functions::{is_array, is_host};
use crate::arrays::compute::scatter::add_rows;
use crate::arrays::memory::contiguous::is_unshared;
use crate::arrays::memory::numpy::{Numpy, are_one_dtype};
use crate::arrays::value::Value;
use crate::autodiff::graph::entry::{Entry, named, shape_of};
use crate::autodiff::graph::variable::Variable;
use crate::autodiff::operations::record::record;
use crate::callbacks;
use crate::prelude::*;

/// Adds the cotangent `g` of `x[key]` to `sum`, the cotangent of `x` so far, at `key`; returns whether it did.
///
/// The first term allocates zeros. A later one writes to the elements of `key` alone, in the memory of `sum`, where no
/// one else can see that memory, and in that of a copy otherwise. Unlike the sum with an array of zeros, it leaves a
/// negative zero elsewhere as it is; elements that an integer array names twice are added one after the other, to the
/// sum.
///
/// In a recording, the method of a traced value does: of the cotangent, or of the sum.
pub fn pull_into(entry: &Entry<'_>, g: &Object<'_>, sum: &mut Value) -> PyResult<bool> {
    let py = g.py();
    let Some(key) = named(entry, intern!(py, "key"))? else { return Ok(false) };
    let shape = shape_of(entry, 0, py);
    let before = sum.object(py);
    let batched = [g, &before].into_iter().find(|value| value.is_instance_of::<BatchLevel>());
    let Some(batched) = batched else {
        drop(before); // which has the memory that is written to
        return Ok(is_host(g)? && add_into(&key, &shape, g, sum)?);
    };
    let Some(method) = batched.getattr_opt(intern!(py, "scattered"))? else { return Ok(false) };
    *sum = Value::new(&method.call1((before, g, key, shape))?);
    Ok(true)
}

/// A copy of `sum`, or zeros, with `g` added to the elements of a key: what `pull_into` computes.
#[pyfunction]
pub fn scatter_into<'py>(
    sum: &Object<'py>,
    g: &Object<'py>,
    key: &Object<'py>,
    shape: &Object<'py>,
) -> PyResult<Object<'py>> {
    let total = if sum.is_none() { Value::Absent } else { Value::new(sum) };
    scatter_onto(total, g, key, shape).map(|total| total.into_object(g.py()))
}

/// The same in the memory of `sum`, if nobody else has it.
pub fn scatter_onto(mut sum: Value, g: &Object<'_>, key: &Object<'_>, shape: &Object<'_>) -> PyResult<Value> {
    let py = g.py();
    if is_host(g)? && add_into(key, shape, g, &mut sum)? {
        return Ok(sum);
    }
    let named = PyDict::new(py);
    named.set_item("key", key)?;
    named.set_item("shape", shape)?;
    let term = record(py, Op::Structured(Structured::ScatterAdd), std::slice::from_ref(g), Some(&named))?;
    if matches!(sum, Value::Absent) {
        return Ok(Value::from(term));
    }
    record(py, Op::Elementwise(Elementwise::Add), &[sum.into_object(py), term], None).map(Value::from)
}

/// A copy of ``x`` with ``value`` at the elements of a key.
#[pyfunction]
pub fn assigned<'py>(x: &Object<'py>, key: &Object<'py>, value: &Object<'py>) -> PyResult<Object<'py>> {
    assigned_onto(Value::new(x), key, value).map(|array| array.into_object(x.py()))
}

/// The same in the memory of `x`, if nobody else has it.
pub fn assigned_onto(x: Value, key: &Object<'_>, value: &Object<'_>) -> PyResult<Value> {
    let py = key.py();
    let mut array = x.into_object(py);
    let is_other = |part: &Object<'_>| part.is_instance_of::<Variable>() || part.is_instance_of::<BatchLevel>();
    if !is_array(&array) || is_other(value) || is_other(key) {
        return callbacks::assigned(py, (array, key, value)).map(Value::from);
    }
    if !is_unshared(&array) {
        array = array.call_method1(intern!(py, "copy"), ("K",))?;
    }
    array.set_item(key, value)?;
    Ok(Value::from(array))
}

fn add_into(key: &Object<'_>, shape: &Object<'_>, g: &Object<'_>, sum: &mut Value) -> PyResult<bool> {
    let py = g.py();
    let Some(key) = IndexKey::of(key) else { return Ok(false) };
    let own = match sum {
        Value::Absent => {
            *sum = Value::Object(scatter(&key, g, shape)?.unbind());
            return Ok(true);
        }
        Value::Number(_) | Value::Float64(_) | Value::Float32(_) => return Ok(false),
        Value::Object(own) => own,
    };
    let array = own.bind(py);
    let dtype = intern!(py, "dtype");
    if !is_array(array)
        || !are_one_dtype(&array.getattr(dtype)?, &g.getattr(dtype)?)?
        || !array.getattr(intern!(py, "shape"))?.eq(shape)?
    {
        return Ok(false);
    }
    if !is_unshared(array) {
        *own = array.call_method0(intern!(py, "copy"))?.unbind();
    }
    key.add(own.bind(py), g)?;
    Ok(true)
}

/// The key of an index.
pub enum IndexKey<'py> {
    /// Of integers, slices, `...` and `None`: the result is a scalar or a view.
    Basic(Object<'py>),
    /// With integer or boolean arrays: the result is a copy.
    Advanced(Object<'py>),
}

impl<'py> IndexKey<'py> {
    /// The kind of a key; `None` for a key that contains a truth value, or a value of a recording or of a `vmap`.
    pub fn of(key: &Object<'py>) -> Option<Self> {
        let is_basic = |part: &Object<'py>| {
            part.is_none()
                || part.is_instance_of::<PyInt>()
                || part.is_exact_instance_of::<PySlice>()
                || part.is(PyEllipsis::get(part.py()))
        };
        let parts: SmallVec<[Object<'py>; 4]> = match key.cast::<PyTuple>() {
            Ok(parts) => parts.iter().collect(),
            Err(_) => SmallVec::from_elem(key.clone(), 1),
        };
        if parts.iter().any(|part| part.is_instance_of::<PyBool>() || part.is_instance_of::<BatchLevel>()) {
            return None;
        }
        let key = key.clone();
        Some(if parts.iter().all(is_basic) { Self::Basic(key) } else { Self::Advanced(key) })
    }

    /// Writes `g` to the elements of the key of an array of zeros.
    fn set(&self, array: &Object<'py>, g: &Object<'py>) -> PyResult<()> {
        match self {
            Self::Basic(key) => {
                let view = array.get_item(key)?;
                if is_array(&view) { view.set_item(PyEllipsis::get(g.py()), g) } else { array.set_item(key, g) }
            }
            Self::Advanced(_) => self.add(array, g),
        }
    }

    /// Adds `g` to the elements of the key of an array.
    fn add(&self, array: &Object<'py>, g: &Object<'py>) -> PyResult<()> {
        let numpy = Numpy::get(g.py());
        match self {
            Self::Basic(key) => {
                let view = array.get_item(key)?;
                if is_array(&view) {
                    numpy.add.bind(g.py()).call1((&view, g, &view)).map(drop)
                } else {
                    array.set_item(key, view.add(g)?)
                }
            }
            Self::Advanced(key) if add_rows(array, key, g)? => Ok(()),
            Self::Advanced(key) => numpy.add_at.bind(g.py()).call1((array, key, g)).map(drop),
        }
    }
}

/// Zeros of a shape, with `g` at the elements of a key.
pub fn scatter<'py>(key: &IndexKey<'py>, g: &Object<'py>, shape: &Object<'py>) -> PyResult<Object<'py>> {
    let py = g.py();
    let zeros = Numpy::get(py).zeros.bind(py).call1((shape, g.getattr(intern!(py, "dtype"))?))?;
    key.set(&zeros, g)?;
    Ok(zeros)
}
