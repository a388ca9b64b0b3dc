//! NumPy's functions on matrices and along rows, by the functions of C that they call for each of these: their addresses are fields of NumPy's objects, whose
//! layout is part of its public C interface, and is checked before it is used. One of the files that touch foreign memory.

use std::ffi::{CStr, c_char, c_int, c_void};

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::exec::array_run::small::SmallCall;
use oxigrad_core::exec::array_run::{Foreign, Function};
use oxigrad_core::op::Structured;
use pyo3::exceptions::PyImportError;
use pyo3::ffi::PyObject;

use crate::prelude::*;

/// The public head of NumPy's universal function (`PyUFuncObject` of its C interface), the same from NumPy 1 on.
#[repr(C)]
#[derive(Clone, Copy)]
struct Fields {
    head: [usize; size_of::<PyObject>() / size_of::<usize>()],
    /// The numbers of arguments, of results and of both, and the identity.
    counts: [c_int; 4],
    functions: *const Option<Function>,
    data: *const *mut c_void,
    signatures: c_int,
    reserved: c_int,
    name: *const c_char,
    /// The numbers of the dtypes of all operands, signature after signature.
    types: *const c_char,
}

/// A call of an op on matrices of float64, of so many axes in all.
pub fn call(py: Python<'_>, op: Structured, axes: usize) -> PyResult<Option<SmallCall>> {
    const SQUARE: &[&[usize]] = &[&[0, 0], &[0, 0]];
    let function = |name: &CStr, operands| function(py, c"numpy.linalg._umath_linalg", name, Dtype::F64, operands);
    let one = |name: &CStr, operands| Ok(function(name, operands)?.map(SmallCall::Foreign));
    match (op, axes) {
        (Structured::Inv, 2) => one(c"inv", SQUARE),
        (Structured::Cholesky, 2) => one(c"cholesky_lo", SQUARE),
        (Structured::Det, 2) => one(c"det", &[&[0, 0], &[]]),
        (Structured::Solve, 3) => one(c"solve1", &[&[0, 0], &[0], &[0]]),
        (Structured::Solve, 4) => one(c"solve", &[&[0, 0], &[0, 1], &[0, 1]]),
        (Structured::Cofactor, 2) => {
            let functions = (function(c"det", &[&[0, 0], &[]])?, function(c"inv", SQUARE)?);
            Ok(functions.0.zip(functions.1).map(|(determinant, inverse)| SmallCall::Cofactor([determinant, inverse])))
        }
        _ => Ok(None),
    }
}

/// A product of two matrices or vectors of a dtype, with NumPy's bits.
pub fn product(py: Python<'_>, dtype: Dtype) -> PyResult<Option<SmallCall>> {
    let function = function(py, c"numpy", c"matmul", dtype, &[&[0, 1], &[1, 2], &[0, 2]])?;
    Ok(function.map(SmallCall::ForeignProduct))
}

/// The larger, or the smaller one, of two numbers of a dtype, with NumPy's bits.
pub fn extremum(py: Python<'_>, op: Structured, dtype: Dtype) -> PyResult<Option<Foreign>> {
    let name = if op == Structured::Max { c"maximum" } else { c"minimum" };
    function(py, c"numpy", name, dtype, &[&[], &[], &[]])
}

/// The function of C that a function of NumPy calls for matrices of float32 or float64; `None` where it is not as expected.
fn function(
    py: Python<'_>,
    module: &CStr,
    name: &CStr,
    dtype: Dtype,
    operands: &'static [&'static [usize]],
) -> PyResult<Option<Foreign>> {
    let Some(module) = unless::<PyImportError, _>(py, py.import(module))? else { return Ok(None) };
    let Some(object) = module.getattr_opt(name)? else { return Ok(None) };
    if !object.get_type().is(py.import("numpy")?.getattr("ufunc")?) {
        return Ok(None);
    }
    let stated: Vec<String> = object.getattr("types")?.extract()?;
    let mut counts: [c_int; 4] = [0; 4];
    for (count, name) in counts.iter_mut().zip(["nin", "nout", "nargs", "ntypes"]) {
        *count = object.getattr(name)?.extract()?;
    }
    // The numbers of NumPy's dtypes, in the order of their letters.
    let number = |letter| "?bBhHiIlLqQfdgFDGOSUVMme".find(letter).and_then(|number| u8::try_from(number).ok());
    let types = stated.iter().flat_map(|types| types.chars().filter(|letter| !"->".contains(*letter))).map(number);
    let Some(types) = types.collect::<Option<Vec<u8>>>() else { return Ok(None) };
    let own = if dtype == Dtype::F32 { 'f' } else { 'd' };
    let at = stated.iter().position(|types| types.chars().all(|letter| letter == own || "->".contains(letter)));
    // SAFETY: the object is of exactly NumPy's class, whose head this is; the numbers are compared before pointers are followed.
    let fields = unsafe { *object.as_ptr().cast::<Fields>() };
    let known = [fields.counts[0], fields.counts[1], fields.counts[2], fields.signatures];
    let is_of_size = usize::try_from(counts[2]) == Ok(operands.len()) && types.len() == stated.len() * operands.len();
    let (Some(at), true) = (at, known == counts && is_of_size) else { return Ok(None) };
    // SAFETY: NumPy has a name, and as many dtypes, functions and data, in memory that it never frees. The function of a signature of one dtype
    // takes such arrays at any strides, with the lock of the interpreter, which replays hold.
    unsafe {
        let found = std::slice::from_raw_parts(fields.types.cast::<u8>(), types.len());
        let is_known = CStr::from_ptr(fields.name) == name && found == types;
        let function = is_known.then(|| fields.functions.add(at).read()).flatten();
        Ok(function.map(|function| Foreign::new(function, fields.data.add(at).read(), dtype, operands)))
    }
}
