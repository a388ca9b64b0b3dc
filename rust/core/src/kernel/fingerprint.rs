//! The structural fingerprint of a program, by which its native code is found.

use super::graph::Graph;
use super::native::generated::NativeKernel;
use super::program::Node;

/// The native code of a program: that of the shipped program with its fingerprint. Of 128 bits, no two programs that
/// anyone writes have the same.
pub(super) fn native_kernel(graph: &Graph) -> Option<NativeKernel> {
    NativeKernel::with_fingerprint(graph.fingerprint())
}

/// Numbers scalar inputs in the order in which they are first read. Native code reads scalars from registers, whatever
/// their numbers as inputs: further slots of one number may come before them.
#[derive(Default)]
struct Scalars(Vec<u32>);

impl Scalars {
    fn renamed(&mut self, node: &Node) -> Node {
        let Node::Scalar(input) = *node else { return *node };
        let number = self.0.iter().position(|other| *other == input).unwrap_or_else(|| {
            self.0.push(input);
            self.0.len() - 1
        });
        Node::Scalar(u32::try_from(number).unwrap_or(u32::MAX))
    }
}

impl Graph {
    /// A hash of the nodes and the outputs: equal for equal graphs, on any platform, whatever the order
    /// of the table of ops and the numbers of the scalar inputs. Simplified graphs of one computation are equal, since their nodes stand in order of need.
    pub fn fingerprint(&self) -> u128 {
        let (mut hash, mut scalars) = (Fnv::default(), Scalars::default());
        for node in &self.nodes {
            hash.node(&scalars.renamed(node));
        }
        for ids in [&self.outputs[..], &self.results, self.guard.as_slice()] {
            hash.number(ids.len() as u64);
            for id in ids {
                hash.number(*id as u64);
            }
        }
        hash.0
    }
}

/// The 128-bit hash FNV-1a (Fowler, Noll and Vo, 1991).
struct Fnv(u128);

impl Default for Fnv {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    fn node(&mut self, node: &Node) {
        let (kind, first, second) = match node {
            Node::Leaf(k) => ("leaf", u64::from(*k), 0),
            Node::Scalar(k) => ("scalar", u64::from(*k), 0),
            Node::Constant(value) => ("constant", value.to_bits(), 0),
            Node::Noise(k) => ("noise", u64::from(*k), 0),
            Node::Apply(op, [a, b, c]) => {
                self.number(u64::from(*c));
                (op.name(), u64::from(*a), u64::from(*b))
            }
            Node::Sum(arg) => ("sum over the leaf", u64::from(*arg), 0),
            Node::Dot([a, b]) => ("dot product over the leaf", u64::from(*a), u64::from(*b)),
            Node::Total(arg, number) => ("total", u64::from(*arg), u64::from(*number)),
        };
        self.bytes(kind.as_bytes());
        self.number(first);
        self.number(second);
    }
}

#[cfg(test)]
mod tests {
    use super::super::program::Wanted;
    use super::*;
    use crate::op::Elementwise::{Add, Multiply, Subtract};
    use programs::{PROGRAMS, program};

    mod programs {
        include!("../../tests/meaning/programs.rs");
    }

    fn graph(nodes: &[Node], wanted: &Wanted) -> Graph {
        Graph::new(nodes, wanted).unwrap()
    }

    fn shipped(name: &str) -> Graph {
        let (nodes, wanted) = program(name);
        graph(nodes, &wanted)
    }

    #[test]
    fn each_shipped_program_has_its_native_code_and_a_fingerprint_of_its_own() {
        let mut fingerprints: Vec<u128> = Vec::new();
        for (number, (name, nodes, wanted)) in PROGRAMS.iter().enumerate() {
            let graph = graph(nodes, wanted);
            assert_eq!(native_kernel(&graph).map(|found| found as usize), Some(number), "{name}");
            fingerprints.push(graph.fingerprint());
        }
        fingerprints.sort_unstable();
        fingerprints.dedup();
        assert_eq!(fingerprints.len(), PROGRAMS.len());
    }

    #[test]
    fn the_order_in_which_a_program_is_written_does_not_matter() {
        let wanted = Wanted { outputs: &[4], ..Wanted::default() };
        let written = [
            Node::Leaf(0),
            Node::Leaf(1),
            Node::Scalar(0),
            Node::Apply(Multiply, [2, 1, 0]),
            Node::Apply(Subtract, [0, 3, 0]),
        ];
        let other = [
            Node::Scalar(0),
            Node::Leaf(1),
            Node::Apply(Multiply, [0, 1, 7]),
            Node::Leaf(0),
            Node::Apply(Subtract, [3, 2, 9]),
        ];
        assert_eq!(graph(&written, &wanted).fingerprint(), graph(&other, &wanted).fingerprint());
    }

    #[test]
    fn any_difference_changes_the_fingerprint_and_loses_the_native_code() {
        let (nodes, wanted) = program("AdamW");
        let expected = shipped("AdamW").fingerprint();
        let is_told_apart = |graph: &Graph| graph.fingerprint() != expected && native_kernel(graph).is_none();
        for id in 0..nodes.len() {
            let mut changed = nodes.to_vec();
            changed[id] = match changed[id] {
                Node::Leaf(k) => Node::Leaf(k + 1),
                Node::Scalar(_) => Node::Constant(0.5),
                Node::Constant(value) => Node::Constant(value + 0.5),
                Node::Apply(op, args) => Node::Apply(if op == Add { Subtract } else { Add }, args),
                node @ (Node::Noise(_) | Node::Sum(_) | Node::Dot(_) | Node::Total(..)) => node,
            };
            assert!(is_told_apart(&graph(&changed, &wanted)), "node {id}");
        }
        let fewer = Wanted { outputs: &wanted.outputs[1..], ..wanted };
        assert!(is_told_apart(&graph(nodes, &fewer)));
    }

    #[test]
    fn the_numbers_of_scalar_inputs_do_not_matter_but_which_are_the_same_does() {
        let (nodes, wanted) = program("AdamW");
        let renamed = |rename: fn(u32) -> u32| {
            let one = |node: &Node| if let Node::Scalar(k) = *node { Node::Scalar(rename(k)) } else { *node };
            graph(&nodes.iter().map(one).collect::<Vec<_>>(), &wanted)
        };
        assert_eq!(native_kernel(&renamed(|k| 20 - k)), native_kernel(&shipped("AdamW")));
        assert_eq!(native_kernel(&renamed(|k| k / 2)), None);
    }
}
