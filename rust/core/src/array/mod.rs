//! Arrays in host memory: their descriptions (`buffer`, `view`, `rows`, `shape`), dtypes (`dtype`, `half`, `quantized`)
//! and overlap (`overlap`), and their sums and matrix products (`sum`, `scatter`, `matmul`).

pub mod buffer;
pub(crate) mod dtype;
pub mod half;
pub mod matmul;
pub mod overlap;
pub mod quantized;
pub mod rows;
pub mod scatter;
pub mod shape;
pub mod sum;
pub(crate) mod traversal;
pub mod view;
