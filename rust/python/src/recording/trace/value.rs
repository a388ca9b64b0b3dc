//! The values that a function is recorded with, and the ops on them.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use oxigrad_core::op::{Elementwise, Op, Structured};
use pyo3::gc::PyVisit;
use pyo3::types::{PyBool, PyDict, PyFloat, PyString, PyTuple};
use smallvec::SmallVec;

use crate::arrays::batch_level::BatchLevel;
use crate::arrays::compute::elementwise::op_named;
use crate::arrays::memory::numpy::Numpy;
use crate::autodiff::operations::record::Few;
use crate::prelude::*;
use crate::recording::trace::arguments::plain_of;
use crate::recording::trace::state::{Mark, Recorder, STALE, TracedValue};

#[pymethods]
impl TracedValue {
    #[new]
    #[pyo3(signature = (recorder, entry, plain, mark=Mark::Plain, origin=None))]
    fn new(
        py: Python<'_>,
        recorder: Py<Recorder>,
        entry: u32,
        plain: Py<PyAny>,
        mark: Mark,
        origin: Option<Py<Self>>,
    ) -> PyClassInitializer<Self> {
        let alive = Arc::clone(&recorder.get().alive);
        alive.fetch_add(1, Ordering::Relaxed);
        let level = BatchLevel { level: recorder.get().level };
        let (entry, memory) = (AtomicU32::new(entry), Mutex::new(py.None()));
        PyClassInitializer::from(level).add_subclass(Self { recorder, entry, plain, mark, memory, origin, alive })
    }

    #[getter]
    fn entry(slf: &Bound<'_, Self>) -> PyResult<u32> {
        Self::number(slf)
    }

    /// None for a view that is read again where it is used.
    #[setter]
    fn set_entry(&self, entry: Option<u32>) {
        self.shared().entry.store(entry.unwrap_or(STALE), Ordering::Relaxed);
    }

    #[getter]
    fn memory(&self, py: Python<'_>) -> Py<PyAny> {
        locked(&self.shared().memory).clone_ref(py)
    }

    #[setter]
    fn set_memory(&self, memory: Py<PyAny>) {
        set_locked(&self.shared().memory, memory);
    }

    /// False, True, or "single" for a rule of float32.
    #[getter]
    fn is_in_rule<'py>(&self, py: Python<'py>) -> Object<'py> {
        match self.mark {
            Mark::Single => PyString::new(py, "single").into_any(),
            mark => PyBool::new(py, mark == Mark::Rule).to_owned().into_any(),
        }
    }

    /// The value that this is as an operand, or itself.
    #[getter]
    fn origin<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.get().origin.as_ref().map_or(slf, |origin| origin.bind(slf.py())).clone()
    }

    /// The value, for its shape and dtype.
    #[getter]
    fn like(&self, py: Python<'_>) -> Py<PyAny> {
        self.plain.clone_ref(py)
    }

    /// The plain value, where the recording was refused; None otherwise.
    #[getter]
    fn released(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.recorder.get().is_refused().then(|| self.plain.clone_ref(py))
    }

    /// The same value as an operand of a derivative rule, whose ops the core computes.
    #[getter]
    fn in_rule<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
        if slf.get().mark == Mark::Plain { Self::mark(slf, Mark::Rule) } else { Ok(slf.clone().into_any()) }
    }

    /// The same value outside of a derivative rule.
    #[getter]
    fn out_of_rule<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
        Self::mark(slf, Mark::Plain)
    }

    /// The same value, as an operand of a derivative rule or none.
    fn mark<'py>(slf: &Bound<'py, Self>, mark: Mark) -> PyResult<Object<'py>> {
        let origin = Self::origin(slf);
        if origin.get().mark == mark {
            return Ok(origin.into_any());
        }
        let (py, its) = (slf.py(), slf.get());
        let stated = if mark == Mark::Single {
            PyString::new(py, "single").into_any()
        } else {
            PyBool::new(py, mark == Mark::Rule).to_owned().into_any()
        };
        slf.get_type().call1((&its.recorder, STALE, &its.plain, stated, origin))
    }

    /// The operands of a derivative rule, this among them, which the core computes in the precision of all.
    fn operands<'py>(slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>) -> PyResult<Vec<Object<'py>>> {
        let (py, numpy) = (slf.py(), Numpy::get(slf.py()));
        let (mut are_single, mut is_any, mut has_axes) = (true, false, false);
        for arg in args {
            let plain = plain_of(&arg)?;
            let (letter, dimensions) = match numpy.fields(&plain) {
                Some(fields) => (fields.letter(), fields.dimensions()),
                None if numpy.is_scalar(&plain)? => {
                    let letter: char = plain.getattr("dtype")?.getattr("char")?.extract()?;
                    (u8::try_from(letter).unwrap_or_default(), 0)
                }
                None => continue,
            };
            has_axes = has_axes || dimensions > 0;
            if letter != b'?' {
                (are_single, is_any) = (are_single && letter == b'f', true);
            }
        }
        let is_single = are_single && is_any;
        let mark = if is_single { Mark::Single } else { Mark::Rule };
        let operand = |arg: Object<'py>| {
            let arg = if is_single && has_axes { single(slf.get().recorder.bind(py), arg)? } else { arg };
            arg.cast::<Self>().map_or_else(|_| Ok(arg.clone()), |traced| Self::mark(traced, mark))
        };
        args.iter().map(operand).collect()
    }

    /// An op, of which this is the argument with the highest level.
    #[pyo3(name = "computed")]
    fn computed_by_name<'py>(
        slf: &Bound<'py, Self>,
        name: &str,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Object<'py>> {
        computed(slf, op_named(name)?, &args.iter().collect::<Few<_>>(), named)
    }

    /// An operator of Python; `op` is the op that it is in a derivative rule, if there is one.
    #[pyo3(signature = (name, op, *args))]
    fn operate<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
        op: Option<&str>,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Object<'py>> {
        let args: Few<_> = args.iter().collect();
        match op.filter(|_| slf.get().mark != Mark::Plain) {
            Some(op) => computed(slf, op_named(op)?, &args, None),
            None => Recorder::apply_operator(slf.get().recorder.bind(slf.py()), name, &args),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Visited {
        visit.call(&self.recorder)?;
        visit.call(&self.plain)?;
        visit.call(self.origin.as_ref())?;
        self.memory.try_lock().map_or(Ok(()), |memory| visit.call(&*memory))
    }
}

/// Ops that the core computes everywhere: in a rule they are the same entries.
const fn is_vectorized(op: Op) -> bool {
    matches!(op, Op::Elementwise(op) if op.is_vectorized(false))
}

/// Ops whose bits are the same as those of Python's operators and of NumPy's ufuncs on arrays of one dtype.
const fn is_arithmetic(op: Op) -> bool {
    use Elementwise::{Abs, Add, Divide, Multiply, Negative, Subtract};
    matches!(op, Op::Elementwise(Add | Subtract | Multiply | Divide | Negative | Abs))
}

/// Whether a value is a float of Python, traced or not.
fn is_float(value: &Object<'_>) -> bool {
    let is = |value: &Object<'_>| value.is_exact_instance_of::<PyFloat>();
    is(value) || TracedValue::of(value).is_some_and(|traced| is(traced.plain.bind(value.py())))
}

/// A float of Python, rounded to float32; anything else as it is.
fn single<'py>(recorder: &Bound<'py, Recorder>, value: Object<'py>) -> PyResult<Object<'py>> {
    if is_float(&value) { recorder.call_method1("single", (value,)) } else { Ok(value) }
}

/// An op, of which ``top`` is the argument with the highest level.
pub fn computed<'py>(
    top: &Bound<'py, TracedValue>,
    op: Op,
    args: &[Object<'py>],
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Object<'py>> {
    let (py, traced) = (top.py(), top.get());
    let recorder = traced.recorder.bind(py);
    if op == Op::Structured(Structured::Call) {
        let function = named.map(|named| named.get_item("function")).transpose()?.flatten();
        return match function {
            Some(function) => function.call1(PyTuple::new(py, args)?),
            None => Err(RuleError::new_err("a call has a function")),
        };
    }
    let is_mixed = || is_arithmetic(op) && !args.iter().all(is_float);
    let singles: Option<SmallVec<[Object<'py>; 3]>> = if traced.mark == Mark::Single && !is_mixed() {
        // What is computed in float32 takes floats in float32.
        Some(args.iter().map(|arg| single(recorder, arg.clone())).collect::<PyResult<_>>()?)
    } else {
        None
    };
    let args = singles.as_deref().unwrap_or(args);
    let named = named.filter(|named| !named.is_empty());
    let is_rule = traced.mark != Mark::Plain && named.is_none() && !is_vectorized(op);
    Recorder::apply_op(recorder, op, is_rule, args, named)
}
