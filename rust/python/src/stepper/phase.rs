//! The phases of a step, by which another thread or a forked child can tell its progress.

use std::sync::atomic::{AtomicBool, AtomicU8};

/// The phases of a step: none is under way, all is checked, arrays are written; or one ended in a panic while it wrote.
pub(super) const IDLE: u8 = 0;
pub(super) const CHECKING: u8 = 1;
pub(super) const WRITING: u8 = 2;
pub(super) const BROKEN: u8 = 3;

/// The part of a step under way that others see, and may change during it: its phase, and whether slots were handed out.
#[derive(Clone, Copy)]
pub(super) struct Progress<'a> {
    pub(super) phase: &'a AtomicU8,
    pub(super) exposed: &'a AtomicBool,
}
