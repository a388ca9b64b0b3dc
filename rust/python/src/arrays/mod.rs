//! Arrays in host memory as buffers of the core: access to their `memory`, computation (`compute`), and `value` for the
//! values of a tape. `checksum` of bytes; `batch_level` for values that are no arrays of NumPy.

pub mod batch_level;
pub mod checksum;
pub mod compute;
pub mod memory;
pub mod value;
