//! The printed trace of a tape: text with a line for each op, and diagrams.

use oxigrad_core::autodiff::tape::Origin;

use crate::arrays::value::Value;
use crate::autodiff::graph::describe::describe;
use crate::autodiff::graph::entry::Entry;
use crate::autodiff::graph::tape::{Names, Tape};
use crate::prelude::*;

/// One line an op: `v3 = add(v1, v2)`.
pub fn print(py: Python<'_>, tape: &Tape) -> PyResult<String> {
    // Objects that Python prints are collected under the lock, and printed after it is released.
    enum Piece {
        Text(String),
        Object(Py<PyAny>),
    }
    let mut pieces = Vec::new();
    {
        let inner = tape.lock();
        let names = Names::new(&inner);
        for view in inner.tape.views() {
            let Origin::Op(op) = view.origin else { continue };
            let separator = if pieces.is_empty() { "" } else { "\n" };
            pieces.push(Piece::Text(format!("{separator}{} = {}(", names.get(view.id), op.name())));
            for (which, arg) in view.args.iter().enumerate() {
                let separator = if which == 0 { "" } else { ", " };
                let text = match (view.is_active(which), view.arg(which)) {
                    (true, _) => names.get(*arg),
                    (false, Value::Number(number)) => format!("{number:?}"),
                    (false, Value::Absent) => "_".into(),
                    (false, value) => {
                        pieces.push(Piece::Text(separator.into()));
                        pieces.push(Piece::Object(value.object(py).unbind()));
                        continue;
                    }
                };
                pieces.push(Piece::Text(format!("{separator}{text}")));
            }
            if let Some(named) = view.attributes.and_then(|attributes| attributes.named.as_ref()) {
                pieces.push(Piece::Object(named.clone_ref(py).into_any()));
            }
            pieces.push(Piece::Text(")".into()));
        }
    }
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => Ok(text.clone()),
            Piece::Object(object) => describe(object.bind(py)),
        })
        .collect()
}

/// A box of a diagram: its kind, its label, and the boxes that it reads.
type Box = (&'static str, String, Vec<u32>);

/// The diagram of the first `limit` entries: the boxes, and how many entries are left out.
pub fn diagram(tape: &Tape, limit: usize) -> (Vec<Box>, usize) {
    let inner = tape.lock();
    let names = Names::new(&inner);
    let to_box = |view: Entry<'_>| {
        let name = names.get(view.id);
        match view.origin {
            Origin::Input => ("input", name, Vec::new()),
            Origin::Op(op) => ("op", format!("{name} = {}", op.name()), view.args.to_vec()),
            Origin::Constant => match view.result() {
                Value::Number(number) => ("constant", format!("{number:?}"), Vec::new()),
                _ => ("constant", "constant".into(), Vec::new()),
            },
        }
    };
    (inner.tape.views().take(limit).map(to_box).collect(), inner.tape.len().saturating_sub(limit))
}
