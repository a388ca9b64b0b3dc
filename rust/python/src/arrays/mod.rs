//! Arrays in host memory as buffers of the core. Access: `host_array` by `numpy`, `contiguous`, `dlpack`, `torch` or
//! `buffer_protocol`; `place` (and `device_places`, on any device), `changes`, `overlap` and `array_pool` for their places, changes, sharing and reuse; `value` for the values of
//! a tape. Computation by the core: `elementwise`, `reduce`, `products`; by NumPy: `numpy_functions`.

pub mod array_pool;
pub mod buffer_protocol;
pub mod changes;
pub mod contiguous;
pub mod device_places;
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
