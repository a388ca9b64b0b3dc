//! Deferred cotangents over NumPy arrays: see [`oxigrad_core::autodiff::fusion`].

use std::rc::Rc;

use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::array::view::ArrayView;
use oxigrad_core::autodiff::fusion::{self, Arrays, Masked};
use oxigrad_core::autodiff::mask::Zeros;
use oxigrad_core::error::Error;
use oxigrad_core::kernel::Kernel;

use crate::arrays::compute::array_pool;
use crate::arrays::compute::elementwise::{LARGE, execute};
use crate::arrays::memory::contiguous::length;
use crate::arrays::memory::host_array::HostArray;
use crate::arrays::value::Value;
use crate::error::to_python;
use crate::prelude::*;

/// A cotangent, or a tangent, of Python's values: known, or deferred.
pub type Cotangent = fusion::Cotangent<Value>;

/// The program of all deferred cotangents of a replay.
pub type Fusion<'py> = fusion::Fusion<NumpyArrays<'py>>;

/// The cotangent of a Python object.
pub fn known(object: &Object<'_>) -> Cotangent {
    Cotangent::Known(Value::new(object))
}

/// The zeros of a cotangent, by structure.
pub type Mask = Rc<Zeros<Value>>;

/// The zeros of the cotangent that a rule gives, before it is unbroadcast.
pub enum PulledZeros {
    /// No zeros.
    None,
    /// Zeros everywhere.
    All,
    /// Zeros where the mask has them.
    Some(Mask),
}

/// A cotangent with its mask; `is_pending` says that the zeros are still to be written.
pub fn masked(cotangent: Cotangent, zeros: Mask, is_pending: bool) -> Cotangent {
    Cotangent::Masked(Box::new(Masked { cotangent, zeros, is_pending }))
}

/// The host of fused programs over NumPy arrays.
#[derive(Clone, Copy)]
pub struct NumpyArrays<'py>(pub Python<'py>);

impl Arrays for NumpyArrays<'_> {
    type Value = Value;
    type Held = HostArray;
    type Error = PyErr;

    fn share(&self, value: &Value) -> Value {
        value.share(self.0)
    }

    fn is_same(&self, a: &Value, b: &Value) -> bool {
        matches!((a, b), (Value::Object(a), Value::Object(b)) if a.is(b))
    }

    fn is_large(&self, value: &Value) -> bool {
        matches!(value, Value::Object(object) if length(object.bind(self.0)) >= Some(LARGE))
    }

    fn hold(&self, value: &Value) -> PyResult<Option<HostArray>> {
        match value {
            Value::Number(_) | Value::Absent => Ok(None),
            value => HostArray::of_numpy(&value.object(self.0)),
        }
    }

    fn view<'h>(&self, held: &'h HostArray) -> &'h ArrayView {
        &held.view
    }

    fn compute(
        &self,
        kernel: &Kernel,
        inputs: &[Buffer],
        outputs: usize,
        shape: &[usize],
        dtype: Dtype,
    ) -> PyResult<Vec<Value>> {
        let (mut arrays, mut buffers) = (Vec::with_capacity(outputs), Vec::with_capacity(outputs));
        for _ in 0..outputs {
            let (array, buffer) = array_pool::take(self.0, shape, dtype)?;
            arrays.push(array);
            buffers.push(buffer);
        }
        // SAFETY: the program holds the inputs, and `arrays` the outputs, which are new or have no other reference:
        // they overlap nothing.
        unsafe { execute(self.0, kernel, inputs, &buffers, dtype) }?;
        Ok(arrays.into_iter().map(|array| Value::Object(array.unbind())).collect())
    }

    fn retire(&self, value: Value) {
        array_pool::keep(self.0, value);
    }

    fn error(&self, error: Error) -> PyErr {
        to_python(&error)
    }
}
