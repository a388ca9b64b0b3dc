//! Automatic differentiation of Python values. Classes: `tape`, `variable` (methods in `tape_methods`,
//! `variable_methods`; garbage collection in `gc`). Recording: `record`, `scalars`, `evaluate`, `operators`,
//! `function`, `indexed_assignment`, `mutation_check`, `program`. Replays: `replay`, `forward`, `fusion`, with the
//! rules in `vjp_rules`, `structured`, `scatter`, and `entry` for them to read. `transforms` has the calls of whole
//! functions, `trace`, `describe` and `descriptions` the printing; `batched` what `vmap` needs.

pub mod batched;
pub mod describe;
mod descriptions;
pub mod entry;
pub mod evaluate;
pub mod forward;
pub mod function;
pub mod fusion;
pub mod gc;
pub mod indexed_assignment;
pub mod mutation_check;
pub mod operators;
pub mod program;
pub mod record;
pub mod replay;
pub mod scalars;
pub mod scatter;
pub mod structured;
pub mod tape;
pub mod tape_methods;
pub mod trace;
pub mod transforms;
pub mod variable;
pub mod variable_methods;
pub mod vjp_rules;
