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
    /// Adds up the products of two registers, in `f64`; `to` is as above.
    Dot([u16; 2]),
}

impl Work {
    /// The registers that it reads.
    pub fn arguments(&self) -> &[u16] {
        match self {
            Self::Apply(op, args) => &args[..op.arity()],
            Self::Noise(_) => &[],
            Self::Sum(arg) => std::slice::from_ref(arg),
            Self::Dot(args) => args,
        }
    }

    /// Whether the register is an argument.
    pub fn reads(self, register: usize) -> bool {
        self.arguments().iter().any(|arg| usize::from(*arg) == register)
    }
}
