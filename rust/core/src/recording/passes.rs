//! Passes that give a shorter program of the same results: each is a function from a program to a program.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::hash::Words;
use super::program::{Entry, Id, Origin, Program, id_of};

impl Program {
    /// The program without calls and constants whose values nothing needs. Inputs and checks stay.
    #[must_use]
    pub fn without_dead_entries(&self) -> Self {
        let mut is_needed = vec![false; self.entries.len()];
        for output in &self.outputs {
            is_needed[*output as usize] = true;
        }
        for (id, entry) in self.entries.iter().enumerate().rev() {
            is_needed[id] |= matches!(entry.origin, Origin::Input | Origin::Check);
            if is_needed[id] {
                entry.args.iter().for_each(|arg| is_needed[*arg as usize] = true);
            }
        }
        self.rebuilt(|id, _, _| if is_needed[id] { Fate::Kept } else { Fate::Dropped })
    }

    /// The program in which calls that give their first argument are that argument: `is_identity` tells which ones do, of the numbers of
    /// calls. Results of the program stay calls: a caller may see whether two of them are one object.
    #[must_use]
    pub fn without_identities(&self, is_identity: impl Fn(u32) -> bool) -> Self {
        self.rebuilt(|id, entry, _| match (entry.origin, entry.args.first()) {
            (Origin::Call { .. }, Some(first)) if is_identity(entry.number) && !self.outputs.contains(&id_of(id)) => {
                Fate::Merged(*first)
            }
            _ => Fate::Kept,
        })
    }

    /// The program in which calls of one function with the same arguments, and equal checks, are computed once.
    ///
    /// Results of the program stay apart: a caller may write to an array that it was given, and not see the change in another.
    /// So do the arguments of calls of which a result may be a view: those of a call that is not elementwise.
    #[must_use]
    pub fn without_common_entries(&self) -> Self {
        let is_apart = self.apart();
        let mut known: HashMap<Entry, Id, Words> = HashMap::default();
        self.rebuilt(|id, entry, new| {
            let merges = matches!(entry.origin, Origin::Call { .. } | Origin::Check) && !is_apart[id];
            if !merges {
                return Fate::Kept;
            }
            if let Some(same) = known.get(entry) {
                return Fate::Merged(*same);
            }
            known.insert(entry.clone(), new);
            Fate::Kept
        })
    }

    /// The program in which calls whose arguments are constants are constants. `folded` gives the number of the value of such a call, of
    /// its id and its entry here; None where the call is better left to each replay.
    ///
    /// Results of the program, and what they may be views of, are computed anew by each replay: a caller may write to them.
    #[must_use]
    pub fn with_folded_constants(&self, mut folded: impl FnMut(Id, &Entry, &[u32]) -> Option<u32>) -> Self {
        let is_apart = self.apart();
        let mut numbers: Vec<Option<u32>> = Vec::with_capacity(self.entries.len());
        for (id, entry) in (0..).zip(&self.entries) {
            let is_call = matches!(entry.origin, Origin::Call { .. }) && !is_apart[id as usize];
            let number = match entry.origin {
                Origin::Constant => Some(entry.number),
                Origin::Call { .. } if is_call => {
                    let args: Option<Vec<u32>> = entry.args.iter().map(|arg| numbers[*arg as usize]).collect();
                    args.filter(|args| !args.is_empty()).and_then(|args| folded(id, entry, &args))
                }
                Origin::Call { .. } | Origin::Input | Origin::Check => None,
            };
            numbers.push(number);
        }
        let entries = self.entries.iter().zip(numbers).map(|(entry, number)| match number {
            Some(number) => Entry { origin: Origin::Constant, number, args: SmallVec::new() },
            None => entry.clone(),
        });
        Self { entries: entries.collect(), outputs: self.outputs.clone() }
    }

    /// The program in which calls whose results may be views are of the groups that `group` gives for their numbers, but for those of which a
    /// result of the program may be a view: a group computes new values. Each reader of the group has a view of its own, which is of the group:
    /// no view of a group is read outside of it.
    #[must_use]
    pub fn with_grouped_views(&self, group: impl Fn(u32) -> Option<u32>) -> Self {
        const LONGEST: u32 = 16;
        let is_apart = self.apart();
        // How many views follow one another, for those that readers take with them.
        let mut following = vec![0; self.entries.len()];
        let (mut entries, mut renamed): (Vec<Entry>, Vec<Id>) = (Vec::new(), vec![Id::MAX; self.entries.len()]);
        for (id, entry) in self.entries.iter().enumerate() {
            let own = match entry.origin {
                Origin::Call { group, .. } => group,
                Origin::Input | Origin::Constant | Origin::Check => None,
            };
            let is_call = matches!(entry.origin, Origin::Call { group: None, .. });
            if let ([first, rest @ ..], true) = (&entry.args[..], is_call && !is_apart[id])
                && group(entry.number).is_some()
                && following[*first as usize] < LONGEST
                && rest.iter().all(|arg| following[*arg as usize] == 0)
            {
                following[id] = following[*first as usize] + 1;
                continue;
            }
            let mut args = SmallVec::with_capacity(entry.args.len());
            for arg in &entry.args {
                let (mut views, mut of) = (Vec::new(), *arg);
                while following[of as usize] > 0 {
                    views.push(of);
                    of = self.entries[of as usize].args[0];
                }
                let mut value = renamed[of as usize];
                for view in views.into_iter().rev() {
                    let Entry { number, args, .. } = &self.entries[view as usize];
                    let group = group(*number).filter(|of| Some(*of) == own);
                    // Readers of no group, or of another one, have one view.
                    if group.is_none() && renamed[view as usize] != Id::MAX {
                        value = renamed[view as usize];
                        continue;
                    }
                    let rest = args[1..].iter().map(|arg| renamed[*arg as usize]);
                    let args = std::iter::once(value).chain(rest).collect();
                    value = id_of(entries.len());
                    if group.is_none() {
                        renamed[view as usize] = value;
                    }
                    entries.push(Entry { origin: Origin::Call { group, reduces: false }, number: *number, args });
                }
                args.push(value);
            }
            renamed[id] = id_of(entries.len());
            entries.push(Entry { args, ..*entry });
        }
        let outputs = self.outputs.iter().map(|output| renamed[*output as usize]).collect();
        Self { entries, outputs }
    }

    /// For each entry, whether it is a result of the program, or a result may be a view of it: the result of a call that is not elementwise may
    /// be one of its arguments.
    fn apart(&self) -> Vec<bool> {
        let mut is_apart = vec![false; self.entries.len()];
        for output in &self.outputs {
            is_apart[*output as usize] = true;
        }
        for (id, entry) in self.entries.iter().enumerate().rev() {
            if is_apart[id] && matches!(entry.origin, Origin::Call { group: None, .. }) {
                entry.args.iter().for_each(|arg| is_apart[*arg as usize] = true);
            }
        }
        is_apart
    }

    /// The program in which the outcome for an entry is decided by `fate`, a function of its id, of the entry with its new
    /// arguments, and of its new id.
    fn rebuilt(&self, mut fate: impl FnMut(usize, &Entry, Id) -> Fate) -> Self {
        let (mut entries, mut renamed): (Vec<Entry>, Vec<Id>) = (Vec::new(), Vec::new());
        for (id, entry) in self.entries.iter().enumerate() {
            let args = entry.args.iter().map(|arg| renamed[*arg as usize]).collect();
            let entry = Entry { args, ..*entry };
            let new = id_of(entries.len());
            renamed.push(match fate(id, &entry, new) {
                Fate::Kept => {
                    entries.push(entry);
                    new
                }
                Fate::Merged(same) => same,
                Fate::Dropped => Id::MAX, // which nothing reads
            });
        }
        let outputs = self.outputs.iter().map(|output| renamed[*output as usize]).collect();
        Self { entries, outputs }
    }
}

/// The outcome of a pass for an entry.
enum Fate {
    Kept,
    Merged(Id),
    Dropped,
}

#[cfg(test)]
mod tests {
    use super::super::program::tests::{CALL, entry};
    use super::*;

    const ELEMENTWISE: Origin = Origin::Call { group: Some(0), reduces: false };

    #[test]
    fn dead_entries_are_dropped_and_checks_keep_what_they_read() {
        let entries = vec![
            entry(Origin::Input, 0, &[]),
            entry(Origin::Constant, 0, &[]),
            entry(CALL, 0, &[0, 1]), // dead
            entry(CALL, 1, &[0]),
            entry(Origin::Check, 0, &[3]),
            entry(CALL, 2, &[0]),
        ];
        let program = Program::new(entries, vec![5]).unwrap().without_dead_entries();
        let expected = vec![
            entry(Origin::Input, 0, &[]),
            entry(CALL, 1, &[0]),
            entry(Origin::Check, 0, &[1]),
            entry(CALL, 2, &[0]),
        ];
        assert_eq!(program, Program { entries: expected, outputs: vec![3] });
    }

    #[test]
    fn identities_are_their_arguments_but_for_results() {
        let entries = vec![
            entry(Origin::Input, 0, &[]),
            entry(CALL, 7, &[0]), // an identity
            entry(CALL, 7, &[1]), // another
            entry(ELEMENTWISE, 1, &[2, 1]),
            entry(CALL, 7, &[3]), // a result
            entry(Origin::Check, 7, &[2]),
        ];
        let program = Program::new(entries, vec![4]).unwrap().without_identities(|number| number == 7);
        let expected = vec![
            entry(Origin::Input, 0, &[]),
            entry(ELEMENTWISE, 1, &[0, 0]),
            entry(CALL, 7, &[1]),
            entry(Origin::Check, 7, &[0]),
        ];
        assert_eq!(program, Program { entries: expected, outputs: vec![2] });
    }

    #[test]
    fn common_entries_are_computed_once_but_for_results() {
        let entries = vec![
            entry(Origin::Input, 0, &[]),
            entry(ELEMENTWISE, 0, &[0]),
            entry(ELEMENTWISE, 0, &[0]),
            entry(ELEMENTWISE, 1, &[1, 2]),
            entry(ELEMENTWISE, 1, &[1, 1]),
            entry(ELEMENTWISE, 0, &[0]),
        ];
        let program = Program::new(entries, vec![3, 4, 5]).unwrap().without_common_entries();
        let expected = vec![
            entry(Origin::Input, 0, &[]),
            entry(ELEMENTWISE, 0, &[0]),
            entry(ELEMENTWISE, 1, &[1, 1]),
            entry(ELEMENTWISE, 1, &[1, 1]),
            entry(ELEMENTWISE, 0, &[0]),
        ];
        assert_eq!(program, Program { entries: expected, outputs: vec![2, 3, 4] });
    }

    #[test]
    fn calls_of_constants_are_folded_but_for_results_and_what_is_left() {
        let entries = vec![
            entry(Origin::Input, 0, &[]),
            entry(Origin::Constant, 0, &[]),
            entry(ELEMENTWISE, 0, &[1, 1]), // folded to constant 10
            entry(CALL, 1, &[2]),           // folded to constant 11, from the folded one
            entry(ELEMENTWISE, 2, &[3, 0]),
            entry(ELEMENTWISE, 3, &[1]), // better left
            entry(ELEMENTWISE, 0, &[4, 5]),
            entry(ELEMENTWISE, 4, &[1]), // a result may be a view of it
            entry(CALL, 5, &[7]),
            entry(CALL, 6, &[]), // of no constants
        ];
        let mut asked = Vec::new();
        let program = Program::new(entries.clone(), vec![6, 8, 9]).unwrap().with_folded_constants(|id, entry, args| {
            asked.push((id, entry.number, args.to_vec()));
            [(2, 10), (3, 11)].iter().find(|(folded, _)| *folded == id).map(|(_, number)| *number)
        });
        let mut expected = entries;
        expected[2] = entry(Origin::Constant, 10, &[]);
        expected[3] = entry(Origin::Constant, 11, &[]);
        assert_eq!(program, Program { entries: expected, outputs: vec![6, 8, 9] });
        assert_eq!(asked, [(2, 0, vec![0, 0]), (3, 1, vec![10]), (5, 3, vec![0])]);
    }

    #[test]
    fn views_are_of_a_group_where_no_result_may_be_one_of_them() {
        let entries = vec![
            entry(Origin::Input, 0, &[]),
            entry(CALL, 1, &[0]), // read by a new value alone
            entry(ELEMENTWISE, 2, &[1]),
            entry(CALL, 1, &[2]), // a result is a view of it
            entry(CALL, 1, &[3]),
            entry(CALL, 3, &[2]), // of no group
            entry(ELEMENTWISE, 2, &[5]),
        ];
        let program = Program::new(entries.clone(), vec![4, 6]).unwrap();
        let mut expected = entries;
        expected[1].origin = ELEMENTWISE;
        let found = program.with_grouped_views(|number| (number == 1).then_some(0));
        assert_eq!(found, Program { entries: expected, outputs: vec![4, 6] });
    }

    #[test]
    fn each_reader_has_a_view_of_its_own_in_its_group() {
        let entries = vec![
            entry(Origin::Input, 0, &[]),
            entry(CALL, 1, &[0]), // a view
            entry(CALL, 1, &[1]), // a view of it
            entry(ELEMENTWISE, 2, &[2, 0]),
            entry(CALL, 3, &[2, 1]), // of no group
            entry(ELEMENTWISE, 2, &[1, 3]),
            entry(ELEMENTWISE, 2, &[4, 5]),
        ];
        let program = Program::new(entries, vec![6]).unwrap();
        let found = program.with_grouped_views(|number| (number == 1).then_some(0));
        let expected = vec![
            entry(Origin::Input, 0, &[]),
            entry(ELEMENTWISE, 1, &[0]),
            entry(ELEMENTWISE, 1, &[1]),
            entry(ELEMENTWISE, 2, &[2, 0]),
            entry(CALL, 1, &[0]),
            entry(CALL, 1, &[4]),
            entry(CALL, 3, &[5, 4]),
            entry(ELEMENTWISE, 1, &[0]),
            entry(ELEMENTWISE, 2, &[7, 3]),
            entry(ELEMENTWISE, 2, &[6, 8]),
        ];
        assert_eq!(found, Program { entries: expected, outputs: vec![9] });
    }

    #[test]
    fn arguments_of_views_stay_apart() {
        let entries = vec![
            entry(Origin::Input, 0, &[]),
            entry(ELEMENTWISE, 0, &[0]),
            entry(ELEMENTWISE, 0, &[0]),
            entry(CALL, 1, &[1]),
            entry(CALL, 1, &[2]),
        ];
        let program = Program::new(entries, vec![3, 4]).unwrap();
        assert_eq!(program.without_common_entries(), program);
    }
}
