//! Automatic differentiation of any host's values: the tape (`tape`), its reverse and forward replays (`replay`, `forward`) by
//! a host of the values (`host`), with the sums of cotangents (`accumulate`) and squares of moduli (`squares`), rules as programs
//! (`rule`), deferred cotangents (`fusion`), cotangents of what was not selected (`mask`), and alias tracking (`aliasing`).

mod accumulate;
pub mod aliasing;
mod forward;
pub mod fusion;
mod host;
pub mod mask;
pub mod replay;
pub mod rule;
mod squares;
pub mod tape;
