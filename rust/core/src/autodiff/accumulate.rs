//! Sums of cotangents: an entry that is used several times receives one term from each use.

use super::tape::Value;

/// Adds a term to the sum of an entry: scalars here, anything else by `add`.
pub(super) fn accumulate<V: Value, E>(sum: &mut V, term: V, add: impl FnOnce(V, V) -> Result<V, E>) -> Result<(), E> {
    if let (Some(a), Some(b)) = (sum.number(), term.number()) {
        *sum = V::from_number(a + b);
        return Ok(());
    }
    *sum = match (sum.scalar(), term.scalar()) {
        (Some(a), Some(b)) => V::from_scalar(a + b),
        _ if sum.is_absent() => term,
        _ => add(std::mem::replace(sum, V::absent()), term)?,
    };
    Ok(())
}
