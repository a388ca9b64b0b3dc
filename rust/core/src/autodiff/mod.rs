//! Automatic differentiation: the tape, and its replays in reverse and forwards.

mod forward;
pub mod replay;
pub mod rule;
pub mod tape;
