//! Fusion of instructions into the loops of the interpreter: a multiply, divide or sqrt is fused into its single
//! consumer (a peephole optimization). The numbers are the same: each op rounds as it does alone.

use super::instruction::{Instruction, Work};
use crate::op::{Attribute, Elementwise, Visitor, meaning};
use crate::simd::{Binary, Lane, Ternary, Unary};

/// One loop over the elements of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FusedLoop {
    pub work: LoopWork,
    pub to: u16,
}

/// The work of a loop: that of an instruction ([`Work`]), or a fused pair of ops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LoopWork {
    Apply(Elementwise, [u16; 3]),
    Pair(Pair, [u16; 3]),
    Noise(u32),
    Sum(u16),
    /// A multiply, fused into the sum of its results.
    SumOfProducts([u16; 2]),
    /// The sum of products that are computed in `f64`.
    Dot([u16; 2]),
}

impl LoopWork {
    /// The registers that are read.
    pub fn arguments(&self) -> &[u16] {
        match self {
            Self::Apply(op, args) => &args[..op.arity()],
            Self::Pair(pair, args) => &args[..pair.arity()],
            Self::Noise(_) => &[],
            Self::Sum(arg) => std::slice::from_ref(arg),
            Self::SumOfProducts(args) | Self::Dot(args) => args,
        }
    }

    /// Whether the result is a register; that of the others is a sum.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Sum(_) | Self::SumOfProducts(_) | Self::Dot(_))
    }
}

/// `outer(inner(a, b), c)`.
#[derive(Clone, Copy, Default)]
struct Left<F, G>(F, G);

/// `outer(c, inner(a, b))`.
#[derive(Clone, Copy, Default)]
struct Right<F, G>(F, G);

impl<L: Lane, F: Binary<L>, G: Binary<L>> Ternary<L> for Left<F, G> {
    #[inline(always)]
    fn call(self, a: L, b: L, c: L) -> L {
        self.1.call(self.0.call(a, b), c)
    }
}

impl<L: Lane, F: Binary<L>, G: Binary<L>> Ternary<L> for Right<F, G> {
    #[inline(always)]
    fn call(self, a: L, b: L, c: L) -> L {
        self.1.call(c, self.0.call(a, b))
    }
}

impl<L: Lane, F: Unary<L>, G: Binary<L>> Binary<L> for Left<F, G> {
    #[inline(always)]
    fn call(self, a: L, c: L) -> L {
        self.1.call(self.0.call(a), c)
    }
}

impl<L: Lane, F: Unary<L>, G: Binary<L>> Binary<L> for Right<F, G> {
    #[inline(always)]
    fn call(self, a: L, c: L) -> L {
        self.1.call(c, self.0.call(a))
    }
}

macro_rules! pairs {
    ($($name:ident $visit:ident $side:ident $inner:ident $outer:ident;)*) => {
        /// Two ops in one loop; the arguments are those of the first, and the other one of the second.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Pair { $($name),* }

        impl Pair {
            const ALL: &[(Self, Elementwise, Elementwise, usize)] =
                &[$((Self::$name, Elementwise::$inner, Elementwise::$outer, pairs!(@$side))),*];

            /// The pair of ops of which the first computes this argument of the second.
            fn of(inner: Elementwise, outer: Elementwise, argument: usize) -> Option<Self> {
                // Of commutative ops, the table has one side.
                let argument = if outer.has(Attribute::Commutative) { 0 } else { argument };
                let is_same = |(_, a, b, at): &&(Self, Elementwise, Elementwise, usize)| (*a, *b, *at) == (inner, outer, argument);
                Self::ALL.iter().find(is_same).map(|(pair, ..)| *pair)
            }

            pub fn arity(self) -> usize {
                match self { $(Self::$name => Elementwise::$inner.arity() + 1),* }
            }

            /// As [`Elementwise::visit`].
            pub fn visit<L: Lane, V: Visitor<L>>(self, visitor: V) -> V::Output {
                match self { $(Self::$name => visitor.$visit($side(meaning::$inner, meaning::$outer))),* }
            }
        }
    };
    (@Left) => { 0 };
    (@Right) => { 1 };
}

// The pairs that are common in update rules.
pairs! {
    // name          args     side   inner     outer
    ProductPlus      ternary  Left   Multiply  Add;
    ProductMinus     ternary  Left   Multiply  Subtract;
    MinusProduct     ternary  Right  Multiply  Subtract;
    ProductTimes     ternary  Left   Multiply  Multiply;
    ProductOver      ternary  Left   Multiply  Divide;
    QuotientPlus     ternary  Left   Divide    Add;
    MinusQuotient    ternary  Right  Divide    Subtract;
    QuotientTimes    ternary  Left   Divide    Multiply;
    QuotientOver     ternary  Left   Divide    Divide;
    RootPlus         binary   Left   Sqrt      Add;
    RootTimes        binary   Left   Sqrt      Multiply;
    OverRoot         binary   Right  Sqrt      Divide;
}

/// The number of instructions back in which the producer of an argument is looked for.
const NEAR: usize = 16;

/// The loops of some instructions. Registers below `outputs` are inputs, those from `temporaries` on temporaries.
pub(super) fn fused(code: &[Instruction], outputs: u16, temporaries: u16) -> Vec<FusedLoop> {
    let mut loops: Vec<FusedLoop> = code.iter().map(alone_in_loop).collect();
    let mut at = 1;
    while at < loops.len() {
        match (at.saturating_sub(NEAR)..at)
            .rev()
            .find_map(|inner| Some((inner, paired(&loops, inner, at, outputs, temporaries)?)))
        {
            Some((inner, work)) => {
                loops[at].work = work;
                loops.remove(inner);
            }
            None => at += 1,
        }
    }
    loops
}

fn alone_in_loop(code: &Instruction) -> FusedLoop {
    let work = match code.work {
        Work::Apply(op, args) => LoopWork::Apply(op, args),
        Work::Noise(draw) => LoopWork::Noise(draw),
        Work::Sum(arg) => LoopWork::Sum(arg),
        Work::Dot(args) => LoopWork::Dot(args),
    };
    FusedLoop { work, to: code.to }
}

/// The fused work of loops `inner` and `outer` in the place of `outer`; `None` if another loop reads the result of
/// `inner`, or overwrites an argument of it.
fn paired(loops: &[FusedLoop], inner: usize, outer: usize, outputs: u16, temporaries: u16) -> Option<LoopWork> {
    let LoopWork::Apply(first, from) = loops[inner].work else { return None };
    let value = loops[inner].to;
    if value < temporaries {
        return None;
    }
    let work = joined(first, &from[..first.arity()], value, loops[outer].work)?;
    for between in &loops[inner + 1..outer] {
        let is_read = between.work.arguments().contains(&value);
        let is_lost = |arg: &u16| {
            // An output may lie where an input does.
            *arg == between.to || (*arg < outputs && between.to < temporaries)
        };
        if is_read || (between.work.writes() && (between.to == value || from[..first.arity()].iter().any(is_lost))) {
            return None;
        }
    }
    let is_written = |this: &&FusedLoop| this.to == value && this.work.writes();
    // Up to where the register becomes another value: a loop may read it and write it.
    let after = &loops[outer + 1..];
    let end = after.iter().position(|this| is_written(&this)).map_or(after.len(), |at| at + 1);
    let after = if is_written(&&loops[outer]) { &[] } else { &after[..end] };
    if after.iter().any(|this| this.work.arguments().contains(&value)) {
        return None;
    }
    Some(work)
}

/// The fused work of an op on `from`, whose result is `value`, and a loop that reads it; `None` if there is none.
fn joined(first: Elementwise, from: &[u16], value: u16, outer: LoopWork) -> Option<LoopWork> {
    match outer {
        LoopWork::Apply(second, args) => {
            let argument = args[..second.arity()].iter().position(|arg| *arg == value)?;
            let pair = Pair::of(first, second, argument)?;
            let other = args[1 - argument];
            let mut all = [0; 3];
            all[..from.len()].copy_from_slice(from);
            all[from.len()] = other;
            (other != value).then_some(LoopWork::Pair(pair, all))
        }
        LoopWork::Sum(arg) if arg == value && first == Elementwise::Multiply => {
            Some(LoopWork::SumOfProducts([from[0], from[1]]))
        }
        LoopWork::Sum(_) | LoopWork::Pair(..) | LoopWork::Noise(_) | LoopWork::SumOfProducts(_) | LoopWork::Dot(_) => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Elementwise::{Add, Divide, Multiply, Sqrt, Subtract};

    /// Registers: 0 to 3 are inputs, 4 and 5 outputs, 6 to 9 scalars, from 10 on registers.
    fn of(code: &[(Elementwise, [u16; 2], u16)]) -> Vec<FusedLoop> {
        let instruction = |(op, [a, b], to): &(Elementwise, [u16; 2], u16)| Instruction {
            work: Work::Apply(*op, [*a, *b, 0]),
            to: *to,
        };
        fused(&code.iter().map(instruction).collect::<Vec<_>>(), 4, 10)
    }

    fn alone(op: Elementwise, [a, b]: [u16; 2], to: u16) -> FusedLoop {
        FusedLoop { work: LoopWork::Apply(op, [a, b, 0]), to }
    }

    fn pair(pair: Pair, args: [u16; 3], to: u16) -> FusedLoop {
        FusedLoop { work: LoopWork::Pair(pair, args), to }
    }

    #[test]
    fn an_average_is_two_passes_and_a_quotient_of_its_root_two_more() {
        let code = [
            (Multiply, [6, 0], 10),
            (Multiply, [7, 1], 11),
            (Add, [10, 11], 4),
            (Sqrt, [4, 0], 11),
            (Add, [11, 8], 11),
            (Divide, [1, 11], 11),
            (Subtract, [2, 11], 5),
        ];
        let expected = [
            alone(Multiply, [6, 0], 10),
            pair(Pair::ProductPlus, [7, 1, 10], 4),
            pair(Pair::RootPlus, [4, 8, 0], 11),
            pair(Pair::MinusQuotient, [1, 11, 2], 5),
        ];
        assert_eq!(of(&code), expected);
    }

    #[test]
    fn a_product_is_fused_into_its_sum_unless_an_operand_is_overwritten() {
        let summed = |between: &[Instruction], of: u16| {
            let apply = |op, args, to| Instruction { work: Work::Apply(op, args), to };
            let sum = Instruction { work: Work::Sum(of), to: 0 };
            fused(&[&[apply(Multiply, [0, 1, 0], 10)], between, &[sum]].concat(), 4, 10)
        };
        assert_eq!(summed(&[], 10), [FusedLoop { work: LoopWork::SumOfProducts([0, 1]), to: 0 }]);
        let to = |to| Instruction { work: Work::Apply(Sqrt, [2, 0, 0]), to };
        assert_eq!(summed(&[to(11)], 10).len(), 2);
        assert_eq!(summed(&[to(4)], 10).len(), 3);
        assert_eq!(summed(&[], 2).len(), 2);
    }

    #[test]
    fn what_is_read_again_overwritten_or_written_stays() {
        // Read twice, by one op and by two.
        assert_eq!(of(&[(Multiply, [0, 1], 10), (Add, [10, 10], 4)]).len(), 2);
        assert_eq!(of(&[(Multiply, [0, 1], 10), (Add, [10, 2], 4), (Sqrt, [10, 0], 5)]).len(), 3);
        // An output.
        assert_eq!(of(&[(Multiply, [0, 1], 4), (Add, [4, 2], 5)]).len(), 2);
        // An operand of the product is overwritten: a register, or an input in whose memory an output lies.
        let between = |to| [(Subtract, [3, 0], 11), (Multiply, [11, 0], 10), (Sqrt, [2, 0], to), (Add, [10, 2], 5)];
        assert_eq!(of(&between(11)).len(), 4);
        assert_eq!(of(&between(4)).len(), 4);
        assert_eq!(of(&between(12)).len(), 3);
        // The register is another value afterwards.
        assert_eq!(of(&[(Multiply, [0, 1], 10), (Add, [10, 2], 10), (Sqrt, [10, 0], 4)]).len(), 2);
    }
}
