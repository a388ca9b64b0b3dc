//! Replays of a tape, in `reverse` and `forward`. Large cotangents are deferred by `fusion`; `structured` and `scatter`
//! have the rules of frequent structured ops on NumPy arrays.

pub mod forward;
pub mod fusion;
pub mod reverse;
pub mod scatter;
pub mod structured;
