//! The macros that make enums and functions of the rows of the tables of ops.

macro_rules! operators {
    ($($variant:ident $name:literal;)*) => {
        /// The Python operator of an op.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "a row of the table says it")]
        pub enum Operator { $($variant),* }

        impl Operator {
            /// The name in Python's module `operator`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

macro_rules! operator {
    (-) => {
        None
    };
    ($operator:ident) => {
        Some(Operator::$operator)
    };
}

/// An enum of ops, with the columns that both tables have.
macro_rules! ops {
    ($(#[$doc:meta])* $ops:ident { $($(#[$row:meta])* $variant:ident $name:literal $operator:tt [$($attribute:ident)*];)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "a row of the table says it")]
        #[repr(u8)]
        pub enum $ops { $($(#[$row])* $variant),* }

        impl $ops {
            /// Every op, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The Array API standard's name, where the standard has the function.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The Python operator of the op.
            #[must_use]
            pub const fn operator(self) -> Option<Operator> {
                match self { $(Self::$variant => operator!($operator)),* }
            }

            /// Whether the op has an attribute.
            #[must_use]
            pub const fn has(self, attribute: Attribute) -> bool {
                let attributes = match self { $(Self::$variant => 0 $(| Attribute::$attribute as u16)*),* };
                attributes & attribute as u16 != 0
            }
        }
    };
}

macro_rules! elementwise_ops {
    (@arity $a:ident) => { 1 };
    (@arity $a:ident $b:ident) => { 2 };
    (@arity $a:ident $b:ident $c:ident) => { 3 };
    (@visit $v:ident $variant:ident $a:ident) => { $v.unary(meaning::$variant) };
    (@visit $v:ident $variant:ident $a:ident $b:ident) => { $v.binary(meaning::$variant) };
    (@visit $v:ident $variant:ident $a:ident $b:ident $c:ident) => { $v.ternary(meaning::$variant) };
    (@meaning $op:ident $meaning:expr, $a:ident) => { elementwise_ops!(@impl Unary $op $meaning, $a); };
    (@meaning $op:ident $meaning:expr, $a:ident $b:ident) => { elementwise_ops!(@impl Binary $op $meaning, $a $b); };
    (@meaning $op:ident $meaning:expr, $a:ident $b:ident $c:ident) => {
        elementwise_ops!(@impl Ternary $op $meaning, $a $b $c);
    };
    (@impl $shape:ident $op:ident $meaning:expr, $($arg:ident)+) => {
        impl<L: Lane> $shape<L> for $op {
            const CODE: Code = Elementwise::$op.code();
            #[inline(always)]
            fn call(self, $($arg: L),+) -> L { $meaning }
        }
    };
    ($(#[doc = $doc:literal] $variant:ident $name:literal ($($arg:ident)+) $kind:ident $operator:tt [$($attribute:ident)*] = $meaning:expr;)*) => {
        ops! {
            /// An elementwise op.
            Elementwise { $(#[doc = $doc] $variant $name $operator [$($attribute)*];)* }
        }

        /// The meaning of each elementwise op, as a type: the argument of the visitor of [`Elementwise::visit`].
        pub mod meaning {
            use super::{Binary, Code, Elementwise, Lane, Ternary, Unary, math};
            $(
                #[doc = concat!("The meaning of `", $name, "`.")]
                #[derive(Clone, Copy, Debug, Default)]
                pub struct $variant;
                elementwise_ops!(@meaning $variant $meaning, $($arg)+);
            )*
        }

        impl Elementwise {
            /// The documentation of the row, a sentence: the value that the op computes.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self { $(Self::$variant => $doc.trim_ascii()),* }
            }

            /// The number of arguments.
            #[must_use]
            pub const fn arity(self) -> usize {
                match self { $(Self::$variant => elementwise_ops!(@arity $($arg)+)),* }
            }

            /// The kind of result.
            #[must_use]
            pub const fn kind(self) -> ResultKind {
                match self { $(Self::$variant => ResultKind::$kind),* }
            }

            /// The code of its meaning.
            #[must_use]
            pub const fn code(self) -> Code {
                if self.has(Attribute::Wide) {
                    Code::Wide
                } else if self.has(Attribute::Long) || self.has(Attribute::Vectorized) {
                    Code::Long
                } else {
                    Code::Short
                }
            }

            /// Calls `visitor` with the meaning of this op, so that a loop over elements contains no dispatch.
            #[inline(always)]
            pub fn visit<L: Lane, V: Visitor<L>>(self, visitor: V) -> V::Output {
                match self {
                    $(Self::$variant => elementwise_ops!(@visit visitor $variant $($arg)+)),*
                }
            }
        }
    };
}

macro_rules! structured_ops {
    ($($variant:ident $name:literal [$arity:expr] $operator:tt [$($attribute:ident)*];)*) => {
        ops! {
            /// An op that moves, reduces or contracts whole arrays, computed by the array library.
            Structured { $($variant $name $operator [$($attribute)*];)* }
        }

        impl Structured {
            /// The number of array arguments; `None` for any number.
            #[must_use]
            pub const fn arity(self) -> Option<usize> {
                match self { $(Self::$variant => $arity),* }
            }
        }
    };
}
