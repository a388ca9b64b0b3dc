//! The rule of a structured op as data: the steps that it takes for arguments of some numbers of dimensions and dtypes, as
//! `oxigrad/autodiff/rules/symbols.py` traces them.

use oxigrad_core::op::{Op, Structured};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::arrays::compute::elementwise::op_named;
use crate::arrays::compute::numpy_functions::{is_array, is_host};
use crate::arrays::memory::numpy::{Numpy, are_one_dtype};
use crate::autodiff::graph::template::{EntryId, Template};
use crate::prelude::*;

/// The least number of a dtype that NumPy lacks: `NPY_USERDEF` of its C interface.
const FIRST_OF_OTHERS: u32 = 256;

/// More programs of a rule are not traced: a rule that is called with ever other arguments runs in Python.
const MOST: usize = 256;

/// The programs of a rule, in the order in which they were traced.
pub struct Programs(PyOnceLock<Box<Program>>);

impl Programs {
    pub const fn new() -> Self {
        Self(PyOnceLock::new())
    }

    /// The program that serves these arguments, traced now if there is none; `None` where `trace` gives none.
    #[inline]
    pub fn find(
        &self,
        arguments: &[Object<'_>],
        trace: impl Fn() -> PyResult<Option<Program>>,
    ) -> PyResult<Option<&Body>> {
        let (py, mut place) = (arguments[0].py(), &self.0);
        for _ in 0..MOST {
            let program = match place.get(py) {
                Some(program) => program,
                None => match trace()? {
                    Some(program) => place.get_or_init(py, || Box::new(program)),
                    None => return Ok(None),
                },
            };
            if program.serves(arguments)? {
                return Ok(program.body.as_ref());
            }
            place = &program.next.0;
        }
        Ok(None)
    }
}

/// A program, and the arguments that it serves.
pub struct Program {
    key: Vec<Fact>,
    /// `None` where the rule reads more than its program would know.
    body: Option<Body>,
    next: Programs,
}

/// A fact about an argument of the rule, on which a program depends.
pub enum Fact {
    /// The number of dimensions of a NumPy array or scalar, and the dtype if the rule reads it.
    Array(usize, Option<Py<PyAny>>),
    /// The number of dimensions that a shape is of.
    Shape(usize),
    /// The value itself.
    Known(Py<PyAny>),
    /// Nothing.
    Datum,
}

impl Fact {
    /// The fact of an array; `None` for one that is not NumPy's, or has a dtype that is not.
    pub fn of_array(value: &Object<'_>) -> PyResult<Option<Self>> {
        let numpy = Numpy::get(value.py());
        let dimensions = match numpy.fields(value) {
            Some(fields) => fields.dimensions(),
            None if numpy.is_scalar(value)? => 0,
            None => return Ok(None),
        };
        let dtype = value.getattr("dtype")?;
        let kind = dtype.getattr("kind")?;
        // Not `isbuiltin`, which is false of an unpickled dtype.
        let is_own = "biufc".contains(&*kind.cast::<PyString>()?.to_cow()?)
            && dtype.getattr("num")?.lt(FIRST_OF_OTHERS)?
            && dtype.getattr("isnative")?.is_truthy()?;
        Ok(is_own.then(|| Self::Array(dimensions, Some(dtype.unbind()))))
    }

    /// Whether an argument is as the program expects it.
    #[inline]
    fn holds(&self, value: &Object<'_>) -> PyResult<bool> {
        Ok(match self {
            Self::Array(dimensions, dtype) => match Numpy::get(value.py()).fields(value) {
                Some(fields) => {
                    fields.dimensions() == *dimensions
                        && dtype.as_ref().map_or(Ok(true), |dtype| fields.has_dtype(dtype.bind(value.py())))?
                }
                None => *dimensions == 0 && is_scalar_of(value, dtype.as_ref())?,
            },
            Self::Shape(dimensions) => value.cast::<PyTuple>().is_ok_and(|shape| shape.len() == *dimensions),
            Self::Known(known) => {
                let known = known.bind(value.py());
                value.is(known) || value.get_type().is(known.get_type()) && value.eq(known)?
            }
            Self::Datum => true,
        })
    }

    /// The fact as `oxigrad/autodiff/rules/symbols.py` takes it.
    pub fn stated<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match self {
            Self::Array(dimensions, dtype) => ("array", dimensions, dtype).into_pyobject(py),
            Self::Shape(dimensions) => ("shape", dimensions).into_pyobject(py),
            Self::Known(known) => ("known", known).into_pyobject(py),
            Self::Datum => ("datum",).into_pyobject(py),
        }
    }
}

/// Whether a value is a NumPy scalar of a dtype, or of any.
fn is_scalar_of(value: &Object<'_>, dtype: Option<&Py<PyAny>>) -> PyResult<bool> {
    let is_of =
        |dtype: &Py<PyAny>| are_one_dtype(&value.getattr(intern!(value.py(), "dtype"))?, dtype.bind(value.py()));
    Ok(!is_array(value) && is_host(value)? && dtype.map_or(Ok(true), is_of)?)
}

impl Program {
    /// A program as `traced` of `oxigrad/autodiff/rules/symbols.py` gives it.
    pub fn new(mut key: Vec<Fact>, traced: Option<Traced<'_>>) -> PyResult<Self> {
        let Some((data, steps, result, read)) = traced else {
            return Ok(Self { key, body: None, next: Programs::new() });
        };
        let body = Body::new(&key, &data, &steps, result)?;
        for (at, fact) in key.iter_mut().enumerate() {
            if let Fact::Array(dimensions, _) = fact
                && !read.contains(&at)
            {
                *fact = Fact::Array(*dimensions, None);
            }
        }
        Ok(Self { key, body: Some(body), next: Programs::new() })
    }

    /// Whether the program serves these arguments.
    #[inline]
    fn serves(&self, arguments: &[Object<'_>]) -> PyResult<bool> {
        for (fact, argument) in self.key.iter().zip(arguments) {
            if !fact.holds(argument)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The data, the steps, the number of the result, and the arguments whose dtypes the rule reads.
pub type Traced<'py> = (Vec<Bound<'py, PyTuple>>, Vec<StatedStep<'py>>, usize, Vec<usize>);

/// The name, the operands and the attributes.
type StatedStep<'py> = (String, Vec<Object<'py>>, Bound<'py, PyDict>);

/// The steps of a program. Values are numbered: first the arguments of the rule, then the steps.
pub struct Body {
    pub data: Vec<Datum>,
    pub steps: Vec<Step>,
    pub result: usize,
}

/// A number or an attribute that steps read.
pub enum Datum {
    /// An argument of the rule.
    Argument(usize),
    /// A size of an argument, an array or the shape of one.
    Extent(usize, usize),
    Item(Part, Part),
    Add(Part, Part),
    Multiply(Part, Part),
    /// The first where the second is zero.
    Quotient(Part, Part),
}

/// A datum, or a whole number.
#[derive(FromPyObject)]
pub enum Part {
    Datum(EntryId),
    Number(isize),
}

/// An operand of a step.
#[derive(FromPyObject)]
pub enum Operand {
    Datum(EntryId),
    Value(usize),
    Number(f64),
}

/// The sizes of a shape.
pub enum Sizes {
    /// The sizes of an argument that is a shape.
    Shape(usize),
    Parts(Vec<Part>),
}

/// An attribute with data in it, and the numbers of these.
pub struct Filled {
    pub template: Template,
    pub reads: Vec<u32>,
}

pub struct Step {
    pub work: Work,
    /// The first operand that is a value.
    pub first: usize,
}

/// The work of a step. The ops beside `Op` depend on data, or need no call of the Python layer.
pub enum Work {
    Op(Op, Vec<Operand>, Option<Py<PyDict>>),
    Reshape(Sizes),
    BroadcastTo(Sizes),
    PermuteDims(Vec<usize>),
    /// The position of the new dimension, counted from the end.
    ExpandDims(usize),
    Squeeze(Py<PyAny>),
    Astype(Py<PyAny>),
    Index(Filled),
    ScatterAdd(Filled, Sizes),
    /// A cotangent in the shape and dtype of its value, or in the dtype alone.
    Fit(Option<Sizes>, Py<PyAny>),
}

impl Body {
    fn new(key: &[Fact], data: &[Bound<'_, PyTuple>], steps: &[StatedStep<'_>], result: usize) -> PyResult<Self> {
        let data = data.iter().map(Datum::new).collect::<PyResult<Vec<_>>>()?;
        let made = steps.iter().map(|(name, args, named)| {
            let args = args.iter().map(PyAnyMethods::extract).collect::<PyResult<Vec<Operand>>>()?;
            let value = |operand: &Operand| if let Operand::Value(at) = operand { Some(*at) } else { None };
            let first = args.iter().find_map(value).ok_or_else(|| PyValueError::new_err("a step has no value"))?;
            Ok(Step { work: Work::new(key, &data, name, args, named)?, first })
        });
        let steps = made.collect::<PyResult<_>>()?;
        Ok(Self { data, steps, result })
    }
}

impl Datum {
    fn new(stated: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let kind: String = stated.get_item(0)?.extract()?;
        let number = |at: usize| stated.get_item(at)?.extract::<usize>();
        let part = |at: usize| stated.get_item(at)?.extract::<Part>();
        Ok(match kind.as_str() {
            "argument" => Self::Argument(number(1)?),
            "extent" => Self::Extent(number(1)?, number(2)?),
            "item" => Self::Item(part(1)?, part(2)?),
            "add" => Self::Add(part(1)?, part(2)?),
            "multiply" => Self::Multiply(part(1)?, part(2)?),
            "quotient" => Self::Quotient(part(1)?, part(2)?),
            _ => return Err(PyValueError::new_err(format!("a datum is of kind {kind:?}"))),
        })
    }
}

impl Sizes {
    fn new(key: &[Fact], data: &[Datum], stated: &Object<'_>) -> PyResult<Self> {
        let parts = stated.try_iter()?.map(|size| size?.extract()).collect::<PyResult<Vec<Part>>>()?;
        let extent = |(axis, part): (usize, &Part)| match part {
            Part::Datum(at) => match data[at.index()] {
                Datum::Extent(of, own) if own == axis => Some(of),
                _ => None,
            },
            Part::Number(_) => None,
        };
        let whole = parts.first().and_then(|part| extent((0, part)));
        let is_whole = |of: &usize| {
            matches!(key[*of], Fact::Shape(dimensions) if dimensions == parts.len())
                && parts.iter().enumerate().all(|part| extent(part) == Some(*of))
        };
        Ok(whole.filter(is_whole).map_or_else(|| Self::Parts(parts), Self::Shape))
    }
}

impl Filled {
    fn new(stated: &Object<'_>) -> PyResult<Self> {
        let mut reads = Vec::new();
        Ok(Self { template: Template::of(stated, &mut reads)?, reads })
    }
}

impl Work {
    fn new(key: &[Fact], data: &[Datum], name: &str, args: Vec<Operand>, named: &Bound<'_, PyDict>) -> PyResult<Self> {
        use Structured as S;
        let attribute = |name: &str| named.as_any().get_item(name);
        let sizes = || Sizes::new(key, data, &attribute("shape")?);
        if name == "fit" {
            let shape = named.contains("shape")?.then(sizes).transpose()?;
            return Ok(Self::Fit(shape, attribute("dtype")?.unbind()));
        }
        let op = op_named(name)?;
        Ok(match op {
            Op::Structured(S::Reshape) => Self::Reshape(sizes()?),
            Op::Structured(S::BroadcastTo) => Self::BroadcastTo(sizes()?),
            Op::Structured(S::PermuteDims) => Self::PermuteDims(attribute("axes")?.extract()?),
            Op::Structured(S::Squeeze) => Self::Squeeze(attribute("axis")?.unbind()),
            Op::Structured(S::Astype) => Self::Astype(attribute("dtype")?.unbind()),
            Op::Structured(S::Index) => Self::Index(Filled::new(&attribute("key")?)?),
            Op::Structured(S::ScatterAdd) => Self::ScatterAdd(Filled::new(&attribute("key")?)?, sizes()?),
            Op::Structured(S::ExpandDims) if attribute("axis")?.lt(0)? => {
                Self::ExpandDims(attribute("axis")?.extract::<isize>()?.unsigned_abs())
            }
            op => Self::Op(op, args, (!named.is_empty()).then(|| named.clone().unbind())),
        })
    }
}
