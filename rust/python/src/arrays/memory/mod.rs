//! Access to arrays: `host_array` by `numpy`, `contiguous`, `dlpack` (by the `exporters` of a class), `torch`, `torch_tensor` or
//! `buffer_protocol`; `place` (and `device_places`, on any device), `changes` and `overlap` for their places, changes and
//! sharing. `collection` spares the collector of cycles plain data.

pub mod buffer_protocol;
pub mod changes;
pub mod collection;
pub mod contiguous;
pub mod device_places;
pub mod dlpack;
pub mod exporters;
pub mod host_array;
pub mod numpy;
pub mod overlap;
pub mod place;
pub mod torch;
pub mod torch_tensor;
