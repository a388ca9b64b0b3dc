//! The statement of a program: which of its calls may be part of a run, and which stand for their arguments.

mod entries;
mod views;

use std::collections::{HashMap, HashSet};

use oxigrad_core::exec::array_run::small::MOST;
use oxigrad_core::op::Op;
use oxigrad_core::recording::Words;
use pyo3::types::PyTuple;

pub use self::entries::Stated;
use self::entries::{At, FLOATS, TRUTH, axes_of, integer, is_text, truth};
use self::views::VIEWS;
use crate::arrays::compute::elementwise::op_named;
use crate::prelude::*;
use crate::recording::call::operator_named;
use crate::recording::trace::entry::TraceEntry;
use crate::recording::trace::words;

/// The parts of a program on which the statement of a call depends, besides its arguments' types.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Types,
    /// The statement of a view, and of what reads it, depends on what it is a view of.
    View,
    /// A fold depends on the call whose result it reads.
    Fold,
}

/// The first call of a number: whether it gives its first argument, and its part in runs.
pub type First = (bool, Option<Stated>);

const FOLDS: &[(&str, &str)] = &[("op", "sum"), ("op", "mean")];
const JOINS: &[(&str, &str)] = &[("op", "concat"), ("op", "stack")];
const TO_SHAPES: &[(&str, &str)] = &[("op", "reshape"), BROADCAST];
const BROADCAST: (&str, &str) = ("op", "broadcast_to");
/// Those that give an array in another shape, in the order of its elements.
const RESHAPES: &[(&str, &str)] = &[("op", "reshape"), ("op", "expand_dims"), ("op", "squeeze")];
/// Those of NumPy's functions for small matrices that runs call.
const OF_MATRICES: &[(&str, &str)] =
    &[("op", "inv"), ("op", "solve"), ("op", "det"), ("op", "cholesky"), ("op", "cofactor")];
/// The product of the core, and NumPy's.
const PRODUCT: &[(&str, &str)] = &[("op", "matmul")];
const PRODUCTS: &[(&str, &str)] = &[("op", "matmul"), ("operator", "matmul"), ("numpy", "matmul")];
/// Ops that NumPy computes with the bits of the core, whatever it repeats.
const EXACT: [&str; 4] = ["add", "subtract", "multiply", "divide"];
/// Those whose bits are the same as those of Python's operators on arrays of one dtype, and of NumPy's ufuncs.
const ARITHMETIC: [&str; 6] = ["add", "subtract", "multiply", "divide", "negative", "abs"];
const UFUNCS: [&str; 6] = ["sqrt", "square", "reciprocal", "maximum", "minimum", "where"];
const TRUTHS: [&str; 13] = [
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "isnan",
    "isfinite",
    "isinf",
];

/// The entries of a program: of calls that are alike, the parts of the first one.
pub struct Statement<'py> {
    entries: Vec<Bound<'py, TraceEntry>>,
    /// Whether NumPy computes `maximum` or `minimum` with the bits of the core.
    has_bits_of_core: Object<'py>,
    spread: HashSet<usize>,
    numbers: HashMap<Box<[u64]>, u32, Words>,
    /// The dtypes in which truth values are computed, by the ids of the entries, and by the numbers of the calls.
    compared: HashMap<usize, String>,
    compared_by: HashMap<u32, String>,
}

impl<'py> Statement<'py> {
    pub fn new(entries: Vec<Bound<'py, TraceEntry>>, outputs: &[u32], has_bits_of_core: Object<'py>) -> PyResult<Self> {
        let mut statement = Self {
            entries,
            has_bits_of_core,
            spread: HashSet::new(),
            numbers: HashMap::default(),
            compared: HashMap::new(),
            compared_by: HashMap::new(),
        };
        statement.spread = statement.repeated(outputs)?;
        Ok(statement)
    }

    pub fn entries(&self) -> &[Bound<'py, TraceEntry>] {
        &self.entries
    }

    /// Whether a call stands for its argument, which those that read it repeat themselves.
    pub fn is_spread(&self, at: usize) -> bool {
        self.spread.contains(&at)
    }

    /// The parts of a program on which the statement of an entry depends.
    pub fn reach(&self, at: usize) -> Reach {
        let entry = self.at(at);
        match () {
            () if entry.calls(&VIEWS) => Reach::View,
            () if entry.calls(FOLDS) => Reach::Fold,
            () => Reach::Types,
        }
    }

    fn at(&self, at: usize) -> At<'_, 'py> {
        At { entries: &self.entries, at }
    }

    /// The number of the call of an entry; for the first one of its number, whether it gives its first argument, and its part in runs.
    pub fn of(&mut self, at: usize) -> PyResult<(u32, Option<First>)> {
        let entry = self.at(at);
        let member = if entry.is_of_truths() { self.truth(entry) } else { self.member(entry)? };
        let is_identity = self.is_spread(at) || is_identity(entry);
        let key = key_of(entry, is_identity, member.as_ref())?;
        let next = u32::try_from(self.numbers.len()).expect("ids are of 32 bits");
        let number = *self.numbers.entry(key.into()).or_insert(next);
        if let Some((_, _, dtypes, _)) = &member
            && number == next
            && dtypes.iter().any(|dtype| dtype == TRUTH)
        {
            self.compared_by.insert(number, dtypes[0].clone());
        }
        if let Some(dtype) = self.compared_by.get(&number) {
            self.compared.insert(at, dtype.clone());
        }
        Ok((number, (number == next).then_some((is_identity, member))))
    }

    /// The part of a call whose result is an array of truth values.
    fn truth(&self, entry: At<'_, 'py>) -> Option<Stated> {
        let ((kind, name), (shape, _), read) = (entry.target(), entry.found()?, entry.reads()?);
        let op = match (kind.as_str(), name.as_str()) {
            ("operator", "and_") => "logical_and",
            ("operator", "or_") => "logical_or",
            ("operator", "xor") => "logical_xor",
            ("operator", "invert") => "logical_not",
            ("operator", name) => operator_named(name)?.name(),
            (_, name) => name,
        };
        let is_of_bits = kind == "operator" && operator_named(&name).is_none();
        let is_known = TRUTHS.contains(&op) && matches!(kind.as_str(), "op" | "operator" | "numpy");
        if entry.is_named() || !is_known || (is_of_bits && !read.iter().all(|each| each.is_of_truths())) {
            return None;
        }
        let of_arrays = read.iter().filter(|each| !each.is_of_truths()).filter_map(|each| each.found());
        let mut dtypes = of_arrays.filter(|(shape, _)| !shape.is_empty()).map(|(_, dtype)| dtype);
        let dtype = dtypes.next().or_else(|| read.iter().find_map(|each| self.compared.get(&each.at).cloned()))?;
        let fits = FLOATS.contains(&dtype.as_str()) && read.iter().all(|each| each.fits(&dtype, true));
        fits.then(|| (op.to_owned(), shape, vec![dtype, TRUTH.to_owned()], None))
    }

    /// The calls of `broadcast_to` that are read by elementwise calls alone, which repeat their arguments themselves.
    fn repeated(&self, outputs: &[u32]) -> PyResult<HashSet<usize>> {
        let all = 0..self.entries.len();
        let mut spread: HashSet<usize> = all.clone().filter(|at| is_repeated_array(self.at(*at))).collect();
        spread.retain(|at| !outputs.iter().any(|output| *output as usize == *at));
        if spread.is_empty() {
            return Ok(spread);
        }
        let mut others = HashSet::new();
        for at in all {
            let of: HashSet<usize> =
                self.at(at).its().reads(self.at(at).py())?.into_iter().filter(|read| spread.contains(read)).collect();
            if !of.is_empty() && !self.repeats(self.at(at), &of)? {
                others.extend(of);
            }
        }
        Ok(spread.difference(&others).copied().collect())
    }

    /// Whether an elementwise call gives the same result where arguments that are `spread` are not repeated.
    fn repeats(&self, entry: At<'_, 'py>, spread: &HashSet<usize>) -> PyResult<bool> {
        let (Some((extents, _)), Some(read)) = (entry.found(), entry.reads()) else { return Ok(false) };
        let is_out = |each: &At<'_, 'py>| !spread.contains(&each.at) && each.is_permuted();
        let is_exact = op_of(entry).is_some_and(|op| EXACT.contains(&op.as_str()));
        if !is_exact || entry.its().is_permuted() || read.iter().any(is_out) || self.elementwise(entry)?.is_none() {
            return Ok(false);
        }
        let of = read.iter().filter_map(|each| if spread.contains(&each.at) { each.first() } else { Some(*each) });
        let shapes: Vec<_> = of.map(|each| each.array_type().0).collect();
        let has = |shape: &Vec<usize>, back: usize| {
            shape.len() >= back && shape[shape.len() - back] == extents[extents.len() - back]
        };
        Ok((1..=extents.len()).all(|back| shapes.iter().any(|shape| has(shape, back))))
    }

    /// The part of a run that a call may be.
    fn member(&self, entry: At<'_, 'py>) -> PyResult<Option<Stated>> {
        if entry.calls(RESHAPES)
            && let Some(member) = reshape(entry)
        {
            return Ok(Some(member));
        }
        Ok(match () {
            () if entry.calls(FOLDS) => self.sum(entry)?,
            () if extremum_named(&entry.target()).is_some() => extremum(entry),
            () if entry.calls(PRODUCTS) => product(entry),
            () if entry.calls(OF_MATRICES) => of_matrices(entry),
            () if entry.calls(JOINS) => joined(entry),
            () if entry.calls(&[("core", "scatter_into")]) => entry.scatter(),
            () if entry.calls(&VIEWS) => entry.view(),
            () => self.elementwise(entry)?,
        })
    }

    /// The part of a sum or a mean of an elementwise call.
    fn sum(&self, entry: At<'_, 'py>) -> PyResult<Option<Stated>> {
        let Some(of) = entry.first().filter(|of| of.is("call")) else { return Ok(None) };
        let Some((_, shape, dtypes, _)) = self.elementwise(of)? else { return Ok(None) };
        let part = || {
            let (result, dtype) = entry.found()?;
            let (axis, keepdims) = (entry.value_of("axis")?, truth(Some(&entry.value_of("keepdims")?))?);
            if entry.named().len() != 2 || shape.is_empty() || dtypes != [dtype] {
                return None;
            }
            if axis.is_none() {
                return (!keepdims && result.is_empty()).then_some(None);
            }
            Some(Some((axes_of(&axis)?, keepdims)))
        };
        Ok(part().map(|along| (entry.target().1, shape, dtypes, along)))
    }

    /// The part of an elementwise call.
    fn elementwise(&self, entry: At<'_, 'py>) -> PyResult<Option<Stated>> {
        let (Some(op), Some(read), false) = (op_of(entry), entry.reads(), entry.is_named()) else { return Ok(None) };
        if let Some(precision) = entry.precision() {
            let precisions = read.iter().map(|each| each.precision()).collect::<Option<Vec<_>>>().unwrap_or_default();
            let rank = |name: &String| FLOATS.iter().position(|dtype| dtype == name);
            let fits = precisions.iter().max_by_key(|name| rank(name)).is_some_and(|most| *most == precision);
            return Ok(fits.then_some((op, Vec::new(), precisions, None)));
        }
        let Some((shape, dtype)) = entry.found() else { return Ok(None) };
        let with_scalars = EXACT.contains(&op.as_str());
        let fits = |each: &At<'_, 'py>| {
            each.fits(&dtype, with_scalars) && (!each.is_permuted() || is_read(*each, entry, &shape))
        };
        let is_of_floats = FLOATS.contains(&dtype.as_str()) && !shape.is_empty();
        if !is_of_floats || !self.is_of_core(entry, &op, &read)? || !read.iter().all(fits) {
            return Ok(None);
        }
        Ok(Some((op, shape, vec![dtype], None)))
    }

    /// Whether the function of an elementwise call gives the bits of the core.
    fn is_of_core(&self, entry: At<'_, 'py>, op: &str, read: &[At<'_, 'py>]) -> PyResult<bool> {
        let kind = entry.target().0;
        if kind != "rule" && (op == "maximum" || op == "minimum") {
            return self.has_bits_of_core.call1((op,))?.is_truthy();
        }
        if op == "where" && kind != "rule" {
            return Ok(read.first().is_some_and(|each| each.is_of_truths()));
        }
        if kind != "op" || op == "abs" {
            return Ok(true);
        }
        let is_of_number = read.first().and_then(|each| each.precision()).is_some_and(|precision| precision == "float");
        Ok(matches!(op_named(op)?, Op::Elementwise(op) if op.is_computed_in_core(is_of_number)))
    }
}

/// The words that calls of one number have in common.
fn key_of(entry: At<'_, '_>, is_identity: bool, member: Option<&Stated>) -> PyResult<Vec<u64>> {
    let (py, its) = (entry.py(), entry.its());
    let member = member.map(|(_, shape, dtypes, along)| {
        let axes = along.as_ref().map(|(axes, _)| PyTuple::new(py, axes)).transpose()?;
        Ok::<_, PyErr>((PyTuple::new(py, shape)?, PyTuple::new(py, dtypes)?, axes).into_pyobject(py)?.into_any())
    });
    let member = member.transpose()?.unwrap_or_else(|| py.None().into_bound(py));
    let found = its.array_type(py).map(|found| found.bind(py).clone());
    let (kind, name) = entry.target();
    words::of((kind, name, entry.args(), entry.named(), found, is_identity, member).into_pyobject(py)?.as_any())
}

/// The op of the core that a call of an elementwise function may be; `None` where its bits may be others.
fn op_of(entry: At<'_, '_>) -> Option<String> {
    let (kind, name) = entry.target();
    let op = match (kind.as_str(), name.as_str()) {
        ("op" | "rule", _) => return Some(name),
        ("operator", name) => operator_named(name).map(Op::name).filter(|op| ARITHMETIC.contains(op))?,
        ("numpy", "true_divide") => "divide",
        ("numpy", "absolute" | "fabs") => "abs",
        ("numpy", name) if ARITHMETIC.contains(&name) || UFUNCS.contains(&name) => name,
        _ => return None,
    };
    Some(op.to_owned())
}

/// Whether a run reads an array in another order: a repeated one, or a view of a small one for results in order.
fn is_read(argument: At<'_, '_>, entry: At<'_, '_>, shape: &[usize]) -> bool {
    let is_small = || shape.iter().product::<usize>() <= MOST && argument.is_small_view();
    !entry.is_permuted() && (is_repeated_array(argument) || is_small())
}

/// Whether an array with dimensions, in order, of the dtype of the result is repeated.
fn is_repeated_array(entry: At<'_, '_>) -> bool {
    let types = || Some((entry.found()?, entry.first()?));
    entry.calls(&[BROADCAST])
        && types().is_some_and(|((_, dtype), of)| {
            of.found().is_some_and(|(shape, its)| !shape.is_empty() && its == dtype) && !of.its().is_permuted()
        })
}

/// Whether a call gives its first argument: an array in the shape that it has, and in the order in memory. Small arrays are repeated in the order of
/// their indices.
fn is_identity(entry: At<'_, '_>) -> bool {
    let Some(of) = entry.first().filter(|_| entry.calls(TO_SHAPES)) else { return false };
    let found = entry.found();
    let keeps_order = entry.calls(RESHAPES) || !of.its().is_permuted();
    keeps_order && found.as_ref().is_some_and(|(shape, _)| !shape.is_empty()) && of.found() == found
}

/// The part of a product of matrices or vectors.
fn product(entry: At<'_, '_>) -> Option<Stated> {
    let (factors, found) = (entry.reads()?, entry.found()?);
    let [(one, dtype), (other, its)] = &factors.iter().map(|factor| factor.array_type()).collect::<Vec<_>>()[..] else {
        return None;
    };
    let are_out = factors.iter().any(|factor| factor.is_out_of_order());
    let are_known = dtype == its && FLOATS.contains(&dtype.as_str());
    if entry.is_named() || !are_known || are_out || ![one, other].iter().all(|shape| matches!(shape.len(), 1 | 2)) {
        return None;
    }
    if !entry.calls(PRODUCT) && !are_factors_of_numpy(&factors, &found.0) {
        return None;
    }
    let rows = if one.len() == 2 { one[0] } else { 1 };
    let columns = if other.len() == 2 { other[1] } else { 1 };
    Some(("matmul".to_owned(), vec![rows, one[one.len() - 1], columns], vec![dtype.clone()], None))
}

/// Whether the factors of a product lie in a run as in the function: NumPy's bits depend on that.
fn are_factors_of_numpy(factors: &[At<'_, '_>], shape: &[usize]) -> bool {
    let Some(factors) = factors.iter().map(|each| factor(*each)).collect::<Option<Vec<_>>>() else { return false };
    // NumPy multiplies a matrix with its own transpose otherwise, and arguments may be one array.
    let may_be_one = matches!(shape, [rows, columns] if rows == columns);
    !(may_be_one && factors.iter().all(|each| !each.is("call")))
}

/// The array of a view, with its strides; `None` where these are others in a run.
fn factor<'a, 'py>(entry: At<'a, 'py>) -> Option<At<'a, 'py>> {
    let mut entry = entry;
    while let (true, Some(of)) = (entry.calls(&VIEWS), entry.first()) {
        if entry.reads_others() {
            // A run copies such elements.
            let args = entry.args();
            let is_last = entry.entry_of(&args.get_item(args.len() - 1).ok()?).is_some();
            let is_row = is_last && entry.found().is_some_and(|(shape, _)| shape.len() == 1) && !of.calls(&VIEWS);
            return is_row.then_some(of);
        }
        if entry.calls(&[BROADCAST]) {
            return None;
        }
        entry = of;
    }
    Some(entry)
}

/// The part of a function of a square matrix and a right side, with the shape of both.
fn of_matrices(entry: At<'_, '_>) -> Option<Stated> {
    let (read, found) = (entry.reads()?, entry.found()?);
    let types: Vec<_> = read.iter().map(|each| each.array_type()).collect();
    let ((extents, _), others) = types.split_first()?;
    let is_square = matches!(extents[..], [rows, columns] if rows == columns && rows > 0);
    let are_shaped = others.len() <= 1 && others.iter().all(|(shape, _)| matches!(shape.len(), 1 | 2));
    let are_double = types.iter().chain([&found]).all(|(_, dtype)| dtype == FLOATS[1]);
    let are_out = read.iter().any(|each| each.is_out_of_order());
    if entry.is_named() || !is_square || !are_shaped || !are_double || are_out || found.0.contains(&0) {
        return None;
    }
    let extents = types.iter().flat_map(|(shape, _)| shape.iter().copied()).collect();
    Some((entry.target().1, extents, vec![FLOATS[1].to_owned()], None))
}

/// The part of arrays that are joined along an axis.
fn joined(entry: At<'_, '_>) -> Option<Stated> {
    let (read, (shape, dtype), axis) = (entry.reads()?, entry.found()?, integer(&entry.value_of("axis")?)?);
    let is_alike = |each: &At<'_, '_>| {
        let (extents, its) = each.array_type();
        its == dtype && !extents.contains(&0) && !each.is_out_of_order()
    };
    let fits = FLOATS.contains(&dtype.as_str()) && !entry.is_out_of_order() && read.iter().all(is_alike);
    fits.then(|| (entry.target().1, shape, vec![dtype], Some((vec![axis], false))))
}

/// The part of an array in another shape.
fn reshape(entry: At<'_, '_>) -> Option<Stated> {
    let ((result, its), of) = (entry.found()?, entry.first()?);
    let (shape, dtype) = of.array_type();
    let is_known = dtype == its && FLOATS.contains(&dtype.as_str()) && !of.is_permuted();
    let fits = is_known && !entry.reads_others() && !result.is_empty() && !shape.is_empty();
    fits.then(|| (entry.target().1, shape, vec![dtype], None))
}

/// The op of a function that gives the largest or the smallest elements.
fn extremum_named((kind, name): &(String, String)) -> Option<&'static str> {
    match (kind.as_str(), name.as_str()) {
        ("op" | "numpy", "max" | "amax") => Some("max"),
        ("op" | "numpy", "min" | "amin") => Some("min"),
        _ => None,
    }
}

/// The part of the largest or smallest elements of an array in order.
fn extremum(entry: At<'_, '_>) -> Option<Stated> {
    let ((_, its), of, named) = (entry.found()?, entry.first()?, entry.named());
    let (shape, dtype) = of.array_type();
    let are_known = named.keys().iter().all(|key| is_text(&key, "axis") || is_text(&key, "keepdims"));
    let is_array = dtype == its && FLOATS.contains(&dtype.as_str()) && !of.is_permuted() && !shape.contains(&0);
    if entry.args().len() != 1 || !are_known || !is_array {
        return None;
    }
    let (axis, keepdims) = (entry.value_of("axis"), truth(entry.value_of("keepdims").as_ref())?);
    let along = match axis.filter(|axis| !axis.is_none()) {
        None if shape.is_empty() || keepdims => return None,
        None => None,
        Some(axis) => Some((axes_of(&axis)?, keepdims)),
    };
    Some((extremum_named(&entry.target())?.to_owned(), shape, vec![dtype], along))
}
