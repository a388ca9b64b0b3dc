//! The program of a recording, and its replay.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use oxigrad_core::autodiff::tape::Value as _;
use oxigrad_core::recording::{Entry, Id, Loop, Origin, Program, Rolled, Schedule, Step};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::PyVisit;
use pyo3::types::{PyBool, PyTuple};
use smallvec::SmallVec;

use crate::arrays::compute::{array_pool, run};
use crate::arrays::value::Value;
use crate::prelude::*;
use crate::recording::call::{Call, Role, shape_of};
use crate::recording::parts::{Calls, Check, Parts, Pass, Runs, Work};
use crate::recording::statement::Statement;
use crate::recording::trace::entry::TraceEntry;

/// Calls of constants are folded until their results take so many bytes, and for so long: the others are computed at each replay.
const MOST_FOLDED: usize = 1 << 26;
const LONGEST_FOLD: Duration = Duration::from_secs(1);

/// Runs are not longer, so that their values stay in registers and the cache.
const MOST: usize = 32;

/// The passes over a program, in order: calls that give their argument are that, common entries are computed once, calls of constants are
/// folded, dead entries are dropped, and loops are stated once: these are computed as without the last pass.
const PASSES: [&str; 5] = ["identities", "common", "constants", "dead", "loops"];

/// The check that failed: its line, the value that was recorded and the present one.
pub type Failed<'py> = (String, Object<'py>, Object<'py>);

/// The program of a recording, which `run` replays without a function of Python's for each entry.
///
/// Calls of one function with the same arguments apart from entries have one number. ``has_bits_of_core(op)`` tells whether NumPy computes "maximum" or
/// "minimum" with the bits of the core. In a program ``of_file``, one of so many in a file, calls whose
/// integers or arrays are too large raise `StateError`; all of them together fold as many constants as one other program.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct Replay {
    /// The program as it was recorded, and as it is replayed, which are printed and saved.
    recorded: Rolled,
    program: Rolled,
    /// The numbers of constants that calls were folded to, by the ids of the calls before that pass.
    folded: HashMap<Id, u32>,
    /// The steps: see [`Schedule::rolled`].
    steps: Rolled,
    works: Vec<Work>,
    /// The number of places of values.
    places: usize,
    /// Inputs and constants: places and numbers.
    sources: Vec<(u32, Origin, u32)>,
    /// The places of the results.
    outputs: Vec<u32>,
    sizes: Sizes,
    groups: Vec<Runs>,
    calls: Vec<Call>,
    constants: Vec<Value>,
    checks: Vec<Check>,
    same: Py<PyAny>,
}

/// The numbers of entries that are calls, as recorded and as replayed, of runs, of calls in runs, and of constants.
type Sizes = (usize, usize, usize, usize, usize);

/// The schedule of a program of these calls, which are of these groups.
fn scheduled(program: &Program, groups: &[Runs], calls: &[Call]) -> Schedule {
    let most = |group: u32| match groups[group as usize] {
        Runs::Arrays(_) => MOST,
        Runs::Small => usize::MAX,
    };
    let is = |role: Role| move |number: u32| calls[number as usize].role == role;
    Schedule::new(program, most, is(Role::Total), is(Role::View))
}

/// The reason why a replay ends before its last step.
enum Stop<'py> {
    Failed(Failed<'py>),
    Raised(PyErr),
}

impl From<PyErr> for Stop<'_> {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

/// Whether the first value that a step reads is read by it once, and not after it.
fn is_last(reads: &[u32], last: &[u32]) -> bool {
    last.contains(&reads[0]) && !reads[1..].contains(&reads[0])
}

#[pymethods]
impl Replay {
    #[new]
    #[pyo3(signature = (entries, outputs, same, has_bits_of_core, *, of_file=None))]
    fn new(
        py: Python<'_>,
        entries: &Object<'_>,
        outputs: Vec<Id>,
        same: Py<PyAny>,
        has_bits_of_core: Object<'_>,
        of_file: Option<u32>,
    ) -> PyResult<Self> {
        let entries = entries.try_iter()?.map(|entry| Ok(entry?.cast_into::<TraceEntry>()?));
        let mut statement = Statement::new(entries.collect::<PyResult<_>>()?, &outputs, has_bits_of_core)?;
        let mut parts = Parts::default();
        let made = (0..statement.entries().len()).map(|at| parts.entry(at, &mut statement)).collect::<PyResult<_>>()?;
        parts.calls.iter_mut().for_each(|call| call.is_bounded = of_file.is_some());
        let recorded = Program::new(made, outputs).python()?;
        let common =
            recorded.without_identities(|number| parts.calls[number as usize].is_identity).without_common_entries();
        let (mut folded, mut raised, begin) = (HashMap::new(), Ok(()), Instant::now());
        let programs = of_file.unwrap_or(1).max(1);
        let (most, longest) = (MOST_FOLDED / programs as usize, LONGEST_FOLD / programs);
        let constant = common.with_folded_constants(|id, entry, args| {
            if raised.is_err() || parts.folded_bytes > most || begin.elapsed() > longest {
                return None;
            }
            raised = py.check_signals();
            let number = parts.folded(py, entry, args).unwrap_or_else(|error| {
                raised = Err(error);
                None
            })?;
            folded.insert(id, number);
            Some(number)
        });
        raised?;
        let program = constant.without_dead_entries().with_grouped_views(|number| parts.view(number));
        let schedule = scheduled(&program, &parts.groups, &parts.calls);
        let steps = schedule.rolled(&program, |computation| parts.work(computation));
        let place = |id: Id| schedule.places[id as usize].expect("a value between steps has a place");
        let sources = (0..).zip(program.entries()).map(|(id, entry)| (id, entry.origin, entry.number));
        let sources = sources.filter(|(_, origin, _)| matches!(origin, Origin::Input | Origin::Constant));
        let sources: Vec<_> = sources.map(|(id, origin, number)| (place(id), origin, number)).collect();
        let outputs = program.outputs().iter().map(|id| place(*id)).collect();
        let (runs, fused) = schedule.runs();
        let constants = sources.iter().filter(|(_, origin, _)| *origin == Origin::Constant).count();
        let sizes = (recorded.calls(), program.calls(), runs, fused, constants);
        let (recorded, program, places) = (Rolled::of(&recorded), Rolled::of(&program), schedule.kept);
        let Parts { calls, constants, checks, groups, works, .. } = parts;
        Ok(Self {
            recorded,
            program,
            folded,
            steps,
            works,
            places,
            sources,
            outputs,
            sizes,
            groups,
            calls,
            constants,
            checks,
            same,
        })
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
    const fn sizes(&self) -> Sizes {
        self.sizes
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
            let program = if after { &self.program } else { &self.recorded };
            return Ok(program.unrolled().printed(name));
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

    /// The number of steps of a replay, and of those that it holds: steps of loops once.
    fn steps(&self) -> (usize, usize) {
        (self.steps.unrolled().entries().len(), self.steps.stated())
    }

    /// The calls of each run, by their numbers in what `printed` shows.
    fn runs(&self) -> Vec<Vec<Id>> {
        let run = |step: &Step| matches!(step, Step::Run { .. }).then(|| step.calls().collect());
        scheduled(&self.program.unrolled(), &self.groups, &self.calls).steps.iter().filter_map(run).collect()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Visited {
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
        let mut values = Vec::new();
        values.resize_with(self.places, || Value::Absent);
        for (place, origin, number) in &self.sources {
            values[*place as usize] = match origin {
                Origin::Constant => self.constants[*number as usize].share(py),
                _ => inputs.next().ok_or_else(|| PyTypeError::new_err("a replay has an input for each entry"))?,
            };
        }
        let mut count = 0_usize;
        let all = self.steps.try_for_each(|origin, number, places| {
            let last = if origin == Origin::Check {
                self.check(py, &self.checks[number as usize], &values[places[0] as usize])?;
                &places[1..]
            } else {
                self.step(py, &self.works[number as usize], places, &mut values)?
            };
            for place in last {
                array_pool::keep(py, std::mem::replace(&mut values[*place as usize], Value::Absent));
            }
            count += 1;
            if count.is_multiple_of(1024) {
                py.check_signals()?;
            }
            Ok(())
        });
        match all {
            Ok(()) => Ok(Ok(self.outputs.iter().map(|place| values[*place as usize].object(py)).collect())),
            Err(Stop::Failed(failed)) => Ok(Err(failed)),
            Err(Stop::Raised(error)) => Err(error),
        }
    }

    /// Computes a step; returns the places whose values are not read after it.
    fn step<'py, 'a>(
        &self,
        py: Python<'py>,
        work: &Work,
        places: &'a [u32],
        values: &mut [Value],
    ) -> Result<&'a [u32], Stop<'py>> {
        let (reads, rest) = places.split_at(work.reads);
        let (writes, last) = rest.split_at(work.writes.len());
        match &work.calls {
            Calls::One(number) => {
                let call = &self.calls[*number as usize];
                let taken = call.changes_first() && is_last(reads, last);
                let first = taken.then(|| std::mem::replace(&mut values[reads[0] as usize], Value::Absent));
                let result = {
                    let read: SmallVec<[&Value; 4]> = reads.iter().map(|place| &values[*place as usize]).collect();
                    match first {
                        Some(first) => call.changed(py, first, &read)?,
                        None => call.call(py, &read)?,
                    }
                };
                values[writes[0] as usize] = Self::of_shape(py, call, result)?;
            }
            Calls::Run(calls, pass) => {
                let results = {
                    let read: SmallVec<[&Value; 8]> = reads.iter().map(|place| &values[*place as usize]).collect();
                    let results = match pass {
                        Some(Pass::Arrays(run)) => run::run(py, run, &read)?,
                        Some(Pass::Small(small)) => small.run(py, &read)?,
                        Some(Pass::Scalars(scalars)) => {
                            let found = scalars.run(read.iter().map(|value| run::scalar_in(py, value)));
                            found.map(|results| results.into_iter().map(Value::from_scalar).collect())
                        }
                        None => None,
                    };
                    results.map_or_else(|| self.each(py, calls, &work.writes, &read), Ok)?
                };
                for (place, result) in writes.iter().zip(results) {
                    values[*place as usize] = result;
                }
            }
        }
        Ok(last)
    }

    /// The results of a run that are needed later, call by call, of the values that it reads.
    fn each<'py>(
        &self,
        py: Python<'py>,
        calls: &Rolled,
        writes: &[usize],
        read: &[&Value],
    ) -> Result<Vec<Value>, Stop<'py>> {
        let mut results: Vec<Value> = Vec::new();
        calls.try_for_each(|_, number, args| {
            let call = &self.calls[number as usize];
            let result = {
                let value = |at: &u32| match read.get(*at as usize) {
                    Some(value) => *value,
                    None => &results[*at as usize - read.len()],
                };
                let args: SmallVec<[&Value; 4]> = args.iter().map(value).collect();
                Self::of_shape(py, call, call.call(py, &args)?)?
            };
            results.push(result);
            Ok::<_, Stop<'py>>(())
        })?;
        let written = writes.iter().map(|at| std::mem::replace(&mut results[*at], Value::Absent)).collect();
        for value in results {
            array_pool::keep(py, value);
        }
        Ok(written)
    }

    /// The result of a call, which must have the recorded shape.
    fn of_shape<'py>(py: Python<'py>, call: &Call, result: Value) -> Result<Value, Stop<'py>> {
        if let Some(shape) = &call.shape
            && let Some(found) = shape_of(py, &result)
            && found != *shape
        {
            let [expected, found] = [shape, &found].map(|shape| PyTuple::new(py, shape));
            let what = format!("the shape of {}", call.name);
            return Err(Stop::Failed((what, expected?.into_any(), found?.into_any())));
        }
        Ok(result)
    }

    fn check<'py>(&self, py: Python<'py>, check: &Check, value: &Value) -> Result<(), Stop<'py>> {
        if self.holds(py, check, value)? {
            return Ok(());
        }
        Err(Stop::Failed((check.line.clone(), check.expected.bind(py).clone(), value.object(py))))
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
