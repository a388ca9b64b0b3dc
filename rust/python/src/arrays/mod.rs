//! Arrays in host memory as buffers of the core. Access: `host_array` by `numpy`, `contiguous`, `dlpack`, `torch` or
//! `buffer_protocol`; `place`, `changes`, `overlap` and `array_pool` for their places, changes, sharing and reuse; `value` for the values of
//! a tape. Computation by the core: `elementwise`, `reduce`, `products`; by NumPy: `numpy_functions`. `checksum` of bytes.

pub mod array_pool;
pub mod buffer_protocol;
pub mod changes;
pub mod checksum;
pub mod contiguous;
pub mod dlpack;
pub mod elementwise;
pub mod host_array;
pub mod numpy;
pub mod numpy_functions;
pub mod overlap;
pub mod place;
pub mod products;
pub mod reduce;
pub mod torch;
pub mod value;
