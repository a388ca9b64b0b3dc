//! Automatic differentiation: the tape, its replays in reverse and forwards, and the diagram of a program.

pub mod aliasing;
pub mod diagram;
mod forward;
pub mod fusion;
pub mod replay;
pub mod rule;
pub mod tape;
