//! Matrix products of NumPy arrays: narrow ones by the core, large ones by NumPy into memory of the pool.

use oxigrad_core::array::buffer::{Buffer, elements};
use oxigrad_core::array::matmul::{Factor, Product};
use oxigrad_core::array::shape::{Shape, Strides, broadcast_strides};
use oxigrad_core::array::view::ArrayView;
use oxigrad_core::exec::array_run::small::MOST_OF_FACTORS;
use smallvec::{SmallVec, smallvec};

use crate::arrays::compute::array_pool;
use crate::arrays::compute::elementwise::LARGE;
use crate::arrays::memory::contiguous::scalar_of_bytes;
use crate::arrays::memory::host_array::HostArray;
use crate::arrays::memory::numpy::Numpy;
use crate::prelude::*;
use crate::threads::{isa, shared};

/// The product of two NumPy matrices, or stacks of them, of one dtype that the core computes in, or of small vectors; `None` for anything
/// else, or where NumPy is as fast.
pub fn matmul<'py>(a: &Object<'py>, b: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    let py = a.py();
    let (Some(x), Some(y)) = (HostArray::of_numpy(a)?, HostArray::of_numpy(b)?) else { return Ok(None) };
    let dtype = match (x.computing(), y.computing()) {
        (Ok(x), Ok(y)) if x.dtype() == y.dtype() => x.dtype(),
        _ => return Ok(None),
    };
    let are_vectors = [x.shape().len() == 1, y.shape().len() == 1];
    let (x, y) = (matrix(&x.view, true), matrix(&y.view, false));
    let ([stack1 @ .., rows, inner], [stack2 @ .., other, columns]) = (&x.extents[..], &y.extents[..]) else {
        return Ok(None);
    };
    let stack = Shape::new(stack1).zip(Shape::new(stack2)).and_then(|(one, other)| one.broadcast(&other));
    let Some(stack) = stack.filter(|_| inner == other) else { return Ok(None) };
    let [left, right] = [&x, &y].map(|factor| stack_strides(factor, stack.extents()));
    let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
    let (left, right) = (factor(&x, &left), factor(&y, &right));
    let (rows, inner, columns) = (*rows, *inner, *columns);
    let product = Product { stack: stack.extents(), rows, inner, columns, dtype, left, right };
    let mut shape: SmallVec<[usize; 6]> = SmallVec::from_slice(stack.extents());
    shape.extend([(are_vectors[0], rows), (are_vectors[1], columns)].iter().filter(|axis| !axis.0).map(|axis| axis.1));
    let is_vector = are_vectors != [false; 2];
    let is_small = |factor: &ArrayView| elements(&factor.extents).is_some_and(|length| length <= MOST_OF_FACTORS);
    if product.is_narrow() && (!is_vector || (is_small(&x) && is_small(&y))) {
        if shape.is_empty() {
            let mut number = 0u64;
            let to = Buffer::contiguous((&raw mut number).cast(), 1, dtype, true).python()?;
            // SAFETY: `a` and `b` keep the memory of their elements, and the result is one number, which has room for either dtype.
            unsafe { product.compute(&to, isa(), None) }.python()?;
            return Ok(Some(scalar_of_bytes(py, number, dtype)));
        }
        let (result, to) = array_pool::take(py, &shape, dtype)?;
        // SAFETY: `a` and `b` keep the memory of their elements, and `result` its own, which is new or has no other
        // reference.
        let compute = |pool: Option<&_>| unsafe { product.compute(&to, isa(), pool) };
        return shared(py, to.len().saturating_mul(inner), compute).map(|()| Some(result));
    }
    if is_vector || elements(&shape).is_none_or(|length| length < LARGE) {
        return Ok(None);
    }
    let (result, _) = array_pool::take(py, &shape, dtype)?;
    Numpy::get(py).matmul.bind(py).call1((a, b, result)).map(Some)
}

/// A factor as a matrix: a vector is a row on the left, and a column on the right.
fn matrix(view: &ArrayView, is_left: bool) -> ArrayView {
    let ([length], [stride]) = (&view.extents[..], &view.strides[..]) else { return view.clone() };
    let (mut extents, mut strides) = (smallvec![*length, 1], smallvec![*stride, 0]);
    if is_left {
        extents.reverse();
        strides.reverse();
    }
    ArrayView { extents, strides, ..*view }
}

fn factor<'a>(view: &ArrayView, stack: &'a [isize]) -> Factor<'a> {
    let [.., row, column] = view.strides[..] else { unreachable!("a matrix has two dimensions") };
    Factor { pointer: view.pointer, stack, row, column }
}

/// Bytes from a matrix to the next, along each axis of the stack that it is broadcast to.
fn stack_strides(view: &ArrayView, stack: &[usize]) -> Option<Strides> {
    let own = view.extents.len() - 2;
    broadcast_strides(&view.extents[..own], &view.strides[..own], stack)
}
