//! Alias tracking: variables of a tape that may share memory, and those of them that are stale. A variable changed in
//! place refers to a new entry from then on; its views do not. Each memory has a count of changes, and a variable whose
//! own count is lower is stale.

use std::num::NonZeroU32;

use crate::autodiff::tape::{Id, Origin, Tape, Value};
use crate::op::{Attribute, Op, Structured};

/// The id in [`Aliases`] of a variable that has been viewed or assigned to.
pub type AliasId = NonZeroU32;

/// Whether the result of an op may be a view of the memory of its first argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// The result is a new array.
    Never,
    /// The result may be a view.
    Maybe,
    /// The result may be a view, unless an array is among the keys.
    BasicKeys,
}

/// Whether an array library may give a view for the op.
#[must_use]
pub fn sharing(op: Op) -> Sharing {
    match op {
        Op::Structured(Structured::Index) => Sharing::BasicKeys,
        op if op.has(Attribute::View) => Sharing::Maybe,
        _ => Sharing::Never,
    }
}

/// Whether the elements of the result share memory with each other: it cannot be changed in place.
#[must_use]
pub const fn repeats_elements(op: Op) -> bool {
    matches!(op, Op::Structured(Structured::BroadcastTo))
}

/// The variables of a tape that have been viewed or assigned to; `V` is the value of a variable.
#[derive(Debug)]
pub struct Aliases<V> {
    variables: Vec<Alias<V>>,
    /// The number of changes of each memory, by any of the variables that share it.
    changes: Vec<u64>,
}

#[derive(Debug)]
struct Alias<V> {
    memory: usize,
    /// The number of changes of the memory that this variable has seen.
    seen: u64,
    /// The entry of the variable after the last assignment, and its value.
    assigned: Option<(Id, V)>,
}

impl<V> Default for Aliases<V> {
    fn default() -> Self {
        Self { variables: Vec::new(), changes: Vec::new() }
    }
}

impl<V> Aliases<V> {
    /// Adds a variable with a memory of its own.
    pub fn add(&mut self) -> AliasId {
        self.changes.push(0);
        self.push(Alias { memory: self.changes.len() - 1, seen: 0, assigned: None })
    }

    /// Adds a variable that shares the memory of another, with the same count of changes.
    pub fn add_view(&mut self, base: AliasId) -> AliasId {
        let Alias { memory, seen, .. } = *self.get(base);
        self.push(Alias { memory, seen, assigned: None })
    }

    fn push(&mut self, alias: Alias<V>) -> AliasId {
        self.variables.push(alias);
        let id = u32::try_from(self.variables.len()).ok().and_then(NonZeroU32::new);
        id.expect("a tape holds fewer than 2^32 entries")
    }

    fn get(&self, id: AliasId) -> &Alias<V> {
        &self.variables[id.get() as usize - 1]
    }

    fn get_mut(&mut self, id: AliasId) -> &mut Alias<V> {
        &mut self.variables[id.get() as usize - 1]
    }

    /// Whether the variable is stale.
    #[must_use]
    pub fn is_stale(&self, id: AliasId) -> bool {
        let alias = self.get(id);
        alias.seen != self.changes[alias.memory]
    }

    /// The number of changes of its memory that a variable has seen.
    #[must_use]
    pub fn seen(&self, id: AliasId) -> u64 {
        self.get(id).seen
    }

    /// Whether two variables share memory.
    #[must_use]
    pub fn are_aliases(&self, a: AliasId, b: AliasId) -> bool {
        self.get(a).memory == self.get(b).memory
    }

    /// The entry and the value that were assigned last to a variable.
    #[must_use]
    pub fn assigned(&self, id: AliasId) -> Option<&(Id, V)> {
        self.get(id).assigned.as_ref()
    }

    /// The value assigned last to each variable that has one.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.variables.iter().filter_map(|alias| alias.assigned.as_ref().map(|(_, value)| value))
    }

    /// Assigns to a variable: a change of its memory, which makes its other aliases stale. Returns the previously
    /// assigned value.
    pub fn assign(&mut self, id: AliasId, entry: Id, value: V) -> Option<V> {
        let memory = self.get(id).memory;
        self.changes[memory] += 1;
        let seen = self.changes[memory];
        let alias = self.get_mut(id);
        alias.seen = seen;
        alias.assigned.replace((entry, value)).map(|(_, before)| before)
    }

    /// Removes and returns the value assigned last to a variable.
    pub fn take(&mut self, id: AliasId) -> Option<V> {
        self.get_mut(id).assigned.take().map(|(_, value)| value)
    }

    /// Removes and returns the assigned values of all variables.
    pub fn forget(&mut self) -> Vec<V> {
        self.variables.iter_mut().filter_map(|alias| alias.assigned.take().map(|(_, value)| value)).collect()
    }

    /// Whether `view` was made by indexing the entry `base_entry` of `base`, and saw every change of their memory
    /// since: as the view that `x[key] += y` has changed in place, just before it is assigned to `x[key]`.
    pub fn is_current_item<W: Value, A>(
        &self,
        tape: &Tape<W, A>,
        (base, base_entry): (AliasId, Id),
        (view, view_entry): (AliasId, Id),
    ) -> bool {
        let made = tape.view(view_entry);
        made.origin == Origin::Op(Op::Structured(Structured::Index))
            && made.args == [base_entry]
            && self.are_aliases(base, view)
            && !self.is_stale(view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_assignment_makes_the_other_aliases_stale() {
        let mut aliases = Aliases::default();
        let base = aliases.add();
        let view = aliases.add_view(base);
        let other = aliases.add();
        assert_eq!(aliases.assign(base, 7, "first"), None);
        assert!(!aliases.is_stale(base) && aliases.is_stale(view) && !aliases.is_stale(other));
        let later = aliases.add_view(base);
        assert!(!aliases.is_stale(later));
        assert_eq!((aliases.assigned(base), aliases.assigned(view)), (Some(&(7, "first")), None));
        assert_eq!(aliases.assign(base, 8, "second"), Some("first"));
        assert_eq!(aliases.values().collect::<Vec<_>>(), [&"second"]);
        assert_eq!(aliases.take(base), Some("second"));
        assert_eq!(aliases.forget(), Vec::<&str>::new());
    }

    #[test]
    fn a_view_of_a_stale_variable_is_stale() {
        let mut aliases = Aliases::default();
        let base = aliases.add();
        let view = aliases.add_view(base);
        aliases.assign(base, 1, ());
        let view_of_view = aliases.add_view(view);
        assert!(aliases.is_stale(view_of_view));
    }

    #[test]
    fn an_item_is_current_until_the_base_is_changed() {
        let mut tape = Tape::<Option<f64>, ()>::default();
        let x = tape.watch(Some(1.0));
        let item = tape.push(Op::Structured(Structured::Index), &[x], None, None);
        let flipped = tape.push(Op::Structured(Structured::Flip), &[x], None, None);
        let mut aliases = Aliases::default();
        let base = aliases.add();
        let (view, flip) = (aliases.add_view(base), aliases.add_view(base));
        assert!(aliases.is_current_item(&tape, (base, x), (view, item)));
        assert!(!aliases.is_current_item(&tape, (base, x), (flip, flipped)));
        assert!(!aliases.is_current_item(&tape, (base, item), (view, item)));
        aliases.assign(view, item, ()); // `x[key] += y` changes the view first
        assert!(aliases.is_current_item(&tape, (base, x), (view, item)) && aliases.is_stale(base));
        aliases.assign(base, item, ());
        assert!(!aliases.is_current_item(&tape, (base, x), (view, item)));
        let stranger = aliases.add();
        assert!(!aliases.is_current_item(&tape, (stranger, x), (view, item)));
    }

    #[test]
    fn elementwise_results_are_new_arrays_but_for_the_parts_of_complex_ones() {
        let shared: Vec<&str> = Op::all().filter(|op| sharing(*op) != Sharing::Never).map(Op::name).collect();
        let expected = ["real", "imag", "conj", "flip", "reshape", "permute_dims", "expand_dims", "squeeze"];
        assert_eq!(shared, [&expected[..], &["broadcast_to", "index"]].concat());
    }

    /// A step of a program on variables: the variable and the operation.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Add,
        View(usize),
        Assign(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![Just(Step::Add), (0usize..64).prop_map(Step::View), (0usize..64).prop_map(Step::Assign)];
        prop::collection::vec(step, 0..40)
    }

    proptest! {
        /// The model: each variable has the contents of its memory as it last saw them.
        #[test]
        fn a_variable_is_stale_where_its_memory_was_changed_by_another(steps in steps()) {
            let mut aliases = Aliases::default();
            let (mut ids, mut model): (Vec<AliasId>, Vec<(usize, u32)>) = (Vec::new(), Vec::new());
            let mut contents: Vec<u32> = Vec::new();
            for (entry, step) in (1..).zip(steps) {
                match step {
                    Step::Add => {
                        ids.push(aliases.add());
                        model.push((contents.len(), 0));
                        contents.push(0);
                    }
                    Step::View(of) if !ids.is_empty() => {
                        let of = of % ids.len();
                        ids.push(aliases.add_view(ids[of]));
                        model.push(model[of]);
                    }
                    Step::Assign(to) if !ids.is_empty() => {
                        let to = to % ids.len();
                        let before = aliases.assigned(ids[to]).map(|(_, value)| *value);
                        prop_assert_eq!(aliases.assign(ids[to], entry, entry), before);
                        contents[model[to].0] = entry;
                        model[to].1 = entry;
                    }
                    Step::View(_) | Step::Assign(_) => {}
                }
                for (id, (memory, seen)) in ids.iter().zip(&model) {
                    prop_assert_eq!(aliases.is_stale(*id), contents[*memory] != *seen);
                }
                for (a, b) in ids.iter().zip(&ids[1.min(ids.len())..]) {
                    let memory = |id: &AliasId| model[ids.iter().position(|other| other == id).expect("it is there")].0;
                    prop_assert_eq!(aliases.are_aliases(*a, *b), memory(a) == memory(b));
                }
            }
        }
    }
}
