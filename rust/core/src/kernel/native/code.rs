//! The interface of native code, and the enum of the kernels that have it.

use crate::simd::Lane;

/// Native code of a kernel: its function over lanes of `I` inputs, `S` scalars and `O` outputs.
pub(crate) trait NativeCode<const I: usize, const S: usize, const O: usize> {
    /// Computes the outputs.
    fn call<L: Lane>(inputs: [L; I], scalars: [L; S]) -> [L; O];
}

/// A function generic over native code: see `NativeKernel::visit`.
pub(crate) trait NativeVisitor {
    /// Calls the function with the type of a kernel.
    fn visit<N: NativeCode<I, S, O>, const I: usize, const S: usize, const O: usize>(self);
}

macro_rules! native_kernels {
    ($($fingerprint:literal $name:ident $i:literal $s:literal $o:literal)*) => {
        /// A kernel that has native code, in the order of `PROGRAMS`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum NativeKernel { $($name),* }

        impl NativeKernel {
            /// The kernel whose program has this fingerprint. Other programs may have it too.
            pub fn with_fingerprint(fingerprint: u64) -> Option<Self> {
                match fingerprint {
                    $($fingerprint => Some(Self::$name),)*
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

pub(super) use native_kernels;
