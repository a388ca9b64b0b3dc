//! A symbolic program made runnable: checked, simplified, cut into phases, its scalars hoisted, its registers numbered.
//!
//! What a program means: every value that depends on no leaf and no noise is a scalar, computed in `f64` and rounded to
//! the leaf's type where it meets an array; everything else is computed element by element in the leaf's type. A
//! [`Node::Sum`] adds up a whole leaf and is a scalar from the next phase on; a [`Node::Total`] adds up a scalar of all leaves.

pub mod codegen;
mod display;
mod fuse;
mod graph;
mod lower;
pub mod native;

pub(crate) use fuse::{Pass, PassWork};
pub use graph::Wanted;

use crate::error::Result;
use crate::kernel::native::Printed;
use crate::op::Elementwise;

/// A step of a symbolic program. Ids are positions in the program; arguments stand before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Node {
    /// An array input: the same position in every leaf's list of inputs.
    Leaf(u32),
    /// A scalar input.
    Scalar(u32),
    /// A number.
    Constant(f64),
    /// A draw: a uniform number of [0, 1) for each element. Two nodes of one draw are the same numbers.
    Noise(u32),
    /// An elementwise op; ids beyond its arity are ignored.
    Apply(Elementwise, [u32; 3]),
    /// The sum over the leaf: a scalar.
    Sum(u32),
    /// A scalar of each leaf, added up over all leaves: a scalar, the same for all of them. The number tells the totals of
    /// a program apart; kernels that run together share those of one number.
    Total(u32, u32),
}

/// A program ready to run over any number of leaves: see [`crate::exec`].
#[derive(Clone, Debug)]
pub struct Kernel {
    /// How many array inputs, scalar inputs and outputs a leaf brings.
    pub(crate) inputs: usize,
    pub(crate) scalars: usize,
    pub(crate) outputs: usize,
    /// The values of the scalar program; those of phase `p` come after those of phase `p - 1`.
    pub(crate) scalar_steps: Vec<ScalarStep>,
    /// Which of them depend on the sums of a leaf.
    pub(crate) is_of_leaf: Vec<bool>,
    /// Which scalar value each scalar slot holds.
    pub(crate) splats: Vec<u16>,
    pub(crate) phases: Vec<Phase>,
    pub(crate) sums: usize,
    /// The scalar values to hand back for each leaf.
    pub(crate) results: Vec<u16>,
    /// In which phase it is known whether to write, and by which scalar value.
    pub(crate) guard: Option<(usize, u16)>,
    /// The phase and the number of each total, in order: kernels that run together must agree.
    pub(crate) totals: Vec<(usize, u32)>,
    reads: Vec<bool>,
    /// The same kernel as native code, if it was printed.
    pub(crate) printed: Option<Printed>,
}

/// What computes one value of the scalar program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ScalarStep {
    Input(u16),
    Constant(f64),
    Apply(Elementwise, [u16; 3]),
    Sum(u16),
    Total(u16),
}

impl ScalarStep {
    /// For each step, whether its value depends on the sums of a leaf, other than by a total over all leaves.
    fn are_of_leaf(steps: &[Self]) -> Vec<bool> {
        let mut found: Vec<bool> = Vec::with_capacity(steps.len());
        for step in steps {
            let is_of_leaf = match step {
                Self::Input(_) | Self::Constant(_) | Self::Total(_) => false,
                Self::Apply(op, args) => args[..op.arity()].iter().any(|arg| found[usize::from(*arg)]),
                Self::Sum(_) => true,
            };
            found.push(is_of_leaf);
        }
        found
    }
}

/// One pass over the elements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phase {
    pub code: Vec<Instruction>,
    /// The same, as the interpreter does it.
    pub passes: Vec<Pass>,
    /// How many scalar values are known before this phase starts.
    pub known_scalars: usize,
    pub registers: usize,
    /// The inputs that this phase reads.
    pub reads: Vec<u16>,
    /// The outputs that this phase writes, with the inputs that its passes still read after: an output that lies in the
    /// memory of one of these must be kept back to the end of the block.
    pub writes: Vec<Write>,
    /// The sums that this phase computes.
    pub sums: Vec<u16>,
}

#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub output: u16,
    pub read_later: Vec<u16>,
}

/// One op on the elements of a block. Places are slots: see [`Kernel::slot_counts`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Instruction {
    pub work: Work,
    pub to: u16,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Work {
    Apply(Elementwise, [u16; 3]),
    Noise(u32),
    /// Adds up a slot; `to` is the number of the sum.
    Sum(u16),
}

impl Kernel {
    /// Makes a program runnable. Nodes that no output needs are dropped, equal ones are computed once.
    ///
    /// # Errors
    /// `Rule` where an id does not stand before its use, or the program is too large for a kernel.
    pub fn compile(nodes: &[Node], outputs: &[u32]) -> Result<Self> {
        Self::compile_wanted(nodes, &Wanted { outputs, ..Wanted::default() })
    }

    /// Makes a program runnable that hands back scalars too, or may decide that nothing is to be written.
    ///
    /// # Errors
    /// As [`Self::compile`], and `Rule` where an array is wanted as a scalar.
    pub fn compile_wanted(nodes: &[Node], wanted: &Wanted) -> Result<Self> {
        lower::kernel(&graph::Graph::new(nodes, wanted)?)
    }

    /// How many array inputs each leaf must bring: one more than the highest `Node::Leaf` in use.
    #[must_use]
    pub fn leaf_inputs(&self) -> usize {
        self.inputs
    }

    /// How many scalars a set of scalars must have: one more than the highest `Node::Scalar` in use.
    #[must_use]
    pub fn scalar_inputs(&self) -> usize {
        self.scalars
    }

    /// How many arrays each leaf must have written.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// How many scalars it hands back for each leaf.
    #[must_use]
    pub fn results(&self) -> usize {
        self.results.len()
    }

    /// Passes over memory: one more than the longest chain of sums.
    #[must_use]
    pub fn phases(&self) -> usize {
        self.phases.len()
    }

    /// Whether input `leaf` has any influence.
    #[must_use]
    pub fn reads_leaf(&self, leaf: usize) -> bool {
        self.reads.get(leaf).copied().unwrap_or(false)
    }

    /// Ops on each element, all phases together: a measure of the cost.
    #[must_use]
    pub fn instructions(&self) -> usize {
        self.phases.iter().map(|phase| phase.code.len()).sum()
    }

    /// Whether it runs as native code where the arrays are contiguous, instead of block by block: the bits are the same.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.printed.is_some()
    }

    /// Block registers at the most.
    #[must_use]
    pub fn registers(&self) -> usize {
        self.phases.iter().map(|phase| phase.registers).max().unwrap_or(0)
    }

    /// Slots are numbered through: inputs, outputs, scalars, registers. Where each kind starts.
    pub(crate) fn first_output(&self) -> usize {
        self.inputs
    }

    pub(crate) fn first_scalar(&self) -> usize {
        self.inputs + self.outputs
    }

    pub(crate) fn first_register(&self) -> usize {
        self.first_scalar() + self.splats.len()
    }

    /// Computes the scalar values of phases up to `phase`, in `f64`, or up to the next total: then returns what this leaf
    /// adds to it, and the caller appends the total. `values` keeps what was computed before; `others` are those of a leaf
    /// with the same inputs, so far as they are known: what does not depend on sums is taken from there.
    pub(crate) fn compute_scalars(
        &self,
        phase: usize,
        inputs: &[f64],
        sums: &[f64],
        values: &mut Vec<f64>,
        others: &[f64],
    ) -> Option<f64> {
        let known = self.phases[phase].known_scalars;
        for (at, step) in self.scalar_steps.iter().enumerate().take(known).skip(values.len()) {
            if let Some(value) = others.get(at).filter(|_| !self.is_of_leaf[at]) {
                values.push(*value);
                continue;
            }
            let value = match *step {
                ScalarStep::Input(k) => inputs[usize::from(k)],
                ScalarStep::Constant(value) => value,
                ScalarStep::Apply(op, args) => {
                    op.on_numbers(args.map(|arg| values.get(usize::from(arg)).copied().unwrap_or(0.0)))
                }
                ScalarStep::Sum(k) => sums[usize::from(k)],
                ScalarStep::Total(arg) => return Some(values[usize::from(arg)]),
            };
            values.push(value);
        }
        None
    }
}
