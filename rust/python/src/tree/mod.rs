//! Trees of Python containers: their classes (`kind`, `container`, `mappings`, `child`), flattening and structures (`flatten`,
//! `structure`, `zip`), key paths and selection (`path`, `select`), and the functions that Python calls (`functions`).

mod child;
mod container;
mod flatten;
pub mod functions;
mod kind;
mod mappings;
mod path;
mod select;
mod structure;
mod zip;

#[allow(unused_imports, reason = "the interface for the rest of this crate")]
pub use {
    flatten::flatten,
    kind::{TRAINABLE, type_info},
    path::{Key, KeyPath, Replacements, get, is_writable, parse, set},
    select::{is_inexact, key_paths, parameters},
    structure::Structure,
    zip::leaves_like,
};
