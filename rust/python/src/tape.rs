//! The `Tape` class: owns a core tape on behalf of the thread that opened it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use oxigrad_core::error::Error;
use oxigrad_core::kernel::Node;
use oxigrad_core::op::Op;
use oxigrad_core::tape::{Id, Origin};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::derivatives::{self, Fit};
use crate::error::to_python;
use crate::replay;
use crate::value::Value;
use crate::variable::Variable;

/// What an entry remembers beside its arguments.
#[derive(Debug, Default)]
pub struct Attributes {
    /// The keyword arguments of a structured op, as plain data, with the shapes and dtypes that its rule reads.
    pub named: Option<Py<PyDict>>,
    /// How the cotangent of each argument of an elementwise op differs from that of the result.
    pub fits: Vec<Fit>,
}

/// The core's tape over Python's values.
pub type CoreTape = oxigrad_core::tape::Tape<Value, Attributes>;

#[derive(Debug, Default)]
pub struct Inner {
    pub tape: CoreTape,
    pub names: HashMap<Id, String>,
    /// What the inputs of a symbolic tape are, in order.
    pub symbols: Vec<Node>,
    released: bool,
}

/// Records what is done with the variables it hands out, and replays it in reverse.
///
/// ``with Tape() as tape`` records until the block ends; `gradient` may be called inside and after it. A tape belongs
/// to the thread that opened it.
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
            ended: AtomicBool::new(false),
            inner: Mutex::default(),
        }
    }

    /// The state, locked; no Python may be called while it is.
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether ops can be recorded now, on this thread.
    #[inline]
    pub fn check_recording(&self, id: Id) -> PyResult<()> {
        if self.ended.load(Ordering::Relaxed) {
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

    fn end(&self) {
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
        Bound::new(py, Variable { tape: slf.clone().unbind(), id, value })
    }

    fn own<'py>(slf: &Bound<'py, Self>, object: &Bound<'py, PyAny>, what: &str) -> PyResult<Bound<'py, Variable>> {
        let variable = object
            .cast::<Variable>()
            .map_err(|_| PyTypeError::new_err(format!("{what} is not a variable but {}", object.get_type())))?;
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
    fn open() -> Self {
        Self::new(false)
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
        let variable = Self::input(slf, derivatives::watchable(value)?, None)?;
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
        sources: Vec<Bound<'py, PyAny>>,
        cotangent: Option<&Bound<'py, PyAny>>,
        release: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let target = Self::own(slf, target, "target")?;
        let seed = derivatives::seed(&target, cotangent)?;
        Self::replay(slf, vec![(target.get().id, seed)], &sources, release)
    }

    /// The cotangents of `sources` from (target, cotangent) pairs.
    #[pyo3(signature = (seeds, sources, *, release = false))]
    fn pull<'py>(
        slf: &Bound<'py, Self>,
        seeds: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
        sources: Vec<Bound<'py, PyAny>>,
        release: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut values = Vec::with_capacity(seeds.len());
        for (target, cotangent) in seeds {
            let target = Self::own(slf, &target, "target")?;
            values.push((target.get().id, derivatives::seed(&target, Some(&cotangent))?));
        }
        Self::replay(slf, values, &sources, release)
    }

    /// Whether the variable is on this tape.
    fn owns(slf: &Bound<'_, Self>, variable: &Bound<'_, Variable>) -> bool {
        variable.get().tape.is(slf)
    }

    fn __len__(&self) -> usize {
        self.lock().tape.len()
    }

    fn __repr__(&self) -> String {
        let inner = self.lock();
        let ops = inner.tape.views().filter(|view| matches!(view.origin, Origin::Op(_))).count();
        let state = if self.ended.load(Ordering::Relaxed) { "ended" } else { "open" };
        format!("<Tape: {ops} ops, {state}>")
    }

    fn __str__(&self, py: Python<'_>) -> String {
        print(py, self)
    }
}

impl Tape {
    fn replay<'py>(
        slf: &Bound<'py, Self>,
        seeds: Vec<(Id, Value)>,
        sources: &[Bound<'py, PyAny>],
        release: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let (py, tape) = (slf.py(), slf.get());
        tape.check_thread(0)?;
        let own = |source| Self::own(slf, source, "a source");
        let variables = sources.iter().map(own).collect::<PyResult<Vec<_>>>()?;
        let inputs: Vec<Id> = variables.iter().map(|variable| variable.get().id).collect();
        let mut core = tape.take()?;
        let pulled = replay::replay(py, &mut core, seeds, &inputs, release);
        tape.put_back(core, release);
        let gradients = PyList::empty(py);
        for (pulled, variable) in pulled?.iter().zip(&variables) {
            gradients.append(derivatives::gradient(py, pulled, &variable.get().value)?)?;
        }
        Ok(gradients)
    }

    /// Takes the core tape out, so that the replay may call Python without a lock.
    fn take(&self) -> PyResult<CoreTape> {
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

/// Names of entries: the given ones, and numbers for the rest.
struct Names<'t> {
    inner: &'t Inner,
    automatic: HashMap<Id, String>,
}

impl<'t> Names<'t> {
    fn new(inner: &'t Inner) -> Self {
        let (mut inputs, mut ops) = (0, 0);
        let mut automatic = HashMap::new();
        for view in inner.tape.views() {
            let (letter, count) = match view.origin {
                Origin::Input => ('x', &mut inputs),
                Origin::Op(_) => ('v', &mut ops),
                Origin::Constant => continue,
            };
            *count += 1;
            automatic.insert(view.id, format!("{letter}{count}"));
        }
        Self { inner, automatic }
    }

    fn get(&self, id: Id) -> String {
        let name = self.inner.names.get(&id).or_else(|| self.automatic.get(&id));
        name.map_or_else(|| "_".to_owned(), Clone::clone)
    }
}

/// One line an op: `v3 = add(v1, v2)`.
fn print(py: Python<'_>, tape: &Tape) -> String {
    // What Python prints is collected under the lock and printed after it.
    enum Piece {
        Text(String),
        Object(Py<PyAny>),
    }
    let mut pieces = Vec::new();
    {
        let inner = tape.lock();
        let names = Names::new(&inner);
        for view in inner.tape.views() {
            let Origin::Op(op) = view.origin else { continue };
            let separator = if pieces.is_empty() { "" } else { "\n" };
            pieces.push(Piece::Text(format!("{separator}{} = {}(", names.get(view.id), op.name())));
            for (which, arg) in view.args.iter().enumerate() {
                let separator = if which == 0 { "" } else { ", " };
                let text = match (view.is_active(which), view.arg(which)) {
                    (true, _) => names.get(*arg),
                    (false, Value::Number(number)) => format!("{number:?}"),
                    (false, Value::Object(object)) => {
                        pieces.push(Piece::Text(separator.into()));
                        pieces.push(Piece::Object(object.clone_ref(py)));
                        continue;
                    }
                    (false, Value::Absent) => "_".into(),
                };
                pieces.push(Piece::Text(format!("{separator}{text}")));
            }
            if let Some(named) = view.attributes.and_then(|attributes| attributes.named.as_ref()) {
                pieces.push(Piece::Object(named.clone_ref(py).into_any()));
            }
            pieces.push(Piece::Text(")".into()));
        }
    }
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Object(object) => derivatives::describe(object.bind(py)),
        })
        .collect()
}

/// What a symbolic tape recorded, as nodes; `outputs` are variables of it or numbers.
pub fn program(tape: &Bound<'_, Tape>, outputs: &[Bound<'_, PyAny>]) -> PyResult<(Vec<Node>, Vec<u32>)> {
    let inner = tape.get().lock();
    let mut symbols = inner.symbols.iter().copied();
    let mut nodes = Vec::with_capacity(inner.tape.len());
    for view in inner.tape.views() {
        nodes.push(match view.origin {
            Origin::Input => symbols.next().expect("each input of a symbolic tape is a symbol"),
            Origin::Constant => match view.result() {
                Value::Number(number) => Node::Constant(*number),
                Value::Absent | Value::Object(_) => unreachable!("a symbolic tape takes numbers only"),
            },
            Origin::Op(Op::Elementwise(op)) => {
                let mut args = [0; 3];
                args[..view.args.len()].copy_from_slice(view.args);
                Node::Apply(op, args)
            }
            Origin::Op(Op::Structured(_)) => Node::Sum(view.args[0]),
        });
    }
    let mut ids = Vec::with_capacity(outputs.len());
    for output in outputs {
        if let Ok(variable) = output.cast::<Variable>()
            && variable.get().tape.is(tape)
        {
            ids.push(variable.get().id);
        } else if let Some(number) = crate::value::host_number(output) {
            nodes.push(Node::Constant(number));
            ids.push(u32::try_from(nodes.len() - 1).expect("a rule is short"));
        } else {
            let what = output.get_type();
            return Err(to_python(&Error::Rule(format!(
                "a rule must return what it computed from its arguments, not {what}"
            ))));
        }
    }
    Ok((nodes, ids))
}
