//! The layout of leaves that a text is printed for, and the text with all that a launch must know of it.

use crate::array::dtype::Dtype;
use crate::array::quantized::Codec;

/// The most threads of a block of an `Update`.
pub(super) const THREADS: usize = 256;
/// The largest number of array inputs.
pub(super) const MOST_ARRAYS: usize = 64;

/// The arrays and numbers of the leaves of a group.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// The dtypes of gradient, parameter and slots that are arrays; `U8` for codes with scales.
    pub dtypes: &'a [Dtype],
    /// The kind of all codes.
    pub codec: Codec,
    /// The numbers of the arrays that the outputs are written to.
    pub written: &'a [usize],
    /// The scalar inputs that are the same for leaves of one set; the first is the number of the step.
    pub scalars: usize,
    /// The slots of one number, which are scalar inputs after the others, and are written as results.
    pub numbers: usize,
    /// The dtype of these slots: `F64` or `F32`.
    pub number_dtype: Dtype,
    /// Whether parameters and slots of half precision are rounded stochastically.
    pub stochastic: bool,
}

impl Layout<'_> {
    /// The dtype in which the kernel computes.
    pub(super) fn computed(&self) -> Dtype {
        self.dtypes[1].computed_in()
    }
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the documentation of the module says it")]
pub enum EntryKind {
    Scalars,
    Total,
    Update,
    Results,
    Advance,
}

/// The number of blocks of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One for each leaf.
    Leaves,
    /// One for each task.
    Tasks,
    /// One, for all groups of a step.
    Once,
}

/// A kernel of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of the function.
    pub name: String,
    /// The kind of work.
    pub kind: EntryKind,
    /// The number of blocks.
    pub scope: Scope,
    /// The number of threads of a block.
    pub block: usize,
    /// The place of the launch in a step, also among those of other programs that run in the same step.
    pub moment: usize,
}

/// The text of a kernel, and all that a launch must know of it.
#[derive(Clone, Debug)]
pub struct Source {
    /// The text.
    pub text: String,
    /// The entries, in the order in which a step launches them.
    pub entries: Vec<Entry>,
    /// The numbers of arrays, of arrays that are codes, and of slots of one number of each leaf.
    pub arrays: usize,
    /// The number of arrays that are codes.
    pub scales: usize,
    /// The number of slots of one number.
    pub numbers: usize,
    /// The scalar inputs of a set.
    pub scalars: usize,
    /// The values of the scalar program in each row.
    pub stored: usize,
    /// The sums of each chunk.
    pub sums: usize,
    /// The totals over all leaves.
    pub totals: usize,
    /// Whether scalars may be computed on the host: there is one phase, and no slot of one number, total or guard.
    pub is_plain: bool,
    /// Whether a guard may stop the step.
    pub is_guarded: bool,
    /// Whether there are `Scalars` entries: always, but for a plain program whose scalars have an op without a traced form.
    pub computes_scalars: bool,
}
