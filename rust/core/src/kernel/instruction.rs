//! The instructions of a kernel.

use crate::op::Elementwise;

/// One op on the elements of a block. Its arguments and its result are registers: inputs, outputs,
/// scalars and blocks, numbered through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Instruction {
    pub work: Work,
    pub to: u16,
}

/// The work of an instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Work {
    Apply(Elementwise, [u16; 3]),
    Noise(u32),
    /// Adds up a register; `to` is the number of the sum.
    Sum(u16),
}
