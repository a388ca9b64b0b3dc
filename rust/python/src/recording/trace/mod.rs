//! The record of one call of a function: its entries, which calls of traced values append.

pub mod arguments;
pub mod classes;
pub mod entry;
pub mod value;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use oxigrad_core::op::Op;
use oxigrad_core::recording::Words;
use pyo3::exceptions::PyException;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use crate::arrays::batch_level::BatchLevel;
use crate::arrays::memory::collection::untrack;
use crate::arrays::memory::numpy::{C_CONTIGUOUS, Numpy, OWNDATA};
use crate::autodiff::graph::batched::new_batch_level;
use crate::autodiff::graph::template::EntryId;
use crate::autodiff::graph::variable::Variable;
use crate::autodiff::operations::record::{Few, record};
use crate::prelude::*;
use crate::recording::floating_errors::is_watched;
use crate::recording::guards::is_equal;
use crate::recording::rule::compute_in_rule;
use crate::recording::trace::arguments::{is_any_leaf, plain_of, with_leaves};
use crate::recording::trace::entry::{TargetTraits, TraceEntry, Values};
use crate::recording::trace::value::{Mark, TracedValue};

/// More entries are not worth a recording.
const MOST: usize = 1 << 20;

/// A constant: equal numbers and arrays without dimensions are one.
#[derive(PartialEq, Eq, Hash)]
enum ConstantKey {
    Float(u64),
    /// The class, the dtype and the bytes.
    Scalar(usize, String, Vec<u8>),
    Object(usize),
}

/// The copy of a constant, its entry, and the object, which is kept alive so that no other has its address.
type Constant = (Py<PyAny>, Py<EntryId>, Py<PyAny>);

#[derive(Default)]
struct State {
    /// The ids of entries, each made once.
    ids: Vec<Py<EntryId>>,
    constants: HashMap<ConstantKey, Constant>,
    /// The types of arrays, by extents and the address of the dtype or the class, which is kept alive.
    types: HashMap<(SmallVec<[usize; 4]>, usize), (Py<PyTuple>, Py<PyAny>)>,
    /// The classes of traced values, by those of plain ones.
    classes: Vec<(Py<PyAny>, Py<PyAny>)>,
    /// The targets of ops, of a rule or not.
    targets: HashMap<(bool, usize), (Py<PyAny>, Py<PyAny>, Py<TargetTraits>), Words>,
    /// The targets of operators of Python.
    operators: Vec<(Py<PyString>, (Py<PyAny>, Py<PyAny>, Py<TargetTraits>))>,
}

/// The record of a call: its entries, and the values that it is called with.
#[pyclass(frozen, subclass, module = "oxigrad._core")]
pub struct Recorder {
    #[pyo3(get)]
    pub level: u64,
    /// The number of values that there are.
    pub alive: Arc<AtomicUsize>,
    /// The line of the function that is running.
    line: Py<PyAny>,
    #[pyo3(get)]
    entries: Py<PyList>,
    refusal: OnceLock<String>,
    has_any_order: AtomicBool,
    state: Mutex<State>,
}

/// A function that an entry calls.
struct Called<'py> {
    target: Object<'py>,
    function: Object<'py>,
    traits: Bound<'py, TargetTraits>,
    /// The op, and whether it is one of a rule.
    op: Option<(bool, Op)>,
}

impl<'py> Called<'py> {
    fn call(&self, args: &[Object<'py>], named: Option<&Bound<'py, PyDict>>) -> PyResult<Object<'py>> {
        let py = self.target.py();
        match self.op {
            Some((true, op)) => compute_in_rule(py, op, args),
            Some((false, op)) => record(py, op, args, named),
            None => self.function.call(PyTuple::new(py, args)?, named),
        }
    }

    /// The result on plain values, which is not recorded.
    fn call_plain(&self, args: &[Object<'py>], named: Option<&Bound<'py, PyDict>>) -> PyResult<Object<'py>> {
        let args: Few<_> = args.iter().map(plain_of).collect::<PyResult<_>>()?;
        self.call(&args, plain_names(named)?.as_ref())
    }
}

/// The arguments by name with plain values.
fn plain_names<'py>(named: Option<&Bound<'py, PyDict>>) -> PyResult<Option<Bound<'py, PyDict>>> {
    Ok(named.map(|named| plain_of(named.as_any())).transpose()?.map(Bound::cast_into).transpose()?)
}

#[pymethods]
impl Recorder {
    #[new]
    fn new(py: Python<'_>, line: Py<PyAny>) -> Self {
        Self {
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
        let (py, recorder) = (slf.py(), slf.get());
        let entries = recorder.entries.bind(py);
        let count = entries.len();
        if count >= MOST {
            recorder.refuse(py, &format!("the function has more than {MOST} entries"))?;
        }
        let id = Bound::new(py, EntryId::new(u32::try_from(count).unwrap_or(u32::MAX)))?;
        if entry.get().is_plain(py) {
            untrack(entry.get().args.bind(py));
            untrack(&entry);
        }
        entries.append(entry)?;
        locked(&recorder.state).ids.push(id.clone().unbind());
        Ok(id)
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
        Self::again(slf, entry, value, mark)
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
            if let Some(traced) = TracedValue::of(leaf) {
                return slf.get().id(slf.py(), traced.number()).map(|id| Some(id.into_any()));
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
        if let Some(traced) = TracedValue::of(arg) {
            return Ok(self.entry(py, traced.number() as usize)?.get().is_permuted());
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

    /// The result of a function, traced; NotImplemented where another transform's values are among the arguments.
    #[pyo3(name = "apply", signature = (target, function, args, named=None))]
    fn apply_target<'py>(
        slf: &Bound<'py, Self>,
        target: &Object<'py>,
        function: &Object<'py>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Object<'py>> {
        let traits = slf.call_method1(intern!(slf.py(), "traits"), (target,))?.cast_into()?;
        let called = Called { target: target.clone(), function: function.clone(), traits, op: None };
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
    /// An op, traced.
    pub fn apply_op<'py>(
        slf: &Bound<'py, Self>,
        op: Op,
        is_rule: bool,
        args: &[Object<'py>],
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Object<'py>> {
        let (py, key) = (slf.py(), (is_rule, op.index()));
        let known = {
            let state = locked(&slf.get().state);
            state
                .targets
                .get(&key)
                .map(|(target, function, traits)| (target.clone_ref(py), function.clone_ref(py), traits.clone_ref(py)))
        };
        let (target, function, traits) = if let Some(known) = known {
            known
        } else {
            let kind = if is_rule { "rule" } else { "op" };
            let (target, function): (Py<PyAny>, Py<PyAny>) =
                slf.call_method1(intern!(py, "target_of"), (kind, op.name()))?.extract()?;
            let traits = slf.call_method1(intern!(py, "traits"), (&target,))?;
            let traits = traits.cast_into::<TargetTraits>()?.unbind();
            let kept = (target.clone_ref(py), function.clone_ref(py), traits.clone_ref(py));
            locked(&slf.get().state).targets.insert(key, kept);
            (target, function, traits)
        };
        let called = Called {
            target: target.into_bound(py),
            function: function.into_bound(py),
            traits: traits.into_bound(py),
            op: Some((is_rule, op)),
        };
        Self::apply(slf, &called, args, named)
    }

    /// An operator of Python, traced.
    pub fn apply_operator<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
        args: &[Object<'py>],
    ) -> PyResult<Object<'py>> {
        let py = slf.py();
        let shared = |(target, function, traits): &(Py<PyAny>, Py<PyAny>, Py<TargetTraits>)| {
            (target.clone_ref(py), function.clone_ref(py), traits.clone_ref(py))
        };
        // Names are constants of the code: one that is another object is looked up again.
        let known = {
            let state = locked(&slf.get().state);
            state.operators.iter().find(|(known, _)| known.is(name)).map(|(_, known)| shared(known))
        };
        let (target, function, traits) = if let Some(known) = known {
            known
        } else {
            let (target, function): (Py<PyAny>, Py<PyAny>) =
                slf.call_method1(intern!(py, "target_of"), ("operator", name))?.extract()?;
            let traits = slf.call_method1(intern!(py, "traits"), (&target,))?;
            let found = (target, function, traits.cast_into::<TargetTraits>()?.unbind());
            let kept = (name.clone().unbind(), shared(&found));
            locked(&slf.get().state).operators.push(kept);
            found
        };
        let (target, function, traits) = (target.into_bound(py), function.into_bound(py), traits.into_bound(py));
        Self::apply(slf, &Called { target, function, traits, op: None }, args, None)
    }

    fn apply<'py>(
        slf: &Bound<'py, Self>,
        called: &Called<'py>,
        args: &[Object<'py>],
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Object<'py>> {
        let (py, recorder, traits) = (slf.py(), slf.get(), called.traits.get());
        if recorder.is_refused() {
            return called.call_plain(args, named);
        }
        if is_any_of_others(slf, args, named)? {
            if traits.is_dispatched {
                return Ok(py.NotImplemented().into_bound(py));
            }
            let target = called.target.str()?;
            let text = format!("{} was called with values of an inner derivative or vmap", target.to_cow()?);
            recorder.refuse(py, &text)?;
            return called.call_plain(args, named);
        }
        let marks = args.iter().filter_map(TracedValue::of).map(|traced| traced.mark);
        let mark = marks.into_iter().find(|mark| *mark != Mark::Plain).unwrap_or(Mark::Plain);
        let mut is_permuted = false;
        for arg in args {
            is_permuted = is_permuted || recorder.is_permuted(arg)?;
        }
        // The result keeps the order of its argument where it is written to.
        if traits.is_of_order && is_permuted {
            slf.call_method0(intern!(py, "refuse_order"))?;
        }
        if traits.is_of_shapes && !is_permuted && !is_any_traced(&args[1..], named)? {
            let mut args: Few<_> = args.iter().cloned().collect();
            args[0] = plain_of(&args[0])?;
            return called.call(&args, named);
        }
        // NumPy keeps the order of its arguments. Kernels of rules do not, and a sum depends on the order.
        let mut ordered = None;
        if mark != Mark::Plain && is_permuted && traits.is_ufunc {
            let copy = named.map_or_else(|| Ok(PyDict::new(py)), |named| named.copy())?;
            copy.set_item("order", "C")?;
            (ordered, is_permuted) = (Some(copy), false);
        }
        let named = ordered.as_ref().or(named);
        let plain: Few<Object<'py>> = args.iter().map(plain_of).collect::<PyResult<_>>()?;
        let result = match called.call(&plain, plain_names(named)?.as_ref()) {
            Err(error) if error.is_instance_of::<PyException>(py) => {
                // The function may catch it, and go on.
                let (target, class) = (called.target.str()?, error.get_type(py).name()?);
                recorder.refuse(py, &format!("{} raises {}", target.to_cow()?, class.to_cow()?))?;
                return Err(error);
            }
            result => result?,
        };
        let numpy = Numpy::get(py);
        let is_array = numpy.is_plain_array(&result);
        if is_array && let Some(at) = plain.iter().position(|arg| arg.is(&result)) {
            return Ok(args[at].clone()); // as `asarray` returns an array
        }
        if !is_array && result.is(py.NotImplemented()) {
            return Ok(result);
        }
        let watched = if is_watched(py)? {
            let watched = slf.call_method1("watched", (&called.target,))?;
            if watched.is_none() {
                recorder.refuse(py, "the function searches for NaN, or calls a handler of floating-point errors")?;
                return Ok(result);
            }
            Some(watched.extract::<(Object<'py>, Object<'py>)>()?)
        } else {
            None
        };
        let (target, function) =
            watched.as_ref().map_or((&called.target, &called.function), |(target, function)| (target, function));
        if result.is_instance_of::<PyList>() {
            slf.call_method1("check_integers", (PyTuple::new(py, args)?, named))?; // its length depends on these
        }
        let mut ids: Few<Object<'py>> = Few::new();
        for arg in args {
            ids.push(if traits.takes_constants { Self::id_of_argument(slf, arg)? } else { Self::ids(slf, arg)? });
        }
        let names = named.map(|named| Self::ids(slf, named.as_any())?.cast_into().map_err(PyErr::from)).transpose()?;
        let is_permuted = is_array && {
            let may_be = is_permuted && recorder.has_any_order.load(Ordering::Relaxed);
            may_permute(traits, &result, may_be)?
        };
        let kind = intern!(py, "call").clone().unbind();
        let entry = TraceEntry::call(kind, target, function, PyTuple::new(py, ids)?, names, is_permuted);
        let id = Self::append(slf, Bound::new(py, entry)?)?;
        let traced = Self::traced(slf, id.get().index(), &result, mark)?;
        if recorder.is_refused() {
            return Ok(traced);
        }
        let is_tuple = result.is_instance_of::<PyTuple>() || result.is_instance_of::<PyList>();
        if is_tuple || (is_array && has_base(&result)) {
            Self::note_views(slf, called, &traced, &result, args, named)?;
        }
        // Values of variables are no complex numbers of Python.
        if has_type_of_values(traits, args, named)?
            && slf.call_method1("has_type_of_values", (&called.target, PyTuple::new(py, args)?, named))?.is_truthy()?
        {
            slf.call_method1("check_types", (&traced,))?;
        }
        if traits.is_op && result.is_exact_instance_of::<PyComplex>() {
            let (target, function): (Object<'py>, Object<'py>) =
                slf.call_method1("target_of", ("numpy", "positive"))?.extract()?;
            return Self::apply_target(slf, &target, &function, &PyTuple::new(py, [traced])?, None);
        }
        Ok(traced)
    }

    /// Notes which values the memory of a result is shared with.
    fn note_views<'py>(
        slf: &Bound<'py, Self>,
        called: &Called<'py>,
        traced: &Object<'py>,
        result: &Object<'py>,
        args: &[Object<'py>],
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        let (py, numpy) = (slf.py(), Numpy::get(slf.py()));
        let args = PyTuple::new(py, args)?;
        let its = numpy.fields(result);
        let mut may_share = |leaf: &Object<'py>| {
            let Some(source) = TracedValue::of(leaf).filter(|source| !source.is_unwritable(py)) else {
                return Ok(false);
            };
            let source = numpy.fields(&source.plain(py));
            Ok(!matches!((&its, source), (Some(its), Some(source)) if !numpy.may_share(its, &source)))
        };
        let is_any = is_any_leaf(args.as_any(), &mut may_share)?
            || named.map_or(Ok(false), |named| is_any_leaf(named.as_any(), &mut may_share))?;
        if let (false, Some(fields), Some(traced)) = (is_any, its, TracedValue::of(traced)) {
            if fields.flags & OWNDATA == 0 {
                traced.set_unwritable(py);
            }
            return Ok(());
        }
        slf.call_method1("note_views", (traced, (&called.target, &called.function, args, named))).map(drop)
    }

    /// Whether the function cannot be recorded, or has ended.
    pub fn is_refused(&self) -> bool {
        self.refusal.get().is_some()
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
        let stated = (value.getattr("shape")?, dtype.getattr("str")?).into_pyobject(py)?.unbind();
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

/// Whether a variable, or a value of another recording or of a `vmap`, is among arguments.
fn is_any_of_others<'py>(
    slf: &Bound<'py, Recorder>,
    args: &[Object<'py>],
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<bool> {
    let mut is_of_others = |leaf: &Object<'py>| {
        Ok(match TracedValue::of(leaf) {
            Some(traced) => !traced.recorder.is(slf),
            None => leaf.is_exact_instance_of::<Variable>() || leaf.is_instance_of::<BatchLevel>(),
        })
    };
    for arg in args {
        if is_any_leaf(arg, &mut is_of_others)? {
            return Ok(true);
        }
    }
    named.map_or(Ok(false), |named| is_any_leaf(named.as_any(), &mut is_of_others))
}

fn is_any_traced<'py>(args: &[Object<'py>], named: Option<&Bound<'py, PyDict>>) -> PyResult<bool> {
    let mut is_traced = |leaf: &Object<'py>| Ok(TracedValue::of(leaf).is_some());
    for arg in args {
        if is_any_leaf(arg, &mut is_traced)? {
            return Ok(true);
        }
    }
    named.map_or(Ok(false), |named| is_any_leaf(named.as_any(), &mut is_traced))
}

/// Whether the type of a result may depend on values: arrays of floats and numbers of Python aside, which never tell it, but for keys.
fn has_type_of_values<'py>(
    traits: &TargetTraits,
    args: &[Object<'py>],
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<bool> {
    match traits.values {
        Values::Never => Ok(false),
        Values::Always => Ok(true),
        Values::Key => is_any_traced(args.get(1..).unwrap_or_default(), named),
        Values::Numbers => {
            let mut is_number = |leaf: &Object<'py>| {
                let Some(traced) = TracedValue::of(leaf) else { return Ok(false) };
                let plain = traced.plain(leaf.py());
                Ok(!Numpy::get(leaf.py()).is_plain_array(&plain) && !plain.is_instance_of::<PyFloat>())
            };
            for arg in args {
                if is_any_leaf(arg, &mut is_number)? {
                    return Ok(true);
                }
            }
            named.map_or(Ok(false), |named| is_any_leaf(named.as_any(), &mut is_number))
        }
    }
}

/// Whether the array of a call may be in another order in memory than that of its indices.
///
/// ``is_permuted`` tells whether that may depend on an input's order.
fn may_permute(traits: &TargetTraits, result: &Object<'_>, is_permuted: bool) -> PyResult<bool> {
    let dimensions: usize = match Numpy::get(result.py()).fields(result) {
        Some(fields) => fields.dimensions(),
        None => result.getattr("ndim")?.extract()?,
    };
    if dimensions < 2 || traits.is_ordered || (dimensions == 2 && traits.is_ordered_matrix) {
        return Ok(false);
    }
    Ok(is_permuted || !is_contiguous(result)?)
}

fn is_contiguous(array: &Object<'_>) -> PyResult<bool> {
    match Numpy::get(array.py()).fields(array) {
        Some(fields) => Ok(fields.flags & C_CONTIGUOUS != 0),
        None => array.getattr("flags")?.getattr("c_contiguous")?.is_truthy(),
    }
}

/// Whether an array is one element that is repeated.
fn is_repeated(array: &Object<'_>) -> PyResult<bool> {
    let (extents, strides): (Vec<usize>, Vec<isize>) = match Numpy::get(array.py()).fields(array) {
        Some(fields) => (fields.extents().collect(), fields.strides().collect()),
        None => (array.getattr("shape")?.extract()?, array.getattr("strides")?.extract()?),
    };
    Ok(!extents.is_empty() && !extents.contains(&0) && strides.iter().all(|stride| *stride == 0))
}

fn has_base(array: &Object<'_>) -> bool {
    Numpy::get(array.py()).fields(array).is_none_or(|fields| fields.has_base())
}

fn is_plain_number(value: &Object<'_>) -> bool {
    value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyBool>()
}

fn is_slice(value: &Object<'_>) -> bool {
    value.is_exact_instance_of::<pyo3::types::PySlice>()
}
