//! Printed by `print.rs` from the kernels in `tests/native.rs`; do not edit.

use super::{Native, NativeVisitor};
use crate::lane::Lane;
#[allow(unused_imports, reason = "no rule may have an op of some arity")]
use crate::op::{Binary, Ternary, Unary, meaning};

printed! {
    Adam 4 7 3 "s0 = scalar0\ns1 = 1.0\ns2 = scalar1\ns3 = scalar4\ns4 = pow(s2, s3)\ns5 = subtract(s1, s4)\ns6 = divide(s0, s5)\ns7 = subtract(s1, s2)\ns8 = scalar2\ns9 = subtract(s1, s8)\ns10 = pow(s8, s3)\ns11 = subtract(s1, s10)\ns12 = sqrt(s11)\ns13 = divide(s1, s12)\ns14 = scalar3\nphase 0: 3 registers\n  r0 = multiply(s2, in2)\n  r1 = multiply(s7, in1)\n  out1 = add(r0, r1)\n  r1 = multiply(s6, out1)\n  r0 = multiply(s8, in3)\n  r2 = multiply(s9, in1)\n  r2 = multiply(r2, in1)\n  out2 = add(r0, r2)\n  r2 = sqrt(out2)\n  r2 = multiply(r2, s13)\n  r2 = add(r2, s14)\n  r2 = divide(r1, r2)\n  out0 = subtract(in0, r2)\n"
    AdamW 4 8 3 "s0 = scalar0\ns1 = scalar5\ns2 = multiply(s0, s1)\ns3 = 1.0\ns4 = scalar1\ns5 = scalar4\ns6 = pow(s4, s5)\ns7 = subtract(s3, s6)\ns8 = divide(s0, s7)\ns9 = subtract(s3, s4)\ns10 = scalar2\ns11 = subtract(s3, s10)\ns12 = pow(s10, s5)\ns13 = subtract(s3, s12)\ns14 = sqrt(s13)\ns15 = divide(s3, s14)\ns16 = scalar3\nphase 0: 4 registers\n  r0 = multiply(s2, in0)\n  r0 = subtract(in0, r0)\n  r1 = multiply(s4, in2)\n  r2 = multiply(s9, in1)\n  out1 = add(r1, r2)\n  r2 = multiply(s8, out1)\n  r1 = multiply(s10, in3)\n  r3 = multiply(s11, in1)\n  r3 = multiply(r3, in1)\n  out2 = add(r1, r3)\n  r3 = sqrt(out2)\n  r3 = multiply(r3, s15)\n  r3 = add(r3, s16)\n  r3 = divide(r2, r3)\n  out0 = subtract(r0, r3)\n"
    Sgd 2 1 1 "s0 = scalar0\nphase 0: 1 registers\n  r0 = multiply(s0, in1)\n  out0 = subtract(in0, r0)\n"
}

pub(crate) struct Adam;

impl Native<4, 7, 3> for Adam {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s2, s7, s6, s8, s9, s13, s14]: [L; 7]) -> [L; 3] {
        let t0 = meaning::Multiply.call(s2, in2);
        let t1 = meaning::Multiply.call(s7, in1);
        let out1 = meaning::Add.call(t0, t1);
        let t3 = meaning::Multiply.call(s6, out1);
        let t4 = meaning::Multiply.call(s8, in3);
        let t5 = meaning::Multiply.call(s9, in1);
        let t6 = meaning::Multiply.call(t5, in1);
        let out2 = meaning::Add.call(t4, t6);
        let t8 = meaning::Sqrt.call(out2);
        let t9 = meaning::Multiply.call(t8, s13);
        let t10 = meaning::Add.call(t9, s14);
        let t11 = meaning::Divide.call(t3, t10);
        let out0 = meaning::Subtract.call(in0, t11);
        [out0, out1, out2]
    }
}

pub(crate) struct AdamW;

impl Native<4, 8, 3> for AdamW {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s2, s4, s9, s8, s10, s11, s15, s16]: [L; 8]) -> [L; 3] {
        let t0 = meaning::Multiply.call(s2, in0);
        let t1 = meaning::Subtract.call(in0, t0);
        let t2 = meaning::Multiply.call(s4, in2);
        let t3 = meaning::Multiply.call(s9, in1);
        let out1 = meaning::Add.call(t2, t3);
        let t5 = meaning::Multiply.call(s8, out1);
        let t6 = meaning::Multiply.call(s10, in3);
        let t7 = meaning::Multiply.call(s11, in1);
        let t8 = meaning::Multiply.call(t7, in1);
        let out2 = meaning::Add.call(t6, t8);
        let t10 = meaning::Sqrt.call(out2);
        let t11 = meaning::Multiply.call(t10, s15);
        let t12 = meaning::Add.call(t11, s16);
        let t13 = meaning::Divide.call(t5, t12);
        let out0 = meaning::Subtract.call(t1, t13);
        [out0, out1, out2]
    }
}

pub(crate) struct Sgd;

impl Native<2, 1, 1> for Sgd {
    #[inline(always)]
    fn call<L: Lane>([in0, in1]: [L; 2], [s0]: [L; 1]) -> [L; 1] {
        let t0 = meaning::Multiply.call(s0, in1);
        let out0 = meaning::Subtract.call(in0, t0);
        [out0]
    }
}
