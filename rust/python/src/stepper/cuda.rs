//! Programs as CUDA C++ text: see `oxigrad_core::kernel::cuda`.

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::array::quantized::Codec;
use oxigrad_core::error::Error;
use oxigrad_core::kernel::Kernel;
use oxigrad_core::kernel::cuda::{Entry, EntryKind, Layout, Scope, Source};
use pyo3::prelude::*;

use crate::error::{IntoPython, to_python};

/// The CUDA C++ text of a program, and what its launches must know: see `Program.cuda`.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct CudaSource(Source);

/// A function of a text that is launched.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct CudaEntry(Entry);

#[pymethods]
impl CudaEntry {
    /// The name of the function.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// "scalars", "total", "update", "results" or "advance".
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0.kind {
            EntryKind::Scalars => "scalars",
            EntryKind::Total => "total",
            EntryKind::Update => "update",
            EntryKind::Results => "results",
            EntryKind::Advance => "advance",
        }
    }

    /// The number of blocks: "leaves" of the group, "tasks" of the group, or "once" for all groups of a step.
    #[getter]
    fn scope(&self) -> &'static str {
        match self.0.scope {
            Scope::Leaves => "leaves",
            Scope::Tasks => "tasks",
            Scope::Once => "once",
        }
    }

    /// The number of threads of a block.
    #[getter]
    fn block(&self) -> usize {
        self.0.block
    }

    /// The place of the launch in a step, also among those of other programs that run in the same step.
    #[getter]
    fn moment(&self) -> usize {
        self.0.moment
    }
}

#[pymethods]
impl CudaSource {
    /// The text.
    #[getter]
    fn text(&self) -> &str {
        &self.0.text
    }

    /// The functions that are launched, in the order of their launches in a step.
    #[getter]
    fn entries(&self) -> Vec<CudaEntry> {
        self.0.entries.iter().cloned().map(CudaEntry).collect()
    }

    /// The number of arrays of a leaf: gradient, parameter and slots.
    #[getter]
    fn arrays(&self) -> usize {
        self.0.arrays
    }

    /// The number of these arrays that are codes with scales.
    #[getter]
    fn scales(&self) -> usize {
        self.0.scales
    }

    /// The number of slots of one number of a leaf.
    #[getter]
    fn numbers(&self) -> usize {
        self.0.numbers
    }

    /// The number of scalars of a set.
    #[getter]
    fn scalars(&self) -> usize {
        self.0.scalars
    }

    /// The number of values of the scalar program in a row.
    #[getter]
    fn stored(&self) -> usize {
        self.0.stored
    }

    /// The number of sums of each chunk.
    #[getter]
    fn sums(&self) -> usize {
        self.0.sums
    }

    /// The number of totals over all leaves.
    #[getter]
    fn totals(&self) -> usize {
        self.0.totals
    }

    /// Whether the values of scalars may be computed on the host, by `Program.scalars`.
    #[getter]
    fn is_plain(&self) -> bool {
        self.0.is_plain
    }

    /// Whether a guard may stop the step.
    #[getter]
    fn is_guarded(&self) -> bool {
        self.0.is_guarded
    }

    /// Whether there are entries of kind "scalars", so that the number of the step may be in memory of the device.
    #[getter]
    fn computes_scalars(&self) -> bool {
        self.0.computes_scalars
    }
}

impl CudaSource {
    /// The text of a kernel that writes these arrays, for leaves of these dtypes.
    pub(super) fn new(
        kernel: &Kernel,
        written: &[usize],
        dtypes: &[String],
        scalars: usize,
        numbers: usize,
        number_dtype: &str,
        stochastic: bool,
    ) -> PyResult<Self> {
        let number_dtype = dtype(number_dtype)?;
        let codec = codec(dtypes)?;
        let stored = |name: &String| if name == PAIRS { Ok(Dtype::U8) } else { dtype(name) };
        let dtypes = dtypes.iter().map(stored).collect::<PyResult<Vec<_>>>()?;
        let layout = Layout { dtypes: &dtypes, codec, written, scalars, numbers, number_dtype, stochastic };
        kernel.cuda(&layout).map(Self).python()
    }
}

/// The name of the dtype of codes of four bits, two a byte.
const PAIRS: &str = "uint4";

/// The kind of the codes among these dtypes.
fn codec(dtypes: &[String]) -> PyResult<Codec> {
    let has = |name: &str| dtypes.iter().any(|dtype| dtype == name);
    if has(PAIRS) && has(Dtype::U8.name()) {
        return Err(to_python(&Error::Dtype("found codes of eight and of four bits: expected one of them".into())));
    }
    Ok(if has(PAIRS) { Codec::Four } else { Codec::Eight })
}

fn dtype(name: &str) -> PyResult<Dtype> {
    Dtype::ALL.iter().copied().find(|dtype| dtype.name() == name).ok_or_else(|| {
        to_python(&Error::Dtype(format!("found dtype {name}: expected the name of a dtype in the Array API standard")))
    })
}
