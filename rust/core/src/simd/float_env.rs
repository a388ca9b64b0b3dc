//! The floating-point environment. Kernels run in the default one of IEEE 754: rounding to nearest, subnormal numbers
//! kept, no traps. Some libraries change it for a thread and the threads that it starts; the previous settings are
//! restored afterwards.

use imp::{STANDARD, read, write};

/// A guard that restores the previous settings when it is dropped.
pub(super) struct Found(u64);

/// Sets the standard settings.
#[inline]
pub(super) fn standard() -> Found {
    let found = read();
    if found != STANDARD {
        write(STANDARD);
    }
    Found(found)
}

impl Drop for Found {
    #[inline]
    fn drop(&mut self) {
        if self.0 != STANDARD {
            write(self.0);
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod imp {
    use std::arch::asm;

    /// `MXCSR` without the flags that any arithmetic raises: all traps off.
    pub const STANDARD: u64 = 0x1f80;
    const FLAGS: u32 = 0x3f;

    #[inline]
    pub fn read() -> u64 {
        let mut word = 0u32;
        // SAFETY: writes the four bytes of `word`.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
        u64::from(word & !FLAGS)
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the result of `read` has 32 bits")]
    pub fn write(word: u64) {
        let word = word as u32;
        // SAFETY: the word is the standard one or was in this register before.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags)) };
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod imp {
    use std::arch::asm;

    /// `FPCR`.
    pub const STANDARD: u64 = 0;

    #[inline]
    pub fn read() -> u64 {
        let word: u64;
        // SAFETY: reads a register.
        unsafe { asm!("mrs {}, fpcr", out(reg) word, options(nomem, nostack, preserves_flags)) };
        word
    }

    #[inline]
    pub fn write(word: u64) {
        // SAFETY: the word is the standard one or was in this register before.
        unsafe { asm!("msr fpcr, {}", in(reg) word, options(nostack, preserves_flags)) };
    }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod imp {
    pub const STANDARD: u64 = 0;

    pub fn read() -> u64 {
        STANDARD
    }

    pub fn write(_: u64) {}
}
