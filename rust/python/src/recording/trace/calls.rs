//! Calls of traced values, each of which appends an entry.

use std::sync::atomic::Ordering;

use oxigrad_core::op::Op;
use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::types::{PyDict, PyFloat, PyList, PyString, PyTuple};

use crate::arrays::batch_level::BatchLevel;
use crate::arrays::memory::numpy::Numpy;
use crate::autodiff::graph::variable::Variable;
use crate::autodiff::operations::record::{Few, record};
use crate::prelude::*;
use crate::recording::floating_errors::is_watched;
use crate::recording::rule::compute_in_rule;
use crate::recording::trace::arguments::{is_any_leaf, is_contiguous, plain_of, with_leaves};
use crate::recording::trace::entry::TraceEntry;
use crate::recording::trace::state::{KnownTarget, Mark, Recorder, TracedValue};
use crate::recording::trace::traits::{TargetTraits, Values};

/// A function that an entry calls.
pub struct Called<'py> {
    pub target: Object<'py>,
    pub function: Object<'py>,
    pub traits: Bound<'py, TargetTraits>,
    /// The op, and whether it is one of a rule.
    pub op: Option<(bool, Op)>,
    /// Whether a table of the package holds the function, so that no cycle that it is part of is garbage.
    pub is_held: bool,
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

    /// The result on plain values; an exception, which the function may catch, ends the recording.
    fn call_recorded(
        &self,
        recorder: &Bound<'py, Recorder>,
        plain: &[Object<'py>],
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Object<'py>> {
        let py = recorder.py();
        match self.call(plain, named) {
            Err(error) if error.is_instance_of::<PyException>(py) => {
                let (target, class) = (self.target.str()?, error.get_type(py).name()?);
                recorder.get().refuse(py, &format!("{} raises {}", target.to_cow()?, class.to_cow()?))?;
                Err(with_frame(recorder, error))
            }
            result => result,
        }
    }

    /// The result on plain values, which is not recorded.
    fn call_plain(
        &self,
        recorder: &Bound<'py, Recorder>,
        args: &[Object<'py>],
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Object<'py>> {
        let args: Few<_> = args.iter().map(plain_of).collect::<PyResult<_>>()?;
        self.call(&args, plain_names(named)?.as_ref()).map_err(|error| with_frame(recorder, error))
    }
}

/// The exception of a call of plain values, with a frame of this package: it answers no question about traced ones.
fn with_frame(recorder: &Bound<'_, Recorder>, error: PyErr) -> PyErr {
    let py = recorder.py();
    if !error.is_instance_of::<PyException>(py) {
        return error;
    }
    recorder.call_method1(intern!(py, "fail"), (error.value(py),)).err().unwrap_or(error)
}

/// The arguments by name with plain values.
fn plain_names<'py>(named: Option<&Bound<'py, PyDict>>) -> PyResult<Option<Bound<'py, PyDict>>> {
    Ok(named.map(|named| plain_of(named.as_any())).transpose()?.map(Bound::cast_into).transpose()?)
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
            is_held: true,
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
        let shared = |(target, function, traits): &KnownTarget| {
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
        Self::apply(slf, &Called { target, function, traits, op: None, is_held: true }, args, None)
    }

    pub fn apply<'py>(
        slf: &Bound<'py, Self>,
        called: &Called<'py>,
        args: &[Object<'py>],
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Object<'py>> {
        let (py, recorder, traits) = (slf.py(), slf.get(), called.traits.get());
        if recorder.is_refused() {
            return called.call_plain(slf, args, named);
        }
        if is_any_of_others(slf, args, named)? {
            if traits.is_dispatched {
                return Ok(py.NotImplemented().into_bound(py));
            }
            let target = called.target.str()?;
            let text = format!("{} was called with values of an inner derivative or vmap", target.to_cow()?);
            recorder.refuse(py, &text)?;
            return called.call_plain(slf, args, named);
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
            let copy = named.map_or_else(|| Ok(PyDict::new(py)), PyDictMethods::copy)?;
            copy.set_item("order", "C")?;
            (ordered, is_permuted) = (Some(copy), false);
        }
        let named = ordered.as_ref().or(named);
        let plain: Few<Object<'py>> = args.iter().map(plain_of).collect::<PyResult<_>>()?;
        let result = called.call_recorded(slf, &plain, plain_names(named)?.as_ref())?;
        let numpy = Numpy::get(py);
        let is_array = numpy.is_plain_array(&result);
        if traits.is_shaped
            && (is_array || traits.is_self)
            && let Some(at) = plain.iter().position(|arg| arg.is(&result))
        {
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
        let id = Self::push(slf, Bound::new(py, entry)?, called.is_held && watched.is_none())?;
        let mut traced = Self::traced(slf, id.get().index(), &result, mark)?;
        let is_tuple = result.is_instance_of::<PyTuple>() || result.is_instance_of::<PyList>();
        if is_tuple && traits.is_shaped {
            traced = with_arguments(traced, args)?;
        }
        if recorder.is_refused() {
            return Ok(traced);
        }
        if is_tuple || (is_array && has_base(&result)) {
            Self::note_views(slf, called, &traced, &result, args, named)?;
        }
        if has_type_of_values(traits, args, named)?
            && slf.call_method1("has_type_of_values", (&called.target, PyTuple::new(py, args)?, named))?.is_truthy()?
        {
            slf.call_method1("check_types", (&traced,))?;
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
        let mut is_shared = false;
        // Whether the memory may be shared with a value that the function may write to.
        let mut is_written = |leaf: &Object<'py>| {
            let source = TracedValue::of(leaf);
            let array = source.map_or_else(|| leaf.clone(), |source| source.plain(py));
            if !numpy.is_plain_array(&array) {
                return Ok(false);
            }
            let fields = numpy.fields(&array);
            let may_share = !matches!((&its, fields), (Some(its), Some(fields)) if !numpy.may_share(its, &fields));
            is_shared = is_shared || may_share;
            Ok(may_share && source.is_some_and(|source| !source.is_unwritable(py)))
        };
        let is_any = is_any_leaf(args.as_any(), &mut is_written)?
            || named.map_or(Ok(false), |named| is_any_leaf(named.as_any(), &mut is_written))?;
        if let (false, true, Some(traced)) = (is_any, its.is_some(), TracedValue::of(traced)) {
            if is_shared {
                traced.set_unwritable(py);
            }
            return Ok(());
        }
        slf.call_method1("note_views", (traced, (&called.target, &called.function, args, named))).map(drop)
    }
}

/// Results with arguments themselves in the place of those that are their arrays, as of `broadcast_arrays`.
fn with_arguments<'py>(results: Object<'py>, args: &[Object<'py>]) -> PyResult<Object<'py>> {
    let (py, numpy) = (results.py(), Numpy::get(results.py()));
    let replaced = with_leaves(&results, &mut |part| {
        let array = TracedValue::of(part).map_or_else(|| part.clone(), |part| part.plain(py));
        let is_it = |arg: &&Object<'py>| TracedValue::of(arg).is_some_and(|arg| arg.plain.is(&array));
        Ok(if numpy.is_array(&array)? { args.iter().find(is_it).cloned() } else { None })
    })?;
    Ok(replaced.unwrap_or(results))
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

fn has_base(array: &Object<'_>) -> bool {
    Numpy::get(array.py()).fields(array).is_none_or(|fields| fields.has_base())
}
