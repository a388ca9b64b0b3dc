//! Arguments of entries as words, which are equal for arguments that are alike.

use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PySlice, PyString, PyTuple};
use smallvec::SmallVec;

use crate::autodiff::graph::template::EntryId;
use crate::prelude::*;

/// Arguments as words, in which all entries are alike.
pub fn of(value: &Object<'_>) -> PyResult<Vec<u64>> {
    let mut words = Vec::new();
    push(value, &|_| Ok(0), &mut words, &mut SmallVec::new())?;
    Ok(words)
}

/// Arguments as words, with the classes of entries.
pub fn push<'py>(
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
