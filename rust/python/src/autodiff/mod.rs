//! Automatic differentiation of Python's values: the core's tape, its rules and its replays.

pub mod forward;
pub mod fusion;
pub mod gc;
pub mod indexed_assignment;
pub mod mutation_check;
pub mod record;
pub mod replay;
pub mod tape;
pub mod trace;
pub mod transforms;
pub mod value;
pub mod variable;
pub mod vjp_rules;
