//! Operations on variables: `record` appends them to a tape, with values by `evaluate` (`scalars` are faster) and hashes
//! by `mutation_check`. Python calls them by `operators` and the other `variable_methods`, by `indexed_assignment`, or
//! by a `function`; functions with rules of users' by `leaf_calls`.

pub mod evaluate;
pub mod foreign;
pub mod function;
pub mod indexed_assignment;
pub mod leaf_calls;
pub mod mutation_check;
pub mod operators;
pub mod record;
pub mod scalars;
pub mod variable_methods;
