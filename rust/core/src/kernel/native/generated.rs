//! Printed by `kernel/codegen.rs` from the rules of the Python layer (`make generated`); do not edit.

use super::code::{NativeCode, NativeVisitor, native_kernels};
use crate::kernel::program::Node::{self, Apply, Constant, Leaf, Noise, Scalar, Sum, Total};
use crate::kernel::program::Wanted;
#[allow(clippy::enum_glob_use, reason = "programs name whatever ops they have")]
use crate::op::Elementwise::*;
use crate::op::meaning;
#[allow(unused_imports, reason = "no rule may have an op of some arity")]
use crate::simd::{Binary, Lane, Ternary, Unary};

native_kernels! {
    0x97b4aa32a94fdb0b Sgd: Sgd 2 2 1 0;
    0xb893a795bf265cfd Momentum: Momentum 3 4 2 0;
    0x244b097eba919652 Nesterov: Nesterov 3 4 2 0;
    0x949ef3cf07d8e63b Asgd: Asgd 3 5 2 0;
    0xc1da47587729da23 OptimisticSgd: OptimisticSgd 3 5 2 0;
    0xbf393451da55fd74 Rprop: Rprop 4 5 3 0;
    0x1bfca050dc491d6b Signum: Signum 3 3 2 0;
    0x6178adfefc52b014 Lion: Lion 3 6 2 0;
    0x95e6f12ce8d152f3 Lars: LarsPhase0 2 3 0 2, LarsPhase1 3 3 2 0;
    0x840f26ef2ff5bd98 Adagrad: Adagrad 3 2 2 0;
    0x39463f248e01f380 Adadelta: Adadelta 4 4 3 0;
    0x8e22ade84d792982 RmsProp: RmsProp 3 4 2 0;
    0x3551dfee3526ac1c RmsPropMomentum: RmsPropMomentum 4 5 3 0;
    0x1656552d6ee8dc04 RmsPropCentered: RmsPropCentered 4 5 3 0;
    0xfc9cb1d6430bd3c7 Ftrl: Ftrl 4 6 3 0;
    0x4189d28f24ff0e68 Madgrad: Madgrad 5 5 3 0;
    0x94a9612612a0d637 Adam: Adam 4 7 3 0;
    0x51d65fa2f8f50115 AdamAmsgrad: AdamAmsgrad 5 7 4 0;
    0x32483a7cf541e693 AdamW: AdamW 4 8 3 0;
    0x1bac16033a5fd14f AdamWAmsgrad: AdamWAmsgrad 5 8 4 0;
    0xfe6c67e440606644 AdamWMaster: AdamWMaster 4 8 4 0;
    0x5c706370ffd075ae AdamWKahan: AdamWKahan 5 8 4 0;
    0x23723596d0ef93e3 AdamWAverage: AdamWAverage 5 10 4 0;
    0x5dfd89d2cd79f946 ClippedAdamW: ClippedAdamWPhase0 1 9 0 1, ClippedAdamWPhase1 4 9 3 0;
    0x0e13546c32d73baf ClippedAdamWAverage: ClippedAdamWAveragePhase0 1 11 0 1, ClippedAdamWAveragePhase1 5 11 4 0;
    0xadfd86b0a5a2914f ClippedAdamWTail: ClippedAdamWTailPhase0 1 13 0 2, ClippedAdamWTailPhase1 5 13 6 0;
    0x91ef4e9e7f81a909 AdamLrd: AdamLrd 5 10 3 0;
    0x234554a3650a1ba8 Adamax: Adamax 4 5 3 0;
    0xff21bf7f79d35c8e NAdam: NAdam 4 9 3 0;
    0x348844d044ab285f RAdam: RAdam 4 10 3 0;
    0xa0683e46a7493279 OptimisticAdam: OptimisticAdam 5 13 4 0;
    0xf559ce0107850e5c AdaBelief: AdaBelief 4 8 3 0;
    0xf74fa7cf87cff128 AdEmaMix: AdEmaMix 5 12 4 0;
    0xd77f885117f7a6e6 Adopt: Adopt 4 9 3 0;
    0x6a9af6c1f5852ef2 Adan: Adan 6 15 5 0;
    0x461627a54a565e50 Yogi: Yogi 4 6 3 0;
    0xde9e00515e3fe870 Lamb: LambPhase0 4 9 0 2, LambPhase1 4 9 3 0;
    0xe7052d3317d021f9 NovoGrad: NovoGradPhase0 1 4 0 1, NovoGradPhase1 3 4 2 0;
    0x40833fcdd3dabd01 Sophia: Sophia 4 12 3 0;
    0x019a3875985f5a34 Prodigy: ProdigyPhase0 4 9 0 2, ProdigyPhase1 5 9 4 0;
    0x1fa04f4f1cb31bc2 ScheduleFreeSgd: ScheduleFreeSgd 3 5 2 0;
    0xa4f66febaa39cfdc ScheduleFreeAdamW: ScheduleFreeAdamW 4 9 3 0;
}

/// The programs that have native code, under a name: leaves are the gradient, the parameter and the slots, scalars the
/// step, the hyperparameters and the slots of one number; outputs and results are what is written.
pub const PROGRAMS: &[(&str, &[Node], Wanted)] = &[
    ("Sgd", &[Leaf(1), Scalar(1), Leaf(0), Scalar(3), Apply(Multiply, [3, 0, 0]), Apply(Add, [2, 4, 0]), Apply(Multiply, [1, 5, 0]), Apply(Subtract, [0, 6, 0])], Wanted { outputs: &[7], results: &[], guard: None }),
    ("Momentum", &[Leaf(1), Scalar(1), Scalar(2), Leaf(2), Apply(Multiply, [2, 3, 0]), Scalar(0), Constant(1.0), Apply(Equal, [5, 6, 0]), Scalar(4), Apply(Subtract, [6, 8, 0]), Apply(Where, [7, 6, 9]), Leaf(0), Scalar(3), Apply(Multiply, [12, 0, 0]), Apply(Add, [11, 13, 0]), Apply(Multiply, [10, 14, 0]), Apply(Add, [4, 15, 0]), Apply(Multiply, [1, 16, 0]), Apply(Subtract, [0, 17, 0])], Wanted { outputs: &[18, 16], results: &[], guard: None }),
    ("Nesterov", &[Leaf(1), Scalar(1), Leaf(0), Scalar(3), Apply(Multiply, [3, 0, 0]), Apply(Add, [2, 4, 0]), Scalar(2), Leaf(2), Apply(Multiply, [6, 7, 0]), Scalar(0), Constant(1.0), Apply(Equal, [9, 10, 0]), Scalar(4), Apply(Subtract, [10, 12, 0]), Apply(Where, [11, 10, 13]), Apply(Multiply, [14, 5, 0]), Apply(Add, [8, 15, 0]), Apply(Multiply, [6, 16, 0]), Apply(Add, [5, 17, 0]), Apply(Multiply, [1, 18, 0]), Apply(Subtract, [0, 19, 0])], Wanted { outputs: &[20, 16], results: &[], guard: None }),
    ("Asgd", &[Constant(1.0), Scalar(4), Scalar(1), Apply(Multiply, [1, 2, 0]), Scalar(0), Apply(Subtract, [4, 0, 0]), Apply(Multiply, [3, 5, 0]), Apply(Add, [0, 6, 0]), Scalar(5), Apply(Pow, [7, 8, 0]), Apply(Divide, [2, 9, 0]), Apply(Multiply, [1, 10, 0]), Apply(Subtract, [0, 11, 0]), Leaf(1), Apply(Multiply, [12, 13, 0]), Leaf(0), Scalar(2), Apply(Multiply, [16, 13, 0]), Apply(Add, [15, 17, 0]), Apply(Multiply, [10, 18, 0]), Apply(Subtract, [14, 19, 0]), Scalar(3), Apply(Subtract, [4, 21, 0]), Apply(Add, [22, 0, 0]), Apply(Greater, [23, 0, 0]), Leaf(2), Apply(Subtract, [20, 25, 0]), Apply(Maximum, [0, 23, 0]), Apply(Divide, [26, 27, 0]), Apply(Add, [25, 28, 0]), Apply(Where, [24, 29, 20])], Wanted { outputs: &[20, 30], results: &[2], guard: None }),
    ("OptimisticSgd", &[Leaf(1), Scalar(1), Scalar(2), Leaf(0), Apply(Multiply, [2, 3, 0]), Scalar(3), Scalar(0), Constant(1.0), Apply(Equal, [6, 7, 0]), Constant(0.0), Leaf(2), Apply(Subtract, [3, 10, 0]), Apply(Where, [8, 9, 11]), Apply(Multiply, [5, 12, 0]), Apply(Add, [4, 13, 0]), Apply(Multiply, [1, 14, 0]), Apply(Subtract, [0, 15, 0])], Wanted { outputs: &[16, 3], results: &[], guard: None }),
    ("Rprop", &[Leaf(1), Leaf(0), Leaf(2), Apply(Multiply, [1, 2, 0]), Constant(0.0), Apply(Less, [3, 4, 0]), Apply(Greater, [3, 4, 0]), Leaf(3), Scalar(3), Apply(Multiply, [7, 8, 0]), Scalar(2), Apply(Multiply, [7, 10, 0]), Apply(Where, [5, 11, 7]), Apply(Where, [6, 9, 12]), Scalar(4), Apply(Maximum, [13, 14, 0]), Scalar(5), Apply(Minimum, [15, 16, 0]), Apply(Sign, [1, 0, 0]), Apply(Multiply, [17, 18, 0]), Apply(Where, [5, 4, 19]), Apply(Subtract, [0, 20, 0])], Wanted { outputs: &[21, 20, 17], results: &[], guard: None }),
    ("Signum", &[Leaf(1), Scalar(1), Scalar(2), Leaf(2), Apply(Multiply, [2, 3, 0]), Constant(1.0), Apply(Subtract, [5, 2, 0]), Leaf(0), Apply(Multiply, [6, 7, 0]), Apply(Add, [4, 8, 0]), Apply(Sign, [9, 0, 0]), Apply(Multiply, [1, 10, 0]), Apply(Subtract, [0, 11, 0])], Wanted { outputs: &[12, 9], results: &[], guard: None }),
    ("Lion", &[Leaf(1), Scalar(1), Scalar(2), Leaf(2), Apply(Multiply, [2, 3, 0]), Constant(1.0), Apply(Subtract, [5, 2, 0]), Leaf(0), Apply(Multiply, [6, 7, 0]), Apply(Add, [4, 8, 0]), Apply(Sign, [9, 0, 0]), Scalar(4), Apply(Multiply, [11, 0, 0]), Apply(Add, [10, 12, 0]), Apply(Multiply, [1, 13, 0]), Apply(Subtract, [0, 14, 0]), Scalar(3), Apply(Multiply, [16, 3, 0]), Apply(Subtract, [5, 16, 0]), Apply(Multiply, [18, 7, 0]), Apply(Add, [17, 19, 0])], Wanted { outputs: &[15, 20], results: &[], guard: None }),
    ("Lars", &[Leaf(1), Scalar(2), Leaf(2), Apply(Multiply, [1, 2, 0]), Scalar(1), Apply(Multiply, [0, 0, 0]), Sum(5), Apply(Sqrt, [6, 0, 0]), Leaf(0), Scalar(3), Apply(Multiply, [9, 0, 0]), Apply(Add, [8, 10, 0]), Apply(Multiply, [11, 11, 0]), Sum(12), Apply(Sqrt, [13, 0, 0]), Apply(Minimum, [7, 14, 0]), Constant(0.0), Apply(Greater, [15, 16, 0]), Scalar(4), Apply(Multiply, [18, 7, 0]), Apply(Greater, [14, 16, 0]), Constant(1.0), Apply(Where, [20, 14, 21]), Scalar(5), Apply(Add, [22, 23, 0]), Apply(Divide, [19, 24, 0]), Apply(Where, [17, 25, 21]), Apply(Multiply, [4, 26, 0]), Apply(Multiply, [27, 11, 0]), Apply(Add, [3, 28, 0]), Apply(Subtract, [0, 29, 0])], Wanted { outputs: &[30, 29], results: &[], guard: None }),
    ("Adagrad", &[Leaf(1), Scalar(1), Constant(1.0), Scalar(2), Scalar(0), Apply(Subtract, [4, 2, 0]), Apply(Multiply, [3, 5, 0]), Apply(Add, [2, 6, 0]), Apply(Divide, [1, 7, 0]), Leaf(0), Apply(Multiply, [8, 9, 0]), Leaf(2), Apply(Multiply, [9, 9, 0]), Apply(Add, [11, 12, 0]), Apply(Sqrt, [13, 0, 0]), Scalar(4), Apply(Add, [14, 15, 0]), Apply(Divide, [10, 16, 0]), Apply(Subtract, [0, 17, 0])], Wanted { outputs: &[18, 13], results: &[], guard: None }),
    ("Adadelta", &[Leaf(1), Scalar(1), Leaf(3), Scalar(3), Apply(Add, [2, 3, 0]), Apply(Sqrt, [4, 0, 0]), Scalar(2), Leaf(2), Apply(Multiply, [6, 7, 0]), Constant(1.0), Apply(Subtract, [9, 6, 0]), Leaf(0), Apply(Multiply, [10, 11, 0]), Apply(Multiply, [12, 11, 0]), Apply(Add, [8, 13, 0]), Apply(Add, [14, 3, 0]), Apply(Sqrt, [15, 0, 0]), Apply(Divide, [5, 16, 0]), Apply(Multiply, [17, 11, 0]), Apply(Multiply, [1, 18, 0]), Apply(Subtract, [0, 19, 0]), Apply(Multiply, [6, 2, 0]), Apply(Multiply, [10, 18, 0]), Apply(Multiply, [22, 18, 0]), Apply(Add, [21, 23, 0])], Wanted { outputs: &[20, 14, 24], results: &[], guard: None }),
    ("RmsProp", &[Leaf(1), Scalar(1), Leaf(0), Scalar(2), Leaf(2), Apply(Multiply, [3, 4, 0]), Constant(1.0), Apply(Subtract, [6, 3, 0]), Apply(Multiply, [7, 2, 0]), Apply(Multiply, [8, 2, 0]), Apply(Add, [5, 9, 0]), Apply(Sqrt, [10, 0, 0]), Scalar(3), Apply(Add, [11, 12, 0]), Apply(Divide, [2, 13, 0]), Apply(Multiply, [1, 14, 0]), Apply(Subtract, [0, 15, 0])], Wanted { outputs: &[16, 10], results: &[], guard: None }),
    ("RmsPropMomentum", &[Leaf(1), Scalar(1), Scalar(4), Leaf(3), Apply(Multiply, [2, 3, 0]), Leaf(0), Scalar(2), Leaf(2), Apply(Multiply, [6, 7, 0]), Constant(1.0), Apply(Subtract, [9, 6, 0]), Apply(Multiply, [10, 5, 0]), Apply(Multiply, [11, 5, 0]), Apply(Add, [8, 12, 0]), Apply(Sqrt, [13, 0, 0]), Scalar(3), Apply(Add, [14, 15, 0]), Apply(Divide, [5, 16, 0]), Apply(Add, [4, 17, 0]), Apply(Multiply, [1, 18, 0]), Apply(Subtract, [0, 19, 0])], Wanted { outputs: &[20, 13, 18], results: &[], guard: None }),
    ("RmsPropCentered", &[Leaf(1), Scalar(1), Leaf(0), Scalar(2), Leaf(2), Apply(Multiply, [3, 4, 0]), Constant(1.0), Apply(Subtract, [6, 3, 0]), Apply(Multiply, [7, 2, 0]), Apply(Multiply, [8, 2, 0]), Apply(Add, [5, 9, 0]), Leaf(3), Apply(Multiply, [3, 11, 0]), Apply(Add, [12, 8, 0]), Apply(Multiply, [13, 13, 0]), Apply(Subtract, [10, 14, 0]), Constant(0.0), Apply(Maximum, [15, 16, 0]), Apply(Sqrt, [17, 0, 0]), Scalar(3), Apply(Add, [18, 19, 0]), Apply(Divide, [2, 20, 0]), Apply(Multiply, [1, 21, 0]), Apply(Subtract, [0, 22, 0])], Wanted { outputs: &[23, 10, 13], results: &[], guard: None }),
    ("Ftrl", &[Leaf(2), Leaf(0), Apply(Add, [0, 1, 0]), Constant(2.0), Scalar(6), Apply(Multiply, [3, 4, 0]), Leaf(1), Apply(Multiply, [5, 6, 0]), Apply(Add, [2, 7, 0]), Leaf(3), Apply(Multiply, [1, 1, 0]), Apply(Add, [9, 10, 0]), Scalar(2), Apply(Negative, [12, 0, 0]), Apply(Pow, [11, 13, 0]), Apply(Pow, [9, 13, 0]), Apply(Subtract, [14, 15, 0]), Scalar(1), Apply(Divide, [16, 17, 0]), Apply(Multiply, [18, 6, 0]), Apply(Subtract, [8, 19, 0]), Scalar(4), Apply(Negative, [21, 0, 0]), Apply(Maximum, [20, 22, 0]), Apply(Minimum, [23, 21, 0]), Apply(Subtract, [24, 20, 0]), Apply(Divide, [14, 17, 0]), Scalar(5), Scalar(7), Apply(Multiply, [3, 17, 0]), Apply(Divide, [28, 29, 0]), Apply(Add, [27, 30, 0]), Apply(Multiply, [3, 31, 0]), Apply(Add, [26, 32, 0]), Apply(Divide, [25, 33, 0])], Wanted { outputs: &[34, 20, 11], results: &[], guard: None }),
    ("Madgrad", &[Scalar(2), Leaf(1), Apply(Multiply, [0, 1, 0]), Constant(1.0), Apply(Subtract, [3, 0, 0]), Leaf(4), Leaf(3), Scalar(1), Scalar(3), Apply(Add, [7, 8, 0]), Scalar(0), Apply(Sqrt, [10, 0, 0]), Apply(Multiply, [9, 11, 0]), Leaf(0), Apply(Multiply, [12, 13, 0]), Apply(Add, [6, 14, 0]), Leaf(2), Apply(Multiply, [14, 13, 0]), Apply(Add, [16, 17, 0]), Constant(0.3333333333333333), Apply(Pow, [18, 19, 0]), Apply(Add, [20, 8, 0]), Apply(Divide, [15, 21, 0]), Apply(Subtract, [5, 22, 0]), Apply(Multiply, [4, 23, 0]), Apply(Add, [2, 24, 0])], Wanted { outputs: &[25, 18, 15], results: &[], guard: None }),
    ("Adam", &[Leaf(1), Scalar(1), Constant(1.0), Scalar(2), Scalar(0), Apply(Pow, [3, 4, 0]), Apply(Subtract, [2, 5, 0]), Apply(Divide, [1, 6, 0]), Leaf(2), Apply(Multiply, [3, 8, 0]), Apply(Subtract, [2, 3, 0]), Leaf(0), Apply(Multiply, [10, 11, 0]), Apply(Add, [9, 12, 0]), Apply(Multiply, [7, 13, 0]), Scalar(3), Leaf(3), Apply(Multiply, [15, 16, 0]), Apply(Subtract, [2, 15, 0]), Apply(Multiply, [18, 11, 0]), Apply(Multiply, [19, 11, 0]), Apply(Add, [17, 20, 0]), Apply(Sqrt, [21, 0, 0]), Apply(Pow, [15, 4, 0]), Apply(Subtract, [2, 23, 0]), Apply(Sqrt, [24, 0, 0]), Apply(Divide, [2, 25, 0]), Apply(Multiply, [22, 26, 0]), Scalar(4), Apply(Add, [27, 28, 0]), Apply(Divide, [14, 29, 0]), Apply(Subtract, [0, 30, 0])], Wanted { outputs: &[31, 13, 21], results: &[], guard: None }),
    ("AdamAmsgrad", &[Leaf(1), Scalar(1), Constant(1.0), Scalar(2), Scalar(0), Apply(Pow, [3, 4, 0]), Apply(Subtract, [2, 5, 0]), Apply(Divide, [1, 6, 0]), Leaf(2), Apply(Multiply, [3, 8, 0]), Apply(Subtract, [2, 3, 0]), Leaf(0), Apply(Multiply, [10, 11, 0]), Apply(Add, [9, 12, 0]), Apply(Multiply, [7, 13, 0]), Leaf(4), Scalar(3), Leaf(3), Apply(Multiply, [16, 17, 0]), Apply(Subtract, [2, 16, 0]), Apply(Multiply, [19, 11, 0]), Apply(Multiply, [20, 11, 0]), Apply(Add, [18, 21, 0]), Apply(Maximum, [15, 22, 0]), Apply(Sqrt, [23, 0, 0]), Apply(Pow, [16, 4, 0]), Apply(Subtract, [2, 25, 0]), Apply(Sqrt, [26, 0, 0]), Apply(Divide, [2, 27, 0]), Apply(Multiply, [24, 28, 0]), Scalar(4), Apply(Add, [29, 30, 0]), Apply(Divide, [14, 31, 0]), Apply(Subtract, [0, 32, 0])], Wanted { outputs: &[33, 13, 22, 23], results: &[], guard: None }),
    ("AdamW", &[Constant(1.0), Scalar(1), Scalar(5), Apply(Multiply, [1, 2, 0]), Apply(Subtract, [0, 3, 0]), Leaf(1), Apply(Multiply, [4, 5, 0]), Scalar(2), Scalar(0), Apply(Pow, [7, 8, 0]), Apply(Subtract, [0, 9, 0]), Apply(Divide, [1, 10, 0]), Leaf(2), Apply(Multiply, [7, 12, 0]), Apply(Subtract, [0, 7, 0]), Leaf(0), Apply(Multiply, [14, 15, 0]), Apply(Add, [13, 16, 0]), Apply(Multiply, [11, 17, 0]), Scalar(3), Leaf(3), Apply(Multiply, [19, 20, 0]), Apply(Subtract, [0, 19, 0]), Apply(Multiply, [22, 15, 0]), Apply(Multiply, [23, 15, 0]), Apply(Add, [21, 24, 0]), Apply(Sqrt, [25, 0, 0]), Apply(Pow, [19, 8, 0]), Apply(Subtract, [0, 27, 0]), Apply(Sqrt, [28, 0, 0]), Apply(Divide, [0, 29, 0]), Apply(Multiply, [26, 30, 0]), Scalar(4), Apply(Add, [31, 32, 0]), Apply(Divide, [18, 33, 0]), Apply(Subtract, [6, 34, 0])], Wanted { outputs: &[35, 17, 25], results: &[], guard: None }),
    ("AdamWAmsgrad", &[Constant(1.0), Scalar(1), Scalar(5), Apply(Multiply, [1, 2, 0]), Apply(Subtract, [0, 3, 0]), Leaf(1), Apply(Multiply, [4, 5, 0]), Scalar(2), Scalar(0), Apply(Pow, [7, 8, 0]), Apply(Subtract, [0, 9, 0]), Apply(Divide, [1, 10, 0]), Leaf(2), Apply(Multiply, [7, 12, 0]), Apply(Subtract, [0, 7, 0]), Leaf(0), Apply(Multiply, [14, 15, 0]), Apply(Add, [13, 16, 0]), Apply(Multiply, [11, 17, 0]), Leaf(4), Scalar(3), Leaf(3), Apply(Multiply, [20, 21, 0]), Apply(Subtract, [0, 20, 0]), Apply(Multiply, [23, 15, 0]), Apply(Multiply, [24, 15, 0]), Apply(Add, [22, 25, 0]), Apply(Maximum, [19, 26, 0]), Apply(Sqrt, [27, 0, 0]), Apply(Pow, [20, 8, 0]), Apply(Subtract, [0, 29, 0]), Apply(Sqrt, [30, 0, 0]), Apply(Divide, [0, 31, 0]), Apply(Multiply, [28, 32, 0]), Scalar(4), Apply(Add, [33, 34, 0]), Apply(Divide, [18, 35, 0]), Apply(Subtract, [6, 36, 0])], Wanted { outputs: &[37, 17, 26, 27], results: &[], guard: None }),
    ("AdamWMaster", &[Constant(1.0), Scalar(1), Scalar(5), Apply(Multiply, [1, 2, 0]), Apply(Subtract, [0, 3, 0]), Leaf(4), Apply(Multiply, [4, 5, 0]), Scalar(2), Scalar(0), Apply(Pow, [7, 8, 0]), Apply(Subtract, [0, 9, 0]), Apply(Divide, [1, 10, 0]), Leaf(2), Apply(Multiply, [7, 12, 0]), Apply(Subtract, [0, 7, 0]), Leaf(0), Apply(Multiply, [14, 15, 0]), Apply(Add, [13, 16, 0]), Apply(Multiply, [11, 17, 0]), Scalar(3), Leaf(3), Apply(Multiply, [19, 20, 0]), Apply(Subtract, [0, 19, 0]), Apply(Multiply, [22, 15, 0]), Apply(Multiply, [23, 15, 0]), Apply(Add, [21, 24, 0]), Apply(Sqrt, [25, 0, 0]), Apply(Pow, [19, 8, 0]), Apply(Subtract, [0, 27, 0]), Apply(Sqrt, [28, 0, 0]), Apply(Divide, [0, 29, 0]), Apply(Multiply, [26, 30, 0]), Scalar(4), Apply(Add, [31, 32, 0]), Apply(Divide, [18, 33, 0]), Apply(Subtract, [6, 34, 0])], Wanted { outputs: &[35, 17, 25, 35], results: &[], guard: None }),
    ("AdamWKahan", &[Constant(1.0), Scalar(1), Scalar(5), Apply(Multiply, [1, 2, 0]), Apply(Subtract, [0, 3, 0]), Leaf(1), Leaf(4), Apply(Add, [5, 6, 0]), Apply(Multiply, [4, 7, 0]), Scalar(2), Scalar(0), Apply(Pow, [9, 10, 0]), Apply(Subtract, [0, 11, 0]), Apply(Divide, [1, 12, 0]), Leaf(2), Apply(Multiply, [9, 14, 0]), Apply(Subtract, [0, 9, 0]), Leaf(0), Apply(Multiply, [16, 17, 0]), Apply(Add, [15, 18, 0]), Apply(Multiply, [13, 19, 0]), Scalar(3), Leaf(3), Apply(Multiply, [21, 22, 0]), Apply(Subtract, [0, 21, 0]), Apply(Multiply, [24, 17, 0]), Apply(Multiply, [25, 17, 0]), Apply(Add, [23, 26, 0]), Apply(Sqrt, [27, 0, 0]), Apply(Pow, [21, 10, 0]), Apply(Subtract, [0, 29, 0]), Apply(Sqrt, [30, 0, 0]), Apply(Divide, [0, 31, 0]), Apply(Multiply, [28, 32, 0]), Scalar(4), Apply(Add, [33, 34, 0]), Apply(Divide, [20, 35, 0]), Apply(Subtract, [8, 36, 0]), Apply(RoundToBfloat16, [37, 0, 0]), Apply(Subtract, [37, 38, 0])], Wanted { outputs: &[38, 19, 27, 39], results: &[], guard: None }),
    ("AdamWAverage", &[Constant(1.0), Scalar(1), Scalar(5), Apply(Multiply, [1, 2, 0]), Apply(Subtract, [0, 3, 0]), Leaf(1), Apply(Multiply, [4, 5, 0]), Scalar(2), Scalar(0), Apply(Pow, [7, 8, 0]), Apply(Subtract, [0, 9, 0]), Apply(Divide, [1, 10, 0]), Leaf(2), Apply(Multiply, [7, 12, 0]), Apply(Subtract, [0, 7, 0]), Leaf(0), Apply(Multiply, [14, 15, 0]), Apply(Add, [13, 16, 0]), Apply(Multiply, [11, 17, 0]), Scalar(3), Leaf(3), Apply(Multiply, [19, 20, 0]), Apply(Subtract, [0, 19, 0]), Apply(Multiply, [22, 15, 0]), Apply(Multiply, [23, 15, 0]), Apply(Add, [21, 24, 0]), Apply(Sqrt, [25, 0, 0]), Apply(Pow, [19, 8, 0]), Apply(Subtract, [0, 27, 0]), Apply(Sqrt, [28, 0, 0]), Apply(Divide, [0, 29, 0]), Apply(Multiply, [26, 30, 0]), Scalar(4), Apply(Add, [31, 32, 0]), Apply(Divide, [18, 33, 0]), Apply(Subtract, [6, 34, 0]), Scalar(6), Leaf(4), Apply(Multiply, [36, 37, 0]), Apply(Subtract, [0, 36, 0]), Apply(Multiply, [39, 35, 0]), Apply(Add, [38, 40, 0])], Wanted { outputs: &[35, 17, 25, 41], results: &[], guard: None }),
    ("ClippedAdamW", &[Constant(1.0), Scalar(2), Scalar(6), Apply(Multiply, [1, 2, 0]), Apply(Subtract, [0, 3, 0]), Leaf(1), Apply(Multiply, [4, 5, 0]), Scalar(3), Scalar(0), Apply(Pow, [7, 8, 0]), Apply(Subtract, [0, 9, 0]), Apply(Divide, [1, 10, 0]), Leaf(2), Apply(Multiply, [7, 12, 0]), Apply(Subtract, [0, 7, 0]), Leaf(0), Apply(Multiply, [15, 15, 0]), Sum(16), Total(17, 0), Apply(Sqrt, [18, 0, 0]), Scalar(1), Apply(Greater, [19, 20, 0]), Apply(Divide, [20, 19, 0]), Apply(Where, [21, 22, 0]), Apply(Multiply, [15, 23, 0]), Apply(Multiply, [14, 24, 0]), Apply(Add, [13, 25, 0]), Apply(Multiply, [11, 26, 0]), Scalar(4), Leaf(3), Apply(Multiply, [28, 29, 0]), Apply(Subtract, [0, 28, 0]), Apply(Multiply, [31, 24, 0]), Apply(Multiply, [32, 24, 0]), Apply(Add, [30, 33, 0]), Apply(Sqrt, [34, 0, 0]), Apply(Pow, [28, 8, 0]), Apply(Subtract, [0, 36, 0]), Apply(Sqrt, [37, 0, 0]), Apply(Divide, [0, 38, 0]), Apply(Multiply, [35, 39, 0]), Scalar(5), Apply(Add, [40, 41, 0]), Apply(Divide, [27, 42, 0]), Apply(Subtract, [6, 43, 0])], Wanted { outputs: &[44, 26, 34], results: &[], guard: None }),
    ("ClippedAdamWAverage", &[Constant(1.0), Scalar(2), Scalar(6), Apply(Multiply, [1, 2, 0]), Apply(Subtract, [0, 3, 0]), Leaf(1), Apply(Multiply, [4, 5, 0]), Scalar(3), Scalar(0), Apply(Pow, [7, 8, 0]), Apply(Subtract, [0, 9, 0]), Apply(Divide, [1, 10, 0]), Leaf(2), Apply(Multiply, [7, 12, 0]), Apply(Subtract, [0, 7, 0]), Leaf(0), Apply(Multiply, [15, 15, 0]), Sum(16), Total(17, 0), Apply(Sqrt, [18, 0, 0]), Scalar(1), Apply(Greater, [19, 20, 0]), Apply(Divide, [20, 19, 0]), Apply(Where, [21, 22, 0]), Apply(Multiply, [15, 23, 0]), Apply(Multiply, [14, 24, 0]), Apply(Add, [13, 25, 0]), Apply(Multiply, [11, 26, 0]), Scalar(4), Leaf(3), Apply(Multiply, [28, 29, 0]), Apply(Subtract, [0, 28, 0]), Apply(Multiply, [31, 24, 0]), Apply(Multiply, [32, 24, 0]), Apply(Add, [30, 33, 0]), Apply(Sqrt, [34, 0, 0]), Apply(Pow, [28, 8, 0]), Apply(Subtract, [0, 36, 0]), Apply(Sqrt, [37, 0, 0]), Apply(Divide, [0, 38, 0]), Apply(Multiply, [35, 39, 0]), Scalar(5), Apply(Add, [40, 41, 0]), Apply(Divide, [27, 42, 0]), Apply(Subtract, [6, 43, 0]), Scalar(7), Leaf(4), Apply(Multiply, [45, 46, 0]), Apply(Subtract, [0, 45, 0]), Apply(Multiply, [48, 44, 0]), Apply(Add, [47, 49, 0])], Wanted { outputs: &[44, 26, 34, 50], results: &[], guard: None }),
    ("ClippedAdamWTail", &[Constant(0.0), Constant(1.0), Scalar(3), Scalar(7), Apply(Multiply, [2, 3, 0]), Apply(Subtract, [1, 4, 0]), Leaf(1), Apply(Multiply, [5, 6, 0]), Scalar(4), Scalar(0), Apply(Pow, [8, 9, 0]), Apply(Subtract, [1, 10, 0]), Apply(Divide, [2, 11, 0]), Leaf(2), Apply(Multiply, [8, 13, 0]), Apply(Subtract, [1, 8, 0]), Leaf(0), Scalar(1), Apply(Multiply, [16, 17, 0]), Apply(Multiply, [18, 18, 0]), Sum(19), Total(20, 1), Apply(Sqrt, [21, 0, 0]), Scalar(2), Apply(Greater, [22, 23, 0]), Apply(Divide, [23, 22, 0]), Apply(Where, [24, 25, 1]), Apply(Multiply, [18, 26, 0]), Apply(Multiply, [15, 27, 0]), Apply(Add, [14, 28, 0]), Apply(Multiply, [12, 29, 0]), Scalar(5), Leaf(3), Apply(Multiply, [31, 32, 0]), Apply(Subtract, [1, 31, 0]), Apply(Multiply, [34, 27, 0]), Apply(Multiply, [35, 27, 0]), Apply(Add, [33, 36, 0]), Apply(Sqrt, [37, 0, 0]), Apply(Pow, [31, 9, 0]), Apply(Subtract, [1, 39, 0]), Apply(Sqrt, [40, 0, 0]), Apply(Divide, [1, 41, 0]), Apply(Multiply, [38, 42, 0]), Scalar(6), Apply(Add, [43, 44, 0]), Apply(Divide, [30, 45, 0]), Apply(Subtract, [7, 46, 0]), Scalar(8), Leaf(4), Apply(Multiply, [48, 49, 0]), Apply(Subtract, [1, 48, 0]), Apply(Multiply, [51, 47, 0]), Apply(Add, [50, 52, 0]), Apply(Subtract, [18, 18, 0]), Sum(54), Total(55, 0), Apply(Equal, [56, 0, 0])], Wanted { outputs: &[0, 47, 29, 37, 53, 47], results: &[], guard: Some(57) }),
    ("AdamLrd", &[Leaf(1), Noise(0), Scalar(5), Apply(Less, [1, 2, 0]), Constant(0.0), Constant(1.0), Apply(Where, [3, 4, 5]), Scalar(1), Scalar(2), Scalar(0), Apply(Pow, [8, 9, 0]), Apply(Subtract, [5, 10, 0]), Apply(Divide, [7, 11, 0]), Leaf(2), Apply(Multiply, [8, 13, 0]), Apply(Subtract, [5, 8, 0]), Leaf(0), Apply(Multiply, [15, 16, 0]), Apply(Add, [14, 17, 0]), Apply(Multiply, [12, 18, 0]), Scalar(3), Leaf(3), Apply(Multiply, [20, 21, 0]), Apply(Subtract, [5, 20, 0]), Apply(Multiply, [23, 16, 0]), Apply(Multiply, [24, 16, 0]), Apply(Add, [22, 25, 0]), Apply(Sqrt, [26, 0, 0]), Apply(Pow, [20, 9, 0]), Apply(Subtract, [5, 28, 0]), Apply(Sqrt, [29, 0, 0]), Apply(Divide, [5, 30, 0]), Apply(Multiply, [27, 31, 0]), Scalar(4), Apply(Add, [32, 33, 0]), Apply(Divide, [19, 34, 0]), Apply(Multiply, [6, 35, 0]), Apply(Subtract, [0, 36, 0])], Wanted { outputs: &[37, 18, 26], results: &[], guard: None }),
    ("Adamax", &[Leaf(1), Scalar(1), Constant(1.0), Scalar(2), Scalar(0), Apply(Pow, [3, 4, 0]), Apply(Subtract, [2, 5, 0]), Apply(Divide, [1, 6, 0]), Leaf(2), Apply(Multiply, [3, 8, 0]), Apply(Subtract, [2, 3, 0]), Leaf(0), Apply(Multiply, [10, 11, 0]), Apply(Add, [9, 12, 0]), Apply(Multiply, [7, 13, 0]), Scalar(3), Leaf(3), Apply(Multiply, [15, 16, 0]), Apply(Abs, [11, 0, 0]), Scalar(4), Apply(Add, [18, 19, 0]), Apply(Maximum, [17, 20, 0]), Apply(Divide, [14, 21, 0]), Apply(Subtract, [0, 22, 0])], Wanted { outputs: &[23, 13, 21], results: &[], guard: None }),
    ("NAdam", &[Leaf(1), Scalar(1), Constant(1.0), Scalar(2), Constant(0.5), Constant(0.96), Scalar(0), Scalar(5), Apply(Multiply, [6, 7, 0]), Apply(Pow, [5, 8, 0]), Apply(Multiply, [4, 9, 0]), Apply(Subtract, [2, 10, 0]), Apply(Multiply, [3, 11, 0]), Apply(Subtract, [2, 12, 0]), Scalar(6), Apply(Multiply, [14, 12, 0]), Apply(Subtract, [2, 15, 0]), Apply(Divide, [13, 16, 0]), Leaf(0), Apply(Multiply, [17, 18, 0]), Apply(Add, [6, 2, 0]), Apply(Multiply, [20, 7, 0]), Apply(Pow, [5, 21, 0]), Apply(Multiply, [4, 22, 0]), Apply(Subtract, [2, 23, 0]), Apply(Multiply, [3, 24, 0]), Apply(Multiply, [15, 25, 0]), Apply(Subtract, [2, 26, 0]), Apply(Divide, [25, 27, 0]), Leaf(2), Apply(Multiply, [3, 29, 0]), Apply(Subtract, [2, 3, 0]), Apply(Multiply, [31, 18, 0]), Apply(Add, [30, 32, 0]), Apply(Multiply, [28, 33, 0]), Apply(Add, [19, 34, 0]), Apply(Multiply, [1, 35, 0]), Scalar(3), Leaf(3), Apply(Multiply, [37, 38, 0]), Apply(Subtract, [2, 37, 0]), Apply(Multiply, [40, 18, 0]), Apply(Multiply, [41, 18, 0]), Apply(Add, [39, 42, 0]), Apply(Sqrt, [43, 0, 0]), Apply(Pow, [37, 6, 0]), Apply(Subtract, [2, 45, 0]), Apply(Sqrt, [46, 0, 0]), Apply(Divide, [2, 47, 0]), Apply(Multiply, [44, 48, 0]), Scalar(4), Apply(Add, [49, 50, 0]), Apply(Divide, [36, 51, 0]), Apply(Subtract, [0, 52, 0])], Wanted { outputs: &[53, 33, 43], results: &[15], guard: None }),
    ("RAdam", &[Leaf(1), Scalar(1), Constant(1.0), Scalar(2), Scalar(0), Apply(Pow, [3, 4, 0]), Apply(Subtract, [2, 5, 0]), Apply(Divide, [1, 6, 0]), Constant(2.0), Scalar(3), Apply(Subtract, [2, 9, 0]), Apply(Divide, [8, 10, 0]), Apply(Subtract, [11, 2, 0]), Apply(Multiply, [8, 4, 0]), Apply(Pow, [9, 4, 0]), Apply(Multiply, [13, 14, 0]), Apply(Subtract, [2, 14, 0]), Apply(Divide, [15, 16, 0]), Apply(Subtract, [12, 17, 0]), Scalar(5), Apply(Greater, [18, 19, 0]), Constant(4.0), Apply(Subtract, [18, 21, 0]), Apply(Subtract, [18, 8, 0]), Apply(Multiply, [22, 23, 0]), Apply(Multiply, [24, 12, 0]), Apply(Subtract, [12, 21, 0]), Apply(Subtract, [12, 8, 0]), Apply(Multiply, [26, 27, 0]), Apply(Multiply, [28, 18, 0]), Apply(Divide, [25, 29, 0]), Constant(0.0), Apply(Maximum, [30, 31, 0]), Apply(Sqrt, [32, 0, 0]), Leaf(3), Apply(Multiply, [9, 34, 0]), Leaf(0), Apply(Multiply, [10, 36, 0]), Apply(Multiply, [37, 36, 0]), Apply(Add, [35, 38, 0]), Apply(Sqrt, [39, 0, 0]), Scalar(4), Apply(Add, [40, 41, 0]), Apply(Sqrt, [16, 0, 0]), Apply(Divide, [2, 43, 0]), Apply(Multiply, [42, 44, 0]), Apply(Divide, [33, 45, 0]), Apply(Where, [20, 46, 2]), Apply(Multiply, [7, 47, 0]), Leaf(2), Apply(Multiply, [3, 49, 0]), Apply(Subtract, [2, 3, 0]), Apply(Multiply, [51, 36, 0]), Apply(Add, [50, 52, 0]), Apply(Multiply, [48, 53, 0]), Apply(Subtract, [0, 54, 0])], Wanted { outputs: &[55, 53, 39], results: &[], guard: None }),
    ("OptimisticAdam", &[Leaf(1), Scalar(1), Scalar(5), Scalar(2), Constant(1.0), Scalar(0), Apply(Add, [5, 4, 0]), Apply(Pow, [3, 6, 0]), Apply(Subtract, [4, 7, 0]), Apply(Divide, [3, 8, 0]), Leaf(2), Apply(Multiply, [3, 10, 0]), Apply(Subtract, [4, 3, 0]), Leaf(0), Apply(Multiply, [12, 13, 0]), Apply(Add, [11, 14, 0]), Apply(Multiply, [9, 15, 0]), Apply(Pow, [3, 5, 0]), Apply(Subtract, [4, 17, 0]), Apply(Divide, [12, 18, 0]), Apply(Multiply, [19, 13, 0]), Apply(Add, [16, 20, 0]), Scalar(3), Leaf(3), Apply(Multiply, [22, 23, 0]), Apply(Subtract, [4, 22, 0]), Apply(Multiply, [25, 13, 0]), Apply(Multiply, [26, 13, 0]), Apply(Add, [24, 27, 0]), Apply(Sqrt, [28, 0, 0]), Apply(Pow, [22, 5, 0]), Apply(Subtract, [4, 30, 0]), Apply(Sqrt, [31, 0, 0]), Apply(Divide, [4, 32, 0]), Apply(Multiply, [29, 33, 0]), Scalar(4), Apply(Add, [34, 35, 0]), Apply(Divide, [21, 36, 0]), Apply(Multiply, [2, 37, 0]), Scalar(6), Apply(Equal, [5, 4, 0]), Constant(0.0), Leaf(4), Apply(Subtract, [37, 42, 0]), Apply(Where, [40, 41, 43]), Apply(Multiply, [39, 44, 0]), Apply(Add, [38, 45, 0]), Apply(Multiply, [1, 46, 0]), Apply(Subtract, [0, 47, 0])], Wanted { outputs: &[48, 15, 28, 37], results: &[], guard: None }),
    ("AdaBelief", &[Leaf(1), Scalar(1), Constant(1.0), Scalar(2), Scalar(0), Apply(Pow, [3, 4, 0]), Apply(Subtract, [2, 5, 0]), Apply(Divide, [1, 6, 0]), Leaf(2), Apply(Multiply, [3, 8, 0]), Apply(Subtract, [2, 3, 0]), Leaf(0), Apply(Multiply, [10, 11, 0]), Apply(Add, [9, 12, 0]), Apply(Multiply, [7, 13, 0]), Scalar(3), Leaf(3), Apply(Multiply, [15, 16, 0]), Apply(Subtract, [2, 15, 0]), Apply(Subtract, [11, 13, 0]), Apply(Multiply, [18, 19, 0]), Apply(Multiply, [20, 19, 0]), Apply(Add, [17, 21, 0]), Scalar(5), Apply(Add, [22, 23, 0]), Apply(Sqrt, [24, 0, 0]), Apply(Pow, [15, 4, 0]), Apply(Subtract, [2, 26, 0]), Apply(Sqrt, [27, 0, 0]), Apply(Divide, [2, 28, 0]), Apply(Multiply, [25, 29, 0]), Scalar(4), Apply(Add, [30, 31, 0]), Apply(Divide, [14, 32, 0]), Apply(Subtract, [0, 33, 0])], Wanted { outputs: &[34, 13, 24], results: &[], guard: None }),
    ("AdEmaMix", &[Leaf(1), Scalar(1), Scalar(2), Leaf(2), Apply(Multiply, [2, 3, 0]), Constant(1.0), Apply(Subtract, [5, 2, 0]), Leaf(0), Apply(Multiply, [6, 7, 0]), Apply(Add, [4, 8, 0]), Scalar(0), Apply(Pow, [2, 10, 0]), Apply(Subtract, [5, 11, 0]), Apply(Divide, [9, 12, 0]), Scalar(5), Scalar(4), Leaf(3), Apply(Multiply, [15, 16, 0]), Apply(Subtract, [5, 15, 0]), Apply(Multiply, [18, 7, 0]), Apply(Add, [17, 19, 0]), Apply(Multiply, [14, 20, 0]), Apply(Add, [13, 21, 0]), Scalar(3), Leaf(4), Apply(Multiply, [23, 24, 0]), Apply(Subtract, [5, 23, 0]), Apply(Multiply, [26, 7, 0]), Apply(Multiply, [27, 7, 0]), Apply(Add, [25, 28, 0]), Apply(Sqrt, [29, 0, 0]), Apply(Pow, [23, 10, 0]), Apply(Subtract, [5, 31, 0]), Apply(Sqrt, [32, 0, 0]), Apply(Divide, [5, 33, 0]), Apply(Multiply, [30, 34, 0]), Scalar(6), Apply(Add, [35, 36, 0]), Apply(Divide, [22, 37, 0]), Scalar(7), Apply(Multiply, [39, 0, 0]), Apply(Add, [38, 40, 0]), Apply(Multiply, [1, 41, 0]), Apply(Subtract, [0, 42, 0])], Wanted { outputs: &[43, 9, 20, 29], results: &[], guard: None }),
    ("Adopt", &[Leaf(1), Scalar(1), Scalar(0), Constant(1.0), Apply(Equal, [2, 3, 0]), Leaf(2), Scalar(2), Apply(Multiply, [6, 5, 0]), Apply(Subtract, [3, 6, 0]), Leaf(0), Leaf(3), Apply(Sqrt, [10, 0, 0]), Scalar(4), Apply(Maximum, [11, 12, 0]), Apply(Divide, [9, 13, 0]), Apply(Subtract, [2, 3, 0]), Constant(0.25), Apply(Pow, [15, 16, 0]), Apply(Negative, [17, 0, 0]), Apply(Maximum, [14, 18, 0]), Apply(Minimum, [19, 17, 0]), Apply(Multiply, [8, 20, 0]), Apply(Add, [7, 21, 0]), Apply(Where, [4, 5, 22]), Apply(Multiply, [1, 23, 0]), Apply(Subtract, [0, 24, 0]), Apply(Multiply, [9, 9, 0]), Scalar(3), Apply(Multiply, [27, 10, 0]), Apply(Subtract, [3, 27, 0]), Apply(Multiply, [29, 9, 0]), Apply(Multiply, [30, 9, 0]), Apply(Add, [28, 31, 0]), Apply(Where, [4, 26, 32])], Wanted { outputs: &[25, 23, 33], results: &[], guard: None }),
    ("Adan", &[Leaf(1), Scalar(1), Scalar(2), Leaf(2), Apply(Multiply, [2, 3, 0]), Constant(1.0), Apply(Subtract, [5, 2, 0]), Leaf(0), Apply(Multiply, [6, 7, 0]), Apply(Add, [4, 8, 0]), Scalar(0), Apply(Pow, [2, 10, 0]), Apply(Subtract, [5, 11, 0]), Apply(Divide, [9, 12, 0]), Scalar(3), Apply(Pow, [14, 10, 0]), Apply(Subtract, [5, 15, 0]), Apply(Divide, [14, 16, 0]), Leaf(3), Apply(Multiply, [14, 18, 0]), Apply(Subtract, [5, 14, 0]), Apply(Equal, [10, 5, 0]), Constant(0.0), Leaf(5), Apply(Subtract, [7, 23, 0]), Apply(Where, [21, 22, 24]), Apply(Multiply, [20, 25, 0]), Apply(Add, [19, 26, 0]), Apply(Multiply, [17, 27, 0]), Apply(Add, [13, 28, 0]), Apply(Multiply, [1, 29, 0]), Scalar(4), Leaf(4), Apply(Multiply, [31, 32, 0]), Apply(Subtract, [5, 31, 0]), Apply(Multiply, [14, 25, 0]), Apply(Add, [7, 35, 0]), Apply(Multiply, [34, 36, 0]), Apply(Multiply, [37, 36, 0]), Apply(Add, [33, 38, 0]), Apply(Pow, [31, 10, 0]), Apply(Subtract, [5, 40, 0]), Apply(Divide, [39, 41, 0]), Scalar(6), Apply(Add, [42, 43, 0]), Apply(Sqrt, [44, 0, 0]), Scalar(5), Apply(Add, [45, 46, 0]), Apply(Divide, [30, 47, 0]), Apply(Subtract, [0, 48, 0]), Scalar(7), Apply(Multiply, [1, 50, 0]), Apply(Add, [5, 51, 0]), Apply(Divide, [49, 52, 0])], Wanted { outputs: &[53, 9, 27, 39, 7], results: &[], guard: None }),
    ("Yogi", &[Leaf(1), Scalar(1), Constant(1.0), Scalar(2), Scalar(0), Apply(Pow, [3, 4, 0]), Apply(Subtract, [2, 5, 0]), Apply(Divide, [1, 6, 0]), Leaf(2), Apply(Multiply, [3, 8, 0]), Apply(Subtract, [2, 3, 0]), Leaf(0), Apply(Multiply, [10, 11, 0]), Apply(Add, [9, 12, 0]), Apply(Multiply, [7, 13, 0]), Leaf(3), Scalar(3), Apply(Subtract, [2, 16, 0]), Apply(Multiply, [11, 11, 0]), Apply(Subtract, [15, 18, 0]), Apply(Sign, [19, 0, 0]), Apply(Multiply, [17, 20, 0]), Apply(Multiply, [21, 11, 0]), Apply(Multiply, [22, 11, 0]), Apply(Subtract, [15, 23, 0]), Apply(Sqrt, [24, 0, 0]), Apply(Pow, [16, 4, 0]), Apply(Subtract, [2, 26, 0]), Apply(Sqrt, [27, 0, 0]), Apply(Divide, [2, 28, 0]), Apply(Multiply, [25, 29, 0]), Scalar(4), Apply(Add, [30, 31, 0]), Apply(Divide, [14, 32, 0]), Apply(Subtract, [0, 33, 0])], Wanted { outputs: &[34, 13, 24], results: &[], guard: None }),
    ("Lamb", &[Leaf(1), Scalar(1), Apply(Multiply, [0, 0, 0]), Sum(2), Apply(Sqrt, [3, 0, 0]), Scalar(2), Leaf(2), Apply(Multiply, [5, 6, 0]), Constant(1.0), Apply(Subtract, [8, 5, 0]), Leaf(0), Apply(Multiply, [9, 10, 0]), Apply(Add, [7, 11, 0]), Scalar(0), Apply(Pow, [5, 13, 0]), Apply(Subtract, [8, 14, 0]), Apply(Divide, [12, 15, 0]), Scalar(3), Leaf(3), Apply(Multiply, [17, 18, 0]), Apply(Subtract, [8, 17, 0]), Apply(Multiply, [20, 10, 0]), Apply(Multiply, [21, 10, 0]), Apply(Add, [19, 22, 0]), Apply(Sqrt, [23, 0, 0]), Apply(Pow, [17, 13, 0]), Apply(Subtract, [8, 25, 0]), Apply(Sqrt, [26, 0, 0]), Apply(Divide, [8, 27, 0]), Apply(Multiply, [24, 28, 0]), Scalar(4), Apply(Add, [29, 30, 0]), Apply(Divide, [16, 31, 0]), Scalar(5), Apply(Multiply, [33, 0, 0]), Apply(Add, [32, 34, 0]), Apply(Multiply, [35, 35, 0]), Sum(36), Apply(Sqrt, [37, 0, 0]), Apply(Minimum, [4, 38, 0]), Constant(0.0), Apply(Greater, [39, 40, 0]), Apply(Multiply, [8, 4, 0]), Apply(Greater, [38, 40, 0]), Apply(Where, [43, 38, 8]), Apply(Add, [44, 40, 0]), Apply(Divide, [42, 45, 0]), Apply(Where, [41, 46, 8]), Apply(Multiply, [1, 47, 0]), Apply(Multiply, [48, 35, 0]), Apply(Subtract, [0, 49, 0])], Wanted { outputs: &[50, 12, 23], results: &[], guard: None }),
    ("NovoGrad", &[Leaf(1), Scalar(1), Scalar(2), Leaf(2), Apply(Multiply, [2, 3, 0]), Leaf(0), Scalar(0), Constant(1.0), Apply(Equal, [6, 7, 0]), Apply(Multiply, [5, 5, 0]), Sum(9), Scalar(3), Scalar(6), Apply(Multiply, [11, 12, 0]), Apply(Subtract, [7, 11, 0]), Apply(Multiply, [14, 10, 0]), Apply(Add, [13, 15, 0]), Apply(Where, [8, 10, 16]), Apply(Sqrt, [17, 0, 0]), Scalar(4), Apply(Add, [18, 19, 0]), Apply(Divide, [5, 20, 0]), Apply(Add, [4, 21, 0]), Scalar(5), Apply(Multiply, [23, 0, 0]), Apply(Add, [22, 24, 0]), Apply(Multiply, [1, 25, 0]), Apply(Subtract, [0, 26, 0])], Wanted { outputs: &[27, 25], results: &[17], guard: None }),
    ("Sophia", &[Leaf(1), Scalar(1), Scalar(2), Leaf(2), Apply(Multiply, [2, 3, 0]), Constant(1.0), Apply(Subtract, [5, 2, 0]), Leaf(0), Apply(Multiply, [6, 7, 0]), Apply(Add, [4, 8, 0]), Scalar(0), Apply(Pow, [2, 10, 0]), Apply(Subtract, [5, 11, 0]), Apply(Divide, [9, 12, 0]), Scalar(6), Leaf(3), Apply(Multiply, [14, 15, 0]), Scalar(4), Apply(Maximum, [16, 17, 0]), Apply(Divide, [13, 18, 0]), Scalar(7), Apply(Negative, [20, 0, 0]), Apply(Maximum, [19, 21, 0]), Apply(Minimum, [22, 20, 0]), Scalar(5), Apply(Multiply, [24, 0, 0]), Apply(Add, [23, 25, 0]), Apply(Multiply, [1, 26, 0]), Apply(Subtract, [0, 27, 0]), Apply(Subtract, [10, 5, 0]), Scalar(8), Apply(Remainder, [29, 30, 0]), Constant(0.0), Apply(Equal, [31, 32, 0]), Scalar(3), Apply(Multiply, [34, 15, 0]), Apply(Subtract, [5, 34, 0]), Scalar(9), Apply(Multiply, [36, 37, 0]), Apply(Multiply, [38, 7, 0]), Apply(Multiply, [39, 7, 0]), Apply(Add, [35, 40, 0]), Apply(Where, [33, 41, 15])], Wanted { outputs: &[28, 9, 42], results: &[], guard: None }),
    ("Prodigy", &[Leaf(1), Scalar(0), Constant(1.0), Apply(Equal, [1, 2, 0]), Scalar(7), Scalar(9), Apply(Where, [3, 4, 5]), Scalar(1), Apply(Multiply, [6, 7, 0]), Scalar(3), Apply(Pow, [9, 1, 0]), Apply(Subtract, [2, 10, 0]), Apply(Sqrt, [11, 0, 0]), Apply(Multiply, [8, 12, 0]), Scalar(2), Apply(Pow, [14, 1, 0]), Apply(Subtract, [2, 15, 0]), Apply(Divide, [13, 16, 0]), Scalar(6), Apply(Multiply, [18, 0, 0]), Leaf(2), Apply(Multiply, [14, 20, 0]), Apply(Subtract, [2, 14, 0]), Apply(Multiply, [22, 6, 0]), Leaf(0), Apply(Multiply, [23, 24, 0]), Apply(Add, [21, 25, 0]), Leaf(3), Apply(Multiply, [9, 27, 0]), Apply(Subtract, [2, 9, 0]), Apply(Multiply, [29, 6, 0]), Apply(Multiply, [30, 6, 0]), Apply(Multiply, [31, 24, 0]), Apply(Multiply, [32, 24, 0]), Apply(Add, [28, 33, 0]), Apply(Sqrt, [34, 0, 0]), Scalar(8), Scalar(4), Constant(0.0), Apply(Greater, [37, 38, 0]), Apply(Sqrt, [9, 0, 0]), Apply(Where, [39, 37, 40]), Scalar(10), Apply(Multiply, [41, 42, 0]), Apply(Divide, [6, 4, 0]), Apply(Multiply, [44, 17, 0]), Leaf(5), Apply(Subtract, [46, 0, 0]), Apply(Multiply, [24, 47, 0]), Sum(48), Total(49, 0), Apply(Multiply, [45, 50, 0]), Apply(Add, [43, 51, 0]), Apply(Multiply, [36, 52, 0]), Leaf(4), Apply(Multiply, [41, 54, 0]), Apply(Multiply, [17, 6, 0]), Apply(Divide, [56, 4, 0]), Apply(Multiply, [57, 24, 0]), Apply(Add, [55, 58, 0]), Apply(Abs, [59, 0, 0]), Sum(60), Total(61, 1), Apply(Greater, [62, 38, 0]), Apply(Where, [63, 62, 2]), Apply(Divide, [53, 64, 0]), Apply(Maximum, [6, 65, 0]), Scalar(5), Apply(Multiply, [66, 67, 0]), Apply(Add, [35, 68, 0]), Apply(Divide, [26, 69, 0]), Apply(Add, [19, 70, 0]), Apply(Multiply, [17, 71, 0]), Apply(Subtract, [0, 72, 0])], Wanted { outputs: &[73, 26, 34, 59], results: &[66, 52], guard: None }),
    ("ScheduleFreeSgd", &[Scalar(2), Leaf(1), Constant(1.0), Apply(Subtract, [2, 0, 0]), Leaf(2), Apply(Multiply, [3, 4, 0]), Apply(Subtract, [1, 5, 0]), Apply(Divide, [6, 0, 0]), Scalar(6), Scalar(1), Apply(Maximum, [8, 9, 0]), Scalar(4), Apply(Pow, [10, 11, 0]), Scalar(5), Apply(Add, [13, 12, 0]), Constant(0.0), Apply(Greater, [14, 15, 0]), Apply(Where, [16, 14, 2]), Apply(Divide, [12, 17, 0]), Leaf(0), Scalar(3), Apply(Multiply, [20, 1, 0]), Apply(Add, [19, 21, 0]), Apply(Multiply, [9, 22, 0]), Apply(Subtract, [4, 23, 0]), Apply(Subtract, [24, 7, 0]), Apply(Multiply, [18, 25, 0]), Apply(Add, [7, 26, 0]), Apply(Multiply, [0, 27, 0]), Apply(Multiply, [3, 24, 0]), Apply(Add, [28, 29, 0])], Wanted { outputs: &[30, 24], results: &[14, 10], guard: None }),
    ("ScheduleFreeAdamW", &[Scalar(2), Leaf(1), Constant(1.0), Apply(Subtract, [2, 0, 0]), Leaf(3), Apply(Multiply, [3, 4, 0]), Apply(Subtract, [1, 5, 0]), Apply(Divide, [6, 0, 0]), Scalar(8), Scalar(1), Apply(Maximum, [8, 9, 0]), Scalar(6), Apply(Pow, [10, 11, 0]), Scalar(7), Apply(Add, [13, 12, 0]), Constant(0.0), Apply(Greater, [14, 15, 0]), Apply(Where, [16, 14, 2]), Apply(Divide, [12, 17, 0]), Leaf(0), Scalar(3), Leaf(2), Apply(Multiply, [20, 21, 0]), Apply(Subtract, [2, 20, 0]), Apply(Multiply, [23, 19, 0]), Apply(Multiply, [24, 19, 0]), Apply(Add, [22, 25, 0]), Apply(Sqrt, [26, 0, 0]), Scalar(0), Apply(Pow, [20, 28, 0]), Apply(Subtract, [2, 29, 0]), Apply(Sqrt, [30, 0, 0]), Apply(Divide, [2, 31, 0]), Apply(Multiply, [27, 32, 0]), Scalar(4), Apply(Add, [33, 34, 0]), Apply(Divide, [19, 35, 0]), Scalar(5), Apply(Multiply, [37, 1, 0]), Apply(Add, [36, 38, 0]), Apply(Multiply, [9, 39, 0]), Apply(Subtract, [4, 40, 0]), Apply(Subtract, [41, 7, 0]), Apply(Multiply, [18, 42, 0]), Apply(Add, [7, 43, 0]), Apply(Multiply, [0, 44, 0]), Apply(Multiply, [3, 41, 0]), Apply(Add, [45, 46, 0])], Wanted { outputs: &[47, 26, 41], results: &[14, 10], guard: None }),
];

pub(crate) struct Sgd;

impl NativeCode<2, 2, 1, 0> for Sgd {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1]: [L; 2], [s1, s0]: [L; 2]) -> ([L; 1], [L; 0]) {
        let t0 = meaning::Multiply.call(s1, in1);
        let t1 = meaning::Add.call(in0, t0);
        let t2 = meaning::Multiply.call(s0, t1);
        let out0 = meaning::Subtract.call(in1, t2);
        ([out0], [])
    }
}

pub(crate) struct Momentum;

impl NativeCode<3, 4, 2, 0> for Momentum {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s1, s8, s7, s0]: [L; 4]) -> ([L; 2], [L; 0]) {
        let t0 = meaning::Multiply.call(s1, in2);
        let t1 = meaning::Multiply.call(s8, in1);
        let t2 = meaning::Add.call(in0, t1);
        let t3 = meaning::Multiply.call(s7, t2);
        let out1 = meaning::Add.call(t0, t3);
        let t5 = meaning::Multiply.call(s0, out1);
        let out0 = meaning::Subtract.call(in1, t5);
        ([out0, out1], [])
    }
}

pub(crate) struct Nesterov;

impl NativeCode<3, 4, 2, 0> for Nesterov {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s1, s2, s8, s0]: [L; 4]) -> ([L; 2], [L; 0]) {
        let t0 = meaning::Multiply.call(s1, in1);
        let t1 = meaning::Add.call(in0, t0);
        let t2 = meaning::Multiply.call(s2, in2);
        let t3 = meaning::Multiply.call(s8, t1);
        let out1 = meaning::Add.call(t2, t3);
        let t5 = meaning::Multiply.call(s2, out1);
        let t6 = meaning::Add.call(t1, t5);
        let t7 = meaning::Multiply.call(s0, t6);
        let out0 = meaning::Subtract.call(in1, t7);
        ([out0, out1], [])
    }
}

pub(crate) struct Asgd;

impl NativeCode<3, 5, 2, 0> for Asgd {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s12, s13, s10, s18, s17]: [L; 5]) -> ([L; 2], [L; 0]) {
        let t0 = meaning::Multiply.call(s12, in1);
        let t1 = meaning::Multiply.call(s13, in1);
        let t2 = meaning::Add.call(in0, t1);
        let t3 = meaning::Multiply.call(s10, t2);
        let out0 = meaning::Subtract.call(t0, t3);
        let t5 = meaning::Subtract.call(out0, in2);
        let t6 = meaning::Divide.call(t5, s18);
        let t7 = meaning::Add.call(in2, t6);
        let out1 = meaning::Where.call(s17, t7, out0);
        ([out0, out1], [])
    }
}

pub(crate) struct OptimisticSgd;

impl NativeCode<3, 5, 2, 0> for OptimisticSgd {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s1, s5, s6, s2, s0]: [L; 5]) -> ([L; 2], [L; 0]) {
        let t0 = meaning::Multiply.call(s1, in0);
        let t1 = meaning::Subtract.call(in0, in2);
        let t2 = meaning::Where.call(s5, s6, t1);
        let t3 = meaning::Multiply.call(s2, t2);
        let t4 = meaning::Add.call(t0, t3);
        let t5 = meaning::Multiply.call(s0, t4);
        let out0 = meaning::Subtract.call(in1, t5);
        let out1 = meaning::Positive.call(in0);
        ([out0, out1], [])
    }
}

pub(crate) struct Rprop;

impl NativeCode<4, 5, 3, 0> for Rprop {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s0, s1, s2, s3, s4]: [L; 5]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Multiply.call(in0, in2);
        let t1 = meaning::Less.call(t0, s0);
        let t2 = meaning::Greater.call(t0, s0);
        let t3 = meaning::Multiply.call(in3, s1);
        let t4 = meaning::Multiply.call(in3, s2);
        let t5 = meaning::Where.call(t1, t4, in3);
        let t6 = meaning::Where.call(t2, t3, t5);
        let t7 = meaning::Maximum.call(t6, s3);
        let out2 = meaning::Minimum.call(t7, s4);
        let t9 = meaning::Sign.call(in0);
        let t10 = meaning::Multiply.call(out2, t9);
        let out1 = meaning::Where.call(t1, s0, t10);
        let out0 = meaning::Subtract.call(in1, out1);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct Signum;

impl NativeCode<3, 3, 2, 0> for Signum {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s1, s3, s0]: [L; 3]) -> ([L; 2], [L; 0]) {
        let t0 = meaning::Multiply.call(s1, in2);
        let t1 = meaning::Multiply.call(s3, in0);
        let out1 = meaning::Add.call(t0, t1);
        let t3 = meaning::Sign.call(out1);
        let t4 = meaning::Multiply.call(s0, t3);
        let out0 = meaning::Subtract.call(in1, t4);
        ([out0, out1], [])
    }
}

pub(crate) struct Lion;

impl NativeCode<3, 6, 2, 0> for Lion {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s1, s3, s4, s0, s5, s6]: [L; 6]) -> ([L; 2], [L; 0]) {
        let t0 = meaning::Multiply.call(s1, in2);
        let t1 = meaning::Multiply.call(s3, in0);
        let t2 = meaning::Add.call(t0, t1);
        let t3 = meaning::Sign.call(t2);
        let t4 = meaning::Multiply.call(s4, in1);
        let t5 = meaning::Add.call(t3, t4);
        let t6 = meaning::Multiply.call(s0, t5);
        let out0 = meaning::Subtract.call(in1, t6);
        let t8 = meaning::Multiply.call(s5, in2);
        let t9 = meaning::Multiply.call(s6, in0);
        let out1 = meaning::Add.call(t8, t9);
        ([out0, out1], [])
    }
}

pub(crate) struct LarsPhase0;

impl NativeCode<2, 3, 0, 2> for LarsPhase0 {
    const IS_WHOLE: bool = false;
    #[inline(always)]
    fn call<L: Lane>([in0, in1]: [L; 2], [_, s2, _]: [L; 3]) -> ([L; 0], [L; 2]) {
        let t0 = meaning::Multiply.call(in1, in1);
        let t1 = meaning::Multiply.call(s2, in1);
        let t2 = meaning::Add.call(in0, t1);
        let t3 = meaning::Multiply.call(t2, t2);
        ([], [t0, t3])
    }
}

pub(crate) struct LarsPhase1;

impl NativeCode<3, 3, 2, 0> for LarsPhase1 {
    const IS_WHOLE: bool = false;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s0, s2, s19]: [L; 3]) -> ([L; 2], [L; 0]) {
        let t0 = meaning::Multiply.call(s0, in2);
        let t1 = meaning::Multiply.call(s2, in1);
        let t2 = meaning::Add.call(in0, t1);
        let t3 = meaning::Multiply.call(s19, t2);
        let out1 = meaning::Add.call(t0, t3);
        let out0 = meaning::Subtract.call(in1, out1);
        ([out0, out1], [])
    }
}

pub(crate) struct Adagrad;

impl NativeCode<3, 2, 2, 0> for Adagrad {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s7, s8]: [L; 2]) -> ([L; 2], [L; 0]) {
        let t0 = meaning::Multiply.call(s7, in0);
        let t1 = meaning::Multiply.call(in0, in0);
        let out1 = meaning::Add.call(in2, t1);
        let t3 = meaning::Sqrt.call(out1);
        let t4 = meaning::Add.call(t3, s8);
        let t5 = meaning::Divide.call(t0, t4);
        let out0 = meaning::Subtract.call(in1, t5);
        ([out0, out1], [])
    }
}

pub(crate) struct Adadelta;

impl NativeCode<4, 4, 3, 0> for Adadelta {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s1, s2, s4, s0]: [L; 4]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Add.call(in3, s1);
        let t1 = meaning::Sqrt.call(t0);
        let t2 = meaning::Multiply.call(s2, in2);
        let t3 = meaning::Multiply.call(s4, in0);
        let t4 = meaning::Multiply.call(t3, in0);
        let out1 = meaning::Add.call(t2, t4);
        let t6 = meaning::Add.call(out1, s1);
        let t7 = meaning::Sqrt.call(t6);
        let t8 = meaning::Divide.call(t1, t7);
        let t9 = meaning::Multiply.call(t8, in0);
        let t10 = meaning::Multiply.call(s0, t9);
        let out0 = meaning::Subtract.call(in1, t10);
        let t12 = meaning::Multiply.call(s2, in3);
        let t13 = meaning::Multiply.call(s4, t9);
        let t14 = meaning::Multiply.call(t13, t9);
        let out2 = meaning::Add.call(t12, t14);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct RmsProp;

impl NativeCode<3, 4, 2, 0> for RmsProp {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s1, s3, s4, s0]: [L; 4]) -> ([L; 2], [L; 0]) {
        let t0 = meaning::Multiply.call(s1, in2);
        let t1 = meaning::Multiply.call(s3, in0);
        let t2 = meaning::Multiply.call(t1, in0);
        let out1 = meaning::Add.call(t0, t2);
        let t4 = meaning::Sqrt.call(out1);
        let t5 = meaning::Add.call(t4, s4);
        let t6 = meaning::Divide.call(in0, t5);
        let t7 = meaning::Multiply.call(s0, t6);
        let out0 = meaning::Subtract.call(in1, t7);
        ([out0, out1], [])
    }
}

pub(crate) struct RmsPropMomentum;

impl NativeCode<4, 5, 3, 0> for RmsPropMomentum {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s1, s2, s4, s5, s0]: [L; 5]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Multiply.call(s1, in3);
        let t1 = meaning::Multiply.call(s2, in2);
        let t2 = meaning::Multiply.call(s4, in0);
        let t3 = meaning::Multiply.call(t2, in0);
        let out1 = meaning::Add.call(t1, t3);
        let t5 = meaning::Sqrt.call(out1);
        let t6 = meaning::Add.call(t5, s5);
        let t7 = meaning::Divide.call(in0, t6);
        let out2 = meaning::Add.call(t0, t7);
        let t9 = meaning::Multiply.call(s0, out2);
        let out0 = meaning::Subtract.call(in1, t9);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct RmsPropCentered;

impl NativeCode<4, 5, 3, 0> for RmsPropCentered {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s1, s3, s4, s5, s0]: [L; 5]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Multiply.call(s1, in2);
        let t1 = meaning::Multiply.call(s3, in0);
        let t2 = meaning::Multiply.call(t1, in0);
        let out1 = meaning::Add.call(t0, t2);
        let t4 = meaning::Multiply.call(s1, in3);
        let out2 = meaning::Add.call(t4, t1);
        let t6 = meaning::Multiply.call(out2, out2);
        let t7 = meaning::Subtract.call(out1, t6);
        let t8 = meaning::Maximum.call(t7, s4);
        let t9 = meaning::Sqrt.call(t8);
        let t10 = meaning::Add.call(t9, s5);
        let t11 = meaning::Divide.call(in0, t10);
        let t12 = meaning::Multiply.call(s0, t11);
        let out0 = meaning::Subtract.call(in1, t12);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct Ftrl;

impl NativeCode<4, 6, 3, 0> for Ftrl {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s2, s4, s5, s7, s6, s13]: [L; 6]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Add.call(in2, in0);
        let t1 = meaning::Multiply.call(s2, in1);
        let t2 = meaning::Add.call(t0, t1);
        let t3 = meaning::Multiply.call(in0, in0);
        let out2 = meaning::Add.call(in3, t3);
        let t5 = meaning::Pow.call(out2, s4);
        let t6 = meaning::Pow.call(in3, s4);
        let t7 = meaning::Subtract.call(t5, t6);
        let t8 = meaning::Divide.call(t7, s5);
        let t9 = meaning::Multiply.call(t8, in1);
        let out1 = meaning::Subtract.call(t2, t9);
        let t11 = meaning::Maximum.call(out1, s7);
        let t12 = meaning::Minimum.call(t11, s6);
        let t13 = meaning::Subtract.call(t12, out1);
        let t14 = meaning::Divide.call(t5, s5);
        let t15 = meaning::Add.call(t14, s13);
        let out0 = meaning::Divide.call(t13, t15);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct Madgrad;

impl NativeCode<5, 5, 3, 0> for Madgrad {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4]: [L; 5], [s0, s8, s9, s4, s2]: [L; 5]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Multiply.call(s0, in1);
        let t1 = meaning::Multiply.call(s8, in0);
        let out2 = meaning::Add.call(in3, t1);
        let t3 = meaning::Multiply.call(t1, in0);
        let out1 = meaning::Add.call(in2, t3);
        let t5 = meaning::Pow.call(out1, s9);
        let t6 = meaning::Add.call(t5, s4);
        let t7 = meaning::Divide.call(out2, t6);
        let t8 = meaning::Subtract.call(in4, t7);
        let t9 = meaning::Multiply.call(s2, t8);
        let out0 = meaning::Add.call(t0, t9);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct Adam;

impl NativeCode<4, 7, 3, 0> for Adam {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s2, s7, s6, s8, s9, s13, s14]: [L; 7]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Multiply.call(s2, in2);
        let t1 = meaning::Multiply.call(s7, in0);
        let out1 = meaning::Add.call(t0, t1);
        let t3 = meaning::Multiply.call(s6, out1);
        let t4 = meaning::Multiply.call(s8, in3);
        let t5 = meaning::Multiply.call(s9, in0);
        let t6 = meaning::Multiply.call(t5, in0);
        let out2 = meaning::Add.call(t4, t6);
        let t8 = meaning::Sqrt.call(out2);
        let t9 = meaning::Multiply.call(t8, s13);
        let t10 = meaning::Add.call(t9, s14);
        let t11 = meaning::Divide.call(t3, t10);
        let out0 = meaning::Subtract.call(in1, t11);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct AdamAmsgrad;

impl NativeCode<5, 7, 4, 0> for AdamAmsgrad {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4]: [L; 5], [s2, s7, s6, s8, s9, s13, s14]: [L; 7]) -> ([L; 4], [L; 0]) {
        let t0 = meaning::Multiply.call(s2, in2);
        let t1 = meaning::Multiply.call(s7, in0);
        let out1 = meaning::Add.call(t0, t1);
        let t3 = meaning::Multiply.call(s6, out1);
        let t4 = meaning::Multiply.call(s8, in3);
        let t5 = meaning::Multiply.call(s9, in0);
        let t6 = meaning::Multiply.call(t5, in0);
        let out2 = meaning::Add.call(t4, t6);
        let out3 = meaning::Maximum.call(in4, out2);
        let t9 = meaning::Sqrt.call(out3);
        let t10 = meaning::Multiply.call(t9, s13);
        let t11 = meaning::Add.call(t10, s14);
        let t12 = meaning::Divide.call(t3, t11);
        let out0 = meaning::Subtract.call(in1, t12);
        ([out0, out1, out2, out3], [])
    }
}

pub(crate) struct AdamW;

impl NativeCode<4, 8, 3, 0> for AdamW {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s4, s5, s10, s9, s11, s12, s16, s17]: [L; 8]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Multiply.call(s4, in1);
        let t1 = meaning::Multiply.call(s5, in2);
        let t2 = meaning::Multiply.call(s10, in0);
        let out1 = meaning::Add.call(t1, t2);
        let t4 = meaning::Multiply.call(s9, out1);
        let t5 = meaning::Multiply.call(s11, in3);
        let t6 = meaning::Multiply.call(s12, in0);
        let t7 = meaning::Multiply.call(t6, in0);
        let out2 = meaning::Add.call(t5, t7);
        let t9 = meaning::Sqrt.call(out2);
        let t10 = meaning::Multiply.call(t9, s16);
        let t11 = meaning::Add.call(t10, s17);
        let t12 = meaning::Divide.call(t4, t11);
        let out0 = meaning::Subtract.call(t0, t12);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct AdamWAmsgrad;

impl NativeCode<5, 8, 4, 0> for AdamWAmsgrad {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4]: [L; 5], [s4, s5, s10, s9, s11, s12, s16, s17]: [L; 8]) -> ([L; 4], [L; 0]) {
        let t0 = meaning::Multiply.call(s4, in1);
        let t1 = meaning::Multiply.call(s5, in2);
        let t2 = meaning::Multiply.call(s10, in0);
        let out1 = meaning::Add.call(t1, t2);
        let t4 = meaning::Multiply.call(s9, out1);
        let t5 = meaning::Multiply.call(s11, in3);
        let t6 = meaning::Multiply.call(s12, in0);
        let t7 = meaning::Multiply.call(t6, in0);
        let out2 = meaning::Add.call(t5, t7);
        let out3 = meaning::Maximum.call(in4, out2);
        let t10 = meaning::Sqrt.call(out3);
        let t11 = meaning::Multiply.call(t10, s16);
        let t12 = meaning::Add.call(t11, s17);
        let t13 = meaning::Divide.call(t4, t12);
        let out0 = meaning::Subtract.call(t0, t13);
        ([out0, out1, out2, out3], [])
    }
}

pub(crate) struct AdamWMaster;

impl NativeCode<4, 8, 4, 0> for AdamWMaster {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in2, in3, in4]: [L; 4], [s4, s5, s10, s9, s11, s12, s16, s17]: [L; 8]) -> ([L; 4], [L; 0]) {
        let t0 = meaning::Multiply.call(s4, in4);
        let t1 = meaning::Multiply.call(s5, in2);
        let t2 = meaning::Multiply.call(s10, in0);
        let out1 = meaning::Add.call(t1, t2);
        let t4 = meaning::Multiply.call(s9, out1);
        let t5 = meaning::Multiply.call(s11, in3);
        let t6 = meaning::Multiply.call(s12, in0);
        let t7 = meaning::Multiply.call(t6, in0);
        let out2 = meaning::Add.call(t5, t7);
        let t9 = meaning::Sqrt.call(out2);
        let t10 = meaning::Multiply.call(t9, s16);
        let t11 = meaning::Add.call(t10, s17);
        let t12 = meaning::Divide.call(t4, t11);
        let out0 = meaning::Subtract.call(t0, t12);
        let out3 = meaning::Positive.call(out0);
        ([out0, out1, out2, out3], [])
    }
}

pub(crate) struct AdamWKahan;

impl NativeCode<5, 8, 4, 0> for AdamWKahan {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4]: [L; 5], [s4, s5, s10, s9, s11, s12, s16, s17]: [L; 8]) -> ([L; 4], [L; 0]) {
        let t0 = meaning::Add.call(in1, in4);
        let t1 = meaning::Multiply.call(s4, t0);
        let t2 = meaning::Multiply.call(s5, in2);
        let t3 = meaning::Multiply.call(s10, in0);
        let out1 = meaning::Add.call(t2, t3);
        let t5 = meaning::Multiply.call(s9, out1);
        let t6 = meaning::Multiply.call(s11, in3);
        let t7 = meaning::Multiply.call(s12, in0);
        let t8 = meaning::Multiply.call(t7, in0);
        let out2 = meaning::Add.call(t6, t8);
        let t10 = meaning::Sqrt.call(out2);
        let t11 = meaning::Multiply.call(t10, s16);
        let t12 = meaning::Add.call(t11, s17);
        let t13 = meaning::Divide.call(t5, t12);
        let t14 = meaning::Subtract.call(t1, t13);
        let out0 = meaning::RoundToBfloat16.call(t14);
        let out3 = meaning::Subtract.call(t14, out0);
        ([out0, out1, out2, out3], [])
    }
}

pub(crate) struct AdamWAverage;

impl NativeCode<5, 10, 4, 0> for AdamWAverage {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4]: [L; 5], [s4, s5, s10, s9, s11, s12, s16, s17, s18, s19]: [L; 10]) -> ([L; 4], [L; 0]) {
        let t0 = meaning::Multiply.call(s4, in1);
        let t1 = meaning::Multiply.call(s5, in2);
        let t2 = meaning::Multiply.call(s10, in0);
        let out1 = meaning::Add.call(t1, t2);
        let t4 = meaning::Multiply.call(s9, out1);
        let t5 = meaning::Multiply.call(s11, in3);
        let t6 = meaning::Multiply.call(s12, in0);
        let t7 = meaning::Multiply.call(t6, in0);
        let out2 = meaning::Add.call(t5, t7);
        let t9 = meaning::Sqrt.call(out2);
        let t10 = meaning::Multiply.call(t9, s16);
        let t11 = meaning::Add.call(t10, s17);
        let t12 = meaning::Divide.call(t4, t11);
        let out0 = meaning::Subtract.call(t0, t12);
        let t14 = meaning::Multiply.call(s18, in4);
        let t15 = meaning::Multiply.call(s19, out0);
        let out3 = meaning::Add.call(t14, t15);
        ([out0, out1, out2, out3], [])
    }
}

pub(crate) struct ClippedAdamWPhase0;

impl NativeCode<1, 9, 0, 1> for ClippedAdamWPhase0 {
    const IS_WHOLE: bool = false;
    #[inline(always)]
    fn call<L: Lane>([in0]: [L; 1], [_, _, _, _, _, _, _, _, _]: [L; 9]) -> ([L; 0], [L; 1]) {
        let t0 = meaning::Multiply.call(in0, in0);
        ([], [t0])
    }
}

pub(crate) struct ClippedAdamWPhase1;

impl NativeCode<4, 9, 3, 0> for ClippedAdamWPhase1 {
    const IS_WHOLE: bool = false;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s4, s5, s24, s10, s9, s12, s13, s17, s18]: [L; 9]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Multiply.call(s4, in1);
        let t1 = meaning::Multiply.call(s5, in2);
        let t2 = meaning::Multiply.call(in0, s24);
        let t3 = meaning::Multiply.call(s10, t2);
        let out1 = meaning::Add.call(t1, t3);
        let t5 = meaning::Multiply.call(s9, out1);
        let t6 = meaning::Multiply.call(s12, in3);
        let t7 = meaning::Multiply.call(s13, t2);
        let t8 = meaning::Multiply.call(t7, t2);
        let out2 = meaning::Add.call(t6, t8);
        let t10 = meaning::Sqrt.call(out2);
        let t11 = meaning::Multiply.call(t10, s17);
        let t12 = meaning::Add.call(t11, s18);
        let t13 = meaning::Divide.call(t5, t12);
        let out0 = meaning::Subtract.call(t0, t13);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct ClippedAdamWAveragePhase0;

impl NativeCode<1, 11, 0, 1> for ClippedAdamWAveragePhase0 {
    const IS_WHOLE: bool = false;
    #[inline(always)]
    fn call<L: Lane>([in0]: [L; 1], [_, _, _, _, _, _, _, _, _, _, _]: [L; 11]) -> ([L; 0], [L; 1]) {
        let t0 = meaning::Multiply.call(in0, in0);
        ([], [t0])
    }
}

pub(crate) struct ClippedAdamWAveragePhase1;

impl NativeCode<5, 11, 4, 0> for ClippedAdamWAveragePhase1 {
    const IS_WHOLE: bool = false;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4]: [L; 5], [s4, s5, s26, s10, s9, s12, s13, s17, s18, s19, s20]: [L; 11]) -> ([L; 4], [L; 0]) {
        let t0 = meaning::Multiply.call(s4, in1);
        let t1 = meaning::Multiply.call(s5, in2);
        let t2 = meaning::Multiply.call(in0, s26);
        let t3 = meaning::Multiply.call(s10, t2);
        let out1 = meaning::Add.call(t1, t3);
        let t5 = meaning::Multiply.call(s9, out1);
        let t6 = meaning::Multiply.call(s12, in3);
        let t7 = meaning::Multiply.call(s13, t2);
        let t8 = meaning::Multiply.call(t7, t2);
        let out2 = meaning::Add.call(t6, t8);
        let t10 = meaning::Sqrt.call(out2);
        let t11 = meaning::Multiply.call(t10, s17);
        let t12 = meaning::Add.call(t11, s18);
        let t13 = meaning::Divide.call(t5, t12);
        let out0 = meaning::Subtract.call(t0, t13);
        let t15 = meaning::Multiply.call(s19, in4);
        let t16 = meaning::Multiply.call(s20, out0);
        let out3 = meaning::Add.call(t15, t16);
        ([out0, out1, out2, out3], [])
    }
}

pub(crate) struct ClippedAdamWTailPhase0;

impl NativeCode<1, 13, 0, 2> for ClippedAdamWTailPhase0 {
    const IS_WHOLE: bool = false;
    #[inline(always)]
    fn call<L: Lane>([in0]: [L; 1], [_, _, s12, _, _, _, _, _, _, _, _, _, _]: [L; 13]) -> ([L; 0], [L; 2]) {
        let t0 = meaning::Multiply.call(in0, s12);
        let t1 = meaning::Multiply.call(t0, t0);
        let t2 = meaning::Subtract.call(t0, t0);
        ([], [t1, t2])
    }
}

pub(crate) struct ClippedAdamWTailPhase1;

impl NativeCode<5, 13, 6, 0> for ClippedAdamWTailPhase1 {
    const IS_WHOLE: bool = false;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4]: [L; 5], [s5, s6, s12, s28, s11, s10, s14, s15, s19, s20, s21, s22, s0]: [L; 13]) -> ([L; 6], [L; 0]) {
        let t0 = meaning::Multiply.call(s5, in1);
        let t1 = meaning::Multiply.call(s6, in2);
        let t2 = meaning::Multiply.call(in0, s12);
        let t3 = meaning::Multiply.call(t2, s28);
        let t4 = meaning::Multiply.call(s11, t3);
        let out2 = meaning::Add.call(t1, t4);
        let t6 = meaning::Multiply.call(s10, out2);
        let t7 = meaning::Multiply.call(s14, in3);
        let t8 = meaning::Multiply.call(s15, t3);
        let t9 = meaning::Multiply.call(t8, t3);
        let out3 = meaning::Add.call(t7, t9);
        let t11 = meaning::Sqrt.call(out3);
        let t12 = meaning::Multiply.call(t11, s19);
        let t13 = meaning::Add.call(t12, s20);
        let t14 = meaning::Divide.call(t6, t13);
        let out1 = meaning::Subtract.call(t0, t14);
        let t16 = meaning::Multiply.call(s21, in4);
        let t17 = meaning::Multiply.call(s22, out1);
        let out4 = meaning::Add.call(t16, t17);
        let out0 = meaning::Positive.call(s0);
        let out5 = meaning::Positive.call(out1);
        ([out0, out1, out2, out3, out4, out5], [])
    }
}

pub(crate) struct AdamLrd;

impl NativeCode<5, 10, 3, 0> for AdamLrd {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, noise0]: [L; 5], [s0, s1, s2, s4, s9, s8, s10, s11, s15, s16]: [L; 10]) -> ([L; 3], [L; 0]) {
        let t1 = meaning::Less.call(noise0, s0);
        let t2 = meaning::Where.call(t1, s1, s2);
        let t3 = meaning::Multiply.call(s4, in2);
        let t4 = meaning::Multiply.call(s9, in0);
        let out1 = meaning::Add.call(t3, t4);
        let t6 = meaning::Multiply.call(s8, out1);
        let t7 = meaning::Multiply.call(s10, in3);
        let t8 = meaning::Multiply.call(s11, in0);
        let t9 = meaning::Multiply.call(t8, in0);
        let out2 = meaning::Add.call(t7, t9);
        let t11 = meaning::Sqrt.call(out2);
        let t12 = meaning::Multiply.call(t11, s15);
        let t13 = meaning::Add.call(t12, s16);
        let t14 = meaning::Divide.call(t6, t13);
        let t15 = meaning::Multiply.call(t2, t14);
        let out0 = meaning::Subtract.call(in1, t15);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct Adamax;

impl NativeCode<4, 5, 3, 0> for Adamax {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s2, s7, s6, s8, s9]: [L; 5]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Multiply.call(s2, in2);
        let t1 = meaning::Multiply.call(s7, in0);
        let out1 = meaning::Add.call(t0, t1);
        let t3 = meaning::Multiply.call(s6, out1);
        let t4 = meaning::Multiply.call(s8, in3);
        let t5 = meaning::Abs.call(in0);
        let t6 = meaning::Add.call(t5, s9);
        let out2 = meaning::Maximum.call(t4, t6);
        let t8 = meaning::Divide.call(t3, out2);
        let out0 = meaning::Subtract.call(in1, t8);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct NAdam;

impl NativeCode<4, 9, 3, 0> for NAdam {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s16, s2, s26, s25, s0, s27, s28, s32, s33]: [L; 9]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Multiply.call(s16, in0);
        let t1 = meaning::Multiply.call(s2, in2);
        let t2 = meaning::Multiply.call(s26, in0);
        let out1 = meaning::Add.call(t1, t2);
        let t4 = meaning::Multiply.call(s25, out1);
        let t5 = meaning::Add.call(t0, t4);
        let t6 = meaning::Multiply.call(s0, t5);
        let t7 = meaning::Multiply.call(s27, in3);
        let t8 = meaning::Multiply.call(s28, in0);
        let t9 = meaning::Multiply.call(t8, in0);
        let out2 = meaning::Add.call(t7, t9);
        let t11 = meaning::Sqrt.call(out2);
        let t12 = meaning::Multiply.call(t11, s32);
        let t13 = meaning::Add.call(t12, s33);
        let t14 = meaning::Divide.call(t6, t13);
        let out0 = meaning::Subtract.call(in1, t14);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct RAdam;

impl NativeCode<4, 10, 3, 0> for RAdam {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s8, s9, s33, s35, s32, s19, s1, s6, s2, s36]: [L; 10]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Multiply.call(s8, in3);
        let t1 = meaning::Multiply.call(s9, in0);
        let t2 = meaning::Multiply.call(t1, in0);
        let out2 = meaning::Add.call(t0, t2);
        let t4 = meaning::Sqrt.call(out2);
        let t5 = meaning::Add.call(t4, s33);
        let t6 = meaning::Multiply.call(t5, s35);
        let t7 = meaning::Divide.call(s32, t6);
        let t8 = meaning::Where.call(s19, t7, s1);
        let t9 = meaning::Multiply.call(s6, t8);
        let t10 = meaning::Multiply.call(s2, in2);
        let t11 = meaning::Multiply.call(s36, in0);
        let out1 = meaning::Add.call(t10, t11);
        let t13 = meaning::Multiply.call(t9, out1);
        let out0 = meaning::Subtract.call(in1, t13);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct OptimisticAdam;

impl NativeCode<5, 13, 4, 0> for OptimisticAdam {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4]: [L; 5], [s2, s9, s8, s12, s13, s14, s18, s19, s1, s21, s22, s20, s0]: [L; 13]) -> ([L; 4], [L; 0]) {
        let t0 = meaning::Multiply.call(s2, in2);
        let t1 = meaning::Multiply.call(s9, in0);
        let out1 = meaning::Add.call(t0, t1);
        let t3 = meaning::Multiply.call(s8, out1);
        let t4 = meaning::Multiply.call(s12, in0);
        let t5 = meaning::Add.call(t3, t4);
        let t6 = meaning::Multiply.call(s13, in3);
        let t7 = meaning::Multiply.call(s14, in0);
        let t8 = meaning::Multiply.call(t7, in0);
        let out2 = meaning::Add.call(t6, t8);
        let t10 = meaning::Sqrt.call(out2);
        let t11 = meaning::Multiply.call(t10, s18);
        let t12 = meaning::Add.call(t11, s19);
        let out3 = meaning::Divide.call(t5, t12);
        let t14 = meaning::Multiply.call(s1, out3);
        let t15 = meaning::Subtract.call(out3, in4);
        let t16 = meaning::Where.call(s21, s22, t15);
        let t17 = meaning::Multiply.call(s20, t16);
        let t18 = meaning::Add.call(t14, t17);
        let t19 = meaning::Multiply.call(s0, t18);
        let out0 = meaning::Subtract.call(in1, t19);
        ([out0, out1, out2, out3], [])
    }
}

pub(crate) struct AdaBelief;

impl NativeCode<4, 8, 3, 0> for AdaBelief {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s2, s7, s6, s8, s9, s10, s14, s15]: [L; 8]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Multiply.call(s2, in2);
        let t1 = meaning::Multiply.call(s7, in0);
        let out1 = meaning::Add.call(t0, t1);
        let t3 = meaning::Multiply.call(s6, out1);
        let t4 = meaning::Multiply.call(s8, in3);
        let t5 = meaning::Subtract.call(in0, out1);
        let t6 = meaning::Multiply.call(s9, t5);
        let t7 = meaning::Multiply.call(t6, t5);
        let t8 = meaning::Add.call(t4, t7);
        let out2 = meaning::Add.call(t8, s10);
        let t10 = meaning::Sqrt.call(out2);
        let t11 = meaning::Multiply.call(t10, s14);
        let t12 = meaning::Add.call(t11, s15);
        let t13 = meaning::Divide.call(t3, t12);
        let out0 = meaning::Subtract.call(in1, t13);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct AdEmaMix;

impl NativeCode<5, 12, 4, 0> for AdEmaMix {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4]: [L; 5], [s1, s3, s6, s8, s9, s7, s10, s11, s15, s16, s17, s0]: [L; 12]) -> ([L; 4], [L; 0]) {
        let t0 = meaning::Multiply.call(s1, in2);
        let t1 = meaning::Multiply.call(s3, in0);
        let out1 = meaning::Add.call(t0, t1);
        let t3 = meaning::Divide.call(out1, s6);
        let t4 = meaning::Multiply.call(s8, in3);
        let t5 = meaning::Multiply.call(s9, in0);
        let out2 = meaning::Add.call(t4, t5);
        let t7 = meaning::Multiply.call(s7, out2);
        let t8 = meaning::Add.call(t3, t7);
        let t9 = meaning::Multiply.call(s10, in4);
        let t10 = meaning::Multiply.call(s11, in0);
        let t11 = meaning::Multiply.call(t10, in0);
        let out3 = meaning::Add.call(t9, t11);
        let t13 = meaning::Sqrt.call(out3);
        let t14 = meaning::Multiply.call(t13, s15);
        let t15 = meaning::Add.call(t14, s16);
        let t16 = meaning::Divide.call(t8, t15);
        let t17 = meaning::Multiply.call(s17, in1);
        let t18 = meaning::Add.call(t16, t17);
        let t19 = meaning::Multiply.call(s0, t18);
        let out0 = meaning::Subtract.call(in1, t19);
        ([out0, out1, out2, out3], [])
    }
}

pub(crate) struct Adopt;

impl NativeCode<4, 9, 3, 0> for Adopt {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s4, s6, s10, s9, s5, s3, s0, s11, s12]: [L; 9]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Multiply.call(s4, in2);
        let t1 = meaning::Sqrt.call(in3);
        let t2 = meaning::Maximum.call(t1, s6);
        let t3 = meaning::Divide.call(in0, t2);
        let t4 = meaning::Maximum.call(t3, s10);
        let t5 = meaning::Minimum.call(t4, s9);
        let t6 = meaning::Multiply.call(s5, t5);
        let t7 = meaning::Add.call(t0, t6);
        let out1 = meaning::Where.call(s3, in2, t7);
        let t9 = meaning::Multiply.call(s0, out1);
        let out0 = meaning::Subtract.call(in1, t9);
        let t11 = meaning::Multiply.call(in0, in0);
        let t12 = meaning::Multiply.call(s11, in3);
        let t13 = meaning::Multiply.call(s12, in0);
        let t14 = meaning::Multiply.call(t13, in0);
        let t15 = meaning::Add.call(t12, t14);
        let out2 = meaning::Where.call(s3, t11, t15);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct Adan;

impl NativeCode<6, 15, 5, 0> for Adan {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4, in5]: [L; 6], [s1, s3, s6, s7, s12, s13, s11, s10, s0, s14, s15, s17, s18, s19, s22]: [L; 15]) -> ([L; 5], [L; 0]) {
        let t0 = meaning::Multiply.call(s1, in2);
        let t1 = meaning::Multiply.call(s3, in0);
        let out1 = meaning::Add.call(t0, t1);
        let t3 = meaning::Divide.call(out1, s6);
        let t4 = meaning::Multiply.call(s7, in3);
        let t5 = meaning::Subtract.call(in0, in5);
        let t6 = meaning::Where.call(s12, s13, t5);
        let t7 = meaning::Multiply.call(s11, t6);
        let out2 = meaning::Add.call(t4, t7);
        let t9 = meaning::Multiply.call(s10, out2);
        let t10 = meaning::Add.call(t3, t9);
        let t11 = meaning::Multiply.call(s0, t10);
        let t12 = meaning::Multiply.call(s14, in4);
        let t13 = meaning::Multiply.call(s7, t6);
        let t14 = meaning::Add.call(in0, t13);
        let t15 = meaning::Multiply.call(s15, t14);
        let t16 = meaning::Multiply.call(t15, t14);
        let out3 = meaning::Add.call(t12, t16);
        let t18 = meaning::Divide.call(out3, s17);
        let t19 = meaning::Add.call(t18, s18);
        let t20 = meaning::Sqrt.call(t19);
        let t21 = meaning::Add.call(t20, s19);
        let t22 = meaning::Divide.call(t11, t21);
        let t23 = meaning::Subtract.call(in1, t22);
        let out0 = meaning::Divide.call(t23, s22);
        let out4 = meaning::Positive.call(in0);
        ([out0, out1, out2, out3, out4], [])
    }
}

pub(crate) struct Yogi;

impl NativeCode<4, 6, 3, 0> for Yogi {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s2, s7, s6, s9, s13, s14]: [L; 6]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Multiply.call(s2, in2);
        let t1 = meaning::Multiply.call(s7, in0);
        let out1 = meaning::Add.call(t0, t1);
        let t3 = meaning::Multiply.call(s6, out1);
        let t4 = meaning::Multiply.call(in0, in0);
        let t5 = meaning::Subtract.call(in3, t4);
        let t6 = meaning::Sign.call(t5);
        let t7 = meaning::Multiply.call(s9, t6);
        let t8 = meaning::Multiply.call(t7, in0);
        let t9 = meaning::Multiply.call(t8, in0);
        let out2 = meaning::Subtract.call(in3, t9);
        let t11 = meaning::Sqrt.call(out2);
        let t12 = meaning::Multiply.call(t11, s13);
        let t13 = meaning::Add.call(t12, s14);
        let t14 = meaning::Divide.call(t3, t13);
        let out0 = meaning::Subtract.call(in1, t14);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct LambPhase0;

impl NativeCode<4, 9, 0, 2> for LambPhase0 {
    const IS_WHOLE: bool = false;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s1, s3, s6, s7, s8, s12, s13, s14, _]: [L; 9]) -> ([L; 0], [L; 2]) {
        let t0 = meaning::Multiply.call(in1, in1);
        let t1 = meaning::Multiply.call(s1, in2);
        let t2 = meaning::Multiply.call(s3, in0);
        let t3 = meaning::Add.call(t1, t2);
        let t4 = meaning::Divide.call(t3, s6);
        let t5 = meaning::Multiply.call(s7, in3);
        let t6 = meaning::Multiply.call(s8, in0);
        let t7 = meaning::Multiply.call(t6, in0);
        let t8 = meaning::Add.call(t5, t7);
        let t9 = meaning::Sqrt.call(t8);
        let t10 = meaning::Multiply.call(t9, s12);
        let t11 = meaning::Add.call(t10, s13);
        let t12 = meaning::Divide.call(t4, t11);
        let t13 = meaning::Multiply.call(s14, in1);
        let t14 = meaning::Add.call(t12, t13);
        let t15 = meaning::Multiply.call(t14, t14);
        ([], [t0, t15])
    }
}

pub(crate) struct LambPhase1;

impl NativeCode<4, 9, 3, 0> for LambPhase1 {
    const IS_WHOLE: bool = false;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s1, s3, s6, s7, s8, s12, s13, s14, s28]: [L; 9]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Multiply.call(s1, in2);
        let t1 = meaning::Multiply.call(s3, in0);
        let out1 = meaning::Add.call(t0, t1);
        let t3 = meaning::Divide.call(out1, s6);
        let t4 = meaning::Multiply.call(s7, in3);
        let t5 = meaning::Multiply.call(s8, in0);
        let t6 = meaning::Multiply.call(t5, in0);
        let out2 = meaning::Add.call(t4, t6);
        let t8 = meaning::Sqrt.call(out2);
        let t9 = meaning::Multiply.call(t8, s12);
        let t10 = meaning::Add.call(t9, s13);
        let t11 = meaning::Divide.call(t3, t10);
        let t12 = meaning::Multiply.call(s14, in1);
        let t13 = meaning::Add.call(t11, t12);
        let t14 = meaning::Multiply.call(s28, t13);
        let out0 = meaning::Subtract.call(in1, t14);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct NovoGradPhase0;

impl NativeCode<1, 4, 0, 1> for NovoGradPhase0 {
    const IS_WHOLE: bool = false;
    #[inline(always)]
    fn call<L: Lane>([in0]: [L; 1], [_, _, _, _]: [L; 4]) -> ([L; 0], [L; 1]) {
        let t0 = meaning::Multiply.call(in0, in0);
        ([], [t0])
    }
}

pub(crate) struct NovoGradPhase1;

impl NativeCode<3, 4, 2, 0> for NovoGradPhase1 {
    const IS_WHOLE: bool = false;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s1, s16, s10, s0]: [L; 4]) -> ([L; 2], [L; 0]) {
        let t0 = meaning::Multiply.call(s1, in2);
        let t1 = meaning::Divide.call(in0, s16);
        let t2 = meaning::Add.call(t0, t1);
        let t3 = meaning::Multiply.call(s10, in1);
        let out1 = meaning::Add.call(t2, t3);
        let t5 = meaning::Multiply.call(s0, out1);
        let out0 = meaning::Subtract.call(in1, t5);
        ([out0, out1], [])
    }
}

pub(crate) struct Sophia;

impl NativeCode<4, 12, 3, 0> for Sophia {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s1, s3, s6, s7, s8, s10, s9, s11, s0, s17, s20, s16]: [L; 12]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Multiply.call(s1, in2);
        let t1 = meaning::Multiply.call(s3, in0);
        let out1 = meaning::Add.call(t0, t1);
        let t3 = meaning::Divide.call(out1, s6);
        let t4 = meaning::Multiply.call(s7, in3);
        let t5 = meaning::Maximum.call(t4, s8);
        let t6 = meaning::Divide.call(t3, t5);
        let t7 = meaning::Maximum.call(t6, s10);
        let t8 = meaning::Minimum.call(t7, s9);
        let t9 = meaning::Multiply.call(s11, in1);
        let t10 = meaning::Add.call(t8, t9);
        let t11 = meaning::Multiply.call(s0, t10);
        let out0 = meaning::Subtract.call(in1, t11);
        let t13 = meaning::Multiply.call(s17, in3);
        let t14 = meaning::Multiply.call(s20, in0);
        let t15 = meaning::Multiply.call(t14, in0);
        let t16 = meaning::Add.call(t13, t15);
        let out2 = meaning::Where.call(s16, t16, in3);
        ([out0, out1, out2], [])
    }
}

pub(crate) struct ProdigyPhase0;

impl NativeCode<4, 9, 0, 2> for ProdigyPhase0 {
    const IS_WHOLE: bool = false;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in4, in5]: [L; 4], [_, _, _, _, _, s28, s34, _, _]: [L; 9]) -> ([L; 0], [L; 2]) {
        let t0 = meaning::Subtract.call(in5, in1);
        let t1 = meaning::Multiply.call(in0, t0);
        let t2 = meaning::Multiply.call(s28, in4);
        let t3 = meaning::Multiply.call(s34, in0);
        let t4 = meaning::Add.call(t2, t3);
        let t5 = meaning::Abs.call(t4);
        ([], [t1, t5])
    }
}

pub(crate) struct ProdigyPhase1;

impl NativeCode<5, 9, 4, 0> for ProdigyPhase1 {
    const IS_WHOLE: bool = false;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4]: [L; 5], [s17, s13, s19, s8, s22, s28, s34, s47, s16]: [L; 9]) -> ([L; 4], [L; 0]) {
        let t0 = meaning::Multiply.call(s17, in1);
        let t1 = meaning::Multiply.call(s13, in2);
        let t2 = meaning::Multiply.call(s19, in0);
        let out1 = meaning::Add.call(t1, t2);
        let t4 = meaning::Multiply.call(s8, in3);
        let t5 = meaning::Multiply.call(s22, in0);
        let t6 = meaning::Multiply.call(t5, in0);
        let out2 = meaning::Add.call(t4, t6);
        let t8 = meaning::Sqrt.call(out2);
        let t9 = meaning::Multiply.call(s28, in4);
        let t10 = meaning::Multiply.call(s34, in0);
        let out3 = meaning::Add.call(t9, t10);
        let t12 = meaning::Add.call(t8, s47);
        let t13 = meaning::Divide.call(out1, t12);
        let t14 = meaning::Add.call(t0, t13);
        let t15 = meaning::Multiply.call(s16, t14);
        let out0 = meaning::Subtract.call(in1, t15);
        ([out0, out1, out2, out3], [])
    }
}

pub(crate) struct ScheduleFreeSgd;

impl NativeCode<3, 5, 2, 0> for ScheduleFreeSgd {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s2, s0, s14, s4, s13]: [L; 5]) -> ([L; 2], [L; 0]) {
        let t0 = meaning::Multiply.call(s2, in2);
        let t1 = meaning::Subtract.call(in1, t0);
        let t2 = meaning::Divide.call(t1, s0);
        let t3 = meaning::Multiply.call(s14, in1);
        let t4 = meaning::Add.call(in0, t3);
        let t5 = meaning::Multiply.call(s4, t4);
        let out1 = meaning::Subtract.call(in2, t5);
        let t7 = meaning::Subtract.call(out1, t2);
        let t8 = meaning::Multiply.call(s13, t7);
        let t9 = meaning::Add.call(t2, t8);
        let t10 = meaning::Multiply.call(s0, t9);
        let t11 = meaning::Multiply.call(s2, out1);
        let out0 = meaning::Add.call(t10, t11);
        ([out0, out1], [])
    }
}

pub(crate) struct ScheduleFreeAdamW;

impl NativeCode<4, 9, 3, 0> for ScheduleFreeAdamW {
    const IS_WHOLE: bool = true;
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s2, s0, s14, s15, s20, s21, s22, s4, s13]: [L; 9]) -> ([L; 3], [L; 0]) {
        let t0 = meaning::Multiply.call(s2, in3);
        let t1 = meaning::Subtract.call(in1, t0);
        let t2 = meaning::Divide.call(t1, s0);
        let t3 = meaning::Multiply.call(s14, in2);
        let t4 = meaning::Multiply.call(s15, in0);
        let t5 = meaning::Multiply.call(t4, in0);
        let out1 = meaning::Add.call(t3, t5);
        let t7 = meaning::Sqrt.call(out1);
        let t8 = meaning::Multiply.call(t7, s20);
        let t9 = meaning::Add.call(t8, s21);
        let t10 = meaning::Divide.call(in0, t9);
        let t11 = meaning::Multiply.call(s22, in1);
        let t12 = meaning::Add.call(t10, t11);
        let t13 = meaning::Multiply.call(s4, t12);
        let out2 = meaning::Subtract.call(in3, t13);
        let t15 = meaning::Subtract.call(out2, t2);
        let t16 = meaning::Multiply.call(s13, t15);
        let t17 = meaning::Add.call(t2, t16);
        let t18 = meaning::Multiply.call(s0, t17);
        let t19 = meaning::Multiply.call(s2, out2);
        let out0 = meaning::Add.call(t18, t19);
        ([out0, out1, out2], [])
    }
}
