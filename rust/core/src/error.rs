//! The errors: one variant per mistake of a caller. The message names the place (key path), the mistake, and the
//! expected input.

use std::fmt;

macro_rules! errors {
    ($($(#[$doc:meta])* $variant:ident;)*) => {
        /// A mistake of the caller's, found before anything was changed.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Error { $($(#[$doc])* $variant(String)),* }

        impl Error {
            /// The message: the key path, the mistake, and what is expected.
            #[must_use]
            pub fn message(&self) -> &str {
                match self { $(Self::$variant(message) => message),* }
            }
        }
    };
}

errors! {
    /// A key path names nothing in the tree, or cannot be parsed.
    KeyPath;
    /// Two trees differ in structure, or a tree is not a tree (a cycle).
    Structure;
    /// A shape is not the expected one.
    Shape;
    /// A dtype is not the expected one, or cannot be differentiated or updated.
    Dtype;
    /// Two different arrays that an update would write or read share memory.
    Alias;
    /// Memory cannot be used: read-only where a write is asked for, or of a layout that no kernel reads.
    Memory;
    /// An update rule or a derivative rule does something that no kernel can do.
    Rule;
    /// A variable was used after its tape ended.
    TapeEnded;
    /// A variable was used on a thread other than its tape's.
    TapeThread;
    /// The derivative that was asked for does not exist.
    Derivative;
    /// A gradient has infinities or NaN where they are refused.
    NonFinite;
    /// A saved state does not fit what it is loaded into, or is none.
    State;
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Error {}

/// The result of an operation that may fail by a mistake of the caller's.
pub type Result<T> = std::result::Result<T, Error>;
