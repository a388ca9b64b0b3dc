//! What a tape recorded, for people to read: as text, a line an op, and as a chart.

use std::collections::HashMap;

use oxigrad_core::autodiff::diagram::{Chart, Shape};
use oxigrad_core::autodiff::tape::{Id, Origin};
use pyo3::prelude::*;

use crate::autodiff::tape::{Inner, Tape};
use crate::autodiff::value::Value;
use crate::autodiff::vjp_rules;

/// Names of entries: the given ones, and numbers for the rest.
pub struct Names<'t> {
    inner: &'t Inner,
    automatic: HashMap<Id, String>,
}

impl<'t> Names<'t> {
    pub fn new(inner: &'t Inner) -> Self {
        let (mut inputs, mut ops) = (0, 0);
        let mut automatic = HashMap::new();
        for view in inner.tape.views() {
            let (letter, count) = match view.origin {
                Origin::Input => ('x', &mut inputs),
                Origin::Op(_) => ('v', &mut ops),
                Origin::Constant => continue,
            };
            *count += 1;
            automatic.insert(view.id, format!("{letter}{count}"));
        }
        Self { inner, automatic }
    }

    pub fn get(&self, id: Id) -> String {
        let name = self.inner.names.get(&id).or_else(|| self.automatic.get(&id));
        name.map_or_else(|| "_".to_owned(), Clone::clone)
    }
}

/// One line an op: `v3 = add(v1, v2)`.
pub fn print(py: Python<'_>, tape: &Tape) -> PyResult<String> {
    // What Python prints is collected under the lock and printed after it.
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
            Piece::Object(object) => vjp_rules::describe(object.bind(py)),
        })
        .collect()
}

/// The first `limit` entries as boxes and arrows, with the constants that they read.
pub fn chart(tape: &Tape, limit: usize) -> Chart {
    let inner = tape.lock();
    let names = Names::new(&inner);
    let mut chart = Chart::new(inner.tape.len().saturating_sub(limit));
    for view in inner.tape.views().take(limit) {
        let name = names.get(view.id);
        match view.origin {
            Origin::Input => chart.add(Shape::Input, name, &[]),
            Origin::Op(op) => chart.add(Shape::Op, format!("{name} = {}", op.name()), view.args),
            Origin::Constant => match view.result() {
                Value::Number(number) => chart.add(Shape::Constant, format!("{number:?}"), &[]),
                _ => chart.add(Shape::Constant, "constant".into(), &[]),
            },
        }
    }
    chart
}
