//! The record of one call of a function: its entries, which calls of traced values append.

pub mod arguments;
pub mod calls;
pub mod classes;
pub mod entry;
pub mod state;
pub mod traits;
pub mod value;
pub mod words;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyTuple};
use smallvec::SmallVec;

use crate::arrays::memory::collection::untrack;
use crate::arrays::memory::numpy::Numpy;
use crate::autodiff::graph::batched::new_batch_level;
use crate::autodiff::graph::template::EntryId;
use crate::autodiff::operations::record::Few;
use crate::prelude::*;
use crate::recording::guards::is_equal;
use crate::recording::trace::arguments::{is_contiguous, is_repeated, with_leaves};
use crate::recording::trace::calls::Called;
use crate::recording::trace::entry::TraceEntry;
use crate::recording::trace::state::{ConstantKey, Mark, Recorder, TracedValue};

/// More entries are not worth a recording.
const MOST: usize = 1 << 20;

#[pymethods]
impl Recorder {
    /// The most entries of a recording.
    #[classattr]
    const MOST_ENTRIES: usize = MOST;

    #[new]
    #[pyo3(signature = (line, *, has_truths))]
    fn new(py: Python<'_>, line: Py<PyAny>, has_truths: bool) -> Self {
        Self {
            has_truths,
            level: new_batch_level(),
            alive: Arc::default(),
            line,
            entries: PyList::empty(py).unbind(),
            refusal: OnceLock::new(),
            has_any_order: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// The number of traced values that there are.
    #[getter]
    fn alive(&self) -> usize {
        self.alive.load(Ordering::Relaxed)
    }

    /// Why the function cannot be recorded, which no `try` of the function's catches.
    #[getter]
    fn refusal(&self) -> Option<&str> {
        self.refusal.get().map(String::as_str)
    }

    /// Notes that the function cannot be recorded: the rest of the call computes on plain values.
    fn refuse(&self, py: Python<'_>, reason: &str) -> PyResult<()> {
        if self.refusal.get().is_none() {
            let line: String = self.line.bind(py).call0()?.extract()?;
            let _ = self.refusal.set(format!("{reason} ({line})"));
        }
        Ok(())
    }

    /// Ends the recording for this reason, unless it was refused.
    fn end(&self, reason: String) {
        let _ = self.refusal.set(reason);
    }

    /// The value of an input.
    fn input<'py>(slf: &Bound<'py, Self>, value: &Object<'py>) -> PyResult<Object<'py>> {
        let py = slf.py();
        // Contiguous arrays alone are replayed by a recording of a contiguous one: any other may be in any order.
        let numpy = Numpy::get(py);
        let is_permuted = numpy.is_array(value)? && !is_contiguous(value)?;
        slf.get().has_any_order.fetch_or(is_permuted, Ordering::Relaxed);
        let entry = TraceEntry::source(intern!(py, "input"), None, is_permuted);
        let id = Self::append(slf, Bound::new(py, entry)?)?;
        Self::traced(slf, id.get().index(), value, Mark::Plain).map(unwritable)
    }

    /// A plain array as a traced value.
    fn constant<'py>(slf: &Bound<'py, Self>, value: &Object<'py>) -> PyResult<Object<'py>> {
        let id = Self::id_of_constant(slf, value)?;
        Self::traced(slf, id.get().index(), value, Mark::Plain).map(unwritable)
    }

    /// A floating-point array that the function makes, as a value that it may write to.
    fn created<'py>(slf: &Bound<'py, Self>, array: &Object<'py>) -> PyResult<Object<'py>> {
        if slf.get().is_refused() || !Numpy::get(slf.py()).is_plain_array(array) {
            return Ok(array.clone());
        }
        let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
        if !matches!(&*kind, "f" | "c") {
            return Ok(array.clone());
        }
        let id = Self::id_of_constant(slf, array)?;
        Self::traced(slf, id.get().index(), array, Mark::Plain)
    }

    /// Appends an entry.
    fn append<'py>(slf: &Bound<'py, Self>, entry: Bound<'py, TraceEntry>) -> PyResult<Bound<'py, EntryId>> {
        let is_held = entry.get().function.is_none();
        Self::push(slf, entry, is_held)
    }

    /// The value of the entry of a number, traced, with its type; a plain one where the recording was refused.
    #[pyo3(signature = (entry, value, mark=Mark::Plain))]
    fn traced<'py>(slf: &Bound<'py, Self>, entry: usize, value: &Object<'py>, mark: Mark) -> PyResult<Object<'py>> {
        let (py, recorder, numpy) = (slf.py(), slf.get(), Numpy::get(slf.py()));
        let its = recorder.entry(py, entry)?;
        if numpy.is_plain_array(value) || numpy.is_scalar(value)? || numpy.is_array(value)? {
            let array_type = recorder.type_of(value)?;
            its.get().set_type(py, array_type);
        } else if value.is_instance_of::<PyFloat>()
            || value.is_instance_of::<PyInt>()
            || value.is_instance_of::<PyComplex>()
        {
            if value.is_exact_instance_of::<PyFloat>() {
                its.get().set_float();
            }
        } else if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
            let mut parts = Vec::new();
            for (at, part) in value.try_iter()?.enumerate() {
                parts.push(Self::item(slf, entry, at, &part?)?);
            }
            let is_named = value.hasattr("_fields")?;
            let class = value.get_type();
            return if is_named { class.call1(PyTuple::new(py, parts)?) } else { class.call1((parts,)) };
        } else {
            let class = value.get_type().name()?;
            recorder.refuse(
                py,
                &format!("a function returned {}: expected arrays of NumPy and numbers", class.to_cow()?),
            )?;
        }
        if recorder.is_refused() {
            return Ok(value.clone());
        }
        let traced = Self::again(slf, entry, value, mark)?;
        if recorder.has_truths && value.is_exact_instance_of::<PyBool>() {
            return slf.call_method1(intern!(py, "check"), (traced,));
        }
        Ok(traced)
    }

    /// Another value of an entry.
    #[pyo3(signature = (entry, plain, mark=Mark::Plain))]
    fn again<'py>(slf: &Bound<'py, Self>, entry: usize, plain: &Object<'py>, mark: Mark) -> PyResult<Object<'py>> {
        let py = slf.py();
        let class = plain.get_type();
        let known = {
            let state = locked(&slf.get().state);
            let known = state.classes.iter().find(|(known, _)| known.is(&class));
            known.map(|(_, traced)| traced.clone_ref(py))
        };
        let traced = if let Some(known) = known {
            known.into_bound(py)
        } else {
            let traced = slf.call_method1(intern!(py, "class_of"), (&class,))?;
            locked(&slf.get().state).classes.push((class.into_any().unbind(), traced.clone().unbind()));
            traced
        };
        match mark {
            Mark::Plain => traced.call1((slf, entry, plain)),
            Mark::Rule => traced.call1((slf, entry, plain, true)),
            Mark::Single => traced.call1((slf, entry, plain, "single")),
        }
    }

    /// A value with the ids of traced ones in their place; arrays are constants.
    fn ids<'py>(slf: &Bound<'py, Self>, value: &Object<'py>) -> PyResult<Object<'py>> {
        let numpy = Numpy::get(slf.py());
        let id = |leaf: &Object<'py>| {
            if let Ok(traced) = leaf.cast::<TracedValue>() {
                return slf.get().id(slf.py(), TracedValue::number(traced)?).map(|id| Some(id.into_any()));
            }
            if numpy.is_plain_array(leaf) || (!is_plain_number(leaf) && numpy.is_array(leaf)?) {
                return Self::id_of_constant(slf, leaf).map(|id| Some(id.into_any()));
            }
            Ok(None)
        };
        Ok(with_leaves(value, &mut { id })?.unwrap_or_else(|| value.clone()))
    }

    /// The same of an argument of an op: a number is a constant too.
    fn id_of_argument<'py>(slf: &Bound<'py, Self>, value: &Object<'py>) -> PyResult<Object<'py>> {
        let id = Self::ids(slf, value)?;
        let is_leaf = id.is(value) && !value.is_instance_of::<PyTuple>() && !is_slice(value);
        if is_leaf { Self::id_of_constant(slf, value).map(Bound::into_any) } else { Ok(id) }
    }

    /// Whether an argument may be in another order in memory than that of its indices.
    fn is_permuted(&self, arg: &Object<'_>) -> PyResult<bool> {
        let py = arg.py();
        if let Ok(traced) = arg.cast::<TracedValue>() {
            return Ok(self.entry(py, TracedValue::number(traced)? as usize)?.get().is_permuted());
        }
        if is_plain_number(arg) {
            return Ok(false);
        }
        if Numpy::get(py).is_array(arg)? {
            return Ok(!is_contiguous(arg)? && !is_repeated(arg)?);
        }
        if arg.is_instance_of::<PyTuple>() || arg.is_instance_of::<PyList>() {
            for part in arg.try_iter()? {
                if self.is_permuted(&part?)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The result of a function, traced; `NotImplemented` where another transform's values are among the arguments.
    #[pyo3(name = "apply", signature = (target, function, args, named=None))]
    fn apply_target<'py>(
        slf: &Bound<'py, Self>,
        target: &Object<'py>,
        function: &Object<'py>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Object<'py>> {
        let traits = slf.call_method1(intern!(slf.py(), "traits"), (target,))?.cast_into()?;
        let called = Called { target: target.clone(), function: function.clone(), traits, op: None, is_held: false };
        let args: Few<_> = args.iter().collect();
        Self::apply(slf, &called, &args, named.filter(|named| !named.is_empty()))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Visited {
        visit.call(&self.line)?;
        visit.call(&self.entries)?;
        let Ok(state) = self.state.try_lock() else { return Ok(()) };
        state.constants.values().try_for_each(|(copy, _, object)| visit.call(copy).and_then(|()| visit.call(object)))
    }
}

impl Recorder {
    /// Appends an entry; `is_held` tells that it has no function, or one that is never garbage.
    fn push<'py>(
        slf: &Bound<'py, Self>,
        entry: Bound<'py, TraceEntry>,
        is_held: bool,
    ) -> PyResult<Bound<'py, EntryId>> {
        let (py, recorder) = (slf.py(), slf.get());
        let entries = recorder.entries.bind(py);
        let count = entries.len();
        if count >= MOST {
            recorder.refuse(py, &format!("the function has more than {MOST} entries"))?;
        }
        let id = Bound::new(py, EntryId::new(u32::try_from(count).unwrap_or(u32::MAX)))?;
        if is_held && entry.get().is_plain(py) {
            untrack(entry.get().args.bind(py));
            untrack(&entry);
        }
        entries.append(entry)?;
        locked(&recorder.state).ids.push(id.clone().unbind());
        Ok(id)
    }

    /// The entry of a number.
    fn entry<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, TraceEntry>> {
        Ok(self.entries.bind(py).get_item(number)?.cast_into()?)
    }

    fn id<'py>(&self, py: Python<'py>, number: u32) -> PyResult<Bound<'py, EntryId>> {
        let id = locked(&self.state).ids.get(number as usize).map(|id| id.clone_ref(py));
        id.map(|id| id.into_bound(py)).ok_or_else(|| RuleError::new_err("an entry has no id"))
    }

    /// The shape and the text of the dtype of an array or a scalar.
    fn type_of(&self, value: &Object<'_>) -> PyResult<Py<PyTuple>> {
        let (py, numpy) = (value.py(), Numpy::get(value.py()));
        let class = value.get_type();
        let key = match numpy.fields(value) {
            Some(fields) => Some((fields.extents().collect(), fields.dtype_address())),
            None => [&numpy.float64, &numpy.float32]
                .into_iter()
                .find(|known| class.is(known.bind(py)))
                .map(|_| (SmallVec::new(), class.as_ptr() as usize)),
        };
        if let Some(key) = &key
            && let Some((known, _)) = locked(&self.state).types.get(key)
        {
            return Ok(known.clone_ref(py));
        }
        if numpy.is_array(value)? && !numpy.is_plain_array(value) {
            self.refuse(py, &format!("found a {}: recordings hold plain arrays", class.name()?.to_cow()?))?;
        }
        let dtype = value.getattr("dtype")?;
        if dtype.getattr("kind")?.eq("O")? {
            self.refuse(py, "found an array of objects")?;
        }
        let shape: Vec<usize> = value.getattr("shape")?.extract()?;
        let stated = (PyTuple::new(py, shape)?, dtype.getattr("str")?).into_pyobject(py)?.unbind();
        if let Some(key) = key {
            let held = if numpy.is_plain_array(value) { dtype.unbind() } else { class.into_any().unbind() };
            locked(&self.state).types.insert(key, (stated.clone_ref(py), held));
        }
        Ok(stated)
    }

    fn item<'py>(slf: &Bound<'py, Self>, of: usize, at: usize, value: &Object<'py>) -> PyResult<Object<'py>> {
        let py = slf.py();
        let (target, function): (Object<'py>, Object<'py>) =
            slf.call_method1("target_of", ("operator", "getitem"))?.extract()?;
        let position = at.into_pyobject(py)?.into_any();
        let id = slf.get().id(py, u32::try_from(of).unwrap_or(u32::MAX))?;
        let args = (id, Self::id_of_constant(slf, &position)?).into_pyobject(py)?;
        let entry = TraceEntry::call(intern!(py, "call").clone().unbind(), &target, &function, args, None, false);
        let id = Self::append(slf, Bound::new(py, entry)?)?;
        Self::traced(slf, id.get().index(), value, Mark::Plain)
    }

    /// The entry of a constant. Calls that read equal ones are one call.
    fn id_of_constant<'py>(slf: &Bound<'py, Self>, value: &Object<'py>) -> PyResult<Bound<'py, EntryId>> {
        let (py, numpy) = (slf.py(), Numpy::get(slf.py()));
        let is_array = numpy.is_array(value)?;
        let key = if let Ok(number) = value.cast_exact::<PyFloat>() {
            ConstantKey::Float(number.value().to_bits())
        } else if (is_array || numpy.is_scalar(value)?) && value.getattr("shape")?.len()? == 0 {
            let dtype = value.getattr("dtype")?.getattr("str")?.extract()?;
            ConstantKey::Scalar(value.get_type_ptr() as usize, dtype, value.call_method0("tobytes")?.extract()?)
        } else {
            ConstantKey::Object(value.as_ptr() as usize)
        };
        let known = {
            let state = locked(&slf.get().state);
            state.constants.get(&key).map(|(copy, id, _)| (copy.clone_ref(py), id.clone_ref(py)))
        };
        if let Some((copy, id)) = known
            && (!is_array || is_same(slf, copy.bind(py), value)?)
        {
            return Ok(id.into_bound(py));
        }
        let copy = if is_array { slf.call_method1("kept", (value,))? } else { value.clone() };
        let entry = TraceEntry::source(intern!(py, "constant"), Some(copy.clone().unbind()), false);
        let id = Self::append(slf, Bound::new(py, entry)?)?;
        let kept = (copy.unbind(), id.clone().unbind(), value.clone().unbind());
        let before = locked(&slf.get().state).constants.insert(key, kept);
        drop(before);
        Ok(id)
    }
}

/// The value, to which the function may not write.
fn unwritable(value: Object<'_>) -> Object<'_> {
    if let Some(traced) = TracedValue::of(&value) {
        traced.set_unwritable(value.py());
    }
    value
}

/// Whether two arrays have the same bits.
fn is_same<'py>(slf: &Bound<'py, Recorder>, copy: &Object<'py>, value: &Object<'py>) -> PyResult<bool> {
    is_equal(copy, value)?.map_or_else(|| slf.call_method1("is_same", (copy, value))?.is_truthy(), Ok)
}

fn is_plain_number(value: &Object<'_>) -> bool {
    value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyBool>()
}

fn is_slice(value: &Object<'_>) -> bool {
    value.is_exact_instance_of::<pyo3::types::PySlice>()
}
