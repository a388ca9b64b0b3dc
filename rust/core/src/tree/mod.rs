//! Structures and key paths.
//!
//! A [`KeyPath`] names one part of a tree and prints as `layers.0.weight`; a [`Structure`] is a tree without its
//! leaves. No function here recurses, so that memory alone limits the depth of a tree.

mod path;
mod structure;
mod text;

pub use path::{DictKey, Key, KeyPath};
pub use structure::{Container, Node, Parent, Structure, Walk, list_keys};
pub use text::{Segment, parse, unquoted};
