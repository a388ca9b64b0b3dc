//! The program of a recording, and its replay.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use oxigrad_core::autodiff::tape::Value as _;
use oxigrad_core::recording::{Entry, Id, Loop, Origin, Program, Rolled, Schedule, Step};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};
use smallvec::SmallVec;

use crate::arrays::compute::array_pool;
use crate::arrays::value::Value;
use crate::error::{IntoPython, Items};
use crate::recording::call::Call;
use crate::recording::parts::{Check, Parts, Pass, Runs, shape_of};
use crate::recording::scalars::scalar_in;

type Object<'py> = Bound<'py, PyAny>;

/// Runs are not longer, so that their values stay in registers and the cache.
const MOST: usize = 32;

/// The passes over a program, in order: calls that give their argument are that, common entries are computed once, calls of constants are
/// folded, dead entries are dropped, and loops are stated once: these are computed as without the last pass.
const PASSES: [&str; 5] = ["identities", "common", "constants", "dead", "loops"];

/// The check that failed: its line, the value that was recorded and the present one.
pub type Failed<'py> = (String, Object<'py>, Object<'py>);

/// The program of a recording, which `run` replays without a function of Python's for each entry.
///
/// `entries` has a tuple for each: ``("input",)``, ``("constant", value)``, ``("check", id, expected, line)`` or ``("call", target, function,
/// args, named, shape, key, is_identity, member)``, where `shape` is that of the result, which a replay checks, `key` is equal for calls of one
/// function with the same arguments apart from entries, `is_identity` tells whether it gives its first argument, and `member` is the op of a call that may be part of a run, the shape of its arrays,
/// and a list of their dtype, or of the precisions of scalars.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct Replay {
    /// The program as it was recorded, which is printed and saved.
    recorded: Rolled,
    program: Program,
    /// The numbers of constants that calls were folded to, by the ids of the calls before that pass.
    folded: HashMap<Id, u32>,
    schedule: Schedule,
    /// The kernel of each step; `None` for steps that are no runs.
    runs: Vec<Option<Arc<Pass>>>,
    /// Inputs and constants, and their numbers.
    sources: Vec<(Id, Origin, u32)>,
    calls: Vec<Call>,
    constants: Vec<Value>,
    checks: Vec<Check>,
    same: Py<PyAny>,
}

/// The values of a replay by the ids of their entries.
struct Values<'a> {
    places: &'a [u32],
    values: Vec<Value>,
}

impl Values<'_> {
    /// Makes places for so many values.
    fn extend(&mut self, count: usize) {
        self.values.resize_with(count, || Value::Absent);
    }

    /// Drops values but for so many.
    fn shrink(&mut self, py: Python<'_>, count: usize) {
        self.values.drain(count..).for_each(|value| array_pool::keep(py, value));
    }
}

impl Index<Id> for Values<'_> {
    type Output = Value;

    fn index(&self, id: Id) -> &Value {
        &self.values[self.places[id as usize] as usize]
    }
}

impl IndexMut<Id> for Values<'_> {
    fn index_mut(&mut self, id: Id) -> &mut Value {
        &mut self.values[self.places[id as usize] as usize]
    }
}

#[pymethods]
impl Replay {
    #[new]
    fn new(py: Python<'_>, entries: &Object<'_>, outputs: Vec<Id>, same: Py<PyAny>) -> PyResult<Self> {
        let (mut parts, mut made) = (Parts::new(py), Vec::new());
        for entry in entries.try_iter()? {
            made.push(parts.entry(entry?.cast::<PyTuple>()?)?); // each is dropped before the next one is asked for
        }
        let recorded = Program::new(made, outputs).python()?;
        let common =
            recorded.without_identities(|number| parts.calls[number as usize].is_identity).without_common_entries();
        let (mut folded, mut raised) = (HashMap::new(), Ok(()));
        let constant = common.with_folded_constants(|id, entry, args| {
            let number = parts.folded(py, entry, args).unwrap_or_else(|error| {
                raised = Err(error);
                None
            })?;
            folded.insert(id, number);
            Some(number)
        });
        raised?;
        let program = constant.without_dead_entries();
        let schedule = Schedule::new(&program, |group| match parts.groups[group as usize] {
            Runs::Arrays(_) => MOST,
            Runs::Scalars => usize::MAX,
        });
        let runs = schedule.steps.iter().map(|step| parts.run(&program, step)).collect();
        let Parts { calls, constants, checks, .. } = parts;
        let sources = (0..).zip(program.entries()).map(|(id, entry)| (id, entry.origin, entry.number));
        let sources = sources.filter(|(_, origin, _)| matches!(origin, Origin::Input | Origin::Constant)).collect();
        let recorded = Rolled::of(&recorded);
        Ok(Self { recorded, program, folded, schedule, runs, sources, calls, constants, checks, same })
    }

    /// The results on these inputs, or None; and the check that failed, or None.
    #[allow(clippy::type_complexity, reason = "the two cases of a result, as Python has them")]
    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: Items<'py>,
    ) -> PyResult<(Option<Vec<Object<'py>>>, Option<Failed<'py>>)> {
        let found = self.replayed(py, inputs.0.iter().map(Value::new))?;
        Ok(found.map_or_else(|failed| (None, Some(failed)), |results| (Some(results), None)))
    }

    /// The numbers of entries that are calls, as recorded and as replayed, of runs, of calls in runs, and of constants.
    fn sizes(&self) -> (usize, usize, usize, usize, usize) {
        let (runs, fused) = self.schedule.runs();
        let is_constant = |entry: &&Entry| entry.origin == Origin::Constant;
        let constants = self.program.entries().iter().filter(is_constant).count();
        (self.recorded.unrolled().calls(), self.program.calls(), runs, fused, constants)
    }

    /// A line for each entry; with `after`, as it is replayed. `by` is the name of a pass, before and after which the program is printed.
    #[pyo3(signature = (after, by=None))]
    fn printed(&self, after: bool, by: Option<&str>) -> PyResult<String> {
        let name = |entry: &Entry| match entry.origin {
            Origin::Call { .. } => self.calls[entry.number as usize].name.clone(),
            Origin::Constant => Python::attach(|py| described(&self.constants[entry.number as usize].object(py))),
            Origin::Check => Python::attach(|py| described(self.checks[entry.number as usize].expected.bind(py))),
            Origin::Input => String::new(),
        };
        let Some(by) = by else {
            return Ok(if after { self.program.printed(name) } else { self.recorded.unrolled().printed(name) });
        };
        let at = PASSES.iter().position(|pass| *pass == by);
        let at =
            at.ok_or_else(|| PyValueError::new_err(format!("found the pass {by:?}, expected one of {PASSES:?}")))?;
        let mut program = self.recorded.unrolled();
        for pass in &PASSES[..at + usize::from(after)] {
            program = match *pass {
                "identities" => program.without_identities(|number| self.calls[number as usize].is_identity),
                "common" => program.without_common_entries(),
                "constants" => program.with_folded_constants(|id, _, _| self.folded.get(&id).copied()),
                "loops" => return Ok(Rolled::of(&program).printed(name)),
                _ => program.without_dead_entries(),
            };
        }
        Ok(program.printed(name))
    }

    /// The loops of the program as it was recorded: the first entry of each, the number of entries of a repetition, and that of repetitions.
    fn loops(&self) -> Vec<(usize, usize, u32)> {
        self.recorded.loops().into_iter().map(|Loop { start, period, count }| (start, period, count)).collect()
    }

    /// The calls of each run, by their numbers in what `printed` shows.
    fn runs(&self) -> Vec<Vec<Id>> {
        let run = |step: &Step| matches!(step, Step::Run { .. }).then(|| step.calls().collect());
        self.schedule.steps.iter().filter_map(run).collect()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let mut failed = Ok(());
        let mut call = |object: &Py<PyAny>| {
            if failed.is_ok() {
                failed = visit.call(object);
            }
        };
        for made in &self.calls {
            made.args.iter().chain(&made.named).for_each(|part| part.held(&mut call));
        }
        self.checks.iter().for_each(|check| call(&check.expected));
        call(&self.same);
        failed
    }
}

/// A short description: an array by its shape.
fn described(object: &Object<'_>) -> String {
    let text = || match object.getattr_opt("shape")? {
        Some(shape) if shape.len()? > 0 => {
            Ok::<_, PyErr>(format!("{} of {}", object.getattr("dtype")?.str()?.to_cow()?, shape.repr()?.to_cow()?))
        }
        _ => Ok(object.repr()?.to_cow()?.into_owned()),
    };
    text().unwrap_or_else(|_| "constant".into())
}

impl Replay {
    /// The results on these inputs; or, where a check failed, its line, the value that was recorded and the present one.
    pub fn replayed<'py>(
        &self,
        py: Python<'py>,
        mut inputs: impl Iterator<Item = Value>,
    ) -> PyResult<Result<Vec<Object<'py>>, Failed<'py>>> {
        let mut values = Values { places: &self.schedule.places, values: Vec::new() };
        values.extend(self.schedule.kept);
        for (id, origin, number) in &self.sources {
            values[*id] = match origin {
                Origin::Constant => self.constants[*number as usize].share(py),
                _ => inputs.next().ok_or_else(|| PyTypeError::new_err("a replay has an input for each entry"))?,
            };
        }
        for (at, step) in self.schedule.steps.iter().enumerate() {
            if let Some(failed) = self.step(py, at, step, &mut values)? {
                return Ok(Err(failed));
            }
            for id in &self.schedule.last[at] {
                array_pool::keep(py, std::mem::replace(&mut values[*id], Value::Absent));
            }
            if at % 1024 == 1023 {
                py.check_signals()?;
            }
        }
        Ok(Ok(self.program.outputs().iter().map(|id| values[*id].object(py)).collect()))
    }

    /// Computes a step; returns the check that failed, if one did.
    fn step<'py>(
        &self,
        py: Python<'py>,
        at: usize,
        step: &Step,
        values: &mut Values<'_>,
    ) -> PyResult<Option<Failed<'py>>> {
        if let (Some(run), Step::Run { reads, writes, .. }) = (&self.runs[at], step) {
            let results = {
                let read: SmallVec<[&Value; 8]> = reads.iter().map(|id| &values[*id]).collect();
                match &**run {
                    Pass::Arrays(run) => run.run(py, &read)?,
                    Pass::Scalars(run) => {
                        let found = run.run(read.iter().map(|value| scalar_in(py, value)));
                        found.map(|results| results.into_iter().map(Value::from_scalar).collect())
                    }
                }
            };
            if let Some(results) = results {
                for (id, result) in writes.iter().zip(results) {
                    values[*id] = result;
                }
                return Ok(None);
            }
        }
        // A run that is computed call by call: what it does not write is dropped after it.
        let is_run = matches!(step, Step::Run { .. });
        if is_run {
            values.extend(self.program.entries().len());
        }
        for id in step.calls() {
            let entry = &self.program.entries()[id as usize];
            match entry.origin {
                Origin::Call { .. } => {
                    let call = &self.calls[entry.number as usize];
                    let result = if call.adds_to_first() && self.is_last(at, &entry.args) {
                        let first = std::mem::replace(&mut values[entry.args[0]], Value::Absent);
                        let read: SmallVec<[&Value; 4]> = entry.args.iter().map(|arg| &values[*arg]).collect();
                        call.added_to(py, first, &read)?
                    } else {
                        let read: SmallVec<[&Value; 4]> = entry.args.iter().map(|arg| &values[*arg]).collect();
                        call.call(py, &read)?
                    };
                    if let Some(shape) = &call.shape
                        && let Some(found) = shape_of(py, &result)
                        && found != *shape
                    {
                        let [expected, found] = [shape, &found].map(|shape| PyTuple::new(py, shape));
                        let what = format!("the shape of {}", call.name);
                        return Ok(Some((what, expected?.into_any(), found?.into_any())));
                    }
                    values[id] = result;
                }
                Origin::Check => {
                    let check = &self.checks[entry.number as usize];
                    let value = &values[entry.args[0]];
                    if !self.holds(py, check, value)? {
                        let expected = check.expected.bind(py).clone();
                        return Ok(Some((check.line.clone(), expected, value.object(py))));
                    }
                }
                Origin::Input | Origin::Constant => {}
            }
        }
        if is_run {
            values.shrink(py, self.schedule.kept);
        }
        Ok(None)
    }

    /// Whether the first argument of a call is needed for that alone, in this step.
    fn is_last(&self, at: usize, args: &[Id]) -> bool {
        self.schedule.last[at].contains(&args[0]) && !args[1..].contains(&args[0])
    }

    fn holds(&self, py: Python<'_>, check: &Check, value: &Value) -> PyResult<bool> {
        if let Value::Object(object) = value
            && (object.is(&check.expected) || object.bind(py).is_exact_instance_of::<PyBool>())
        {
            return Ok(object.is(&check.expected));
        }
        self.same.bind(py).call1((&check.expected, value.object(py)))?.is_truthy()
    }
}
