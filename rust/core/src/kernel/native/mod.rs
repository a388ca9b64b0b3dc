//! Kernels of the shipped rules as native code. The code itself is printed by [`crate::kernel::codegen`] into `generated.rs`; a
//! kernel is run by it if its listing is the one that was printed.

use crate::kernel::{Node, Wanted};
use crate::simd::Lane;

/// The body of a kernel at one lane: `I` inputs, `S` scalars and `O` outputs.
pub(crate) trait Native<const I: usize, const S: usize, const O: usize> {
    /// Computes the outputs.
    fn call<L: Lane>(inputs: [L; I], scalars: [L; S]) -> [L; O];
}

/// What is called with the type of a native kernel.
pub(crate) trait NativeVisitor {
    /// Takes the kernel.
    fn visit<N: Native<I, S, O>, const I: usize, const S: usize, const O: usize>(self);
}

macro_rules! printed {
    ($($name:ident $i:literal $s:literal $o:literal $listing:literal)*) => {
        /// A kernel that was printed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Printed { $($name),* }

        impl Printed {
            /// The native code of the kernel with this listing.
            pub fn of(listing: &str) -> Option<Self> {
                match listing {
                    $($listing => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Calls `visitor` with the kernel's type.
            #[inline(always)]
            pub fn visit(self, visitor: impl NativeVisitor) {
                match self { $(Self::$name => visitor.visit::<$name, $i, $s, $o>()),* }
            }
        }
    };
}

#[rustfmt::skip]
#[allow(clippy::unreadable_literal, reason = "constants are printed with all their digits")]
mod generated;

pub(crate) use generated::Printed;

/// The rules that have native code, as programs under the name of the optimizer: leaves are the gradient, the parameter
/// and the slots, scalars the step, the hyperparameters and the slots of one number; outputs and results what is written.
pub const PROGRAMS: &[(&str, &[Node], Wanted)] = generated::PROGRAMS;
