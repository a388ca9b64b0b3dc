//! Replays of recorded functions: `replay` runs the entries of a program over Python values, `call` has the functions that entries call and `template` their arguments.

mod call;
pub mod replay;
pub mod rule;
