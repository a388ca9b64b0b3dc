//! Forward replay: propagates tangents from the inputs to the results, by the rules of the reverse replay.

use super::accumulate::accumulate;
use super::replay::{Host, PULSE};
use super::tape::{Id, Origin, Tape, Value, View, index};
use crate::op::{Elementwise, Op};
use crate::scalar::{Precision, Scalar};

/// Marks an entry that no entry leading to a target reads.
const UNREAD: Id = 0;
/// Marks a target, whose tangent is kept to the end.
const TARGET: Id = Id::MAX;

impl<V: Value, A> Tape<V, A> {
    /// Replays the entries forwards from the seeds; returns the tangents of `targets`, absent if they depend on no
    /// seed.
    ///
    /// Entries that lead to no target are skipped, and a tangent is dropped when its last reader has read it.
    ///
    /// # Errors
    /// Any error of `host`.
    pub fn replay_forward<H: Host<V, A>>(
        &self,
        seeds: Vec<(Id, H::Flow)>,
        targets: &[Id],
        host: &mut H,
    ) -> Result<Vec<H::Flow>, H::Error> {
        let last = self.last_readers(targets);
        let mut tangents: Vec<H::Flow> = Vec::new();
        tangents.resize_with(self.len(), H::Flow::absent);
        for (id, seed) in seeds {
            accumulate(&mut tangents[id as usize], seed, |a, b| host.add(a, b))?;
        }
        for id in 0..last.len() {
            if id % PULSE == 0 {
                host.pulse()?;
            }
            let (Origin::Op(op), true) = (self.entries[id].origin, last[id] != UNREAD) else { continue };
            let view = self.view(index(id));
            let pushed = push(op, &view, &tangents, host)?;
            for arg in view.args {
                if last[*arg as usize] == view.id {
                    tangents[*arg as usize] = H::Flow::absent();
                }
            }
            if !pushed.is_absent() {
                accumulate(&mut tangents[id], pushed, |a, b| host.add(a, b))?;
            }
        }
        Ok(targets.iter().map(|id| std::mem::replace(&mut tangents[*id as usize], H::Flow::absent())).collect())
    }

    /// For each entry, the last one that reads it on the way to a target.
    fn last_readers(&self, targets: &[Id]) -> Vec<Id> {
        let top = targets.iter().map(|id| *id as usize + 1).max().unwrap_or(0);
        let mut last = vec![UNREAD; top];
        for id in targets {
            last[*id as usize] = TARGET;
        }
        for id in (0..top).rev().filter(|id| matches!(self.entries[*id].origin, Origin::Op(_))) {
            if last[id] != UNREAD {
                for arg in self.view(index(id)).args {
                    let reader = &mut last[*arg as usize];
                    *reader = if *reader == UNREAD { index(id) } else { *reader };
                }
            }
        }
        last
    }
}

fn push<V: Value, A, H: Host<V, A>>(
    op: Op,
    view: &View<'_, V, A>,
    tangents: &[H::Flow],
    host: &mut H,
) -> Result<H::Flow, H::Error> {
    let tangent = |arg: &Id| &tangents[*arg as usize];
    if view.args.iter().all(|arg| tangent(arg).is_absent()) {
        return Ok(H::Flow::absent());
    }
    if let Op::Elementwise(op) = op
        && let Some(scalar) = push_scalars(op, view, tangents, host)
    {
        return Ok(H::Flow::from_scalar(scalar));
    }
    let read: Vec<&H::Flow> = view.args.iter().map(tangent).collect();
    host.pushforward(view, &read)
}

/// The rule of each argument, with its tangent in place of the cotangent, added up in the precision of the result;
/// `None` if a value is not a scalar.
fn push_scalars<V: Value, A, H: Host<V, A>>(
    op: Elementwise,
    view: &View<'_, V, A>,
    tangents: &[H::Flow],
    host: &H,
) -> Option<Scalar> {
    let mut sum: Option<Scalar> = None;
    for (which, arg) in view.args.iter().enumerate() {
        let tangent = &tangents[*arg as usize];
        if tangent.is_absent() {
            continue;
        }
        let pushed = push_scalar(op, which, tangent.scalar()?, view, host)?;
        sum = Some(sum.map_or(pushed, |sum| sum + pushed));
    }
    sum
}

fn push_scalar<V: Value, A, H: Host<V, A>>(
    op: Elementwise,
    which: usize,
    tangent: Scalar,
    view: &View<'_, V, A>,
    host: &H,
) -> Option<Scalar> {
    // Of a number and an array the result is an array, and its tangent has its shape.
    let precision = view.result().scalar()?.precision;
    if tangent.precision == Precision::Weak && precision == Precision::Weak {
        return host.rules().on_numbers(op, which, tangent.number, view).map(Scalar::weak);
    }
    Some(host.rules().on_scalars(op, which, tangent, view)?.cast(precision))
}
