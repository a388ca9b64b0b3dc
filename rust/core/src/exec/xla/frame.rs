//! The call frame of XLA, checked before it is read. One of the files that touch foreign memory.

use std::ffi::{c_int, c_void};
use std::slice;

use crate::array::buffer::{Buffer, Dtype, elements};
use smallvec::SmallVec;

use super::abi::{self, Api, Array, Arrays, Bytes, CallFrame, Extension, MetadataExtension, Structure};

/// The largest number of operands, results, attributes and axes: a larger one is an error.
const MOST: usize = 1 << 24;

/// The message of an invalid call.
pub type Result<T> = std::result::Result<T, String>;

/// The structure at an address, if the address and the size are valid.
///
/// # Safety
/// An address that is neither null nor unaligned is that of a structure of the size in its first field, which is not
/// written meanwhile.
pub unsafe fn structure<'a, T: Structure>(address: *const T, what: &str) -> Result<&'a T> {
    if address.is_null() || !address.is_aligned() {
        return Err(format!("{what} at the address {:#x}", address.addr()));
    }
    // SAFETY: not null, aligned, and every structure begins with its size.
    let size = unsafe { address.cast::<usize>().read() };
    if size < T::SIZE {
        return Err(format!("{what} of {size} bytes: expected {} or more", T::SIZE));
    }
    // SAFETY: as above, and its size includes all fields that are used.
    Ok(unsafe { &*address })
}

/// A list of values at an address.
///
/// # Safety
/// As [`structure`], for as many values as `count` says.
unsafe fn list<'a, T>(address: *const T, count: i64, what: &str) -> Result<&'a [T]> {
    let length = usize::try_from(count).ok().filter(|length| *length <= MOST);
    let length = length.ok_or_else(|| format!("{count} {what}"))?;
    if length == 0 {
        return Ok(&[]);
    }
    if address.is_null() || !address.is_aligned() {
        return Err(format!("{count} {what} at the address {:#x}", address.addr()));
    }
    // SAFETY: not null, aligned, and of this length.
    Ok(unsafe { slice::from_raw_parts(address, length) })
}

/// A call whose own structure is checked; the items of its lists are checked when they are read.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    operands: &'a [*const Array],
    results: &'a [*const Array],
    names: &'a [*const Bytes],
    kinds: &'a [c_int],
    values: &'a [*const c_void],
}

impl<'a> Frame<'a> {
    /// The lists of a call.
    ///
    /// # Safety
    /// The frame was made by XLA, or its lists have the lengths that it states.
    pub unsafe fn new(frame: &'a CallFrame, api: &Api) -> Result<Self> {
        // SAFETY: the caller's promise.
        let (version, attributes) = unsafe {
            (structure(&raw const api.version, "the version")?, structure(&raw const frame.attributes, "attributes")?)
        };
        if version.major != abi::VERSION.0 {
            return Err(format!("the interface has version {}.{}, not 0", version.major, version.minor));
        }
        if frame.stage != abi::EXECUTE {
            return Err(format!("a call in stage {}: expected {}", frame.stage, abi::EXECUTE));
        }
        let count = attributes.count;
        // SAFETY: the caller's promise.
        unsafe {
            Ok(Self {
                operands: arrays(&frame.operands, "operands")?,
                results: arrays(&frame.results, "results")?,
                names: list(attributes.names, count, "names of attributes")?,
                kinds: list(attributes.kinds, count, "kinds of attributes")?,
                values: list(attributes.values, count, "attributes")?,
            })
        }
    }

    /// The numbers of operands and of results.
    pub fn counts(&self) -> (usize, usize) {
        (self.operands.len(), self.results.len())
    }

    /// The string that is the attribute of this name.
    pub fn string(&self, name: &str) -> Result<&'a str> {
        for (at, address) in self.names.iter().enumerate() {
            // SAFETY: the caller of `new` promised that the items of the lists are those of XLA.
            if unsafe { bytes(*address, "the name of an attribute")? } != name.as_bytes() {
                continue;
            }
            if self.kinds[at] != abi::STRING {
                return Err(format!("attribute {name} is of kind {}: expected a string", self.kinds[at]));
            }
            // SAFETY: as above, of a string.
            let text = unsafe { bytes(self.values[at].cast(), "a string")? };
            return std::str::from_utf8(text).map_err(|error| format!("attribute {name}: {error}"));
        }
        Err(format!("attribute {name} is missing"))
    }

    /// An operand.
    pub fn operand(&self, number: usize) -> Result<Operand> {
        // SAFETY: as in `string`.
        unsafe { Operand::of(self.operands, number, "operand") }
    }

    /// A result.
    pub fn result(&self, number: usize) -> Result<Operand> {
        // SAFETY: as in `string`.
        unsafe { Operand::of(self.results, number, "result") }
    }
}

/// The bytes at an address.
///
/// # Safety
/// As [`structure`], for the pair of address and length, and for the bytes.
unsafe fn bytes<'a>(address: *const Bytes, what: &str) -> Result<&'a [u8]> {
    // SAFETY: the caller's promise.
    unsafe {
        let [Bytes { data, length }] = *list(address, 1, what)? else { unreachable!("a list of one") };
        list(data, i64::try_from(length).unwrap_or(i64::MAX), what)
    }
}

/// The arrays of a list, whose kinds are checked.
///
/// # Safety
/// As [`Frame::new`].
unsafe fn arrays<'a>(list_of: &'a Arrays, what: &str) -> Result<&'a [*const Array]> {
    // SAFETY: the caller's promise.
    unsafe {
        let arrays = structure(list_of, what)?;
        let kinds = list(arrays.kinds, arrays.count, what)?;
        if let Some(at) = kinds.iter().position(|kind| *kind != abi::ARRAY) {
            return Err(format!("number {at} of the {what} is of kind {}: expected an array", kinds[at]));
        }
        list(arrays.items, arrays.count, what)
    }
}

/// The extension of a frame that asks a handler for its version.
///
/// # Safety
/// As [`structure`], for the extensions.
pub unsafe fn metadata(frame: &CallFrame) -> Result<Option<&MetadataExtension>> {
    let mut next = frame.extensions;
    while !next.is_null() {
        // SAFETY: the caller's promise.
        let extension: &Extension = unsafe { structure(next, "an extension")? };
        if extension.kind == abi::METADATA {
            // SAFETY: as above; the kind says that it is one.
            return unsafe { structure(next.cast(), "the extension for metadata") }.map(Some);
        }
        next = extension.next;
    }
    Ok(None)
}

/// An array of a call, contiguous.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    pub data: *mut u8,
    pub length: usize,
    pub dtype: Dtype,
}

impl Operand {
    /// # Safety
    /// As [`structure`], for the array and its dimensions.
    unsafe fn of(arrays: &[*const Array], number: usize, what: &str) -> Result<Self> {
        let address =
            arrays.get(number).ok_or_else(|| format!("there is no {what} {number}, only {}", arrays.len()))?;
        let named = |error| format!("{what} {number}: {error}");
        // SAFETY: the caller's promise.
        let (array, dimensions) = unsafe {
            let array = structure(*address, "an array").map_err(named)?;
            (array, list(array.dimensions, array.rank, "dimensions").map_err(named)?)
        };
        let extents: Option<SmallVec<[usize; 8]>> =
            dimensions.iter().map(|extent| usize::try_from(*extent).ok()).collect();
        let length = extents.as_deref().and_then(elements);
        let length = length.ok_or_else(|| format!("{what} {number} has shape {dimensions:?}"))?;
        let dtype =
            Dtype::from_xla(array.dtype).ok_or_else(|| format!("{what} {number} has the dtype {}", array.dtype))?;
        let operand = Self { data: array.data, length, dtype };
        operand.buffer(false).map_err(named)?;
        if length > 0 && !operand.data.addr().is_multiple_of(dtype.size()) {
            return Err(format!("{what} {number} is not aligned: it is at the address {:#x}", operand.data.addr()));
        }
        Ok(operand)
    }

    /// As a buffer of kernels.
    pub fn buffer(&self, writable: bool) -> Result<Buffer> {
        Buffer::contiguous(self.data, self.length, self.dtype, writable).map_err(|error| error.to_string())
    }

    /// The address of its first element as a pointer of this type; `of` checked the alignment.
    pub fn address<T>(&self) -> *mut T {
        self.data.cast()
    }

    /// Its number, if it has one element.
    ///
    /// # Safety
    /// Its memory is readable.
    #[expect(clippy::cast_precision_loss, reason = "counts of steps are far below 2^53")]
    pub unsafe fn number(&self) -> Result<f64> {
        if self.length != 1 {
            return Err(format!("an array of {} elements: expected one number", self.length));
        }
        // SAFETY: it has one element, it is aligned and not null, and any bits are valid.
        Ok(unsafe {
            match self.dtype {
                Dtype::F64 => self.address::<f64>().read(),
                Dtype::F32 => self.address::<f32>().read().into(),
                Dtype::I32 => self.address::<i32>().read().into(),
                Dtype::U32 => self.address::<u32>().read().into(),
                Dtype::I64 => self.address::<i64>().read() as f64,
                Dtype::U64 => self.address::<u64>().read() as f64,
                other => return Err(format!("a number of dtype {}", other.name())),
            }
        })
    }

    /// Whether `set_number` can write it.
    pub fn is_float(&self) -> bool {
        self.length == 1 && self.dtype.computes()
    }

    /// Writes its number.
    ///
    /// # Safety
    /// `is_float` holds, and its memory is writable.
    #[expect(clippy::cast_possible_truncation, reason = "rounding to the dtype is the point")]
    pub unsafe fn set_number(&self, value: f64) {
        // SAFETY: it has one element, is aligned and not null, and the caller promises the rest.
        unsafe {
            if self.dtype == Dtype::F64 {
                self.address::<f64>().write(value);
            } else {
                self.address::<f32>().write(value as f32);
            }
        }
    }
}
