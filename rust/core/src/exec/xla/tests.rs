//! Calls of gradient descent: their text, and their execution on frames that are made here.

use std::cell::RefCell;
use std::ffi::{CStr, c_int};
use std::mem::size_of;
use std::ptr;
use std::sync::Arc;

use super::abi::{self, Api, Array, Arrays, Attributes, Bytes, CallFrame, Error, ErrorArguments, Version};
use super::{CallLeaf, Calls, Stated, StatedProgram, handle};
use crate::simd::dispatch::Isa;

/// `p - learning_rate * g`.
const DESCENT: &str = "leaf 1\nscalar 1\nleaf 0\nmultiply 1 2\nsubtract 0 3\noutputs 4\nresults\nguard\n";

fn descent() -> Stated<'static> {
    let program = StatedProgram { text: DESCENT.into(), written: &[1], set: 2, arrays: 2, numbers: 0 };
    let leaf = CallLeaf { program: 0, scalars: 0, position: 7, stochastic: false };
    Stated { programs: vec![program], leaves: vec![leaf], scalars: vec![1.0, 0.5], seed: 3, ..Stated::default() }
}

#[test]
fn a_text_is_read_back_and_compiled_once() {
    let stated = Stated { traced: vec![(1, 0)], ..descent() };
    let (calls, text) = (Calls::new(), stated.print().unwrap());
    let call = calls.get(&text).unwrap();
    assert_eq!((call.seed, call.measures, call.numbers, call.totals), (3, false, 1, None));
    assert_eq!((&call.scalars, &call.traced), (&stated.scalars, &stated.traced));
    assert_eq!((call.leaves[0].position, call.leaves[0].stochastic), (7, false));
    let program = &call.programs[0];
    assert_eq!((&program.written[..], program.set, program.arrays), (&[1][..], 2, 2));
    assert!(Arc::ptr_eq(&call, &calls.get(&text).unwrap()));
}

#[test]
fn texts_that_cannot_run_are_refused() {
    let text = descent().print().unwrap();
    let cases = [
        ("subtract 0 3", "subtract 0 9", "9"),
        ("subtract 0 3", "no_such_op 0 3", "line 5 of the program"),
        ("program 2 2 0", "program 2", "line 2 of the call"),
        ("program 2 2 0 1", "program 2 1 0 1", "outputs are written to [1] of 1 arrays"),
        ("program 2 2 0 1", "program 99999 2 0 1", "expected fewer"),
        ("leaf 0 0 7 0", "leaf 1 0 7 0", "leaf 0 is of the program 1, there are 1"),
        ("leaf 0 0 7 0", "leaf 0 1 7 0", "leaf 0 has 2 scalars from 1 on, of 2"),
        ("leaf 0 0 7 0", "leaf 0 18446744073709551615 7 0", "line 11 of the call"),
        ("scalars", "scalars x", "of the call"),
        ("call 3 0", "call 3 0\ntraced 2 0", "there is no scalar 2"),
        ("call 3 0", "call 3", "line 1 of the call"),
    ];
    for (from, to, expected) in cases {
        let error = Calls::new().get(&text.replacen(from, to, 1)).map(|_| ()).unwrap_err();
        assert!(error.contains(expected), "{to}: {error}");
    }
}

thread_local!(static MESSAGES: RefCell<Vec<(c_int, String)>> = RefCell::default());

unsafe extern "C" fn record(arguments: *mut ErrorArguments) -> *mut Error {
    // SAFETY: `handle` passes valid arguments.
    let (code, message) = unsafe { ((*arguments).code, CStr::from_ptr((*arguments).message)) };
    MESSAGES.with_borrow_mut(|messages| messages.push((code, message.to_str().unwrap().into())));
    ptr::dangling_mut()
}

fn array(numbers: &mut [f32], extent: &i64) -> Array {
    let (size, data) = (size_of::<Array>(), numbers.as_mut_ptr().cast());
    Array { size, extensions: ptr::null(), dtype: 11, data, rank: 1, dimensions: extent }
}

fn arrays(items: &[*const Array], kinds: &[c_int]) -> Arrays {
    let (items, count) = (items.as_ptr(), i64::try_from(items.len()).unwrap());
    Arrays { size: size_of::<Arrays>(), extensions: ptr::null(), count, kinds: kinds.as_ptr(), items }
}

/// Calls `text` on the gradient and the parameter, in place; the code and message of the error, if there is one.
fn call(text: &str, g: &mut [f32], p: &mut [f32]) -> Option<(c_int, String)> {
    let extents = [g.len(), p.len()].map(|length| i64::try_from(length).unwrap());
    let (gradient, parameter) = (array(g, &extents[0]), array(p, &extents[1]));
    let (operands, results, kinds) = ([&raw const gradient, &raw const parameter], [&raw const parameter], [1; 2]);
    let bytes = |text: &str| Bytes { data: text.as_ptr(), length: text.len() };
    let (name, value) = (bytes("call"), bytes(text));
    let attributes = Attributes {
        size: size_of::<Attributes>(),
        extensions: ptr::null(),
        count: 1,
        kinds: &abi::STRING,
        names: &&raw const name,
        values: &(&raw const value).cast(),
    };
    let version = Version { size: size_of::<Version>(), extensions: ptr::null(), major: 0, minor: 3 };
    let (extensions, internal) = (ptr::null(), ptr::null());
    let api = Api { size: size_of::<Api>(), extensions, version, internal, create_error: Some(record) };
    let frame = CallFrame {
        size: size_of::<CallFrame>(),
        extensions,
        api: &raw const api,
        context: ptr::null(),
        stage: abi::EXECUTE,
        operands: arrays(&operands, &kinds),
        results: arrays(&results, &kinds[..1]),
        attributes,
    };
    // SAFETY: all pointers are those of values that live until the end of this function, and the memory is ours.
    let failed = unsafe { handle(&raw const frame, &Calls::new(), || (Isa::detect(), None)) };
    let message = MESSAGES.with_borrow_mut(Vec::pop);
    assert_eq!(failed.is_null(), message.is_none());
    message
}

#[test]
fn a_call_updates_the_parameter_in_place() {
    for length in [0, 1, 5, 10_000] {
        let (mut g, mut p) = (vec![1.0; length], vec![2.0; length]);
        assert_eq!(call(&descent().print().unwrap(), &mut g, &mut p), None);
        assert_eq!((g, p), (vec![1.0; length], vec![1.5; length]));
    }
}

#[test]
fn a_call_that_does_not_fit_changes_nothing() {
    let text = descent().print().unwrap();
    let measuring = Stated { measures: true, ..descent() }.print().unwrap();
    let cases = [
        ("nothing", 4, "line 1 of the call"),
        (&text, 3, "a buffer of 3 elements in a leaf of 4"),
        (&measuring, 4, "there is no result 1, only 1"),
    ];
    for (text, length, expected) in cases {
        let (mut g, mut p) = (vec![1.0; 4], vec![2.0; length]);
        let (code, message) = call(text, &mut g, &mut p).unwrap();
        assert_eq!(code, abi::INVALID_ARGUMENT);
        assert!(message.starts_with("oxigrad: ") && message.contains(expected), "{message}");
        assert_eq!(p, vec![2.0; length]);
    }
}
