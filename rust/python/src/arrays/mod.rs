//! Arrays in host memory, of NumPy and of other libraries, as the core's buffers, and what the core computes of them.

pub mod array_pool;
pub mod buffer_protocol;
pub mod contiguous;
pub mod dlpack;
pub mod elementwise;
pub mod host_array;
pub mod numpy;
pub mod numpy_functions;
pub mod overlap;
pub mod products;
pub mod reduce;
pub mod seat;
pub mod torch;
pub mod value;
