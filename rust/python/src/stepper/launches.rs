//! Launches of kernels on devices, as calls of functions of a driver that run no Python code.

use pyo3::gc::PyVisit;
use pyo3::types::PyTuple;

use crate::arrays::memory::changes::Changed;
use crate::arrays::memory::exporters::Exporters;
use crate::prelude::*;

/// A function of a driver, its arguments, and whether it writes to memory of the model. It returns a tuple whose first
/// item is the status, 0 for success.
pub(super) type Call = (Py<PyAny>, Py<PyTuple>, bool);

/// The launches of a step.
pub(super) struct Launches {
    pub(super) calls: Vec<Call>,
    /// Raises the error of a call, given its number and its status.
    pub(super) fail: Py<PyAny>,
    /// The arrays whose memory the launches write.
    pub(super) launched: Vec<Py<PyAny>>,
}

/// An error of a call, and whether a call before it has written to memory of the model.
pub(super) struct Failure {
    pub(super) error: PyErr,
    pub(super) has_written: bool,
}

impl Launches {
    /// Looks up the classes of the launched arrays, which may run Python, as `run` must not.
    pub(super) fn new(py: Python<'_>, calls: Vec<Call>, fail: Py<PyAny>, launched: Vec<Py<PyAny>>) -> PyResult<Self> {
        let mut exporters = Exporters::default();
        launched.iter().try_for_each(|array| exporters.of(array.bind(py)).map(drop))?;
        Ok(Self { calls, fail, launched })
    }

    /// Makes the calls, and adds the arrays that they write to those that have `changed`. After one that fails, only those
    /// that write nothing are made, such as of contexts.
    pub(super) fn run<'py>(&self, py: Python<'py>, changed: &mut Changed<'py>) -> Result<(), Failure> {
        let mut has_written = false;
        for (number, (function, arguments, writes)) in self.calls.iter().enumerate() {
            if let Err(error) = self.call(py, number, function, arguments) {
                self.finish(py, number + 1);
                return Err(Failure { error, has_written });
            }
            has_written |= writes;
        }
        let mut exporters = Exporters::default();
        self.launched.iter().for_each(|array| changed.push(&mut exporters, array.bind(py)));
        Ok(())
    }

    /// Makes the calls from this one on that write nothing, and ignores their failures.
    fn finish(&self, py: Python<'_>, from: usize) {
        for (function, arguments, _) in self.calls[from..].iter().filter(|(.., writes)| !writes) {
            drop(function.bind(py).call1(arguments.bind(py)));
        }
    }

    fn call(&self, py: Python<'_>, number: usize, function: &Py<PyAny>, arguments: &Py<PyTuple>) -> PyResult<()> {
        let status = function.bind(py).call1(arguments.bind(py))?.get_item(0)?;
        if status.extract::<i64>()? == 0 {
            return Ok(());
        }
        self.fail.bind(py).call1((number, status)).map(drop)
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Visited {
        let mut calls = self.calls.iter();
        calls.try_for_each(|(function, arguments, _)| visit.call(function).and_then(|()| visit.call(arguments)))?;
        visit.call(&self.fail)?;
        self.launched.iter().try_for_each(|array| visit.call(array))
    }
}
