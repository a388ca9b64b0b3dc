//! Automatic differentiation of Python values: the `graph` that a tape records, the `operations` that record it, and its
//! `replay`. `vjp_rules` has the registry of derivative rules, `tape_methods` the methods of the `Tape` class,
//! `transforms` the calls of whole functions.

pub mod graph;
pub mod operations;
pub mod replay;
pub mod tape_methods;
pub mod transforms;
pub mod vjp_rules;
