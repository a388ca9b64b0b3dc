//! The place of an array, seen once and compared in every step.

use oxigrad_core::array::buffer::Dtype;
use pyo3::prelude::*;

use crate::arrays::dlpack::{self, Exchange};
use crate::arrays::host_array::HostArray;
use crate::arrays::numpy::{C_CONTIGUOUS, Numpy};

/// The place where an array was seen, in one cache line, to be compared in every step. It keeps nothing alive.
pub struct Seat {
    /// The address of the first element.
    address: usize,
    /// The address of the dtype of a NumPy array, or of the type of another; 0 where a look does not tell.
    kind: usize,
    dtype: Option<Dtype>,
    dimensions: usize,
    writable: bool,
    extents: [usize; Seat::MOST],
    exchange: Option<&'static Exchange>,
}

impl Seat {
    const MOST: usize = 4;

    /// The place of an object's memory; `lies` tells only of what is contiguous.
    pub fn new(numpy: &Numpy, object: &Bound<'_, PyAny>, array: &HostArray) -> Self {
        let view = &array.view;
        let fields = numpy.fields(object);
        let exchange = if fields.is_some() { None } else { dlpack::exchange(&object.get_type()) };
        let class = exchange.map_or(0, |_| object.get_type_ptr().addr());
        let is_simple = view.extents.len() <= Self::MOST && view.buffer().is_some_and(|buffer| buffer.is_contiguous());
        let mut extents = [0; Self::MOST];
        extents.iter_mut().zip(&view.extents).for_each(|(to, from)| *to = *from);
        Self {
            address: view.pointer.addr(),
            kind: if is_simple { fields.map_or(class, |fields| fields.descr.addr()) } else { 0 },
            dtype: view.dtype,
            dimensions: view.extents.len().min(Self::MOST),
            writable: view.writable,
            extents,
            exchange,
        }
    }

    /// Whether the object, the same as before, still lies there. It runs no Python, and says no where an export has to
    /// tell.
    #[inline]
    pub fn lies(&self, numpy: &Numpy, object: &Bound<'_, PyAny>) -> bool {
        let extents = &self.extents[..self.dimensions];
        if let Some(exchange) = self.exchange {
            let mut strides = [0; Self::MOST];
            let mut step = self.dtype.map_or(0, Dtype::size).cast_signed();
            for (stride, extent) in strides[..extents.len()].iter_mut().zip(extents).rev() {
                *stride = step;
                step = step.wrapping_mul(extent.cast_signed());
            }
            return self.kind == object.get_type_ptr().addr()
                && exchange.is_at(object, self.address, extents, &strides[..extents.len()], self.dtype);
        }
        numpy.fields(object).is_some_and(|fields| {
            fields.data.addr() == self.address
                && fields.descr.addr() == self.kind
                && fields.flags & C_CONTIGUOUS != 0
                && fields.is_writable() == self.writable
                && fields.dimensions() == extents.len()
                && fields.extents().eq(extents.iter().copied())
        })
    }
}
