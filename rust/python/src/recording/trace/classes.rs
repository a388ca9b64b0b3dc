//! Classes of entries: calls of one class are stated alike, whatever the values of the entries that they read.

use std::collections::HashMap;

use pyo3::types::{PyFloat, PyInt};

use oxigrad_core::recording::Words;
use smallvec::SmallVec;

use crate::arrays::memory::numpy::Numpy;
use crate::prelude::*;
use crate::recording::statement::{Reach, Statement};
use crate::recording::trace::entry::TraceEntry;
use crate::recording::trace::words::push;

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
    /// The class of the next entry, and the entries that it reads.
    pub fn add(&mut self, statement: &Statement<'_>) -> PyResult<(u64, SmallVec<[u32; 4]>)> {
        let at = self.of.len();
        let entry = &statement.entries()[at];
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
            let reach = statement.reach(at);
            self.reaches.insert(address, reach);
            reach
        };
        let by_type = if reach == Reach::View { 0 } else { self.number(&words) };
        words.push(u64::from(statement.is_spread(at)));
        let class = |id: u32| {
            let known = self.of.get(id as usize);
            let known = known.map(|(by_type, by_call)| if reach == Reach::Fold { *by_call } else { *by_type });
            known.ok_or_else(|| {
                RuleError::new_err(format!("entry {at}: found argument {id}, expected an earlier entry"))
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
