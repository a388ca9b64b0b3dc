//! The values and the steps of a run while it is planned.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::super::fold::Fold;
use super::foreign::ForeignWork;
use super::values::{Extents, GRAIN, Kind, Layout};
use crate::array::buffer::Dtype;
use crate::array::shape::{Strides, broadcast_strides, contiguous_strides};
use crate::array::sum::Axes;
use crate::op::Elementwise;
use crate::scalar::{Condition, Precision};

/// A value that is read, in the layout and dtype that calls read.
#[derive(Debug)]
pub(super) struct Load {
    pub read: usize,
    pub extents: Extents,
    pub dtype: Dtype,
    /// Whether it is one number, which is repeated in its line.
    pub is_still: bool,
    /// In bytes.
    pub place: usize,
}

/// The work of a step, which steps that differ in places have in common.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Work {
    Apply {
        op: Elementwise,
        moves: [bool; 3],
        length: usize,
        dtype: Dtype,
        condition: Condition,
    },
    /// Elements, of a dtype, to one after the other of another.
    Copy {
        elements: Elements,
        from: Dtype,
        to: Dtype,
    },
    /// The first argument, written to elements of so many numbers, or added to those of the second one.
    Scatter {
        elements: Elements,
        length: usize,
        onto: Onto,
        dtype: Dtype,
    },
    /// A function of C.
    Foreign(ForeignWork),
    Fold {
        axes: Axes,
        fold: Fold,
        dtype: Dtype,
    },
    /// Rows of the left factor, its columns, and those of the right one; the first element, the row and the column of each factor, in bytes.
    Product {
        rows: [usize; 3],
        factors: [[isize; 3]; 2],
        dtype: Dtype,
    },
}

/// The memory that elements are written onto.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Onto {
    /// That of the place: other steps write the other elements.
    Place,
    Zeros,
    /// An array, to which they are added.
    Sum,
}

impl Work {
    /// The dtype of the result.
    pub const fn dtype(&self) -> Dtype {
        match self {
            Self::Apply { dtype, .. }
            | Self::Scatter { dtype, .. }
            | Self::Fold { dtype, .. }
            | Self::Product { dtype, .. } => *dtype,
            Self::Copy { to, .. } => *to,
            Self::Foreign(work) => work.function.dtype,
        }
    }
}

/// Elements in a place, at strides in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Elements {
    pub extents: Extents,
    pub strides: Strides,
    pub first: isize,
    /// The stride and the extent of an axis along which the last argument of the step is an index.
    pub index: Option<(isize, usize)>,
}

impl Elements {
    /// The same in bytes, of elements of a size.
    pub fn in_bytes(mut self, size: usize) -> Self {
        let size = size.cast_signed();
        self.strides.iter_mut().for_each(|stride| *stride *= size);
        self.first *= size;
        self.index = self.index.map(|(stride, extent)| (stride * size, extent));
        self
    }

    /// The first element where the index is a number; `None` where that is out of range.
    pub fn first(&self, number: f64) -> Option<isize> {
        let Some((stride, extent)) = self.index else { return Some(self.first) };
        #[allow(clippy::cast_precision_loss, reason = "no axis has 2^53 elements")]
        let index = if number < 0.0 { number + extent as f64 } else { number };
        #[allow(clippy::cast_possible_truncation, reason = "it is compared")]
        let whole = index as isize;
        let is_within = index.fract() == 0.0 && (0..extent.cast_signed()).contains(&whole);
        is_within.then(|| self.first + whole * stride)
    }
}

/// Works of the last steps are looked at for one that is the same.
pub(super) const LOOKED_AT: usize = 256;

/// Numbers in a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub length: usize,
    pub dtype: Dtype,
    /// The node in whose place they lie, and the bytes before them.
    pub part_of: Option<(u32, usize)>,
}

/// A value: of those that are read, none is in a place before it is asked for.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub node: Option<u32>,
    pub kind: Kind,
    /// Of elements that do not lie one after the other in the place, or are not all of it: the first and the strides, in elements.
    pub view: Option<(isize, Strides)>,
}

impl Known {
    pub const fn new(node: Option<u32>, kind: Kind) -> Self {
        Self { node, kind, view: None }
    }
}

/// A step whose places are not known: its numbers are of nodes.
pub(super) struct Draft {
    pub work: u32,
    pub to: u32,
    pub from: SmallVec<[u32; 3]>,
}

/// Values and steps so far.
#[derive(Default)]
pub(super) struct Planner {
    pub values: Vec<Known>,
    pub nodes: Vec<Node>,
    pub loads: Vec<(u32, Load)>,
    pub works: Vec<Work>,
    pub drafts: Vec<Draft>,
    /// Values in other extents or another dtype.
    pub copies: HashMap<(usize, Extents, Dtype), u32>,
}

pub(super) fn length(extents: &[usize]) -> usize {
    extents.iter().product()
}

/// The dtype in which numbers of a precision are computed.
pub(super) const fn dtype_of(precision: Precision) -> Dtype {
    match precision {
        Precision::F32 => Dtype::F32,
        Precision::Weak | Precision::F64 => Dtype::F64,
    }
}

/// The number of an id; ids are of 32 bits.
pub(super) fn number(of: usize) -> u32 {
    u32::try_from(of).expect("ids are of 32 bits")
}

impl Planner {
    /// The extents and the dtype of an array of numbers.
    pub fn array(&self, value: usize) -> Option<(Extents, Dtype)> {
        match &self.values[value].kind {
            Kind::Array(extents, dtype, _) if *dtype != Dtype::Bool && length(extents) > 0 => {
                Some((extents.clone(), *dtype))
            }
            _ => None,
        }
    }

    /// The node of a value as an argument in extents and a dtype: as it is where it has them, or is one number.
    pub fn node(&mut self, value: usize, extents: &[usize], dtype: Dtype) -> Option<u32> {
        let Known { node, kind, view } = self.values[value].clone();
        let own = match &kind {
            Kind::Array(.., Layout::Permuted) => return None,
            Kind::Number(Precision::F64) if dtype == Dtype::F32 => return None,
            Kind::Array(_, its, _) if *its != dtype && *its != Dtype::Bool => return None,
            Kind::Number(_) => Extents::new(),
            Kind::Array(own, ..) => own.clone(),
        };
        let is_still = length(&own) == 1;
        let target = if is_still { Extents::new() } else { Extents::from_slice(extents) };
        if let (Some(node), None) = (node, &view)
            && self.nodes[node as usize].dtype == dtype
            && (is_still || own == target)
        {
            return Some(node);
        }
        let key = (value, target, dtype);
        if let Some(known) = self.copies.get(&key) {
            return Some(*known);
        }
        let count = length(&key.1);
        let result = if let Some(node) = node {
            let from = self.nodes[node as usize].dtype;
            let (first, strides) = match view {
                Some(view) => view,
                None => (0, contiguous_strides(&own, 1)?),
            };
            let strides = if is_still { Strides::new() } else { broadcast_strides(&own, &strides, extents)? };
            let part = if from == dtype { self.part(node, first, &key.1, &strides) } else { None };
            part.unwrap_or_else(|| {
                let elements = Elements { extents: key.1.clone(), strides, first, index: None };
                let elements = elements.in_bytes(from.size());
                self.step(Work::Copy { elements, from, to: dtype }, &[node], count)
            })
        } else {
            if !is_still {
                broadcast_strides(&own, &Strides::from_elem(0, own.len()), extents)?;
            }
            // One number is read in its own extents.
            let extents = if is_still { own } else { key.1.clone() };
            self.load(value, extents, dtype, is_still)
        };
        self.copies.insert(key, result);
        Some(result)
    }

    fn load(&mut self, read: usize, extents: Extents, dtype: Dtype, is_still: bool) -> u32 {
        let to = self.new_node(length(&extents), dtype);
        self.loads.push((to, Load { read, extents, dtype, is_still, place: 0 }));
        to
    }

    /// The node of an array that is read whose elements lie in any order.
    pub fn permuted(&mut self, value: usize, extents: &Extents, dtype: Dtype) -> u32 {
        let key = (value, extents.clone(), dtype);
        if let Some(known) = self.copies.get(&key) {
            return *known;
        }
        let node = self.load(value, extents.clone(), dtype, false);
        self.copies.insert(key, node);
        node
    }

    pub fn new_node(&mut self, length: usize, dtype: Dtype) -> u32 {
        self.nodes.push(Node { length, dtype, part_of: None });
        number(self.nodes.len() - 1)
    }

    /// Elements of a node as one of their own, without a copy: more than one, which lie one after the other, and are half of the node at least,
    /// whose place is kept for them.
    fn part(&mut self, node: u32, first: isize, extents: &[usize], strides: &[isize]) -> Option<u32> {
        let (Node { length: whole, dtype, .. }, count) = (self.nodes[node as usize], length(extents));
        let contiguous = contiguous_strides(extents, 1)?;
        let mut axes = extents.iter().zip(strides.iter().zip(&contiguous));
        let is_contiguous = axes.all(|(extent, (stride, its))| *extent == 1 || stride == its);
        if !is_contiguous || count < 2 || 2 * count < whole || dtype.size() < GRAIN {
            return None;
        }
        let part = self.new_node(count, dtype);
        self.nodes[part as usize].part_of = Some((node, usize::try_from(first).ok()? * dtype.size()));
        Some(part)
    }

    /// The node in whose place one lies, and the bytes before it.
    pub fn root(&self, mut node: u32) -> (u32, usize) {
        let mut bytes = 0;
        while let Some((of, ahead)) = self.nodes[node as usize].part_of {
            (node, bytes) = (of, bytes + ahead);
        }
        (node, bytes)
    }

    /// The number of a work.
    pub fn work(&mut self, work: Work) -> u32 {
        let back = self.works.iter().rev().take(LOOKED_AT).position(|known| *known == work).unwrap_or_else(|| {
            self.works.push(work);
            0
        });
        number(self.works.len() - 1 - back)
    }

    /// Adds a step, but for a copy that is one of the last steps; returns the node of its result.
    pub fn step(&mut self, work: Work, from: &[u32], length: usize) -> u32 {
        let work = self.work(work);
        let is_same = |draft: &&Draft| draft.work == work && draft.from[..] == *from;
        if let Work::Copy { .. } = self.works[work as usize]
            && let Some(known) = self.drafts.iter().rev().take(LOOKED_AT).find(is_same)
        {
            return known.to;
        }
        let to = self.new_node(length, self.works[work as usize].dtype());
        self.drafts.push(Draft { work, to, from: SmallVec::from_slice(from) });
        to
    }
}

/// A number where there are no extents, as NumPy's functions return it.
pub(super) fn number_or_array(shape: &[usize], dtype: Dtype) -> Kind {
    match (shape, dtype) {
        ([], Dtype::F32) => Kind::Number(Precision::F32),
        ([], _) => Kind::Number(Precision::F64),
        _ => Kind::array(shape, dtype),
    }
}
