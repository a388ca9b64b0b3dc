//! The structural fingerprint of a program, by which its native code is found.

use super::graph::Graph;
use super::native::generated::{NativeKernel, PROGRAMS};
use super::program::{Node, Wanted};

/// The native code of a program. The fingerprint names the candidate; the candidate's program is compared node by node,
/// so that programs with equal fingerprints are told apart.
pub(super) fn native_kernel(graph: &Graph) -> Option<NativeKernel> {
    let found = NativeKernel::with_fingerprint(graph.fingerprint())?;
    let (_, nodes, wanted) = &PROGRAMS[found as usize];
    is_same_program(graph, nodes, wanted).then_some(found)
}

fn is_same_program(graph: &Graph, nodes: &[Node], wanted: &Wanted) -> bool {
    let (mut numbers, mut others) = (Scalars::default(), Scalars::default());
    graph.nodes.len() == nodes.len()
        && graph.nodes.iter().zip(nodes).all(|(one, other)| is_same_node(&numbers.renamed(one), &others.renamed(other)))
        && are_same_ids(&graph.outputs, wanted.outputs)
        && are_same_ids(&graph.results, wanted.results)
        && are_same_ids(graph.guard.as_slice(), wanted.guard.as_slice())
}

/// Numbers scalar inputs in the order in which they are first read. Native code reads scalars from registers, whatever
/// their numbers as inputs: further slots of one number may come before them.
#[derive(Default)]
struct Scalars(Vec<u32>);

impl Scalars {
    fn renamed(&mut self, node: &Node) -> Node {
        let Node::Scalar(input) = *node else { return *node };
        let number = self.0.iter().position(|known| *known == input).unwrap_or_else(|| {
            self.0.push(input);
            self.0.len() - 1
        });
        Node::Scalar(u32::try_from(number).unwrap_or(u32::MAX))
    }
}

/// Whether two nodes are the same, constants to the bit.
fn is_same_node(one: &Node, other: &Node) -> bool {
    match (one, other) {
        (Node::Constant(one), Node::Constant(other)) => one.to_bits() == other.to_bits(),
        _ => one == other,
    }
}

fn are_same_ids(ids: &[usize], others: &[u32]) -> bool {
    ids.len() == others.len() && ids.iter().zip(others).all(|(id, other)| *id == *other as usize)
}

impl Graph {
    /// A hash of the nodes and the outputs: equal for equal graphs, on any platform, whatever the order
    /// of the table of ops and the numbers of the scalar inputs. Simplified graphs of one computation are equal, since their nodes stand in order of need.
    pub fn fingerprint(&self) -> u64 {
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

/// The 64-bit hash FNV-1a (Fowler, Noll and Vo, 1991).
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
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
            Node::Total(arg, number) => ("total", u64::from(*arg), u64::from(*number)),
        };
        self.bytes(kind.as_bytes());
        self.number(first);
        self.number(second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Elementwise::{Add, Multiply, Subtract};

    fn graph(nodes: &[Node], wanted: &Wanted) -> Graph {
        Graph::new(nodes, wanted).unwrap()
    }

    fn shipped(name: &str) -> Graph {
        let (_, nodes, wanted) = PROGRAMS.iter().find(|(shipped, ..)| *shipped == name).unwrap();
        graph(nodes, wanted)
    }

    #[test]
    fn each_shipped_program_has_its_native_code_and_a_fingerprint_of_its_own() {
        let mut fingerprints: Vec<u64> = Vec::new();
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
        let (_, nodes, wanted) = PROGRAMS.iter().find(|(shipped, ..)| *shipped == "AdamW").unwrap();
        let expected = shipped("AdamW").fingerprint();
        let is_told_apart = |graph: &Graph| graph.fingerprint() != expected && native_kernel(graph).is_none();
        for id in 0..nodes.len() {
            let mut changed = nodes.to_vec();
            changed[id] = match changed[id] {
                Node::Leaf(k) => Node::Leaf(k + 1),
                Node::Scalar(_) => Node::Constant(0.5),
                Node::Constant(value) => Node::Constant(value + 0.5),
                Node::Apply(op, args) => Node::Apply(if op == Add { Subtract } else { Add }, args),
                node @ (Node::Noise(_) | Node::Sum(_) | Node::Total(..)) => node,
            };
            assert!(is_told_apart(&graph(&changed, wanted)), "node {id}");
        }
        let fewer = Wanted { outputs: &wanted.outputs[1..], ..*wanted };
        assert!(is_told_apart(&graph(nodes, &fewer)));
    }

    #[test]
    fn the_numbers_of_scalar_inputs_do_not_matter_but_which_are_the_same_does() {
        let (_, nodes, wanted) = PROGRAMS.iter().find(|(shipped, ..)| *shipped == "AdamW").unwrap();
        let renamed = |rename: fn(u32) -> u32| {
            let one = |node: &Node| if let Node::Scalar(k) = *node { Node::Scalar(rename(k)) } else { *node };
            graph(&nodes.iter().map(one).collect::<Vec<_>>(), wanted)
        };
        assert_eq!(native_kernel(&renamed(|k| 20 - k)), native_kernel(&shipped("AdamW")));
        assert_eq!(native_kernel(&renamed(|k| k / 2)), None);
    }

    #[test]
    fn equal_fingerprints_do_not_suffice() {
        // A graph that differs, as if its fingerprint were that of a shipped program.
        let (_, nodes, wanted) = &PROGRAMS[0];
        let mut changed = graph(nodes, wanted);
        assert!(is_same_program(&changed, nodes, wanted));
        changed.nodes.push(Node::Constant(0.0));
        assert!(!is_same_program(&changed, nodes, wanted));
        assert!(!is_same_node(&Node::Constant(0.0), &Node::Constant(-0.0)));
    }
}
