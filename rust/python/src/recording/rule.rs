//! Ops of derivative rules, one at a time, with the bits of the kernel of the whole rule.

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::array::shape::Shape;
use oxigrad_core::autodiff::tape::Value as _;
use oxigrad_core::op::{Op, ResultKind};
use oxigrad_core::scalar::{Precision, Scalar, promoted};
use smallvec::SmallVec;

use crate::arrays::compute::elementwise::{compute, kernel, op_taking};
use crate::arrays::compute::numpy_functions::{extents, repeated};
use crate::arrays::memory::numpy::Numpy;
use crate::arrays::value::Value;
use crate::autodiff::operations::record::record;
use crate::prelude::*;

/// An op of the rule of an elementwise op. On numbers and NumPy arrays the core computes it, as it does the rule.
#[pyfunction]
#[pyo3(name = "compute_in_rule")]
pub fn compute_named_in_rule<'py>(py: Python<'py>, name: &str, args: Vec<Object<'py>>) -> PyResult<Object<'py>> {
    compute_in_rule(py, op_taking(name, args.len())?, &args)
}

/// The same, of an op that is known.
pub fn compute_in_rule<'py>(py: Python<'py>, op: Op, args: &[Object<'py>]) -> PyResult<Object<'py>> {
    if let Op::Elementwise(op) = op
        && args.len() == op.arity()
    {
        let values: SmallVec<[Value; 3]> = args.iter().map(Value::of_argument).collect();
        let scalars: Option<SmallVec<[Scalar; 3]>> = values.iter().map(Value::scalar).collect();
        if let Some(scalars) = scalars {
            let mut result = op.on_scalars(&scalars);
            if op.kind() == ResultKind::Truth && promoted(&scalars) == Precision::Weak {
                result = Scalar::weak(result.number);
            }
            return Ok(Value::from_scalar(result).into_object(py));
        }
        // A variable has no memory to compute in: it is recorded.
        let is_array = |arg: &&Object<'py>| Numpy::get(py).is_plain_array(arg);
        let largest = args.iter().filter(is_array).max_by_key(|arg| extent(arg));
        if let Some(like) = largest {
            if let Some(result) = compute(kernel(op), values.iter(), like)? {
                return Ok(result);
            }
            // Arrays that are repeated to a shape that none of them has.
            let shape =
                args.iter().try_fold(Shape::default(), |shape, arg| shape.broadcast(&Shape::new(&extents(arg))?));
            if let Some(shape) = shape
                && let Some(result) = compute(kernel(op), values.iter(), &repeated(like, shape.extents())?)?
            {
                return Ok(result);
            }
        }
    }
    record(py, op, args, None)
}

/// The number of elements, one for what has no shape, and the bytes of each: of arrays of one size, the op is computed in the widest
/// dtype, as in the kernel of the rule.
fn extent(arg: &Object<'_>) -> (usize, usize) {
    let numpy = Numpy::get(arg.py());
    let dtype = numpy.fields(arg).and_then(|fields| numpy.own_dtype(&fields));
    (crate::arrays::memory::contiguous::length(arg).unwrap_or(1), dtype.map_or(0, Dtype::size))
}
