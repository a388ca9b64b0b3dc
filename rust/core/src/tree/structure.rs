//! A tree without its leaves.

use std::fmt::{self, Write};
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use super::path::{Key, KeyPath};
use crate::error::{Error, Result};

/// A container type in a structure: its name and the keys of its children.
pub trait Container: Eq + Hash {
    /// The name of its type: `list`, `Dense`.
    fn name(&self) -> &str;
    /// The key of one of its children.
    fn key(&self, child: usize) -> Key;
}

/// One node of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A leaf.
    Leaf {
        /// Whether it is trainable: no field above it is marked as not trainable.
        trainable: bool,
    },
    /// `None`.
    Empty,
    /// A field that has no value.
    Unset,
    /// A container.
    Branch {
        /// Its index in [`Structure::containers`].
        container: u32,
        /// The number of its children.
        arity: u32,
    },
}

/// A tree without its leaves: its nodes, parents before children and children in order.
///
/// Two structures are equal where their containers have equal types and keys, in the same order.
#[derive(Clone, Debug)]
pub struct Structure<C> {
    nodes: Vec<Node>,
    containers: Vec<C>,
    leaves: usize,
    links: OnceLock<Links>,
}

/// The nodes of leaves, and the parents of nodes: built for the first path.
#[derive(Clone, Debug)]
struct Links {
    leaf_nodes: Vec<u32>,
    parents: Vec<(u32, u32)>,
}

/// A walk over the nodes of a structure, in order, with a value for each container that is open: [`Walk::next_parent`] before a node,
/// and [`Walk::visit`] after it.
#[derive(Debug)]
pub struct Walk<T> {
    /// The open containers: the value, the number, the children that were visited, and all.
    open: Vec<(T, u32, u32, u32)>,
}

/// The container that a node of a walk is in: its value, its number, and the position of the node among its children.
#[derive(Debug)]
#[allow(missing_docs, reason = "said above")]
pub struct Parent<'a, T> {
    pub value: &'a T,
    pub container: u32,
    pub child: u32,
}

impl<T> Default for Walk<T> {
    fn default() -> Self {
        Self { open: Vec::new() }
    }
}

impl<T> Walk<T> {
    /// The container of the next node; `None` for the root.
    pub fn next_parent(&mut self) -> Option<Parent<'_, T>> {
        while self.open.pop_if(|(_, _, next, arity)| next == arity).is_some() {}
        let (value, container, next, _) = self.open.last_mut()?;
        *next += 1;
        Some(Parent { value, container: *container, child: *next - 1 })
    }

    /// Goes on to the children of a node, if it is a container, with its value.
    pub fn visit(&mut self, node: Node, value: T) {
        if let Node::Branch { container, arity } = node {
            self.open.push((value, container, 0, arity));
        }
    }
}

impl<C> Default for Structure<C> {
    fn default() -> Self {
        Self { nodes: Vec::new(), containers: Vec::new(), leaves: 0, links: OnceLock::new() }
    }
}

impl<C> Structure<C> {
    /// The nodes, in preorder.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The containers that the nodes refer to by number.
    #[must_use]
    pub fn containers(&self) -> &[C] {
        &self.containers
    }

    /// A container, by the number that a node refers to it by.
    ///
    /// # Panics
    /// Panics if no node of this structure has that number.
    #[must_use]
    pub fn container(&self, id: u32) -> &C {
        &self.containers[id as usize]
    }

    /// The number of leaves.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.leaves
    }

    /// Whether there is no leaf.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.leaves == 0
    }

    /// Adds a container that branches can refer to and returns its number.
    ///
    /// # Panics
    /// Panics if there are more than 2^32 containers.
    pub fn add_container(&mut self, container: C) -> u32 {
        let id = u32::try_from(self.containers.len()).expect("memory holds fewer than 2^32 containers");
        self.containers.push(container);
        id
    }

    /// Adds the next node, in preorder.
    pub fn push(&mut self, node: Node) {
        self.leaves += usize::from(matches!(node, Node::Leaf { .. }));
        self.nodes.push(node);
        self.links.take();
    }

    /// Adds the next node, a container with `arity` children.
    ///
    /// # Errors
    /// [`Error::Structure`] if there are more than 2^32 children.
    pub fn push_branch(&mut self, container: u32, arity: usize) -> Result<()> {
        let arity = u32::try_from(arity).map_err(|_| Error::Structure(format!("{arity} children are too many")))?;
        self.push(Node::Branch { container, arity });
        Ok(())
    }

    /// Whether a leaf has no field above it that is marked as not trainable.
    ///
    /// # Panics
    /// Panics if there is no such leaf.
    #[must_use]
    pub fn is_trainable(&self, leaf: usize) -> bool {
        matches!(self.nodes[self.leaf_node(leaf)], Node::Leaf { trainable: true })
    }

    /// The index of a leaf's node.
    fn leaf_node(&self, leaf: usize) -> usize {
        self.links().leaf_nodes[leaf] as usize
    }

    fn links(&self) -> &Links {
        self.links.get_or_init(|| Links::new(&self.nodes))
    }
}

impl Links {
    fn new(nodes: &[Node]) -> Self {
        let mut links = Self { leaf_nodes: Vec::new(), parents: Vec::with_capacity(nodes.len()) };
        let mut walk = Walk::default();
        for (place, node) in (0..).zip(nodes) {
            let parent = walk.next_parent().map_or((u32::MAX, 0), |parent| (*parent.value, parent.child));
            links.parents.push(parent);
            if matches!(node, Node::Leaf { .. }) {
                links.leaf_nodes.push(place);
            }
            walk.visit(*node, place);
        }
        links
    }
}

impl<C: Container> Structure<C> {
    /// The path of a leaf.
    ///
    /// # Panics
    /// Panics if there is no such leaf.
    #[must_use]
    pub fn path(&self, leaf: usize) -> KeyPath {
        self.node_path(self.leaf_node(leaf))
    }

    /// The path of a node, by its place in [`Structure::nodes`].
    fn node_path(&self, mut node: usize) -> KeyPath {
        let mut keys = Vec::new();
        while node > 0 {
            let (parent, position) = self.links().parents[node];
            node = parent as usize;
            let Node::Branch { container, .. } = self.nodes[node] else { unreachable!("a parent is a branch") };
            keys.push(self.container(container).key(position as usize));
        }
        keys.into_iter().rev().collect()
    }

    /// The paths of all leaves, in order; they share common beginnings.
    #[must_use]
    pub fn paths(&self) -> Vec<KeyPath> {
        let (mut paths, mut walk) = (Vec::with_capacity(self.leaves), Walk::default());
        for node in &self.nodes {
            let path = self.path_below(walk.next_parent());
            if matches!(node, Node::Leaf { .. }) { paths.push(path) } else { walk.visit(*node, path) }
        }
        paths
    }

    /// The path of a node, given the place that a walk over paths finds it at.
    #[must_use]
    pub fn path_below(&self, parent: Option<Parent<'_, KeyPath>>) -> KeyPath {
        parent.map_or_else(KeyPath::root, |Parent { value, container, child }| {
            value.child(self.container(container).key(child as usize))
        })
    }

    /// The path of a node as the subject of a message: the keys, or "the root".
    ///
    /// # Panics
    /// Panics if there is no such node.
    #[must_use]
    pub fn place(&self, node: usize) -> String {
        self.node_path(node).place()
    }

    /// A node in words: `a list of 3`, `a dict with the keys a, b`.
    #[must_use]
    pub fn describe(&self, node: Node) -> String {
        match node {
            Node::Leaf { .. } => "a leaf".into(),
            Node::Empty => "None".into(),
            Node::Unset => "a field without a value".into(),
            Node::Branch { container, arity } => self.describe_container(container, arity as usize),
        }
    }

    fn describe_container(&self, container: u32, arity: usize) -> String {
        let container = self.container(container);
        let name = container.name();
        match (arity > 0).then(|| container.key(0)) {
            Some(Key::Item(_)) => {
                format!("a {name} with the keys {}", list_keys((0..arity).map(|child| container.key(child))))
            }
            Some(Key::Field(_)) => format!("a {name}"),
            Some(Key::Index(_)) | None => format!("a {name} of {arity}"),
        }
    }
}

/// Keys for a message: the first few, joined by commas.
pub fn list_keys(keys: impl IntoIterator<Item = Key>) -> String {
    const MANY: usize = 8;
    let mut names: Vec<_> = keys.into_iter().take(MANY + 1).map(|key| key.to_string()).collect();
    if names.len() > MANY {
        names[MANY] = "...".into();
    }
    names.join(", ")
}

impl<C: Eq> Structure<C> {
    fn is_same_node(&self, a: Node, found: &Self, b: Node) -> bool {
        match (a, b) {
            (Node::Branch { container: a, arity: n }, Node::Branch { container: b, arity: m }) => {
                n == m && self.containers[a as usize] == found.containers[b as usize]
            }
            (a, b) => a == b,
        }
    }
}

impl<C: Eq> PartialEq for Structure<C> {
    fn eq(&self, other: &Self) -> bool {
        let mut pairs = self.nodes.iter().zip(&other.nodes);
        self.nodes.len() == other.nodes.len() && pairs.all(|(a, b)| self.is_same_node(*a, other, *b))
    }
}

impl<C: Eq> Eq for Structure<C> {}

impl<C: Hash> Hash for Structure<C> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for node in &self.nodes {
            match *node {
                Node::Branch { container, arity } => (arity, &self.containers[container as usize]).hash(state),
                leaf => leaf.hash(state),
            }
        }
    }
}

impl<C: Container> fmt::Display for Structure<C> {
    /// The tree as a literal, with `*` for a leaf: `[*, Dense(weight=*, bias=None)]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut open: Vec<(&C, usize, usize)> = Vec::new();
        for node in &self.nodes {
            if let Some((container, next, _)) = open.last_mut() {
                f.write_str(if *next > 0 { ", " } else { "" })?;
                write_key(f, &container.key(*next))?;
                *next += 1;
            }
            match *node {
                Node::Leaf { .. } => f.write_char('*')?,
                Node::Empty => f.write_str("None")?,
                Node::Unset => f.write_str("unset")?,
                Node::Branch { container, arity } => {
                    let container = self.container(container);
                    f.write_str(&brackets(container.name()).0)?;
                    open.push((container, 0, arity as usize));
                }
            }
            while let Some((container, _, _)) = open.pop_if(|(_, next, arity)| next == arity) {
                f.write_char(brackets(container.name()).1)?;
            }
        }
        Ok(())
    }
}

fn write_key(f: &mut fmt::Formatter<'_>, key: &Key) -> fmt::Result {
    match key {
        Key::Field(name) => write!(f, "{name}="),
        Key::Index(_) => Ok(()),
        Key::Item(_) => write!(f, "{key}: "),
    }
}

fn brackets(name: &str) -> (String, char) {
    match name {
        "list" => ("[".into(), ']'),
        "tuple" => ("(".into(), ')'),
        "dict" => ("{".into(), '}'),
        name => (format!("{name}("), ')'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::path::DictKey;

    #[derive(PartialEq, Eq, Hash, Clone, Debug)]
    enum Sample {
        List,
        Dense,
        Dict(Vec<&'static str>),
    }

    impl Container for Sample {
        fn name(&self) -> &str {
            match self {
                Self::List => "list",
                Self::Dense => "Dense",
                Self::Dict(_) => "dict",
            }
        }

        fn key(&self, child: usize) -> Key {
            match self {
                Self::List => Key::Index(child),
                Self::Dense => Key::Field(["weight", "bias"][child].into()),
                Self::Dict(keys) => Key::Item(DictKey::Text(keys[child].into())),
            }
        }
    }

    fn structure(parts: &[Option<(Sample, usize)>]) -> Structure<Sample> {
        let mut structure = Structure::default();
        for part in parts {
            match part {
                None => structure.push(Node::Leaf { trainable: true }),
                Some((container, arity)) => {
                    let id = structure.add_container(container.clone());
                    structure.push_branch(id, *arity).unwrap();
                }
            }
        }
        structure
    }

    fn model(head: &'static str) -> Structure<Sample> {
        let dict = Sample::Dict(vec!["l1", head]);
        structure(&[Some((dict, 2)), Some((Sample::Dense, 2)), None, None, Some((Sample::List, 1)), None])
    }

    #[test]
    fn paths_print_and_are_those_of_the_leaves() {
        let printed: Vec<_> = model("a.b").paths().iter().map(KeyPath::to_string).collect();
        assert_eq!(printed, ["l1.weight", "l1.bias", "\"a.b\".0"]);
        assert_eq!((0..3).map(|leaf| model("a.b").path(leaf)).collect::<Vec<_>>(), model("a.b").paths());
    }

    #[test]
    fn equality_is_by_containers_and_keys() {
        assert_eq!(model("a"), model("a"));
        assert_ne!(model("a"), model("b"));
        assert_eq!(model("a").to_string(), "{l1: Dense(weight=*, bias=*), a: [*]}");
    }

    #[test]
    fn messages_name_nodes_by_path_and_in_words() {
        let told = |tree: &Structure<Sample>, node: usize| {
            format!("{}: {}", tree.place(node), tree.describe(tree.nodes[node]))
        };
        let tree = structure(&[Some((Sample::List, 2)), None, Some((Sample::List, 1)), None]);
        assert_eq!(told(&tree, 2), "1: a list of 1");
        assert_eq!(told(&model("a"), 0), "the root: a dict with the keys l1, a");
    }

    #[test]
    fn a_branch_without_children_takes_no_later_node() {
        let empty = structure(&[Some((Sample::List, 2)), Some((Sample::List, 0)), None]);
        assert_eq!(empty.to_string(), "[[], *]");
        assert_eq!(empty.path(0).to_string(), "1");
    }
}
