//! The recorded graph: the classes `tape` and `variable` (with their garbage collection in `gc`), an `entry` as rules
//! read it, and the `program` of symbols. `trace` and `describe` print, `batched` has the values of `vmap`.

pub mod batched;
pub mod describe;
pub mod entry;
pub mod gc;
pub mod program;
pub mod tape;
pub mod trace;
pub mod variable;
