//! Recorded functions: `function` has their call, `guards` and `kinds` what it checks, over the leaves that `flat` has, and `floating_errors` the
//! settings that it asks for; `replay` runs the entries of a program over Python values, of the parts that `parts` makes and `statement` tells, of which `folding` tells the calls of constants that are computed once, `call` has the functions that entries call, with a shorter
//! way to some on NumPy's arrays, and `scalars` to those on numbers; `trace` records the entries.

mod call;
mod flat;
pub mod floating_errors;
mod folding;
pub mod function;
pub mod guards;
pub mod kinds;
pub mod parts;
pub mod replay;
pub mod rule;
mod scalars;
mod statement;
pub mod trace;
