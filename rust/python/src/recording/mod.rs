//! Recorded functions: `function` has their call, `guards` and `kinds` what it checks, over the leaves that `flat` has, and `floating_errors` the
//! settings that it asks for; `replay` runs the entries of a program over Python values, `call` has the functions that entries call, and `direct` a shorter
//! way to some on NumPy's arrays.

mod call;
mod direct;
mod flat;
pub mod floating_errors;
pub mod function;
pub mod guards;
pub mod kinds;
pub mod replay;
pub mod rule;
