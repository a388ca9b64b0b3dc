//! Placeholder until the kernels land: the nodes of a symbolic program.

use crate::op::Elementwise;

/// One value of a symbolic program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Node {
    /// The k-th array input.
    Leaf(u32),
    /// The k-th scalar input.
    Scalar(u32),
    /// A number.
    Constant(f64),
    /// The k-th draw of uniform noise.
    Noise(u32),
    /// An op on earlier nodes.
    Apply(Elementwise, [u32; 3]),
    /// The sum over a whole leaf.
    Sum(u32),
}
