//! The totals of a step over slices: sums over whole parameters, folded from what is measured of each slice.

use std::collections::HashMap;
use std::sync::Mutex;

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::exec::{Batch, CHUNK, Leaf, Measured, Partials};
use oxigrad_core::kernel::Kernel;

use super::parameters::parameter::Parameter;
use super::parameters::prepared::{Prepared, Programs};
use super::parameters::slot::Slot;
use super::symbols::Program;
use crate::prelude::*;

/// The leaves that one program updates in a step.
pub(super) struct ProgramLeaves<'a> {
    kernel: &'a Kernel,
    scalars: Vec<f64>,
    leaves: Vec<Leaf<'a>>,
}

impl<'a> ProgramLeaves<'a> {
    pub(super) fn new(program: &'a Program) -> Self {
        Self { kernel: &program.kernel, scalars: Vec::new(), leaves: Vec::new() }
    }

    pub(super) fn batch(&self) -> Batch<'_> {
        Batch { kernel: self.kernel, scalars: &self.scalars, leaves: &self.leaves }
    }

    /// Adds a leaf of a parameter, with its set of scalars: one of `sets`, which parameters share where the kernel reads
    /// no slot of one number, as of recorded norms.
    pub(super) fn push(&mut self, parameter: &Parameter, sets: &[Vec<f64>], leaf: Leaf<'a>) {
        let (mut scalar_set, scalars) = (parameter.set, &sets[parameter.set]);
        if !parameter.numbers.is_empty() && self.kernel.scalar_inputs() > scalars.len() {
            scalar_set = self.leaves.len();
            let numbers = parameter.numbers.iter().map(Slot::read);
            self.scalars.extend(scalars.iter().copied().chain(numbers).take(self.kernel.scalar_inputs()));
        }
        self.leaves.push(Leaf { scalar_set, ..leaf });
    }

    /// Adds the sets of scalars, unless each leaf has its own.
    pub(super) fn complete(&mut self, sets: &[Vec<f64>]) {
        if self.scalars.is_empty() {
            let used = self.kernel.scalar_inputs();
            self.scalars.extend(sets.iter().flat_map(|set| &set[..used.min(set.len())]));
        }
    }
}

/// A parameter of a step over slices.
struct Whole {
    /// The number of its program, and of its leaf there.
    place: (usize, usize),
    scalar_set: usize,
    elements: usize,
}

/// The sums over the parameters of a step, which slices of them are applied with, once all `phases` are folded.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct Totals {
    programs: Vec<Py<Program>>,
    /// The sets of scalars of each program.
    scalars: Vec<Vec<f64>>,
    /// The parameters, in the order in which they were prepared.
    wholes: Vec<Whole>,
    /// The place of each parameter by its position.
    places: HashMap<u64, (usize, usize)>,
    /// The partial sums that were measured, and the totals over all parameters.
    measured: Mutex<(Measured, Vec<f64>)>,
}

impl Totals {
    /// Those of the parameters that are prepared, without any sum.
    pub(super) fn new(prepared: &Prepared, programs: &Programs) -> PyResult<Self> {
        let mut work: Vec<_> = programs.iter().map(|(program, _)| ProgramLeaves::new(program.get())).collect();
        let mut wholes = Vec::with_capacity(prepared.parameters.len());
        for (parameter, place) in prepared.parameters.iter().zip(prepared.places(programs.len())) {
            work[place.0].push(parameter, &programs[place.0].1, nothing(0));
            let scalar_set = work[place.0].batch().leaves[place.1].scalar_set;
            wholes.push(Whole { place, scalar_set, elements: parameter.whole });
        }
        for (work, (_, sets)) in work.iter_mut().zip(programs) {
            work.complete(sets);
        }
        let positions = prepared.parameters.iter().map(|parameter| parameter.position);
        let totals = Self {
            programs: programs.iter().map(|(program, _)| program.clone().unbind()).collect(),
            scalars: work.iter().map(|work| work.batch().scalars.to_vec()).collect(),
            places: positions.zip(wholes.iter().map(|whole| whole.place)).collect(),
            wholes,
            measured: Mutex::default(),
        };
        let values = totals.with_batches(|batches| Measured::default().totals(batches)).python()?;
        locked(&totals.measured).1 = values;
        Ok(totals)
    }

    /// The result of a function of batches with all parameters, each a slice of no elements.
    fn with_batches<T>(&self, function: impl FnOnce(&[Batch]) -> T) -> T {
        let mut leaves: Vec<Vec<Leaf>> = vec![Vec::new(); self.programs.len()];
        for whole in &self.wholes {
            leaves[whole.place.0].push(nothing(whole.scalar_set));
        }
        let programs = self.programs.iter().zip(&self.scalars).zip(&leaves);
        let batches: Vec<Batch> = programs
            .map(|((program, scalars), leaves)| Batch { kernel: &program.get().kernel, scalars, leaves })
            .collect();
        function(&batches)
    }

    /// The partial sums of the parameters that are prepared elsewhere.
    pub(super) fn measured_of(&self, prepared: &Prepared, programs: &Programs, batches: usize) -> PyResult<Measured> {
        let mut leaves = vec![Vec::new(); batches];
        for parameter in &prepared.parameters {
            let place = self.places.get(&parameter.position).copied();
            let place = place.filter(|(batch, _)| programs[parameter.program].0.is(&self.programs[*batch]));
            let Some(place) = place else {
                let path = &parameter.path;
                return Err(StructureError::new_err(format!("internal error: {path} is not of the totals")));
            };
            leaves[parameter.program].push(place);
        }
        let measured = locked(&self.measured);
        Ok(self.with_batches(|batches| measured.0.of_leaves(batches, &leaves, &measured.1)))
    }
}

/// A slice of no elements.
fn nothing<'a>(scalar_set: usize) -> Leaf<'a> {
    Leaf { inputs: &[], outputs: &[], length: 0, dtype: Dtype::F64, scalar_set, noise_key: 0, first: 0 }
}

#[pymethods]
impl Totals {
    /// The number of phases to measure.
    #[getter]
    fn phases(&self) -> usize {
        self.with_batches(Measured::phases)
    }

    /// The totals over all parameters that are known, in the order in which rules ask for them.
    #[getter]
    fn values(&self) -> Vec<f64> {
        locked(&self.measured).1.clone()
    }

    /// The number of partial sums of the next phase, for each parameter.
    #[getter]
    fn widths(&self) -> Vec<usize> {
        let measured = locked(&self.measured);
        let widths: Vec<usize> = self.with_batches(|batches| measured.0.widths(batches).collect());
        self.wholes.iter().map(|whole| whole.elements.div_ceil(CHUNK) * widths[whole.place.0]).collect()
    }

    /// Adds the sums of the next phase, from the partial sums of all slices, as the bytes of float64: parameter by
    /// parameter, and chunk by chunk.
    fn fold(&self, partials: &[u8]) -> PyResult<()> {
        let mut measured = locked(&self.measured);
        let folded = self.with_batches(|batches| {
            let sums = self.partials(partials, &measured.0, batches)?;
            let mut folded = measured.0.clone();
            folded.fold(batches, &sums).python()?;
            let totals = folded.totals(batches).python()?;
            Ok::<_, PyErr>((folded, totals))
        })?;
        *measured = folded;
        Ok(())
    }
}

impl Totals {
    fn partials(&self, bytes: &[u8], measured: &Measured, batches: &[Batch]) -> PyResult<Partials> {
        let widths: Vec<usize> = measured.widths(batches).collect();
        let mut partials: Partials = batches.iter().map(|batch| vec![Vec::new(); batch.leaves.len()]).collect();
        let mut numbers = bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
        let mut count = 0;
        for Whole { place: (batch, leaf), elements, .. } in &self.wholes {
            let wanted = elements.div_ceil(CHUNK) * widths[*batch];
            partials[*batch][*leaf].extend(numbers.by_ref().take(wanted));
            count += wanted;
        }
        if bytes.len() == count * size_of::<f64>() {
            return Ok(partials);
        }
        let found = bytes.len();
        Err(ShapeError::new_err(format!("found {found} bytes of partial sums, expected {count} numbers of float64")))
    }
}
