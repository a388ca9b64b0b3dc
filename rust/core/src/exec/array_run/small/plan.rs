//! The plan of a run: the steps of its calls, and the places of their values.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::super::source::Group;
use super::values::{Extents, Kind, LINE, Layout, SmallCall, Step};
use crate::array::buffer::Dtype;
use crate::array::matmul::{is_narrow, product_extents};
use crate::array::shape::{Reduction, Strides, broadcast_strides, contiguous_strides};
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
    pub place: u32,
}

/// A result that is needed later, and the dtype of its numbers in the place.
#[derive(Debug)]
pub(super) struct Store {
    pub kind: Kind,
    pub place: u32,
    pub dtype: Dtype,
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
    /// Elements at strides, of a dtype, to one after the other of another.
    Copy {
        extents: Extents,
        strides: Strides,
        from: Dtype,
        to: Dtype,
    },
    Sum {
        axes: Axes,
        is_mean: bool,
        dtype: Dtype,
    },
    /// Rows of the left factor, its columns, and those of the right one.
    Product {
        rows: [usize; 3],
        dtype: Dtype,
    },
}

impl Work {
    /// The dtype of the result.
    pub const fn dtype(&self) -> Dtype {
        match self {
            Self::Apply { dtype, .. } | Self::Sum { dtype, .. } | Self::Product { dtype, .. } => *dtype,
            Self::Copy { to, .. } => *to,
        }
    }
}

/// Steps, and the lines of their memory.
pub(super) struct Planned {
    pub loads: Vec<Load>,
    pub works: Vec<Work>,
    pub steps: Vec<Step>,
    pub stores: Vec<Store>,
    pub lines: usize,
}

/// Works of the last steps are looked at for one that is the same.
const LOOKED_AT: usize = 256;

/// Numbers in a place.
#[derive(Clone, Copy, Debug)]
struct Node {
    length: usize,
    dtype: Dtype,
}

/// A value: of those that are read, none is in a place before it is asked for.
#[derive(Clone, Debug)]
struct Known {
    node: Option<u32>,
    kind: Kind,
}

/// A step whose places are not known: its numbers are of nodes.
struct Draft {
    work: u32,
    to: u32,
    from: SmallVec<[u32; 3]>,
}

#[derive(Default)]
struct Planner {
    values: Vec<Known>,
    nodes: Vec<Node>,
    loads: Vec<(u32, Load)>,
    works: Vec<Work>,
    drafts: Vec<Draft>,
    /// Values in other extents or another dtype.
    copies: HashMap<(usize, Extents, Dtype), u32>,
}

/// The plan of calls; `None` where one does not take values of their kinds.
pub(super) fn planned(
    calls: &[(SmallCall, SmallVec<[usize; 3]>)],
    kinds: &[Kind],
    writes: &[usize],
) -> Option<Planned> {
    let values = kinds.iter().map(|kind| Known { node: None, kind: kind.clone() }).collect();
    let mut planner = Planner { values, ..Planner::default() };
    for (call, args) in calls {
        let known = planner.call(call, args)?;
        planner.values.push(known);
    }
    planner.placed(kinds.len(), writes)
}

fn length(extents: &[usize]) -> usize {
    extents.iter().product()
}

/// The dtype in which numbers of a precision are computed.
const fn dtype_of(precision: Precision) -> Dtype {
    match precision {
        Precision::F32 => Dtype::F32,
        Precision::Weak | Precision::F64 => Dtype::F64,
    }
}

/// The number of an id; ids are of 32 bits.
fn number(of: usize) -> u32 {
    u32::try_from(of).expect("ids are of 32 bits")
}

impl Planner {
    fn call(&mut self, call: &SmallCall, args: &[usize]) -> Option<Known> {
        match call {
            SmallCall::Elementwise(op, Group { shape, dtype }, is_truth) => {
                let kind = Kind::array(shape, if *is_truth { Dtype::Bool } else { *dtype });
                let node = self.apply(*op, args, shape, *dtype, Condition::None)?;
                Some(Known { node: Some(node), kind })
            }
            SmallCall::Number(op, condition, precisions) => {
                let are = |(arg, precision): (&usize, &Precision)| self.values[*arg].kind == Kind::Number(*precision);
                if !args.iter().zip(precisions).all(are) || args.len() != precisions.len() {
                    return None;
                }
                let precision = precisions.iter().copied().max()?;
                let node = self.apply(*op, args, &[], dtype_of(precision), *condition)?;
                Some(Known { node: Some(node), kind: Kind::Number(precision) })
            }
            SmallCall::Sum(axes, keepdims, is_mean) => {
                let (extents, dtype) = self.array(*args.first()?)?;
                // Other arrays have sums in another order.
                if matches!(self.values[args[0]].kind, Kind::Array(.., Layout::Strided)) {
                    return None;
                }
                let Reduction { axes, shape } = Reduction::over(&extents, axes.as_deref(), *keepdims)?;
                let from = self.node(args[0], &extents, dtype)?;
                let node = self.step(Work::Sum { axes, is_mean: *is_mean, dtype }, &[from], axes.outer * axes.inner);
                Some(Known { node: Some(node), kind: number_or_array(&shape, dtype) })
            }
            SmallCall::Product => {
                let ([(one, dtype), (other, its)], [left, right]) =
                    ([self.array(*args.first()?)?, self.array(*args.get(1)?)?], [args[0], args[1]]);
                let (rows, shape) = product_extents(&one, &other)?;
                if dtype != its || !is_narrow(rows[1], rows[2]) {
                    return None;
                }
                let from = [self.node(left, &one, dtype)?, self.node(right, &other, dtype)?];
                let node = self.step(Work::Product { rows, dtype }, &from, rows[0] * rows[2]);
                Some(Known { node: Some(node), kind: number_or_array(&shape, dtype) })
            }
            SmallCall::Reshape(shape) => {
                let (extents, dtype) = self.array(*args.first()?)?;
                let node = self.node(args[0], &extents, dtype)?;
                let fits = length(shape) == length(&extents);
                let layout = match self.values[args[0]].kind {
                    Kind::Array(.., layout) => layout,
                    Kind::Number(_) => Layout::Contiguous,
                };
                fits.then(|| Known { node: Some(node), kind: Kind::Array(shape.clone(), dtype, layout) })
            }
        }
    }

    /// The extents and the dtype of an array of numbers.
    fn array(&self, value: usize) -> Option<(Extents, Dtype)> {
        match &self.values[value].kind {
            Kind::Array(extents, dtype, _) if *dtype != Dtype::Bool && length(extents) > 0 => {
                Some((extents.clone(), *dtype))
            }
            _ => None,
        }
    }

    /// The node of an op on values that are repeated to extents.
    fn apply(
        &mut self,
        op: Elementwise,
        args: &[usize],
        extents: &[usize],
        dtype: Dtype,
        condition: Condition,
    ) -> Option<u32> {
        if args.len() != op.arity() || length(extents) == 0 {
            return None;
        }
        let (mut from, mut moves) = (SmallVec::<[u32; 3]>::new(), [false; 3]);
        for (arg, moves) in args.iter().zip(&mut moves) {
            let node = self.node(*arg, extents, dtype)?;
            *moves = self.nodes[node as usize].length > 1;
            from.push(node);
        }
        // Of still arguments alone the result is repeated afterwards.
        let length = if moves == [false; 3] { 1 } else { length(extents) };
        let work = Work::Apply { op, moves, length, dtype, condition };
        let node = self.step(work, &from, length);
        if length == self::length(extents) {
            return Some(node);
        }
        let strides = Strides::from_elem(0, extents.len());
        let work = Work::Copy { extents: Extents::from_slice(extents), strides, from: dtype, to: dtype };
        Some(self.step(work, &[node], self::length(extents)))
    }

    /// The node of a value as an argument in extents and a dtype: as it is where it has them, or is one number.
    fn node(&mut self, value: usize, extents: &[usize], dtype: Dtype) -> Option<u32> {
        let Known { node, kind } = self.values[value].clone();
        let own = match &kind {
            Kind::Number(Precision::F64) if dtype == Dtype::F32 => return None,
            Kind::Array(_, its, _) if *its != dtype && *its != Dtype::Bool => return None,
            Kind::Number(_) => Extents::new(),
            Kind::Array(own, ..) => own.clone(),
        };
        let is_still = length(&own) == 1;
        let target = if is_still { Extents::new() } else { Extents::from_slice(extents) };
        if let Some(node) = node
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
            let strides = contiguous_strides(&own, from.size())?;
            let strides = if is_still { Strides::new() } else { broadcast_strides(&own, &strides, extents)? };
            self.step(Work::Copy { extents: key.1.clone(), strides, from, to: dtype }, &[node], count)
        } else {
            if !is_still {
                broadcast_strides(&own, &Strides::from_elem(0, own.len()), extents)?;
            }
            let to = self.new_node(count, dtype);
            // One number is read in its own extents.
            let extents = if is_still { own } else { key.1.clone() };
            self.loads.push((to, Load { read: value, extents, dtype, is_still, place: 0 }));
            to
        };
        self.copies.insert(key, result);
        Some(result)
    }

    fn new_node(&mut self, length: usize, dtype: Dtype) -> u32 {
        self.nodes.push(Node { length, dtype });
        number(self.nodes.len() - 1)
    }

    /// Adds a step; returns the node of its result.
    fn step(&mut self, work: Work, from: &[u32], length: usize) -> u32 {
        let to = self.new_node(length, work.dtype());
        let back = self.works.iter().rev().take(LOOKED_AT).position(|known| *known == work).unwrap_or_else(|| {
            self.works.push(work);
            0
        });
        let work = self.works.len() - 1 - back;
        self.drafts.push(Draft { work: number(work), to, from: SmallVec::from_slice(from) });
        to
    }

    /// The steps with the places of their values: one that is not read any more gives its place to a later one of the same size.
    fn placed(mut self, reads: usize, writes: &[usize]) -> Option<Planned> {
        const KEPT: usize = usize::MAX;
        let mut last = vec![0; self.nodes.len()];
        for (at, draft) in self.drafts.iter().enumerate() {
            draft.from.iter().for_each(|node| last[*node as usize] = at);
        }
        let mut stores = Vec::new();
        for at in writes {
            let Known { node, kind } = &self.values[reads + at];
            let node = (*node)?;
            // A view of an array whose elements lie apart: arrays here do not.
            if matches!(kind, Kind::Array(.., Layout::Strided)) {
                return None;
            }
            last[node as usize] = KEPT;
            stores.push((node, kind.clone()));
        }
        let mut places = Places { of: vec![0; self.nodes.len()], spare: HashMap::new(), lines: 0 };
        for (node, load) in &mut self.loads {
            load.place = places.take(*node, &self.nodes);
        }
        let mut steps = Vec::with_capacity(self.drafts.len());
        for (at, Draft { work, to, from }) in self.drafts.iter().enumerate() {
            let place = places.take(*to, &self.nodes);
            let mut lines = [place; 3];
            for (line, node) in lines.iter_mut().zip(from) {
                *line = places.of[*node as usize];
            }
            steps.push(Step { work: *work, to: place, from: lines });
            for (position, node) in from.iter().enumerate() {
                if last[*node as usize] == at && !from[..position].contains(node) {
                    places.give(*node, &self.nodes);
                }
            }
        }
        let stores = stores.into_iter().map(|(node, kind)| Store {
            kind,
            place: places.of[node as usize],
            dtype: self.nodes[node as usize].dtype,
        });
        let stores = stores.collect();
        let loads = self.loads.into_iter().map(|(_, load)| load).collect();
        Some(Planned { loads, works: self.works, steps, stores, lines: places.lines })
    }
}

/// The first lines of the places of nodes, and those that nothing needs any more, by their size.
struct Places {
    of: Vec<u32>,
    spare: HashMap<usize, Vec<u32>>,
    lines: usize,
}

impl Places {
    fn size(Node { length, dtype }: Node) -> usize {
        (length * dtype.size()).div_ceil(LINE).max(1)
    }

    fn take(&mut self, node: u32, nodes: &[Node]) -> u32 {
        let size = Self::size(nodes[node as usize]);
        let spare = self.spare.get_mut(&size).and_then(Vec::pop);
        let place = spare.unwrap_or_else(|| {
            self.lines += size;
            number(self.lines - size)
        });
        self.of[node as usize] = place;
        place
    }

    fn give(&mut self, node: u32, nodes: &[Node]) {
        self.spare.entry(Self::size(nodes[node as usize])).or_default().push(self.of[node as usize]);
    }
}

/// A number where there are no extents, as NumPy's functions return it.
fn number_or_array(shape: &[usize], dtype: Dtype) -> Kind {
    match (shape, dtype) {
        ([], Dtype::F32) => Kind::Number(Precision::F32),
        ([], _) => Kind::Number(Precision::F64),
        _ => Kind::array(shape, dtype),
    }
}
