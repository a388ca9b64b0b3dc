//! Structures and key paths, as values.
//!
//! A [`KeyPath`] names one part of a tree and prints as `layers.0.weight`; a [`Structure`] is a tree without its
//! leaves. Nothing here recurses, so that a tree may be as deep as memory allows.

mod path;
mod structure;
mod text;

pub use path::{DictKey, Key, KeyPath};
pub use structure::{Container, Node, Structure, list_keys};
pub use text::{Segment, parse, unquoted};
