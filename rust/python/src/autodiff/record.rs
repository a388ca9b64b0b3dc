//! Recording: computes an op on the values of its variables, and appends it to the innermost tape.

use oxigrad_core::autodiff::tape::{Id, Value as _};
use oxigrad_core::error::Error;
use oxigrad_core::op::{Attribute, Elementwise, Kind, Op, Operator, Structured};
use oxigrad_core::scalar::{Precision, Scalar, promoted};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use crate::arrays::contiguous::{element_of, scalar_of};
use crate::arrays::elementwise::{broadcast_to, elementwise, function, on_numpy_scalars, op_named};
use crate::arrays::numpy::{are_alike, refuse_meaning};
use crate::arrays::products::matmul;
use crate::arrays::reduce::reduce;
use crate::arrays::value::{Value, host_number};
use crate::autodiff::describe::describe;
use crate::autodiff::indexed_assignment::{gives_view, share};
use crate::autodiff::tape::Fit;
use crate::autodiff::tape::{Attributes, Tape};
use crate::autodiff::variable::Variable;
use crate::autodiff::variable::settled;
use crate::autodiff::vjp_rules::{Needs, is_smooth, is_variadic, is_whole_sum, missing, registry};
use crate::callbacks::callbacks;
use crate::class_cache::ByClass;
use crate::error::to_python;
use crate::tree::is_inexact;

type Object<'py> = Bound<'py, PyAny>;

/// As many as an op has arguments: seldom more than three.
type Few<T> = SmallVec<[T; 3]>;

/// Computes an op on arrays, numbers and variables, by name: the entry point for the Python layer.
#[pyfunction]
#[pyo3(name = "record", signature = (name, args, named = None))]
pub fn record_named<'py>(
    name: &str,
    args: Vec<Object<'py>>,
    named: Option<Bound<'py, PyDict>>,
) -> PyResult<Object<'py>> {
    let Some(first) = args.first() else {
        return Err(PyTypeError::new_err(format!("{name} needs at least one argument")));
    };
    let op = op_named(name)?;
    match arity(op) {
        Some(arity) if arity != args.len() => {
            Err(PyTypeError::new_err(format!("{name} takes {arity} arrays, got {}", args.len())))
        }
        _ => record(first.py(), op, &args, named.as_ref()),
    }
}

/// The innermost tape among the arguments, with the first variable that is on it.
pub fn innermost<'a, 'py>(args: &'a [Object<'py>]) -> Option<&'a Bound<'py, Variable>> {
    let variables = args.iter().filter_map(|arg| arg.cast_exact::<Variable>().ok());
    variables.max_by_key(|variable| variable.get().tape.get().serial)
}

/// Computes an op on the values of the innermost tape's variables, and appends it to that tape.
pub fn record<'py>(
    py: Python<'py>,
    op: Op,
    args: &[Object<'py>],
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Object<'py>> {
    if !op.has(Attribute::AnyObject) && args.iter().any(is_no_array) {
        let arrays = args.iter().enumerate().map(|(which, arg)| as_array(op, which, arg, args));
        return record(py, op, &arrays.collect::<PyResult<Few<_>>>()?, named);
    }
    let Some(variable) = innermost(args) else { return evaluate(py, op, args, named) };
    let tape = variable.get().tape.bind(py);
    tape.get().check_recording(variable.get().id)?;
    if tape.get().symbolic {
        return record_symbol(tape, op, args, named);
    }
    let (op, args) = match op {
        Op::Elementwise(Elementwise::Pow) if args.get(1).and_then(host_number) == Some(2.0) => {
            (Op::Elementwise(Elementwise::Square), &args[..1]) // a shorter rule, and the same bits
        }
        op => (op, args),
    };
    if let Op::Elementwise(op) = op
        && let Some(variable) = of_scalars(tape, op, args)?
    {
        return Ok(variable);
    }
    let mut operands: Few<(Option<Id>, Value)> = Few::with_capacity(args.len());
    for arg in args {
        let own = arg.cast_exact::<Variable>().ok().map(Bound::get).filter(|own| own.tape.is(tape));
        operands.push(match own {
            Some(own) => {
                let (id, value) = own.current(py)?;
                ((!own.is_constant()).then_some(id), value)
            }
            None => (None, Value::of_argument(&settled(arg)?)),
        });
    }
    let is_constant = operands.iter().all(|(id, _)| id.is_none());
    if let Op::Elementwise(elementary) = op
        && !is_constant
        && let Some((result, are_alike)) = elementwise(py, elementary, operands.iter().map(|(_, value)| value))?
    {
        let variable = append(tape, op, operands, named, result, are_alike)?;
        if gives_view(op, named)? {
            share(&args[0], &variable)?;
        }
        return Ok(variable);
    }
    for (_, value) in &operands {
        if let Value::Object(object) = value {
            refuse_meaning(object.bind(py), || "an array that is combined with a variable".into())?;
        }
    }
    let plain = |(arg, (id, value)): (&Object<'py>, &(Option<Id>, Value))| match (id, value) {
        (None, value) if value.is_scalar() && !arg.is_exact_instance_of::<Variable>() => arg.clone(),
        _ => value.object(py),
    };
    let values: Few<Object<'py>> = args.iter().zip(&operands).map(plain).collect();
    let mut result = record(py, op, &values, named)?;
    if !is_smooth(op) {
        // The sign of a real number is constant almost everywhere; that of a complex number is not.
        if op == Op::Elementwise(Elementwise::Sign)
            && callbacks(py)?.is_complex.bind(py).call1((&result,))?.is_truthy()?
        {
            return Err(missing(op, "a complex argument"));
        }
        return Ok(result);
    }
    if is_constant {
        return if is_inexact(&result)? { Tape::lift(tape, &result) } else { Ok(result) };
    }
    if result.is_exact_instance_of::<PyComplex>() {
        result = callbacks(py)?.complex_number.bind(py).call1((result,))?;
    }
    let is_same = matches!(&operands[0].1, Value::Object(value) if value.is(&result));
    let variable = append(tape, op, operands, named, result, false)?;
    if is_same || gives_view(op, named)? {
        share(&args[0], &variable)?;
    }
    Ok(variable)
}

/// Whether an argument is a list, a tuple, text or None, which no array library takes for an array by itself.
fn is_no_array(arg: &Object<'_>) -> bool {
    arg.is_exact_instance_of::<PyList>()
        || arg.is_exact_instance_of::<PyTuple>()
        || arg.is_exact_instance_of::<PyString>()
        || arg.is_none()
}

/// A list or tuple as an array of the library of the other arguments; `DtypeError` for what stands for no array.
fn as_array<'py>(op: Op, which: usize, arg: &Object<'py>, args: &[Object<'py>]) -> PyResult<Object<'py>> {
    let py = arg.py();
    if !is_no_array(arg) {
        return Ok(arg.clone());
    }
    if arg.is_none() || arg.is_exact_instance_of::<PyString>() {
        let (name, what) = (op.name(), describe(arg)?);
        return Err(to_python(&Error::Dtype(format!(
            "{name}: argument {which} is {what}: expected an array or a number"
        ))));
    }
    callbacks(py)?.array_of.bind(py).call1((arg, PyTuple::new(py, args)?))
}

/// Appends an op whose result is known. `are_alike` says that every argument that is an array has the shape and dtype
/// of the result.
fn append<'py>(
    tape: &Bound<'py, Tape>,
    op: Op,
    operands: Few<(Option<Id>, Value)>,
    named: Option<&Bound<'py, PyDict>>,
    result: Object<'py>,
    are_alike: bool,
) -> PyResult<Object<'py>> {
    let py = tape.py();
    let mut needs = registry(py)?.needs(op, operands.iter().map(|(id, _)| id.is_some()));
    // Tangents take the shape and the dtype of the result: what differs in neither from the only argument says both.
    let says_both = || matches!(op, Op::Elementwise(_)) && (are_alike || is_alike(&operands[0].1, &result));
    needs.result |= tape.get().forward && !(operands.len() == 1 && says_both());
    let fits = fits(op, &operands, &result, needs, are_alike)?;
    let attributes = Attributes { named: named.map(|named| named.clone().unbind()), fits };
    let attributes = (attributes.named.is_some() || !attributes.fits.is_empty()).then_some(attributes);
    let value = Value::new(&result);
    let kept = if needs.result || value.is_scalar() { value.share(py) } else { Value::Absent };
    let checked = tape.get().check && (needs.result || (0..operands.len()).any(|which| needs.reads(which)));
    let read: Few<Object<'py>> = if checked {
        let read = operands.iter().enumerate().filter(|(which, _)| needs.reads(*which));
        read.map(|(_, (_, value))| value.object(py)).chain(needs.result.then(|| result.clone())).collect()
    } else {
        Few::new()
    };
    let mut unneeded: Few<Value> = Few::new(); // dropped after the lock
    let id = {
        let core = &mut tape.get().lock().tape;
        let mut entry = |(which, (id, value)): (usize, (Option<Id>, Value))| {
            let is_kept = value.is_scalar() || needs.reads(which);
            match id {
                Some(id) if is_kept && matches!(value, Value::Object(_)) && !core.keeps(id) => {
                    core.keep(id, value);
                    id
                }
                Some(id) => {
                    unneeded.push(value);
                    id
                }
                None if is_kept => core.constant(value),
                None => {
                    unneeded.push(value);
                    core.constant(Value::Absent)
                }
            }
        };
        let ids: Few<Id> = operands.into_iter().enumerate().map(&mut entry).collect();
        core.push(op, &ids, attributes, kept)
    };
    if checked {
        tape.get().guard(id, read.iter())?;
    }
    Ok(Bound::new(py, Variable::new(tape, id, value))?.into_any())
}

/// Whether an argument is an array of the shape and dtype of the result.
fn is_alike(value: &Value, result: &Object<'_>) -> bool {
    matches!(value, Value::Object(object) if are_alike(object.bind(result.py()), result) == Some(true))
}

/// The shapes and dtypes of the arguments relative to the result, if an op has several arguments or a rule reads them;
/// empty otherwise.
fn fits<'py>(
    op: Op,
    operands: &[(Option<Id>, Value)],
    result: &Object<'py>,
    needs: Needs,
    are_alike: bool,
) -> PyResult<Vec<Fit>> {
    let alone = operands.len() == 1 && !is_variadic(op);
    if needs.all_args || !needs.shape && (alone || result.is_exact_instance_of::<PyFloat>()) {
        return Ok(Vec::new());
    }
    let py = result.py();
    let of = |object: &Object<'py>| {
        Ok::<_, PyErr>((object.getattr(intern!(py, "shape"))?, object.getattr(intern!(py, "dtype"))?))
    };
    let is_elementwise = matches!(op, Op::Elementwise(_));
    let mut fits = Vec::new();
    for (which, (id, value)) in operands.iter().enumerate() {
        let fit = match value {
            _ if id.is_none() && !needs.shape => Fit::Same,
            Value::Number(_) | Value::Absent => Fit::Number,
            Value::Object(_) if are_alike || is_elementwise && is_alike(value, result) => Fit::Same,
            value => {
                let (shape, dtype) = of(&value.object(py))?;
                let like = of(result)?;
                if is_elementwise && shape.eq(&like.0)? && dtype.eq(&like.1)? {
                    Fit::Same
                } else {
                    Fit::Array { shape: shape.unbind(), dtype: dtype.unbind() }
                }
            }
        };
        if !matches!(fit, Fit::Same) {
            fits.resize_with(operands.len(), || Fit::Same);
            fits[which] = fit;
        }
    }
    Ok(fits)
}

/// An operand of an op on scalars.
pub struct ScalarOperand<'a, 'py> {
    /// The entry, if the operand is a variable of the tape.
    id: Option<Id>,
    scalar: Scalar,
    /// The array without dimensions that the scalar was read from: the tape keeps it, as it keeps all arrays.
    array: Option<&'a Bound<'py, PyAny>>,
}

impl<'a, 'py> ScalarOperand<'a, 'py> {
    /// The operand as a scalar; `None` if it is anything else, or changed in place.
    #[inline]
    pub fn of(tape: &Bound<'py, Tape>, arg: &'a Object<'py>) -> Option<Self> {
        if let Ok(variable) = arg.cast_exact::<Variable>() {
            return Self::of_variable(tape, variable);
        }
        if let Some(number) = host_number(arg) {
            return Some(Self { id: None, scalar: Scalar::weak(number), array: None });
        }
        if let Some(scalar) = scalar_of(arg) {
            return Some(Self { id: None, scalar, array: None });
        }
        Some(Self { id: None, scalar: element_of(arg)?, array: Some(arg) })
    }

    /// The same of a variable.
    #[inline]
    pub fn of_variable(tape: &Bound<'py, Tape>, variable: &'a Bound<'py, Variable>) -> Option<Self> {
        let own = variable.get();
        if !own.tape.is(tape) || !own.is_as_made() {
            return None;
        }
        let id = Some(own.id);
        if let Value::Object(array) = &own.value {
            let array = array.bind(variable.py());
            return Some(Self { id, scalar: element_of(array)?, array: Some(array) });
        }
        Some(Self { id, scalar: own.value.own_scalar()?, array: None })
    }
}

/// An op on arguments that all are scalars; `None` if they are not.
fn of_scalars<'py>(tape: &Bound<'py, Tape>, op: Elementwise, args: &[Object<'py>]) -> PyResult<Option<Object<'py>>> {
    let operand = |arg| ScalarOperand::of(tape, arg);
    match args {
        [a] => operand(a).map_or(Ok(None), |a| record_scalars(tape, op, &[a])),
        [a, b] => operand(a).zip(operand(b)).map_or(Ok(None), |(a, b)| record_scalars(tape, op, &[a, b])),
        _ => Ok(None),
    }
}

/// Appends an op on scalars: the fast path for scalar code. `None` if the op has to take the general path.
#[inline]
pub fn record_scalars<'py, const N: usize>(
    tape: &Bound<'py, Tape>,
    op: Elementwise,
    operands: &[ScalarOperand<'_, 'py>; N],
) -> PyResult<Option<Object<'py>>> {
    let is_plain = op.kind() != Kind::Smooth || operands.iter().all(|operand| operand.id.is_none());
    let is_checked = tape.get().check && operands.iter().any(|operand| operand.array.is_some());
    if is_plain || is_checked {
        return Ok(None);
    }
    let Some(result) = on_any_scalars(op, operands.each_ref().map(|operand| operand.scalar)) else { return Ok(None) };
    let id = {
        let core = &mut tape.get().lock().tape;
        let ids = operands.each_ref().map(|operand| {
            let kept = || operand.array.map_or_else(|| Value::from_scalar(operand.scalar), Value::new);
            match operand.id {
                Some(id) if operand.array.is_some() && !core.keeps(id) => {
                    core.keep(id, kept());
                    id
                }
                Some(id) => id,
                None => core.constant(kept()),
            }
        });
        core.push(Op::Elementwise(op), &ids, None, Value::from_scalar(result))
    };
    Ok(Some(Bound::new(tape.py(), Variable::new(tape, id, Value::from_scalar(result)))?.into_any()))
}

/// An op on scalars of the host language or of NumPy; `None` if NumPy computes it.
#[inline]
fn on_any_scalars<const N: usize>(op: Elementwise, scalars: [Scalar; N]) -> Option<Scalar> {
    if promoted(&scalars) == Precision::Weak { Some(op.on_scalars(&scalars)) } else { on_numpy_scalars(op, &scalars) }
}

/// Appends an op on two floats of Python, or on one.
#[inline]
pub fn record_numbers<'py, const N: usize>(
    tape: &Bound<'py, Tape>,
    op: Elementwise,
    operands: [(Option<Id>, f64); N],
) -> PyResult<Object<'py>> {
    let mut numbers = [0.0; 3];
    for (number, operand) in numbers.iter_mut().zip(&operands) {
        *number = operand.1;
    }
    let result = op.on_numbers(numbers);
    let id = {
        let core = &mut tape.get().lock().tape;
        let ids = operands.map(|(id, number)| id.unwrap_or_else(|| core.constant(Value::Number(number))));
        core.push(Op::Elementwise(op), &ids, None, Value::Number(result))
    };
    Ok(Bound::new(tape.py(), Variable::new(tape, id, Value::Number(result)))?.into_any())
}

fn record_symbol<'py>(
    tape: &Bound<'py, Tape>,
    op: Op,
    args: &[Object<'py>],
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Object<'py>> {
    if matches!(op, Op::Structured(_)) && !is_whole_sum(op, named)? {
        let name = op.name();
        return Err(to_python(&Error::Rule(format!(
            "{name} cannot run in a kernel: a kernel has elementwise ops, and sums over a whole leaf"
        ))));
    }
    let mut operands = Vec::with_capacity(args.len());
    for arg in args {
        operands.push(match (arg.cast_exact::<Variable>(), host_number(arg)) {
            (Ok(own), _) if own.get().tape.is(tape) => Ok(own.get().id),
            (_, Some(number)) => Err(number),
            _ => {
                let what = describe(arg)?;
                return Err(to_python(&Error::Rule(format!(
                    "a rule may combine its arguments with numbers, not with {what}"
                ))));
            }
        });
    }
    let id = {
        let core = &mut tape.get().lock().tape;
        let entry = |operand: Result<Id, f64>| operand.unwrap_or_else(|number| core.constant(Value::Number(number)));
        let ids: Vec<Id> = operands.into_iter().map(entry).collect();
        core.push(op, &ids, None, Value::Absent)
    };
    Ok(Bound::new(tape.py(), Variable::new(tape, id, Value::Absent))?.into_any())
}

/// Computes an op on plain values: numbers here, arrays by their own library.
fn evaluate<'py>(
    py: Python<'py>,
    op: Op,
    args: &[Object<'py>],
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Object<'py>> {
    if let Op::Elementwise(op) = op {
        if let Some(result) = on_host_numbers(py, op, args) {
            return Ok(result);
        }
        let values: Few<Value> = args.iter().map(Value::of_argument).collect();
        if let Some((result, _)) = elementwise(py, op, values.iter())? {
            return Ok(result);
        }
        if let Some(result) = function(op, &args[0])? {
            return Ok(result);
        }
    }
    let by_core = match op {
        Op::Structured(Structured::BroadcastTo) => broadcast_to(&args[0], named)?,
        Op::Structured(Structured::Matmul) if args.len() == 2 => matmul(&args[0], &args[1])?,
        Op::Structured(op) => reduce(op, &args[0], named)?,
        Op::Elementwise(_) => None,
    };
    if let Some(result) = by_core {
        return Ok(result);
    }
    if let Some(result) = by_operator(op, args) {
        return result;
    }
    let sample = args.iter().find(|arg| host_number(arg).is_none()).unwrap_or(&args[0]);
    implementation(op, sample)?.call(PyTuple::new(py, args)?, named).map_err(|error| explained(op, args, error))
}

/// The error of an array library that asked something for what only arrays have, in the terms of the op.
fn explained(op: Op, args: &[Object<'_>], error: PyErr) -> PyErr {
    let Some(py) = args.first().map(Bound::py).filter(|py| error.is_instance_of::<PyAttributeError>(*py)) else {
        return error;
    };
    let what: Vec<String> = match args.iter().map(describe).collect() {
        Ok(what) => what,
        Err(raised) => return raised,
    };
    let (name, what) = (op.name(), what.join(", "));
    let explained =
        to_python(&Error::Dtype(format!("{name} of {what}: expected arrays of numbers, or numbers among them")));
    explained.set_cause(py, Some(error));
    explained
}

fn on_host_numbers<'py>(py: Python<'py>, op: Elementwise, args: &[Object<'py>]) -> Option<Object<'py>> {
    let mut numbers = [0.0; 3];
    for (number, arg) in numbers.iter_mut().zip(args) {
        *number = host_number(arg)?;
    }
    let result = op.on_numbers(numbers);
    Some(match op.kind() {
        Kind::Truth => PyBool::new(py, result != 0.0).to_owned().into_any(),
        Kind::Smooth | Kind::Step => PyFloat::new(py, result).into_any(),
    })
}

/// The op by Python's operator, if there is one: the shortest way into any array library.
pub fn by_operator<'py>(op: Op, args: &[Object<'py>]) -> Option<PyResult<Object<'py>>> {
    let operator = op.operator()?;
    let a = args.first()?;
    let b = args.get(1);
    let compare = |how| Some(a.rich_compare(b?, how));
    match operator {
        Operator::Add => Some(a.add(b?)),
        Operator::Subtract => Some(a.sub(b?)),
        Operator::Multiply => Some(a.mul(b?)),
        Operator::Divide => Some(a.div(b?)),
        Operator::Power => Some(a.pow(b?, a.py().None())),
        Operator::Remainder => Some(a.rem(b?)),
        Operator::FloorDivide => Some(a.floor_div(b?)),
        Operator::MatrixMultiply => Some(a.matmul(b?)),
        Operator::Negative => Some(a.neg()),
        Operator::Positive => Some(a.pos()),
        Operator::Abs => Some(a.abs()),
        Operator::Less => compare(CompareOp::Lt),
        Operator::LessEqual => compare(CompareOp::Le),
        Operator::Greater => compare(CompareOp::Gt),
        Operator::GreaterEqual => compare(CompareOp::Ge),
        Operator::Equal => compare(CompareOp::Eq),
        Operator::NotEqual => compare(CompareOp::Ne),
    }
}

/// The array library's function for an op, looked up once for each type of array.
fn implementation<'py>(op: Op, sample: &Object<'py>) -> PyResult<Object<'py>> {
    static FUNCTIONS: ByClass<Py<PyList>> = ByClass::new();
    let py = sample.py();
    let kind = sample.get_type();
    let functions = if let Some(functions) = FUNCTIONS.get(&kind, |functions| functions.clone_ref(py)) {
        functions.into_bound(py)
    } else {
        let functions = PyList::new(py, Op::all().map(|_| py.None()))?;
        FUNCTIONS.insert(&kind, functions.clone().unbind())?;
        functions
    };
    let known = functions.get_item(op.index())?;
    if !known.is_none() {
        return Ok(known);
    }
    let found = callbacks(py)?.implementation.bind(py).call1((op.name(), sample))?;
    functions.set_item(op.index(), &found)?;
    Ok(found)
}

/// An elementwise op as a function of arrays, numbers and variables.
#[pyclass(frozen, module = "oxigrad.xp")]
pub struct Function(Elementwise);

#[pymethods]
impl Function {
    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Object<'py>> {
        let arity = self.0.arity();
        if args.len() != arity {
            let (name, given) = (self.0.name(), args.len());
            return Err(PyTypeError::new_err(format!("{name} takes {arity} positional arguments, got {given}")));
        }
        let args: Vec<Object<'py>> = args.iter().collect();
        record(args[0].py(), Op::Elementwise(self.0), &args, None)
    }

    #[getter]
    fn __name__(&self) -> &'static str {
        self.0.name()
    }

    #[getter]
    fn __qualname__(&self) -> &'static str {
        self.0.name()
    }

    /// The arguments, named as the standard names them, for `inspect.signature`.
    #[getter]
    fn __signature__<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let names: &[&str] = match self.0.arity() {
            1 => &["x"],
            2 => &["x1", "x2"],
            _ => &["x1", "x2", "x3"],
        };
        let inspect = py.import("inspect")?;
        let class = inspect.getattr("Parameter")?;
        let kind = class.getattr("POSITIONAL_ONLY")?;
        let parameters: PyResult<Vec<_>> = names.iter().map(|name| class.call1((*name, &kind))).collect();
        inspect.getattr("Signature")?.call1((parameters?,))
    }

    /// Pickled by its name, as functions are.
    fn __reduce__(&self) -> &'static str {
        self.0.name()
    }

    #[getter]
    fn __doc__(&self) -> String {
        let name = self.0.name();
        format!("``{name}`` of the Array API standard, element by element, recorded on the tape of its arguments.")
    }

    fn __repr__(&self) -> String {
        format!("<oxigrad.xp.{}>", self.0.name())
    }
}

fn arity(op: Op) -> Option<usize> {
    match op {
        Op::Elementwise(op) => Some(op.arity()),
        Op::Structured(op) => op.arity(),
    }
}

/// Every elementwise op as a function, in the order of the table.
#[pyfunction]
pub fn elementwise_functions() -> Vec<Function> {
    Elementwise::ALL.iter().map(|op| Function(*op)).collect()
}

/// The name of every op and how many array arguments it takes (none: any number), in the order of the table.
#[pyfunction]
pub fn ops() -> Vec<(&'static str, Option<usize>)> {
    Op::all().map(|op| (op.name(), arity(op))).collect()
}
