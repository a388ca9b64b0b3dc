//! The methods of the `Variable` class, as Python calls them.

use oxigrad_core::op::{Elementwise, Op, Structured};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::gc::PyVisit;
use pyo3::types::{PyComplex, PyDict, PyFloat, PyInt, PyString, PyTuple};
use smallvec::SmallVec;

use crate::arrays::batch_level::BatchLevel;
use crate::arrays::compute::numpy_functions::is_host;
use crate::arrays::value::{Value, host_number};
use crate::autodiff::graph::open_tapes::OpenTapes;
use crate::autodiff::graph::variable::{Variable, copied, plain, snapshot};
use crate::autodiff::operations::indexed_assignment;
use crate::autodiff::operations::operators::{augmented, binary, matmul, plain_binary, refuse_modulo, ufunc_op, unary};
use crate::autodiff::operations::record::{record, record_call};
use crate::callbacks;
use crate::prelude::*;

/// Registers the in-place operators under their names.
pub fn register(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<Variable>();
    for name in ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"] {
        let own = format!("_i{name}");
        class.setattr(format!("__i{name}__"), class.getattr(&own)?)?;
        class.delattr(own)?;
    }
    Ok(())
}

#[pymethods]
impl Variable {
    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        binary(slf, other, Elementwise::Add, false)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        binary(slf, other, Elementwise::Add, true)
    }

    fn __sub__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        binary(slf, other, Elementwise::Subtract, false)
    }

    fn __rsub__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        binary(slf, other, Elementwise::Subtract, true)
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        binary(slf, other, Elementwise::Multiply, false)
    }

    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        binary(slf, other, Elementwise::Multiply, true)
    }

    fn __truediv__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        binary(slf, other, Elementwise::Divide, false)
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        binary(slf, other, Elementwise::Divide, true)
    }

    fn __mod__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        binary(slf, other, Elementwise::Remainder, false)
    }

    fn __rmod__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        binary(slf, other, Elementwise::Remainder, true)
    }

    fn __floordiv__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        plain_binary(slf, other, Elementwise::FloorDivide, false)
    }

    fn __rfloordiv__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        plain_binary(slf, other, Elementwise::FloorDivide, true)
    }

    fn __pow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Object<'py>,
        modulo: Option<&Object<'py>>,
    ) -> PyResult<Object<'py>> {
        refuse_modulo(modulo)?;
        binary(slf, other, Elementwise::Pow, false)
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Object<'py>,
        modulo: Option<&Object<'py>>,
    ) -> PyResult<Object<'py>> {
        refuse_modulo(modulo)?;
        binary(slf, other, Elementwise::Pow, true)
    }

    fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        matmul(slf.py(), [slf.as_any(), other])
    }

    fn __rmatmul__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        matmul(slf.py(), [other, slf.as_any()])
    }

    // Augmented assignment. The slots of PyO3 for these always return `self`, but numbers need a new object, as in
    // Python. The methods are therefore renamed when the module is initialized.

    fn _iadd<'py>(slf: &Bound<'py, Self>, value: &Object<'py>) -> PyResult<Object<'py>> {
        augmented(slf, value, Elementwise::Add)
    }

    fn _isub<'py>(slf: &Bound<'py, Self>, value: &Object<'py>) -> PyResult<Object<'py>> {
        augmented(slf, value, Elementwise::Subtract)
    }

    fn _imul<'py>(slf: &Bound<'py, Self>, value: &Object<'py>) -> PyResult<Object<'py>> {
        augmented(slf, value, Elementwise::Multiply)
    }

    fn _itruediv<'py>(slf: &Bound<'py, Self>, value: &Object<'py>) -> PyResult<Object<'py>> {
        augmented(slf, value, Elementwise::Divide)
    }

    fn _ifloordiv<'py>(slf: &Bound<'py, Self>, value: &Object<'py>) -> PyResult<Object<'py>> {
        augmented(slf, value, Elementwise::FloorDivide)
    }

    fn _imod<'py>(slf: &Bound<'py, Self>, value: &Object<'py>) -> PyResult<Object<'py>> {
        augmented(slf, value, Elementwise::Remainder)
    }

    #[pyo3(signature = (value, r#mod = None, /))]
    fn _ipow<'py>(slf: &Bound<'py, Self>, value: &Object<'py>, r#mod: Option<&Object<'py>>) -> PyResult<Object<'py>> {
        refuse_modulo(r#mod)?;
        augmented(slf, value, Elementwise::Pow)
    }

    fn _imatmul<'py>(slf: &Bound<'py, Self>, value: &Object<'py>) -> PyResult<Object<'py>> {
        indexed_assignment::in_place(slf, matmul(slf.py(), [slf.as_any(), value])?)
    }

    fn __divmod__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<(Object<'py>, Object<'py>)> {
        Ok((Self::__floordiv__(slf, other)?, Self::__mod__(slf, other)?))
    }

    fn __rdivmod__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<(Object<'py>, Object<'py>)> {
        Ok((Self::__rfloordiv__(slf, other)?, Self::__rmod__(slf, other)?))
    }

    fn __neg__<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
        unary(slf, Elementwise::Negative)
    }

    fn __pos__<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
        unary(slf, Elementwise::Positive)
    }

    fn __abs__<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
        unary(slf, Elementwise::Abs)
    }

    fn __richcmp__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>, how: CompareOp) -> PyResult<Object<'py>> {
        let op = match how {
            CompareOp::Lt => Elementwise::Less,
            CompareOp::Le => Elementwise::LessEqual,
            CompareOp::Gt => Elementwise::Greater,
            CompareOp::Ge => Elementwise::GreaterEqual,
            CompareOp::Eq => Elementwise::Equal,
            CompareOp::Ne => Elementwise::NotEqual,
        };
        record(slf.py(), Op::Elementwise(op), &[slf.as_any().clone(), other.clone()], None)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        self.known(py, "the truth")?.is_truthy()
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        let value = self.known(py, "the value")?;
        if self.carries(py) && self.is_recording(py) && !callbacks::is_formatting(py, ())?.is_truthy()? {
            return Err(PyTypeError::new_err(
                "a variable does not turn into a float by itself, since that would lose its derivative: use xp's \
                 functions in place of math's; y = np.zeros(n, like=x), or xp.zeros(n), in place of np.zeros(n), for an \
                 array that takes assignments; ox.stop_gradient(x) gives the number, and f\"{x:.3f}\" its text",
            ));
        }
        py.get_type::<PyFloat>().call1((plain(&value)?,))?.extract()
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let value = self.known(py, "the value")?;
        if self.carries(py) && self.is_recording(py) {
            return Err(PyTypeError::new_err(
                "a variable does not turn into a complex number by itself, since that would lose its derivative: \
                 complex(ox.stop_gradient(x)) is the number",
            ));
        }
        py.get_type::<PyComplex>().call1((plain(&value)?,))
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let value = plain(&self.known(py, "the value")?)?;
        py.get_type::<PyInt>().call1((value,))
    }

    /// The value as text: nothing is differentiated. Without a specification, as `repr`.
    fn __format__<'py>(&self, py: Python<'py>, spec: &str) -> PyResult<Object<'py>> {
        if spec.is_empty() {
            return Ok(PyString::new(py, &self.__repr__(py)?).into_any());
        }
        callbacks::formatted(py, (plain(&self.known(py, "the value")?)?, spec))
    }

    /// As `xp.round`, whose derivative is zero: a plain value.
    #[pyo3(signature = (ndigits = None))]
    fn __round__<'py>(slf: &Bound<'py, Self>, ndigits: Option<&Object<'py>>) -> PyResult<Object<'py>> {
        slf.get().known_at_all("the value")?;
        callbacks::rounded(slf.py(), (slf, ndigits))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.known(py, "the length")?.len()
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
        callbacks::iterate(slf.py(), (slf,))
    }

    fn __reversed__<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
        callbacks::iterate_reversed(slf.py(), (slf,))
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Object<'py>) -> PyResult<Object<'py>> {
        slf.get().known(slf.py(), "the elements")?;
        callbacks::index(slf.py(), (slf, key))
    }

    /// Makes the variable refer to a new array; no array is changed. Variables that may share its memory become stale:
    /// reading them raises `ArrayMemoryError`.
    fn __setitem__<'py>(slf: &Bound<'py, Self>, key: &Object<'py>, value: &Object<'py>) -> PyResult<()> {
        slf.get().known_at_all("the elements")?;
        indexed_assignment::assign(slf, key, value)
    }

    /// Another variable for the same entry: an assignment to one does not change the other.
    fn __copy__<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
        copied(slf)
    }

    /// As `__copy__`: values of entries are never changed.
    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, _memo: &Object<'py>) -> PyResult<Object<'py>> {
        copied(slf)
    }

    /// The methods and attributes of the array, as functions of the variable.
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &Bound<'py, PyString>) -> PyResult<Object<'py>> {
        // Protocols of other libraries are found on the class, or are not there.
        if name.to_str()?.starts_with("__dlpack") {
            return Err(PyAttributeError::new_err(format!(
                "a variable has no attribute {}: an array that shares its memory would lose its derivative; \
                 ox.stop_gradient(x) is the plain array",
                name.repr()?
            )));
        }
        if name.to_str()?.starts_with('_') {
            return Err(PyAttributeError::new_err(format!("a variable has no attribute {}", name.repr()?)));
        }
        callbacks::attribute(slf.py(), (slf, name))
    }

    fn __dir__<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
        callbacks::attribute_names(slf.py(), (slf,))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
        callbacks::html(slf.py(), (slf,))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (id, value) = self.last(py);
        let name = self.tape.get().name(id);
        if matches!(value, Value::Absent) {
            return Ok(format!("Variable({name})"));
        }
        Ok(format!("Variable({}, name={name:?})", value.object(py).repr()?))
    }

    /// The wrapped value: an array, a float, or a variable of an enclosing tape.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        snapshot(&self.known(py, "the value")?)
    }

    /// The value, by the name of HIPS autograd's boxes.
    #[getter(_value)]
    fn boxed_value<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        self.value(py)
    }

    /// The name of the variable in a printed tape.
    #[getter]
    pub fn name(&self) -> String {
        self.tape.get().name(Python::attach(|py| self.last(py).0))
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        match &self.value {
            value if value.is_scalar() => Ok(PyTuple::empty(py).into_any()),
            value => {
                self.known_at_all("the shape")?;
                let object = value.object(py);
                match object.getattr_opt("shape")? {
                    Some(shape) => Ok(shape),
                    // The results of an op with several are no array.
                    None if object.is_instance_of::<PyTuple>() => object.getattr("shape"),
                    // A complex number, or a number that is recorded, has none.
                    None => Ok(PyTuple::empty(py).into_any()),
                }
            }
        }
    }

    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        callbacks::dtype_of(py, (self.known(py, "the dtype")?,))
    }

    #[getter]
    fn ndim(&self, py: Python<'_>) -> PyResult<usize> {
        self.shape(py)?.len()
    }

    #[getter]
    fn size<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let one = 1usize.into_pyobject(py)?.into_any();
        self.shape(py)?.try_iter()?.try_fold(one, |size, extent| size.mul(extent?))
    }

    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        callbacks::device_of(py, (self.known(py, "the device")?,))
    }

    /// Indexed updates: `x.at[key].set(value)` is a new array with other elements at `key`.
    #[getter]
    fn at<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
        slf.get().known(slf.py(), "the elements")?;
        callbacks::at(slf.py(), (slf,))
    }

    /// The dimensions in reverse order, as NumPy has it: the transpose of a matrix.
    #[getter(T)]
    fn transpose<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
        callbacks::transpose(slf.py(), (slf,))
    }

    /// The transpose of each matrix of a stack.
    #[getter(mT)]
    fn matrix_transpose<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
        callbacks::matrix_transpose(slf.py(), (slf,))
    }

    #[pyo3(signature = (*, api_version = None))]
    fn __array_namespace__<'py>(&self, py: Python<'py>, api_version: Option<&str>) -> PyResult<Object<'py>> {
        callbacks::namespace_module(py, (api_version,))
    }

    #[pyo3(signature = (ufunc, method, *inputs, **named))]
    fn __array_ufunc__<'py>(
        &self,
        py: Python<'py>,
        ufunc: &Object<'py>,
        method: &str,
        inputs: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Object<'py>> {
        if method == "__call__"
            && named.is_none_or(PyDictMethods::is_empty)
            && let Some(op) = ufunc_op(ufunc)?
        {
            let args: SmallVec<[Object<'py>; 3]> = inputs.iter().collect();
            if let (Op::Structured(Structured::Matmul), [one, other]) = (op, &args[..]) {
                return matmul(py, [one, other]);
            }
            return record_call(py, op, &args, |args| {
                for arg in args {
                    if !(arg.is_instance_of::<BatchLevel>() || host_number(arg).is_some() || is_host(arg)?) {
                        return record(py, op, args, None);
                    }
                }
                ufunc.call1(PyTuple::new(py, args)?)
            });
        }
        callbacks::array_ufunc(py, (ufunc, method, inputs, named))
    }

    fn __array_function__<'py>(
        slf: &Bound<'py, Self>,
        py: Python<'py>,
        function: &Object<'py>,
        _types: &Object<'py>,
        args: &Object<'py>,
        named: &Object<'py>,
    ) -> PyResult<Object<'py>> {
        // `numpy.zeros(3, like=x)` outside of a block of a tape.
        let tape = slf.get().tape.bind(py);
        let is_open = OpenTapes::innermost(py).is_some() || tape.get().is_ended() || tape.get().symbolic;
        let _open = (!is_open).then(|| OpenTapes::with(tape));
        callbacks::array_function(py, (function, args, named, slf))
    }

    /// Every cycle with a variable in it has something else in it that can be cleared: its tape, or what holds it.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Visited {
        self.traverse(&visit)
    }

    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__(&self, dtype: Option<&Object<'_>>, copy: Option<&Object<'_>>) -> PyResult<()> {
        let _ = (dtype, copy);
        Err(PyTypeError::new_err(
            "a variable does not turn into a plain array by itself, since that would lose its derivative: xp.asarray or \
             xp.stack makes one array of several variables, and ox.stop_gradient(x) gives the plain array",
        ))
    }
}
