//! Runs of calls of a recording over the memory of NumPy arrays.

use std::cell::RefCell;

use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::array::shape::contiguous_strides;
use oxigrad_core::array::view::ArrayView;
use oxigrad_core::autodiff::tape::Value as _;
use oxigrad_core::exec::array_run::small::{Arena, Read, SmallRun};
use oxigrad_core::exec::array_run::{ArrayRun, Group, Source};
use oxigrad_core::scalar::Scalar;
use smallvec::SmallVec;

use crate::arrays::compute::array_pool;
use crate::arrays::compute::elementwise::SCRATCH;
use crate::arrays::memory::contiguous::{Contiguous, element_of};
use crate::arrays::memory::host_array::HostArray;
use crate::arrays::value::{Value, host_number};
use crate::prelude::*;
use crate::threads::{isa, shared};

thread_local!(static ARENA: RefCell<Arena> = RefCell::default());

/// The results of a run, where numbers are absent yet, and the memory of the arrays: for each the shape and dtype, `None` for a number.
fn new_results<'a>(
    py: Python<'_>,
    results: impl Iterator<Item = Option<(&'a [usize], Dtype)>>,
) -> PyResult<(Vec<Value>, SmallVec<[Buffer; 4]>)> {
    let (mut values, mut arrays) = (Vec::new(), SmallVec::<[Buffer; 4]>::new());
    for array in results {
        let Some((shape, dtype)) = array else {
            values.push(Value::Absent);
            continue;
        };
        let (array, buffer) = array_pool::take(py, shape, dtype)?;
        values.push(Value::Object(array.unbind()));
        arrays.push(buffer);
    }
    Ok((values, arrays))
}

/// The results of a run on small arrays and numbers; `None` where a value is of another kind than it was planned for, or a condition does not
/// hold.
pub fn run_small(py: Python<'_>, run: &SmallRun, read: &[Read]) -> PyResult<Option<Vec<Value>>> {
    let (mut results, arrays) = new_results(py, run.arrays())?;
    // SAFETY: the caller's values and `results` keep the memory; the arrays are new or have no other reference.
    let numbers = ARENA.with_borrow_mut(|arena| unsafe { run.compute(read, &arrays, isa(), arena) });
    let Some(numbers) = numbers else {
        for array in results {
            array_pool::keep(py, array);
        }
        return Ok(None);
    };
    let absent = results.iter_mut().filter(|result| matches!(result, Value::Absent));
    absent.zip(numbers).for_each(|(result, number)| *result = Value::from_scalar(number));
    Ok(Some(results))
}

/// The scalar of a value: a number, or an array of NumPy without dimensions.
#[inline]
pub fn scalar_in(py: Python<'_>, value: &Value) -> Option<Scalar> {
    match value {
        Value::Object(object) => {
            let object = object.bind(py);
            host_number(object).map(Scalar::weak).or_else(|| element_of(object))
        }
        _ => value.own_scalar(),
    }
}

/// A value as a run on small arrays reads it; `None` where it is no number and no array of NumPy.
pub fn read_of(py: Python<'_>, value: &Value) -> PyResult<Option<Read>> {
    if let Some(scalar) = scalar_in(py, value) {
        return Ok(Some(Read::Number(scalar)));
    }
    let Value::Object(object) = value else { return Ok(None) };
    let object = object.bind(py);
    if let Some(array) = Contiguous::of(object) {
        let extents = SmallVec::from_slice(array.shape.extents());
        let strides = contiguous_strides(&extents, array.dtype.size()).map(|strides| SmallVec::from_slice(&strides));
        let first = array.buffer().map(|buffer| buffer.pointer());
        let view = first.zip(strides).map(|(pointer, strides)| ArrayView {
            pointer,
            extents,
            strides,
            dtype: Some(array.dtype),
            writable: false,
        });
        return Ok(view.map(Read::Array));
    }
    Ok(HostArray::of_numpy(object)?.map(|HostArray { view, .. }| Read::Array(view)))
}

/// The results of a run; `None` where a value is no number and no array of the dtype, or of truth values, that lies in order.
pub fn run(py: Python<'_>, run: &ArrayRun, read: &[&Value]) -> PyResult<Option<Vec<Value>>> {
    let group = run.group();
    let mut sources: SmallVec<[Source; 8]> = SmallVec::new();
    for value in read {
        let Some(source) = source(py, value, group)? else { return Ok(None) };
        sources.push(source);
    }
    let (mut results, arrays) = new_results(py, run.arrays())?;
    let numbers = shared(py, group.len(), |pool| {
        // SAFETY: the values and `results` keep the memory; the arrays are new or have no other reference, so they overlap nothing,
        // and the numbers lie in `sources`.
        SCRATCH.with_borrow_mut(|scratch| unsafe { run.compute(&sources, &arrays, isa(), pool, scratch) })
    })?;
    let Some(numbers) = numbers else { return Ok(None) };
    let absent = results.iter_mut().filter(|result| matches!(result, Value::Absent));
    for (result, number) in absent.zip(numbers) {
        #[allow(clippy::cast_possible_truncation, reason = "sums of float32 are rounded once")]
        let rounded = |number: f64| Value::Float32(number as f32);
        *result = if group.dtype == Dtype::F32 { rounded(number) } else { Value::Float64(number) };
    }
    Ok(Some(results))
}

fn source(py: Python<'_>, value: &Value, group: &Group) -> PyResult<Option<Source>> {
    let Value::Object(object) = value else {
        let is_read = !matches!(value, Value::Float64(_)) || group.dtype == Dtype::F64;
        return Ok(value.own_scalar().filter(|_| is_read).map(|scalar| Source::Number(scalar.number)));
    };
    let object = object.bind(py);
    if let Some(number) = host_number(object) {
        return Ok(Some(Source::Number(number)));
    }
    let is_read = |dtype: Dtype| dtype == group.dtype || dtype == Dtype::Bool;
    if let Some(array) = Contiguous::of(object) {
        let extents = array.shape.extents();
        let strides = contiguous_strides(extents, array.dtype.size()).filter(|_| is_read(array.dtype));
        let first = array.buffer().map(|buffer| buffer.pointer());
        return Ok(first
            .zip(strides)
            .and_then(|(first, strides)| Source::array(first, extents, &strides, array.dtype, &group.shape)));
    }
    Ok(HostArray::of_numpy(object)?.and_then(|HostArray { view, .. }| {
        let dtype = view.dtype.filter(|dtype| is_read(*dtype))?;
        Source::array(view.pointer, &view.extents, &view.strides, dtype, &group.shape)
    }))
}
