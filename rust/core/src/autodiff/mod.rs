//! Automatic differentiation: the tape, its replays in reverse and forwards, and the diagram of a program.

pub mod diagram;
mod forward;
pub mod replay;
pub mod rule;
pub mod tape;
