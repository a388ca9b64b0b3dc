//! The recorded graph: the classes `tape` and `variable` (with their garbage collection in `gc`), an `entry` as rules
//! read it, and the `program` of symbols. `rule_program` has rules of structured ops as data, `template` arguments with data in them. `trace` and `describe` print, `batched` has the values of `vmap`.

pub mod batched;
pub mod describe;
pub mod entry;
pub mod gc;
pub mod open_tapes;
pub mod program;
pub mod rule_program;
pub mod tape;
pub mod template;
pub mod trace;
pub mod variable;
