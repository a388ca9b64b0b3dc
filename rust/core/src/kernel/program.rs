//! Symbolic programs, from which kernels are compiled.

use crate::op::Elementwise;

/// A step of a symbolic program. Ids are positions in the program; arguments come first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Node {
    /// An array input: the same position in every leaf's list of inputs.
    Leaf(u32),
    /// A scalar input.
    Scalar(u32),
    /// A number.
    Constant(f64),
    /// A draw: a uniform number of [0, 1) for each element. Two nodes of one draw are the same numbers.
    Noise(u32),
    /// An elementwise op; ids beyond its arity are ignored.
    Apply(Elementwise, [u32; 3]),
    /// The sum over the leaf: a scalar.
    Sum(u32),
    /// The sum over the leaf of the products of two values, each product in `f64`: a scalar.
    Dot([u32; 2]),
    /// The sum over all leaves of a scalar of each leaf. The number identifies the total within a program; kernels that
    /// run together share totals of one number.
    Total(u32, u32),
}

impl Node {
    /// Whether it adds up a leaf.
    pub(crate) fn is_sum(&self) -> bool {
        matches!(self, Self::Sum(_) | Self::Dot(_))
    }

    /// The ids that the node reads.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = usize> + use<> {
        let (args, count) = match *self {
            Self::Apply(op, args) => (args, op.arity()),
            Self::Dot([a, b]) => ([a, b, 0], 2),
            Self::Sum(arg) | Self::Total(arg, _) => ([arg, 0, 0], 1),
            Self::Leaf(_) | Self::Scalar(_) | Self::Constant(_) | Self::Noise(_) => ([0; 3], 0),
        };
        args.into_iter().take(count).map(|arg| arg as usize)
    }

    /// The node with each id that it reads replaced.
    ///
    /// # Errors
    /// That of `rename`.
    pub(crate) fn renamed<E>(&self, rename: impl Fn(u32) -> Result<u32, E>) -> Result<Self, E> {
        Ok(match *self {
            Self::Apply(op, args) => {
                let mut new = [0; 3];
                for (new, arg) in new.iter_mut().zip(&args[..op.arity()]) {
                    *new = rename(*arg)?;
                }
                Self::Apply(op, new)
            }
            Self::Sum(arg) => Self::Sum(rename(arg)?),
            Self::Dot([a, b]) => Self::Dot([rename(a)?, rename(b)?]),
            Self::Total(arg, number) => Self::Total(rename(arg)?, number),
            node @ (Self::Leaf(_) | Self::Scalar(_) | Self::Constant(_) | Self::Noise(_)) => node,
        })
    }
}

/// The outputs of a program: arrays, numbers of each leaf, and whether the arrays are written at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// Arrays to write, for each leaf.
    pub outputs: &'a [u32],
    /// Scalar results, for each leaf.
    pub results: &'a [u32],
    /// A scalar: where it is zero nothing is written.
    pub guard: Option<u32>,
}
