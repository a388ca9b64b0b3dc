//! Arrays in memory of any layout.

use super::codes::{codec, coded, decoded};
use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::simd::Lane;

/// The memory layout of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    Plain,
    Unaligned,
    Every(isize),
    Rows,
}

/// An array in separate memory, with room for the layout. A `U8` or `I8` array consists of codes: see `codec`.
pub struct Held {
    bytes: Vec<u8>,
    scales: Vec<f32>,
    pub buffer: Buffer,
    pub dtype: Dtype,
    places: Vec<usize>,
}

impl Held {
    pub fn new(values: &[f64], dtype: Dtype, shape: Shape) -> Self {
        let (n, size) = (values.len(), dtype.size());
        let mut bytes = vec![0u8; 3 * n * size + 64];
        let start = bytes.as_mut_ptr();
        let signed = |x: usize| isize::try_from(x).unwrap();
        let codec = codec(dtype);
        let mut scales = vec![0.0f32; codec.map_or(0, |codec| n.div_ceil(codec.block())).max(1)];
        let quantized = codec.map(|codec| Buffer::quantized(codec, start, scales.as_mut_ptr().cast(), n, true));
        let (places, buffer): (Vec<usize>, _) = match shape {
            _ if codec.is_some() => ((0..n).collect(), quantized.unwrap()),
            Shape::Plain | Shape::Unaligned => {
                let first = usize::from(shape == Shape::Unaligned);
                let places = (0..n).map(|i| first + i * size).collect();
                (places, Buffer::contiguous(start.wrapping_add(first), n, dtype, true))
            }
            Shape::Every(step) => {
                let far = step.unsigned_abs() * size;
                let first = if step < 0 { 3 + far * n.saturating_sub(1) } else { 3 };
                let stride = signed(size) * step;
                let places = (0..n).map(|i| first.wrapping_add_signed(stride * signed(i))).collect();
                (places, Buffer::strided(start.wrapping_add(first), &[n], &[stride], dtype, true))
            }
            Shape::Rows => {
                // Rows of three in columns' order, if the length allows it.
                let rows = if n % 3 == 0 { 3 } else { 1 };
                let columns = n / rows;
                let places = (0..n).map(|i| (i / columns.max(1) + i % columns.max(1) * rows) * size).collect();
                let strides = [signed(size), signed(size * rows)];
                (places, Buffer::strided(start, &[rows, columns], &strides, dtype, true))
            }
        };
        let mut held = Self { bytes, scales, buffer: buffer.unwrap(), dtype, places };
        if let Some(codec) = codec {
            for (number, (codes, scale)) in coded(codec, values).into_iter().enumerate() {
                held.bytes[codec.bytes(number * codec.block())..][..codes.len()].copy_from_slice(&codes);
                held.scales[number] = scale;
            }
        } else {
            (0..n).for_each(|i| held.set(i, values[i]));
        }
        held
    }

    /// The buffer of a slice; of an array of several rows none.
    pub fn slice(&self, first: usize, length: usize) -> Buffer {
        let start = self.bytes.as_ptr().cast_mut();
        let at = |i: usize| self.places.get(i).map_or(start, |place| start.wrapping_add(*place));
        if let Some(codec) = codec(self.dtype) {
            let scales = self.scales.as_ptr().wrapping_add(first / codec.block()).cast_mut().cast();
            return Buffer::quantized(codec, start.wrapping_add(codec.bytes(first)), scales, length, true).unwrap();
        }
        let stride = at(1).addr().wrapping_sub(at(0).addr()).cast_signed();
        Buffer::strided(at(first), &[length], &[stride], self.dtype, true).unwrap()
    }

    fn set(&mut self, i: usize, value: f64) {
        let at = self.places[i];
        match self.dtype {
            Dtype::F16 => self.bytes[at..at + 2].copy_from_slice(&half::f16::from_f64(value).to_ne_bytes()),
            Dtype::BF16 => self.bytes[at..at + 2].copy_from_slice(&half::bf16::from_f64(value).to_ne_bytes()),
            Dtype::F32 => self.bytes[at..at + 4].copy_from_slice(&f32::splat(value).to_ne_bytes()),
            Dtype::F64 => self.bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes()),
            Dtype::Bool => self.bytes[at] = u8::from(value != 0.0),
            #[allow(clippy::cast_possible_truncation)]
            _ => self.bytes[at..at + 4].copy_from_slice(&(value as i32).to_ne_bytes()),
        }
    }

    fn get(&self, i: usize) -> f64 {
        let at = self.places[i];
        match self.dtype {
            Dtype::F16 => half::f16::from_ne_bytes(self.bytes[at..at + 2].try_into().unwrap()).to_f64(),
            Dtype::BF16 => half::bf16::from_ne_bytes(self.bytes[at..at + 2].try_into().unwrap()).to_f64(),
            Dtype::F32 => f64::from(f32::from_ne_bytes(self.bytes[at..at + 4].try_into().unwrap())),
            Dtype::F64 => f64::from_ne_bytes(self.bytes[at..at + 8].try_into().unwrap()),
            Dtype::Bool => f64::from(self.bytes[at]),
            _ => f64::from(i32::from_ne_bytes(self.bytes[at..at + 4].try_into().unwrap())),
        }
    }

    pub fn all(&self) -> Vec<f64> {
        if let Some(codec) = codec(self.dtype) {
            let (n, block) = (self.places.len(), codec.bytes(codec.block()));
            let codes = self.bytes[..codec.bytes(n)].chunks(block).map(<[u8]>::to_vec);
            let blocks: Vec<(Vec<u8>, f32)> = codes.zip(self.scales.iter().copied()).collect();
            return decoded(codec, &blocks, n);
        }
        (0..self.places.len()).map(|i| self.get(i)).collect()
    }
}
