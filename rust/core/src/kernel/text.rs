//! A program as text that can be read back: a line a node, then the lines of what is wanted.
//!
//! ```text
//! leaf 0
//! scalar 1
//! constant 3fe0000000000000
//! multiply 1 2
//! subtract 0 3
//! outputs 4
//! ```
//!
//! Constants are written as the bits of `f64`, ops by their names, so that a text means the same in any release.

use std::fmt::Write;
use std::str::{FromStr, SplitWhitespace};

use super::compiled::Kernel;
use super::program::{Node, Wanted};
use crate::error::{Error, Result};
use crate::op::{Elementwise, Op};

/// A program that was read from its text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedProgram {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Arrays to write, for each leaf.
    pub outputs: Vec<u32>,
    /// Scalars to hand back, for each leaf.
    pub results: Vec<u32>,
    /// A scalar: where it is zero nothing is written.
    pub guard: Option<u32>,
}

/// The text of a program.
#[must_use]
pub fn print_program(nodes: &[Node], wanted: &Wanted) -> String {
    let mut text = String::new();
    let mut line = |name: &str, numbers: &[u32]| {
        text.push_str(name);
        for number in numbers {
            _ = write!(text, " {number}");
        }
        text.push('\n');
    };
    for node in nodes {
        match *node {
            Node::Leaf(k) => line("leaf", &[k]),
            Node::Scalar(k) => line("scalar", &[k]),
            Node::Constant(value) => line(&format!("constant {:016x}", value.to_bits()), &[]),
            Node::Noise(k) => line("noise", &[k]),
            Node::Apply(op, args) => line(op.name(), &args[..op.arity()]),
            Node::Sum(arg) => line("sum_of_leaf", &[arg]),
            Node::Dot(args) => line("dot_of_leaf", &args),
            Node::Total(arg, number) => line("total", &[arg, number]),
        }
    }
    line("outputs", wanted.outputs);
    line("results", wanted.results);
    line("guard", wanted.guard.as_slice());
    text
}

impl ParsedProgram {
    /// Reads what [`print_program`] wrote. Ids are checked where the program is compiled.
    ///
    /// # Errors
    /// `Rule` with the number of the line that is none of a program.
    pub fn parse(text: &str) -> Result<Self> {
        let mut program = Self::default();
        for (number, line) in text.lines().enumerate() {
            program.read(line).ok_or_else(|| Error::Rule(format!("line {} of the program: {line:?}", number + 1)))?;
        }
        Ok(program)
    }

    /// Compiles the program.
    ///
    /// # Errors
    /// As [`Kernel::compile_wanted`].
    pub fn compile(&self) -> Result<Kernel> {
        let wanted = Wanted { outputs: &self.outputs, results: &self.results, guard: self.guard };
        Kernel::compile_wanted(&self.nodes, &wanted)
    }

    fn read(&mut self, line: &str) -> Option<()> {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        match name {
            "outputs" => self.outputs = all(&mut words)?,
            "results" => self.results = all(&mut words)?,
            "guard" => self.guard = all(&mut words)?.first().copied(),
            _ => self.nodes.push(node(name, &mut words)?),
        }
        words.next().is_none().then_some(())
    }
}

fn node(name: &str, words: &mut SplitWhitespace) -> Option<Node> {
    Some(match name {
        "leaf" => Node::Leaf(next(words)?),
        "scalar" => Node::Scalar(next(words)?),
        "constant" => Node::Constant(f64::from_bits(u64::from_str_radix(words.next()?, 16).ok()?)),
        "noise" => Node::Noise(next(words)?),
        "sum_of_leaf" => Node::Sum(next(words)?),
        "dot_of_leaf" => Node::Dot([next(words)?, next(words)?]),
        "total" => Node::Total(next(words)?, next(words)?),
        _ => {
            let op = elementwise(name)?;
            let mut args = [0; 3];
            for arg in &mut args[..op.arity()] {
                *arg = next(words)?;
            }
            Node::Apply(op, args)
        }
    })
}

fn elementwise(name: &str) -> Option<Elementwise> {
    match Op::from_name(name)? {
        Op::Elementwise(op) => Some(op),
        Op::Structured(_) => None,
    }
}

fn next<T: FromStr>(words: &mut SplitWhitespace) -> Option<T> {
    words.next()?.parse().ok()
}

fn all(words: &mut SplitWhitespace) -> Option<Vec<u32>> {
    words.map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_kind_of_node_is_read_back_and_constants_to_the_bit() {
        let mut nodes =
            vec![Node::Leaf(1), Node::Scalar(2), Node::Noise(0), Node::Sum(0), Node::Total(3, 1), Node::Dot([0, 2])];
        nodes.extend([0.1, -0.0, f64::INFINITY, 5e-324].map(Node::Constant));
        nodes.extend(Elementwise::ALL.iter().map(|op| {
            let mut args = [0; 3];
            args[..op.arity()].copy_from_slice(&[1, 2, 3][..op.arity()]);
            Node::Apply(*op, args)
        }));
        let wanted = Wanted { outputs: &[0, 7], results: &[4], guard: Some(3) };
        let text = print_program(&nodes, &wanted);
        let parsed = ParsedProgram::parse(&text).unwrap();
        let guard = Some(3);
        assert_eq!(parsed, ParsedProgram { nodes, outputs: vec![0, 7], results: vec![4], guard });
        assert!(text.contains("constant 8000000000000000\n"));
    }

    #[test]
    fn a_line_that_is_none_is_an_error() {
        for line in ["leaf", "leaf -1", "leaf 0 0", "matmul 0 0", "add 0", "constant 1.0e", "outputs x", "", "what 0"] {
            let error = ParsedProgram::parse(&format!("leaf 0\n{line}\noutputs 0\n")).unwrap_err();
            assert!(error.message().starts_with("line 2 of the program"), "{line}: {error:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "((leaf|scalar|noise|total|sum_of_leaf|dot_of_leaf|add|outputs|results|guard) [0-9 ]{0,6}\n){0,8}") {
            if let Ok(parsed) = ParsedProgram::parse(&text) {
                let _ = parsed.compile();
            }
        }
    }
}
