//! The errors: one variant per mistake of a caller. The message names the place (key path), the mistake, and the
//! expected input.

use std::fmt;

macro_rules! errors {
    ($($(#[$doc:meta])* $variant:ident;)*) => {
        /// An error of the caller, detected before anything is changed.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Error { $($(#[$doc])* $variant(String)),* }

        impl Error {
            /// The message: the key path, the mistake, and what is expected.
            #[must_use]
            pub fn message(&self) -> &str {
                match self { $(Self::$variant(message) => message),* }
            }

            /// The error with a place before its message.
            #[must_use]
            pub fn at(self, place: impl fmt::Display) -> Self {
                match self { $(Self::$variant(message) => Self::$variant(format!("{place}: {message}"))),* }
            }
        }
    };
}

errors! {
    /// A key path does not exist in the tree, or cannot be parsed.
    KeyPath;
    /// Two trees differ in structure, or a tree contains a cycle.
    Structure;
    /// A shape is not the expected one.
    Shape;
    /// A dtype is not the expected one, or cannot be differentiated or updated.
    Dtype;
    /// Different arrays of an update, at least one of them written, share memory.
    Alias;
    /// Memory cannot be used: it is read-only and must be written, or no kernel reads its layout.
    Memory;
    /// An update rule or a derivative rule is invalid, or cannot be traced into a kernel.
    Rule;
    /// A variable was used after its tape ended.
    TapeEnded;
    /// A variable was used on another thread than that of its tape.
    TapeThread;
    /// The derivative does not exist.
    Derivative;
    /// A gradient has infinities or NaN, with `nonfinite="raise"`.
    NonFinite;
    /// A saved state is invalid, or does not match the optimizer that loads it.
    State;
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Error {}

/// The result of a fallible operation.
pub type Result<T> = std::result::Result<T, Error>;
