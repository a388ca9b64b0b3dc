//! Arrays in host memory as buffers of the core: access to their `memory`, computation (`compute`), and `value` for the
//! values of a tape. `checksum` of bytes.

pub mod checksum;
pub mod compute;
pub mod memory;
pub mod value;
