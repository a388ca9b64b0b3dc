//! Classes of entries: calls of one class are stated alike, whatever the values of the entries that they read.

use std::collections::HashMap;

use pyo3::intern;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PySlice, PyString, PyTuple};

use oxigrad_core::recording::Words;
use smallvec::SmallVec;

use crate::arrays::memory::numpy::Numpy;
use crate::autodiff::graph::template::EntryId;
use crate::prelude::*;
use crate::recording::trace::entry::TraceEntry;

/// The parts of a program on which the statement of a call depends, besides its arguments' types.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Types,
    /// The statement of a view, and of what reads it, depends on what it is a view of.
    View,
    /// A fold depends on the call whose result it reads.
    Fold,
}

/// The classes of entries so far.
#[derive(Default)]
pub struct Classes {
    known: HashMap<Box<[u64]>, u64, Words>,
    /// The class of each entry by its type, and by its call.
    of: Vec<(u64, u64)>,
    /// By the address of the target.
    reaches: HashMap<usize, Reach, Words>,
    words: Vec<u64>,
}

impl Classes {
    /// The class of the next entry, and the entries that it reads. `is_spread` tells apart what is otherwise alike.
    pub fn add<'py>(
        &mut self,
        entry: &Bound<'py, TraceEntry>,
        is_spread: bool,
        statement: &Object<'py>,
    ) -> PyResult<(u64, SmallVec<[u32; 4]>)> {
        let (py, its) = (entry.py(), entry.get());
        let (mut words, mut reads) = (std::mem::take(&mut self.words), SmallVec::new());
        words.clear();
        its.local(py, &mut words)?;
        if !its.is_call(py)? {
            let class = self.number(&words);
            push(its.args.bind(py).as_any(), &|_| Ok(0), &mut words, &mut reads)?;
            self.words = words;
            self.of.push((class, class));
            return Ok((class, reads));
        }
        let target = its.target(py);
        let address = target.as_ptr() as usize;
        let reach = if let Some(known) = self.reaches.get(&address) {
            *known
        } else {
            let reach = match statement.call_method1(intern!(py, "reach"), (&target,))?.extract()? {
                "view" => Reach::View,
                "fold" => Reach::Fold,
                _ => Reach::Types,
            };
            self.reaches.insert(address, reach);
            reach
        };
        let by_type = if reach == Reach::View { 0 } else { self.number(&words) };
        words.push(u64::from(is_spread));
        let class = |id: u32| {
            let known = self.of.get(id as usize);
            let known = known.map(|(by_type, by_call)| if reach == Reach::Fold { *by_call } else { *by_type });
            known.ok_or_else(|| {
                RuleError::new_err(format!("entry {}: found argument {id}, expected an earlier entry", self.of.len()))
            })
        };
        push(its.args.bind(py).as_any(), &class, &mut words, &mut reads)?;
        if let Some(named) = &its.named {
            push(named.bind(py).as_any(), &class, &mut words, &mut reads)?;
        }
        let by_call = self.number(&words);
        self.words = words;
        self.of.push((if reach == Reach::View { by_call } else { by_type }, by_call));
        Ok((by_call, reads))
    }

    fn number(&mut self, words: &[u64]) -> u64 {
        if let Some(known) = self.known.get(words) {
            return *known;
        }
        let number = self.known.len() as u64;
        self.known.insert(words.into(), number);
        number
    }
}

impl TraceEntry {
    fn is_call(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.kind.bind(py).to_cow()? == "call")
    }

    /// An entry as words, without its arguments.
    fn local(&self, py: Python<'_>, words: &mut Vec<u64>) -> PyResult<()> {
        let numpy = Numpy::get(py);
        let kind = self.kind.bind(py).to_cow()?.bytes().next().unwrap_or_default();
        let flags = u64::from(self.is_float()) | u64::from(self.is_permuted()) << 1;
        let target = self.target.as_ref().map_or(0, |target| target.as_ptr() as usize);
        let array_type = self.array_type(py).map_or(0, |kind| kind.as_ptr() as usize);
        words.extend([u64::from(kind), flags, target as u64, array_type as u64]);
        let Some(value) = &self.value else { return Ok(()) };
        let value = value.bind(py);
        words.push(value.get_type_ptr() as usize as u64);
        let classes = [&numpy.float64, &numpy.float32];
        if let Some(fields) = numpy.fields(value) {
            words.push(fields.dtype_address() as u64);
            words.extend(fields.extents().map(|extent| extent as u64));
        } else if !value.is_exact_instance_of::<PyFloat>()
            && !value.is_exact_instance_of::<PyInt>()
            && !classes.iter().any(|class| value.get_type().is(class.bind(py)))
        {
            words.push(value.as_ptr() as usize as u64);
        }
        Ok(())
    }
}

/// Arguments as words, with the classes of entries.
fn push<'py>(
    value: &Object<'py>,
    class: &impl Fn(u32) -> PyResult<u64>,
    words: &mut Vec<u64>,
    reads: &mut SmallVec<[u32; 4]>,
) -> PyResult<()> {
    let mut parts = |tag: u64, count: usize, parts: &mut dyn Iterator<Item = Object<'py>>| {
        words.extend([tag, count as u64]);
        for part in parts {
            push(&part, class, words, reads)?;
        }
        Ok(())
    };
    if let Ok(tuple) = value.cast::<PyTuple>() {
        return parts(value.get_type_ptr() as usize as u64, tuple.len(), &mut tuple.iter());
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        return parts(1, list.len(), &mut list.iter());
    }
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        return parts(2, dict.len(), &mut dict.iter().flat_map(|(key, part)| [key, part]));
    }
    if value.is_instance_of::<PySlice>() {
        let bounds = [value.getattr("start")?, value.getattr("stop")?, value.getattr("step")?];
        return parts(3, 3, &mut bounds.into_iter());
    }
    if let Ok(entry) = value.cast::<EntryId>() {
        let id = u32::try_from(entry.get().index()).unwrap_or(u32::MAX);
        words.extend([4, class(id)?]);
        reads.push(id);
    } else if value.is_exact_instance_of::<PyBool>() {
        words.extend([5, u64::from(value.is_truthy()?)]);
    } else if let Some(number) = value.cast_exact::<PyInt>().ok().and_then(|number| number.extract::<i64>().ok()) {
        words.extend([6, number.cast_unsigned()]);
    } else if let Ok(number) = value.cast_exact::<PyFloat>() {
        words.extend([7, number.value().to_bits()]);
    } else if let Ok(text) = value.cast_exact::<PyString>() {
        let text = text.to_cow()?;
        words.extend([8, text.len() as u64]);
        words.extend(text.bytes().map(u64::from));
    } else {
        words.extend([9, value.as_ptr() as usize as u64]);
    }
    Ok(())
}
