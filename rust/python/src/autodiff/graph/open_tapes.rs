//! The open tapes of a thread, from the outermost one: what a function makes without arguments belongs to the innermost.

use std::cell::RefCell;

use crate::autodiff::graph::tape::Tape;
use crate::prelude::*;

thread_local! {
    static OPEN: RefCell<Vec<Py<Tape>>> = const { RefCell::new(Vec::new()) };
    /// The recording under way, and the innermost tape at its begin.
    static TRACE: RefCell<Option<(Py<PyAny>, Option<u64>)>> = const { RefCell::new(None) };
}

/// The tapes of transforms that are running on this thread.
pub struct OpenTapes;

impl OpenTapes {
    /// Adds a tape, as the innermost one.
    pub fn push(tape: &Bound<'_, Tape>) {
        OPEN.with_borrow_mut(|open| open.push(tape.clone().unbind()));
    }

    /// Removes a tape: not always the innermost one, where a generator was left in between.
    pub fn remove(tape: &Tape) {
        let removed = OPEN.with_borrow_mut(|open| {
            let at = open.iter().rposition(|other| std::ptr::eq(other.get(), tape))?;
            Some(open.remove(at))
        });
        drop(removed);
    }

    /// The innermost tape.
    pub fn innermost(py: Python<'_>) -> Option<Bound<'_, Tape>> {
        OPEN.with_borrow(|open| open.last().map(|tape| tape.bind(py).clone()))
    }

    /// A tape as the innermost one, until the guard is dropped.
    pub fn with<'py>(tape: &Bound<'py, Tape>) -> OpenTape<'py> {
        Self::push(tape);
        OpenTape(tape.clone())
    }
}

/// The recording of a call that this thread makes, as long as this lives.
pub struct OpenTrace;

impl OpenTrace {
    /// Begins a recording.
    pub fn begin(trace: &Object<'_>) -> Self {
        let innermost = OpenTapes::innermost(trace.py()).map(|tape| tape.get().serial);
        drop(TRACE.replace(Some((trace.clone().unbind(), innermost))));
        Self
    }

    /// Whether this thread makes a recording.
    pub fn is_any() -> bool {
        TRACE.with_borrow(Option::is_some)
    }

    /// The recording, unless a tape is open within it.
    pub fn innermost<'py>(py: Python<'py>, tape: Option<&Bound<'py, Tape>>) -> Option<Object<'py>> {
        let serial = tape.map(|tape| tape.get().serial);
        TRACE.with_borrow(|trace| {
            trace.as_ref().filter(|(_, innermost)| *innermost == serial).map(|(trace, _)| trace.bind(py).clone())
        })
    }
}

impl Drop for OpenTrace {
    fn drop(&mut self) {
        drop(TRACE.take());
    }
}

/// Keeps a tape among the open ones.
pub struct OpenTape<'py>(Bound<'py, Tape>);

impl Drop for OpenTape<'_> {
    fn drop(&mut self) {
        OpenTapes::remove(self.0.get());
    }
}
