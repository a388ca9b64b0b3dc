//! Views of values in the plan of a run: elements of a place at strides, which take a step only where they must lie one after the other.

use smallvec::SmallVec;

use super::nodes::{Draft, Elements, Known, LOOKED_AT, Node, Onto, Planner, Work, dtype_of, length, number_or_array};
use super::values::{Extents, Kind, Layout, View};
use crate::array::buffer::Dtype;
use crate::array::shape::{Strides, broadcast_strides, contiguous_strides};
use crate::op::Elementwise;
use crate::scalar::{Condition, Precision};

impl Planner {
    /// The node of a value in extents and a dtype: of all its elements, one after the other.
    pub(super) fn whole(&mut self, value: usize, extents: &[usize], dtype: Dtype) -> Option<u32> {
        let node = self.node(value, extents, dtype)?;
        let found = self.nodes[node as usize].length;
        if found == length(extents) {
            return Some(node);
        }
        let strides = Strides::from_elem(0, extents.len());
        let elements = Elements { extents: Extents::from_slice(extents), strides, first: 0, index: None };
        Some(self.step(Work::Copy { elements, from: dtype, to: dtype }, &[node], length(extents)))
    }

    /// The node of a number that an array repeats, as an argument of an op on arrays of these extents.
    pub(super) fn still(&self, value: usize, extents: &[usize], dtype: Dtype) -> Option<u32> {
        let Known { node, kind: Kind::Array(own, ..), view: Some((_, strides)) } = &self.values[value] else {
            return None;
        };
        let node = (*node)?;
        let Node { length, dtype: its, .. } = self.nodes[node as usize];
        broadcast_strides(own, strides, extents)?;
        (length == 1 && its == dtype).then_some(node)
    }

    /// A node with the elements of an array, the first of them and the strides, in elements.
    pub(super) fn elements(&mut self, value: usize, extents: &[usize], dtype: Dtype) -> Option<(u32, isize, Strides)> {
        if let Known { node: Some(node), view: Some((first, strides)), .. } = &self.values[value]
            && self.nodes[*node as usize].dtype == dtype
        {
            return Some((*node, *first, strides.clone()));
        }
        Some((self.node(value, extents, dtype)?, 0, contiguous_strides(extents, 1)?))
    }

    /// The elements of a view of an array, whose first element and strides are in elements of this size.
    pub(super) fn elements_of(view: &View, first: isize, strides: &[isize], size: usize) -> Option<Elements> {
        let index = view.index.map(|(axis, _)| (strides[axis], view.of[axis]));
        let (first, own) = view.is_within().then(|| view.within(first, strides))?;
        Some(Elements { extents: view.extents.clone(), strides: own, first, index }.in_bytes(size))
    }

    /// The node of the number of a view.
    pub(super) fn index_of(&mut self, view: &View, args: &[usize]) -> Option<SmallVec<[u32; 1]>> {
        if view.index.is_none() {
            return Some(SmallVec::new());
        }
        let number = *args.first()?;
        let is_number = self.values[number].kind == Kind::Number(Precision::Weak);
        let node = if is_number { self.node(number, &[], Dtype::F64) } else { None };
        node.map(|node| SmallVec::from_elem(node, 1))
    }

    /// A view: a step where its first element depends on a number.
    pub(super) fn view(&mut self, view: &View, dtype: Dtype, args: &[usize]) -> Option<Known> {
        let (value, rest) = args.split_first()?;
        let (own, layout) = match &self.values[*value].kind {
            Kind::Number(_) => (Extents::new(), Layout::Contiguous),
            Kind::Array(own, _, layout) => (own.clone(), *layout),
        };
        if own != view.of || own.contains(&0) || !view.is_within() {
            return None;
        }
        let (node, first, strides) = self.elements(*value, &own, dtype)?;
        let count = length(&view.extents);
        if view.index.is_some() {
            let elements = Self::elements_of(view, first, &strides, dtype.size())?;
            let mut from = SmallVec::<[u32; 3]>::from_elem(node, 1);
            from.extend(self.index_of(view, rest)?);
            let node = self.step(Work::Copy { elements, from: dtype, to: dtype }, &from, count);
            return Some(Known::new(Some(node), number_or_array(&view.extents, dtype)));
        }
        let (first, strides) = view.within(first, &strides);
        // The stride of an axis of one element means nothing.
        let contiguous = contiguous_strides(&view.extents, 1)?;
        let mut axes = view.extents.iter().zip(strides.iter().zip(&contiguous));
        let is_in_order =
            layout == Layout::Contiguous && axes.all(|(extent, (stride, its))| *extent == 1 || stride == its);
        let is_whole = first == 0 && is_in_order && self.nodes[node as usize].length == count;
        let kind = match number_or_array(&view.extents, dtype) {
            Kind::Array(extents, dtype, _) if !is_in_order => Kind::Array(extents, dtype, Layout::Strided),
            kind => kind,
        };
        Some(Known { node: Some(node), kind, view: (!is_whole).then_some((first, strides)) })
    }

    /// Values one after the other along an axis, or along a new one: a result of a step is written there at once, another is copied.
    pub(super) fn join(&mut self, axis: usize, is_new: bool, args: &[usize]) -> Option<Known> {
        let (mut parts, mut joined) = (Vec::new(), None);
        for arg in args {
            let (own, dtype) = match &self.values[*arg].kind {
                Kind::Number(precision) => (Extents::new(), dtype_of(*precision)),
                Kind::Array(..) => self.array(*arg)?,
            };
            let mut extents = own.clone();
            if is_new && axis <= own.len() {
                extents.insert(axis, 1);
            }
            let count = std::mem::take(extents.get_mut(axis)?);
            let (whole, its) = joined.get_or_insert_with(|| (extents.clone(), dtype));
            let start = std::mem::take(whole.get_mut(axis)?);
            if extents != *whole || dtype != *its {
                return None;
            }
            whole[axis] = start + count;
            extents[axis] = count;
            parts.push((*arg, own, start, extents));
        }
        let (whole, dtype) = joined?;
        let (strides, count) = (contiguous_strides(&whole, 1)?, length(&whole));
        let joined = self.new_node(count, dtype);
        for (arg, own, start, extents) in parts {
            let node = self.whole(arg, &own, dtype)?;
            let first = start.cast_signed() * strides[axis];
            let elements = Elements { extents, strides: strides.clone(), first, index: None }.in_bytes(dtype.size());
            if length(&whole[..axis]) == 1 && self.is_movable(node) {
                self.nodes[node as usize].part_of = Some((joined, usize::try_from(elements.first).ok()?));
                continue;
            }
            let work = self.work(Work::Scatter { elements, length: count, onto: Onto::Place, dtype });
            self.drafts.push(Draft { work, to: joined, from: SmallVec::from_elem(node, 1) });
        }
        Some(Known::new(Some(joined), Kind::array(&whole, dtype)))
    }

    /// Whether the result of one of the last steps may lie anywhere: it has more than one number, which would be repeated, and no place yet.
    fn is_movable(&self, node: u32) -> bool {
        let Node { length, part_of, .. } = self.nodes[node as usize];
        length > 1 && part_of.is_none() && self.drafts.iter().rev().take(LOOKED_AT).any(|draft| draft.to == node)
    }

    /// The node of an op on values that are repeated to extents.
    pub(super) fn apply(
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
            let node = match self.still(*arg, extents, dtype) {
                Some(node) => node,
                None => self.node(*arg, extents, dtype)?,
            };
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
        let elements = Elements { extents: Extents::from_slice(extents), strides, first: 0, index: None };
        Some(self.step(Work::Copy { elements, from: dtype, to: dtype }, &[node], self::length(extents)))
    }
}
