//! Macros that define the methods of instruction sets as expressions of intrinsics.

/// Methods that are instructions on registers, without memory.
macro_rules! detected {
    ($(fn $name:ident($($arg:ident: $t:ty),*) -> $r:ty = $e:expr;)*) => {$(
        #[inline(always)]
        fn $name($($arg: $t),*) -> $r {
            // SAFETY: register arithmetic only, and the instruction set was detected.
            unsafe { $e }
        }
    )*};
}

/// Methods that are instructions on memory.
macro_rules! in_memory {
    ($(fn $name:ident($($arg:ident: $t:ty),*) -> $r:ty = $e:expr;)*) => {$(
        #[inline(always)]
        unsafe fn $name($($arg: $t),*) -> $r {
            // SAFETY: the caller promises the memory, at any alignment, and the instruction set was detected.
            unsafe { $e }
        }
    )*};
}

pub(super) use {detected, in_memory};
