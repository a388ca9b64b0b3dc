//! The table of derivative rules, registered by the Python layer, and the values that enter and leave a replay.

use oxigrad_core::autodiff::rule::{self, Needs, Rules};
use oxigrad_core::autodiff::tape::{self, Origin, is_modulus};
use oxigrad_core::error::Error;
use oxigrad_core::kernel::{Kernel, Node};
use oxigrad_core::op::{Attribute, Elementwise, Op, Structured};
use oxigrad_core::scalar::Scalar;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyComplex, PyDict, PyString, PyTuple};

use crate::arrays::batch_level::BatchLevel;
use crate::arrays::compute::elementwise::op_named;
use crate::arrays::compute::numpy_functions::{extents, is_host, one_like, zeros_like};
use crate::arrays::memory::contiguous::{is_float_array, scalar_of};
use crate::arrays::memory::numpy::refuse_meaning;
use crate::arrays::value::{Value, host_number};
use crate::autodiff::graph::batched::is_number;
use crate::autodiff::graph::describe::describe;
use crate::autodiff::graph::entry::{Entry, cotangent_type, named, shape_of};
use crate::autodiff::graph::program::program;
use crate::autodiff::graph::rule_program::Programs;
use crate::autodiff::graph::tape::{CotangentType, Tape};
use crate::autodiff::graph::variable::{Variable, is_of_number, snapshot};
use crate::callbacks;
use crate::prelude::*;
use crate::tree::is_inexact;

/// A parameter of a derivative rule.
pub enum Source {
    /// `g`: the cotangent of the result; `y`: the result; `x`, `x1`, `x2`, `condition`: the value of an argument.
    Value(rule::Source),
    /// `x_shape`, `x1_shape`, ...: the shape of an argument.
    Shape(u8),
    /// `x_dtype`, ...: the dtype of an argument.
    Dtype(u8),
    /// `args`: the values of all arguments; such a rule computes the cotangents of all of them in one call.
    Args,
    /// `which`: the position of the argument, for an op with any number of them.
    Which,
    /// Any other name: an attribute of the op.
    Attribute(Py<PyString>),
}

impl Source {
    /// The value of the parameter, for the cotangent of the `which`-th argument.
    #[inline]
    pub fn value<'py>(&self, entry: &Entry<'_>, which: usize, g: &Object<'py>) -> PyResult<Object<'py>> {
        let py = g.py();
        // The parameters of a rule of an op with any number of arguments name the argument at `which`.
        let of =
            |at: u8| if matches!(entry.origin, Origin::Op(op) if op.arity().is_none()) { which } else { at as usize };
        Ok(match self {
            Self::Value(rule::Source::Cotangent) => g.clone(),
            Self::Value(rule::Source::Result) => entry.result().object(py),
            Self::Value(rule::Source::Arg(at)) => entry.arg(of(*at)).object(py),
            Self::Shape(at) => shape_of(entry, of(*at), py),
            Self::Dtype(at) => match cotangent_type(entry, of(*at)) {
                Some(CotangentType::Array { dtype, .. }) => dtype.bind(py).clone(),
                _ => py.None().into_bound(py),
            },
            Self::Args => {
                let values = (0..entry.args.len()).map(|which| entry.arg(which).object(py));
                PyTuple::new(py, values)?.into_any()
            }
            Self::Which => which.into_pyobject(py)?.into_any(),
            Self::Attribute(name) => named(entry, name.bind(py))?.unwrap_or_else(|| py.None().into_bound(py)),
        })
    }
}

/// The rule of one argument of an op, or of all arguments of an op with any number of them.
pub struct Derivative {
    /// The Python function.
    pub call: Py<PyAny>,
    /// Its parameters, in order.
    pub sources: Vec<Source>,
    /// The rule as a program over arrays in host memory, for an elementwise op.
    pub kernel: Option<Kernel>,
    /// Whether the rule returns the cotangent of the result unchanged.
    pub is_identity: bool,
    /// The rule as programs over NumPy arrays, for a structured op.
    pub programs: Programs,
    /// The op of a rule that is a single op, with the positions of its operands among `sources`, where Python has an
    /// operator for it.
    pub only: Option<(Op, Vec<usize>)>,
    pub needs: Needs,
}

impl Derivative {
    /// Whether the rule is the negation of the cotangent.
    pub fn is_negation(&self) -> bool {
        matches!(self.only, Some((Op::Elementwise(Elementwise::Negative), _))) && self.sources.len() == 1
    }

    /// Whether the rule computes the cotangents of all arguments in one call.
    pub fn is_together(&self) -> bool {
        self.needs.all_args
    }
}

/// The values that a rule reads.
fn needs_of(sources: &[Source]) -> Needs {
    let mut needs = Needs::default();
    for source in sources {
        match source {
            Source::Value(rule::Source::Result) => needs.result = true,
            Source::Value(rule::Source::Arg(which)) => needs.read(*which),
            Source::Args => needs.all_args = true,
            Source::Shape(_) | Source::Dtype(_) => needs.shape = true,
            Source::Value(rule::Source::Cotangent) | Source::Which | Source::Attribute(_) => {}
        }
    }
    needs
}

/// A row of the table: the derivative with respect to one argument.
#[allow(clippy::large_enum_variant, reason = "a table of a few dozen rows, made once")]
pub enum Row {
    /// No derivative. The text completes "<op> is not differentiable with respect to ...".
    Missing(String),
    /// The derivative is zero.
    Zero,
    /// The derivative is computed by a rule.
    Rule(Derivative),
}

/// The table of derivative rules.
pub struct Registry {
    rows: Vec<Vec<Row>>,
    unstated: Row,
    pub rules: Rules,
    /// The rows and the rules of squares of moduli: see [`is_modulus`].
    squares: Vec<Vec<Row>>,
    pub square_rules: Rules,
    /// The rows of elementwise ops for tangents, where these differ.
    tangents: Vec<Vec<Row>>,
    /// The rows of structured ops for masks: which elements a cotangent reaches.
    masks: Vec<Vec<Row>>,
    /// Pushes tangents through a structured op; `NotImplemented` if the reverse rule must be used.
    pub push: Py<PyAny>,
}

static REGISTRY: PyOnceLock<Registry> = PyOnceLock::new();

/// The table, which the Python layer registers when it is imported.
pub fn registry(py: Python<'_>) -> PyResult<&Registry> {
    REGISTRY.get(py).ok_or_else(|| PyValueError::new_err("the derivative rules are not registered"))
}

impl Registry {
    /// The rule of the `which`-th argument, of the op or of its square.
    pub fn row_of(&self, op: Op, which: usize, is_square: bool) -> &Row {
        if is_square { self.squares[op.index()].get(which).unwrap_or(&self.unstated) } else { self.row(op, which) }
    }

    /// The rule of the `which`-th argument for a tangent.
    pub fn tangent_row(&self, op: Op, which: usize, is_square: bool) -> &Row {
        match self.tangents[op.index()].get(which) {
            Some(row) if !is_square => row,
            _ => self.row_of(op, which, is_square),
        }
    }

    /// The rule of the `which`-th argument for masks.
    pub fn mask_row(&self, op: Op, which: usize) -> Option<&Derivative> {
        match self.masks[op.index()].get(if op.arity().is_none() { 0 } else { which }) {
            Some(Row::Rule(derivative)) => Some(derivative),
            _ => None,
        }
    }

    /// The rule of the `which`-th argument.
    pub fn row(&self, op: Op, which: usize) -> &Row {
        let rows = &self.rows[op.index()];
        let which = if op.arity().is_none() { 0 } else { which };
        rows.get(which).unwrap_or(&self.unstated)
    }

    /// The values that the rules of the active arguments read.
    pub fn needs(&self, op: Op, are_active: impl Iterator<Item = bool>) -> Needs {
        let mut all = Needs::default();
        for (which, _) in are_active.enumerate().filter(|(_, is_active)| *is_active) {
            if let Row::Rule(derivative) = self.row(op, which) {
                all.extend(derivative.needs);
            }
        }
        all
    }
}

/// The names of the array arguments, as the standard has them; of an op that takes any number of them, of each.
pub fn arg_names(op: Op) -> &'static [&'static str] {
    match op {
        Op::Elementwise(Elementwise::Where) => &["condition", "x1", "x2"],
        Op::Elementwise(op) if op.arity() == 1 => &["x"],
        Op::Elementwise(op) if op.arity() == 3 => &["x1", "x2", "x3"],
        Op::Structured(op) if op.arity() != Some(2) => &["x"],
        Op::Elementwise(_) | Op::Structured(_) => &["x1", "x2"],
    }
}

fn source(py: Python<'_>, op: Op, name: &str) -> Source {
    let position = |name| arg_names(op).iter().position(|arg| *arg == name).and_then(|at| u8::try_from(at).ok());
    match (name, position(name)) {
        ("g", _) => Source::Value(rule::Source::Cotangent),
        ("y", _) => Source::Value(rule::Source::Result),
        ("which", _) => Source::Which,
        ("args", _) => Source::Args,
        (_, Some(at)) => Source::Value(rule::Source::Arg(at)),
        _ => {
            let suffixed = |suffix| name.strip_suffix(suffix).and_then(position);
            if let Some(at) = suffixed("_shape") {
                Source::Shape(at)
            } else if let Some(at) = suffixed("_dtype") {
                Source::Dtype(at)
            } else {
                Source::Attribute(PyString::new(py, name).unbind())
            }
        }
    }
}

/// A row as the Python layer passes it: op, position of the argument, and its rule.
type Stated<'py> = (String, usize, Statement<'py>);

#[derive(FromPyObject)]
pub enum Statement<'py> {
    /// No derivative: see [`Row::Missing`].
    Reason(String),
    /// The rule, with the names of its parameters; `None` if the derivative is zero.
    Rule(Option<(Object<'py>, Vec<String>)>),
}

/// Registers the derivative rules, those of squares of moduli, those that differ for tangents, those of masks, and the function
/// that pushes tangents through structured ops. The rules of elementwise ops are traced into programs.
#[pyfunction]
pub fn install(
    py: Python<'_>,
    rows: Vec<Stated<'_>>,
    squares: Vec<Stated<'_>>,
    tangents: Vec<Stated<'_>>,
    masks: Vec<Stated<'_>>,
    push: Py<PyAny>,
) -> PyResult<()> {
    let (rows, rules) = table(py, rows)?;
    let (squares, square_rules) = table(py, squares)?;
    if let Some(op) = Op::all().find(|op| is_modulus(*op) == squares[op.index()].is_empty()) {
        return Err(PyValueError::new_err(format!("{}: only moduli have rules of squares", op.name())));
    }
    let (tangents, _) = table(py, tangents)?;
    let (masks, _) = table(py, masks)?;
    let unstated = Row::Missing("this argument: no derivative rule is registered".into());
    REGISTRY
        .set(py, Registry { rows, unstated, rules, squares, square_rules, tangents, masks, push })
        .map_err(|_| PyValueError::new_err("the rules are registered already"))
}

/// The rows by op, and the traced rules of elementwise ops.
fn table(py: Python<'_>, rows: Vec<Stated<'_>>) -> PyResult<(Vec<Vec<Row>>, Rules)> {
    let mut table: Vec<Vec<Row>> = Op::all().map(|_| Vec::new()).collect();
    let mut rules = Rules::default();
    for (name, which, rule) in rows {
        let op = op_named(&name)?;
        let row = match rule {
            Statement::Reason(reason) => Row::Missing(reason),
            Statement::Rule(None) => Row::Zero,
            Statement::Rule(Some((call, parameters))) => {
                let sources: Vec<Source> = parameters.iter().map(|name| source(py, op, name)).collect();
                let (call, needs) = (call.unbind(), needs_of(&sources));
                let (kernel, programs) = (None, Programs::new());
                let mut derivative =
                    Derivative { call, sources, kernel, is_identity: false, programs, only: None, needs };
                if let Op::Elementwise(elementwise) = op {
                    let rule = trace(py, &derivative)?;
                    let output = u32::try_from(rule.nodes.len() - 1).expect("a rule is short");
                    derivative.kernel = Some(Kernel::compile(&rule.nodes, &[output]).python()?);
                    derivative.is_identity = rule.nodes == [Node::Leaf(0)];
                    derivative.only = only(&rule.nodes);
                    rules.set(elementwise, which, rule);
                }
                Row::Rule(derivative)
            }
        };
        let rows = &mut table[op.index()];
        if rows.len() != which {
            return Err(PyValueError::new_err(format!("the rules of {name} are not in the order of its arguments")));
        }
        rows.push(row);
    }
    Ok((table, rules))
}

/// The op of a program of a single op for which Python has an operator with the same bits on arrays, with the leaves that it reads.
fn only(nodes: &[Node]) -> Option<(Op, Vec<usize>)> {
    let (Node::Apply(op, args), leaves) = nodes.split_last()? else { return None };
    let leaf = |arg: &u32| match leaves[*arg as usize] {
        Node::Leaf(leaf) => Some(leaf as usize),
        _ => None,
    };
    let read = args[..op.arity()].iter().map(leaf).collect::<Option<Vec<_>>>()?;
    let is_exact = op.operator().is_some() && op.has(Attribute::Exact);
    is_exact.then_some((Op::Elementwise(*op), read))
}

fn trace(py: Python<'_>, derivative: &Derivative) -> PyResult<rule::Rule> {
    let symbols = Bound::new(py, Tape::new(true))?;
    let (mut sources, mut args) = (Vec::new(), Vec::new());
    for source in &derivative.sources {
        let leaf = u32::try_from(sources.len()).expect("a rule has few parameters");
        let Source::Value(source) = source else {
            return Err(PyValueError::new_err("the rule of an elementwise op reads g, y and its arguments only"));
        };
        sources.push(*source);
        args.push(Tape::input(&symbols, Value::Absent, Some(Node::Leaf(leaf)))?);
    }
    let output = derivative.call.bind(py).call1(PyTuple::new(py, args)?)?;
    let (mut nodes, ids) = program(&symbols, &[output])?;
    nodes.truncate(ids[0] as usize + 1);
    Ok(rule::Rule { sources, nodes })
}

/// Whether a value is a complex number of Python, or one of a recording: variables hold such as NumPy's.
pub fn is_complex_number(value: &Object<'_>) -> PyResult<bool> {
    let py = value.py();
    Ok(value.is_exact_instance_of::<PyComplex>()
        || (value.is_instance_of::<BatchLevel>()
            && value.getattr(intern!(py, "__class__"))?.is(py.get_type::<PyComplex>())))
}

/// The value as a tape watches it, or `DtypeError`.
pub fn watchable(value: &Object<'_>) -> PyResult<Value> {
    let truth = value.is_instance_of::<pyo3::types::PyBool>();
    if let Some(number) = host_number(value).filter(|_| !truth) {
        return Ok(Value::Number(number));
    }
    if is_complex_number(value)? {
        return Ok(Value::Object(callbacks::complex_number(value.py(), (value,))?.unbind()));
    }
    if let Some(scalar) = scalar_of(value) {
        return Ok(tape::Value::from_scalar(scalar));
    }
    if is_float_array(value) {
        return Ok(Value::Object(value.clone().unbind()));
    }
    if is_number(value)? {
        return Ok(Value::Object(value.clone().unbind()));
    }
    if value.is_instance_of::<Variable>() || is_inexact(value)? {
        refuse_meaning(value, || "the differentiated value".into())?;
        return Ok(Value::Object(snapshot(value)?.unbind()));
    }
    let what = describe(value)?;
    Err(Error::Dtype(format!("{what} cannot be differentiated: expected a float or an array of floating-point dtype")))
        .python()
}

/// The cotangent that a replay starts from: one, for a scalar target without a cotangent.
pub fn seed(target: &Bound<'_, Variable>, cotangent: Option<&Object<'_>>) -> PyResult<Value> {
    let py = target.py();
    let value = match (&target.get().value, cotangent) {
        (Value::Number(_), None) => return Ok(Value::Number(1.0)),
        (Value::Float64(_), None) => return Ok(Value::Float64(1.0)),
        (Value::Float32(_), None) => return Ok(Value::Float32(1.0)),
        (Value::Object(value), None) if is_of_number(value.bind(py)) => return Ok(Value::Number(1.0)),
        (Value::Number(_), Some(cotangent)) if host_number(cotangent).is_some() => {
            return Ok(Value::Number(host_number(cotangent).unwrap_or_default()));
        }
        (Value::Object(value), None) => {
            if let Some(one) = one_like(value.bind(py))? {
                return Ok(Value::Object(one.unbind()));
            }
            value.bind(py).clone()
        }
        (Value::Object(_) | Value::Float64(_) | Value::Float32(_), Some(cotangent)) => {
            let value = target.get().value.object(py);
            if is_host(&value)? && is_host(cotangent)? && extents(&value) == extents(cotangent) {
                return Ok(Value::new(cotangent));
            }
            value
        }
        (value, _) => value.object(py),
    };
    Ok(Value::new(&callbacks::initial_cotangent(py, (value, cotangent))?))
}

/// The gradient of a value that the target does not depend on.
pub fn zeros<'py>(py: Python<'py>, value: &Value) -> PyResult<Object<'py>> {
    match value {
        Value::Number(_) | Value::Absent => Ok(Value::Number(0.0).object(py)),
        Value::Object(object) if is_of_number(object.bind(py)) => Ok(Value::Number(0.0).object(py)),
        value => {
            let array = value.object(py);
            match zeros_like(&array)? {
                Some(zeros) => Ok(zeros),
                None => callbacks::zeros_like(py, (array,)),
            }
        }
    }
}

/// The zero tangent of a number or array of NumPy's or Python's, of its dtype.
pub fn zero_tangent(py: Python<'_>, value: Value) -> PyResult<Value> {
    match value.own_scalar() {
        Some(scalar) => Ok(tape::Value::from_scalar(Scalar { number: 0.0, ..scalar })),
        None => zeros(py, &value).map(Value::from),
    }
}

/// `DerivativeError`: the op is not differentiable with respect to `parameter`, a noun phrase.
pub fn missing(op: Op, parameter: &str) -> PyErr {
    DerivativeError::new_err(format!("{} is not differentiable with respect to {parameter}", op.name()))
}

/// Whether the op is a sum over all elements, which kernels support.
pub fn is_whole_sum(op: Op, named: Option<&Bound<'_, PyDict>>) -> PyResult<bool> {
    let Some(named) = named else { return Ok(op == Op::Structured(Structured::Sum)) };
    let axis = named.get_item("axis")?.is_none_or(|axis| axis.is_none());
    let keepdims = named.get_item("keepdims")?.map_or(Ok(false), |keepdims| keepdims.is_truthy())?;
    Ok(op == Op::Structured(Structured::Sum) && axis && !keepdims)
}
