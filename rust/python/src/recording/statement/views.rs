//! Calls whose results are elements of an array, and their cotangents, as parts of runs.

use oxigrad_core::exec::array_run::small::MOST;
use pyo3::types::{PyEllipsis, PyList, PySlice, PySliceMethods, PyTuple};

use super::entries::{At, FLOATS, Stated, integer};
use crate::prelude::*;

/// Calls whose results are views.
pub const VIEWS: [(&str, &str); 8] = [
    ("op", "index"),
    ("operator", "getitem"),
    ("op", "permute_dims"),
    ("attribute", "T"),
    ("attribute", "mT"),
    ("op", "broadcast_to"),
    ("op", "expand_dims"),
    ("op", "reshape"),
];
const OF_KEYS: &[(&str, &str)] = &[("op", "index"), ("operator", "getitem")];
/// The number of views of views that are looked at.
const DEEPEST: usize = 8;

/// For each axis of an array the first index, and the position of the argument that is the first index, or zero.
type Starts = Vec<(isize, isize)>;

/// For each axis of a view that of the array, or -1, and the step.
type Axes = Vec<(isize, isize)>;

/// The shape of a view, and its parts: see [`Stated`].
struct Parts {
    shape: Vec<usize>,
    stated: Vec<isize>,
}

impl Parts {
    fn new(shape: Vec<usize>, extents: &[usize], starts: &Starts, axes: Axes) -> Self {
        let of =
            extents.iter().zip(starts).flat_map(|(extent, (start, position))| [signed(*extent), *start, *position]);
        let stated = of.chain(axes.into_iter().flat_map(|(axis, step)| [axis, step])).collect();
        Self { shape, stated }
    }
}

impl<'py> At<'_, 'py> {
    /// The part of elements of an array, or of a number that is repeated.
    pub fn view(self) -> Option<Stated> {
        self.view_within(DEEPEST)
    }

    fn view_within(self, most: usize) -> Option<Stated> {
        let (of, (shape, dtype)) = (self.first()?, self.found()?);
        let (extents, its) = of.array_type();
        if dtype != its || !FLOATS.contains(&dtype.as_str()) || of.is_out_of_order_within(most - 1) {
            return None;
        }
        if !self.calls(OF_KEYS) && self.reads_others() {
            return None;
        }
        let parts = self.view_parts(&extents, &shape)?;
        Some(("index".to_owned(), shape, vec![dtype], Some((parts.stated, false))))
    }

    /// The part of a cotangent of elements, which is added at a key.
    pub fn scatter(self) -> Option<Stated> {
        let (shape, dtype) = self.found()?;
        let [total, g, key, extents] = &self.args().iter().collect::<Vec<_>>()[..] else { return None };
        let (total, g) = (if total.is_none() { None } else { Some(self.entry_of(total)?) }, self.entry_of(g)?);
        let is_fit = |each: Self| each.array_type().1 == dtype && !each.is_out_of_order_within(0);
        let are_fit = is_fit(g) && total.is_none_or(|total| is_fit(total) && total.array_type().0 == shape);
        if !FLOATS.contains(&dtype.as_str()) || extents.extract::<Vec<usize>>().ok()? != shape || !are_fit {
            return None;
        }
        let parts = self.key_parts(key, &shape, if total.is_some() { 2 } else { 1 })?;
        let part = g.array_type().0;
        (part == parts.shape)
            .then(|| ("scatter_add".to_owned(), part, vec![dtype], Some((parts.stated, total.is_some()))))
    }

    /// Whether the value may lie in another order, and is no view within a run.
    pub fn is_out_of_order(self) -> bool {
        self.is_out_of_order_within(DEEPEST)
    }

    fn is_out_of_order_within(self, most: usize) -> bool {
        self.is_permuted() && (most == 0 || !self.calls(&VIEWS) || self.view_within(most).is_none())
    }

    /// Whether a value in another order is a view of a small array within a run.
    pub fn is_small_view(self) -> bool {
        if self.is_out_of_order() {
            return false;
        }
        let mut of = self;
        while let (true, Some(first)) = (of.calls(&VIEWS), of.first()) {
            of = first;
        }
        of.array_type().0.iter().product::<usize>() <= MOST
    }

    /// The parts of a call on an array of these extents with a result of a shape; `None` if it is no view.
    fn view_parts(self, extents: &[usize], shape: &[usize]) -> Option<Parts> {
        let (name, starts) = (self.target().1, vec![(0, 0); extents.len()]);
        let parts = if name == "index" || name == "getitem" {
            let key = if name == "index" { self.value_of("key")? } else { self.args().get_item(1).ok()? };
            if extents.is_empty() {
                return None;
            }
            self.key_parts(&key, extents, 1)?
        } else if name == "broadcast_to" || extents.is_empty() {
            let ahead = shape.len().checked_sub(extents.len())?;
            let axis = |(axis, extent): (usize, &usize)| {
                let is_kept = axis >= ahead && extents[axis - ahead] == *extent;
                (if is_kept { signed(axis - ahead) } else { -1 }, 1)
            };
            Parts::new(shape.to_vec(), extents, &starts, shape.iter().enumerate().map(axis).collect())
        } else {
            let order = self.order(&name, extents.len())?;
            let axes = order.iter().map(|axis| (signed(*axis), 1)).collect();
            Parts::new(order.iter().map(|axis| extents[*axis]).collect(), extents, &starts, axes)
        };
        (parts.shape == shape && !shape.contains(&0)).then_some(parts)
    }

    /// The axes of an array in the order of a call.
    fn order(self, name: &str, dimensions: usize) -> Option<Vec<usize>> {
        let mut order: Vec<usize> = (0..dimensions).collect();
        match name {
            "T" => order.reverse(),
            "mT" if dimensions > 1 => order.swap(dimensions - 2, dimensions - 1),
            "permute_dims" if dimensions > 0 => {
                let axes = self.value_of("axes")?;
                if !axes.is_instance_of::<PyTuple>() && !axes.is_instance_of::<PyList>() {
                    return None;
                }
                let axes = items(&axes).ok()?.iter().map(integer).collect::<Option<Vec<_>>>()?;
                let of: Vec<usize> =
                    axes.iter().map(|axis| axis.rem_euclid(signed(dimensions)).unsigned_abs()).collect();
                let mut sorted = of.clone();
                sorted.sort_unstable();
                if sorted != order {
                    return None;
                }
                order = of;
            }
            _ => return None,
        }
        Some(order)
    }

    /// The parts of elements at a key of integers, slices, `...` and None, of which one may be a value: the argument at a
    /// position.
    fn key_parts(self, key: &Object<'py>, extents: &[usize], position: isize) -> Option<Parts> {
        let tuple = key.cast_exact::<PyTuple>().ok();
        let mut keys: Vec<Object<'py>> = tuple.map_or_else(|| vec![key.clone()], |tuple| tuple.iter().collect());
        let is_ellipsis = |each: &Object<'py>| each.is_instance_of::<PyEllipsis>();
        let ellipses = keys.iter().filter(|each| is_ellipsis(each)).count();
        let left =
            extents.len().checked_sub(keys.iter().filter(|each| !each.is_none() && !is_ellipsis(each)).count())?;
        if ellipses > 1 {
            return None;
        }
        let at = keys.iter().position(is_ellipsis).unwrap_or(keys.len());
        let all = PySlice::full(self.py()).into_any();
        keys.splice(at..at + ellipses, vec![all; left]);
        let mut starts: Starts = vec![(0, 0); extents.len()];
        let (mut shape, mut axes, mut axis): (Vec<usize>, Axes, usize) = (Vec::new(), Vec::new(), 0);
        for each in &keys {
            if each.is_none() {
                shape.push(1);
                axes.push((-1, 1));
                continue;
            }
            let extent = signed(extents[axis]);
            if let Ok(slice) = each.cast_exact::<PySlice>() {
                let bounds = ["start", "stop", "step"].map(|name| slice.getattr(name));
                let are_plain = |bound: &PyResult<Object<'py>>| {
                    bound.as_ref().is_ok_and(|bound| bound.is_none() || integer(bound).is_some())
                };
                if !bounds.iter().all(are_plain) {
                    return None;
                }
                let taken = slice.indices(extent).ok()?;
                shape.push(taken.slicelength);
                axes.push((signed(axis), taken.step));
                starts[axis] = (taken.start, 0);
            } else if let Some(index) = integer(each) {
                if !(-extent..extent).contains(&index) {
                    return None;
                }
                starts[axis] = (index.rem_euclid(extent), 0);
            } else {
                let is_first = starts.iter().all(|(_, position)| *position == 0);
                if !is_first || !self.entry_of(each)?.is_index() {
                    return None;
                }
                starts[axis] = (0, position);
            }
            axis += 1;
        }
        // An array without dimensions is no number.
        let fits = !shape.contains(&0) && (!shape.is_empty() || ellipses == 0);
        fits.then(|| Parts::new(shape, extents, &starts, axes))
    }
}

fn signed(extent: usize) -> isize {
    extent.cast_signed()
}
