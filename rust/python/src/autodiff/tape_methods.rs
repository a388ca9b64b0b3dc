//! The methods of the `Tape` class, as Python calls them.

use oxigrad_core::autodiff::tape::{Id, Origin};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::gc::PyVisit;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::arrays::memory::numpy::Numpy;
use crate::arrays::value::Value;
use crate::autodiff::graph::entry::Entry;
use crate::autodiff::graph::open_tapes::OpenTapes;
use crate::autodiff::graph::tape::{CoreTape, Tape};
use crate::autodiff::graph::trace;
use crate::autodiff::graph::variable::{Variable, plain};
use crate::autodiff::replay::forward;
use crate::autodiff::replay::reverse;
use crate::autodiff::vjp_rules;
use crate::callbacks;
use crate::prelude::*;

/// An entry as Python sees it: its kind, the numbers of its arguments, and its attributes.
type Listed<'py> = (&'static str, Vec<Id>, Bound<'py, PyDict>);

#[pymethods]
impl Tape {
    #[new]
    #[pyo3(signature = (*, forward = false, check = false, detaches = false))]
    fn open(forward: bool, check: bool, detaches: bool) -> Self {
        let mut tape = Self::new(false);
        (tape.forward, tape.check, tape.detaches) = (forward, check, detaches);
        tape
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        OpenTapes::push(slf);
        slf.clone()
    }

    fn __exit__(&self, _kind: &Object<'_>, _error: &Object<'_>, _trace: &Object<'_>) {
        OpenTapes::remove(self);
        self.end();
    }

    /// A variable with this value, whose operations are recorded.
    ///
    /// The value is a Python number, an array of floating-point or complex dtype, or a variable of an enclosing tape;
    /// anything else raises `DtypeError`.
    #[pyo3(signature = (value, *, name = None))]
    fn watch<'py>(slf: &Bound<'py, Self>, value: &Object<'py>, name: Option<String>) -> PyResult<Bound<'py, Variable>> {
        let tape = slf.get();
        tape.check_recording(0)?;
        let variable = Self::input(slf, vjp_rules::watchable(value)?, None)?;
        if let Some(name) = name {
            tape.lock().names.insert(variable.get().id, name);
        }
        Ok(variable)
    }

    /// The gradient of `target` with respect to each of `sources`, as a list; zeros where it does not depend on a
    /// source; a source alone, a variable, gives its gradient alone. `target` must be a scalar unless `cotangent`, of its shape, gives the weights of its elements. With
    /// `release`, memory is freed during the replay and the tape cannot be replayed again.
    #[pyo3(signature = (target, sources, cotangent = None, *, release = false))]
    fn gradient<'py>(
        slf: &Bound<'py, Self>,
        target: &Object<'py>,
        sources: &Object<'py>,
        cotangent: Option<&Object<'py>>,
        release: bool,
    ) -> PyResult<Object<'py>> {
        let target = Self::own(slf, target, "target")?;
        let seeds = vec![(target.get().entry(slf.py())?, vjp_rules::seed(&target, cotangent)?)];
        if sources.is_exact_instance_of::<Variable>() {
            return Self::pull_back(slf, seeds, std::slice::from_ref(sources), release, None, true)?.get_item(0);
        }
        let sources: Items<'py> = sources.extract().map_err(|error: PyErr| {
            PyTypeError::new_err(format!("sources: {}, or a variable", error.value(slf.py())))
        })?;
        Ok(Self::pull_back(slf, seeds, &sources.0, release, None, true)?.into_any())
    }

    /// The cotangents of `sources` from (target, cotangent) pairs; where none flows to a source, zeros, or None without `zeros`.
    #[pyo3(signature = (seeds, sources, *, release = false, zeros = true))]
    fn pull<'py>(
        slf: &Bound<'py, Self>,
        seeds: Items<'py>,
        sources: Items<'py>,
        release: bool,
        zeros: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut values = Vec::with_capacity(seeds.0.len());
        for pair in seeds.0 {
            let (target, cotangent): (Object<'py>, Object<'py>) = pair.extract()?;
            let target = Self::own(slf, &target, "target")?;
            let id = target.get().entry(slf.py())?;
            values.push((id, vjp_rules::seed(&target, Some(&cotangent))?));
        }
        Self::pull_back(slf, values, &sources.0, release, None, zeros)
    }

    /// The tangents of `targets` from (variable, tangent) pairs, as a list; zeros where a target depends on no
    /// variable. The tape must have been opened with `forward`. With `batch`, every tangent, also of the result, is a
    /// batch of that size along a leading axis.
    #[pyo3(signature = (seeds, targets, batch = None))]
    fn push<'py>(
        slf: &Bound<'py, Self>,
        seeds: Items<'py>,
        targets: Items<'py>,
        batch: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (py, tape) = (slf.py(), slf.get());
        if !tape.forward {
            return Err(PyTypeError::new_err("push: found a tape for reverse mode, expected Tape(forward=True)"));
        }
        let seed = |pair: Object<'py>| {
            let (variable, tangent): (Object<'py>, Object<'py>) = pair.extract()?;
            Ok((Self::own(slf, &variable, "a seed")?.get().source(py)?, Value::new(&tangent)))
        };
        let seeds = seeds.0.into_iter().map(seed).collect::<PyResult<Vec<_>>>()?;
        let zeros = |value: &Value| callbacks::zero_tangent(py, (value.object(py), batch));
        let of = |target: &Variable| target.entry(py);
        Self::replayed(slf, &targets.0, of, false, zeros, |core, ids| {
            forward::replay_forward(py, core, seeds, ids, batch)
        })
    }

    /// Whether the variable is on this tape.
    fn owns(slf: &Bound<'_, Self>, variable: &Bound<'_, Variable>) -> bool {
        variable.get().tape.is(slf)
    }

    /// The entries in the order of recording, each as its kind, the numbers of its arguments, and its attributes.
    ///
    /// The kind is the name of the op, or "input" or "constant". The number of an entry is its position in the list.
    ///
    /// >>> import oxigrad as ox
    /// >>> with ox.Tape() as tape:
    /// ...     y = 2.0 * tape.watch(3.0)
    /// >>> tape.entries()
    /// [('input', [], {}), ('constant', [], {}), ('multiply', [1, 0], {})]
    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Vec<Listed<'py>>> {
        let entry = |view: Entry<'_>| {
            let kind = match view.origin {
                Origin::Input => "input",
                Origin::Constant => "constant",
                Origin::Op(op) => op.name(),
            };
            let named = view.attributes.and_then(|attributes| attributes.named.as_ref());
            (kind, view.args.to_vec(), named.map(|named| named.clone_ref(py)))
        };
        let entries: Vec<_> = self.lock().tape.views().map(entry).collect();
        // Dictionaries are made after the lock is released.
        let copied =
            |named: Option<Py<PyDict>>| named.map_or_else(|| Ok(PyDict::new(py)), |named| named.bind(py).copy());
        entries.into_iter().map(|(kind, args, named)| Ok((kind, args, copied(named)?))).collect()
    }

    /// The variable of an entry, given by its number in `entries`; `pull` and `gradient` accept it as a source.
    ///
    /// Its value is the value of a watched input, or the value that the tape stores for the derivative rules. If the
    /// rules read no value, reading `value` raises `RuleError`. Raises `IndexError` for a number without an entry.
    fn variable<'py>(slf: &Bound<'py, Self>, number: Id) -> PyResult<Bound<'py, Variable>> {
        let py = slf.py();
        let (value, is_constant) = {
            let inner = slf.get().lock();
            if number as usize >= inner.tape.len() {
                let length = inner.tape.len();
                return Err(PyIndexError::new_err(format!("found number {number}, expected one below {length}")));
            }
            let view = inner.tape.view(number);
            (view.result().share(py), view.origin == Origin::Constant)
        };
        let make = if is_constant { Variable::untracked } else { Variable::new };
        Bound::new(py, make(slf, number, value))
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
    fn to_mermaid<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Object<'py>> {
        callbacks::mermaid(py, trace::diagram(self, limit))
    }

    /// The trace as a drawing in SVG; of a longer one, the first `limit` entries.
    #[pyo3(signature = (*, limit = 200))]
    fn to_svg<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Object<'py>> {
        callbacks::svg(py, trace::diagram(self, limit))
    }

    /// The drawing, for notebooks.
    fn _repr_svg_<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        self.to_svg(py, 200)
    }
}

impl Tape {
    /// The cotangents of `sources` from those of some entries; 0.0 in the place of those that `take` has taken, see
    /// [`reverse::replay`]. On a tape for debugging, a NaN among the cotangents raises with the entry where it first is.
    pub fn pull_back<'py>(
        slf: &Bound<'py, Self>,
        seeds: Vec<(Id, Value)>,
        sources: &[Object<'py>],
        release: bool,
        take: Option<Object<'py>>,
        zeros: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let (py, is_searched) = (slf.py(), slf.get().debug_nans);
        let given = is_searched.then(|| seeds.iter().map(|(id, seed)| (*id, seed.object(py))).collect::<Vec<_>>());
        let release = release && !is_searched;
        let absent = |value: &Value| if zeros { vjp_rules::zeros(py, value) } else { Ok(py.None().into_bound(py)) };
        let of = |source: &Variable| source.source(py);
        let replay = |core: &mut CoreTape, ids: &[Id]| reverse::replay(py, core, seeds, ids, release, take);
        let found = Self::replayed(slf, sources, of, release, absent, replay)?;
        if let Some(given) = given {
            callbacks::pulled(py, (slf, given, &found))?;
        }
        Ok(found)
    }

    /// The plain values that the tape keeps as constants.
    pub fn constants<'py>(&self, py: Python<'py>) -> Vec<Object<'py>> {
        let inner = self.lock();
        let constants = inner.tape.views().filter(|view| view.origin == Origin::Constant);
        let kept: Vec<Value> = constants.map(|view| view.result().share(py)).collect();
        drop(inner);
        let objects = kept.into_iter().filter(|value| matches!(value, Value::Object(_)));
        objects.map(|value| value.into_object(py)).collect()
    }

    /// The result of a replay for each of `variables`, which may repeat, at the entries that they stand for.
    fn replayed<'py>(
        slf: &Bound<'py, Self>,
        variables: &[Object<'py>],
        of: impl Fn(&Variable) -> PyResult<Id>,
        release: bool,
        zeros: impl Fn(&Value) -> PyResult<Object<'py>>,
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
            let derivative = match &found[ids.binary_search(&id).expect("it was asked for")] {
                Value::Absent => zeros(&variable.get().value)?,
                found => found.object(py),
            };
            list.append(if is_without_axes(&derivative)? {
                derivative.get_item(PyTuple::empty(py))? // a scalar: rules give one or the other, by the values
            } else {
                derivative
            })?;
        }
        Ok(list)
    }
}

/// Whether a value, or that of a variable, is a NumPy array without axes.
fn is_without_axes(value: &Object<'_>) -> PyResult<bool> {
    let (value, numpy) = (plain(value)?, Numpy::get(value.py()));
    match numpy.fields(&value) {
        Some(fields) => Ok(fields.dimensions() == 0),
        None => Ok(value.is_instance(numpy.ndarray.bind(value.py()))? && value.getattr("shape")?.len()? == 0),
    }
}
