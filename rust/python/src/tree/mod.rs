//! Trees: nested containers whose leaves are read, replaced and named by key paths.

mod child;
mod container;
mod flatten;
mod functions;
mod kind;
mod path;
mod select;
mod structure;
mod zip;

#[allow(unused_imports, reason = "the interface for the rest of this crate")]
pub use {
    flatten::flatten,
    functions::register,
    path::{KeyPath, Replacements, get, is_writable, parse, set},
    select::{is_inexact, key_paths, parameters},
    structure::Structure,
    zip::leaves_like,
};
