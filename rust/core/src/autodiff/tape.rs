//! The tape: an append-only list of entries, replayed in reverse ([`super::replay`]) or forwards.
//!
//! An entry with a value is concrete, an entry without one is a symbol. Entries refer to each other by index into flat
//! arrays, so that recording, replaying and dropping ten million of them is a loop and never recursion.

use crate::op::{Elementwise, Op, Structured};
use crate::scalar::Scalar;

/// The index of an entry on its tape.
pub type Id = u32;

/// The value that a tape keeps for an entry, or its absence.
pub trait Value: Sized {
    /// Nothing is kept.
    fn absent() -> Self;
    /// Whether nothing is kept.
    fn is_absent(&self) -> bool;
    /// The number, where the value is one of the host language.
    fn number(&self) -> Option<f64>;
    /// A number of the host language as a value.
    fn from_number(number: f64) -> Self;
    /// The scalar, where the value is one: a number of the host language, or one of a precision of its own.
    fn scalar(&self) -> Option<Scalar>;
    /// A scalar as a value.
    fn from_scalar(scalar: Scalar) -> Self;
}

/// A tape of numbers alone.
impl Value for Option<f64> {
    fn absent() -> Self {
        None
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }

    fn number(&self) -> Option<f64> {
        *self
    }

    fn from_number(number: f64) -> Self {
        Some(number)
    }

    fn scalar(&self) -> Option<Scalar> {
        self.map(Scalar::weak)
    }

    fn from_scalar(scalar: Scalar) -> Self {
        Some(scalar.number)
    }
}

/// The origin of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A watched input, with respect to which gradients are taken.
    Input,
    /// An operand that is not on this tape.
    Constant,
    /// An op on earlier entries.
    Op(Op),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) origin: Origin,
    first_arg: u32,
    attributes: u32,
}

const NO_ATTRIBUTES: u32 = u32::MAX;

/// An append-only list of entries; `A` is the type of an op's attributes.
#[derive(Debug)]
pub struct Tape<V, A> {
    pub(super) entries: Vec<Entry>,
    pub(super) values: Vec<V>,
    args: Vec<Id>,
    attributes: Vec<A>,
    /// Whether an entry is a modulus: see [`super::squares`].
    pub(super) has_moduli: bool,
}

impl<V, A> Default for Tape<V, A> {
    fn default() -> Self {
        let (entries, values, args, attributes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { entries, values, args, attributes, has_moduli: false }
    }
}

/// An entry of a tape, as the replay and the printer see it.
#[derive(Clone, Copy, Debug)]
pub struct View<'t, V, A> {
    /// The index of the entry.
    pub id: Id,
    /// The origin of the entry.
    pub origin: Origin,
    /// The entries of its arguments.
    pub args: &'t [Id],
    /// The op's attributes, if it has any.
    pub attributes: Option<&'t A>,
    tape: &'t Tape<V, A>,
}

impl<'t, V: Value, A> View<'t, V, A> {
    /// The value kept for the entry itself.
    #[must_use]
    pub fn result(&self) -> &'t V {
        &self.tape.values[self.id as usize]
    }

    /// The value kept for the `which`-th argument.
    #[must_use]
    pub fn arg(&self, which: usize) -> &'t V {
        &self.tape.values[self.args[which] as usize]
    }

    /// Whether the `which`-th argument is on the tape, so that a cotangent flows to it.
    #[must_use]
    pub fn is_active(&self, which: usize) -> bool {
        self.tape.origin(self.args[which]) != Origin::Constant
    }

    /// The entry with other arguments.
    pub(super) const fn with_args(self, args: &'t [Id]) -> Self {
        Self { args, ..self }
    }

    /// Whether the `which`-th argument is a watched input.
    #[must_use]
    pub fn is_input(&self, which: usize) -> bool {
        self.tape.origin(self.args[which]) == Origin::Input
    }
}

impl<V: Value, A> Tape<V, A> {
    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing has been recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The origin of an entry.
    #[must_use]
    pub fn origin(&self, id: Id) -> Origin {
        self.entries[id as usize].origin
    }

    /// The entry, as a view.
    #[must_use]
    pub fn view(&self, id: Id) -> View<'_, V, A> {
        let entry = self.entries[id as usize];
        let end = self.entries.get(id as usize + 1).map_or(self.args.len(), |next| next.first_arg as usize);
        View {
            id,
            origin: entry.origin,
            args: &self.args[entry.first_arg as usize..end],
            attributes: (entry.attributes != NO_ATTRIBUTES).then(|| &self.attributes[entry.attributes as usize]),
            tape: self,
        }
    }

    /// Every entry, in the order of recording.
    pub fn views(&self) -> impl Iterator<Item = View<'_, V, A>> {
        (0..index(self.len())).map(|id| self.view(id))
    }

    /// Appends a watched input.
    pub fn watch(&mut self, value: V) -> Id {
        self.append(Origin::Input, value, NO_ATTRIBUTES)
    }

    /// Appends an operand that is not on this tape.
    pub fn constant(&mut self, value: V) -> Id {
        self.append(Origin::Constant, value, NO_ATTRIBUTES)
    }

    /// Appends an op on earlier entries; `kept` is its result where a derivative rule needs it, or absent.
    ///
    /// # Panics
    /// Panics if an argument is not an earlier entry, or the tape would exceed 2^32 entries.
    pub fn push(&mut self, op: Op, args: &[Id], attributes: Option<A>, kept: V) -> Id {
        let next = index(self.len());
        assert!(args.iter().all(|arg| *arg < next), "an argument is not on the tape");
        let attributes = attributes.map_or(NO_ATTRIBUTES, |attributes| {
            self.attributes.push(attributes);
            index(self.attributes.len() - 1)
        });
        self.has_moduli |= is_modulus(op);
        let id = self.append(Origin::Op(op), kept, attributes);
        self.args.extend_from_slice(args);
        id
    }

    fn append(&mut self, origin: Origin, value: V, attributes: u32) -> Id {
        let id = index(self.len());
        self.entries.push(Entry { origin, first_arg: index(self.args.len()), attributes });
        self.values.push(value);
        id
    }

    /// The value kept for each entry, in the order of recording.
    #[must_use]
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// The attributes of the entries that have some.
    #[must_use]
    pub fn attributes(&self) -> &[A] {
        &self.attributes
    }

    /// Removes and returns all values and attributes; the entries stay, with absent values and default attributes.
    pub fn forget(&mut self) -> (Vec<V>, Vec<A>)
    where
        A: Default,
    {
        let take = |value| std::mem::replace(value, V::absent());
        (self.values.iter_mut().map(take).collect(), self.attributes.iter_mut().map(std::mem::take).collect())
    }

    /// Keeps the value of an entry, which a later entry's rule will need.
    pub fn keep(&mut self, id: Id, value: V) {
        self.values[id as usize] = value;
    }

    /// Whether the value of an entry is kept.
    #[must_use]
    pub fn keeps(&self, id: Id) -> bool {
        !self.values[id as usize].is_absent()
    }
}

/// Whether an op is a modulus, whose square has a rule.
#[must_use]
pub const fn is_modulus(op: Op) -> bool {
    use Elementwise as E;
    matches!(op, Op::Elementwise(E::Abs | E::Hypot | E::RootOrZero | E::Sqrt) | Op::Structured(Structured::VectorNorm))
}

pub(super) fn index(position: usize) -> Id {
    Id::try_from(position).expect("a tape holds fewer than 2^32 entries")
}
