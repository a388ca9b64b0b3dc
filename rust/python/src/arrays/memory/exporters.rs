//! The interfaces by which objects export their memory, found once per class.

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::array::view::ArrayView;
use pyo3::types::PyType;

use crate::arrays::memory::dlpack::{Described, Exchange, Export, Tensor, by_capsule, by_exchange, table};
use crate::arrays::memory::torch::Torch;
use crate::class_cache::ByClass;
use crate::error::unless_refused;
use crate::prelude::*;

/// The interface by which the objects of a class export their memory.
#[derive(Clone, Copy)]
pub struct Exporter {
    /// Its table of functions, if it has one: a call of a Python method takes fifty times as long.
    exchange: Option<&'static Exchange>,
    /// PyTorch, if the objects are its tensors.
    pub torch: Option<&'static Torch>,
    /// Whether they are of PyTorch's own classes, whose tensors can all be written.
    is_own: bool,
}

/// The interfaces found, by class.
static EXPORTERS: ByClass<Exporter> = ByClass::new();

impl Exporter {
    fn of(class: &Bound<'_, PyType>) -> PyResult<Self> {
        if let Some(known) = EXPORTERS.get(class, |exporter| *exporter) {
            return Ok(known);
        }
        let torch = Torch::of_class(class)?;
        let found = Self { exchange: table(class)?, torch, is_own: torch.is_some_and(|torch| torch.is_own(class)) };
        EXPORTERS.insert(class, found)?;
        Ok(found)
    }
}

impl Export {
    /// The array that an object exports; `None` if it exports none, one on a device, or a tensor with its negative bit
    /// set.
    pub fn of(object: &Object<'_>) -> PyResult<Option<(ArrayView, Self)>> {
        let negated = Exporter::of(&object.get_type())?.torch.map_or(Ok(false), |torch| torch.is_negated(object))?;
        if negated { Ok(None) } else { Self::of_memory(object) }
    }

    /// The same, of an object whose negative bit is known not to be set.
    pub fn of_memory(object: &Object<'_>) -> PyResult<Option<(ArrayView, Self)>> {
        let exported = match Exporter::of(&object.get_type())?.exchange {
            Some(exchange) => by_exchange(exchange, object)?,
            None => unless_refused(object.py(), by_capsule(object))?.flatten(),
        };
        Ok(exported.and_then(|export| Some((export.view()?, export))))
    }
}

/// The interfaces of a sequence of objects, most of them of one class or two, such as parameters and tensors.
#[derive(Default)]
pub struct Exporters<'py> {
    recent: [Option<(Bound<'py, PyType>, Exporter)>; 2],
}

impl<'py> Exporters<'py> {
    #[inline]
    fn recent(&self, object: &Object<'py>) -> Option<Exporter> {
        let class = object.get_type_ptr();
        let mut recent = self.recent.iter().flatten();
        recent.find(|(recent, _)| recent.as_type_ptr() == class).map(|(_, exporter)| *exporter)
    }

    fn remember(&mut self, class: Bound<'py, PyType>, exporter: Exporter) {
        self.recent.swap(0, 1);
        self.recent[0] = Some((class, exporter));
    }

    /// The interface of an object's class; for a new class this runs Python.
    pub fn of(&mut self, object: &Object<'py>) -> PyResult<Exporter> {
        if let Some(recent) = self.recent(object) {
            return Ok(recent);
        }
        let class = object.get_type();
        let found = Exporter::of(&class)?;
        if let Some(torch) = found.torch {
            torch.find_reader(object.py())?;
        }
        self.remember(class, found);
        Ok(found)
    }

    /// The same, if it was found before; runs no Python.
    #[inline]
    fn known(&mut self, object: &Object<'py>) -> Option<Exporter> {
        self.recent(object).or_else(|| {
            let class = object.get_type();
            let found = EXPORTERS.get(&class, |exporter| *exporter)?;
            self.remember(class, found);
            Some(found)
        })
    }

    /// Whether an object is a PyTorch tensor, if its class is known.
    #[inline]
    pub fn is_tensor(&mut self, object: &Object<'py>) -> bool {
        self.known(object).is_some_and(|exporter| exporter.torch.is_some())
    }

    /// Whether `is_at` is available for an object.
    pub fn can_tell(&mut self, object: &Object<'py>) -> bool {
        self.known(object).is_some_and(|exporter| {
            exporter.exchange.is_some_and(Exchange::can_tell)
                && exporter.torch.is_none_or(|torch| torch.reader().is_some())
        })
    }

    /// The description of an object that has the memory of all of its elements; `None` where only an export could tell. It runs no
    /// Python, and its pointers are valid until the object is changed.
    #[inline]
    fn borrowed(&mut self, object: &Object<'py>) -> Option<Tensor> {
        let Exporter { exchange: Some(exchange), torch, .. } = self.known(object)? else { return None };
        // SAFETY: the table is that of the object's class.
        let by_exchange = || unsafe { exchange.borrowed(object) };
        let Some(torch) = torch else { return by_exchange() };
        let reader = torch.reader()?;
        let tensor = reader.tensor(object).or_else(by_exchange)?;
        // SAFETY: the pointers are valid, as the object was not changed since.
        let (size, span) = unsafe { tensor.size_and_span()? };
        reader.storage(object)?.has(size, span).then_some(tensor)
    }

    /// Whether an object still is this array in host memory, and has the memory of all of its elements. It runs no Python; false where
    /// only an export could tell.
    #[inline]
    pub fn is_at(&mut self, object: &Object<'py>, view: &ArrayView) -> bool {
        // SAFETY: the pointers are valid, as the object was not changed since.
        self.borrowed(object).is_some_and(|tensor| unsafe { tensor.is(view) })
    }

    /// A tensor of PyTorch's own class with this shape and dtype, whose elements lie one after the other in its storage: the fast path
    /// of a check in every step, which runs no Python. `None` for any other object, which may still meet the requirements.
    #[inline]
    pub fn contiguous(&mut self, object: &Object<'py>, shape: &[usize], dtype: Dtype) -> Option<ArrayView> {
        self.known(object).filter(|exporter| exporter.is_own)?;
        // SAFETY: the pointers are valid, as the object was not changed since; tensors of these classes can all be written.
        unsafe { self.borrowed(object)?.contiguous(shape, dtype) }
    }

    /// The description of an array wherever it lies, if its class has a function that borrows one, and it has the memory of all of its
    /// elements; runs no Python.
    pub fn described(&mut self, object: &Object<'py>) -> Option<Described> {
        // SAFETY: the pointers are valid, as the object was not changed since.
        unsafe { self.borrowed(object)?.described() }
    }

    /// The address of an array that differs from a description by it at most, and has the memory of all of its elements; runs no
    /// Python.
    #[inline]
    pub fn address(&mut self, object: &Object<'py>, before: &Described) -> Option<usize> {
        // SAFETY: the pointers are valid, as the object was not changed since.
        unsafe { self.borrowed(object)?.address_if_like(before) }
    }

    /// As `is_at`, by an export, which keeps the memory; `None` if the array is elsewhere.
    #[inline]
    pub fn held_at(&mut self, object: &Object<'py>, view: &ArrayView) -> PyResult<Option<Export>> {
        let Some(Exporter { exchange: Some(exchange), torch, .. }) = self.known(object) else { return Ok(None) };
        let export = by_exchange(exchange, object)?.filter(|export| export.is(view));
        Ok(export.filter(|_| torch.is_none_or(|torch| torch.is_whole(object, view))))
    }
}
