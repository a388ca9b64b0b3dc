//! The table of instruction sets, and the choice among them: the only file that detects the features of the
//! processor.

use super::float_env;
use super::instruction_sets::scalar::Scalar;
use super::lane::{Body, Simd, Task};

/// An instruction set that this processor has.
/// The choice affects speed only, not results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Isa(Set);

macro_rules! instruction_sets {
    ($($name:literal $file:ident::{$set:ident, $f32:ident, $f64:ident} $arch:literal $detected:ident [$($feature:tt)+];)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        enum Set {
            $(#[cfg(target_arch = $arch)] $set,)*
            Scalar,
        }

        $(
            #[cfg(target_arch = $arch)]
            impl Simd for super::instruction_sets::$file::$set {
                type F32 = super::instruction_sets::$file::$f32;
                type F64 = super::instruction_sets::$file::$f64;

                fn address<B: Body<A>, A>() -> unsafe fn(A) {
                    #[target_feature($(enable = $feature),+)]
                    fn call<B: Body<A>, A>(argument: A) {
                        B::call::<super::instruction_sets::$file::$set>(argument);
                    }
                    call::<B, A>
                }
            }
        )*

        impl Isa {
            /// All instruction sets of this processor, the fastest first.
            #[must_use]
            pub fn available() -> Vec<Self> {
                let mut sets = Vec::new();
                $(
                    #[cfg(target_arch = $arch)]
                    if true $(&& std::arch::$detected!($feature))+ {
                        sets.push(Self(Set::$set));
                    }
                )*
                sets.push(Self::SCALAR);
                sets
            }

            /// The name of the instruction set.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self.0 {
                    $(#[cfg(target_arch = $arch)] Set::$set => $name,)*
                    Set::Scalar => "scalar",
                }
            }

            /// Runs the task, compiled for this instruction set, under the standard settings for floating point.
            #[inline]
            pub fn run<T: Task>(self, task: T) -> T::Output {
                let _found = float_env::standard();
                match self.0 {
                    $(
                        #[cfg(target_arch = $arch)]
                        Set::$set => {
                            #[target_feature($(enable = $feature),+)]
                            fn run<T: Task>(task: T) -> T::Output {
                                task.run::<super::instruction_sets::$file::$set>()
                            }
                            // SAFETY: `available` is the only source of this value, and it detected the features.
                            unsafe { run(task) }
                        }
                    )*
                    Set::Scalar => task.run::<Scalar>(),
                }
            }
        }
    };
}

// The fastest first.
instruction_sets! {
    // name   lanes                             architecture  detected by                features
    "avx512"  avx512::{Avx512, F32x16, F64x8}    "x86_64"   is_x86_feature_detected ["avx512f" "avx512bw" "avx512dq" "avx512vl" "fma"];
    "avx2"    avx2::{Avx2, F32x8, F64x4}         "x86_64"   is_x86_feature_detected ["avx2" "fma" "f16c"];
    "neon"    neon::{Neon, F32x4, F64x2}         "aarch64"  is_aarch64_feature_detected ["neon"];
}

impl Isa {
    /// One number at a time: any processor.
    pub const SCALAR: Self = Self(Set::Scalar);

    /// The fastest instruction set of this processor. Detect it once, and pass it to callees.
    #[must_use]
    pub fn detect() -> Self {
        Self::available()[0]
    }
}

/// Runs a task on single numbers, which any processor has, under the standard settings for floating point, if this one
/// has a fused multiply-add in hardware: it has the same bits as the call of a function, and is faster. Otherwise the
/// task is given back.
#[inline]
pub(crate) fn with_fma<T: Task>(task: T) -> Result<T::Output, T> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("fma") {
        #[target_feature(enable = "fma")]
        fn run<T: Task>(task: T) -> T::Output {
            task.run::<Scalar>()
        }
        let _found = float_env::standard();
        // SAFETY: the feature is detected in the line above.
        return Ok(unsafe { run(task) });
    }
    if cfg!(target_arch = "x86_64") { Err(task) } else { Ok(Isa::SCALAR.run(task)) }
}

/// The CRC-32C of `length` bytes at `data` after other bytes, whose check is `start`; 0 after none.
///
/// # Safety
/// The bytes can be read.
#[must_use]
pub unsafe fn crc32c(start: u32, data: *const u8, length: usize) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("vpclmulqdq")
        && std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("sse4.2")
    {
        // SAFETY: the features are detected in the lines above, and the caller's promise.
        return !unsafe { super::crc32c::by_folding(!start, data, length) };
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the feature is detected in the line above, and the caller's promise.
        return !unsafe { super::crc32c::by_instruction(!start, data, length) };
    }
    #[cfg(target_arch = "aarch64")]
    if std::arch::is_aarch64_feature_detected!("crc") {
        // SAFETY: the feature is detected in the line above, and the caller's promise.
        return !unsafe { super::crc32c::by_instruction(!start, data, length) };
    }
    // SAFETY: the caller's promise.
    !unsafe { super::crc32c::by_table(!start, data, length) }
}

#[cfg(test)]
mod tests {
    use super::super::crc32c::{BLOCK, by_table};
    use super::crc32c;

    fn both(start: u32, data: &[u8]) -> [u32; 2] {
        // SAFETY: a slice can be read.
        unsafe { [crc32c(start, data.as_ptr(), data.len()), !by_table(!start, data.as_ptr(), data.len())] }
    }

    #[test]
    fn checks_of_the_standard() {
        assert_eq!(both(0, b""), [0; 2]);
        assert_eq!(both(0, b"123456789"), [0xe306_9283; 2]);
        assert_eq!(both(0, &[0; 32]), [0x8a91_36aa; 2]);
        assert_eq!(both(0, &[0xff; 32]), [0x62a8_ab43; 2]);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn every_length_by_instruction_where_vectors_are_folded() {
        if !std::arch::is_x86_feature_detected!("sse4.2") {
            return;
        }
        let data: Vec<u8> = (0..=255_u8).cycle().map(|byte| byte.wrapping_mul(37) ^ 0x5a).take(7 * BLOCK).collect();
        for length in (0..1200).chain(3 * BLOCK - 9..3 * BLOCK + 9).chain([6 * BLOCK + 5]) {
            // SAFETY: a slice can be read, and the feature is detected above.
            let by_instruction = unsafe { !super::super::crc32c::by_instruction(!7, data.as_ptr(), length) };
            assert_eq!(both(7, &data[..length]), [by_instruction; 2], "{length}");
        }
    }

    #[test]
    fn every_length_and_start_by_instruction_and_by_table() {
        let mut state = 1_u32;
        let data: Vec<u8> = (0..7 * BLOCK)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_le_bytes()[3]
            })
            .collect();
        for length in (0..40).chain(3 * BLOCK - 9..3 * BLOCK + 9).chain([6 * BLOCK, 6 * BLOCK + 5]) {
            let [found, expected] = both(length.try_into().unwrap(), &data[3..3 + length]);
            assert_eq!(found, expected, "{length}");
            let (a, b) = data[3..3 + length].split_at(length / 3);
            assert_eq!(both(both(9, a)[0], b), both(9, &data[3..3 + length]), "{length}");
        }
    }
}
