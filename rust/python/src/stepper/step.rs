//! A step over host memory: the checks, one dispatch, the replacements and the count, in this order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use oxigrad_core::exec::StepCount;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use super::parameters::parameter::{Parameter, prepare};
use super::parameters::prepared::{Prepared, StepArrays, Touched};
use super::slices::Totals;
use super::stated::{HostParameter, Misfit, Writes};
use super::symbols::Program;
use super::update::{Progress, Refusal};
use super::write::write;
use crate::arrays::memory::changes::Changed;
use crate::prelude::*;
use crate::threads;
use crate::tree::Replacements;

/// Counts the steps of one optimizer, and updates the parameters that lie in host memory.
#[pyclass(frozen, module = "oxigrad._core")]
#[derive(Default)]
pub struct Stepper {
    count: StepCount,
    prepared: Mutex<Prepared>,
    /// Whether the optimizer has not yet observed a step that was counted.
    owed: AtomicBool,
    /// Whether a slot was exposed, so that other code than steps may change it.
    exposed: AtomicBool,
}

#[pymethods]
impl Stepper {
    /// With `private_slots`, only steps access the slots until `expose` is called.
    #[new]
    #[pyo3(signature = (*, private_slots=false))]
    fn new(private_slots: bool) -> Self {
        Self { exposed: AtomicBool::new(!private_slots), ..Self::default() }
    }

    /// The number of steps taken.
    #[getter]
    fn count(&self) -> u64 {
        self.count.steps()
    }

    #[setter]
    fn set_count(&self, count: u64) -> PyResult<()> {
        self.count.set_steps(count).python()
    }

    /// The number of gradients accumulated since the last step.
    #[getter]
    fn micro(&self) -> u64 {
        self.count.micro()
    }

    #[setter]
    fn set_micro(&self, micro: u64) -> PyResult<()> {
        self.count.set_micro(micro).python()
    }

    /// Puts `values` into `attributes`, if a step was counted since the last call.
    fn observe(&self, attributes: &Bound<'_, PyDict>, values: &Bound<'_, PyDict>) -> PyResult<()> {
        if self.owed.swap(false, Ordering::Relaxed) { attributes.update(values.as_mapping()) } else { Ok(()) }
    }

    /// Marks the slots as exposed: from now on each step checks whether they have moved, and notifies PyTorch of their
    /// changes. Until then only steps access them.
    fn expose(&self) {
        self.exposed.store(true, Ordering::Relaxed);
    }

    /// Whether slots were exposed.
    #[getter]
    fn is_exposed(&self) -> bool {
        self.exposed.load(Ordering::Relaxed)
    }

    /// Raises `StateError` if slots and counts are not those of a whole number of steps: while a step writes, or
    /// after one that was stopped while writing.
    fn check_whole(&self) -> PyResult<()> {
        self.count.check_whole(threads::process()).python()
    }

    /// Sets the parameters in host memory; keeps the memory of the slots from now on.
    fn prepare(&self, py: Python<'_>, parameters: Vec<Bound<'_, HostParameter>>) -> PyResult<()> {
        self.count.check_idle(threads::process()).python()?;
        let parameters: Vec<Parameter> =
            parameters.iter().map(|stated| prepare(py, stated.get())).collect::<PyResult<_>>()?;
        let mut starts = vec![0];
        starts.extend(parameters.iter().scan(0, |end, parameter| {
            *end += 2 + parameter.slots.len() * (1 + usize::from(parameter.catches_up));
            Some(*end)
        }));
        let elements = parameters.iter().map(|parameter| parameter.shape.iter().product::<usize>()).sum();
        set_locked(&self.prepared, Prepared { parameters, elements, starts, ..Prepared::default() });
        Ok(())
    }

    /// The reason why a step could not write these arrays; `None` where it could.
    fn misfit(&self, py: Python<'_>, written: &Bound<'_, PyTuple>) -> PyResult<Option<Misfit>> {
        match self.begin()?.prepared.check_written(written) {
            Ok(()) => Ok(None),
            Err(error) => Misfit::of(py, error).map(Some),
        }
    }

    /// The `Totals` of the prepared parameters, without the sums of any phase.
    fn totals(&self, programs: Vec<(Bound<'_, Program>, Vec<Vec<f64>>)>) -> PyResult<Totals> {
        Totals::new(&self.begin()?.prepared, &programs)
    }

    /// The partial sums of the phase after those that are folded in `totals` (the first one without), for each parameter
    /// as the bytes of float64, chunk by chunk; a `Misfit` where the arrays do not fit the prepared parameters.
    #[pyo3(signature = (written, gradients, *, programs, seed, totals=None))]
    fn measure<'py>(
        &self,
        py: Python<'py>,
        written: &Bound<'py, PyTuple>,
        gradients: &Bound<'py, PyTuple>,
        programs: Vec<(Bound<'py, Program>, Vec<Vec<f64>>)>,
        seed: u64,
        totals: Option<&Bound<'py, Totals>>,
    ) -> PyResult<Object<'py>> {
        let mut turn = self.begin()?;
        let arrays = StepArrays { written, gradients };
        let at = (seed, self.count() + 1);
        match turn.prepared.measure(py, &programs, at, arrays, &self.exposed, totals.map(Bound::get)) {
            Ok(partials) => {
                let bytes = partials.iter().map(|partials| PyBytes::new(py, partials));
                PyList::new(py, bytes).map(Bound::into_any)
            }
            Err(Refusal { error, is_misfit: false }) => Err(error),
            Err(Refusal { error, is_misfit: true }) => {
                Misfit::of(py, error).and_then(|misfit| Ok(Bound::new(py, misfit)?.into_any()))
            }
        }
    }

    /// Takes one step, whole or not at all, and returns the model; `None` if a guard stopped the step, and a `Misfit`
    /// where the arrays do not fit the prepared parameters.
    ///
    /// Updates `written` from `gradients` in place by `programs`, each with its sets of scalars, only the rows of those
    /// `touched`; then does the other `writes`, and counts the step, or, where it `holds`, the accumulated gradients.
    /// Where the parameters are slices, and others are stepped elsewhere, `totals` has the sums over all.
    /// If the optimizer `observes` steps, this one counts as unobserved until `observe` is called.
    #[pyo3(signature = (model, written, gradients, *, programs, seed, holds=false, observes=false, touched=Vec::new(), writes=None, totals=None))]
    #[expect(clippy::too_many_arguments, reason = "all but the first three by keyword")]
    fn step<'py>(
        &self,
        py: Python<'py>,
        model: Object<'py>,
        written: &Bound<'py, PyTuple>,
        gradients: &Bound<'py, PyTuple>,
        programs: Vec<(Bound<'py, Program>, Vec<Vec<f64>>)>,
        seed: u64,
        holds: bool,
        observes: bool,
        touched: Vec<Touched<'py>>,
        writes: Option<&Bound<'py, Writes>>,
        totals: Option<&Bound<'py, Totals>>,
    ) -> PyResult<Option<Object<'py>>> {
        let none = Writes::default();
        let writes = writes.map_or(&none, Bound::get);
        let mut turn = self.begin()?;
        if !writes.replacements.is_empty() {
            self.count.begin_writing();
        }
        // Only assignments to containers may run the user's code and raise, and they can be undone.
        let replaced = Replacements::new(&model, &writes.replacements)?;
        let mut changed = Changed::default();
        let mut is_broken = false;
        let arrays = StepArrays { written, gradients };
        let update = |changed: &mut Changed<'py>| {
            let step = self.count() + 1;
            let progress = Progress { count: &self.count, exposed: &self.exposed };
            let prepared = &mut turn.prepared;
            let mut launch = |changed: &mut Changed<'py>| {
                let Some(launches) = &writes.launches else { return Ok(()) };
                self.count.begin_writing();
                launches.run(py, changed).map_err(|failure| {
                    is_broken = failure.has_written;
                    failure.error
                })
            };
            let done = if programs.is_empty() {
                launch(changed).map(|()| true)?
            } else {
                prepared.update(
                    py,
                    &programs,
                    seed,
                    step,
                    arrays,
                    &touched,
                    totals.map(Bound::get),
                    progress,
                    changed,
                    launch,
                )?
            };
            if done {
                self.count.begin_writing();
            }
            Ok(done)
        };
        let done = match write(py, update, writes, &mut changed) {
            Ok(true) => {
                self.count.advance(holds);
                self.owed.store(observes, Ordering::Relaxed);
                Ok(Some(replaced.tree))
            }
            Ok(false) => replaced.put_back().map(|()| None),
            Err(Refusal { error, is_misfit: false }) => Err(replaced.after(error)),
            Err(Refusal { error, is_misfit: true }) => {
                Misfit::of(py, replaced.after(error)).and_then(|misfit| Ok(Some(Bound::new(py, misfit)?.into_any())))
            }
        };
        turn.is_broken = is_broken;
        drop(turn); // since notifying PyTorch runs Python, which may read the state, or take another step
        let counted = changed.count(py);
        let done = done?;
        counted.map(|()| done)
    }

    /// Does the writes of a step that updates nothing in host memory and is not counted; returns the model.
    #[expect(clippy::unused_self, reason = "a part of a step, without the count")]
    fn write<'py>(&self, py: Python<'py>, model: Object<'py>, writes: &Bound<'py, Writes>) -> PyResult<Object<'py>> {
        let replaced = Replacements::new(&model, &writes.get().replacements)?;
        let mut changed = Changed::default();
        let done = match write(py, |_| Ok::<_, PyErr>(true), writes.get(), &mut changed) {
            Ok(_) => Ok(replaced.tree),
            Err(error) => Err(replaced.after(error)),
        };
        let counted = changed.count(py);
        let done = done?;
        counted.map(|()| done)
    }
}

/// A step under way. It takes the prepared parameters out, so that no lock is held while Python may run.
struct Turn<'a> {
    stepper: &'a Stepper,
    prepared: Prepared,
    /// Whether a launch failed after another one has written.
    is_broken: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        set_locked(&self.stepper.prepared, std::mem::take(&mut self.prepared));
        self.stepper.count.end(self.is_broken, std::thread::panicking());
    }
}

impl Stepper {
    /// Begins a step; `StateError` if one is under way, or no further one can be counted.
    fn begin(&self) -> PyResult<Turn<'_>> {
        self.count.begin(threads::process()).python()?;
        Ok(Turn { stepper: self, prepared: std::mem::take(&mut *locked(&self.prepared)), is_broken: false })
    }
}
