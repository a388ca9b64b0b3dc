//! The functions that the entries of a recording call.

mod bounds;
mod direct;

use oxigrad_core::autodiff::tape::Value as _;
use oxigrad_core::op::Op;
use oxigrad_core::recording::ScalarOp;
use pyo3::exceptions::PyTypeError;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple};
use smallvec::SmallVec;

use crate::arrays::compute::elementwise::op_taking;
use crate::arrays::memory::numpy::Numpy;
use crate::arrays::value::Value;
use crate::autodiff::graph::template::Template;
use crate::autodiff::operations::evaluate::by_operator;
use crate::autodiff::operations::record::record;
use crate::autodiff::replay::scatter::{assigned, assigned_onto, scatter_into, scatter_onto};
use crate::prelude::*;
use crate::recording::rule::compute_in_rule;
use crate::recording::scalars::on_values;

/// The function of a call.
pub enum Function {
    /// An op, recorded where its arguments are variables.
    Op(Op),
    /// An op of a derivative rule.
    Rule(Op),
    /// An operator of Python.
    Operator(Op),
    /// A method of the first argument.
    Method(Py<PyString>),
    /// An attribute of the first argument.
    Attribute(Py<PyString>),
    /// A sum with the elements of a key: see [`scatter_into`].
    Scatter,
    /// A copy with other elements at a key: see [`assigned`].
    Assign,
    /// Any other function.
    Object(Py<PyAny>),
}

/// The part that a call may have in a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The sum, or the mean, of all elements.
    Total,
    View,
    Other,
}

/// A call: its function, and its arguments.
pub struct Call {
    pub function: Function,
    pub args: Vec<Template>,
    /// `None` if there are no arguments by name.
    pub named: Option<Template>,
    /// The arguments by name of an op, where they are no entries: ops keep them not.
    attributes: Option<Py<PyDict>>,
    /// The op of a call that may be of scalars.
    pub scalar_op: Option<ScalarOp>,
    /// Whether the arguments are entries, in order.
    pub is_plain: bool,
    pub name: String,
    /// Whether the result is the first argument.
    pub is_identity: bool,
    pub role: Role,
    /// The shape that the result must have, if it is an array.
    pub shape: Option<SmallVec<[usize; 4]>>,
    /// Whether arguments and result have bounds: see [`bounds`].
    pub is_bounded: bool,
}

impl Call {
    /// The call of a target, a kind and a name, or `function` where the core has no call of that kind.
    pub fn new(
        target: (String, String),
        function: &Object<'_>,
        args: &Object<'_>,
        named: &Bound<'_, PyDict>,
        shape: Option<SmallVec<[usize; 4]>>,
    ) -> PyResult<Self> {
        let py = function.py();
        let (kind, name) = target;
        let mut reads = Vec::new();
        let args = items(args)?.iter().map(|arg| Template::of(arg, &mut reads)).collect::<PyResult<Vec<_>>>()?;
        let before = reads.len();
        let attributes = named.clone().unbind();
        let named = if named.is_empty() { None } else { Some(Template::of(named.as_any(), &mut reads)?) };
        let is_constant = kind == "op" && named.is_some() && reads.len() == before;
        let attributes = is_constant.then_some(attributes);
        let as_text = || PyString::new(py, &name).unbind();
        let function = match (kind.as_str(), operator_named(&name)) {
            ("op", _) => Function::Op(op_taking(&name, args.len())?),
            ("rule", _) => Function::Rule(op_taking(&name, args.len())?),
            ("operator", Some(op)) if op.arity() == Some(args.len()) => Function::Operator(op),
            ("method" | "attribute", _) if args.is_empty() => {
                return Err(PyTypeError::new_err(format!("{kind} {name} needs an object")));
            }
            ("method", _) => Function::Method(as_text()),
            ("attribute", _) => Function::Attribute(as_text()),
            ("core", _) if name == "scatter_into" && args.len() == 4 && named.is_none() => Function::Scatter,
            ("core", _) if name == "assigned" && args.len() == 3 && named.is_none() => Function::Assign,
            _ => Function::Object(function.clone().unbind()),
        };
        let scalar_op = match &function {
            Function::Op(Op::Elementwise(op))
            | Function::Rule(Op::Elementwise(op))
            | Function::Operator(Op::Elementwise(op)) => ScalarOp::new(&kind, *op),
            _ => None,
        };
        let is_plain = args.iter().enumerate().all(|(at, arg)| matches!(arg, Template::Entry(entry) if *entry == at));
        let name = if kind == "op" { name } else { format!("{kind}.{name}") };
        Ok(Self {
            function,
            args,
            named,
            attributes,
            scalar_op,
            is_plain,
            name,
            is_identity: false,
            role: Role::Other,
            shape,
            is_bounded: false,
        })
    }

    /// The result, given the values that the call reads.
    pub fn call(&self, py: Python<'_>, read: &[&Value]) -> PyResult<Value> {
        let result = self.computed(py, read)?;
        if self.is_bounded {
            bounds::require_result(py, &self.name, &result)?;
        }
        Ok(result)
    }

    fn computed(&self, py: Python<'_>, read: &[&Value]) -> PyResult<Value> {
        if self.is_plain {
            if let Some(result) = self.on_scalars(py, read) {
                return Ok(result);
            }
            if let (Function::Op(op), true) = (&self.function, self.named.is_none() || self.attributes.is_some())
                && let Some(result) = direct::call(py, *op, read, self.attributes.as_ref(), self.shape.as_deref())?
            {
                return Ok(result);
            }
        }
        let read = |at: usize| Ok(read[at].object(py));
        let args: SmallVec<[Object<'_>; 3]> =
            self.args.iter().map(|arg| arg.fill(py, &read)).collect::<PyResult<_>>()?;
        let named = if let Some(attributes) = &self.attributes {
            Some(attributes.bind(py).clone())
        } else {
            let named = self.named.as_ref().map(|named| named.fill(py, &read)).transpose()?;
            named.map(Bound::cast_into::<PyDict>).transpose()?
        };
        if self.is_bounded {
            let is_op = matches!(&self.function, Function::Op(_) | Function::Rule(_) | Function::Operator(_));
            bounds::require_arguments(&self.name, is_op, &args, named.as_ref())?;
        }
        let result = match &self.function {
            Function::Op(op) => record(py, *op, &args, named.as_ref())?,
            Function::Rule(op) => compute_in_rule(py, *op, &args)?,
            Function::Operator(op) => by_operator(*op, &args).expect("the op has an operator")?,
            Function::Method(name) => {
                args[0].getattr(name.bind(py))?.call(PyTuple::new(py, &args[1..])?, named.as_ref())?
            }
            Function::Attribute(name) => args[0].getattr(name.bind(py))?,
            Function::Scatter => scatter_into(&args[0], &args[1], &args[2], &args[3])?,
            Function::Assign => assigned(&args[0], &args[1], &args[2])?,
            Function::Object(function) => function.bind(py).call(PyTuple::new(py, args)?, named.as_ref())?,
        };
        Ok(Value::from(result))
    }

    /// Whether the result is the first entry that the call reads, with other values of some elements.
    pub fn changes_first(&self) -> bool {
        matches!((&self.function, self.args.first()), (Function::Scatter | Function::Assign, Some(Template::Entry(0))))
    }

    /// The result of such a call, in the memory of `first` if nobody else has it.
    pub fn changed(&self, py: Python<'_>, first: Value, read: &[&Value]) -> PyResult<Value> {
        let read = |at: usize| Ok(read[at].object(py));
        let rest: SmallVec<[Object<'_>; 3]> =
            self.args[1..].iter().map(|arg| arg.fill(py, &read)).collect::<PyResult<_>>()?;
        match self.function {
            Function::Assign => assigned_onto(first, &rest[0], &rest[1]),
            _ => scatter_onto(first, &rest[0], &rest[1], &rest[2]),
        }
    }

    /// The result on scalars, where no Python function is needed.
    fn on_scalars(&self, py: Python<'_>, read: &[&Value]) -> Option<Value> {
        let op = self.scalar_op.filter(|_| self.named.is_none())?;
        let result = on_values(op, py, read)?;
        Some(if op.is_truth() {
            Value::Object(PyBool::new(py, result.number != 0.0).to_owned().into_any().unbind())
        } else {
            Value::from_scalar(result)
        })
    }
}

/// The op of an operator, by its name in Python's module.
pub fn operator_named(name: &str) -> Option<Op> {
    Op::all().find(|op| op.operator().is_some_and(|operator| operator.name() == name))
}

/// The shape of a NumPy array.
pub fn shape_of(py: Python<'_>, value: &Value) -> Option<SmallVec<[usize; 4]>> {
    let Value::Object(object) = value else { return None };
    Some(Numpy::get(py).fields(object.bind(py))?.extents().collect())
}
