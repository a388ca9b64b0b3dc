//! Derivative rules of the elementwise ops as symbolic programs.

use super::tape::{Value, View};
use crate::kernel::Node;
use crate::op::Elementwise;
use crate::scalar::{Precision, Scalar};

/// A value that a derivative rule reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The cotangent of the result.
    Cotangent,
    /// The result.
    Result,
    /// The value of an argument.
    Arg(u8),
}

impl Source {
    /// The value that an entry keeps for the source; `None` for the cotangent.
    #[inline]
    pub fn kept<'t, V: Value, A>(self, entry: &View<'t, V, A>) -> Option<&'t V> {
        match self {
            Self::Cotangent => None,
            Self::Result => Some(entry.result()),
            Self::Arg(which) => Some(entry.arg(which as usize)),
        }
    }
}

/// The derivative rule of one argument of an elementwise op: a symbolic program, its k-th leaf being `sources[k]`.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The value that each leaf of the program stands for.
    pub sources: Vec<Source>,
    /// The program; its last node is the cotangent of the argument.
    pub nodes: Vec<Node>,
}

/// The values that a tape must keep for the rules of an op.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// The result.
    pub result: bool,
    /// The values of the arguments whose bits are set.
    args: u32,
    /// The values of all arguments, for a rule that computes all their cotangents, of their shapes and dtypes.
    pub all_args: bool,
    /// Shapes and dtypes of the arguments.
    pub shape: bool,
}

impl Needs {
    /// Adds the value of the `which`-th argument.
    pub fn read(&mut self, which: u8) {
        self.args |= 1 << which;
    }

    /// Adds the needs of another rule.
    pub fn extend(&mut self, other: Self) {
        self.result |= other.result;
        self.args |= other.args;
        self.all_args |= other.all_args;
        self.shape |= other.shape;
    }

    /// Whether any value is needed.
    #[must_use]
    pub fn reads_values(self) -> bool {
        self.result || self.all_args || self.args != 0
    }

    /// Whether the value of the `which`-th argument is needed.
    pub fn reads(self, which: usize) -> bool {
        let bit = || u32::try_from(which).ok().and_then(|which| self.args.checked_shr(which));
        self.all_args || bit().is_some_and(|bits| bits & 1 == 1)
    }
}

/// The longest program of a rule, in nodes.
pub const RULE_NODES: usize = 48;

impl Rule {
    /// Evaluates the rule on numbers of the host language; `None` if `number` returns `None` for a source.
    #[inline]
    fn on_numbers(&self, number: impl Fn(Source) -> Option<f64>) -> Option<f64> {
        self.evaluate(Precision::Weak, number)
    }

    /// Evaluates the rule on scalars, which are rounded to their promoted precision, as in arrays; `None` if `scalar`
    /// returns `None` for a source.
    pub fn on_scalars(&self, scalar: impl Fn(Source) -> Option<Scalar>) -> Option<Scalar> {
        let mut precision = Precision::Weak;
        for source in &self.sources {
            precision = precision.max(scalar(*source)?.precision);
        }
        let number = self.evaluate(precision, |source| scalar(source).map(|scalar| scalar.cast(precision).number))?;
        Some(Scalar { number, precision })
    }

    #[inline]
    fn evaluate(&self, precision: Precision, number: impl Fn(Source) -> Option<f64>) -> Option<f64> {
        // Zeros for the longest program take longer than a short one.
        if self.nodes.len() <= 4 {
            self.evaluate_in::<4>(precision, number)
        } else {
            self.evaluate_in::<RULE_NODES>(precision, number)
        }
    }

    #[inline]
    fn evaluate_in<const NODES: usize>(
        &self,
        precision: Precision,
        number: impl Fn(Source) -> Option<f64>,
    ) -> Option<f64> {
        let mut values = [0.0; NODES];
        for (at, node) in self.nodes.iter().enumerate() {
            values[at] = match *node {
                Node::Leaf(leaf) => number(self.sources[leaf as usize])?,
                Node::Constant(number) => number,
                Node::Apply(op, args) => op.in_precision(precision, args.map(|arg| values[arg as usize])),
                Node::Scalar(_) | Node::Noise(_) | Node::Sum(_) | Node::Dot(_) | Node::Total(..) => return None,
            };
        }
        self.nodes.len().checked_sub(1).map(|last| values[last])
    }
}

/// The derivative rules of the elementwise ops, by op and argument.
#[derive(Debug, Default)]
pub struct Rules(Vec<[Option<Rule>; 3]>);

impl Rules {
    /// Sets the rule of one argument.
    ///
    /// # Panics
    /// Panics if the program is longer than [`RULE_NODES`] or reads a leaf that has no source.
    pub fn set(&mut self, op: Elementwise, which: usize, rule: Rule) {
        assert!(rule.nodes.len() <= RULE_NODES, "the rule is too long");
        let known = |node: &Node| !matches!(node, Node::Leaf(leaf) if *leaf as usize >= rule.sources.len());
        assert!(rule.nodes.iter().all(known), "a leaf of the rule has no source");
        if self.0.is_empty() {
            self.0.resize_with(Elementwise::ALL.len(), Default::default);
        }
        self.0[op as usize][which] = Some(rule);
    }

    /// The rule of one argument, if it is set.
    #[must_use]
    pub fn get(&self, op: Elementwise, which: usize) -> Option<&Rule> {
        self.0.get(op as usize)?[which].as_ref()
    }

    /// The rule of an entry's argument on a cotangent that is a number of the host language.
    #[inline]
    pub(super) fn on_numbers<V: Value, A>(
        &self,
        op: Elementwise,
        which: usize,
        g: f64,
        entry: &View<'_, V, A>,
    ) -> Option<f64> {
        self.get(op, which)?.on_numbers(|source| source.kept(entry).map_or(Some(g), Value::number))
    }

    /// The rule of an entry's argument on a scalar cotangent; `None` if the rule reads a value that is not a scalar.
    pub(super) fn on_scalars<V: Value, A>(
        &self,
        op: Elementwise,
        which: usize,
        g: Scalar,
        entry: &View<'_, V, A>,
    ) -> Option<Scalar> {
        self.get(op, which)?.on_scalars(|source| source.kept(entry).map_or(Some(g), Value::scalar))
    }

    /// The cotangent of an entry's argument, in its precision; `None` if the rule reads a value that is not a scalar.
    #[inline]
    pub fn pull<V: Value, A>(
        &self,
        op: Elementwise,
        which: usize,
        g: Scalar,
        entry: &View<'_, V, A>,
    ) -> Option<Scalar> {
        if g.precision == Precision::Weak {
            return self.on_numbers(op, which, g.number, entry).map(Scalar::weak);
        }
        let precision = entry.arg(which).scalar()?.precision;
        Some(self.on_scalars(op, which, g, entry)?.cast(precision))
    }
}

#[cfg(test)]
mod tests {
    use super::Needs;

    #[test]
    fn needs_are_those_of_all_rules() {
        let (mut first, mut second) = (Needs { result: true, ..Needs::default() }, Needs::default());
        first.read(0);
        second.read(2);
        let mut both = second;
        both.extend(first);
        for (needs, read) in [(first, [0].as_slice()), (second, &[2]), (both, &[0, 2])] {
            assert!((0..64).all(|which| needs.reads(which) == read.contains(&which)));
        }
        assert!(both.result && !second.result && !both.shape);
        let all = Needs { all_args: true, ..second };
        assert!((0..64).all(|which| all.reads(which)));
    }
}
