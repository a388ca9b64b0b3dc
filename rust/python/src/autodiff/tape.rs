//! The `Tape` class: owns a core tape on behalf of the thread that opened it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use oxigrad_core::autodiff::tape::{Id, Origin};
use oxigrad_core::error::Error;
use oxigrad_core::kernel::Node;
use oxigrad_core::op::Op;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::autodiff::forward;
use crate::autodiff::gc::Visited;
use crate::autodiff::indexed_assignment::{Memories, settled};
use crate::autodiff::mutation_check::Fingerprint;
use crate::autodiff::replay;
use crate::autodiff::trace::{self, Names};
use crate::autodiff::value::Value;
use crate::autodiff::variable::Variable;
use crate::autodiff::vjp_rules::{self, Fit, hook};
use crate::error::{Items, to_python};

/// What an entry remembers beside its arguments.
#[derive(Debug, Default)]
pub struct Attributes {
    /// The keyword arguments of a structured op, as plain data, with the shapes and dtypes that its rule reads.
    pub named: Option<Py<PyDict>>,
    /// How the cotangent of each argument of an elementwise op differs from that of the result.
    pub fits: Vec<Fit>,
}

/// The core's tape over Python's values.
pub type CoreTape = oxigrad_core::autodiff::tape::Tape<Value, Attributes>;

/// What a tape has kept of Python's.
pub type Forgotten = (Vec<Value>, Vec<Attributes>, Vec<Fingerprint>, Vec<(Id, Value)>);

#[derive(Debug, Default)]
pub struct Inner {
    pub tape: CoreTape,
    pub names: HashMap<Id, String>,
    /// What the inputs of a symbolic tape are, in order.
    pub symbols: Vec<Node>,
    pub fingerprints: Vec<Fingerprint>,
    pub memories: Memories,
    released: bool,
}

/// Records what is done with the variables it hands out, and replays it in reverse, or forwards.
///
/// ``with Tape() as tape`` records until the block ends; `gradient` may be called inside and after it. A tape belongs
/// to the thread that opened it. With `forward` it keeps what `push` needs as well. With `check` it remembers what is in
/// the arrays that the replay will read, and refuses to replay where one was changed in place: for finding mistakes,
/// since it reads every array twice; without it, a changed array gives the derivatives of the changed program. Only
/// arrays in host memory are checked.
///
/// >>> import oxigrad as ox
/// >>> with ox.Tape() as tape:
/// ...     x = tape.watch(3.0, name="x")
/// ...     y = x * x
/// >>> tape.gradient(y, [x])
/// [6.0]
#[pyclass(frozen, module = "oxigrad")]
pub struct Tape {
    /// Tapes are numbered as they are opened: of two nested ones, the inner has the larger serial.
    pub serial: u64,
    thread: usize,
    pub symbolic: bool,
    /// Whether what rules need forwards is kept as well.
    pub forward: bool,
    /// Whether arrays are checked for changes in place.
    pub check: bool,
    ended: AtomicBool,
    inner: Mutex<Inner>,
}

static SERIAL: AtomicU64 = AtomicU64::new(1);

/// Tells threads apart: the address of a variable that each thread has for itself.
fn current_thread() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|mark| std::ptr::from_ref(mark) as usize)
}

impl Tape {
    pub fn new(symbolic: bool) -> Self {
        Self {
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            thread: current_thread(),
            symbolic,
            forward: false,
            check: false,
            ended: AtomicBool::new(false),
            inner: Mutex::default(),
        }
    }

    /// The state, locked; no Python may be called while it is.
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, where nobody has it locked.
    pub fn try_lock(&self) -> Result<MutexGuard<'_, Inner>, TryLockError<MutexGuard<'_, Inner>>> {
        self.inner.try_lock()
    }

    /// Ends the tape, and gives back what it kept of Python's, to be dropped. Its entries stay, as entries without values.
    pub fn forget(&self) -> Forgotten {
        self.end();
        let mut inner = self.lock();
        inner.released = true;
        let (values, attributes) = inner.tape.forget();
        (values, attributes, std::mem::take(&mut inner.fingerprints), inner.memories.forget())
    }

    /// Whether ops can be recorded now, on this thread.
    #[inline]
    pub fn check_recording(&self, id: Id) -> PyResult<()> {
        if self.is_ended() {
            let name = self.name(id);
            return Err(to_python(&Error::TapeEnded(format!(
                "variable {name} belongs to a tape that has ended; return its value from the function, or detach it \
                 with stop_gradient while the tape is open"
            ))));
        }
        self.check_thread(id)
    }

    #[inline]
    fn check_thread(&self, id: Id) -> PyResult<()> {
        if self.thread == current_thread() {
            return Ok(());
        }
        let name = self.name(id);
        Err(to_python(&Error::TapeThread(format!(
            "variable {name} belongs to a tape of another thread; open a tape on each thread"
        ))))
    }

    /// What an entry is called: its given name, `x1`, `x2`, ... for inputs, `v1`, `v2`, ... for the results of ops.
    pub fn name(&self, id: Id) -> String {
        let inner = self.lock();
        Names::new(&inner).get(id)
    }

    /// Whether nothing is recorded any more.
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Ends the recording.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Watches a value, or a symbol where the value is absent.
    pub fn input<'py>(slf: &Bound<'py, Self>, value: Value, symbol: Option<Node>) -> PyResult<Bound<'py, Variable>> {
        let py = slf.py();
        let tape = slf.get();
        let id = {
            let kept = value.share(py);
            let mut inner = tape.lock();
            inner.symbols.extend(symbol);
            inner.tape.watch(kept)
        };
        Bound::new(py, Variable::new(slf, id, value))
    }

    /// A plain array as a variable that no derivative flows to.
    pub fn lift<'py>(slf: &Bound<'py, Self>, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (id, value) = Self::constant(slf, object)?;
        Ok(Bound::new(slf.py(), Variable::constant(slf, id, value))?.into_any())
    }

    /// An entry that no derivative flows to, with its value.
    pub fn constant(slf: &Bound<'_, Self>, object: &Bound<'_, PyAny>) -> PyResult<(Id, Value)> {
        let value = Value::new(&settled(object)?);
        let kept = value.share(slf.py());
        Ok((slf.get().lock().tape.constant(kept), value))
    }

    pub fn own<'py>(slf: &Bound<'py, Self>, object: &Bound<'py, PyAny>, what: &str) -> PyResult<Bound<'py, Variable>> {
        let Ok(variable) = object.cast::<Variable>() else {
            let class = object.get_type().repr()?;
            return Err(PyTypeError::new_err(format!("{what} is not a variable but {}", class.to_cow()?)));
        };
        if variable.get().tape.is(slf) {
            Ok(variable.clone())
        } else {
            Err(PyTypeError::new_err(format!("{what} is a variable of another tape")))
        }
    }
}

#[pymethods]
impl Tape {
    #[new]
    #[pyo3(signature = (*, forward = false, check = false))]
    fn open(forward: bool, check: bool) -> Self {
        Self { forward, check, ..Self::new(false) }
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }

    fn __exit__(&self, _kind: &Bound<'_, PyAny>, _error: &Bound<'_, PyAny>, _trace: &Bound<'_, PyAny>) {
        self.end();
    }

    /// A variable with this value: what is done with it from now on is recorded.
    ///
    /// The value is a Python number, an array of floating-point or complex dtype, or a variable of an enclosing tape;
    /// anything else raises `DtypeError`.
    #[pyo3(signature = (value, *, name = None))]
    fn watch<'py>(
        slf: &Bound<'py, Self>,
        value: &Bound<'py, PyAny>,
        name: Option<String>,
    ) -> PyResult<Bound<'py, Variable>> {
        let tape = slf.get();
        tape.check_recording(0)?;
        let variable = Self::input(slf, vjp_rules::watchable(value)?, None)?;
        if let Some(name) = name {
            tape.lock().names.insert(variable.get().id, name);
        }
        Ok(variable)
    }

    /// The gradient of `target` with respect to each of `sources`, as a list; zeros where nothing flows.
    ///
    /// `target` must be a scalar unless `cotangent`, of its shape, says how its elements are weighted. With
    /// `release`, memory is given back as the replay goes and the tape cannot be replayed again.
    #[pyo3(signature = (target, sources, cotangent = None, *, release = false))]
    fn gradient<'py>(
        slf: &Bound<'py, Self>,
        target: &Bound<'py, PyAny>,
        sources: Items<'py>,
        cotangent: Option<&Bound<'py, PyAny>>,
        release: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let target = Self::own(slf, target, "target")?;
        let seed = vjp_rules::seed(&target, cotangent)?;
        Self::pull_back(slf, vec![(target.get().current(slf.py())?.0, seed)], &sources.0, release)
    }

    /// The cotangents of `sources` from (target, cotangent) pairs.
    #[pyo3(signature = (seeds, sources, *, release = false))]
    fn pull<'py>(
        slf: &Bound<'py, Self>,
        seeds: Items<'py>,
        sources: Items<'py>,
        release: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut values = Vec::with_capacity(seeds.0.len());
        for pair in seeds.0 {
            let (target, cotangent): (Bound<'py, PyAny>, Bound<'py, PyAny>) = pair.extract()?;
            let target = Self::own(slf, &target, "target")?;
            let id = target.get().current(slf.py())?.0;
            values.push((id, vjp_rules::seed(&target, Some(&cotangent))?));
        }
        Self::pull_back(slf, values, &sources.0, release)
    }

    /// The tangents of `targets` from (variable, tangent) pairs, as a list; zeros where nothing flows.
    ///
    /// The tape must have been opened with `forward`. With `batch`, every tangent is so many of them along a leading
    /// axis, those of the result too.
    #[pyo3(signature = (seeds, targets, batch = None))]
    fn push<'py>(
        slf: &Bound<'py, Self>,
        seeds: Items<'py>,
        targets: Items<'py>,
        batch: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (py, tape) = (slf.py(), slf.get());
        if !tape.forward {
            return Err(PyTypeError::new_err("tangents are pushed on a tape that was opened with forward=True"));
        }
        let seed = |pair: Bound<'py, PyAny>| {
            let (variable, tangent): (Bound<'py, PyAny>, Bound<'py, PyAny>) = pair.extract()?;
            Ok((Self::own(slf, &variable, "a seed")?.get().source(py)?, Value::new(&tangent)))
        };
        let seeds = seeds.0.into_iter().map(seed).collect::<PyResult<Vec<_>>>()?;
        let zeros = |value: &Value| hook(py, "zero_tangent")?.call1((value.object(py), batch));
        let of = |target: &Variable| Ok(target.current(py)?.0);
        Self::replayed(slf, &targets.0, of, false, zeros, |core, ids| {
            forward::replay_forward(py, core, seeds, ids, batch)
        })
    }

    /// Whether the variable is on this tape.
    fn owns(slf: &Bound<'_, Self>, variable: &Bound<'_, Variable>) -> bool {
        variable.get().tape.is(slf)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Visited {
        self.traverse(&visit)
    }

    fn __clear__(&self) {
        if !self.symbolic {
            drop(self.forget());
        }
    }

    fn __len__(&self) -> usize {
        self.lock().tape.len()
    }

    fn __repr__(&self) -> String {
        let inner = self.lock();
        let ops = inner.tape.views().filter(|view| matches!(view.origin, Origin::Op(_))).count();
        let state = if self.is_ended() { "ended" } else { "open" };
        format!("<Tape: {ops} ops, {state}>")
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        trace::print(py, self)
    }

    /// The trace as a flow chart in Mermaid's language; of a longer one, the first `limit` entries.
    #[pyo3(signature = (*, limit = 200))]
    fn to_mermaid(&self, limit: usize) -> String {
        trace::chart(self, limit).to_mermaid()
    }

    /// The trace as a drawing in SVG; of a longer one, the first `limit` entries.
    #[pyo3(signature = (*, limit = 200))]
    fn to_svg(&self, limit: usize) -> String {
        trace::chart(self, limit).to_svg()
    }
}

impl Tape {
    /// The cotangents of `sources` from those of some entries.
    pub fn pull_back<'py>(
        slf: &Bound<'py, Self>,
        seeds: Vec<(Id, Value)>,
        sources: &[Bound<'py, PyAny>],
        release: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = slf.py();
        let zeros = |value: &Value| vjp_rules::zeros(py, value);
        let of = |source: &Variable| source.source(py);
        Self::replayed(slf, sources, of, release, zeros, |core, ids| replay::replay(py, core, seeds, ids, release))
    }

    /// What a replay gives for each of `variables`, one of which may be there twice, at the entries that they stand for.
    fn replayed<'py>(
        slf: &Bound<'py, Self>,
        variables: &[Bound<'py, PyAny>],
        of: impl Fn(&Variable) -> PyResult<Id>,
        release: bool,
        zeros: impl Fn(&Value) -> PyResult<Bound<'py, PyAny>>,
        replay: impl FnOnce(&mut CoreTape, &[Id]) -> PyResult<Vec<Value>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (py, tape) = (slf.py(), slf.get());
        tape.check_thread(0)?;
        tape.check_unchanged(py)?;
        let own = |variable| Self::own(slf, variable, "a variable asked for");
        let variables = variables.iter().map(own).collect::<PyResult<Vec<_>>>()?;
        let asked = variables.iter().map(|variable| of(variable.get())).collect::<PyResult<Vec<_>>>()?;
        let mut ids = asked.clone();
        ids.sort_unstable();
        ids.dedup();
        let mut core = tape.take()?;
        let found = replay(&mut core, &ids);
        tape.put_back(core, release);
        let (found, list) = (found?, PyList::empty(py));
        for (variable, id) in variables.iter().zip(asked) {
            list.append(match &found[ids.binary_search(&id).expect("it was asked for")] {
                Value::Absent => zeros(&variable.get().value)?,
                found => found.object(py),
            })?;
        }
        Ok(list)
    }

    /// Takes the core tape out, so that the replay may call Python without a lock.
    pub fn take(&self) -> PyResult<CoreTape> {
        let mut inner = self.lock();
        if inner.released {
            return Err(to_python(&Error::TapeEnded(
                "this tape has been replayed with release=True, or is being replayed; record it again".into(),
            )));
        }
        inner.released = true;
        Ok(std::mem::take(&mut inner.tape))
    }

    fn put_back(&self, tape: CoreTape, released: bool) {
        let mut inner = self.lock();
        inner.tape = tape;
        inner.released = released;
    }
}

/// What a symbolic tape recorded, as nodes; `outputs` are variables of it or numbers.
pub fn program(tape: &Bound<'_, Tape>, outputs: &[Bound<'_, PyAny>]) -> PyResult<(Vec<Node>, Vec<u32>)> {
    let mut nodes = nodes_of(tape);
    let mut ids = Vec::with_capacity(outputs.len());
    for output in outputs {
        if let Ok(variable) = output.cast::<Variable>()
            && variable.get().tape.is(tape)
        {
            ids.push(variable.get().id);
        } else if let Some(number) = crate::autodiff::value::host_number(output) {
            nodes.push(Node::Constant(number));
            ids.push(u32::try_from(nodes.len() - 1).expect("a rule is short"));
        } else {
            let what = output.get_type().repr()?;
            return Err(to_python(&Error::Rule(format!(
                "a rule must return what it computed from its arguments, not {}",
                what.to_cow()?
            ))));
        }
    }
    Ok((nodes, ids))
}

/// All that a symbolic tape has recorded.
fn nodes_of(tape: &Bound<'_, Tape>) -> Vec<Node> {
    let inner = tape.get().lock();
    let mut symbols = inner.symbols.iter().copied();
    let mut nodes = Vec::with_capacity(inner.tape.len());
    for view in inner.tape.views() {
        nodes.push(match view.origin {
            Origin::Input => symbols.next().expect("each input of a symbolic tape is a symbol"),
            Origin::Constant => match view.result() {
                Value::Number(number) => Node::Constant(*number),
                _ => unreachable!("a symbolic tape takes numbers only"),
            },
            Origin::Op(Op::Elementwise(op)) => {
                let mut args = [0; 3];
                args[..view.args.len()].copy_from_slice(view.args);
                Node::Apply(op, args)
            }
            Origin::Op(Op::Structured(_)) => Node::Sum(view.args[0]),
        });
    }
    nodes
}
