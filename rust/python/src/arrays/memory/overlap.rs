//! Detection of arrays that share memory: ranges of addresses are compared first; for overlapping ranges, NumPy decides
//! exactly.

use oxigrad_core::array::buffer::Span;
use oxigrad_core::array::overlap::{Sweep, clashes};

use crate::arrays::memory::host_array::HostArray;
use crate::prelude::*;

/// The first pair of ranges that share elements, of which one is written: the smaller number first. `view` gives an
/// array of the memory of a range. A `Sweep` is faster where no ranges overlap.
pub fn shared_among<'py>(
    py: Python<'py>,
    ranges: &[(Span, bool)],
    view: impl Fn(usize) -> PyResult<Object<'py>>,
) -> PyResult<Option<(usize, usize)>> {
    // Ranges may overlap without shared elements (the columns of a matrix): NumPy decides, exactly.
    let shares_memory = py.import("numpy")?.getattr("shares_memory")?;
    for (a, b) in clashes(ranges) {
        if shares_memory.call1((view(a)?, view(b)?))?.is_truthy()? {
            return Ok(Some((a.min(b), a.max(b))));
        }
    }
    Ok(None)
}

/// Memory, each with the number of its array.
type Numbered = Vec<(usize, HostArray)>;

/// Ranges, each with a property of its array.
type Ranges = Vec<(Span, bool)>;

/// The memory of each array, and its range with the property; arrays that are not in host memory are left out.
fn ranged(arrays: &[(Object<'_>, bool)]) -> PyResult<(Numbered, Ranges)> {
    let (mut numbered, mut ranges) = (Vec::new(), Vec::new());
    for (at, (array, is)) in arrays.iter().enumerate() {
        if let Some(memory) = HostArray::of(array)? {
            ranges.push((memory.span(), *is));
            numbered.push((at, memory));
        }
    }
    Ok((numbered, ranges))
}

/// The first pair of arrays, each given with whether it is written, of which one is written and which share
/// memory; `None` if no two do. Arrays that are not in host memory share none.
#[pyfunction]
#[pyo3(name = "first_shared")]
pub fn first_shared_of(py: Python<'_>, arrays: Vec<(Object<'_>, bool)>) -> PyResult<Option<(usize, usize)>> {
    let (memory, ranges) = ranged(&arrays)?;
    if Sweep::default().first_clash(&ranges).is_none() {
        return Ok(None);
    }
    let found = shared_among(py, &ranges, |at| memory[at].1.probe(py))?;
    Ok(found.map(|(a, b)| (memory[a].0, memory[b].0)))
}

/// The numbers of those new arrays (given as true) whose range of host memory overlaps that of another array, or of an
/// earlier new one.
#[pyfunction]
pub fn aliases(arrays: Vec<(Object<'_>, bool)>) -> PyResult<Vec<usize>> {
    let (memory, ranges) = ranged(&arrays)?;
    let later = |(a, b): (usize, usize)| match (ranges[a].1, ranges[b].1) {
        (true, true) => a.max(b),
        (true, false) => a,
        _ => b,
    };
    let mut found: Vec<usize> = clashes(&ranges).into_iter().map(|pair| memory[later(pair)].0).collect();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Whether two arrays are the same elements of host memory, in the same order.
#[pyfunction]
pub fn is_same_memory(a: &Object<'_>, b: &Object<'_>) -> PyResult<bool> {
    Ok(match (HostArray::of(a)?, HostArray::of(b)?) {
        (Some(a), Some(b)) => a.view.is_same_as(&b.view),
        _ => false,
    })
}

/// Whether elements of an array in host memory are the same as others of it.
#[pyfunction]
pub fn overlaps_itself(array: &Object<'_>) -> PyResult<bool> {
    let buffer = HostArray::of(array)?.and_then(|memory| memory.view.buffer());
    Ok(buffer.is_some_and(|buffer| buffer.overlaps_itself()))
}
