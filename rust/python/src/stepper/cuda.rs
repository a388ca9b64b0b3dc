//! Programs as CUDA C++ text: see `oxigrad_core::kernel::cuda`.

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::array::quantized::Codec;
use oxigrad_core::kernel::cuda::{Entry, EntryKind, Scope, Source};

use crate::prelude::*;

/// The CUDA C++ text of a program, and what its launches must know: see `Program.cuda`.
#[pyclass(frozen, get_all, module = "oxigrad._core")]
pub struct CudaSource {
    /// The text.
    text: String,
    /// The functions that are launched, in the order of their launches in a step.
    entries: Vec<CudaEntry>,
    /// The number of arrays of a leaf: gradient, parameter and slots.
    arrays: usize,
    /// The number of these arrays that are codes with scales.
    scales: usize,
    /// The number of slots of one number of a leaf.
    numbers: usize,
    /// The number of scalars of a set.
    scalars: usize,
    /// The number of values of the scalar program in a row.
    stored: usize,
    /// The number of sums of each chunk.
    sums: usize,
    /// The number of totals over all leaves.
    totals: usize,
    /// Whether the values of scalars may be computed on the host, by `Program.scalars`.
    is_plain: bool,
    /// Whether a guard may stop the step.
    is_guarded: bool,
    /// Whether there are entries of kind "scalars", so that the number of the step may be in memory of the device.
    computes_scalars: bool,
}

/// A function of a text that is launched.
#[pyclass(frozen, get_all, module = "oxigrad._core")]
#[derive(Clone)]
pub struct CudaEntry {
    /// The name of the function.
    name: String,
    /// "scalars", "total", "update", "results" or "advance".
    kind: &'static str,
    /// The number of blocks: "leaves" of the group, "tasks" of the group, or "once" for all groups of a step.
    scope: &'static str,
    /// The number of threads of a block.
    block: usize,
    /// The place of the launch in a step, also among those of other programs that run in the same step.
    moment: usize,
}

impl From<Entry> for CudaEntry {
    fn from(Entry { name, kind, scope, block, moment, .. }: Entry) -> Self {
        let kind = match kind {
            EntryKind::Scalars => "scalars",
            EntryKind::Total => "total",
            EntryKind::Update => "update",
            EntryKind::Results => "results",
            EntryKind::Advance => "advance",
        };
        let scope = match scope {
            Scope::Leaves => "leaves",
            Scope::Tasks => "tasks",
            Scope::Once => "once",
        };
        Self { name, kind, scope, block, moment }
    }
}

impl From<Source> for CudaSource {
    fn from(source: Source) -> Self {
        let Source { text, entries, arrays, scales, numbers, scalars, stored, sums, totals, .. } = source;
        let entries = entries.into_iter().map(CudaEntry::from).collect();
        let Source { is_plain, is_guarded, computes_scalars, .. } = source;
        Self {
            text,
            entries,
            arrays,
            scales,
            numbers,
            scalars,
            stored,
            sums,
            totals,
            is_plain,
            is_guarded,
            computes_scalars,
        }
    }
}

/// The name of the dtype of codes of four bits, two a byte.
const PAIRS: &str = "uint4";

/// The kind of the codes among these dtypes.
pub(super) fn codec(dtypes: &[String]) -> PyResult<Codec> {
    let has = |name: &str| dtypes.iter().any(|dtype| dtype == name);
    if has(PAIRS) && has(Dtype::U8.name()) {
        return Err(DtypeError::new_err("found codes of eight and of four bits: expected one of them"));
    }
    Ok(if has(PAIRS) { Codec::Four } else { Codec::Eight })
}

/// The dtype of the codes or of the numbers of an array.
pub(super) fn stored(name: &String) -> PyResult<Dtype> {
    if name == PAIRS { Ok(Dtype::U8) } else { dtype(name) }
}

pub(super) fn dtype(name: &str) -> PyResult<Dtype> {
    Dtype::ALL.iter().copied().find(|dtype| dtype.name() == name).ok_or_else(|| {
        DtypeError::new_err(format!("found dtype {name}: expected the name of a dtype in the Array API standard"))
    })
}
