//! Arrays in host memory: where their elements lie, of which dtype, and the sums and products of them.

pub mod buffer;
pub(crate) mod dtype;
pub mod half;
pub mod matmul;
pub mod overlap;
pub mod quantized;
pub mod rows;
pub mod shape;
pub mod sum;
pub mod view;
