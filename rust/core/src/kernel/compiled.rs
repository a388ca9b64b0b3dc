//! A compiled program: phases of instructions, and the program of its scalars.

use super::fuse::FusedLoop;
use super::instruction::Instruction;
use super::native::generated::NativePhase;
use crate::op::Elementwise;

/// A program ready to run over any number of leaves: see [`crate::exec`].
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The numbers of array inputs, scalar inputs and outputs of a leaf.
    pub(crate) inputs: usize,
    pub(crate) scalars: usize,
    pub(crate) outputs: usize,
    /// The values of the scalar program; those of phase `p` come after those of phase `p - 1`.
    pub(crate) scalar_steps: Vec<ScalarStep>,
    /// Whether each of them depends on the sums of a leaf.
    pub(crate) is_of_leaf: Vec<bool>,
    /// The index of the scalar value of each scalar register.
    pub(crate) splats: Vec<u16>,
    pub(crate) phases: Vec<Phase>,
    pub(crate) sums: usize,
    /// The scalar values that are results for each leaf.
    pub(crate) results: Vec<u16>,
    /// The phase from which the guard is known, and the scalar value that is the guard.
    pub(crate) guard: Option<(usize, u16)>,
    /// The phase and the number of each total, in order: kernels that run together must agree.
    pub(crate) totals: Vec<(usize, u32)>,
}

/// Native code of a phase: it computes its outputs and sums.
#[derive(Clone, Debug)]
pub(crate) struct Native {
    pub code: NativePhase,
    /// The registers of its inputs, in the order of their numbers, and then of its draws.
    pub inputs: Vec<u16>,
    /// The sums that its own program does not have, of which the kernel has no others.
    pub squares: Option<Squares>,
}

/// The sums that are computed beside the outputs of native code of a whole kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Squares {
    /// The sum of the squares of the first input, of the first output less an input, and of the first output.
    pub of: [Option<u16>; 3],
    /// The input that is subtracted.
    pub parameter: u16,
}

/// A step of the scalar program: computes one value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ScalarStep {
    Input(u16),
    Constant(f64),
    Apply(Elementwise, [u16; 3]),
    Sum(u16),
    Total(u16),
}

impl ScalarStep {
    /// For each step, whether its value depends on the sums of a leaf other than through a total over all leaves.
    pub(super) fn are_of_leaf(steps: &[Self]) -> Vec<bool> {
        let mut are_of_leaf: Vec<bool> = Vec::with_capacity(steps.len());
        for step in steps {
            let is_of_leaf = match step {
                Self::Input(_) | Self::Constant(_) | Self::Total(_) => false,
                Self::Apply(op, args) => args[..op.arity()].iter().any(|arg| are_of_leaf[usize::from(*arg)]),
                Self::Sum(_) => true,
            };
            are_of_leaf.push(is_of_leaf);
        }
        are_of_leaf
    }
}

/// The work between two whole-leaf reductions: one pass over the elements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phase {
    pub code: Vec<Instruction>,
    /// The same, as loops of the interpreter.
    pub loops: Vec<FusedLoop>,
    /// The number of scalar values that are known before this phase starts.
    pub known_scalars: usize,
    /// The number of temporaries: registers that hold a block of numbers.
    pub temporaries: usize,
    /// The inputs that this phase reads.
    pub reads: Vec<u16>,
    /// The outputs that this phase writes, with the inputs that its loops read after that: an output that lies in the
    /// memory of one of these must be kept back to the end of the block.
    pub writes: Vec<Write>,
    /// The sums that this phase computes.
    pub sums: Vec<u16>,
    /// The random numbers that this phase draws. Native code reads them from the first temporaries.
    pub draws: Vec<u32>,
    /// The native code of the phase, if there is some.
    pub native: Option<Native>,
}

#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub output: u16,
    pub read_later: Vec<u16>,
}

impl Kernel {
    /// The number of array inputs of each leaf: one more than the highest `Node::Leaf` in use.
    #[must_use]
    pub fn leaf_inputs(&self) -> usize {
        self.inputs
    }

    /// The length of a set of scalars: one more than the highest `Node::Scalar` in use.
    #[must_use]
    pub fn scalar_inputs(&self) -> usize {
        self.scalars
    }

    /// The number of outputs of each leaf.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The number of results of each leaf.
    #[must_use]
    pub fn results(&self) -> usize {
        self.results.len()
    }

    /// The phase that writes the outputs: those before only read.
    #[must_use]
    pub fn writing(&self) -> usize {
        let writes = self.phases.iter().position(|phase| !phase.writes.is_empty());
        writes.unwrap_or_else(|| self.guard.map_or(self.phases.len() - 1, |(phase, _)| phase))
    }

    /// Whether it sums over the elements of a leaf.
    #[must_use]
    pub fn has_sums(&self) -> bool {
        self.sums > 0
    }

    /// Whether the outputs are all that depends on sums: results do not wait for what is summed as outputs are written.
    #[must_use]
    pub fn is_done_by_writing(&self) -> bool {
        self.phases[self.writing()..].iter().all(|phase| phase.sums.is_empty())
    }

    /// Whether it draws random numbers.
    #[must_use]
    pub fn draws(&self) -> bool {
        self.phases.iter().any(|phase| !phase.draws.is_empty())
    }

    /// The number of passes over memory: one more than the longest chain of sums.
    #[must_use]
    pub fn phases(&self) -> usize {
        self.phases.len()
    }

    /// Whether it runs as native code where the arrays are contiguous, instead of block by block, with the same bits.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.phases.iter().all(|phase| phase.code.is_empty() || phase.native.is_some())
    }

    /// The number of the first register of outputs. Registers are numbered through: inputs, outputs,
    /// scalars, temporaries.
    pub(crate) fn first_output(&self) -> usize {
        self.inputs
    }

    /// The number of the first register of scalars.
    pub(crate) fn first_scalar(&self) -> usize {
        self.inputs + self.outputs
    }

    /// The number of the first temporary.
    pub(crate) fn first_temporary(&self) -> usize {
        self.first_scalar() + self.splats.len()
    }

    /// Computes the scalar values of phases up to `phase`, in `f64`, or up to the next total: then returns what this
    /// leaf adds to it, and the caller appends the total. `values` keeps what was computed before; `others` are those
    /// of a leaf with the same inputs, so far as they are known: what does not depend on sums is taken from there.
    pub(crate) fn compute_scalars(
        &self,
        phase: usize,
        inputs: &[f64],
        sums: &[f64],
        values: &mut Vec<f64>,
        others: &[f64],
    ) -> Option<f64> {
        let count = self.phases[phase].known_scalars;
        for (at, step) in self.scalar_steps.iter().enumerate().take(count).skip(values.len()) {
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
