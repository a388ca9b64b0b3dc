//! Masks of cotangents: a rule that selects one of its arguments, such as that of `where`, or some elements, as that of an index,
//! gives the others zero.
//!
//! These zeros travel with the cotangent and stay zero through the rules behind, also where the derivative is infinite: forwards,
//! the tangent of what was not selected is dropped. A zero that a rule computes is no such zero, as its own derivative need not
//! be zero.

use super::tape::{Value, View};
use crate::op::{Elementwise, Op};

/// The zeros of the cotangent of an argument that was not selected.
#[derive(Debug)]
pub enum Zeros<V> {
    /// Zeros where the condition holds.
    If(V),
    /// Zeros where the condition does not hold.
    Unless(V),
    /// Zeros where the first value is less than the second.
    Less(V, V),
    /// Zeros that the host describes, and computes only where they are needed.
    Described(V),
}

/// The conditions under which an elementwise op selects another argument than this: the positions of the smaller and of the
/// larger one, or whether the condition of `where` holds.
enum Other {
    Less(usize, usize),
    Condition(bool),
}

fn other(op: Op, which: usize) -> Option<Other> {
    if op == Op::Elementwise(Elementwise::Where) {
        Some(Other::Condition(which == 2))
    } else if op == Op::Elementwise(Elementwise::Maximum) {
        Some(Other::Less(which, 1 - which))
    } else if op == Op::Elementwise(Elementwise::Minimum) {
        Some(Other::Less(1 - which, which))
    } else {
        None
    }
}

/// Whether an op selects one of its arguments.
#[inline]
pub(super) const fn is_selection(op: Op) -> bool {
    matches!(op, Op::Elementwise(Elementwise::Where | Elementwise::Maximum | Elementwise::Minimum))
}

/// Whether an entry selected another argument than this, by scalars: no cotangent flows.
pub(super) fn is_unselected<V: Value, A>(op: Op, which: usize, entry: &View<'_, V, A>) -> bool {
    let number = |at| entry.arg(at).scalar().map(|scalar| scalar.number);
    match other(op, which) {
        None => false,
        Some(Other::Condition(holds)) => number(0).is_some_and(|condition| (condition != 0.0) == holds),
        Some(Other::Less(a, b)) => number(a).zip(number(b)).is_some_and(|(a, b)| a < b),
    }
}

/// The zeros of an argument, where an entry selects another; `None` for an op that selects none.
pub fn unselected<V: Value, A>(
    op: Op,
    which: usize,
    entry: &View<'_, V, A>,
    share: impl Fn(&V) -> V,
) -> Option<Zeros<V>> {
    Some(match other(op, which)? {
        Other::Condition(true) => Zeros::If(share(entry.arg(0))),
        Other::Condition(false) => Zeros::Unless(share(entry.arg(0))),
        Other::Less(a, b) => Zeros::Less(share(entry.arg(a)), share(entry.arg(b))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autodiff::tape::Tape;

    #[test]
    fn scalars_tell_what_is_not_selected() {
        let is_unselected = |op: Elementwise, args: &[f64], which| {
            let mut tape = Tape::<Option<f64>, ()>::default();
            let args: Vec<_> = args.iter().map(|number| tape.watch(Some(*number))).collect();
            let id = tape.push(Op::Elementwise(op), &args, None, None);
            assert_eq!(is_selection(Op::Elementwise(op)), op != Elementwise::Add);
            is_unselected(Op::Elementwise(op), which, &tape.view(id))
        };
        for (op, args, others) in [
            (Elementwise::Where, [1.0, 5.0, 6.0].as_slice(), [false, true]),
            (Elementwise::Where, &[0.0, 5.0, 6.0], [true, false]),
            (Elementwise::Maximum, &[1.0, 2.0], [true, false]),
            (Elementwise::Maximum, &[2.0, 2.0], [false, false]),
            (Elementwise::Minimum, &[1.0, 2.0], [false, true]),
            (Elementwise::Minimum, &[f64::NAN, 2.0], [false, false]),
            (Elementwise::Add, &[1.0, 2.0], [false, false]),
        ] {
            let first = args.len() - 2;
            let found = [first, first + 1].map(|which| is_unselected(op, args, which));
            assert_eq!(found, others, "{op:?} {args:?}");
        }
    }
}
