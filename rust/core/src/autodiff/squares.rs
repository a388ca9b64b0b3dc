//! Squares of moduli, which have rules of their own: the modulus has no second derivative at zero, but its square has. So have even
//! functions of the absolute value of a real number, which are functions of the number.

use smallvec::SmallVec;

use super::accumulate::accumulate;
use super::host::{Host, pull_one};
use super::tape::{Id, Origin, Tape, Value, View, is_modulus};
use crate::op::{Elementwise, Op, Structured};

/// The most entries on the way to a modulus that multiply by a number: more are not looked through, so that a long chain of them is
/// replayed in linear time.
const MOST_FACTORS: usize = 4;

/// A smooth function of a modulus, whose cotangents skip the entry of the modulus.
pub(super) enum Smooth<'t, V, A> {
    /// The square of a modulus, times numbers: the modulus, and the entries that multiply by a number.
    Square(View<'t, V, A>, SmallVec<[Id; 2]>),
    /// An even function of an absolute value, as a function of the real number.
    Even(View<'t, V, A>),
}

impl<V: Value, A> Tape<V, A> {
    /// The modulus that an entry is a multiple of, by numbers; `None` where the derivative by an entry on the way is asked for.
    fn modulus_behind(&self, id: Id, apart: &[Id], factors: &mut SmallVec<[Id; 2]>) -> Option<Id> {
        let mut id = id;
        loop {
            let Origin::Op(op) = self.origin(id) else { return None };
            if apart.contains(&id) {
                return None;
            }
            let args = self.view(id).args;
            let which = match op {
                op if is_modulus(op) => return Some(id),
                Op::Structured(Structured::Kink) => 0,
                op if factors.len() < MOST_FACTORS => {
                    let which = self.factor(op, args)?;
                    factors.push(id);
                    which
                }
                _ => return None,
            };
            id = args[which];
        }
    }

    /// The position of the argument that an entry multiplies by a number.
    fn factor(&self, op: Op, args: &[Id]) -> Option<usize> {
        let is_number = |id: Id| self.origin(id) == Origin::Constant && self.values[id as usize].scalar().is_some();
        match (op, args) {
            (Op::Elementwise(Elementwise::Negative), _) => Some(0),
            (Op::Elementwise(Elementwise::Multiply | Elementwise::Divide), [_, b]) if is_number(*b) => Some(0),
            (Op::Elementwise(Elementwise::Multiply), [a, _]) if is_number(*a) => Some(1),
            _ => None,
        }
    }

    /// Whether two moduli are one op with the same attributes on the same arguments.
    fn are_equal<H: Host<V, A>>(&self, a: Id, b: Id, host: &H) -> Result<bool, H::Error> {
        let (one, other) = (self.view(a), self.view(b));
        let is_same = one.origin == other.origin && one.args == other.args;
        Ok(a == b || is_same && host.are_equal(one.attributes, other.attributes)?)
    }

    /// The smooth function of a modulus that an entry is; `None` for any other entry, and where the derivative by the modulus, or by
    /// a multiple of it, is needed by itself: it is among `apart`.
    pub(super) fn smooth<H: Host<V, A>>(
        &self,
        view: &View<'_, V, A>,
        apart: &[Id],
        host: &H,
    ) -> Result<Option<Smooth<'_, V, A>>, H::Error> {
        use Elementwise as E;
        let Origin::Op(Op::Elementwise(op)) = view.origin else { return Ok(None) };
        let mut factors = SmallVec::new();
        match (op, view.args) {
            (E::Cos | E::Cosh, [a]) => {
                let Some(modulus) = self.modulus_behind(*a, apart, &mut factors) else { return Ok(None) };
                let behind = self.view(modulus);
                let is_even = behind.origin == Origin::Op(Op::Elementwise(E::Abs)) && factors.is_empty();
                Ok((is_even && host.is_real(behind.arg(0))?)
                    .then(|| Smooth::Even(self.view(view.id).with_args(behind.args))))
            }
            (E::Pow, [_, b])
                if self.origin(*b) != Origin::Constant
                    || self.values[*b as usize].scalar().map(|exponent| exponent.number) != Some(2.0) =>
            {
                Ok(None)
            }
            (E::Square, [a]) | (E::Pow, [a, _]) => {
                let Some(modulus) = self.modulus_behind(*a, apart, &mut factors) else { return Ok(None) };
                factors.extend(factors.clone());
                Ok(Some(Smooth::Square(self.view(modulus), factors)))
            }
            (E::Multiply, [a, b]) => {
                let Some(one) = self.modulus_behind(*a, apart, &mut factors) else { return Ok(None) };
                let Some(other) = self.modulus_behind(*b, apart, &mut factors) else { return Ok(None) };
                Ok(self.are_equal(one, other, host)?.then(|| Smooth::Square(self.view(one), factors)))
            }
            _ => Ok(None),
        }
    }

    /// The cotangents of the arguments of a modulus, for that of its square times numbers.
    pub(super) fn pull_square<H: Host<V, A>>(
        &self,
        modulus: &View<'_, V, A>,
        factors: &[Id],
        cotangent: &H::Flow,
        sums: &mut [H::Flow],
        host: &mut H,
    ) -> Result<(), H::Error> {
        let mut multiple = None;
        for id in factors {
            let view = self.view(*id);
            let Some(which) = (0..view.args.len()).find(|which| view.is_active(*which)) else { continue };
            multiple = Some(pull_one(host, &view, which, multiple.as_ref().unwrap_or(cotangent))?);
        }
        let cotangent = multiple.as_ref().unwrap_or(cotangent);
        host.with_squares(|host| {
            for which in (0..modulus.args.len()).filter(|which| modulus.is_active(*which)) {
                let pulled = pull_one(host, modulus, which, cotangent)?;
                if !pulled.is_absent() {
                    accumulate(&mut sums[modulus.args[which] as usize], pulled, |a, b| host.add(a, b))?;
                }
            }
            Ok(())
        })
    }

    /// The tangent of the square of a modulus times numbers, from that of the square.
    pub(super) fn push_factors<H: Host<V, A>>(
        &self,
        factors: &[Id],
        pushed: H::Flow,
        host: &mut H,
    ) -> Result<H::Flow, H::Error> {
        let mut tangent = pushed;
        for id in factors {
            if tangent.is_absent() {
                break;
            }
            let (view, nothing) = (self.view(*id), H::Flow::absent());
            let multiple = {
                let read = |which| if view.is_active(which) { &tangent } else { &nothing };
                let read: SmallVec<[&H::Flow; 2]> = (0..view.args.len()).map(read).collect();
                host.pushforward(&view, &read)?
            };
            tangent = multiple;
        }
        Ok(tangent)
    }
}
