//! Automatic differentiation of Python's values: the core's tape, its rules and its replays.

pub mod describe;
pub mod entry;
pub mod forward;
pub mod fusion;
pub mod gc;
pub mod indexed_assignment;
pub mod mutation_check;
pub mod program;
pub mod record;
pub mod replay;
pub mod scatter;
pub mod structured;
pub mod tape;
pub mod tape_methods;
pub mod trace;
pub mod transforms;
pub mod variable;
pub mod variable_methods;
pub mod vjp_rules;
