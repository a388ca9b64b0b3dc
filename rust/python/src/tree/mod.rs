//! Trees: nested containers whose leaves are looked at, replaced and named by key paths.

mod container;
mod flatten;
mod functions;
mod joint;
mod kind;
mod path;
mod select;
mod step;
mod structure;

#[allow(unused_imports, reason = "the interface for the rest of this crate")]
pub use {
    flatten::flatten,
    functions::register,
    joint::leaves_like,
    path::{KeyPath, Replacements, get, is_writable, parse, set},
    select::{is_inexact, key_paths, parameters},
    structure::Structure,
};
