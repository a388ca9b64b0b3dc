//! Matrix products of NumPy arrays: narrow ones by the core, large ones by NumPy into memory of the pool.

use oxigrad_core::array::buffer::elements;
use oxigrad_core::array::matmul::{Factor, Product};
use oxigrad_core::array::shape::{Shape, Strides, broadcast_strides};
use smallvec::SmallVec;

use crate::arrays::compute::array_pool;
use crate::arrays::compute::elementwise::LARGE;
use crate::arrays::memory::host_array::HostArray;
use crate::arrays::memory::numpy::Numpy;
use crate::prelude::*;
use crate::threads::{isa, shared};

/// The product of two NumPy matrices, or stacks of them, of one dtype that the core computes in; `None` for anything
/// else, or where NumPy is as fast.
pub fn matmul<'py>(a: &Object<'py>, b: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    let py = a.py();
    let (Some(x), Some(y)) = (HostArray::of_numpy(a)?, HostArray::of_numpy(b)?) else { return Ok(None) };
    let ([stack1 @ .., rows, inner], [stack2 @ .., other, columns]) = (x.shape(), y.shape()) else { return Ok(None) };
    let dtype = match (x.computing(), y.computing()) {
        (Ok(x), Ok(y)) if x.dtype() == y.dtype() && inner == other => x.dtype(),
        _ => return Ok(None),
    };
    let stack = Shape::new(stack1).zip(Shape::new(stack2)).and_then(|(one, other)| one.broadcast(&other));
    let Some(stack) = stack else { return Ok(None) };
    let [left, right] = [&x, &y].map(|factor| stack_strides(factor, stack.extents()));
    let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
    let (left, right) = (factor(&x, &left), factor(&y, &right));
    let (rows, inner, columns) = (*rows, *inner, *columns);
    let product = Product { stack: stack.extents(), rows, inner, columns, dtype, left, right };
    let mut shape: SmallVec<[usize; 6]> = SmallVec::from_slice(stack.extents());
    shape.extend([rows, columns]);
    if product.is_narrow() {
        let (result, to) = array_pool::take(py, &shape, dtype)?;
        // SAFETY: `x` and `y` keep the memory of their elements, and `result` its own, which is new or has no other
        // reference.
        let compute = |pool: Option<&_>| unsafe { product.compute(&to, isa(), pool) };
        return shared(py, to.len().saturating_mul(inner), compute).map(|()| Some(result));
    }
    if elements(&shape).is_none_or(|length| length < LARGE) {
        return Ok(None);
    }
    let (result, _) = array_pool::take(py, &shape, dtype)?;
    Numpy::get(py).matmul.bind(py).call1((a, b, result)).map(Some)
}

fn factor<'a>(memory: &HostArray, stack: &'a [isize]) -> Factor<'a> {
    let [.., row, column] = memory.view.strides[..] else { unreachable!("a matrix has two dimensions") };
    Factor { pointer: memory.view.pointer, stack, row, column }
}

/// Bytes from a matrix to the next, along each axis of the stack that it is broadcast to.
fn stack_strides(memory: &HostArray, stack: &[usize]) -> Option<Strides> {
    let own = memory.shape().len() - 2;
    broadcast_strides(&memory.shape()[..own], &memory.view.strides[..own], stack)
}
