//! Printed by `print.rs` from the rules of the Python layer (`make generated`); do not edit.

use super::{Native, NativeVisitor};
use crate::kernel::Node::{self, Apply, Constant, Leaf, Scalar};
use crate::kernel::Wanted;
use crate::lane::Lane;
#[allow(unused_imports, reason = "no rule may have an op of some arity")]
use crate::op::{Binary, Ternary, Unary, meaning};
#[allow(clippy::enum_glob_use, reason = "programs name whatever ops they have")]
use crate::op::Elementwise::*;

printed! {
    Sgd 2 2 1 "s0 = scalar1\ns1 = scalar2\nphase 0: 1 registers\n  r0 = multiply(s1, in1)\n  r0 = add(in0, r0)\n  r0 = multiply(s0, r0)\n  out0 = subtract(in1, r0)\n"
    Momentum 3 4 2 "s0 = scalar1\ns1 = scalar2\ns2 = scalar0\ns3 = 1.0\ns4 = equal(s2, s3)\ns5 = scalar3\ns6 = subtract(s3, s5)\ns7 = where(s4, s3, s6)\ns8 = scalar4\nphase 0: 2 registers\n  r0 = multiply(s1, in2)\n  r1 = multiply(s8, in1)\n  r1 = add(in0, r1)\n  r1 = multiply(s7, r1)\n  out1 = add(r0, r1)\n  r1 = multiply(s0, out1)\n  out0 = subtract(in1, r1)\n"
    Nesterov 3 4 2 "s0 = scalar1\ns1 = scalar4\ns2 = scalar2\ns3 = scalar0\ns4 = 1.0\ns5 = equal(s3, s4)\ns6 = scalar3\ns7 = subtract(s4, s6)\ns8 = where(s5, s4, s7)\nphase 0: 3 registers\n  r0 = multiply(s1, in1)\n  r0 = add(in0, r0)\n  r1 = multiply(s2, in2)\n  r2 = multiply(s8, r0)\n  out1 = add(r1, r2)\n  r2 = multiply(s2, out1)\n  r2 = add(r0, r2)\n  r2 = multiply(s0, r2)\n  out0 = subtract(in1, r2)\n"
    Lion 3 6 2 "s0 = scalar1\ns1 = scalar2\ns2 = 1.0\ns3 = subtract(s2, s1)\ns4 = scalar4\ns5 = scalar3\ns6 = subtract(s2, s5)\nphase 0: 2 registers\n  r0 = multiply(s1, in2)\n  r1 = multiply(s3, in0)\n  r1 = add(r0, r1)\n  r1 = sign(r1)\n  r0 = multiply(s4, in1)\n  r0 = add(r1, r0)\n  r0 = multiply(s0, r0)\n  out0 = subtract(in1, r0)\n  r0 = multiply(s5, in2)\n  r1 = multiply(s6, in0)\n  out1 = add(r0, r1)\n"
    Adagrad 3 2 2 "s0 = scalar1\ns1 = 1.0\ns2 = scalar2\ns3 = scalar0\ns4 = subtract(s3, s1)\ns5 = multiply(s2, s4)\ns6 = add(s1, s5)\ns7 = divide(s0, s6)\ns8 = scalar4\nphase 0: 2 registers\n  r0 = multiply(s7, in0)\n  r1 = multiply(in0, in0)\n  out1 = add(in2, r1)\n  r1 = sqrt(out1)\n  r1 = add(r1, s8)\n  r1 = divide(r0, r1)\n  out0 = subtract(in1, r1)\n"
    RmsProp 3 4 2 "s0 = scalar1\ns1 = scalar2\ns2 = 1.0\ns3 = subtract(s2, s1)\ns4 = scalar3\nphase 0: 2 registers\n  r0 = multiply(s1, in2)\n  r1 = multiply(s3, in0)\n  r1 = multiply(r1, in0)\n  out1 = add(r0, r1)\n  r1 = sqrt(out1)\n  r1 = add(r1, s4)\n  r1 = divide(in0, r1)\n  r1 = multiply(s0, r1)\n  out0 = subtract(in1, r1)\n"
    Adam 4 7 3 "s0 = scalar1\ns1 = 1.0\ns2 = scalar2\ns3 = scalar0\ns4 = pow(s2, s3)\ns5 = subtract(s1, s4)\ns6 = divide(s0, s5)\ns7 = subtract(s1, s2)\ns8 = scalar3\ns9 = subtract(s1, s8)\ns10 = pow(s8, s3)\ns11 = subtract(s1, s10)\ns12 = sqrt(s11)\ns13 = divide(s1, s12)\ns14 = scalar4\nphase 0: 3 registers\n  r0 = multiply(s2, in2)\n  r1 = multiply(s7, in0)\n  out1 = add(r0, r1)\n  r1 = multiply(s6, out1)\n  r0 = multiply(s8, in3)\n  r2 = multiply(s9, in0)\n  r2 = multiply(r2, in0)\n  out2 = add(r0, r2)\n  r2 = sqrt(out2)\n  r2 = multiply(r2, s13)\n  r2 = add(r2, s14)\n  r2 = divide(r1, r2)\n  out0 = subtract(in1, r2)\n"
    AdamW 4 8 3 "s0 = 1.0\ns1 = scalar1\ns2 = scalar5\ns3 = multiply(s1, s2)\ns4 = subtract(s0, s3)\ns5 = scalar2\ns6 = scalar0\ns7 = pow(s5, s6)\ns8 = subtract(s0, s7)\ns9 = divide(s1, s8)\ns10 = subtract(s0, s5)\ns11 = scalar3\ns12 = subtract(s0, s11)\ns13 = pow(s11, s6)\ns14 = subtract(s0, s13)\ns15 = sqrt(s14)\ns16 = divide(s0, s15)\ns17 = scalar4\nphase 0: 4 registers\n  r0 = multiply(s4, in1)\n  r1 = multiply(s5, in2)\n  r2 = multiply(s10, in0)\n  out1 = add(r1, r2)\n  r2 = multiply(s9, out1)\n  r1 = multiply(s11, in3)\n  r3 = multiply(s12, in0)\n  r3 = multiply(r3, in0)\n  out2 = add(r1, r3)\n  r3 = sqrt(out2)\n  r3 = multiply(r3, s16)\n  r3 = add(r3, s17)\n  r3 = divide(r2, r3)\n  out0 = subtract(r0, r3)\n"
    AdamWMaster 5 8 4 "s0 = 1.0\ns1 = scalar1\ns2 = scalar5\ns3 = multiply(s1, s2)\ns4 = subtract(s0, s3)\ns5 = scalar2\ns6 = scalar0\ns7 = pow(s5, s6)\ns8 = subtract(s0, s7)\ns9 = divide(s1, s8)\ns10 = subtract(s0, s5)\ns11 = scalar3\ns12 = subtract(s0, s11)\ns13 = pow(s11, s6)\ns14 = subtract(s0, s13)\ns15 = sqrt(s14)\ns16 = divide(s0, s15)\ns17 = scalar4\nphase 0: 4 registers\n  r0 = multiply(s4, in4)\n  r1 = multiply(s5, in2)\n  r2 = multiply(s10, in0)\n  out1 = add(r1, r2)\n  r2 = multiply(s9, out1)\n  r1 = multiply(s11, in3)\n  r3 = multiply(s12, in0)\n  r3 = multiply(r3, in0)\n  out2 = add(r1, r3)\n  r3 = sqrt(out2)\n  r3 = multiply(r3, s16)\n  r3 = add(r3, s17)\n  r3 = divide(r2, r3)\n  out0 = subtract(r0, r3)\n  out3 = positive(out0)\n"
    AdamWKahan 5 8 4 "s0 = 1.0\ns1 = scalar1\ns2 = scalar5\ns3 = multiply(s1, s2)\ns4 = subtract(s0, s3)\ns5 = scalar2\ns6 = scalar0\ns7 = pow(s5, s6)\ns8 = subtract(s0, s7)\ns9 = divide(s1, s8)\ns10 = subtract(s0, s5)\ns11 = scalar3\ns12 = subtract(s0, s11)\ns13 = pow(s11, s6)\ns14 = subtract(s0, s13)\ns15 = sqrt(s14)\ns16 = divide(s0, s15)\ns17 = scalar4\nphase 0: 4 registers\n  r0 = add(in1, in4)\n  r0 = multiply(s4, r0)\n  r1 = multiply(s5, in2)\n  r2 = multiply(s10, in0)\n  out1 = add(r1, r2)\n  r2 = multiply(s9, out1)\n  r1 = multiply(s11, in3)\n  r3 = multiply(s12, in0)\n  r3 = multiply(r3, in0)\n  out2 = add(r1, r3)\n  r3 = sqrt(out2)\n  r3 = multiply(r3, s16)\n  r3 = add(r3, s17)\n  r3 = divide(r2, r3)\n  r3 = subtract(r0, r3)\n  out0 = round_to_bfloat16(r3)\n  out3 = subtract(r3, out0)\n"
    Stream 4 0 3 "phase 0: 0 registers\n  out0 = add(in1, in0)\n  out1 = negative(in2)\n  out2 = negative(in3)\n"
}

pub(super) const PROGRAMS: &[(&str, &[Node], Wanted)] = &[
    ("Sgd", &[Leaf(0), Leaf(1), Scalar(0), Scalar(1), Scalar(2), Apply(Multiply, [4, 1, 0]), Apply(Add, [0, 5, 0]), Apply(Multiply, [3, 6, 0]), Apply(Subtract, [1, 7, 0])], Wanted { outputs: &[8], results: &[], guard: None }),
    ("Momentum", &[Leaf(0), Leaf(1), Leaf(2), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Apply(Multiply, [7, 1, 0]), Apply(Add, [0, 8, 0]), Apply(Multiply, [5, 2, 0]), Constant(1.0), Apply(Equal, [3, 11, 0]), Constant(1.0), Apply(Subtract, [13, 6, 0]), Constant(1.0), Apply(Where, [12, 15, 14]), Apply(Multiply, [16, 9, 0]), Apply(Add, [10, 17, 0]), Apply(Multiply, [4, 18, 0]), Apply(Subtract, [1, 19, 0])], Wanted { outputs: &[20, 18], results: &[], guard: None }),
    ("Nesterov", &[Leaf(0), Leaf(1), Leaf(2), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Apply(Multiply, [7, 1, 0]), Apply(Add, [0, 8, 0]), Apply(Multiply, [5, 2, 0]), Constant(1.0), Apply(Equal, [3, 11, 0]), Constant(1.0), Apply(Subtract, [13, 6, 0]), Constant(1.0), Apply(Where, [12, 15, 14]), Apply(Multiply, [16, 9, 0]), Apply(Add, [10, 17, 0]), Apply(Multiply, [5, 18, 0]), Apply(Add, [9, 19, 0]), Apply(Multiply, [4, 20, 0]), Apply(Subtract, [1, 21, 0])], Wanted { outputs: &[22, 18], results: &[], guard: None }),
    ("Lion", &[Leaf(0), Leaf(1), Leaf(2), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Apply(Multiply, [5, 2, 0]), Constant(1.0), Apply(Subtract, [9, 5, 0]), Apply(Multiply, [10, 0, 0]), Apply(Add, [8, 11, 0]), Apply(Sign, [12, 0, 0]), Apply(Multiply, [7, 1, 0]), Apply(Add, [13, 14, 0]), Apply(Multiply, [4, 15, 0]), Apply(Subtract, [1, 16, 0]), Apply(Multiply, [6, 2, 0]), Constant(1.0), Apply(Subtract, [19, 6, 0]), Apply(Multiply, [20, 0, 0]), Apply(Add, [18, 21, 0])], Wanted { outputs: &[17, 22], results: &[], guard: None }),
    ("Adagrad", &[Leaf(0), Leaf(1), Leaf(2), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Apply(Multiply, [0, 0, 0]), Apply(Add, [2, 8, 0]), Constant(1.0), Apply(Subtract, [3, 10, 0]), Apply(Multiply, [5, 11, 0]), Constant(1.0), Apply(Add, [13, 12, 0]), Apply(Divide, [4, 14, 0]), Apply(Multiply, [15, 0, 0]), Apply(Sqrt, [9, 0, 0]), Apply(Add, [17, 7, 0]), Apply(Divide, [16, 18, 0]), Apply(Subtract, [1, 19, 0])], Wanted { outputs: &[20, 9], results: &[], guard: None }),
    ("RmsProp", &[Leaf(0), Leaf(1), Leaf(2), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Apply(Multiply, [5, 2, 0]), Constant(1.0), Apply(Subtract, [10, 5, 0]), Apply(Multiply, [11, 0, 0]), Apply(Multiply, [12, 0, 0]), Apply(Add, [9, 13, 0]), Apply(Sqrt, [14, 0, 0]), Apply(Add, [15, 6, 0]), Apply(Divide, [0, 16, 0]), Apply(Multiply, [4, 17, 0]), Apply(Subtract, [1, 18, 0])], Wanted { outputs: &[19, 14], results: &[], guard: None }),
    ("Adam", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Apply(Multiply, [6, 2, 0]), Constant(1.0), Apply(Subtract, [10, 6, 0]), Apply(Multiply, [11, 0, 0]), Apply(Add, [9, 12, 0]), Apply(Multiply, [7, 3, 0]), Constant(1.0), Apply(Subtract, [15, 7, 0]), Apply(Multiply, [16, 0, 0]), Apply(Multiply, [17, 0, 0]), Apply(Add, [14, 18, 0]), Apply(Pow, [6, 4, 0]), Constant(1.0), Apply(Subtract, [21, 20, 0]), Apply(Divide, [5, 22, 0]), Apply(Pow, [7, 4, 0]), Constant(1.0), Apply(Subtract, [25, 24, 0]), Apply(Multiply, [23, 13, 0]), Apply(Sqrt, [19, 0, 0]), Apply(Sqrt, [26, 0, 0]), Constant(1.0), Apply(Divide, [30, 29, 0]), Apply(Multiply, [28, 31, 0]), Apply(Add, [32, 8, 0]), Apply(Divide, [27, 33, 0]), Apply(Subtract, [1, 34, 0])], Wanted { outputs: &[35, 13, 19], results: &[], guard: None }),
    ("AdamW", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Apply(Multiply, [5, 9, 0]), Constant(1.0), Apply(Subtract, [11, 10, 0]), Apply(Multiply, [12, 1, 0]), Apply(Multiply, [6, 2, 0]), Constant(1.0), Apply(Subtract, [15, 6, 0]), Apply(Multiply, [16, 0, 0]), Apply(Add, [14, 17, 0]), Apply(Multiply, [7, 3, 0]), Constant(1.0), Apply(Subtract, [20, 7, 0]), Apply(Multiply, [21, 0, 0]), Apply(Multiply, [22, 0, 0]), Apply(Add, [19, 23, 0]), Apply(Pow, [6, 4, 0]), Constant(1.0), Apply(Subtract, [26, 25, 0]), Apply(Divide, [5, 27, 0]), Apply(Pow, [7, 4, 0]), Constant(1.0), Apply(Subtract, [30, 29, 0]), Apply(Multiply, [28, 18, 0]), Apply(Sqrt, [24, 0, 0]), Apply(Sqrt, [31, 0, 0]), Constant(1.0), Apply(Divide, [35, 34, 0]), Apply(Multiply, [33, 36, 0]), Apply(Add, [37, 8, 0]), Apply(Divide, [32, 38, 0]), Apply(Subtract, [13, 39, 0])], Wanted { outputs: &[40, 18, 24], results: &[], guard: None }),
    ("AdamWMaster", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Leaf(4), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Apply(Multiply, [6, 10, 0]), Constant(1.0), Apply(Subtract, [12, 11, 0]), Apply(Multiply, [13, 4, 0]), Apply(Multiply, [7, 2, 0]), Constant(1.0), Apply(Subtract, [16, 7, 0]), Apply(Multiply, [17, 0, 0]), Apply(Add, [15, 18, 0]), Apply(Multiply, [8, 3, 0]), Constant(1.0), Apply(Subtract, [21, 8, 0]), Apply(Multiply, [22, 0, 0]), Apply(Multiply, [23, 0, 0]), Apply(Add, [20, 24, 0]), Apply(Pow, [7, 5, 0]), Constant(1.0), Apply(Subtract, [27, 26, 0]), Apply(Divide, [6, 28, 0]), Apply(Pow, [8, 5, 0]), Constant(1.0), Apply(Subtract, [31, 30, 0]), Apply(Multiply, [29, 19, 0]), Apply(Sqrt, [25, 0, 0]), Apply(Sqrt, [32, 0, 0]), Constant(1.0), Apply(Divide, [36, 35, 0]), Apply(Multiply, [34, 37, 0]), Apply(Add, [38, 9, 0]), Apply(Divide, [33, 39, 0]), Apply(Subtract, [14, 40, 0])], Wanted { outputs: &[41, 19, 25, 41], results: &[], guard: None }),
    ("AdamWKahan", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Leaf(4), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Apply(Add, [1, 4, 0]), Apply(Multiply, [6, 10, 0]), Constant(1.0), Apply(Subtract, [13, 12, 0]), Apply(Multiply, [14, 11, 0]), Apply(Multiply, [7, 2, 0]), Constant(1.0), Apply(Subtract, [17, 7, 0]), Apply(Multiply, [18, 0, 0]), Apply(Add, [16, 19, 0]), Apply(Multiply, [8, 3, 0]), Constant(1.0), Apply(Subtract, [22, 8, 0]), Apply(Multiply, [23, 0, 0]), Apply(Multiply, [24, 0, 0]), Apply(Add, [21, 25, 0]), Apply(Pow, [7, 5, 0]), Constant(1.0), Apply(Subtract, [28, 27, 0]), Apply(Divide, [6, 29, 0]), Apply(Pow, [8, 5, 0]), Constant(1.0), Apply(Subtract, [32, 31, 0]), Apply(Multiply, [30, 20, 0]), Apply(Sqrt, [26, 0, 0]), Apply(Sqrt, [33, 0, 0]), Constant(1.0), Apply(Divide, [37, 36, 0]), Apply(Multiply, [35, 38, 0]), Apply(Add, [39, 9, 0]), Apply(Divide, [34, 40, 0]), Apply(Subtract, [15, 41, 0]), Apply(RoundToBfloat16, [42, 0, 0]), Apply(Subtract, [42, 43, 0])], Wanted { outputs: &[43, 20, 26, 44], results: &[], guard: None }),
    ("Stream", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Apply(Add, [1, 0, 0]), Apply(Negative, [2, 0, 0]), Apply(Negative, [3, 0, 0])], Wanted { outputs: &[5, 6, 7], results: &[], guard: None }),
];

pub(crate) struct Sgd;

impl Native<2, 2, 1> for Sgd {
    #[inline(always)]
    fn call<L: Lane>([in0, in1]: [L; 2], [s1, s0]: [L; 2]) -> [L; 1] {
        let t0 = meaning::Multiply.call(s1, in1);
        let t1 = meaning::Add.call(in0, t0);
        let t2 = meaning::Multiply.call(s0, t1);
        let out0 = meaning::Subtract.call(in1, t2);
        [out0]
    }
}

pub(crate) struct Momentum;

impl Native<3, 4, 2> for Momentum {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s1, s8, s7, s0]: [L; 4]) -> [L; 2] {
        let t0 = meaning::Multiply.call(s1, in2);
        let t1 = meaning::Multiply.call(s8, in1);
        let t2 = meaning::Add.call(in0, t1);
        let t3 = meaning::Multiply.call(s7, t2);
        let out1 = meaning::Add.call(t0, t3);
        let t5 = meaning::Multiply.call(s0, out1);
        let out0 = meaning::Subtract.call(in1, t5);
        [out0, out1]
    }
}

pub(crate) struct Nesterov;

impl Native<3, 4, 2> for Nesterov {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s1, s2, s8, s0]: [L; 4]) -> [L; 2] {
        let t0 = meaning::Multiply.call(s1, in1);
        let t1 = meaning::Add.call(in0, t0);
        let t2 = meaning::Multiply.call(s2, in2);
        let t3 = meaning::Multiply.call(s8, t1);
        let out1 = meaning::Add.call(t2, t3);
        let t5 = meaning::Multiply.call(s2, out1);
        let t6 = meaning::Add.call(t1, t5);
        let t7 = meaning::Multiply.call(s0, t6);
        let out0 = meaning::Subtract.call(in1, t7);
        [out0, out1]
    }
}

pub(crate) struct Lion;

impl Native<3, 6, 2> for Lion {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s1, s3, s4, s0, s5, s6]: [L; 6]) -> [L; 2] {
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
        [out0, out1]
    }
}

pub(crate) struct Adagrad;

impl Native<3, 2, 2> for Adagrad {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s7, s8]: [L; 2]) -> [L; 2] {
        let t0 = meaning::Multiply.call(s7, in0);
        let t1 = meaning::Multiply.call(in0, in0);
        let out1 = meaning::Add.call(in2, t1);
        let t3 = meaning::Sqrt.call(out1);
        let t4 = meaning::Add.call(t3, s8);
        let t5 = meaning::Divide.call(t0, t4);
        let out0 = meaning::Subtract.call(in1, t5);
        [out0, out1]
    }
}

pub(crate) struct RmsProp;

impl Native<3, 4, 2> for RmsProp {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s1, s3, s4, s0]: [L; 4]) -> [L; 2] {
        let t0 = meaning::Multiply.call(s1, in2);
        let t1 = meaning::Multiply.call(s3, in0);
        let t2 = meaning::Multiply.call(t1, in0);
        let out1 = meaning::Add.call(t0, t2);
        let t4 = meaning::Sqrt.call(out1);
        let t5 = meaning::Add.call(t4, s4);
        let t6 = meaning::Divide.call(in0, t5);
        let t7 = meaning::Multiply.call(s0, t6);
        let out0 = meaning::Subtract.call(in1, t7);
        [out0, out1]
    }
}

pub(crate) struct Adam;

impl Native<4, 7, 3> for Adam {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s2, s7, s6, s8, s9, s13, s14]: [L; 7]) -> [L; 3] {
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
        [out0, out1, out2]
    }
}

pub(crate) struct AdamW;

impl Native<4, 8, 3> for AdamW {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s4, s5, s10, s9, s11, s12, s16, s17]: [L; 8]) -> [L; 3] {
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
        [out0, out1, out2]
    }
}

pub(crate) struct AdamWMaster;

impl Native<5, 8, 4> for AdamWMaster {
    #[inline(always)]
    fn call<L: Lane>([in0, _, in2, in3, in4]: [L; 5], [s4, s5, s10, s9, s11, s12, s16, s17]: [L; 8]) -> [L; 4] {
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
        [out0, out1, out2, out3]
    }
}

pub(crate) struct AdamWKahan;

impl Native<5, 8, 4> for AdamWKahan {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4]: [L; 5], [s4, s5, s10, s9, s11, s12, s16, s17]: [L; 8]) -> [L; 4] {
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
        [out0, out1, out2, out3]
    }
}

pub(crate) struct Stream;

impl Native<4, 0, 3> for Stream {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], []: [L; 0]) -> [L; 3] {
        let out0 = meaning::Add.call(in1, in0);
        let out1 = meaning::Negative.call(in2);
        let out2 = meaning::Negative.call(in3);
        [out0, out1, out2]
    }
}
