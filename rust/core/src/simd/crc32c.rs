//! CRC-32C, the cyclic redundancy check of Castagnoli (RFC 3720, appendix B.4): by carry-less products of vectors, by the
//! instruction of the processor, on three blocks at a time to hide its latency, or by a table.
//!
//! A *state* is the register of the check, without its inversion at start and end. It is linear: the state after `a` then
//! `b` is that after `a` and as many zeros as `b` has bytes, exclusive or that of `b` from zero.

/// The polynomial, with the bits in reverse.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// Bytes of each of the three blocks, a power of two.
pub(super) const BLOCK: usize = 4096;

const BYTES: [u32; 256] = bytes();
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const AFTER_BLOCK: [[u32; 256]; 4] = after_block();

/// The states after one byte, from zero.
const fn bytes() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        let mut state = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            state = (state >> 1) ^ (POLYNOMIAL & (state & 1).wrapping_neg());
            bit += 1;
        }
        table[byte] = state;
        byte += 1;
    }
    table
}

/// The product of a linear map, given by the images of each bit, and a state.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const fn image(map: &[u32; 32], state: u32) -> u32 {
    let (mut sum, mut bit) = (0, 0);
    while bit < 32 {
        sum ^= map[bit] & ((state >> bit) & 1).wrapping_neg();
        bit += 1;
    }
    sum
}

/// By each byte of a state: the state after a block of zeros.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const fn after_block() -> [[u32; 256]; 4] {
    let mut map = [0; 32];
    let mut bit = 0;
    while bit < 32 {
        let state: u32 = 1 << bit;
        map[bit] = (state >> 8) ^ BYTES[(state & 255) as usize]; // after one zero
        bit += 1;
    }
    let mut length = 1;
    while length < BLOCK {
        let (squared, mut bit) = (map, 0);
        while bit < 32 {
            map[bit] = image(&squared, squared[bit]);
            bit += 1;
        }
        length *= 2;
    }
    let mut table = [[0; 256]; 4];
    let mut place = 0;
    while place < 4 {
        let mut byte = 0;
        while byte < 256 {
            #[expect(clippy::cast_possible_truncation, reason = "below 256")]
            let state = (byte as u32) << (8 * place);
            table[place][byte] = image(&map, state);
            byte += 1;
        }
        place += 1;
    }
    table
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn shifted(state: u32) -> u32 {
    let [a, b, c, d] = state.to_le_bytes().map(usize::from);
    AFTER_BLOCK[0][a] ^ AFTER_BLOCK[1][b] ^ AFTER_BLOCK[2][c] ^ AFTER_BLOCK[3][d]
}

/// The state after `length` bytes at `data`, byte by byte.
///
/// # Safety
/// The bytes can be read.
pub(super) unsafe fn by_table(state: u32, data: *const u8, length: usize) -> u32 {
    (0..length).fold(state, |state, at| {
        // SAFETY: the caller's promise.
        let byte = unsafe { data.add(at).read() };
        (state >> 8) ^ BYTES[usize::from(state.to_le_bytes()[0] ^ byte)]
    })
}

macro_rules! by_instruction {
    ($arch:literal $feature:literal $word:expr) => {
        /// The state after `length` bytes at `data`.
        ///
        /// # Safety
        /// The bytes can be read.
        #[cfg(target_arch = $arch)]
        #[target_feature(enable = $feature)]
        pub(super) unsafe fn by_instruction(mut state: u32, mut data: *const u8, mut length: usize) -> u32 {
            // SAFETY: within the promises of the caller, since every word is inside of the bytes.
            let read = |at: *const u8| unsafe { at.cast::<u64>().read_unaligned() };
            while length >= 3 * BLOCK {
                let (mut second, mut third) = (0, 0);
                for at in (0..BLOCK).step_by(8) {
                    // SAFETY: three blocks are left.
                    let [a, b, c] = unsafe { [data.add(at), data.add(BLOCK + at), data.add(2 * BLOCK + at)] };
                    state = $word(state, read(a));
                    second = $word(second, read(b));
                    third = $word(third, read(c));
                }
                state = shifted(shifted(state) ^ second) ^ third;
                // SAFETY: three blocks are left.
                data = unsafe { data.add(3 * BLOCK) };
                length -= 3 * BLOCK;
            }
            while length >= 8 {
                state = $word(state, read(data));
                // SAFETY: a word is left.
                data = unsafe { data.add(8) };
                length -= 8;
            }
            // SAFETY: the caller's promise.
            unsafe { by_table(state, data, length) }
        }
    };
}

by_instruction! { "x86_64" "sse4.2" x86 }
by_instruction! { "aarch64" "crc" std::arch::aarch64::__crc32cd }

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse4.2")]
#[expect(clippy::cast_possible_truncation, reason = "the upper half is zero")]
fn x86(state: u32, word: u64) -> u32 {
    std::arch::x86_64::_mm_crc32_u64(u64::from(state), word) as u32
}

/// Bytes of the four vectors that are folded at a time.
#[cfg(target_arch = "x86_64")]
const FOLDED: usize = 256;

/// The remainder of `x` to the power `exponent`, in the form that a carry-less product with reversed bits takes.
#[cfg(target_arch = "x86_64")]
const fn power(exponent: usize) -> i64 {
    let (mut remainder, mut count) = (1_u32 << 31, 0);
    while count < exponent {
        remainder = (remainder >> 1) ^ (POLYNOMIAL & (remainder & 1).wrapping_neg());
        count += 1;
    }
    (remainder as i64) << 1
}

/// The state after `length` bytes at `data`, by folding (Gopal et al. 2009, "Fast CRC Computation for Generic Polynomials Using
/// PCLMULQDQ Instruction"): 128 bits, times `x` to the power of their distance to later ones, are added to those.
///
/// # Safety
/// The bytes can be read.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,vpclmulqdq,sse4.2")]
pub(super) unsafe fn by_folding(state: u32, data: *const u8, length: usize) -> u32 {
    use std::arch::x86_64::{
        __m512i, _mm_cvtsi32_si128, _mm_set_epi64x, _mm512_broadcast_i32x4, _mm512_clmulepi64_epi128,
        _mm512_setzero_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512, _mm512_zextsi128_si512,
    };
    const BITS: usize = 8 * FOLDED;
    const LOW: i64 = power(BITS + 32);
    const HIGH: i64 = power(BITS - 32);
    let whole = if length < 2 * FOLDED { 0 } else { length - length % FOLDED };
    if whole == 0 {
        // SAFETY: the caller's promise.
        return unsafe { by_instruction(state, data, length) };
    }
    // SAFETY: within the promise of the caller, since every vector is inside of the bytes.
    let read = |at: usize| unsafe { data.add(at).cast::<__m512i>().read_unaligned() };
    let factors = _mm512_broadcast_i32x4(_mm_set_epi64x(HIGH, LOW));
    let mut folded = [_mm512_setzero_si512(); 4];
    for (at, vector) in folded.iter_mut().enumerate() {
        *vector = read(64 * at);
    }
    // The check from a state is that from zero, of bytes to which the state is added.
    folded[0] = _mm512_xor_si512(folded[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(state.cast_signed())));
    for start in (FOLDED..whole).step_by(FOLDED) {
        for (at, vector) in folded.iter_mut().enumerate() {
            let low = _mm512_clmulepi64_epi128::<0x00>(*vector, factors);
            let high = _mm512_clmulepi64_epi128::<0x11>(*vector, factors);
            *vector = _mm512_ternarylogic_epi64::<0x96>(low, high, read(start + 64 * at));
        }
    }
    let mut bytes = [0_u8; FOLDED];
    for (at, vector) in folded.into_iter().enumerate() {
        // SAFETY: the array has room for the four vectors.
        unsafe { bytes.as_mut_ptr().add(64 * at).cast::<__m512i>().write_unaligned(vector) };
    }
    // SAFETY: the array, then what is left of the caller's bytes.
    unsafe {
        let state = by_instruction(0, bytes.as_ptr(), FOLDED);
        by_instruction(state, data.add(whole), length - whole)
    }
}
