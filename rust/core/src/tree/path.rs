//! Key paths: a path shares its beginning with its siblings, so all paths of a tree take memory linear in its size.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The key of a dict item.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DictKey {
    /// An int.
    Number(i64),
    /// A str.
    Text(Arc<str>),
}

/// One step down a tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A field of a dataclass, a named tuple or a registered class.
    Field(Arc<str>),
    /// An item of a list or a tuple.
    Index(usize),
    /// A value of a dict.
    Item(DictKey),
}

/// The path from the root of a tree to one of its parts. The empty path is the root itself.
///
/// Comparing, hashing and going to the parent touch no string that two paths share; `Ord` is by keys, from the root on.
#[derive(Clone, Default)]
pub struct KeyPath(Option<Arc<Link>>);

struct Link {
    parent: KeyPath,
    key: Key,
    len: usize,
    hash: u64,
}

impl KeyPath {
    /// The path of the root.
    #[must_use]
    pub const fn root() -> Self {
        Self(None)
    }

    /// The path of the child under `key`.
    #[must_use]
    pub fn child(&self, key: Key) -> Self {
        let mut hasher = DefaultHasher::new();
        (self.hash_value(), &key).hash(&mut hasher);
        let (len, hash) = (self.len() + 1, hasher.finish());
        Self(Some(Arc::new(Link { parent: self.clone(), key, len, hash })))
    }

    /// The path without its last key; the root has no parent.
    #[must_use]
    pub fn parent(&self) -> Option<&Self> {
        self.0.as_deref().map(|link| &link.parent)
    }

    /// The last key; the root has none.
    #[must_use]
    pub fn last(&self) -> Option<&Key> {
        self.0.as_deref().map(|link| &link.key)
    }

    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.as_deref().map_or(0, |link| link.len)
    }

    /// Whether this is the root.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The keys, from the root on.
    #[must_use]
    pub fn keys(&self) -> Vec<&Key> {
        let mut keys: Vec<_> = self.upwards().map(|link| &link.key).collect();
        keys.reverse();
        keys
    }

    /// The path extended by the keys of `other`.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        other.keys().into_iter().fold(self.clone(), |path, key| path.child(key.clone()))
    }

    /// The path as the subject of a message: the keys, or "the root".
    #[must_use]
    pub fn place(&self) -> String {
        if self.is_empty() { "the root".into() } else { self.to_string() }
    }

    fn upwards(&self) -> impl Iterator<Item = &Link> {
        std::iter::successors(self.0.as_deref(), |link| link.parent.0.as_deref())
    }

    fn hash_value(&self) -> u64 {
        self.0.as_deref().map_or(0, |link| link.hash)
    }

    fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Drop for KeyPath {
    /// A loop, since recursion on a long path would overflow the stack.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(link) = next {
            next = Arc::into_inner(link).and_then(|mut link| link.parent.0.take());
        }
    }
}

impl PartialEq for KeyPath {
    fn eq(&self, other: &Self) -> bool {
        let (mut a, mut b) = (self, other);
        if a.len() != b.len() || a.hash_value() != b.hash_value() {
            return false;
        }
        while !a.is_same(b) {
            match (&a.0, &b.0) {
                (Some(x), Some(y)) if x.key == y.key => (a, b) = (&x.parent, &y.parent),
                _ => return false,
            }
        }
        true
    }
}

impl Eq for KeyPath {}

impl Hash for KeyPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash_value());
    }
}

impl Ord for KeyPath {
    fn cmp(&self, other: &Self) -> Ordering {
        self.keys().cmp(&other.keys())
    }
}

impl PartialOrd for KeyPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FromIterator<Key> for KeyPath {
    fn from_iter<I: IntoIterator<Item = Key>>(keys: I) -> Self {
        keys.into_iter().fold(Self::root(), |path, key| path.child(key))
    }
}

impl fmt::Debug for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPath({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(indices: &[usize]) -> KeyPath {
        indices.iter().copied().map(Key::Index).collect()
    }

    #[test]
    fn equal_keys_make_equal_paths() {
        assert_eq!(path(&[1, 2]), path(&[1, 2]));
        assert_ne!(path(&[1, 2]), path(&[2, 1]));
        assert_ne!(path(&[1]), path(&[1, 2]));
        let item = KeyPath::root().child(Key::Item(DictKey::Number(1)));
        assert_ne!(path(&[1]), item);
    }

    #[test]
    fn order_is_by_keys_from_the_root_on() {
        let mut paths = [path(&[1]), path(&[0, 5]), path(&[]), path(&[0])];
        paths.sort();
        assert_eq!(paths, [path(&[]), path(&[0]), path(&[0, 5]), path(&[1])]);
    }

    #[test]
    fn join_appends_and_parent_takes_away() {
        let joined = path(&[1]).join(&path(&[2, 3]));
        assert_eq!(joined, path(&[1, 2, 3]));
        assert_eq!(joined.parent(), Some(&path(&[1, 2])));
        assert_eq!(joined.last(), Some(&Key::Index(3)));
        assert_eq!(KeyPath::root().parent(), None);
    }

    #[test]
    fn a_path_of_a_million_keys_compares_and_drops() {
        let long: Vec<usize> = (0..1_000_000).collect();
        let (a, b) = (path(&long), path(&long));
        assert_eq!(a, b);
        assert_eq!(a.len(), long.len());
    }
}
