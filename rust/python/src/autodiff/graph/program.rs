//! The program that a symbolic tape has recorded.

use oxigrad_core::autodiff::tape::Origin;
use oxigrad_core::kernel::Node;
use oxigrad_core::op::{Elementwise, Op};

use crate::arrays::value::Value;
use crate::autodiff::graph::tape::Tape;
use crate::autodiff::graph::variable::Variable;
use crate::prelude::*;

/// The program that a symbolic tape recorded, as nodes; `outputs` are variables of the tape or numbers.
pub fn program(tape: &Bound<'_, Tape>, outputs: &[Object<'_>]) -> PyResult<(Vec<Node>, Vec<u32>)> {
    let mut nodes = nodes_of(tape);
    let mut ids = Vec::with_capacity(outputs.len());
    for output in outputs {
        if let Ok(variable) = output.cast::<Variable>()
            && variable.get().tape.is(tape)
        {
            ids.push(variable.get().id);
        } else if let Some(number) = crate::arrays::value::host_number(output) {
            nodes.push(Node::Constant(number));
            ids.push(u32::try_from(nodes.len() - 1).expect("a rule is short"));
        } else {
            let what = output.get_type().repr()?;
            return Err(RuleError::new_err(format!(
                "found {} among the results of a rule, expected values computed from its arguments",
                what.to_cow()?
            )));
        }
    }
    Ok((nodes, ids))
}

/// The nodes of all entries of a symbolic tape.
fn nodes_of(tape: &Bound<'_, Tape>) -> Vec<Node> {
    let inner = tape.get().lock();
    let mut symbols = inner.symbols.iter().copied();
    let mut nodes = Vec::with_capacity(inner.tape.len());
    for view in inner.tape.views() {
        nodes.push(match view.origin {
            Origin::Input => symbols.next().expect("each input of a symbolic tape is a symbol"),
            Origin::Constant => match view.result() {
                Value::Number(number) => Node::Constant(*number),
                _ => unreachable!("a symbolic tape takes numbers only"),
            },
            Origin::Op(Op::Elementwise(op)) => {
                let mut args = [0; 3];
                args[..view.args.len()].copy_from_slice(view.args);
                Node::Apply(op, args)
            }
            Origin::Op(Op::Structured(_)) => sum(&nodes, view.args[0]),
        });
    }
    nodes
}

/// The sum of a node: a dot product where that is a product, so that none overflows.
fn sum(nodes: &[Node], summed: u32) -> Node {
    match nodes[summed as usize] {
        Node::Apply(Elementwise::Multiply, [a, b, _]) => Node::Dot([a, b]),
        Node::Apply(Elementwise::Square, [a, ..]) => Node::Dot([a; 2]),
        Node::Apply(Elementwise::Pow, [a, exponent, _]) if nodes[exponent as usize] == Node::Constant(2.0) => {
            Node::Dot([a; 2])
        }
        _ => Node::Sum(summed),
    }
}
