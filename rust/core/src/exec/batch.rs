//! The work of a run: kernels, the leaves that they run over, and parts of leaves.

use crate::array::buffer::{Buffer, Dtype};
use crate::array::rows::Rows;
use crate::kernel::Kernel;
use crate::kernel::compiled::Phase;

/// A leaf: its arrays, and the parameters of its update.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'a> {
    /// One buffer for each array input of the kernel (further ones are ignored), of any dtype and layout.
    pub inputs: &'a [Buffer],
    /// One buffer for each output: the same memory as an input, or disjoint from all inputs.
    pub outputs: &'a [Buffer],
    /// The number of elements of each buffer.
    pub length: usize,
    /// The type in which to compute: `F32` or `F64`.
    pub dtype: Dtype,
    /// The index of the leaf's set of scalars.
    pub scalar_set: usize,
    /// The key of its random numbers: see [`crate::simd::noise::noise_key`].
    pub noise_key: u64,
    /// The index of its first element in the whole leaf, by which random numbers are drawn: zero but for a slice.
    pub first: usize,
}

impl<'a> Leaf<'a> {
    /// The rows of a table that it writes, if not all: random numbers are indexed by the elements of the whole table.
    pub(super) fn rows(&self) -> Option<&'a Rows> {
        self.outputs.first().and_then(|output| output.rows.as_deref())
    }
}

/// A kernel and the leaves that it runs over. `scalars` holds one or more sets of [`Kernel::scalar_inputs`] values.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The sets of scalars, one after the other.
    pub scalars: &'a [f64],
    /// The leaves.
    pub leaves: &'a [Leaf<'a>],
}

/// Some elements of a leaf, in one phase.
pub(super) struct Part<'a> {
    pub kernel: &'a Kernel,
    pub phase: &'a Phase,
    pub leaf: &'a Leaf<'a>,
    /// The values of the scalar program.
    pub scalars: &'a [f64],
    /// A multiple of `CHUNK`.
    pub start: usize,
    pub end: usize,
}

/// Elements in a chunk: sums are computed chunk by chunk, so that they do not depend on the number of threads.
pub const CHUNK: usize = 4096;

/// The buffer of an input or output.
#[inline(always)]
pub(super) fn foreign<'a>(kernel: &Kernel, leaf: &'a Leaf, register: usize) -> &'a Buffer {
    let outputs = kernel.first_output();
    if register < outputs { &leaf.inputs[register] } else { &leaf.outputs[register - outputs] }
}
