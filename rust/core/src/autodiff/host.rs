//! The host of the values of a tape, which computes all parts of a replay that the core does not.

use super::rule::Rules;
use super::tape::{Origin, Value, View};
use crate::op::Op;

/// The cotangent of one argument: in the core where all values are scalars.
#[inline]
pub(super) fn pull_one<V: Value, A, H: Host<V, A>>(
    host: &mut H,
    view: &View<'_, V, A>,
    which: usize,
    cotangent: &H::Flow,
) -> Result<H::Flow, H::Error> {
    if let (Origin::Op(Op::Elementwise(op)), Some(g)) = (view.origin, cotangent.scalar())
        && let Some(scalar) = host.rules().pull(op, which, g, view)
    {
        return Ok(H::Flow::from_scalar(scalar));
    }
    host.pullback(view, which, cotangent)
}

/// The number of entries replayed between two calls of [`Host::pulse`].
pub(super) const PULSE: usize = 1 << 16;

/// The host of the values, which computes all parts of a replay that the core does not.
pub trait Host<V, A> {
    /// The error of an operation on values.
    type Error;
    /// A cotangent in a reverse replay, or a tangent in a forward replay.
    type Flow: Value;

    /// The derivative rules of the elementwise ops, traced.
    fn rules(&self) -> &Rules;

    /// Whether the attributes of two ops are the same.
    ///
    /// # Errors
    /// An error if the comparison fails.
    fn are_equal(&self, _a: Option<&A>, _b: Option<&A>) -> Result<bool, Self::Error> {
        Ok(true)
    }

    /// Whether a value is real.
    ///
    /// # Errors
    /// An error if the value cannot be looked at.
    fn is_real(&self, _value: &V) -> Result<bool, Self::Error> {
        Ok(true)
    }

    /// Calls `f` with the rules of squares in use, in place of those of moduli.
    fn with_squares<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        f(self)
    }

    /// The cotangent of the `which`-th argument, unbroadcast to its shape; absent if the derivative is zero.
    ///
    /// # Errors
    /// An error if there is no derivative, or its computation fails.
    fn pullback(
        &mut self,
        entry: &View<'_, V, A>,
        which: usize,
        cotangent: &Self::Flow,
    ) -> Result<Self::Flow, Self::Error>;

    /// Adds the cotangent of the `which`-th argument to `sum`, which is absent or the sum of earlier terms, and returns
    /// true; returns false, with `sum` unchanged in value, where [`Host::pullback`] is to be called instead.
    ///
    /// For ops whose cotangent is zero in most places, such as that of a slice: the host adds to the rest only.
    ///
    /// # Errors
    /// An error if the computation fails.
    fn pull_into(
        &mut self,
        _entry: &View<'_, V, A>,
        _which: usize,
        _cotangent: &Self::Flow,
        _sum: &mut Self::Flow,
    ) -> Result<bool, Self::Error> {
        Ok(false)
    }

    /// The cotangents of all arguments of an op whose rule gives them together; none for any other op.
    ///
    /// # Errors
    /// An error if the computation fails.
    fn pull_together(
        &mut self,
        entry: &View<'_, V, A>,
        cotangent: &Self::Flow,
    ) -> Result<Option<Vec<Self::Flow>>, Self::Error>;

    /// The tangent of the result, given those of the arguments, at least one of which is present; absent if it is zero.
    ///
    /// # Errors
    /// An error if there is no derivative, or its computation fails.
    fn pushforward(&mut self, entry: &View<'_, V, A>, tangents: &[&Self::Flow]) -> Result<Self::Flow, Self::Error>;

    /// The sum of two cotangents, or tangents, of one entry.
    ///
    /// # Errors
    /// An error if the values cannot be added.
    fn add(&mut self, a: Self::Flow, b: Self::Flow) -> Result<Self::Flow, Self::Error>;

    /// Whether `take` is to be called.
    fn takes(&self) -> bool {
        false
    }

    /// Takes the cotangent of the `which`-th input of a replay, which is final: nothing that is still to be computed reads
    /// the value of the input, but for deferred cotangents. Returns absent, or the cotangent where it is not taken.
    ///
    /// # Errors
    /// An error stops the replay.
    fn take(&mut self, _which: usize, cotangent: Self::Flow) -> Result<Self::Flow, Self::Error> {
        Ok(cotangent)
    }

    /// Takes a value that the replay no longer needs: it may be dropped, or its memory reused.
    fn retire(&mut self, value: V) {
        drop(value);
    }

    /// Takes a cotangent that is no longer needed: it may be dropped, or its memory reused.
    fn spend(&mut self, cotangent: Self::Flow) {
        drop(cotangent);
    }

    /// Called at regular intervals, so that a long replay can be interrupted.
    ///
    /// # Errors
    /// An error stops the replay.
    fn pulse(&mut self) -> Result<(), Self::Error>;
}
