//! The program of a recording, and its replay.

use std::collections::HashMap;

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::op::{Attribute, Op, Structured};
use oxigrad_core::recording::{Entry, Id, Origin, Program, Schedule, Step};
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};
use smallvec::SmallVec;

use crate::arrays::compute::array_pool;
use crate::arrays::compute::elementwise::op_named;
use crate::arrays::compute::run::{Group, Member, Run};
use crate::arrays::memory::numpy::Numpy;
use crate::arrays::value::Value;
use crate::error::{IntoPython, Items, unless};
use crate::recording::call::Call;

type Object<'py> = Bound<'py, PyAny>;

/// Runs are not longer, so that their values stay in registers and the cache.
const MOST: usize = 32;

/// The passes over a program, in order: common entries are computed once, calls of constants are folded, dead entries are dropped.
const PASSES: [&str; 3] = ["common", "constants", "dead"];

/// A constant takes at most so many bytes, or as many as those that it was folded from.
const MOST_FOLDED: usize = 1 << 16;

/// A value that Python saw, and where.
struct Check {
    expected: Py<PyAny>,
    line: String,
}

/// The check that failed: its line, the value that was recorded and the present one.
pub type Failed<'py> = (String, Object<'py>, Object<'py>);

/// The program of a recording, which `run` replays without a function of Python's for each entry.
///
/// `entries` has a tuple for each: ``("input",)``, ``("constant", value)``, ``("check", id, expected, line)`` or ``("call", target, function,
/// args, named, shape, key, member)``, where `shape` is that of the result, which a replay checks, `key` is equal for calls of one
/// function with the same arguments apart from entries, and `member` is the op of a call that may be part of a run, and the shape and dtype
/// of its arrays.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct Replay {
    recorded: Program,
    program: Program,
    /// The numbers of constants that calls were folded to, by the ids of the calls before that pass.
    folded: HashMap<Id, u32>,
    schedule: Schedule,
    /// The kernel of each step; `None` for steps that are no runs.
    runs: Vec<Option<Run>>,
    calls: Vec<Call>,
    constants: Vec<Value>,
    checks: Vec<Check>,
    same: Py<PyAny>,
}

#[pymethods]
impl Replay {
    #[new]
    fn new(py: Python<'_>, entries: Items<'_>, outputs: Vec<Id>, same: Py<PyAny>) -> PyResult<Self> {
        let mut parts = Parts::new(py);
        let mut made = Vec::with_capacity(entries.0.len());
        for entry in &entries.0 {
            made.push(parts.entry(entry.cast::<PyTuple>()?)?);
        }
        let recorded = Program::new(made, outputs).python()?;
        let common = recorded.without_common_entries();
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
        let schedule = Schedule::new(&program, MOST);
        let runs = schedule.steps.iter().map(|step| parts.run(&program, step)).collect();
        let Parts { calls, constants, checks, .. } = parts;
        Ok(Self { recorded, program, folded, schedule, runs, calls, constants, checks, same })
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
        (self.recorded.calls(), self.program.calls(), runs, fused, constants)
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
            return Ok(if after { &self.program } else { &self.recorded }.printed(name));
        };
        let at = PASSES.iter().position(|pass| *pass == by);
        let at =
            at.ok_or_else(|| PyValueError::new_err(format!("found the pass {by:?}, expected one of {PASSES:?}")))?;
        let mut program = self.recorded.clone();
        for pass in &PASSES[..at + usize::from(after)] {
            program = match *pass {
                "common" => program.without_common_entries(),
                "constants" => program.with_folded_constants(|id, _, _| self.folded.get(&id).copied()),
                _ => program.without_dead_entries(),
            };
        }
        Ok(program.printed(name))
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
        let mut values: Vec<Value> = Vec::with_capacity(self.program.entries().len());
        for entry in self.program.entries() {
            values.push(match entry.origin {
                Origin::Input => {
                    inputs.next().ok_or_else(|| PyTypeError::new_err("a replay has an input for each entry"))?
                }
                Origin::Constant => self.constants[entry.number as usize].share(py),
                Origin::Call { .. } | Origin::Check => Value::Absent,
            });
        }
        for (at, step) in self.schedule.steps.iter().enumerate() {
            if let Some(failed) = self.step(py, at, step, &mut values)? {
                return Ok(Err(failed));
            }
            for id in &self.schedule.last[at] {
                array_pool::keep(py, std::mem::replace(&mut values[*id as usize], Value::Absent));
            }
            if at % 1024 == 1023 {
                py.check_signals()?;
            }
        }
        Ok(Ok(self.program.outputs().iter().map(|id| values[*id as usize].object(py)).collect()))
    }

    /// Computes a step; returns the check that failed, if one did.
    fn step<'py>(
        &self,
        py: Python<'py>,
        at: usize,
        step: &Step,
        values: &mut [Value],
    ) -> PyResult<Option<Failed<'py>>> {
        if let (Some(run), Step::Run { reads, writes, .. }) = (&self.runs[at], step) {
            let results = {
                let read: SmallVec<[&Value; 8]> = reads.iter().map(|id| &values[*id as usize]).collect();
                run.run(py, &read)?
            };
            if let Some(results) = results {
                for (id, result) in writes.iter().zip(results) {
                    values[*id as usize] = result;
                }
                return Ok(None);
            }
        }
        for id in step.calls() {
            let entry = &self.program.entries()[id as usize];
            match entry.origin {
                Origin::Call { .. } => {
                    let call = &self.calls[entry.number as usize];
                    let result = if call.adds_to_first() && self.is_last(at, &entry.args) {
                        let first = std::mem::replace(&mut values[entry.args[0] as usize], Value::Absent);
                        let read: SmallVec<[&Value; 4]> = entry.args.iter().map(|arg| &values[*arg as usize]).collect();
                        call.added_to(py, first, &read)?
                    } else {
                        let read: SmallVec<[&Value; 4]> = entry.args.iter().map(|arg| &values[*arg as usize]).collect();
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
                    values[id as usize] = result;
                }
                Origin::Check => {
                    let check = &self.checks[entry.number as usize];
                    let value = &values[entry.args[0] as usize];
                    if !self.holds(py, check, value)? {
                        let expected = check.expected.bind(py).clone();
                        return Ok(Some((check.line.clone(), expected, value.object(py))));
                    }
                }
                Origin::Input | Origin::Constant => {}
            }
        }
        Ok(None)
    }

    /// Whether the first argument of a call is needed for that alone, in this step.
    fn is_last(&self, at: usize, args: &[Id]) -> bool {
        self.schedule.last[at].contains(&args[0]) && !args[1..].contains(&args[0])
    }

    fn holds(&self, py: Python<'_>, check: &Check, value: &Value) -> PyResult<bool> {
        if let Value::Object(object) = value
            && object.bind(py).is_exact_instance_of::<PyBool>()
        {
            return Ok(object.is(&check.expected));
        }
        self.same.bind(py).call1((&check.expected, value.object(py)))?.is_truthy()
    }
}

/// The shape of a NumPy array.
fn shape_of(py: Python<'_>, value: &Value) -> Option<SmallVec<[usize; 4]>> {
    let Value::Object(object) = value else { return None };
    Some(Numpy::get(py)?.fields(object.bind(py))?.extents().collect())
}

/// The bytes of the elements of a NumPy array, at eight an element.
fn bytes(py: Python<'_>, value: &Value) -> usize {
    shape_of(py, value).map_or(0, |shape| shape.iter().fold(8, |bytes: usize, extent| bytes.saturating_mul(*extent)))
}

/// The functions and values that entries refer to, while a program is made.
struct Parts {
    calls: Vec<Call>,
    constants: Vec<Value>,
    checks: Vec<Check>,
    groups: Vec<Group>,
    /// The op of each call that may be part of a run, and its group.
    members: Vec<Option<(Member, u32)>>,
    /// The number of the call of each key.
    keys: Py<PyDict>,
    inputs: u32,
}

impl Parts {
    fn new(py: Python<'_>) -> Self {
        Self {
            calls: Vec::new(),
            constants: Vec::new(),
            checks: Vec::new(),
            groups: Vec::new(),
            members: Vec::new(),
            keys: PyDict::new(py).unbind(),
            inputs: 0,
        }
    }

    fn entry(&mut self, given: &Bound<'_, PyTuple>) -> PyResult<Entry> {
        let kind: String = given.get_item(0)?.extract()?;
        let position = |length: usize| u32::try_from(length - 1).expect("ids are of 32 bits");
        Ok(match kind.as_str() {
            "input" => {
                self.inputs += 1;
                Entry { origin: Origin::Input, number: self.inputs - 1, args: Vec::new() }
            }
            "constant" => {
                self.constants.push(Value::new(&given.get_item(1)?));
                Entry { origin: Origin::Constant, number: position(self.constants.len()), args: Vec::new() }
            }
            "check" => {
                let (id, expected, line) =
                    (given.get_item(1)?.extract()?, given.get_item(2)?.unbind(), given.get_item(3)?);
                self.checks.push(Check { expected, line: line.extract()? });
                Entry { origin: Origin::Check, number: position(self.checks.len()), args: vec![id] }
            }
            "call" => self.call(given)?,
            _ => return Err(PyValueError::new_err(format!("an entry is of kind {kind:?}"))),
        })
    }

    fn call(&mut self, given: &Bound<'_, PyTuple>) -> PyResult<Entry> {
        let py = given.py();
        let (mut args, named) = (Vec::new(), given.get_item(4)?.cast_into::<PyDict>()?);
        let shape: Option<Vec<usize>> = given.get_item(5)?.extract()?;
        let (function, arguments) = (given.get_item(2)?, given.get_item(3)?);
        let target = given.get_item(1)?.extract()?;
        let call = Call::new(target, &function, &arguments, &named, &mut args, shape.map(SmallVec::from_vec))?;
        let stated: Option<(String, Vec<usize>, String)> = given.get_item(7)?.extract()?;
        let member = stated.map(|stated| self.member(stated)).transpose()?.flatten();
        let (key, fresh) = (given.get_item(6)?, self.calls.len());
        let known: Option<usize> = self.keys.bind(py).get_item(&key)?.map(|known| known.extract()).transpose()?;
        let number = if let Some(known) = known {
            known
        } else {
            self.keys.bind(py).set_item(&key, fresh)?;
            self.calls.push(call);
            self.members.push(member);
            fresh
        };
        let group = self.members[number].map(|(_, group)| group);
        let reduces = self.members[number].is_some_and(|(member, _)| !matches!(member, Member::Elementwise(_)));
        let number = u32::try_from(number).expect("ids are of 32 bits");
        Ok(Entry { origin: Origin::Call { group, reduces }, number, args })
    }

    /// The op and the group of a call of a run; `None` where its eager result is not that of the core.
    fn member(&mut self, stated: (String, Vec<usize>, String)) -> PyResult<Option<(Member, u32)>> {
        let (name, shape, dtype) = stated;
        let member = match op_named(&name)? {
            Op::Elementwise(op) => Member::Elementwise(op),
            Op::Structured(Structured::Sum) => Member::Sum,
            Op::Structured(Structured::Mean) => Member::Mean,
            Op::Structured(_) => return Ok(None),
        };
        let dtype = match dtype.as_str() {
            "<f4" => Dtype::F32,
            "<f8" => Dtype::F64,
            _ => return Ok(None),
        };
        let group = Group { shape: SmallVec::from_vec(shape), dtype };
        if !(matches!(member, Member::Elementwise(_)) || group.has_sums()) {
            return Ok(None);
        }
        let at = self.groups.iter().position(|known| *known == group).unwrap_or_else(|| {
            self.groups.push(group);
            self.groups.len() - 1
        });
        Ok(Some((member, u32::try_from(at).expect("ids are of 32 bits"))))
    }

    /// The number of the constant of a call of constants; `None` where it raises, or takes more memory than they do.
    fn folded(&mut self, py: Python<'_>, entry: &Entry, args: &[u32]) -> PyResult<Option<u32>> {
        let call = &self.calls[entry.number as usize];
        let read: Vec<&Value> = args.iter().map(|number| &self.constants[*number as usize]).collect();
        let Some(value) = unless::<PyException, _>(py, call.call(py, &read))? else { return Ok(None) };
        let most = read.iter().map(|value| bytes(py, value)).sum::<usize>().max(MOST_FOLDED);
        let is_of_shape = call.shape.is_none() || shape_of(py, &value).is_none_or(|found| Some(found) == call.shape);
        if !is_of_shape || bytes(py, &value) > most {
            return Ok(None);
        }
        self.constants.push(value);
        Ok(u32::try_from(self.constants.len() - 1).ok())
    }

    /// The kernel of a step that is a run.
    fn run(&self, program: &Program, step: &Step) -> Option<Run> {
        let Step::Run { calls, reads, writes } = step else { return None };
        let mut operations = Vec::with_capacity(calls.len());
        let at: HashMap<Id, usize> = reads.iter().chain(calls).enumerate().map(|(at, id)| (*id, at)).collect();
        let mut group = 0;
        for id in calls {
            let entry = &program.entries()[*id as usize];
            let (member, own) = self.members[entry.number as usize]?;
            group = own;
            operations.push((member, entry.args.iter().map(|arg| at[arg]).collect()));
        }
        let writes: Vec<usize> = writes.iter().map(|id| at[id] - reads.len()).collect();
        Run::new(&operations, reads.len(), &writes, &self.groups[group as usize])
    }
}

/// Whether the eager result of an op on NumPy arrays is that of the core, for each elementwise op by name.
#[pyfunction]
pub fn is_computed_in_core(name: &str) -> PyResult<bool> {
    let Op::Elementwise(op) = op_named(name)? else { return Ok(false) };
    Ok([Attribute::Exact, Attribute::Vectorized, Attribute::Precise].iter().any(|attribute| op.has(*attribute)))
}
