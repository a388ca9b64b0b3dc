//! Squares of moduli, which have rules of their own: the modulus has no second derivative at zero, but its square has.

use super::accumulate::accumulate;
use super::replay::Host;
use super::tape::{Id, Origin, Tape, Value, View};
use crate::op::{Elementwise, Op, Structured};

impl<V: Value, A> Tape<V, A> {
    /// The entry behind the kinks of an entry.
    fn behind_kinks(&self, id: Id) -> Id {
        let mut id = id;
        while self.origin(id) == Origin::Op(Op::Structured(Structured::Kink)) {
            id = self.view(id).args[0];
        }
        id
    }

    /// Whether an entry is the square of its first argument: by `square`, a product with itself or a power of 2.
    fn is_square(&self, op: Op, args: &[Id]) -> bool {
        match (op, args) {
            (Op::Elementwise(Elementwise::Square), [_]) => true,
            (Op::Elementwise(Elementwise::Multiply), [a, b]) => a == b || self.are_equal(*a, *b),
            (Op::Elementwise(Elementwise::Pow), [_, b]) => {
                self.origin(*b) == Origin::Constant && self.values[*b as usize].number() == Some(2.0)
            }
            _ => false,
        }
    }

    /// Whether two entries are the same elementwise op on the same arguments.
    fn are_equal(&self, a: Id, b: Id) -> bool {
        let origin = self.origin(a);
        let is_same_op = origin == self.origin(b) && matches!(origin, Origin::Op(Op::Elementwise(_)));
        is_same_op && self.view(a).args == self.view(b).args
    }

    /// The modulus whose square an entry is, if the square has a rule of its own; `None` where the derivative of the
    /// modulus, or of a kink of it, is needed by itself: it is among `apart`.
    pub(super) fn squared_modulus<H: Host<V, A>>(&self, op: Op, args: &[Id], apart: &[Id], host: &H) -> Option<Id> {
        if !matches!(op, Op::Elementwise(Elementwise::Square | Elementwise::Multiply | Elementwise::Pow)) {
            return None;
        }
        let modulus = self.behind_kinks(*args.first()?);
        let Origin::Op(of) = self.origin(modulus) else { return None };
        let is_apart = || args.iter().chain([&modulus]).any(|id| apart.contains(id));
        (host.is_modulus(of) && self.is_square(op, args) && !is_apart()).then_some(modulus)
    }

    /// The square of a modulus is smooth where the modulus is zero: its cotangents skip the entry of the modulus.
    pub(super) fn pull_square<H: Host<V, A>>(
        modulus: &View<'_, V, A>,
        cotangent: &H::Flow,
        sums: &mut [H::Flow],
        host: &mut H,
    ) -> Result<(), H::Error> {
        for which in (0..modulus.args.len()).filter(|which| modulus.is_active(*which)) {
            let scalar = match (modulus.origin, cotangent.scalar()) {
                (Origin::Op(Op::Elementwise(op)), Some(g)) => host.rules().pull(op, which, g, modulus),
                _ => None,
            };
            let pulled = match scalar {
                Some(scalar) => H::Flow::from_scalar(scalar),
                None => host.pullback(modulus, which, cotangent)?,
            };
            if !pulled.is_absent() {
                accumulate(&mut sums[modulus.args[which] as usize], pulled, |a, b| host.add(a, b))?;
            }
        }
        Ok(())
    }
}
