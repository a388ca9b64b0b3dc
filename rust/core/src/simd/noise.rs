//! Counter-based random numbers: functions of the key, the draw and the element, whatever thread or device draws them.
//!
//! One or two rounds of a well mixed 32-bit hash of the element's index, keyed by 64 bits: vectors of 32-bit integers
//! compute it on every instruction set and on GPUs, to the same bits.

/// The key of the draws of one leaf in one step.
#[must_use]
pub const fn noise_key(seed: u64, step: u64, leaf: u64) -> u64 {
    mix(mix(mix(seed) ^ step) ^ leaf)
}

/// A uniform number of [0, 1), a multiple of 2^-24, which `f32` and `f64` both hold exactly.
#[must_use]
pub const fn uniform(key: u64, draw: u32, index: u64) -> f32 {
    number(bits::<NUMBER>(key, draw, index))
}

/// Rounds of mixing for the numbers that a rule draws.
pub const NUMBER: u32 = 2;
/// Rounds of mixing for the bits of stochastic rounding: of lower quality, but drawn for every element.
pub const ROUNDING: u32 = 1;

/// The 32 random bits of one draw of one element. Of two rounds, [`uniform`] takes the upper 24.
#[must_use]
pub const fn bits<const ROUNDS: u32>(key: u64, draw: u32, index: u64) -> u32 {
    let (low, high) = halves(stream(key, draw, index));
    mixed::<ROUNDS>(low, high, low_half(index))
}

/// The uniform number of random bits.
#[inline(always)]
#[allow(clippy::cast_precision_loss, reason = "24 bits are exact")]
pub(crate) const fn number(bits: u32) -> f32 {
    (bits >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// Fills `to` with the bits of consecutive elements, from `index` on.
#[inline(always)]
pub(crate) fn fill<const ROUNDS: u32>(to: &mut [u32], key: u64, draw: u32, index: u64) {
    let (low, high) = halves(stream(key, draw, index));
    // The key changes where the upper half of the index does, which leaves below 16 GiB do not reach.
    if low_half(index).checked_add(u32::try_from(to.len()).unwrap_or(u32::MAX)).is_some() {
        let mut counter = low_half(index);
        for drawn in to {
            *drawn = mixed::<ROUNDS>(low, high, counter);
            counter = counter.wrapping_add(1);
        }
    } else {
        for (drawn, index) in to.iter_mut().zip(index..) {
            *drawn = bits::<ROUNDS>(key, draw, index);
        }
    }
}

/// The sixteen random bits for the stochastic rounding of each of consecutive elements.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    /// The key of the hash.
    pub(crate) low: u32,
    pub(crate) high: u32,
    /// The shift that selects one half of the bits of the hash.
    pub(crate) shift: u32,
    /// The lower half of the index of the first element.
    pub(crate) index: u32,
}

impl Draws {
    /// The draws from element `index` on, up to where the upper half of the index changes; `shift` is 0 or 16.
    #[must_use]
    pub(crate) const fn new(key: u64, draw: u32, shift: u32, index: u64) -> Self {
        let (low, high) = halves(stream(key, draw, index));
        Self { low, high, shift, index: low_half(index) }
    }

    /// The draws from the element `count` after the first on.
    #[inline(always)]
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "they are less than 2^32 apart")]
    pub const fn after(self, count: usize) -> Self {
        Self { index: self.index.wrapping_add(count as u32), ..self }
    }

    /// The bits of the first element.
    #[inline(always)]
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "takes one half")]
    pub const fn first(self) -> u16 {
        (mixed::<ROUNDING>(self.low, self.high, self.index) >> self.shift) as u16
    }
}

/// The finalizer of splitmix64 (Steele, Lea and Flood, 2014).
const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const fn stream(key: u64, draw: u32, index: u64) -> u64 {
    mix(mix(key ^ draw as u64) ^ (index >> 32))
}

#[allow(clippy::cast_possible_truncation, reason = "takes the halves apart")]
const fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

const fn low_half(word: u64) -> u32 {
    halves(word).0
}

/// The multipliers of the hash.
pub(crate) const FACTORS: [u32; 2] = [0x7feb_352d, 0x846c_a68b];

/// A hash of 32 bits with low bias (Wellons' hash prospector), keyed between its two multiplications.
#[inline(always)]
const fn hash(value: u32, key: u32) -> u32 {
    let mut x = value;
    x = (x ^ (x >> 16)).wrapping_mul(FACTORS[0]);
    x = (x ^ (x >> 15) ^ key).wrapping_mul(FACTORS[1]);
    x ^ (x >> 16)
}

#[inline(always)]
const fn mixed<const ROUNDS: u32>(low: u32, high: u32, counter: u32) -> u32 {
    if ROUNDS == 1 { hash(counter ^ low, high) } else { hash(hash(counter ^ low, 0).wrapping_add(high), 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: usize = 1 << 20;

    fn draws<const ROUNDS: u32>(key: u64, draw: u32, index: u64) -> Vec<f64> {
        let mut drawn = vec![0; N];
        fill::<ROUNDS>(&mut drawn, key, draw, index);
        drawn.into_iter().map(|bits| f64::from(number(bits))).collect()
    }

    #[allow(clippy::cast_precision_loss)]
    fn correlation(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - 0.5) * (b - 0.5)).sum::<f64>() / a.len() as f64 * 12.0
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    fn assert_even(numbers: &[f64], what: u64) {
        assert!(numbers.iter().all(|x| (0.0..1.0).contains(x)));
        let mut cells = vec![0f64; 1024];
        for x in numbers {
            cells[(x * 1024.0) as usize] += 1.0;
        }
        let expected = N as f64 / 1024.0;
        let chi: f64 = cells.iter().map(|n| (n - expected).powi(2) / expected).sum();
        // 1023 degrees of freedom: mean 1023, deviation 45.
        assert!((800.0..1250.0).contains(&chi), "chi square {chi} of key {what}");
    }

    #[test]
    fn draws_are_spread_evenly() {
        for key in [0, 1, noise_key(7, 1, 0), noise_key(7, 2, 0)] {
            assert_even(&draws::<NUMBER>(key, 0, 0), key);
            assert_even(&draws::<ROUNDING>(key, 0, 0), key);
            // The lower bits of what rounds are used too.
            let mut drawn = vec![0; N];
            fill::<ROUNDING>(&mut drawn, key, 0, 0);
            assert_even(&drawn.into_iter().map(|bits| f64::from(bits & 0xffff) / 65536.0).collect::<Vec<_>>(), key);
        }
    }

    fn assert_unrelated<const ROUNDS: u32>() {
        let base = draws::<ROUNDS>(noise_key(1, 1, 0), 0, 0);
        let others = [
            draws::<ROUNDS>(noise_key(1, 1, 0), 0, 1),
            draws::<ROUNDS>(noise_key(1, 1, 0), 0, 16),
            draws::<ROUNDS>(noise_key(1, 1, 0), 1, 0),
            draws::<ROUNDS>(noise_key(1, 1, 1), 0, 0),
            draws::<ROUNDS>(noise_key(1, 2, 0), 0, 0),
            draws::<ROUNDS>(noise_key(2, 1, 0), 0, 0),
            draws::<ROUNDS>(noise_key(1, 1, 0), 0, 1 << 32),
        ];
        for (which, other) in others.iter().enumerate() {
            let r = correlation(&base, other);
            // The deviation of a correlation of a million pairs is 0.001.
            assert!(r.abs() < 0.005, "correlation {r} with {which}, {ROUNDS} rounds");
        }
    }

    #[test]
    fn neighbours_draws_leaves_and_steps_are_unrelated() {
        assert_unrelated::<NUMBER>();
        assert_unrelated::<ROUNDING>();
    }

    #[test]
    fn filling_equals_drawing_one_by_one() {
        for start in [0, 5, (1 << 32) - 3, (5 << 32) - 1] {
            let mut drawn = [0; 40];
            fill::<NUMBER>(&mut drawn, 9, 2, start);
            for (drawn, index) in drawn.iter().zip(start..) {
                assert_eq!(*drawn, bits::<NUMBER>(9, 2, index));
                assert_eq!(number(*drawn).to_bits(), uniform(9, 2, index).to_bits());
            }
        }
    }
}
