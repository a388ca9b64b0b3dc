//! Sums of cotangents: an entry that is used several times receives one term from each use.

use super::tape::Value;

/// Adds a term to the sum of an entry: numbers here, anything else by `add`.
pub(super) fn accumulate<V: Value, E>(sum: &mut V, term: V, add: impl FnOnce(V, V) -> Result<V, E>) -> Result<(), E> {
    *sum = match (sum.number(), term.number()) {
        (Some(a), Some(b)) => V::from_number(a + b),
        _ if sum.is_absent() => term,
        _ => add(std::mem::replace(sum, V::absent()), term)?,
    };
    Ok(())
}
