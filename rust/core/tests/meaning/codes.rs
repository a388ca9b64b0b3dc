//! Arrays of codes, in the place of numbers.

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::array::quantized::{Codec, Coding, Eight, Four, eight, four};
use oxigrad_core::simd::Lane;

/// The kind of codes that an array of this dtype consists of in these tests.
pub fn codec(dtype: Dtype) -> Option<Codec> {
    match dtype {
        Dtype::U8 => Some(Codec::Eight),
        Dtype::I8 => Some(Codec::Four),
        _ => None,
    }
}

/// The codes of each block, and its scale.
pub fn coded(codec: Codec, values: &[f64]) -> Vec<(Vec<u8>, f32)> {
    fn encoded<C: Coding<N, B>, const N: usize, const B: usize>(values: &[f64]) -> (Vec<u8>, f32) {
        let (mut numbers, mut codes) = ([f32::splat(values[0]); N], [0; B]);
        numbers.iter_mut().zip(values).for_each(|(number, value)| *number = f32::splat(*value));
        let scale = C::encode(&numbers, &mut codes);
        (codes[..C::CODEC.bytes(values.len())].to_vec(), scale)
    }
    let block = match codec {
        Codec::Eight => encoded::<Eight, { eight::BLOCK }, { eight::BLOCK }>,
        Codec::Four => encoded::<Four, { four::BLOCK }, { four::BYTES }>,
    };
    values.chunks(codec.block()).map(block).collect()
}

pub fn decoded(codec: Codec, blocks: &[(Vec<u8>, f32)], length: usize) -> Vec<f64> {
    fn numbers<C: Coding<N, B>, const N: usize, const B: usize>((own, scale): &(Vec<u8>, f32)) -> Vec<f64> {
        let (mut codes, mut numbers) = ([0; B], [0.0; N]);
        codes[..own.len()].copy_from_slice(own);
        C::decode(&codes, *scale, &mut numbers);
        numbers.map(f64::from).to_vec()
    }
    let decode = match codec {
        Codec::Eight => numbers::<Eight, { eight::BLOCK }, { eight::BLOCK }>,
        Codec::Four => numbers::<Four, { four::BLOCK }, { four::BYTES }>,
    };
    let mut all: Vec<f64> = blocks.iter().flat_map(decode).collect();
    all.truncate(length);
    all
}
