//! The registers of a kernel: the operands of its instructions, while it runs over a part of a leaf.

use crate::array::buffer::Dtype;
use crate::simd::noise::Draws;

/// The memory of a register: contiguous numbers of the leaf's type (or halves, for native code); for a constant
/// register, one lane of the leaf's type.
#[derive(Clone, Copy)]
pub(super) struct Register {
    pub pointer: *mut u8,
    pub moves: bool,
    pub dtype: Dtype,
    /// The random numbers by which bfloat16 is rounded stochastically.
    pub draws: Option<Draws>,
}

/// Partial sums of a chunk: element `i` belongs to number `i % SUMMANDS`, on every instruction set.
pub(super) const SUMMANDS: usize = 16;

/// The totals of a sum.
pub(super) type Totals = [f64; SUMMANDS];

/// The arguments of a loop: one instruction over one block.
#[derive(Clone, Copy)]
pub(super) struct Block {
    /// Room for a block of the lane's type.
    pub to: *mut u8,
    /// The addresses of the arguments: a block of each that moves, of the others a lane.
    pub from: [*const u8; 3],
    pub length: usize,
    /// The number of arguments, and whether each of them moves.
    pub arity: usize,
    pub moves: [bool; 3],
    /// The loop over numbers of `f64`, if those of the block go through it.
    pub wide: Option<Loop>,
}

/// The loop of an instruction, of which an argument or more move: its address.
pub(super) type Loop = unsafe fn(Block);
