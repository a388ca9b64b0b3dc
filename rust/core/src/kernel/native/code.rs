//! The interface of native code, and the enums of the kernels and phases that have it.

use crate::simd::Lane;

/// Native code of a phase: its function over lanes of `I` inputs, the last of which are draws of random numbers, of `S`
/// scalars, of `O` outputs and of the terms of `Q` sums, each the product of two factors in `f64`.
pub(crate) trait NativeCode<const I: usize, const S: usize, const O: usize, const Q: usize> {
    /// Computes the outputs and the terms.
    fn call<L: Lane>(inputs: [L; I], scalars: [L; S]) -> ([L; O], [[L; 2]; Q]);
}

/// A function generic over native code: see `NativePhase::visit`.
pub(crate) trait NativeVisitor {
    /// The result of the visit.
    type Output;
    /// Calls the function with the type of a phase.
    fn visit<N: NativeCode<I, S, O, Q>, const I: usize, const S: usize, const O: usize, const Q: usize>(
        self,
    ) -> Self::Output;
}

/// The number of names, in the type of an array of them.
pub(super) const fn count(names: &[&str]) -> usize {
    names.len()
}

macro_rules! native_kernels {
    // The factors of a term of a sum.
    (@factors $term:ident) => {
        [$term, L::one()]
    };
    (@factors $a:ident, $b:ident) => {
        [$a, $b]
    };
    ($($fingerprint:literal $name:ident {$(
        $phase:ident: [$($input:ident),*] [$($scalar:tt),*] -> [$($output:ident),*] [$([$($term:ident),+]),*] { $($code:tt)* }
    )+})*) => {
        /// A kernel that has native code, in the order in which they are printed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum NativeKernel { $($name),* }

        /// A phase of such a kernel.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum NativePhase { $($($phase),+),* }

        impl NativeKernel {
            /// The kernel whose program has this fingerprint.
            pub fn with_fingerprint(fingerprint: u128) -> Option<Self> {
                match fingerprint {
                    $($fingerprint => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The phases that have work for each element.
            pub fn phases(self) -> &'static [NativePhase] {
                match self { $(Self::$name => &[$(NativePhase::$phase),+]),* }
            }
        }

        impl NativePhase {
            /// Calls `visitor` with the phase's type.
            #[inline(always)]
            pub fn visit<V: NativeVisitor>(self, visitor: V) -> V::Output {
                match self { $($(Self::$phase => visitor.visit::<$phase, _, _, _, _>()),+),* }
            }
        }

        $($(
            pub(crate) struct $phase;

            impl NativeCode<
                { count(&[$(stringify!($input)),*]) }, { count(&[$(stringify!($scalar)),*]) },
                { count(&[$(stringify!($output)),*]) }, { count(&[$(stringify!([$($term),+])),*]) },
            > for $phase {
                #[inline(always)]
                fn call<L: Lane>(
                    [$($input),*]: [L; count(&[$(stringify!($input)),*])],
                    [$($scalar),*]: [L; count(&[$(stringify!($scalar)),*])],
                ) -> ([L; count(&[$(stringify!($output)),*])], [[L; 2]; count(&[$(stringify!([$($term),+])),*])]) {
                    $($code)*
                    ([$($output),*], [$(native_kernels!(@factors $($term),+)),*])
                }
            }
        )+)*
    };
}

pub(super) use native_kernels;
