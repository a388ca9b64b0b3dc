//! Recording: computes an op on the values of its variables, and appends it to the innermost tape.

use oxigrad_core::autodiff::rule::Needs;
use oxigrad_core::autodiff::tape::Id;
use oxigrad_core::op::{Attribute, Elementwise, Op, ResultKind, Structured};
use pyo3::intern;
use pyo3::types::{PyDict, PyFloat, PyString, PyTuple};
use smallvec::SmallVec;

use crate::arrays::batch_level::BatchLevel;
use crate::arrays::compute::elementwise::elementwise;
use crate::arrays::memory::numpy::{are_alike, refuse_meaning};
use crate::arrays::value::{Value, host_number};
use crate::autodiff::graph::batched::{batched, is_above, is_number};
use crate::autodiff::graph::describe::describe;
use crate::autodiff::graph::tape::{Attributes, CotangentType, Tape};
use crate::autodiff::graph::variable::{NO_ENTRY, Variable, is_of_number, snapshot};
use crate::autodiff::operations::evaluate::evaluate;
use crate::autodiff::operations::foreign::{is_list, is_no_array, is_plain_operand, with_foreign};
use crate::autodiff::operations::indexed_assignment::{gives_view, share, share_constant};
use crate::autodiff::operations::scalars::{record_if_scalars, recorded};
use crate::autodiff::vjp_rules::{is_complex_number, is_whole_sum, registry};
use crate::callbacks;
use crate::prelude::*;
use crate::tree::is_inexact;

/// As many as an op has arguments: seldom more than three.
pub type Few<T> = SmallVec<[T; 3]>;

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
    record_by(py, op, args, named, None)
}

/// A function of values.
type Computation<'a, 'py> = &'a dyn Fn(&[Object<'py>]) -> PyResult<Object<'py>>;

/// As [`record`]; `call` computes the value, if it is given.
fn record_by<'py>(
    py: Python<'py>,
    op: Op,
    args: &[Object<'py>],
    named: Option<&Bound<'py, PyDict>>,
    call: Option<Computation<'_, 'py>>,
) -> PyResult<Object<'py>> {
    if !args.iter().all(is_plain_operand) {
        if args.iter().any(is_no_array)
            && let Some(arrays) = as_arrays(op, args)?
        {
            return record_by(py, op, &arrays, named, call);
        }
        if let Some(result) = with_foreign(py, op, args, named, false)? {
            return Ok(result);
        }
    }
    let Some(variable) = innermost(args) else { return evaluate(py, op, args, named) };
    let tape = variable.get().tape.bind(py);
    if let Err(error) = tape.get().check_recording(variable.get().id) {
        let args = with_values_of_constants(args)?.ok_or(error)?;
        return record_by(py, op, &args, named, call);
    }
    if tape.get().symbolic {
        return record_symbol(tape, op, args, named);
    }
    let (op, args) = match op {
        Op::Elementwise(Elementwise::Pow) if args.get(1).and_then(host_number) == Some(2.0) => {
            (Op::Elementwise(Elementwise::Square), &args[..1]) // its rule is shorter, and its bits are the same
        }
        op => (op, args),
    };
    if let Op::Elementwise(op) = op
        && let Some(variable) = record_if_scalars(tape, op, args)?
    {
        return Ok(variable);
    }
    if let Some(result) = batched(py, Some(tape.get().serial), op, args, named)? {
        return Ok(result);
    }
    let mut operands: Few<(Option<Id>, Value)> = Few::with_capacity(args.len());
    for arg in args {
        let own = arg.cast_exact::<Variable>().ok().map(Bound::get).filter(|own| own.tape.is(tape));
        operands.push(match own {
            Some(own) => {
                let (id, value) = own.current(py)?;
                ((id != NO_ENTRY && !own.is_untracked()).then_some(id), value)
            }
            None => (None, Value::of_argument(&snapshot(arg)?)),
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
    let mut result = match call {
        Some(call) => call(&values)?,
        None => record(py, op, &values, named)?,
    };
    // Truth values and piecewise constant results are plain values.
    if matches!(op, Op::Elementwise(op) if op.kind() != ResultKind::Smooth) {
        // The sign of a real number is constant almost everywhere; that of a complex number is not.
        if op == Op::Elementwise(Elementwise::Sign) && callbacks::is_complex(py, (&result,))?.is_truthy()? {
            return record_complex_sign(py, &args[0]);
        }
        return Ok(result);
    }
    if is_constant {
        return if is_inexact(&result)? { lifted(tape, op, args, named, result) } else { Ok(result) };
    }
    if is_complex_number(&result)? {
        result = callbacks::complex_number(py, (result,))?;
    }
    if has_kink(op, &values)? && (result.is_exact_instance_of::<Variable>() || result.is_instance_of::<BatchLevel>()) {
        // Derivatives of the derivative, which read the modulus, know by this entry that it has a kink at zero.
        // A tangent of zero hides what depends on the modulus from a replay in reverse: no cotangent of zero is certain.
        let named = PyDict::new(py);
        named.set_item("of_tangents", tape.get().forward)?;
        result = record(py, Op::Structured(Structured::Kink), &[result], Some(&named))?;
    }
    let is_same = matches!(&operands[0].1, Value::Object(value) if value.is(&result));
    let variable = append(tape, op, operands, named, result, false)?;
    if is_same || gives_view(op, named)? {
        share(&args[0], &variable)?;
    }
    Ok(variable)
}

/// As [`record`], of a call of a program: constants and products are computed by the call itself, as the program does with plain arrays.
pub fn record_call<'py>(
    py: Python<'py>,
    op: Op,
    args: &[Object<'py>],
    call: impl Fn(&[Object<'py>]) -> PyResult<Object<'py>>,
) -> PyResult<Object<'py>> {
    let record = |py, op, args, named| {
        let is_product = op == Op::Structured(Structured::Matmul);
        record_by(py, op, args, named, if is_product { Some(&call) } else { None })
    };
    let has_entry = |arg: &Object<'py>| arg.cast_exact::<Variable>().is_ok_and(|own| !own.get().is_constant());
    let Some(variable) = innermost(args).filter(|_| !args.iter().any(has_entry)) else {
        return record(py, op, args, None);
    };
    let tape = variable.get().tape.bind(py);
    let is_of_inner_level = args.iter().any(|arg| is_above(arg, tape.get().serial));
    if is_of_inner_level || tape.get().symbolic || tape.get().check_recording(variable.get().id).is_err() {
        return record(py, op, args, None);
    }
    let result = call(&args.iter().map(snapshot).collect::<PyResult<Few<_>>>()?)?;
    if is_inexact(&result)? { lifted(tape, op, args, None, result) } else { Ok(result) }
}

/// Whether an op is a modulus of several numbers, or parts: it has a kink where they are zero.
fn has_kink(op: Op, values: &[Object<'_>]) -> PyResult<bool> {
    match op {
        Op::Structured(Structured::VectorNorm) | Op::Elementwise(Elementwise::Hypot | Elementwise::RootOrZero) => {
            Ok(true)
        }
        Op::Elementwise(Elementwise::Abs) => callbacks::is_complex(values[0].py(), (&values[0],))?.is_truthy(),
        _ => Ok(false),
    }
}

/// The result of an op on constants. One without dimensions, which no program assigns to, is a plain value.
fn lifted<'py>(
    tape: &Bound<'py, Tape>,
    op: Op,
    args: &[Object<'py>],
    named: Option<&Bound<'py, PyDict>>,
    result: Object<'py>,
) -> PyResult<Object<'py>> {
    let own = |arg: &Object<'py>| arg.cast_exact::<Variable>().is_ok_and(|own| own.get().tape.is(tape));
    let untracked = |arg: &Object<'py>| arg.cast_exact::<Variable>().is_ok_and(|own| own.get().is_untracked());
    if args.iter().filter(|arg| own(arg)).all(untracked) {
        return Tape::lift(tape, &result, false);
    }
    if result.getattr(intern!(tape.py(), "shape"))?.len()? == 0 {
        return Ok(result);
    }
    let variable = Tape::lift(tape, &result, true)?;
    if gives_view(op, named)? {
        share_constant(&args[0], &variable, named)?;
    }
    Ok(variable)
}

/// The arguments with the values of constants whose tapes have ended, or belong to other threads, and of the variables of tapes
/// that detach them; `None` where there are none.
fn with_values_of_constants<'py>(args: &[Object<'py>]) -> PyResult<Option<Few<Object<'py>>>> {
    let mut is_changed = false;
    let values = args.iter().map(|arg| match arg.cast_exact::<Variable>() {
        Ok(own) if own.get().tape.get().is_detached() => {
            is_changed = true;
            Ok(own.get().current(arg.py())?.1.into_object(arg.py()))
        }
        Ok(own) if own.get().is_constant() && own.get().tape.get().check_recording(own.get().id).is_err() => {
            is_changed = true;
            snapshot(arg)
        }
        _ => Ok(arg.clone()),
    });
    let values = values.collect::<PyResult<_>>()?;
    Ok(is_changed.then_some(values))
}

/// The sign `x / |x|` of a complex number; zero at zero.
fn record_complex_sign<'py>(py: Python<'py>, x: &Object<'py>) -> PyResult<Object<'py>> {
    let elementwise = |op, args: &[Object<'py>]| record(py, Op::Elementwise(op), args, None);
    let number = |value| PyFloat::new(py, value).into_any();
    let size = elementwise(Elementwise::Abs, std::slice::from_ref(x))?;
    let is_zero = elementwise(Elementwise::Equal, &[size.clone(), number(0.0)])?;
    let divisor = elementwise(Elementwise::Where, &[is_zero, number(1.0), size])?;
    elementwise(Elementwise::Divide, &[x.clone(), divisor])
}

/// The arguments with arrays for lists and tuples; None if nothing changes.
///
/// Comparisons for equality take a string and None too, which are equal to no number; calls take any object.
fn as_arrays<'py>(op: Op, args: &[Object<'py>]) -> PyResult<Option<Few<Object<'py>>>> {
    let takes_any = op.has(Attribute::AnyObject);
    if takes_any && !(matches!(op, Op::Elementwise(_)) && args.iter().any(is_list)) {
        return Ok(None);
    }
    let array = |(which, arg): (usize, &Object<'py>)| {
        if takes_any && !is_list(arg) { Ok(arg.clone()) } else { as_array(op, which, arg, args) }
    };
    args.iter().enumerate().map(array).collect::<PyResult<_>>().map(Some)
}

/// A list or tuple as an array of the library of the other arguments; `DtypeError` for a string or None.
fn as_array<'py>(op: Op, which: usize, arg: &Object<'py>, args: &[Object<'py>]) -> PyResult<Object<'py>> {
    let py = arg.py();
    if !is_no_array(arg) {
        return Ok(arg.clone());
    }
    if arg.is_none() || arg.is_exact_instance_of::<PyString>() {
        let (name, what) = (op.name(), describe(arg)?);
        return Err(DtypeError::new_err(format!(
            "{name}: argument {which}: found {what}, expected an array or a number"
        )));
    }
    callbacks::array_of(py, (arg, PyTuple::new(py, args)?))
}

/// Appends an op whose result is known. `are_alike` says that every argument that is an array has the shape and dtype
/// of the result.
pub fn append<'py>(
    tape: &Bound<'py, Tape>,
    op: Op,
    operands: Few<(Option<Id>, Value)>,
    named: Option<&Bound<'py, PyDict>>,
    result: Object<'py>,
    are_alike: bool,
) -> PyResult<Object<'py>> {
    let py = tape.py();
    let mut needs = registry(py)?.needs(op, operands.iter().map(|(id, _)| id.is_some()));
    // Tangents have the shape and dtype of the result; a single argument of the same shape and dtype suffices to know
    // them.
    let says_both = || matches!(op, Op::Elementwise(_)) && (are_alike || is_alike(&operands[0].1, &result));
    needs.result |= tape.get().forward && !(operands.len() == 1 && says_both());
    let cotangent_types = cotangent_types(op, &operands, &result, needs, are_alike)?;
    let attributes = Attributes { named: named.map(|named| named.clone().unbind()), cotangent_types };
    let attributes = (attributes.named.is_some() || !attributes.cotangent_types.is_empty()).then_some(attributes);
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
    recorded(tape, op, Variable::new(tape, id, value))
}

/// Whether an argument is an array of the shape and dtype of the result.
fn is_alike(value: &Value, result: &Object<'_>) -> bool {
    matches!(value, Value::Object(object) if are_alike(object.bind(result.py()), result) == Some(true))
}

/// The shapes and dtypes of the arguments relative to the result, if an op has several arguments or a rule reads them;
/// empty otherwise.
fn cotangent_types<'py>(
    op: Op,
    operands: &[(Option<Id>, Value)],
    result: &Object<'py>,
    needs: Needs,
    are_alike: bool,
) -> PyResult<Vec<CotangentType>> {
    let alone = operands.len() == 1 && op.arity().is_some();
    let is_scalar =
        || Ok::<_, PyErr>(result.is_exact_instance_of::<PyFloat>() || is_of_number(result) || is_number(result)?);
    if needs.all_args || !needs.shape && (alone || is_scalar()?) {
        return Ok(Vec::new());
    }
    let py = result.py();
    let of = |object: &Object<'py>| {
        Ok::<_, PyErr>((object.getattr(intern!(py, "shape"))?, object.getattr(intern!(py, "dtype"))?))
    };
    let is_elementwise = matches!(op, Op::Elementwise(_));
    let mut cotangent_types = Vec::new();
    for (which, (id, value)) in operands.iter().enumerate() {
        let fit = match value {
            _ if id.is_none() && !needs.shape => CotangentType::Same,
            Value::Number(_) | Value::Absent => CotangentType::Number,
            Value::Object(object) if is_number(object.bind(py))? => CotangentType::Number,
            Value::Object(_) if are_alike || is_elementwise && is_alike(value, result) => CotangentType::Same,
            value => {
                let (shape, dtype) = of(&value.object(py))?;
                let like = of(result)?;
                if is_elementwise && shape.eq(&like.0)? && dtype.eq(&like.1)? {
                    CotangentType::Same
                } else {
                    CotangentType::Array { shape: shape.unbind(), dtype: dtype.unbind() }
                }
            }
        };
        if !matches!(fit, CotangentType::Same) {
            cotangent_types.resize_with(operands.len(), || CotangentType::Same);
            cotangent_types[which] = fit;
        }
    }
    Ok(cotangent_types)
}

fn record_symbol<'py>(
    tape: &Bound<'py, Tape>,
    op: Op,
    args: &[Object<'py>],
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Object<'py>> {
    if matches!(op, Op::Structured(_)) && !is_whole_sum(op, named)? {
        let name = op.name();
        return Err(RuleError::new_err(format!(
            "{name} cannot run in a kernel: a kernel has elementwise ops, and sums over a whole leaf"
        )));
    }
    let mut operands = Vec::with_capacity(args.len());
    for arg in args {
        operands.push(match (arg.cast_exact::<Variable>(), host_number(arg)) {
            (Ok(own), _) if own.get().tape.is(tape) => Ok(own.get().id),
            (_, Some(number)) => Err(number),
            _ => {
                let what = describe(arg)?;
                return Err(RuleError::new_err(format!("found {what} in a rule, expected its arguments and numbers")));
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
