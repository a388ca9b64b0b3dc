//! The structures of XLA's foreign function interface (FFI), as in its C API of version 0, up to the last field that
//! is used here.
//!
//! Each begins with its size, which a reader checks before it reads a field: later minor versions add fields at the
//! end.

use std::ffi::{c_char, c_int, c_void};
use std::mem::{offset_of, size_of};

/// A structure that begins with its size.
///
/// # Safety
/// The structure is `repr(C)`, its first field is a `usize`, and any bits are valid for its fields.
pub unsafe trait Structure {
    /// The minimum size in bytes: up to the end of the last field that is used.
    const SIZE: usize;
}

macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident, $last:ident: $last_type:ty, { $($field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        pub struct $name {
            pub(super) size: usize,
            $(pub(super) $field: $type,)*
            pub(super) $last: $last_type,
        }

        // SAFETY: `repr(C)`, with the size first; pointers, numbers and optional functions, of which any bits are valid.
        unsafe impl Structure for $name {
            const SIZE: usize = offset_of!($name, $last) + size_of::<$last_type>();
        }
    )*};
}

structures! {
    /// The head of an extension of another structure, in a linked list.
    Extension, next: *const Extension, { kind: c_int, }

    /// The extension that receives the version of a handler.
    MetadataExtension, metadata: *mut Metadata, { kind: c_int, next: *const Extension, }

    /// A version of the interface.
    Version, minor: c_int, { extensions: *const Extension, major: c_int, }

    /// The metadata of a handler.
    Metadata, traits: u32, { version: Version, }

    /// The head of the table of functions.
    Api, create_error: Option<unsafe extern "C" fn(*mut ErrorArguments) -> *mut Error>, {
        extensions: *const Extension,
        version: Version,
        internal: *const c_void,
    }

    /// The arguments of the function that creates an error.
    ErrorArguments, code: c_int, { extensions: *const Extension, message: *const c_char, }

    /// An array.
    Array, dimensions: *const i64, {
        extensions: *const Extension,
        dtype: c_int,
        data: *mut u8,
        rank: i64,
    }

    /// The operands of a call, or its results.
    Arrays, items: *const *const Array, { extensions: *const Extension, count: i64, kinds: *const c_int, }

    /// The attributes of a call, in the order of their names.
    Attributes, values: *const *const c_void, {
        extensions: *const Extension,
        count: i64,
        kinds: *const c_int,
        names: *const *const Bytes,
    }

    /// A call.
    CallFrame, attributes: Attributes, {
        extensions: *const Extension,
        api: *const Api,
        context: *const c_void,
        stage: c_int,
        operands: Arrays,
        results: Arrays,
    }
}

/// An error that XLA creates, and frees.
#[repr(C)]
pub struct Error {
    _opaque: [u8; 0],
}

/// A string of bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    pub data: *const u8,
    pub length: usize,
}

/// The major version of the interface with these layouts, and the minor version from which they were copied.
pub const VERSION: (c_int, c_int) = (0, 3);
/// The kind of `MetadataExtension`.
pub const METADATA: c_int = 1;
/// The stage that executes a call.
pub const EXECUTE: c_int = 3;
/// The kind of an operand or a result that is an array.
pub const ARRAY: c_int = 1;
/// The kind of an attribute that is a string.
pub const STRING: c_int = 4;
/// The codes of errors.
pub const INVALID_ARGUMENT: c_int = 3;
pub const INTERNAL: c_int = 13;
