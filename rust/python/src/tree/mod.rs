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

pub use {
    flatten::flatten,
    kind::{TRAINABLE, type_info},
    path::{Key, KeyPath, Replacements, tree_path},
    select::{is_array, is_inexact, tree_key_paths},
    structure::Structure,
};
