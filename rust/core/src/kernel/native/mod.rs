//! Native code of the kernels of the shipped rules, printed by `kernel/codegen.rs` into `generated.rs`. A kernel runs
//! as native code if its program has the fingerprint of one of these; any other is interpreted, and gives the same bits.

pub(crate) mod code;
#[rustfmt::skip]
#[allow(clippy::unreadable_literal, reason = "constants are printed with all their digits")]
pub(crate) mod generated;
