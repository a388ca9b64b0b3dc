//! Replays of a tape, in `reverse` and `forward`. Large cotangents are deferred by `fusion`; `traced` runs rules of
//! structured ops on NumPy arrays, `leaf_calls` calls rules of users, `scatter` adds cotangents to the elements of a key,
//! `masks` keeps zeros of what was not selected, `implicit` differentiates solutions of elementwise equations, and `fit`
//! brings cotangents into the shape and dtype of their values.

pub mod fit;
pub mod forward;
pub mod fusion;
pub mod implicit;
pub mod leaf_calls;
pub mod masks;
pub mod reverse;
pub mod scatter;
pub mod traced;
