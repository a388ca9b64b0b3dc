//! The plan of a run: the steps of its calls, and the places of their values.

use smallvec::SmallVec;

use super::super::fold::Fold;
use super::super::source::Group;
use super::foreign::Left;
use super::nodes::{Draft, Known, Load, Onto, Planner, Work, dtype_of, length, number, number_or_array};
use super::places::Places;
use super::values::{GRAIN, Kind, Layout, SmallCall, Step};
use crate::array::buffer::Dtype;
use crate::array::shape::{Reduction, contiguous_strides};
use crate::scalar::{Condition, Precision};

/// A result that is needed later, and the dtype of its numbers in the place.
#[derive(Debug)]
pub(super) struct Store {
    pub kind: Kind,
    /// In bytes.
    pub place: usize,
    pub dtype: Dtype,
}

/// Steps, and the lines of their memory.
pub(super) struct Planned {
    pub loads: Vec<Load>,
    pub works: Vec<Work>,
    pub steps: Vec<Step>,
    pub stores: Vec<Store>,
    pub lines: usize,
}

/// The plan of calls; `None` where one does not take values of their kinds.
pub(super) fn planned(
    calls: &[(SmallCall, SmallVec<[usize; 3]>)],
    kinds: &[Kind],
    writes: &[usize],
) -> Option<Planned> {
    let values = kinds.iter().map(|kind| Known::new(None, kind.clone())).collect();
    let mut planner = Planner { values, ..Planner::default() };
    for (call, args) in calls {
        let known = planner.call(call, args)?;
        planner.values.push(known);
    }
    planner.placed(kinds.len(), writes)
}

impl Planner {
    fn call(&mut self, call: &SmallCall, args: &[usize]) -> Option<Known> {
        match call {
            SmallCall::Elementwise(op, Group { shape, dtype }, is_truth) => {
                let kind = Kind::array(shape, if *is_truth { Dtype::Bool } else { *dtype });
                let node = self.apply(*op, args, shape, *dtype, Condition::None)?;
                Some(Known::new(Some(node), kind))
            }
            SmallCall::Number(op, condition, precisions) => {
                let are = |(arg, precision): (&usize, &Precision)| self.values[*arg].kind == Kind::Number(*precision);
                if !args.iter().zip(precisions).all(are) || args.len() != precisions.len() {
                    return None;
                }
                let precision = precisions.iter().copied().max()?;
                let node = self.apply(*op, args, &[], dtype_of(precision), *condition)?;
                Some(Known::new(Some(node), Kind::Number(precision)))
            }
            SmallCall::Fold(axes, keepdims, fold) => {
                let (extents, dtype) = self.array(*args.first()?)?;
                // Other arrays have theirs in another order.
                if matches!(self.values[args[0]].kind, Kind::Array(.., Layout::Strided)) {
                    return None;
                }
                let Reduction { axes, shape } = Reduction::over(&extents, axes.as_deref(), *keepdims)?;
                let is_of = match fold {
                    Fold::Foreign(function) => function.dtype == dtype,
                    Fold::Sum | Fold::Mean => true,
                };
                if !is_of || !fold.fits(axes) {
                    return None;
                }
                let from = self.node(args[0], &extents, dtype)?;
                let node = self.step(Work::Fold { axes, fold: *fold, dtype }, &[from], axes.outer * axes.inner);
                Some(Known::new(Some(node), number_or_array(&shape, dtype)))
            }
            SmallCall::Product => self.product(args),
            SmallCall::ForeignProduct(function) => self.foreign_product(function, args),
            SmallCall::Reshape(shape) => {
                let (extents, dtype) = self.array(*args.first()?)?;
                let node = self.node(args[0], &extents, dtype)?;
                let fits = length(shape) == length(&extents);
                let layout = match self.values[args[0]].kind {
                    Kind::Array(.., layout) => layout,
                    Kind::Number(_) => Layout::Contiguous,
                };
                fits.then(|| Known::new(Some(node), Kind::Array(shape.clone(), dtype, layout)))
            }
            SmallCall::View(view, dtype) => self.view(view, *dtype, args),
            SmallCall::Join(axis, is_new) => self.join(*axis, *is_new, args),
            SmallCall::Foreign(function) => self.foreign(function, args, false, Left::Infinite),
            SmallCall::Cofactor(functions) => self.cofactor(functions, args),
            SmallCall::Scatter(view, dtype, adds) => {
                let of = args[..usize::from(*adds)].first();
                let [value, rest @ ..] = args.get(usize::from(*adds)..)? else { return None };
                let of = match of {
                    Some(of) => Some(self.whole(*of, &view.of, *dtype)?),
                    None => None,
                };
                let value = self.whole(*value, &view.extents, *dtype)?;
                let elements = Self::elements_of(view, 0, &contiguous_strides(&view.of, 1)?, dtype.size())?;
                let mut from = SmallVec::<[u32; 3]>::from_elem(value, 1);
                from.extend(of);
                from.extend(self.index_of(view, rest)?);
                let length = length(&view.of);
                let work = Work::Scatter {
                    elements,
                    length,
                    onto: if *adds { Onto::Sum } else { Onto::Zeros },
                    dtype: *dtype,
                };
                let node = self.step(work, &from, length);
                Some(Known::new(Some(node), Kind::array(&view.of, *dtype)))
            }
        }
    }

    /// The steps with the places of their values: one that is not read any more gives its place to a later one of the same size.
    fn placed(mut self, reads: usize, writes: &[usize]) -> Option<Planned> {
        const KEPT: usize = usize::MAX;
        let mut drafted = Vec::new();
        for at in writes {
            let kind = self.values[reads + at].kind.clone();
            let node = match &kind {
                Kind::Number(precision) => self.node(reads + at, &[], dtype_of(*precision))?,
                Kind::Array(..) if self.values[reads + at].view.is_none() => self.values[reads + at].node?,
                Kind::Array(extents, dtype, _) => self.node(reads + at, extents, *dtype)?,
            };
            drafted.push((node, kind));
        }
        let roots: Vec<(u32, usize)> = (0..number(self.nodes.len())).map(|node| self.root(node)).collect();
        let root = |node: u32| roots[node as usize].0;
        let mut last = vec![0; self.nodes.len()];
        for (at, Draft { to, from, .. }) in self.drafts.iter().enumerate() {
            from.iter().chain([to]).for_each(|node| last[root(*node) as usize] = at);
        }
        let mut stores = Vec::new();
        for (node, kind) in drafted {
            // A view of an array whose elements lie apart: arrays here do not.
            if matches!(kind, Kind::Array(.., Layout::Strided)) {
                return None;
            }
            last[root(node) as usize] = KEPT;
            stores.push((node, kind));
        }
        let mut places = Places::new(self.nodes.len());
        for (node, load) in &mut self.loads {
            load.place = places.take(*node, &self.nodes);
        }
        let mut steps = Vec::with_capacity(self.drafts.len());
        for (at, Draft { work, to, from }) in self.drafts.iter().enumerate() {
            // An array that nothing else reads gives its place to its sum.
            let is_taken = |node: &u32| {
                let is_only = from.iter().filter(|other| root(**other) == *node).count() == 1;
                let is_whole = |node: u32| self.nodes[node as usize].part_of.is_none();
                is_only && is_whole(*node) && is_whole(*to) && last[*node as usize] == at
            };
            let taken = match &self.works[*work as usize] {
                Work::Scatter { onto: Onto::Sum, .. } => Some(from[1]).filter(is_taken),
                _ => None,
            };
            if let Some(node) = taken {
                places.of[*to as usize] = places.of[node as usize];
            }
            let mut grain = |node: u32| {
                let (root, bytes) = roots[node as usize];
                u32::try_from((places.take(root, &self.nodes) + bytes) / GRAIN).ok()
            };
            let to = grain(*to)?;
            let mut grains = [to; 3];
            for (grain_of, node) in grains.iter_mut().zip(from) {
                *grain_of = grain(*node)?;
            }
            steps.push(Step { work: *work, to, from: grains });
            for (position, node) in from.iter().enumerate() {
                let (node, is_known) = (root(*node), from[..position].iter().any(|known| root(*known) == root(*node)));
                if last[node as usize] == at && !is_known && taken != Some(node) {
                    places.give(node, &self.nodes);
                }
            }
        }
        let stores = stores.into_iter().map(|(node, kind)| {
            let (root, bytes) = roots[node as usize];
            let place = places.take(root, &self.nodes) + bytes;
            Store { kind, place, dtype: self.nodes[node as usize].dtype }
        });
        let stores = stores.collect();
        let loads = self.loads.into_iter().map(|(_, load)| load).collect();
        Some(Planned { loads, works: self.works, steps, stores, lines: places.lines })
    }
}
