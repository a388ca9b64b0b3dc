// The programs that have native code, under a name: leaves are the gradient, the parameter and the slots, scalars the
// step, the hyperparameters and the slots of one number; outputs and results are what is written.

use oxigrad_core::kernel::Node::{self, Apply, Constant, Dot, Leaf, Noise, Scalar, Sum, Total};
use oxigrad_core::kernel::Wanted;
#[allow(clippy::enum_glob_use, reason = "programs name whatever ops they have")]
use oxigrad_core::op::Elementwise::*;

type Row = (&'static str, &'static [Node], Wanted<'static>);

/// All programs, in the order of their kernels.
#[rustfmt::skip]
#[allow(clippy::unreadable_literal, reason = "constants are printed with all their digits")]
pub const PROGRAMS: &[Row] = include!("programs_table.rs");

/// The program of this name.
pub fn program(name: &str) -> (&'static [Node], Wanted<'static>) {
    let (_, nodes, wanted) = PROGRAMS.iter().find(|(shipped, ..)| *shipped == name).expect("it is shipped");
    (nodes, *wanted)
}
