//! The kinds of the leaves of a call: those of one kind have one recording.

use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::types::{PyBytes, PyComplex, PyFloat, PyInt, PyString, PyTuple, PyType};
use smallvec::SmallVec;

use crate::arrays::memory::numpy::{C_CONTIGUOUS, Numpy, are_one_dtype};
use crate::prelude::*;

/// The kind of a leaf: the shape, dtype and layout of an array, the class of a number, the value of plain data, the identity of anything else.
///
/// Arrays of NumPy and numbers are inputs of a recording; integers only ``with_ints``.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct LeafKind(Kind);

enum Kind {
    /// A plain array of NumPy.
    Array { extents: SmallVec<[usize; 4]>, dtype: Py<PyAny>, is_contiguous: bool },
    /// A number, or an array of a subclass, which no recording takes.
    Class(Py<PyType>),
    /// A scalar of NumPy, of a dtype that its class does not tell: a time in a unit, text.
    Scalar(Py<PyType>, Py<PyAny>),
    /// A value of a class that is compared by equality.
    Value(Py<PyType>, Py<PyAny>),
    /// Any other object.
    Object(Py<PyAny>),
}

impl LeafKind {
    /// Whether a leaf is of this kind.
    pub fn fits(&self, leaf: &Object<'_>) -> PyResult<bool> {
        let py = leaf.py();
        let is_of = |class: &Py<PyType>| leaf.get_type_ptr().cast() == class.as_ptr();
        Ok(match &self.0 {
            Kind::Array { extents, dtype, is_contiguous } => {
                let Some(fields) = Numpy::get(py).fields(leaf) else { return Ok(false) };
                (fields.flags & C_CONTIGUOUS != 0) == *is_contiguous
                    && fields.dimensions() == extents.len()
                    && fields.extents().eq(extents.iter().copied())
                    && fields.has_dtype(dtype.bind(py))?
            }
            Kind::Class(class) => is_of(class),
            Kind::Scalar(class, dtype) => is_of(class) && are_one_dtype(dtype.bind(py), &dtype_of(leaf)?)?,
            Kind::Value(class, value) => is_of(class) && (leaf.is(value) || leaf.eq(value)?),
            Kind::Object(object) => leaf.is(object),
        })
    }

    fn is_like(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        let are = |a: &Py<PyAny>, b: &Py<PyAny>| are_one_dtype(a.bind(py), b.bind(py));
        Ok(match (&self.0, &other.0) {
            (
                Kind::Array { extents, dtype, is_contiguous },
                Kind::Array { extents: others, dtype: other, is_contiguous: is_other },
            ) => extents == others && is_contiguous == is_other && are(dtype, other)?,
            (Kind::Class(class), Kind::Class(other)) => class.is(other),
            (Kind::Scalar(class, dtype), Kind::Scalar(other, others)) => class.is(other) && are(dtype, others)?,
            (Kind::Value(class, value), Kind::Value(other, others)) => class.is(other) && value.bind(py).eq(others)?,
            (Kind::Object(object), Kind::Object(other)) => object.is(other),
            _ => false,
        })
    }
}

#[pymethods]
impl LeafKind {
    #[new]
    #[pyo3(signature = (leaf, *, with_ints))]
    fn new(leaf: &Object<'_>, with_ints: bool) -> PyResult<Self> {
        let (py, class) = (leaf.py(), || leaf.get_type().unbind());
        let numpy = Numpy::get(py);
        if let Some(fields) = numpy.fields(leaf) {
            let (extents, is_contiguous) = (fields.extents().collect(), fields.flags & C_CONTIGUOUS != 0);
            return Ok(Self(Kind::Array { extents, dtype: dtype_of(leaf)?.unbind(), is_contiguous }));
        }
        if numpy.is_array(leaf)? {
            return Ok(Self(Kind::Class(class())));
        }
        if numpy.is_scalar(leaf)? {
            let dtype = dtype_of(leaf)?;
            let kind = dtype.getattr(intern!(py, "kind"))?;
            let is_number = matches!(&*kind.cast::<PyString>()?.to_cow()?, "b" | "i" | "u" | "f" | "c");
            return Ok(Self(if is_number { Kind::Class(class()) } else { Kind::Scalar(class(), dtype.unbind()) }));
        }
        let is_number = leaf.is_exact_instance_of::<PyFloat>()
            || leaf.is_exact_instance_of::<PyComplex>()
            || (with_ints && leaf.is_exact_instance_of::<PyInt>());
        if is_number {
            return Ok(Self(Kind::Class(class())));
        }
        let is_value =
            leaf.is_instance_of::<PyInt>() || leaf.is_instance_of::<PyString>() || leaf.is_instance_of::<PyBytes>();
        let leaf = leaf.clone().unbind();
        Ok(Self(if is_value { Kind::Value(leaf.bind(py).get_type().unbind(), leaf) } else { Kind::Object(leaf) }))
    }

    /// Whether leaves of this kind are inputs of a recording.
    #[getter]
    pub const fn is_input(&self) -> bool {
        matches!(self.0, Kind::Array { .. } | Kind::Class(_) | Kind::Scalar(..))
    }

    /// Whether it is the kind of arrays.
    #[getter]
    pub const fn is_array(&self) -> bool {
        matches!(self.0, Kind::Array { .. })
    }

    fn __eq__(&self, other: &Object<'_>) -> PyResult<bool> {
        other.cast::<Self>().map_or(Ok(false), |given| self.is_like(other.py(), given.get()))
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        match &self.0 {
            Kind::Array { extents, is_contiguous, .. } => {
                (PyTuple::new(py, extents)?, *is_contiguous).into_pyobject(py)?.hash()
            }
            Kind::Class(class) | Kind::Scalar(class, _) => class.bind(py).hash(),
            Kind::Value(_, value) => value.bind(py).hash(),
            Kind::Object(object) => Ok(object.as_ptr() as isize),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(match &self.0 {
            Kind::Array { extents, dtype, .. } => {
                format!("{}{extents:?}", dtype.bind(py).getattr(intern!(py, "name"))?.str()?.to_cow()?)
            }
            Kind::Class(class) | Kind::Scalar(class, _) => class.bind(py).name()?.to_cow()?.into_owned(),
            Kind::Value(_, value) | Kind::Object(value) => value.bind(py).repr()?.to_cow()?.into_owned(),
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Visited {
        match &self.0 {
            Kind::Array { dtype, .. } => visit.call(dtype),
            Kind::Class(class) => visit.call(class),
            Kind::Scalar(class, object) | Kind::Value(class, object) => {
                visit.call(class)?;
                visit.call(object)
            }
            Kind::Object(object) => visit.call(object),
        }
    }
}

fn dtype_of<'py>(leaf: &Object<'py>) -> PyResult<Object<'py>> {
    leaf.getattr(intern!(leaf.py(), "dtype"))
}
