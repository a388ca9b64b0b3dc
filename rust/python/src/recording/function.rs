//! The call of a recorded function: guards, replay and result in one crossing from Python.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::ffi::PyObject;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use crate::arrays::memory::numpy::Numpy;
use crate::arrays::value::Value;
use crate::autodiff::graph::open_tapes::OpenTrace;
use crate::prelude::*;
use crate::recording::flat::Flat;
use crate::recording::floating_errors::is_watched;
use crate::recording::guards::{Found, Guards, Place, is_equal};
use crate::recording::kinds::LeafKind;
use crate::recording::replay::{Failed, Replay};
use crate::tree::Structure;

/// So many objects are compared with each other; more are looked up.
const FEW: usize = 24;

/// The result of ``f``, called to be recorded: meanwhile recorded functions run as they are, in this thread, and arrays
/// that functions of `xp` make are values of the ``trace``.
///
/// One call, which an interrupt or the end of the stack cannot leave half done.
#[pyfunction]
pub fn call_traced<'py>(
    f: &Object<'py>,
    args: &Bound<'py, PyTuple>,
    named: &Bound<'py, PyDict>,
    trace: &Object<'py>,
) -> PyResult<Object<'py>> {
    let _trace = OpenTrace::begin(trace);
    f.call(args, Some(named))
}

/// A recorded call: the kind of its arguments and of what the function captures, and how it is replayed.
struct Case {
    structures: Vec<Py<Structure>>,
    leaves: Vec<Py<LeafKind>>,
    is_input: Vec<bool>,
    /// For each array among the inputs, the first one that is the same object.
    aliases: Vec<usize>,
    replay: Py<Replay>,
    /// The structure of the result.
    result: Py<Structure>,
    /// Results that the caller may write to: a call gives a copy of one that is a constant.
    writable: Vec<usize>,
    /// The recorded call, as Python has it.
    recorded: Py<PyAny>,
    /// The number of its calls, of which the first was recorded, and of the one that is audited next.
    calls: AtomicU64,
    audited: AtomicU64,
    /// The inputs of the first call, until a call with other ones is audited.
    first: Mutex<Option<Arc<Vec<Py<PyAny>>>>>,
}

/// Guards and recordings, by which the calls of a function are replayed.
struct Plan {
    guards: Py<Guards>,
    /// The places of captured trees, whose leaves are inputs after those of the arguments.
    captured: Vec<Place>,
    cases: Vec<Arc<Case>>,
}

/// A function that is replayed where a recording fits; the subclass in Python records, in `_otherwise`.
#[pyclass(frozen, subclass, module = "oxigrad._core")]
pub struct RecordedFunction {
    function: Py<PyAny>,
    /// One for each state of the guards that was recorded.
    plans: Mutex<Arc<Vec<Plan>>>,
    /// Why the last call was no replay.
    why: Mutex<Option<Py<PyAny>>>,
    replays: AtomicU64,
}

/// An audited call: its number, and whether its inputs differ from those of the first call, so that it proves something.
struct Audit {
    call: u64,
    is_proof: bool,
}

/// The outcome of a call.
enum Outcome<'py> {
    Result(Object<'py>),
    /// The result of a call that is to be audited.
    Audited(Object<'py>, Arc<Case>, Audit),
    /// A check failed in the last recording that fits.
    Failed(Failed<'py>),
    Raised(PyErr),
    /// No recording fits.
    None,
}

impl RecordedFunction {
    fn plans(&self) -> Arc<Vec<Plan>> {
        locked(&self.plans).clone()
    }

    fn set_plans(&self, plans: Vec<Plan>) {
        set_locked(&self.plans, Arc::new(plans));
    }
}

#[pymethods]
impl RecordedFunction {
    #[new]
    #[pyo3(signature = (function, *_args, **_named))]
    fn new(function: Py<PyAny>, _args: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Self {
        Self { function, plans: Mutex::default(), why: Mutex::default(), replays: AtomicU64::new(0) }
    }

    #[pyo3(signature = (*args, **named))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Object<'py>> {
        let (py, own) = (slf.py(), slf.get());
        if OpenTrace::is_any() {
            return own.function.bind(py).call(args, named);
        }
        let named = named.cloned().unwrap_or_else(|| PyDict::new(py));
        let plans = own.plans();
        let outcome = if plans.is_empty() || is_watched(py)? { Outcome::None } else { replayed(&plans, args, &named)? };
        let asked: usize = plans.iter().map(|plan| plan.cases.len()).sum();
        let otherwise =
            |failed, raised| slf.call_method1(intern!(py, "_otherwise"), (args, &named, failed, raised, asked));
        match outcome {
            Outcome::Result(result) => {
                own.replays.fetch_add(1, Ordering::Relaxed);
                own.set_why(None);
                Ok(result)
            }
            Outcome::Audited(result, case, Audit { call, is_proof }) => {
                own.replays.fetch_add(1, Ordering::Relaxed);
                own.set_why(None);
                let parts = (args, &named, result, &case.recorded, call, is_proof);
                let audit = slf.call_method1(intern!(py, "_audit"), parts).and_then(|found| found.extract());
                let (result, next) = audit.inspect_err(|_| case.audited.store(call + 1, Ordering::Relaxed))?;
                if is_proof {
                    set_locked(&case.first, None);
                }
                case.audited.store(next, Ordering::Relaxed);
                Ok(result)
            }
            Outcome::Failed(failed) => otherwise(Some(failed), None),
            Outcome::Raised(error) => otherwise(None, Some(error.into_value(py))),
            Outcome::None => otherwise(None, None),
        }
    }

    /// Forgets all recordings.
    fn _forget(&self) {
        self.set_plans(Vec::new());
    }

    /// Adds a recording under these guards, whose results at ``writable`` are arrays that its caller may write to, and whose call number ``audited`` is audited first.
    ///
    /// With ``first``, the inputs of the recorded call, the next call with other inputs is audited too.
    #[allow(clippy::too_many_arguments, reason = "the parts of a recording, as Python states them once")]
    fn _add(
        &self,
        py: Python<'_>,
        guards: Py<Guards>,
        captured: Vec<Place>,
        structures: Vec<Py<Structure>>,
        leaves: Vec<Py<LeafKind>>,
        aliases: Vec<usize>,
        replay: Py<Replay>,
        result: Py<Structure>,
        writable: Vec<usize>,
        recorded: Py<PyAny>,
        audited: u64,
        first: Option<Vec<Py<PyAny>>>,
    ) -> PyResult<()> {
        let total: usize = structures.iter().map(|structure| structure.get().shape.len()).sum();
        let arrays = leaves.iter().filter(|kind| kind.get().is_array()).count();
        if structures.len() != captured.len() + 1 || total != leaves.len() || arrays != aliases.len() {
            return Err(PyValueError::new_err("a recording has a structure for each tree, and a kind for each leaf"));
        }
        let is_input = leaves.iter().map(|kind| kind.get().is_input()).collect();
        let (calls, audited) = (AtomicU64::new(1), AtomicU64::new(audited));
        let first = Mutex::new(first.map(Arc::new));
        let case =
            Case { structures, leaves, is_input, aliases, replay, result, writable, recorded, calls, audited, first };
        let mut plans: Vec<Plan> = self.plans().iter().map(|plan| plan.with(py, plan.cases.clone())).collect();
        match plans.iter_mut().find(|plan| plan.guards.is(&guards)) {
            Some(plan) => plan.cases.push(Arc::new(case)),
            None => plans.push(Plan { guards, captured, cases: vec![Arc::new(case)] }),
        }
        self.set_plans(plans);
        Ok(())
    }

    /// Drops a recording.
    fn _remove(&self, py: Python<'_>, recorded: &Object<'_>) {
        let others = |plan: &Plan| plan.cases.iter().filter(|case| !case.recorded.is(recorded)).cloned().collect();
        let plans = self.plans().iter().map(|plan| plan.with(py, others(plan))).collect::<Vec<_>>();
        self.set_plans(plans.into_iter().filter(|plan| !plan.cases.is_empty()).collect());
    }

    #[getter]
    fn _why(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        locked(&self.why).as_ref().map(|why| why.clone_ref(py))
    }

    #[setter(_why)]
    fn set_why(&self, why: Option<Py<PyAny>>) {
        set_locked(&self.why, why);
    }

    /// The number of calls that were replays.
    #[getter]
    fn replays(&self) -> u64 {
        self.replays.load(Ordering::Relaxed)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Visited {
        visit.call(&self.function)?;
        // No thread holds a lock while the collector runs: nothing of Python's is called under it.
        let (Ok(why), Ok(plans)) = (self.why.try_lock(), self.plans.try_lock()) else { return Ok(()) };
        why.iter().try_for_each(|why| visit.call(why))?;
        plans.iter().try_for_each(|plan| visit.call(&plan.guards))?;
        plans.iter().flat_map(|plan| &plan.cases).try_for_each(|case| {
            case.structures.iter().chain([&case.result]).try_for_each(|structure| visit.call(structure))?;
            case.leaves.iter().try_for_each(|kind| visit.call(kind))?;
            let Ok(first) = case.first.try_lock() else { return Ok(()) };
            first.iter().flat_map(|first| first.iter()).try_for_each(|input| visit.call(input))?;
            visit.call(&case.replay)?;
            visit.call(&case.recorded)
        })
    }

    fn __clear__(&self) {
        self.set_plans(Vec::new());
        self.set_why(None);
    }
}

/// The result of the first recording that fits.
fn replayed<'py>(plans: &[Plan], args: &Bound<'py, PyTuple>, named: &Bound<'py, PyDict>) -> PyResult<Outcome<'py>> {
    let mut outcome = Outcome::None;
    for plan in plans {
        match plan.replayed(args, named)? {
            Outcome::None => {}
            failed @ Outcome::Failed(_) => outcome = failed,
            result => return Ok(result),
        }
    }
    Ok(outcome)
}

impl Plan {
    /// The plan with these recordings.
    fn with(&self, py: Python<'_>, cases: Vec<Arc<Case>>) -> Self {
        Self { guards: self.guards.clone_ref(py), captured: self.captured.clone(), cases }
    }

    /// The result of the first recording that fits, while the guards hold.
    fn replayed<'py>(&self, args: &Bound<'py, PyTuple>, named: &Bound<'py, PyDict>) -> PyResult<Outcome<'py>> {
        let py = args.py();
        let arguments = Flat::of(PyTuple::new(py, [args.as_any(), named.as_any()])?.as_any())?;
        let fits = |case: &Arc<Case>| arguments.is_of(py, case.structures[0].get(), is_equal);
        if !self.cases.iter().try_fold(false, |is_any, case| Ok::<_, PyErr>(is_any || fits(case)?))? {
            return Ok(Outcome::None);
        }
        let Ok(found) = self.guards.get().check(py)? else { return Ok(Outcome::None) };
        let mut trees = Vec::with_capacity(self.captured.len() + 1);
        trees.push(&arguments);
        for place in &self.captured {
            let Found::Flat(flat) = &found[*place] else { return Ok(Outcome::None) };
            trees.push(flat);
        }
        let mut outcome = Outcome::None;
        for case in &self.cases {
            if !case.fits(py, &trees)? {
                continue;
            }
            outcome = match case.replayed(py, &trees) {
                Ok(Ok(result)) => {
                    return Ok(match case.audit(py, &trees, self.guards.get())? {
                        Some(audit) => Outcome::Audited(result, Arc::clone(case), audit),
                        None => Outcome::Result(result),
                    });
                }
                Ok(Err(failed)) => Outcome::Failed(failed),
                Err(error) if error.is_instance_of::<PyException>(py) => return Ok(Outcome::Raised(error)),
                Err(error) => return Err(error),
            };
        }
        Ok(outcome)
    }
}

impl Case {
    /// The audit of this call, if there is to be one: one thread audits, while others replay.
    fn audit(&self, py: Python<'_>, trees: &[&Flat], guards: &Guards) -> PyResult<Option<Audit>> {
        let (call, audited) = (self.calls.fetch_add(1, Ordering::Relaxed) + 1, self.audited.load(Ordering::Relaxed));
        let (is_due, first) = (call >= audited, locked(&self.first).clone());
        if audited == u64::MAX || !(is_due || first.is_some()) {
            return Ok(None);
        }
        let is_proof = match first {
            Some(first) => !self.are_inputs(py, trees, &first, guards)?,
            None => true,
        };
        let is_first =
            || self.audited.compare_exchange(audited, u64::MAX, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        Ok(((is_due || is_proof) && is_first()).then_some(Audit { call, is_proof }))
    }

    /// Whether a call has inputs of the same bits as these.
    fn are_inputs(&self, py: Python<'_>, trees: &[&Flat], inputs: &[Py<PyAny>], guards: &Guards) -> PyResult<bool> {
        for (leaf, input) in self.inputs(trees).zip(inputs) {
            if !guards.are_same(input.bind(py), leaf.bind(py))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The leaves that are inputs.
    fn inputs<'a>(&'a self, trees: &'a [&Flat]) -> impl Iterator<Item = &'a Py<PyAny>> {
        let leaves = trees.iter().flat_map(|tree| &tree.leaves).zip(&self.is_input);
        leaves.filter(|(_, is_input)| **is_input).map(|(leaf, _)| leaf)
    }

    /// Whether the arguments and what is captured are of the kind of this recording.
    fn fits(&self, py: Python<'_>, trees: &[&Flat]) -> PyResult<bool> {
        for (structure, tree) in self.structures.iter().zip(trees) {
            if !tree.is_of(py, structure.get(), is_equal)? {
                return Ok(false);
            }
        }
        let leaves = trees.iter().flat_map(|tree| &tree.leaves);
        let mut arrays: SmallVec<[*mut PyObject; 16]> = SmallVec::new();
        for (kind, leaf) in self.leaves.iter().zip(leaves) {
            if !kind.get().fits(leaf.bind(py))? {
                return Ok(false);
            }
            if kind.get().is_array() {
                arrays.push(leaf.as_ptr());
            }
        }
        Ok(are_aliases(&self.aliases, &arrays))
    }

    fn replayed<'py>(&self, py: Python<'py>, trees: &[&Flat]) -> PyResult<Result<Object<'py>, Failed<'py>>> {
        let inputs = self.inputs(trees).map(|leaf| Value::new(leaf.bind(py)));
        let mut results = match self.replay.get().replayed(py, inputs)? {
            Ok(results) => results,
            Err(failed) => return Ok(Err(failed)),
        };
        let numpy = Numpy::get(py);
        for at in &self.writable {
            if numpy.fields(&results[*at]).is_none_or(|fields| fields.is_writable()) {
                continue;
            }
            // A constant, or a view of one, rather than of an array that the caller has.
            let may_share = py.import("numpy")?.getattr("may_share_memory")?;
            let is_of_caller = |leaf: &Py<PyAny>| may_share.call1((&results[*at], leaf))?.is_truthy();
            if !self.inputs(trees).map(is_of_caller).collect::<PyResult<Vec<_>>>()?.contains(&true) {
                results[*at] = results[*at].call_method1(intern!(py, "copy"), ("K",))?;
            }
        }
        let result = self.result.get().unflatten(py, results.into_iter().map(Bound::unbind))?;
        Ok(Ok(result.into_bound(py)))
    }
}

/// Whether objects are the same as earlier ones just where ``aliases`` says so.
fn are_aliases(aliases: &[usize], objects: &[*mut PyObject]) -> bool {
    if objects.len() <= FEW {
        let first = |at: usize| objects[..at].iter().position(|other| *other == objects[at]).unwrap_or(at);
        return aliases.iter().enumerate().all(|(at, same)| first(at) == *same);
    }
    let mut seen = HashMap::with_capacity(objects.len());
    aliases.iter().zip(objects).enumerate().all(|(at, (same, object))| *seen.entry(*object).or_insert(at) == *same)
}
