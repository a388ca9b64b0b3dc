//! CRC-32C, the cyclic redundancy check of Castagnoli (RFC 3720, appendix B.4): by the instruction of the processor, on
//! three blocks at a time to hide its latency, or by a table.
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
