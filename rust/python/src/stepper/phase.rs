//! The phases of a step, which tell its progress to other threads and forked children.

use std::sync::atomic::{AtomicBool, AtomicU8};

/// The phases of a step: no step, checked, writing; or a step that panicked while writing.
pub(super) const IDLE: u8 = 0;
pub(super) const CHECKING: u8 = 1;
pub(super) const WRITING: u8 = 2;
pub(super) const BROKEN: u8 = 3;

/// The shared state of a step, which other threads may read and change: its phase, and whether slots were exposed.
#[derive(Clone, Copy)]
pub(super) struct Progress<'a> {
    pub(super) phase: &'a AtomicU8,
    pub(super) exposed: &'a AtomicBool,
}
