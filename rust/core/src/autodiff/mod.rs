//! Automatic differentiation: the tape, and its replays in reverse and forwards.

mod accumulate;
pub mod aliasing;
mod forward;
pub mod fusion;
pub mod replay;
pub mod rule;
pub mod tape;
