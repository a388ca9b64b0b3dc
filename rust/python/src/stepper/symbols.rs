//! Tracing of a rule: its symbolic arguments, and its kernel.

use oxigrad_core::array::buffer::{Rounding, elements};
use oxigrad_core::exec::CHUNK;
use oxigrad_core::kernel::cuda::Layout;
use oxigrad_core::kernel::text::print_program;
use oxigrad_core::kernel::{Kernel, Node, Wanted};
use oxigrad_core::simd::noise;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::gc::PyVisit;
use pyo3::types::PyBytes;

use super::cuda::{self, CudaSource};
use crate::arrays::value::Value;
use crate::autodiff::graph::program::program;
use crate::autodiff::graph::tape::Tape;
use crate::autodiff::graph::variable::Variable;
use crate::prelude::*;

/// A tape without values: creates the symbols that a rule is called with, and compiles the recorded program.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct Symbols(Py<Tape>);

/// A rule as a program that runs over any number of leaves.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct Program {
    pub kernel: Kernel,
    /// The outputs: 0 for the gradient, 1 for the parameter, then its slots that are arrays.
    #[pyo3(get)]
    pub written: Vec<usize>,
    nodes: Vec<Node>,
    outputs: Vec<u32>,
    results: Vec<u32>,
    guard: Option<u32>,
}

impl Program {
    /// Whether gradients are written.
    pub fn writes_gradients(&self) -> bool {
        self.written.contains(&0)
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted { outputs: &self.outputs, results: &self.results, guard: self.guard }
    }
}

/// An empty symbolic tape.
#[pyfunction]
pub fn symbols(py: Python<'_>) -> PyResult<Symbols> {
    Ok(Symbols(Py::new(py, Tape::new(true))?))
}

impl Symbols {
    fn input<'py>(&self, py: Python<'py>, node: impl Fn(u32) -> Node) -> PyResult<Bound<'py, Variable>> {
        let kind = std::mem::discriminant(&node(0));
        let same = |symbol: &&Node| std::mem::discriminant(*symbol) == kind;
        let number = self.0.get().lock().symbols.iter().filter(same).count();
        let number = u32::try_from(number).expect("a rule has few inputs");
        Tape::input(self.0.bind(py), Value::Absent, Some(node(number)))
    }
}

#[pymethods]
impl Symbols {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Visited {
        visit.call(&self.0)
    }

    /// The next array input.
    fn leaf<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Variable>> {
        self.input(py, Node::Leaf)
    }

    /// The next scalar input.
    fn scalar<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Variable>> {
        self.input(py, Node::Scalar)
    }

    /// The next draw of uniform noise.
    fn noise<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Variable>> {
        self.input(py, Node::Noise)
    }

    /// The sum over all leaves of a number of each leaf.
    fn total<'py>(&self, py: Python<'py>, number: &Bound<'py, Variable>) -> PyResult<Bound<'py, Variable>> {
        let id = Tape::own(self.0.bind(py), number.as_any(), "the number")?.get().id;
        self.input(py, |count| Node::Total(id, count))
    }

    /// The program that computes `outputs`, whose places among gradient, parameter and slots are `written`, and the numbers
    /// `results` of each leaf, and writes nothing if the number `guard` is zero; `RuleError` if it is not
    /// elementwise.
    fn compile(
        &self,
        py: Python<'_>,
        outputs: Vec<Object<'_>>,
        written: Vec<usize>,
        results: Vec<Object<'_>>,
        guard: Option<Object<'_>>,
    ) -> PyResult<Program> {
        if written.len() != outputs.len() {
            let (places, count) = (written.len(), outputs.len());
            return Err(PyValueError::new_err(format!("{count} outputs are written to {places} places")));
        }
        let values: Vec<_> = outputs.iter().chain(&results).chain(&guard).cloned().collect();
        let (nodes, mut outputs_and_more) = program(self.0.bind(py), &values)?;
        let mut numbers = outputs_and_more.split_off(outputs.len());
        let guard = if guard.is_some() { numbers.pop() } else { None };
        let (outputs, results) = (outputs_and_more, numbers);
        let wanted = Wanted { outputs: &outputs, results: &results, guard };
        let kernel = Kernel::compile_wanted(&nodes, &wanted).python()?;
        Ok(Program { kernel, written, nodes, outputs, results, guard })
    }
}

#[pymethods]
impl Program {
    fn __str__(&self) -> String {
        self.kernel.to_string()
    }

    /// The program as text: a line for each node, its op and the numbers of its arguments, and the numbers of the outputs.
    #[getter]
    pub fn text(&self) -> String {
        print_program(&self.nodes, &self.wanted())
    }

    /// The number of array inputs that it takes, in the order of `written`.
    #[getter]
    fn inputs(&self) -> usize {
        self.kernel.leaf_inputs()
    }

    /// The number of scalars that it returns for each leaf.
    #[getter]
    fn results(&self) -> usize {
        self.results.len()
    }

    /// Whether a guard may stop the step, which then writes nothing.
    #[getter]
    fn is_guarded(&self) -> bool {
        self.guard.is_some()
    }

    /// Whether it sums over the elements of a leaf.
    #[getter]
    fn has_sums(&self) -> bool {
        self.kernel.has_sums()
    }

    /// Whether it draws random numbers.
    #[getter]
    fn draws(&self) -> bool {
        self.kernel.draws()
    }

    /// The number of elements at whose multiples leaves may be cut into slices; 0 if they may not, since it sums over what it writes.
    #[getter]
    fn unit(&self) -> usize {
        match (self.kernel.has_sums(), self.kernel.is_done_by_writing()) {
            (false, _) => 1,
            (true, true) => CHUNK,
            (true, false) => 0,
        }
    }

    /// Whether the kernel runs as native code where arrays are contiguous; otherwise it is interpreted, block by block.
    #[getter]
    fn is_native(&self) -> bool {
        self.kernel.is_native()
    }

    /// The program as CUDA C++ text, for leaves of these layouts: the `dtypes` of gradient, parameter and slots that are
    /// arrays ("uint8" or "uint4" for codes with scales), the number of `scalars` of a set (the first is the number of the step),
    /// and the number of slots of one number, which are further scalars, with their dtype ("float64" or "float32"). With `stochastic`, parameters and slots of half
    /// precision are rounded stochastically. `RuleError` if an op of the program has no form on a device; `DtypeError`
    /// or `ShapeError` if the program does not take such arrays.
    #[pyo3(signature = (dtypes, *, scalars, numbers=0, number_dtype="float64", stochastic=false))]
    #[expect(clippy::needless_pass_by_value, reason = "extracted from Python objects")]
    fn cuda(
        &self,
        dtypes: Vec<String>,
        scalars: usize,
        numbers: usize,
        number_dtype: &str,
        stochastic: bool,
    ) -> PyResult<CudaSource> {
        let (number_dtype, codec) = (cuda::dtype(number_dtype)?, cuda::codec(&dtypes)?);
        let dtypes = dtypes.iter().map(cuda::stored).collect::<PyResult<Vec<_>>>()?;
        let written = &self.written;
        let layout = Layout { dtypes: &dtypes, codec, written, scalars, numbers, number_dtype, stochastic };
        self.kernel.cuda(&layout).map(CudaSource::from).python()
    }

    /// The values of a set of scalars that the kernels of a plain `CudaSource` read, in float64. `RuleError` if they
    /// depend on sums over leaves.
    #[expect(clippy::needless_pass_by_value, reason = "extracted from Python objects")]
    fn scalars(&self, inputs: Vec<f64>) -> PyResult<Vec<f64>> {
        self.kernel.cuda_values(&inputs).python()
    }
}

/// The text of the core's `generated.rs`, native code for the programs under these names, and of the table of these programs.
#[pyfunction]
pub fn print_generated(programs: Vec<(String, PyRef<'_, Program>)>) -> PyResult<(String, String)> {
    let rows: Vec<_> =
        programs.iter().map(|(name, program)| (name.clone(), &program.nodes[..], program.wanted())).collect();
    oxigrad_core::kernel::codegen::print_generated(&rows).python()
}

/// The uniform numbers of [0, 1) that a kernel draws for one leaf, or for rows of one, each of `count` elements, as the
/// bytes of float64.
#[pyfunction]
#[pyo3(signature = (seed, step, leaf, draw, count, rows=None))]
pub fn uniform(
    py: Python<'_>,
    seed: u64,
    step: u64,
    leaf: u64,
    draw: u32,
    count: u64,
    rows: Option<Vec<u64>>,
) -> PyResult<Bound<'_, PyBytes>> {
    let key = noise::noise_key(seed, step, leaf);
    drawn(py, count, rows, |element| f64::from(noise::uniform(key, draw, element)))
}

/// The random numbers, from 0 to 65535, by which a kernel rounds one leaf, or rows of one, stochastically, as the bytes
/// of float64. `number` is 0 for the parameter, and counts its slots from 1 on.
#[pyfunction]
#[pyo3(signature = (seed, step, leaf, number, count, rows=None))]
pub fn rounding(
    py: Python<'_>,
    seed: u64,
    step: u64,
    leaf: u64,
    number: u32,
    count: u64,
    rows: Option<Vec<u64>>,
) -> PyResult<Bound<'_, PyBytes>> {
    let key = noise::noise_key(seed, step, leaf);
    drawn(py, count, rows, |element| f64::from(Rounding::random(key, number, element)))
}

/// A number for each element of a leaf of `count` of them, or of rows of a table, each of `count`, as the bytes of
/// float64.
///
/// # Errors
/// `MemoryError` if they exceed the memory.
fn drawn(
    py: Python<'_>,
    count: u64,
    rows: Option<Vec<u64>>,
    number: impl Fn(u64) -> f64,
) -> PyResult<Bound<'_, PyBytes>> {
    let rows = rows.unwrap_or_else(|| vec![0]);
    let size = usize::try_from(count).ok().and_then(|count| elements(&[rows.len(), count, size_of::<f64>()]));
    let size = size.filter(|size| isize::try_from(*size).is_ok());
    let size = size.ok_or_else(|| PyMemoryError::new_err(format!("{} rows of {count} numbers", rows.len())))?;
    let places = rows.iter().flat_map(|row| (0..count).map(move |column| row.wrapping_mul(count).wrapping_add(column)));
    PyBytes::new_with(py, size, |bytes| {
        for (bytes, element) in bytes.chunks_exact_mut(size_of::<f64>()).zip(places) {
            bytes.copy_from_slice(&number(element).to_ne_bytes());
        }
        Ok(())
    })
}
