//! Forward replay: propagates tangents from the inputs to the results, by the rules of the reverse replay.

use smallvec::SmallVec;

use super::accumulate::accumulate;
use super::host::{Host, PULSE};
use super::rule::Rules;
use super::squares::Smooth;
use super::tape::{Id, Origin, Tape, Value, View, index};
use crate::op::{Elementwise, Op};
use crate::scalar::{Precision, Scalar};

/// Marks an entry that no entry leading to a target reads.
const UNREAD: Id = 0;
/// Marks a target, whose tangent is kept to the end.
const TARGET: Id = Id::MAX;

/// An entry, and where it is a modulus that another entry squares, the entries that multiply the square.
type Pushed<'t, V, A> = (View<'t, V, A>, Option<SmallVec<[Id; 2]>>);

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
        let seeded: Vec<Id> = seeds.iter().map(|(id, _)| *id).filter(|id| self.origin(*id) != Origin::Input).collect();
        let last = self.last_readers(targets, &seeded, host)?;
        let mut tangents: Vec<H::Flow> = Vec::new();
        tangents.resize_with(self.len(), H::Flow::absent);
        for (id, seed) in seeds {
            accumulate(&mut tangents[id as usize], seed, |a, b| host.add(a, b))?;
        }
        for id in 0..last.len() {
            if id % PULSE == 0 {
                host.pulse()?;
            }
            let (Origin::Op(_), true) = (self.entries[id].origin, last[id] != UNREAD) else { continue };
            let (view, factors) = self.pushed(index(id), &seeded, host)?;
            let pushed = match factors {
                Some(factors) => {
                    let pushed = host.with_squares(|host| push(&view, &tangents, host))?;
                    self.push_factors(&factors, pushed, host)?
                }
                None => push(&view, &tangents, host)?,
            };
            for arg in view.args {
                if last[*arg as usize] == index(id) {
                    tangents[*arg as usize] = H::Flow::absent();
                }
            }
            if !pushed.is_absent() {
                accumulate(&mut tangents[id], pushed, |a, b| host.add(a, b))?;
            }
        }
        Ok(targets.iter().map(|id| std::mem::replace(&mut tangents[*id as usize], H::Flow::absent())).collect())
    }

    /// The entry that tangents are pushed through: the modulus that an entry squares, with the entries that multiply it, the entry
    /// as a function of what is behind the modulus, or the entry itself.
    fn pushed<H: Host<V, A>>(&self, id: Id, seeded: &[Id], host: &H) -> Result<Pushed<'_, V, A>, H::Error> {
        let view = self.view(id);
        let smooth = if self.has_moduli { self.smooth(&view, seeded, host)? } else { None };
        Ok(match smooth {
            Some(Smooth::Square(modulus, factors)) => (modulus, Some(factors)),
            Some(Smooth::Even(even)) => (even, None),
            None => (view, None),
        })
    }

    /// For each entry, the last one that reads it on the way to a target.
    fn last_readers<H: Host<V, A>>(&self, targets: &[Id], seeded: &[Id], host: &H) -> Result<Vec<Id>, H::Error> {
        let top = targets.iter().map(|id| *id as usize + 1).max().unwrap_or(0);
        let mut last = vec![UNREAD; top];
        for id in targets {
            last[*id as usize] = TARGET;
        }
        for id in (0..top).rev() {
            if let (Origin::Op(_), true) = (self.entries[id].origin, last[id] != UNREAD) {
                for arg in self.pushed(index(id), seeded, host)?.0.args {
                    let reader = &mut last[*arg as usize];
                    *reader = if *reader == UNREAD { index(id) } else { *reader };
                }
            }
        }
        Ok(last)
    }
}

fn push<V: Value, A, H: Host<V, A>>(
    view: &View<'_, V, A>,
    tangents: &[H::Flow],
    host: &mut H,
) -> Result<H::Flow, H::Error> {
    let tangent = |arg: &Id| &tangents[*arg as usize];
    if view.args.iter().all(|arg| tangent(arg).is_absent()) {
        return Ok(H::Flow::absent());
    }
    if let Origin::Op(Op::Elementwise(op)) = view.origin
        && let Some(scalar) = push_scalars(op, view, tangents, host.rules())
    {
        return Ok(H::Flow::from_scalar(scalar));
    }
    let read: Vec<&H::Flow> = view.args.iter().map(tangent).collect();
    host.pushforward(view, &read)
}

/// The rule of each argument, with its tangent in place of the cotangent, added up in the precision of the result;
/// `None` if a value is not a scalar.
fn push_scalars<V: Value, A, F: Value>(
    op: Elementwise,
    view: &View<'_, V, A>,
    tangents: &[F],
    rules: &Rules,
) -> Option<Scalar> {
    let mut sum: Option<Scalar> = None;
    for (which, arg) in view.args.iter().enumerate() {
        let tangent = &tangents[*arg as usize];
        if tangent.is_absent() {
            continue;
        }
        let pushed = push_scalar(op, which, tangent.scalar()?, view, rules)?;
        sum = Some(sum.map_or(pushed, |sum| sum + pushed));
    }
    sum
}

fn push_scalar<V: Value, A>(
    op: Elementwise,
    which: usize,
    tangent: Scalar,
    view: &View<'_, V, A>,
    rules: &Rules,
) -> Option<Scalar> {
    // Of a number and an array the result is an array, and its tangent has its shape.
    let precision = view.result().scalar()?.precision;
    if tangent.precision == Precision::Weak && precision == Precision::Weak {
        return rules.on_numbers(op, which, tangent.number, view).map(Scalar::weak);
    }
    Some(rules.on_scalars(op, which, tangent, view)?.cast(precision))
}
