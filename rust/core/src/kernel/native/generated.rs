//! Printed by `kernel/codegen.rs` from the rules of the Python layer (`make generated`); do not edit.

use super::{Native, NativeVisitor};
use crate::kernel::Node::{self, Apply, Constant, Leaf, Scalar};
use crate::kernel::Wanted;
use crate::simd::Lane;
#[allow(unused_imports, reason = "no rule may have an op of some arity")]
use crate::op::{Binary, Ternary, Unary, meaning};
#[allow(clippy::enum_glob_use, reason = "programs name whatever ops they have")]
use crate::op::Elementwise::*;

printed! {
    Sgd 2 2 1 "s0 = scalar1\ns1 = scalar3\nphase 0: 1 registers\n  r0 = multiply(s1, in1)\n  r0 = add(in0, r0)\n  r0 = multiply(s0, r0)\n  out0 = subtract(in1, r0)\n"
    Momentum 3 4 2 "s0 = scalar1\ns1 = scalar2\ns2 = scalar0\ns3 = 1.0\ns4 = equal(s2, s3)\ns5 = scalar4\ns6 = subtract(s3, s5)\ns7 = where(s4, s3, s6)\ns8 = scalar3\nphase 0: 2 registers\n  r0 = multiply(s1, in2)\n  r1 = multiply(s8, in1)\n  r1 = add(in0, r1)\n  r1 = multiply(s7, r1)\n  out1 = add(r0, r1)\n  r1 = multiply(s0, out1)\n  out0 = subtract(in1, r1)\n"
    Nesterov 3 4 2 "s0 = scalar1\ns1 = scalar3\ns2 = scalar2\ns3 = scalar0\ns4 = 1.0\ns5 = equal(s3, s4)\ns6 = scalar4\ns7 = subtract(s4, s6)\ns8 = where(s5, s4, s7)\nphase 0: 3 registers\n  r0 = multiply(s1, in1)\n  r0 = add(in0, r0)\n  r1 = multiply(s2, in2)\n  r2 = multiply(s8, r0)\n  out1 = add(r1, r2)\n  r2 = multiply(s2, out1)\n  r2 = add(r0, r2)\n  r2 = multiply(s0, r2)\n  out0 = subtract(in1, r2)\n"
    Asgd 3 5 2 "s0 = 1.0\ns1 = scalar4\ns2 = scalar1\ns3 = multiply(s1, s2)\ns4 = scalar0\ns5 = subtract(s4, s0)\ns6 = multiply(s3, s5)\ns7 = add(s0, s6)\ns8 = scalar5\ns9 = pow(s7, s8)\ns10 = divide(s2, s9)\ns11 = multiply(s1, s10)\ns12 = subtract(s0, s11)\ns13 = scalar2\ns14 = scalar3\ns15 = subtract(s4, s14)\ns16 = add(s15, s0)\ns17 = greater(s16, s0)\ns18 = maximum(s0, s16)\nphase 0: 2 registers\n  r0 = multiply(s12, in1)\n  r1 = multiply(s13, in1)\n  r1 = add(in0, r1)\n  r1 = multiply(s10, r1)\n  out0 = subtract(r0, r1)\n  r1 = subtract(out0, in2)\n  r1 = divide(r1, s18)\n  r1 = add(in2, r1)\n  out1 = where(s17, r1, out0)\nresult0 = s2\n"
    Rprop 4 6 3 "s0 = 0.0\ns1 = scalar3\ns2 = scalar2\ns3 = 1.0\ns4 = scalar4\ns5 = scalar5\nphase 0: 3 registers\n  r0 = multiply(in0, in2)\n  r1 = less(r0, s0)\n  r0 = greater(r0, s0)\n  r2 = where(r1, s2, s3)\n  r2 = where(r0, s1, r2)\n  r2 = multiply(in3, r2)\n  r2 = maximum(r2, s4)\n  out2 = minimum(r2, s5)\n  r2 = sign(in0)\n  r2 = multiply(out2, r2)\n  out1 = where(r1, s0, r2)\n  out0 = subtract(in1, out1)\n"
    Signum 3 3 2 "s0 = scalar1\ns1 = scalar2\ns2 = 1.0\ns3 = subtract(s2, s1)\nphase 0: 2 registers\n  r0 = multiply(s1, in2)\n  r1 = multiply(s3, in0)\n  out1 = add(r0, r1)\n  r1 = sign(out1)\n  r1 = multiply(s0, r1)\n  out0 = subtract(in1, r1)\n"
    Lion 3 6 2 "s0 = scalar1\ns1 = scalar2\ns2 = 1.0\ns3 = subtract(s2, s1)\ns4 = scalar4\ns5 = scalar3\ns6 = subtract(s2, s5)\nphase 0: 2 registers\n  r0 = multiply(s1, in2)\n  r1 = multiply(s3, in0)\n  r1 = add(r0, r1)\n  r1 = sign(r1)\n  r0 = multiply(s4, in1)\n  r0 = add(r1, r0)\n  r0 = multiply(s0, r0)\n  out0 = subtract(in1, r0)\n  r0 = multiply(s5, in2)\n  r1 = multiply(s6, in0)\n  out1 = add(r0, r1)\n"
    Adagrad 3 2 2 "s0 = scalar1\ns1 = 1.0\ns2 = scalar2\ns3 = scalar0\ns4 = subtract(s3, s1)\ns5 = multiply(s2, s4)\ns6 = add(s1, s5)\ns7 = divide(s0, s6)\ns8 = scalar4\nphase 0: 2 registers\n  r0 = multiply(s7, in0)\n  r1 = multiply(in0, in0)\n  out1 = add(in2, r1)\n  r1 = sqrt(out1)\n  r1 = add(r1, s8)\n  r1 = divide(r0, r1)\n  out0 = subtract(in1, r1)\n"
    Adadelta 4 4 3 "s0 = scalar1\ns1 = scalar3\ns2 = scalar2\ns3 = 1.0\ns4 = subtract(s3, s2)\nphase 0: 3 registers\n  r0 = add(in3, s1)\n  r0 = sqrt(r0)\n  r1 = multiply(s2, in2)\n  r2 = multiply(s4, in0)\n  r2 = multiply(r2, in0)\n  out1 = add(r1, r2)\n  r2 = add(out1, s1)\n  r2 = sqrt(r2)\n  r2 = divide(r0, r2)\n  r2 = multiply(r2, in0)\n  r0 = multiply(s0, r2)\n  out0 = subtract(in1, r0)\n  r0 = multiply(s2, in3)\n  r1 = multiply(s4, r2)\n  r1 = multiply(r1, r2)\n  out2 = add(r0, r1)\n"
    RmsProp 3 4 2 "s0 = scalar1\ns1 = scalar2\ns2 = 1.0\ns3 = subtract(s2, s1)\ns4 = scalar3\nphase 0: 2 registers\n  r0 = multiply(s1, in2)\n  r1 = multiply(s3, in0)\n  r1 = multiply(r1, in0)\n  out1 = add(r0, r1)\n  r1 = sqrt(out1)\n  r1 = add(r1, s4)\n  r1 = divide(in0, r1)\n  r1 = multiply(s0, r1)\n  out0 = subtract(in1, r1)\n"
    RmsPropMomentum 4 5 3 "s0 = scalar1\ns1 = scalar4\ns2 = scalar2\ns3 = 1.0\ns4 = subtract(s3, s2)\ns5 = scalar3\nphase 0: 3 registers\n  r0 = multiply(s1, in3)\n  r1 = multiply(s2, in2)\n  r2 = multiply(s4, in0)\n  r2 = multiply(r2, in0)\n  out1 = add(r1, r2)\n  r2 = sqrt(out1)\n  r2 = add(r2, s5)\n  r2 = divide(in0, r2)\n  out2 = add(r0, r2)\n  r2 = multiply(s0, out2)\n  out0 = subtract(in1, r2)\n"
    RmsPropCentered 4 5 3 "s0 = scalar1\ns1 = scalar2\ns2 = 1.0\ns3 = subtract(s2, s1)\ns4 = 0.0\ns5 = scalar3\nphase 0: 3 registers\n  r0 = multiply(s1, in2)\n  r1 = multiply(s3, in0)\n  r2 = multiply(r1, in0)\n  out1 = add(r0, r2)\n  r2 = multiply(s1, in3)\n  out2 = add(r2, r1)\n  r2 = multiply(out2, out2)\n  r2 = subtract(out1, r2)\n  r2 = maximum(r2, s4)\n  r2 = sqrt(r2)\n  r2 = add(r2, s5)\n  r2 = divide(in0, r2)\n  r2 = multiply(s0, r2)\n  out0 = subtract(in1, r2)\n"
    Ftrl 4 6 3 "s0 = 2.0\ns1 = scalar6\ns2 = multiply(s0, s1)\ns3 = scalar2\ns4 = negative(s3)\ns5 = scalar1\ns6 = scalar4\ns7 = negative(s6)\ns8 = scalar5\ns9 = scalar7\ns10 = multiply(s0, s5)\ns11 = divide(s9, s10)\ns12 = add(s8, s11)\ns13 = multiply(s0, s12)\nphase 0: 3 registers\n  r0 = add(in2, in0)\n  r1 = multiply(s2, in1)\n  r1 = add(r0, r1)\n  r0 = multiply(in0, in0)\n  out2 = add(in3, r0)\n  r0 = pow(out2, s4)\n  r2 = pow(in3, s4)\n  r2 = subtract(r0, r2)\n  r2 = divide(r2, s5)\n  r2 = multiply(r2, in1)\n  out1 = subtract(r1, r2)\n  r2 = maximum(out1, s7)\n  r2 = minimum(r2, s6)\n  r2 = subtract(r2, out1)\n  r0 = divide(r0, s5)\n  r0 = add(r0, s13)\n  out0 = divide(r2, r0)\n"
    Madgrad 5 5 3 "s0 = scalar2\ns1 = 1.0\ns2 = subtract(s1, s0)\ns3 = scalar1\ns4 = scalar3\ns5 = add(s3, s4)\ns6 = scalar0\ns7 = sqrt(s6)\ns8 = multiply(s5, s7)\ns9 = 0.3333333333333333\nphase 0: 2 registers\n  r0 = multiply(s0, in1)\n  r1 = multiply(s8, in0)\n  out2 = add(in3, r1)\n  r1 = multiply(r1, in0)\n  out1 = add(in2, r1)\n  r1 = pow(out1, s9)\n  r1 = add(r1, s4)\n  r1 = divide(out2, r1)\n  r1 = subtract(in4, r1)\n  r1 = multiply(s2, r1)\n  out0 = add(r0, r1)\n"
    Adam 4 7 3 "s0 = scalar1\ns1 = 1.0\ns2 = scalar2\ns3 = scalar0\ns4 = pow(s2, s3)\ns5 = subtract(s1, s4)\ns6 = divide(s0, s5)\ns7 = subtract(s1, s2)\ns8 = scalar3\ns9 = subtract(s1, s8)\ns10 = pow(s8, s3)\ns11 = subtract(s1, s10)\ns12 = sqrt(s11)\ns13 = divide(s1, s12)\ns14 = scalar4\nphase 0: 3 registers\n  r0 = multiply(s2, in2)\n  r1 = multiply(s7, in0)\n  out1 = add(r0, r1)\n  r1 = multiply(s6, out1)\n  r0 = multiply(s8, in3)\n  r2 = multiply(s9, in0)\n  r2 = multiply(r2, in0)\n  out2 = add(r0, r2)\n  r2 = sqrt(out2)\n  r2 = multiply(r2, s13)\n  r2 = add(r2, s14)\n  r2 = divide(r1, r2)\n  out0 = subtract(in1, r2)\n"
    AdamAmsgrad 5 7 4 "s0 = scalar1\ns1 = 1.0\ns2 = scalar2\ns3 = scalar0\ns4 = pow(s2, s3)\ns5 = subtract(s1, s4)\ns6 = divide(s0, s5)\ns7 = subtract(s1, s2)\ns8 = scalar3\ns9 = subtract(s1, s8)\ns10 = pow(s8, s3)\ns11 = subtract(s1, s10)\ns12 = sqrt(s11)\ns13 = divide(s1, s12)\ns14 = scalar4\nphase 0: 3 registers\n  r0 = multiply(s2, in2)\n  r1 = multiply(s7, in0)\n  out1 = add(r0, r1)\n  r1 = multiply(s6, out1)\n  r0 = multiply(s8, in3)\n  r2 = multiply(s9, in0)\n  r2 = multiply(r2, in0)\n  out2 = add(r0, r2)\n  out3 = maximum(in4, out2)\n  r2 = sqrt(out3)\n  r2 = multiply(r2, s13)\n  r2 = add(r2, s14)\n  r2 = divide(r1, r2)\n  out0 = subtract(in1, r2)\n"
    AdamW 4 8 3 "s0 = 1.0\ns1 = scalar1\ns2 = scalar5\ns3 = multiply(s1, s2)\ns4 = subtract(s0, s3)\ns5 = scalar2\ns6 = scalar0\ns7 = pow(s5, s6)\ns8 = subtract(s0, s7)\ns9 = divide(s1, s8)\ns10 = subtract(s0, s5)\ns11 = scalar3\ns12 = subtract(s0, s11)\ns13 = pow(s11, s6)\ns14 = subtract(s0, s13)\ns15 = sqrt(s14)\ns16 = divide(s0, s15)\ns17 = scalar4\nphase 0: 4 registers\n  r0 = multiply(s4, in1)\n  r1 = multiply(s5, in2)\n  r2 = multiply(s10, in0)\n  out1 = add(r1, r2)\n  r2 = multiply(s9, out1)\n  r1 = multiply(s11, in3)\n  r3 = multiply(s12, in0)\n  r3 = multiply(r3, in0)\n  out2 = add(r1, r3)\n  r3 = sqrt(out2)\n  r3 = multiply(r3, s16)\n  r3 = add(r3, s17)\n  r3 = divide(r2, r3)\n  out0 = subtract(r0, r3)\n"
    AdamWAmsgrad 5 8 4 "s0 = 1.0\ns1 = scalar1\ns2 = scalar5\ns3 = multiply(s1, s2)\ns4 = subtract(s0, s3)\ns5 = scalar2\ns6 = scalar0\ns7 = pow(s5, s6)\ns8 = subtract(s0, s7)\ns9 = divide(s1, s8)\ns10 = subtract(s0, s5)\ns11 = scalar3\ns12 = subtract(s0, s11)\ns13 = pow(s11, s6)\ns14 = subtract(s0, s13)\ns15 = sqrt(s14)\ns16 = divide(s0, s15)\ns17 = scalar4\nphase 0: 4 registers\n  r0 = multiply(s4, in1)\n  r1 = multiply(s5, in2)\n  r2 = multiply(s10, in0)\n  out1 = add(r1, r2)\n  r2 = multiply(s9, out1)\n  r1 = multiply(s11, in3)\n  r3 = multiply(s12, in0)\n  r3 = multiply(r3, in0)\n  out2 = add(r1, r3)\n  out3 = maximum(in4, out2)\n  r3 = sqrt(out3)\n  r3 = multiply(r3, s16)\n  r3 = add(r3, s17)\n  r3 = divide(r2, r3)\n  out0 = subtract(r0, r3)\n"
    AdamWMaster 5 8 4 "s0 = 1.0\ns1 = scalar1\ns2 = scalar5\ns3 = multiply(s1, s2)\ns4 = subtract(s0, s3)\ns5 = scalar2\ns6 = scalar0\ns7 = pow(s5, s6)\ns8 = subtract(s0, s7)\ns9 = divide(s1, s8)\ns10 = subtract(s0, s5)\ns11 = scalar3\ns12 = subtract(s0, s11)\ns13 = pow(s11, s6)\ns14 = subtract(s0, s13)\ns15 = sqrt(s14)\ns16 = divide(s0, s15)\ns17 = scalar4\nphase 0: 4 registers\n  r0 = multiply(s4, in4)\n  r1 = multiply(s5, in2)\n  r2 = multiply(s10, in0)\n  out1 = add(r1, r2)\n  r2 = multiply(s9, out1)\n  r1 = multiply(s11, in3)\n  r3 = multiply(s12, in0)\n  r3 = multiply(r3, in0)\n  out2 = add(r1, r3)\n  r3 = sqrt(out2)\n  r3 = multiply(r3, s16)\n  r3 = add(r3, s17)\n  r3 = divide(r2, r3)\n  out0 = subtract(r0, r3)\n  out3 = positive(out0)\n"
    AdamWKahan 5 8 4 "s0 = 1.0\ns1 = scalar1\ns2 = scalar5\ns3 = multiply(s1, s2)\ns4 = subtract(s0, s3)\ns5 = scalar2\ns6 = scalar0\ns7 = pow(s5, s6)\ns8 = subtract(s0, s7)\ns9 = divide(s1, s8)\ns10 = subtract(s0, s5)\ns11 = scalar3\ns12 = subtract(s0, s11)\ns13 = pow(s11, s6)\ns14 = subtract(s0, s13)\ns15 = sqrt(s14)\ns16 = divide(s0, s15)\ns17 = scalar4\nphase 0: 4 registers\n  r0 = add(in1, in4)\n  r0 = multiply(s4, r0)\n  r1 = multiply(s5, in2)\n  r2 = multiply(s10, in0)\n  out1 = add(r1, r2)\n  r2 = multiply(s9, out1)\n  r1 = multiply(s11, in3)\n  r3 = multiply(s12, in0)\n  r3 = multiply(r3, in0)\n  out2 = add(r1, r3)\n  r3 = sqrt(out2)\n  r3 = multiply(r3, s16)\n  r3 = add(r3, s17)\n  r3 = divide(r2, r3)\n  r3 = subtract(r0, r3)\n  out0 = round_to_bfloat16(r3)\n  out3 = subtract(r3, out0)\n"
    AdamWAverage 5 10 4 "s0 = 1.0\ns1 = scalar1\ns2 = scalar5\ns3 = multiply(s1, s2)\ns4 = subtract(s0, s3)\ns5 = scalar2\ns6 = scalar0\ns7 = pow(s5, s6)\ns8 = subtract(s0, s7)\ns9 = divide(s1, s8)\ns10 = subtract(s0, s5)\ns11 = scalar3\ns12 = subtract(s0, s11)\ns13 = pow(s11, s6)\ns14 = subtract(s0, s13)\ns15 = sqrt(s14)\ns16 = divide(s0, s15)\ns17 = scalar4\ns18 = scalar6\ns19 = subtract(s0, s18)\nphase 0: 4 registers\n  r0 = multiply(s4, in1)\n  r1 = multiply(s5, in2)\n  r2 = multiply(s10, in0)\n  out1 = add(r1, r2)\n  r2 = multiply(s9, out1)\n  r1 = multiply(s11, in3)\n  r3 = multiply(s12, in0)\n  r3 = multiply(r3, in0)\n  out2 = add(r1, r3)\n  r3 = sqrt(out2)\n  r3 = multiply(r3, s16)\n  r3 = add(r3, s17)\n  r3 = divide(r2, r3)\n  out0 = subtract(r0, r3)\n  r3 = multiply(s18, in4)\n  r0 = multiply(s19, out0)\n  out3 = add(r3, r0)\n"
    Adamax 4 5 3 "s0 = scalar1\ns1 = 1.0\ns2 = scalar2\ns3 = scalar0\ns4 = pow(s2, s3)\ns5 = subtract(s1, s4)\ns6 = divide(s0, s5)\ns7 = subtract(s1, s2)\ns8 = scalar3\ns9 = scalar4\nphase 0: 3 registers\n  r0 = multiply(s2, in2)\n  r1 = multiply(s7, in0)\n  out1 = add(r0, r1)\n  r1 = multiply(s6, out1)\n  r0 = multiply(s8, in3)\n  r2 = abs(in0)\n  r2 = add(r2, s9)\n  out2 = maximum(r0, r2)\n  r1 = divide(r1, out2)\n  out0 = subtract(in1, r1)\n"
    NAdam 4 9 3 "s0 = scalar1\ns1 = 1.0\ns2 = scalar2\ns3 = 0.5\ns4 = 0.96\ns5 = scalar0\ns6 = scalar5\ns7 = multiply(s5, s6)\ns8 = pow(s4, s7)\ns9 = multiply(s3, s8)\ns10 = subtract(s1, s9)\ns11 = multiply(s2, s10)\ns12 = subtract(s1, s11)\ns13 = scalar6\ns14 = multiply(s13, s11)\ns15 = subtract(s1, s14)\ns16 = divide(s12, s15)\ns17 = add(s5, s1)\ns18 = multiply(s17, s6)\ns19 = pow(s4, s18)\ns20 = multiply(s3, s19)\ns21 = subtract(s1, s20)\ns22 = multiply(s2, s21)\ns23 = multiply(s14, s22)\ns24 = subtract(s1, s23)\ns25 = divide(s22, s24)\ns26 = subtract(s1, s2)\ns27 = scalar3\ns28 = subtract(s1, s27)\ns29 = pow(s27, s5)\ns30 = subtract(s1, s29)\ns31 = sqrt(s30)\ns32 = divide(s1, s31)\ns33 = scalar4\nphase 0: 3 registers\n  r0 = multiply(s16, in0)\n  r1 = multiply(s2, in2)\n  r2 = multiply(s26, in0)\n  out1 = add(r1, r2)\n  r2 = multiply(s25, out1)\n  r2 = add(r0, r2)\n  r2 = multiply(s0, r2)\n  r0 = multiply(s27, in3)\n  r1 = multiply(s28, in0)\n  r1 = multiply(r1, in0)\n  out2 = add(r0, r1)\n  r1 = sqrt(out2)\n  r1 = multiply(r1, s32)\n  r1 = add(r1, s33)\n  r1 = divide(r2, r1)\n  out0 = subtract(in1, r1)\nresult0 = s14\n"
    RAdam 4 10 3 "s0 = scalar1\ns1 = 1.0\ns2 = scalar2\ns3 = scalar0\ns4 = pow(s2, s3)\ns5 = subtract(s1, s4)\ns6 = divide(s0, s5)\ns7 = 2.0\ns8 = scalar3\ns9 = subtract(s1, s8)\ns10 = divide(s7, s9)\ns11 = subtract(s10, s1)\ns12 = multiply(s7, s3)\ns13 = pow(s8, s3)\ns14 = multiply(s12, s13)\ns15 = subtract(s1, s13)\ns16 = divide(s14, s15)\ns17 = subtract(s11, s16)\ns18 = scalar5\ns19 = greater(s17, s18)\ns20 = 4.0\ns21 = subtract(s17, s20)\ns22 = subtract(s17, s7)\ns23 = multiply(s21, s22)\ns24 = multiply(s23, s11)\ns25 = subtract(s11, s20)\ns26 = subtract(s11, s7)\ns27 = multiply(s25, s26)\ns28 = multiply(s27, s17)\ns29 = divide(s24, s28)\ns30 = 0.0\ns31 = maximum(s29, s30)\ns32 = sqrt(s31)\ns33 = scalar4\ns34 = sqrt(s15)\ns35 = divide(s1, s34)\ns36 = subtract(s1, s2)\nphase 0: 3 registers\n  r0 = multiply(s8, in3)\n  r1 = multiply(s9, in0)\n  r1 = multiply(r1, in0)\n  out2 = add(r0, r1)\n  r1 = sqrt(out2)\n  r1 = add(r1, s33)\n  r1 = multiply(r1, s35)\n  r1 = divide(s32, r1)\n  r1 = where(s19, r1, s1)\n  r1 = multiply(s6, r1)\n  r0 = multiply(s2, in2)\n  r2 = multiply(s36, in0)\n  out1 = add(r0, r2)\n  r1 = multiply(r1, out1)\n  out0 = subtract(in1, r1)\n"
    AdaBelief 4 8 3 "s0 = scalar1\ns1 = 1.0\ns2 = scalar2\ns3 = scalar0\ns4 = pow(s2, s3)\ns5 = subtract(s1, s4)\ns6 = divide(s0, s5)\ns7 = subtract(s1, s2)\ns8 = scalar3\ns9 = subtract(s1, s8)\ns10 = scalar5\ns11 = pow(s8, s3)\ns12 = subtract(s1, s11)\ns13 = sqrt(s12)\ns14 = divide(s1, s13)\ns15 = scalar4\nphase 0: 4 registers\n  r0 = multiply(s2, in2)\n  r1 = multiply(s7, in0)\n  out1 = add(r0, r1)\n  r1 = multiply(s6, out1)\n  r0 = multiply(s8, in3)\n  r2 = subtract(in0, out1)\n  r3 = multiply(s9, r2)\n  r3 = multiply(r3, r2)\n  r3 = add(r0, r3)\n  out2 = add(r3, s10)\n  r3 = sqrt(out2)\n  r3 = multiply(r3, s14)\n  r3 = add(r3, s15)\n  r3 = divide(r1, r3)\n  out0 = subtract(in1, r3)\n"
    AdEmaMix 5 12 4 "s0 = scalar1\ns1 = scalar2\ns2 = 1.0\ns3 = subtract(s2, s1)\ns4 = scalar0\ns5 = pow(s1, s4)\ns6 = subtract(s2, s5)\ns7 = scalar5\ns8 = scalar4\ns9 = subtract(s2, s8)\ns10 = scalar3\ns11 = subtract(s2, s10)\ns12 = pow(s10, s4)\ns13 = subtract(s2, s12)\ns14 = sqrt(s13)\ns15 = divide(s2, s14)\ns16 = scalar6\ns17 = scalar7\nphase 0: 3 registers\n  r0 = multiply(s1, in2)\n  r1 = multiply(s3, in0)\n  out1 = add(r0, r1)\n  r1 = divide(out1, s6)\n  r0 = multiply(s8, in3)\n  r2 = multiply(s9, in0)\n  out2 = add(r0, r2)\n  r2 = multiply(s7, out2)\n  r2 = add(r1, r2)\n  r1 = multiply(s10, in4)\n  r0 = multiply(s11, in0)\n  r0 = multiply(r0, in0)\n  out3 = add(r1, r0)\n  r0 = sqrt(out3)\n  r0 = multiply(r0, s15)\n  r0 = add(r0, s16)\n  r0 = divide(r2, r0)\n  r2 = multiply(s17, in1)\n  r2 = add(r0, r2)\n  r2 = multiply(s0, r2)\n  out0 = subtract(in1, r2)\n"
    Adopt 4 9 3 "s0 = scalar1\ns1 = scalar0\ns2 = 1.0\ns3 = equal(s1, s2)\ns4 = scalar2\ns5 = subtract(s2, s4)\ns6 = scalar4\ns7 = subtract(s1, s2)\ns8 = 0.25\ns9 = pow(s7, s8)\ns10 = negative(s9)\ns11 = scalar3\ns12 = subtract(s2, s11)\nphase 0: 3 registers\n  r0 = multiply(s4, in2)\n  r1 = sqrt(in3)\n  r1 = maximum(r1, s6)\n  r1 = divide(in0, r1)\n  r1 = maximum(r1, s10)\n  r1 = minimum(r1, s9)\n  r1 = multiply(s5, r1)\n  r1 = add(r0, r1)\n  out1 = where(s3, in2, r1)\n  r1 = multiply(s0, out1)\n  out0 = subtract(in1, r1)\n  r1 = multiply(in0, in0)\n  r0 = multiply(s11, in3)\n  r2 = multiply(s12, in0)\n  r2 = multiply(r2, in0)\n  r2 = add(r0, r2)\n  out2 = where(s3, r1, r2)\n"
    Adan 6 15 5 "s0 = scalar1\ns1 = scalar2\ns2 = 1.0\ns3 = subtract(s2, s1)\ns4 = scalar0\ns5 = pow(s1, s4)\ns6 = subtract(s2, s5)\ns7 = scalar3\ns8 = pow(s7, s4)\ns9 = subtract(s2, s8)\ns10 = divide(s7, s9)\ns11 = subtract(s2, s7)\ns12 = equal(s4, s2)\ns13 = 0.0\ns14 = scalar4\ns15 = subtract(s2, s14)\ns16 = pow(s14, s4)\ns17 = subtract(s2, s16)\ns18 = scalar6\ns19 = scalar5\ns20 = scalar7\ns21 = multiply(s0, s20)\ns22 = add(s2, s21)\nphase 0: 4 registers\n  r0 = multiply(s1, in2)\n  r1 = multiply(s3, in0)\n  out1 = add(r0, r1)\n  r1 = divide(out1, s6)\n  r0 = multiply(s7, in3)\n  r2 = subtract(in0, in5)\n  r2 = where(s12, s13, r2)\n  r3 = multiply(s11, r2)\n  out2 = add(r0, r3)\n  r3 = multiply(s10, out2)\n  r3 = add(r1, r3)\n  r3 = multiply(s0, r3)\n  r1 = multiply(s14, in4)\n  r2 = multiply(s7, r2)\n  r2 = add(in0, r2)\n  r0 = multiply(s15, r2)\n  r0 = multiply(r0, r2)\n  out3 = add(r1, r0)\n  r0 = divide(out3, s17)\n  r0 = add(r0, s18)\n  r0 = sqrt(r0)\n  r0 = add(r0, s19)\n  r0 = divide(r3, r0)\n  r0 = subtract(in1, r0)\n  out0 = divide(r0, s22)\n  out4 = positive(in0)\n"
    Yogi 4 6 3 "s0 = scalar1\ns1 = 1.0\ns2 = scalar2\ns3 = scalar0\ns4 = pow(s2, s3)\ns5 = subtract(s1, s4)\ns6 = divide(s0, s5)\ns7 = subtract(s1, s2)\ns8 = scalar3\ns9 = subtract(s1, s8)\ns10 = pow(s8, s3)\ns11 = subtract(s1, s10)\ns12 = sqrt(s11)\ns13 = divide(s1, s12)\ns14 = scalar4\nphase 0: 2 registers\n  r0 = multiply(s2, in2)\n  r1 = multiply(s7, in0)\n  out1 = add(r0, r1)\n  r1 = multiply(s6, out1)\n  r0 = multiply(in0, in0)\n  r0 = subtract(in3, r0)\n  r0 = sign(r0)\n  r0 = multiply(s9, r0)\n  r0 = multiply(r0, in0)\n  r0 = multiply(r0, in0)\n  out2 = subtract(in3, r0)\n  r0 = sqrt(out2)\n  r0 = multiply(r0, s13)\n  r0 = add(r0, s14)\n  r0 = divide(r1, r0)\n  out0 = subtract(in1, r0)\n"
    Sophia 4 12 3 "s0 = scalar1\ns1 = scalar2\ns2 = 1.0\ns3 = subtract(s2, s1)\ns4 = scalar0\ns5 = pow(s1, s4)\ns6 = subtract(s2, s5)\ns7 = scalar6\ns8 = scalar4\ns9 = scalar7\ns10 = negative(s9)\ns11 = scalar5\ns12 = subtract(s4, s2)\ns13 = scalar8\ns14 = remainder(s12, s13)\ns15 = 0.0\ns16 = equal(s14, s15)\ns17 = scalar3\ns18 = subtract(s2, s17)\ns19 = scalar9\ns20 = multiply(s18, s19)\nphase 0: 2 registers\n  r0 = multiply(s1, in2)\n  r1 = multiply(s3, in0)\n  out1 = add(r0, r1)\n  r1 = divide(out1, s6)\n  r0 = multiply(s7, in3)\n  r0 = maximum(r0, s8)\n  r0 = divide(r1, r0)\n  r0 = maximum(r0, s10)\n  r0 = minimum(r0, s9)\n  r1 = multiply(s11, in1)\n  r1 = add(r0, r1)\n  r1 = multiply(s0, r1)\n  out0 = subtract(in1, r1)\n  r1 = multiply(s17, in3)\n  r0 = multiply(s20, in0)\n  r0 = multiply(r0, in0)\n  r0 = add(r1, r0)\n  out2 = where(s16, r0, in3)\n"
    ScheduleFreeSgd 3 5 2 "s0 = scalar2\ns1 = 1.0\ns2 = subtract(s1, s0)\ns3 = scalar6\ns4 = scalar1\ns5 = maximum(s3, s4)\ns6 = scalar4\ns7 = pow(s5, s6)\ns8 = scalar5\ns9 = add(s8, s7)\ns10 = 0.0\ns11 = greater(s9, s10)\ns12 = where(s11, s9, s1)\ns13 = divide(s7, s12)\ns14 = scalar3\nphase 0: 2 registers\n  r0 = multiply(s2, in2)\n  r0 = subtract(in1, r0)\n  r0 = divide(r0, s0)\n  r1 = multiply(s14, in1)\n  r1 = add(in0, r1)\n  r1 = multiply(s4, r1)\n  out1 = subtract(in2, r1)\n  r1 = subtract(out1, r0)\n  r1 = multiply(s13, r1)\n  r1 = add(r0, r1)\n  r1 = multiply(s0, r1)\n  r0 = multiply(s2, out1)\n  out0 = add(r1, r0)\nresult0 = s9\nresult1 = s5\n"
    ScheduleFreeAdamW 4 9 3 "s0 = scalar2\ns1 = 1.0\ns2 = subtract(s1, s0)\ns3 = scalar8\ns4 = scalar1\ns5 = maximum(s3, s4)\ns6 = scalar6\ns7 = pow(s5, s6)\ns8 = scalar7\ns9 = add(s8, s7)\ns10 = 0.0\ns11 = greater(s9, s10)\ns12 = where(s11, s9, s1)\ns13 = divide(s7, s12)\ns14 = scalar3\ns15 = subtract(s1, s14)\ns16 = scalar0\ns17 = pow(s14, s16)\ns18 = subtract(s1, s17)\ns19 = sqrt(s18)\ns20 = divide(s1, s19)\ns21 = scalar4\ns22 = scalar5\nphase 0: 3 registers\n  r0 = multiply(s2, in3)\n  r0 = subtract(in1, r0)\n  r0 = divide(r0, s0)\n  r1 = multiply(s14, in2)\n  r2 = multiply(s15, in0)\n  r2 = multiply(r2, in0)\n  out1 = add(r1, r2)\n  r2 = sqrt(out1)\n  r2 = multiply(r2, s20)\n  r2 = add(r2, s21)\n  r2 = divide(in0, r2)\n  r1 = multiply(s22, in1)\n  r1 = add(r2, r1)\n  r1 = multiply(s4, r1)\n  out2 = subtract(in3, r1)\n  r1 = subtract(out2, r0)\n  r1 = multiply(s13, r1)\n  r1 = add(r0, r1)\n  r1 = multiply(s0, r1)\n  r0 = multiply(s2, out2)\n  out0 = add(r1, r0)\nresult0 = s9\nresult1 = s5\n"
    Stream 4 0 3 "phase 0: 0 registers\n  out0 = add(in1, in0)\n  out1 = negative(in2)\n  out2 = negative(in3)\n"
}

pub(super) const PROGRAMS: &[(&str, &[Node], Wanted)] = &[
    ("Sgd", &[Leaf(0), Leaf(1), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Apply(Multiply, [5, 1, 0]), Apply(Add, [0, 7, 0]), Apply(Multiply, [3, 8, 0]), Apply(Subtract, [1, 9, 0])], Wanted { outputs: &[10], results: &[], guard: None }),
    ("Momentum", &[Leaf(0), Leaf(1), Leaf(2), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Apply(Multiply, [6, 1, 0]), Apply(Add, [0, 8, 0]), Apply(Multiply, [5, 2, 0]), Constant(1.0), Apply(Equal, [3, 11, 0]), Constant(1.0), Apply(Subtract, [13, 7, 0]), Constant(1.0), Apply(Where, [12, 15, 14]), Apply(Multiply, [16, 9, 0]), Apply(Add, [10, 17, 0]), Apply(Multiply, [4, 18, 0]), Apply(Subtract, [1, 19, 0])], Wanted { outputs: &[20, 18], results: &[], guard: None }),
    ("Nesterov", &[Leaf(0), Leaf(1), Leaf(2), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Apply(Multiply, [6, 1, 0]), Apply(Add, [0, 8, 0]), Apply(Multiply, [5, 2, 0]), Constant(1.0), Apply(Equal, [3, 11, 0]), Constant(1.0), Apply(Subtract, [13, 7, 0]), Constant(1.0), Apply(Where, [12, 15, 14]), Apply(Multiply, [16, 9, 0]), Apply(Add, [10, 17, 0]), Apply(Multiply, [5, 18, 0]), Apply(Add, [9, 19, 0]), Apply(Multiply, [4, 20, 0]), Apply(Subtract, [1, 21, 0])], Wanted { outputs: &[22, 18], results: &[], guard: None }),
    ("Asgd", &[Leaf(0), Leaf(1), Leaf(2), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Scalar(6), Apply(Multiply, [5, 1, 0]), Apply(Add, [0, 10, 0]), Apply(Multiply, [7, 4, 0]), Constant(1.0), Apply(Subtract, [3, 13, 0]), Apply(Multiply, [12, 14, 0]), Constant(1.0), Apply(Add, [16, 15, 0]), Apply(Pow, [17, 8, 0]), Apply(Divide, [4, 18, 0]), Apply(Multiply, [7, 19, 0]), Constant(1.0), Apply(Subtract, [21, 20, 0]), Apply(Multiply, [22, 1, 0]), Apply(Multiply, [19, 11, 0]), Apply(Subtract, [23, 24, 0]), Apply(Subtract, [3, 6, 0]), Constant(1.0), Apply(Add, [26, 27, 0]), Apply(Subtract, [25, 2, 0]), Constant(1.0), Apply(Maximum, [30, 28, 0]), Apply(Divide, [29, 31, 0]), Apply(Add, [2, 32, 0]), Constant(1.0), Apply(Greater, [28, 34, 0]), Apply(Where, [35, 33, 25])], Wanted { outputs: &[25, 36], results: &[4], guard: None }),
    ("Rprop", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Apply(Multiply, [0, 2, 0]), Constant(0.0), Apply(Greater, [10, 11, 0]), Constant(0.0), Apply(Less, [10, 13, 0]), Constant(1.0), Apply(Where, [14, 6, 15]), Apply(Where, [12, 7, 16]), Apply(Multiply, [3, 17, 0]), Apply(Maximum, [18, 8, 0]), Apply(Minimum, [19, 9, 0]), Constant(0.0), Apply(Less, [10, 21, 0]), Apply(Sign, [0, 0, 0]), Apply(Multiply, [20, 23, 0]), Constant(0.0), Apply(Where, [22, 25, 24]), Apply(Subtract, [1, 26, 0])], Wanted { outputs: &[27, 26, 20], results: &[], guard: None }),
    ("Signum", &[Leaf(0), Leaf(1), Leaf(2), Scalar(0), Scalar(1), Scalar(2), Apply(Multiply, [5, 2, 0]), Constant(1.0), Apply(Subtract, [7, 5, 0]), Apply(Multiply, [8, 0, 0]), Apply(Add, [6, 9, 0]), Apply(Sign, [10, 0, 0]), Apply(Multiply, [4, 11, 0]), Apply(Subtract, [1, 12, 0])], Wanted { outputs: &[13, 10], results: &[], guard: None }),
    ("Lion", &[Leaf(0), Leaf(1), Leaf(2), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Apply(Multiply, [5, 2, 0]), Constant(1.0), Apply(Subtract, [9, 5, 0]), Apply(Multiply, [10, 0, 0]), Apply(Add, [8, 11, 0]), Apply(Sign, [12, 0, 0]), Apply(Multiply, [7, 1, 0]), Apply(Add, [13, 14, 0]), Apply(Multiply, [4, 15, 0]), Apply(Subtract, [1, 16, 0]), Apply(Multiply, [6, 2, 0]), Constant(1.0), Apply(Subtract, [19, 6, 0]), Apply(Multiply, [20, 0, 0]), Apply(Add, [18, 21, 0])], Wanted { outputs: &[17, 22], results: &[], guard: None }),
    ("Adagrad", &[Leaf(0), Leaf(1), Leaf(2), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Apply(Multiply, [0, 0, 0]), Apply(Add, [2, 8, 0]), Constant(1.0), Apply(Subtract, [3, 10, 0]), Apply(Multiply, [5, 11, 0]), Constant(1.0), Apply(Add, [13, 12, 0]), Apply(Divide, [4, 14, 0]), Apply(Multiply, [15, 0, 0]), Apply(Sqrt, [9, 0, 0]), Apply(Add, [17, 7, 0]), Apply(Divide, [16, 18, 0]), Apply(Subtract, [1, 19, 0])], Wanted { outputs: &[20, 9], results: &[], guard: None }),
    ("Adadelta", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Apply(Multiply, [6, 2, 0]), Constant(1.0), Apply(Subtract, [9, 6, 0]), Apply(Multiply, [10, 0, 0]), Apply(Multiply, [11, 0, 0]), Apply(Add, [8, 12, 0]), Apply(Add, [3, 7, 0]), Apply(Sqrt, [14, 0, 0]), Apply(Add, [13, 7, 0]), Apply(Sqrt, [16, 0, 0]), Apply(Divide, [15, 17, 0]), Apply(Multiply, [18, 0, 0]), Apply(Multiply, [5, 19, 0]), Apply(Subtract, [1, 20, 0]), Apply(Multiply, [6, 3, 0]), Constant(1.0), Apply(Subtract, [23, 6, 0]), Apply(Multiply, [24, 19, 0]), Apply(Multiply, [25, 19, 0]), Apply(Add, [22, 26, 0])], Wanted { outputs: &[21, 13, 27], results: &[], guard: None }),
    ("RmsProp", &[Leaf(0), Leaf(1), Leaf(2), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Apply(Multiply, [5, 2, 0]), Constant(1.0), Apply(Subtract, [10, 5, 0]), Apply(Multiply, [11, 0, 0]), Apply(Multiply, [12, 0, 0]), Apply(Add, [9, 13, 0]), Apply(Sqrt, [14, 0, 0]), Apply(Add, [15, 6, 0]), Apply(Divide, [0, 16, 0]), Apply(Multiply, [4, 17, 0]), Apply(Subtract, [1, 18, 0])], Wanted { outputs: &[19, 14], results: &[], guard: None }),
    ("RmsPropMomentum", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Apply(Multiply, [6, 2, 0]), Constant(1.0), Apply(Subtract, [11, 6, 0]), Apply(Multiply, [12, 0, 0]), Apply(Multiply, [13, 0, 0]), Apply(Add, [10, 14, 0]), Apply(Sqrt, [15, 0, 0]), Apply(Add, [16, 7, 0]), Apply(Divide, [0, 17, 0]), Apply(Multiply, [8, 3, 0]), Apply(Add, [19, 18, 0]), Apply(Multiply, [5, 20, 0]), Apply(Subtract, [1, 21, 0])], Wanted { outputs: &[22, 15, 20], results: &[], guard: None }),
    ("RmsPropCentered", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Apply(Multiply, [6, 2, 0]), Constant(1.0), Apply(Subtract, [11, 6, 0]), Apply(Multiply, [12, 0, 0]), Apply(Multiply, [13, 0, 0]), Apply(Add, [10, 14, 0]), Apply(Multiply, [6, 3, 0]), Constant(1.0), Apply(Subtract, [17, 6, 0]), Apply(Multiply, [18, 0, 0]), Apply(Add, [16, 19, 0]), Apply(Multiply, [20, 20, 0]), Apply(Subtract, [15, 21, 0]), Constant(0.0), Apply(Maximum, [22, 23, 0]), Apply(Sqrt, [24, 0, 0]), Apply(Add, [25, 7, 0]), Apply(Divide, [0, 26, 0]), Apply(Multiply, [5, 27, 0]), Apply(Subtract, [1, 28, 0])], Wanted { outputs: &[29, 15, 20], results: &[], guard: None }),
    ("Ftrl", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Scalar(6), Scalar(7), Apply(Negative, [6, 0, 0]), Apply(Pow, [3, 12, 0]), Apply(Multiply, [0, 0, 0]), Apply(Add, [3, 14, 0]), Apply(Negative, [6, 0, 0]), Apply(Pow, [15, 16, 0]), Apply(Add, [2, 0, 0]), Constant(2.0), Apply(Multiply, [19, 10, 0]), Apply(Multiply, [20, 1, 0]), Apply(Add, [18, 21, 0]), Apply(Subtract, [17, 13, 0]), Apply(Divide, [23, 5, 0]), Apply(Multiply, [24, 1, 0]), Apply(Subtract, [22, 25, 0]), Apply(Divide, [17, 5, 0]), Constant(2.0), Apply(Multiply, [28, 5, 0]), Apply(Divide, [11, 29, 0]), Apply(Add, [9, 30, 0]), Constant(2.0), Apply(Multiply, [32, 31, 0]), Apply(Add, [27, 33, 0]), Apply(Negative, [8, 0, 0]), Apply(Maximum, [26, 35, 0]), Apply(Minimum, [36, 8, 0]), Apply(Subtract, [37, 26, 0]), Apply(Divide, [38, 34, 0])], Wanted { outputs: &[39, 26, 15], results: &[], guard: None }),
    ("Madgrad", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Leaf(4), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Apply(Add, [6, 8, 0]), Apply(Sqrt, [5, 0, 0]), Apply(Multiply, [9, 10, 0]), Apply(Multiply, [11, 0, 0]), Apply(Multiply, [12, 0, 0]), Apply(Add, [2, 13, 0]), Apply(Multiply, [11, 0, 0]), Apply(Add, [3, 15, 0]), Constant(0.3333333333333333), Apply(Pow, [14, 17, 0]), Apply(Add, [18, 8, 0]), Apply(Divide, [16, 19, 0]), Apply(Subtract, [4, 20, 0]), Apply(Multiply, [7, 1, 0]), Constant(1.0), Apply(Subtract, [23, 7, 0]), Apply(Multiply, [24, 21, 0]), Apply(Add, [22, 25, 0])], Wanted { outputs: &[26, 14, 16], results: &[], guard: None }),
    ("Adam", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Apply(Multiply, [6, 2, 0]), Constant(1.0), Apply(Subtract, [10, 6, 0]), Apply(Multiply, [11, 0, 0]), Apply(Add, [9, 12, 0]), Apply(Multiply, [7, 3, 0]), Constant(1.0), Apply(Subtract, [15, 7, 0]), Apply(Multiply, [16, 0, 0]), Apply(Multiply, [17, 0, 0]), Apply(Add, [14, 18, 0]), Apply(Pow, [6, 4, 0]), Constant(1.0), Apply(Subtract, [21, 20, 0]), Apply(Divide, [5, 22, 0]), Apply(Pow, [7, 4, 0]), Constant(1.0), Apply(Subtract, [25, 24, 0]), Apply(Multiply, [23, 13, 0]), Apply(Sqrt, [19, 0, 0]), Apply(Sqrt, [26, 0, 0]), Constant(1.0), Apply(Divide, [30, 29, 0]), Apply(Multiply, [28, 31, 0]), Apply(Add, [32, 8, 0]), Apply(Divide, [27, 33, 0]), Apply(Subtract, [1, 34, 0])], Wanted { outputs: &[35, 13, 19], results: &[], guard: None }),
    ("AdamAmsgrad", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Leaf(4), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Apply(Multiply, [7, 2, 0]), Constant(1.0), Apply(Subtract, [11, 7, 0]), Apply(Multiply, [12, 0, 0]), Apply(Add, [10, 13, 0]), Apply(Multiply, [8, 3, 0]), Constant(1.0), Apply(Subtract, [16, 8, 0]), Apply(Multiply, [17, 0, 0]), Apply(Multiply, [18, 0, 0]), Apply(Add, [15, 19, 0]), Apply(Pow, [7, 5, 0]), Constant(1.0), Apply(Subtract, [22, 21, 0]), Apply(Divide, [6, 23, 0]), Apply(Pow, [8, 5, 0]), Constant(1.0), Apply(Subtract, [26, 25, 0]), Apply(Maximum, [4, 20, 0]), Apply(Multiply, [24, 14, 0]), Apply(Sqrt, [28, 0, 0]), Apply(Sqrt, [27, 0, 0]), Constant(1.0), Apply(Divide, [32, 31, 0]), Apply(Multiply, [30, 33, 0]), Apply(Add, [34, 9, 0]), Apply(Divide, [29, 35, 0]), Apply(Subtract, [1, 36, 0])], Wanted { outputs: &[37, 14, 20, 28], results: &[], guard: None }),
    ("AdamW", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Apply(Multiply, [5, 9, 0]), Constant(1.0), Apply(Subtract, [11, 10, 0]), Apply(Multiply, [12, 1, 0]), Apply(Multiply, [6, 2, 0]), Constant(1.0), Apply(Subtract, [15, 6, 0]), Apply(Multiply, [16, 0, 0]), Apply(Add, [14, 17, 0]), Apply(Multiply, [7, 3, 0]), Constant(1.0), Apply(Subtract, [20, 7, 0]), Apply(Multiply, [21, 0, 0]), Apply(Multiply, [22, 0, 0]), Apply(Add, [19, 23, 0]), Apply(Pow, [6, 4, 0]), Constant(1.0), Apply(Subtract, [26, 25, 0]), Apply(Divide, [5, 27, 0]), Apply(Pow, [7, 4, 0]), Constant(1.0), Apply(Subtract, [30, 29, 0]), Apply(Multiply, [28, 18, 0]), Apply(Sqrt, [24, 0, 0]), Apply(Sqrt, [31, 0, 0]), Constant(1.0), Apply(Divide, [35, 34, 0]), Apply(Multiply, [33, 36, 0]), Apply(Add, [37, 8, 0]), Apply(Divide, [32, 38, 0]), Apply(Subtract, [13, 39, 0])], Wanted { outputs: &[40, 18, 24], results: &[], guard: None }),
    ("AdamWAmsgrad", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Leaf(4), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Apply(Multiply, [6, 10, 0]), Constant(1.0), Apply(Subtract, [12, 11, 0]), Apply(Multiply, [13, 1, 0]), Apply(Multiply, [7, 2, 0]), Constant(1.0), Apply(Subtract, [16, 7, 0]), Apply(Multiply, [17, 0, 0]), Apply(Add, [15, 18, 0]), Apply(Multiply, [8, 3, 0]), Constant(1.0), Apply(Subtract, [21, 8, 0]), Apply(Multiply, [22, 0, 0]), Apply(Multiply, [23, 0, 0]), Apply(Add, [20, 24, 0]), Apply(Pow, [7, 5, 0]), Constant(1.0), Apply(Subtract, [27, 26, 0]), Apply(Divide, [6, 28, 0]), Apply(Pow, [8, 5, 0]), Constant(1.0), Apply(Subtract, [31, 30, 0]), Apply(Maximum, [4, 25, 0]), Apply(Multiply, [29, 19, 0]), Apply(Sqrt, [33, 0, 0]), Apply(Sqrt, [32, 0, 0]), Constant(1.0), Apply(Divide, [37, 36, 0]), Apply(Multiply, [35, 38, 0]), Apply(Add, [39, 9, 0]), Apply(Divide, [34, 40, 0]), Apply(Subtract, [14, 41, 0])], Wanted { outputs: &[42, 19, 25, 33], results: &[], guard: None }),
    ("AdamWMaster", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Leaf(4), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Apply(Multiply, [6, 10, 0]), Constant(1.0), Apply(Subtract, [12, 11, 0]), Apply(Multiply, [13, 4, 0]), Apply(Multiply, [7, 2, 0]), Constant(1.0), Apply(Subtract, [16, 7, 0]), Apply(Multiply, [17, 0, 0]), Apply(Add, [15, 18, 0]), Apply(Multiply, [8, 3, 0]), Constant(1.0), Apply(Subtract, [21, 8, 0]), Apply(Multiply, [22, 0, 0]), Apply(Multiply, [23, 0, 0]), Apply(Add, [20, 24, 0]), Apply(Pow, [7, 5, 0]), Constant(1.0), Apply(Subtract, [27, 26, 0]), Apply(Divide, [6, 28, 0]), Apply(Pow, [8, 5, 0]), Constant(1.0), Apply(Subtract, [31, 30, 0]), Apply(Multiply, [29, 19, 0]), Apply(Sqrt, [25, 0, 0]), Apply(Sqrt, [32, 0, 0]), Constant(1.0), Apply(Divide, [36, 35, 0]), Apply(Multiply, [34, 37, 0]), Apply(Add, [38, 9, 0]), Apply(Divide, [33, 39, 0]), Apply(Subtract, [14, 40, 0])], Wanted { outputs: &[41, 19, 25, 41], results: &[], guard: None }),
    ("AdamWKahan", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Leaf(4), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Apply(Add, [1, 4, 0]), Apply(Multiply, [6, 10, 0]), Constant(1.0), Apply(Subtract, [13, 12, 0]), Apply(Multiply, [14, 11, 0]), Apply(Multiply, [7, 2, 0]), Constant(1.0), Apply(Subtract, [17, 7, 0]), Apply(Multiply, [18, 0, 0]), Apply(Add, [16, 19, 0]), Apply(Multiply, [8, 3, 0]), Constant(1.0), Apply(Subtract, [22, 8, 0]), Apply(Multiply, [23, 0, 0]), Apply(Multiply, [24, 0, 0]), Apply(Add, [21, 25, 0]), Apply(Pow, [7, 5, 0]), Constant(1.0), Apply(Subtract, [28, 27, 0]), Apply(Divide, [6, 29, 0]), Apply(Pow, [8, 5, 0]), Constant(1.0), Apply(Subtract, [32, 31, 0]), Apply(Multiply, [30, 20, 0]), Apply(Sqrt, [26, 0, 0]), Apply(Sqrt, [33, 0, 0]), Constant(1.0), Apply(Divide, [37, 36, 0]), Apply(Multiply, [35, 38, 0]), Apply(Add, [39, 9, 0]), Apply(Divide, [34, 40, 0]), Apply(Subtract, [15, 41, 0]), Apply(RoundToBfloat16, [42, 0, 0]), Apply(Subtract, [42, 43, 0])], Wanted { outputs: &[43, 20, 26, 44], results: &[], guard: None }),
    ("AdamWAverage", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Leaf(4), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Scalar(6), Apply(Multiply, [6, 10, 0]), Constant(1.0), Apply(Subtract, [13, 12, 0]), Apply(Multiply, [14, 1, 0]), Apply(Multiply, [7, 2, 0]), Constant(1.0), Apply(Subtract, [17, 7, 0]), Apply(Multiply, [18, 0, 0]), Apply(Add, [16, 19, 0]), Apply(Multiply, [8, 3, 0]), Constant(1.0), Apply(Subtract, [22, 8, 0]), Apply(Multiply, [23, 0, 0]), Apply(Multiply, [24, 0, 0]), Apply(Add, [21, 25, 0]), Apply(Pow, [7, 5, 0]), Constant(1.0), Apply(Subtract, [28, 27, 0]), Apply(Divide, [6, 29, 0]), Apply(Pow, [8, 5, 0]), Constant(1.0), Apply(Subtract, [32, 31, 0]), Apply(Multiply, [30, 20, 0]), Apply(Sqrt, [26, 0, 0]), Apply(Sqrt, [33, 0, 0]), Constant(1.0), Apply(Divide, [37, 36, 0]), Apply(Multiply, [35, 38, 0]), Apply(Add, [39, 9, 0]), Apply(Divide, [34, 40, 0]), Apply(Subtract, [15, 41, 0]), Apply(Multiply, [11, 4, 0]), Constant(1.0), Apply(Subtract, [44, 11, 0]), Apply(Multiply, [45, 42, 0]), Apply(Add, [43, 46, 0])], Wanted { outputs: &[42, 20, 26, 47], results: &[], guard: None }),
    ("Adamax", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Apply(Multiply, [6, 2, 0]), Constant(1.0), Apply(Subtract, [10, 6, 0]), Apply(Multiply, [11, 0, 0]), Apply(Add, [9, 12, 0]), Apply(Multiply, [7, 3, 0]), Apply(Abs, [0, 0, 0]), Apply(Add, [15, 8, 0]), Apply(Maximum, [14, 16, 0]), Apply(Pow, [6, 4, 0]), Constant(1.0), Apply(Subtract, [19, 18, 0]), Apply(Divide, [5, 20, 0]), Apply(Multiply, [21, 13, 0]), Apply(Divide, [22, 17, 0]), Apply(Subtract, [1, 23, 0])], Wanted { outputs: &[24, 13, 17], results: &[], guard: None }),
    ("NAdam", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Scalar(6), Apply(Multiply, [4, 9, 0]), Constant(0.96), Apply(Pow, [12, 11, 0]), Constant(0.5), Apply(Multiply, [14, 13, 0]), Constant(1.0), Apply(Subtract, [16, 15, 0]), Apply(Multiply, [6, 17, 0]), Constant(1.0), Apply(Add, [4, 19, 0]), Apply(Multiply, [20, 9, 0]), Constant(0.96), Apply(Pow, [22, 21, 0]), Constant(0.5), Apply(Multiply, [24, 23, 0]), Constant(1.0), Apply(Subtract, [26, 25, 0]), Apply(Multiply, [6, 27, 0]), Apply(Multiply, [10, 18, 0]), Apply(Multiply, [6, 2, 0]), Constant(1.0), Apply(Subtract, [31, 6, 0]), Apply(Multiply, [32, 0, 0]), Apply(Add, [30, 33, 0]), Apply(Multiply, [7, 3, 0]), Constant(1.0), Apply(Subtract, [36, 7, 0]), Apply(Multiply, [37, 0, 0]), Apply(Multiply, [38, 0, 0]), Apply(Add, [35, 39, 0]), Constant(1.0), Apply(Subtract, [41, 18, 0]), Constant(1.0), Apply(Subtract, [43, 29, 0]), Apply(Divide, [42, 44, 0]), Apply(Multiply, [29, 28, 0]), Constant(1.0), Apply(Subtract, [47, 46, 0]), Apply(Divide, [28, 48, 0]), Apply(Multiply, [45, 0, 0]), Apply(Multiply, [49, 34, 0]), Apply(Add, [50, 51, 0]), Apply(Multiply, [5, 52, 0]), Apply(Pow, [7, 4, 0]), Constant(1.0), Apply(Subtract, [55, 54, 0]), Apply(Sqrt, [40, 0, 0]), Apply(Sqrt, [56, 0, 0]), Constant(1.0), Apply(Divide, [59, 58, 0]), Apply(Multiply, [57, 60, 0]), Apply(Add, [61, 8, 0]), Apply(Divide, [53, 62, 0]), Apply(Subtract, [1, 63, 0])], Wanted { outputs: &[64, 34, 40], results: &[29], guard: None }),
    ("RAdam", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Apply(Multiply, [6, 2, 0]), Constant(1.0), Apply(Subtract, [11, 6, 0]), Apply(Multiply, [12, 0, 0]), Apply(Add, [10, 13, 0]), Apply(Multiply, [7, 3, 0]), Constant(1.0), Apply(Subtract, [16, 7, 0]), Apply(Multiply, [17, 0, 0]), Apply(Multiply, [18, 0, 0]), Apply(Add, [15, 19, 0]), Apply(Pow, [7, 4, 0]), Constant(1.0), Apply(Subtract, [22, 7, 0]), Constant(2.0), Apply(Divide, [24, 23, 0]), Constant(1.0), Apply(Subtract, [25, 26, 0]), Constant(2.0), Apply(Multiply, [28, 4, 0]), Apply(Multiply, [29, 21, 0]), Constant(1.0), Apply(Subtract, [31, 21, 0]), Apply(Divide, [30, 32, 0]), Apply(Subtract, [27, 33, 0]), Constant(4.0), Apply(Subtract, [34, 35, 0]), Constant(2.0), Apply(Subtract, [34, 37, 0]), Apply(Multiply, [36, 38, 0]), Apply(Multiply, [39, 27, 0]), Constant(4.0), Apply(Subtract, [27, 41, 0]), Constant(2.0), Apply(Subtract, [27, 43, 0]), Apply(Multiply, [42, 44, 0]), Apply(Multiply, [45, 34, 0]), Apply(Divide, [40, 46, 0]), Constant(0.0), Apply(Maximum, [47, 48, 0]), Apply(Sqrt, [49, 0, 0]), Constant(1.0), Apply(Subtract, [51, 21, 0]), Apply(Sqrt, [20, 0, 0]), Apply(Add, [53, 8, 0]), Apply(Sqrt, [52, 0, 0]), Constant(1.0), Apply(Divide, [56, 55, 0]), Apply(Multiply, [54, 57, 0]), Apply(Divide, [50, 58, 0]), Apply(Pow, [6, 4, 0]), Constant(1.0), Apply(Subtract, [61, 60, 0]), Apply(Divide, [5, 62, 0]), Apply(Greater, [34, 9, 0]), Constant(1.0), Apply(Where, [64, 59, 65]), Apply(Multiply, [63, 66, 0]), Apply(Multiply, [67, 14, 0]), Apply(Subtract, [1, 68, 0])], Wanted { outputs: &[69, 14, 20], results: &[], guard: None }),
    ("AdaBelief", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Apply(Multiply, [6, 2, 0]), Constant(1.0), Apply(Subtract, [11, 6, 0]), Apply(Multiply, [12, 0, 0]), Apply(Add, [10, 13, 0]), Apply(Multiply, [7, 3, 0]), Constant(1.0), Apply(Subtract, [16, 7, 0]), Apply(Subtract, [0, 14, 0]), Apply(Multiply, [17, 18, 0]), Apply(Subtract, [0, 14, 0]), Apply(Multiply, [19, 20, 0]), Apply(Add, [15, 21, 0]), Apply(Add, [22, 9, 0]), Apply(Pow, [6, 4, 0]), Constant(1.0), Apply(Subtract, [25, 24, 0]), Apply(Divide, [5, 26, 0]), Apply(Multiply, [27, 14, 0]), Apply(Pow, [7, 4, 0]), Constant(1.0), Apply(Subtract, [30, 29, 0]), Apply(Sqrt, [23, 0, 0]), Apply(Sqrt, [31, 0, 0]), Constant(1.0), Apply(Divide, [34, 33, 0]), Apply(Multiply, [32, 35, 0]), Apply(Add, [36, 8, 0]), Apply(Divide, [28, 37, 0]), Apply(Subtract, [1, 38, 0])], Wanted { outputs: &[39, 14, 23], results: &[], guard: None }),
    ("AdEmaMix", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Leaf(4), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Scalar(6), Scalar(7), Apply(Multiply, [7, 2, 0]), Constant(1.0), Apply(Subtract, [14, 7, 0]), Apply(Multiply, [15, 0, 0]), Apply(Add, [13, 16, 0]), Apply(Multiply, [8, 4, 0]), Constant(1.0), Apply(Subtract, [19, 8, 0]), Apply(Multiply, [20, 0, 0]), Apply(Multiply, [21, 0, 0]), Apply(Add, [18, 22, 0]), Apply(Multiply, [9, 3, 0]), Constant(1.0), Apply(Subtract, [25, 9, 0]), Apply(Multiply, [26, 0, 0]), Apply(Add, [24, 27, 0]), Apply(Pow, [7, 5, 0]), Constant(1.0), Apply(Subtract, [30, 29, 0]), Apply(Divide, [17, 31, 0]), Apply(Multiply, [10, 28, 0]), Apply(Add, [32, 33, 0]), Apply(Pow, [8, 5, 0]), Constant(1.0), Apply(Subtract, [36, 35, 0]), Apply(Sqrt, [23, 0, 0]), Apply(Sqrt, [37, 0, 0]), Constant(1.0), Apply(Divide, [40, 39, 0]), Apply(Multiply, [38, 41, 0]), Apply(Add, [42, 11, 0]), Apply(Divide, [34, 43, 0]), Apply(Multiply, [12, 1, 0]), Apply(Add, [44, 45, 0]), Apply(Multiply, [6, 46, 0]), Apply(Subtract, [1, 47, 0])], Wanted { outputs: &[48, 17, 28, 23], results: &[], guard: None }),
    ("Adopt", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Constant(1.0), Apply(Equal, [4, 9, 0]), Apply(Sqrt, [3, 0, 0]), Apply(Maximum, [11, 8, 0]), Apply(Divide, [0, 12, 0]), Constant(1.0), Apply(Subtract, [4, 14, 0]), Constant(0.25), Apply(Pow, [15, 16, 0]), Apply(Negative, [17, 0, 0]), Apply(Maximum, [13, 18, 0]), Apply(Minimum, [19, 17, 0]), Apply(Multiply, [6, 2, 0]), Constant(1.0), Apply(Subtract, [22, 6, 0]), Apply(Multiply, [23, 20, 0]), Apply(Add, [21, 24, 0]), Apply(Where, [10, 2, 25]), Apply(Multiply, [5, 26, 0]), Apply(Subtract, [1, 27, 0]), Apply(Multiply, [0, 0, 0]), Apply(Multiply, [7, 3, 0]), Constant(1.0), Apply(Subtract, [31, 7, 0]), Apply(Multiply, [32, 0, 0]), Apply(Multiply, [33, 0, 0]), Apply(Add, [30, 34, 0]), Apply(Where, [10, 29, 35])], Wanted { outputs: &[28, 26, 36], results: &[], guard: None }),
    ("Adan", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Leaf(4), Leaf(5), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Scalar(6), Scalar(7), Constant(1.0), Apply(Equal, [6, 14, 0]), Apply(Subtract, [0, 5, 0]), Constant(0.0), Apply(Where, [15, 17, 16]), Apply(Multiply, [9, 18, 0]), Apply(Add, [0, 19, 0]), Apply(Multiply, [8, 2, 0]), Constant(1.0), Apply(Subtract, [22, 8, 0]), Apply(Multiply, [23, 0, 0]), Apply(Add, [21, 24, 0]), Apply(Multiply, [9, 3, 0]), Constant(1.0), Apply(Subtract, [27, 9, 0]), Apply(Multiply, [28, 18, 0]), Apply(Add, [26, 29, 0]), Apply(Multiply, [10, 4, 0]), Constant(1.0), Apply(Subtract, [32, 10, 0]), Apply(Multiply, [33, 20, 0]), Apply(Multiply, [34, 20, 0]), Apply(Add, [31, 35, 0]), Apply(Pow, [8, 6, 0]), Constant(1.0), Apply(Subtract, [38, 37, 0]), Apply(Divide, [25, 39, 0]), Apply(Pow, [9, 6, 0]), Constant(1.0), Apply(Subtract, [42, 41, 0]), Apply(Divide, [9, 43, 0]), Apply(Multiply, [44, 30, 0]), Apply(Add, [40, 45, 0]), Apply(Multiply, [7, 46, 0]), Apply(Pow, [10, 6, 0]), Constant(1.0), Apply(Subtract, [49, 48, 0]), Apply(Divide, [36, 50, 0]), Apply(Add, [51, 12, 0]), Apply(Sqrt, [52, 0, 0]), Apply(Add, [53, 11, 0]), Apply(Divide, [47, 54, 0]), Apply(Subtract, [1, 55, 0]), Apply(Multiply, [7, 13, 0]), Constant(1.0), Apply(Add, [58, 57, 0]), Apply(Divide, [56, 59, 0])], Wanted { outputs: &[60, 25, 30, 36, 0], results: &[], guard: None }),
    ("Yogi", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Scalar(6), Apply(Multiply, [6, 2, 0]), Constant(1.0), Apply(Subtract, [12, 6, 0]), Apply(Multiply, [13, 0, 0]), Apply(Add, [11, 14, 0]), Constant(1.0), Apply(Subtract, [16, 7, 0]), Apply(Multiply, [0, 0, 0]), Apply(Subtract, [3, 18, 0]), Apply(Sign, [19, 0, 0]), Apply(Multiply, [17, 20, 0]), Apply(Multiply, [21, 0, 0]), Apply(Multiply, [22, 0, 0]), Apply(Subtract, [3, 23, 0]), Apply(Pow, [6, 4, 0]), Constant(1.0), Apply(Subtract, [26, 25, 0]), Apply(Divide, [5, 27, 0]), Apply(Multiply, [28, 15, 0]), Apply(Pow, [7, 4, 0]), Constant(1.0), Apply(Subtract, [31, 30, 0]), Apply(Sqrt, [24, 0, 0]), Apply(Sqrt, [32, 0, 0]), Constant(1.0), Apply(Divide, [35, 34, 0]), Apply(Multiply, [33, 36, 0]), Apply(Add, [37, 8, 0]), Apply(Divide, [29, 38, 0]), Apply(Subtract, [1, 39, 0])], Wanted { outputs: &[40, 15, 24], results: &[], guard: None }),
    ("Sophia", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Scalar(6), Scalar(7), Scalar(8), Scalar(9), Apply(Multiply, [6, 2, 0]), Constant(1.0), Apply(Subtract, [15, 6, 0]), Apply(Multiply, [16, 0, 0]), Apply(Add, [14, 17, 0]), Apply(Pow, [6, 4, 0]), Constant(1.0), Apply(Subtract, [20, 19, 0]), Apply(Divide, [18, 21, 0]), Apply(Multiply, [10, 3, 0]), Apply(Maximum, [23, 8, 0]), Apply(Divide, [22, 24, 0]), Apply(Negative, [11, 0, 0]), Apply(Maximum, [25, 26, 0]), Apply(Minimum, [27, 11, 0]), Constant(1.0), Apply(Subtract, [4, 29, 0]), Apply(Remainder, [30, 12, 0]), Constant(0.0), Apply(Equal, [31, 32, 0]), Apply(Multiply, [7, 3, 0]), Constant(1.0), Apply(Subtract, [35, 7, 0]), Apply(Multiply, [36, 13, 0]), Apply(Multiply, [37, 0, 0]), Apply(Multiply, [38, 0, 0]), Apply(Add, [34, 39, 0]), Apply(Where, [33, 40, 3]), Apply(Multiply, [9, 1, 0]), Apply(Add, [28, 42, 0]), Apply(Multiply, [5, 43, 0]), Apply(Subtract, [1, 44, 0])], Wanted { outputs: &[45, 18, 41], results: &[], guard: None }),
    ("ScheduleFreeSgd", &[Leaf(0), Leaf(1), Leaf(2), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Scalar(6), Apply(Multiply, [6, 1, 0]), Apply(Add, [0, 10, 0]), Apply(Maximum, [9, 4, 0]), Apply(Pow, [12, 7, 0]), Apply(Add, [8, 13, 0]), Constant(1.0), Apply(Subtract, [15, 5, 0]), Apply(Multiply, [16, 2, 0]), Apply(Subtract, [1, 17, 0]), Apply(Divide, [18, 5, 0]), Apply(Multiply, [4, 11, 0]), Apply(Subtract, [2, 20, 0]), Constant(0.0), Apply(Greater, [14, 22, 0]), Constant(1.0), Apply(Where, [23, 14, 24]), Apply(Divide, [13, 25, 0]), Apply(Subtract, [21, 19, 0]), Apply(Multiply, [26, 27, 0]), Apply(Add, [19, 28, 0]), Apply(Multiply, [5, 29, 0]), Constant(1.0), Apply(Subtract, [31, 5, 0]), Apply(Multiply, [32, 21, 0]), Apply(Add, [30, 33, 0])], Wanted { outputs: &[34, 21], results: &[14, 12], guard: None }),
    ("ScheduleFreeAdamW", &[Leaf(0), Leaf(1), Leaf(2), Leaf(3), Scalar(0), Scalar(1), Scalar(2), Scalar(3), Scalar(4), Scalar(5), Scalar(6), Scalar(7), Scalar(8), Apply(Multiply, [7, 2, 0]), Constant(1.0), Apply(Subtract, [14, 7, 0]), Apply(Multiply, [15, 0, 0]), Apply(Multiply, [16, 0, 0]), Apply(Add, [13, 17, 0]), Apply(Pow, [7, 4, 0]), Constant(1.0), Apply(Subtract, [20, 19, 0]), Apply(Sqrt, [18, 0, 0]), Apply(Sqrt, [21, 0, 0]), Constant(1.0), Apply(Divide, [24, 23, 0]), Apply(Multiply, [22, 25, 0]), Apply(Add, [26, 8, 0]), Apply(Divide, [0, 27, 0]), Apply(Multiply, [9, 1, 0]), Apply(Add, [28, 29, 0]), Apply(Maximum, [12, 5, 0]), Apply(Pow, [31, 10, 0]), Apply(Add, [11, 32, 0]), Constant(1.0), Apply(Subtract, [34, 6, 0]), Apply(Multiply, [35, 3, 0]), Apply(Subtract, [1, 36, 0]), Apply(Divide, [37, 6, 0]), Apply(Multiply, [5, 30, 0]), Apply(Subtract, [3, 39, 0]), Constant(0.0), Apply(Greater, [33, 41, 0]), Constant(1.0), Apply(Where, [42, 33, 43]), Apply(Divide, [32, 44, 0]), Apply(Subtract, [40, 38, 0]), Apply(Multiply, [45, 46, 0]), Apply(Add, [38, 47, 0]), Apply(Multiply, [6, 48, 0]), Constant(1.0), Apply(Subtract, [50, 6, 0]), Apply(Multiply, [51, 40, 0]), Apply(Add, [49, 52, 0])], Wanted { outputs: &[53, 18, 40], results: &[33, 31], guard: None }),
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

pub(crate) struct Asgd;

impl Native<3, 5, 2> for Asgd {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s12, s13, s10, s18, s17]: [L; 5]) -> [L; 2] {
        let t0 = meaning::Multiply.call(s12, in1);
        let t1 = meaning::Multiply.call(s13, in1);
        let t2 = meaning::Add.call(in0, t1);
        let t3 = meaning::Multiply.call(s10, t2);
        let out0 = meaning::Subtract.call(t0, t3);
        let t5 = meaning::Subtract.call(out0, in2);
        let t6 = meaning::Divide.call(t5, s18);
        let t7 = meaning::Add.call(in2, t6);
        let out1 = meaning::Where.call(s17, t7, out0);
        [out0, out1]
    }
}

pub(crate) struct Rprop;

impl Native<4, 6, 3> for Rprop {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s0, s2, s3, s1, s4, s5]: [L; 6]) -> [L; 3] {
        let t0 = meaning::Multiply.call(in0, in2);
        let t1 = meaning::Less.call(t0, s0);
        let t2 = meaning::Greater.call(t0, s0);
        let t3 = meaning::Where.call(t1, s2, s3);
        let t4 = meaning::Where.call(t2, s1, t3);
        let t5 = meaning::Multiply.call(in3, t4);
        let t6 = meaning::Maximum.call(t5, s4);
        let out2 = meaning::Minimum.call(t6, s5);
        let t8 = meaning::Sign.call(in0);
        let t9 = meaning::Multiply.call(out2, t8);
        let out1 = meaning::Where.call(t1, s0, t9);
        let out0 = meaning::Subtract.call(in1, out1);
        [out0, out1, out2]
    }
}

pub(crate) struct Signum;

impl Native<3, 3, 2> for Signum {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s1, s3, s0]: [L; 3]) -> [L; 2] {
        let t0 = meaning::Multiply.call(s1, in2);
        let t1 = meaning::Multiply.call(s3, in0);
        let out1 = meaning::Add.call(t0, t1);
        let t3 = meaning::Sign.call(out1);
        let t4 = meaning::Multiply.call(s0, t3);
        let out0 = meaning::Subtract.call(in1, t4);
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

pub(crate) struct Adadelta;

impl Native<4, 4, 3> for Adadelta {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s1, s2, s4, s0]: [L; 4]) -> [L; 3] {
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
        [out0, out1, out2]
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

pub(crate) struct RmsPropMomentum;

impl Native<4, 5, 3> for RmsPropMomentum {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s1, s2, s4, s5, s0]: [L; 5]) -> [L; 3] {
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
        [out0, out1, out2]
    }
}

pub(crate) struct RmsPropCentered;

impl Native<4, 5, 3> for RmsPropCentered {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s1, s3, s4, s5, s0]: [L; 5]) -> [L; 3] {
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
        [out0, out1, out2]
    }
}

pub(crate) struct Ftrl;

impl Native<4, 6, 3> for Ftrl {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s2, s4, s5, s7, s6, s13]: [L; 6]) -> [L; 3] {
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
        [out0, out1, out2]
    }
}

pub(crate) struct Madgrad;

impl Native<5, 5, 3> for Madgrad {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4]: [L; 5], [s0, s8, s9, s4, s2]: [L; 5]) -> [L; 3] {
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
        [out0, out1, out2]
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

pub(crate) struct AdamAmsgrad;

impl Native<5, 7, 4> for AdamAmsgrad {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4]: [L; 5], [s2, s7, s6, s8, s9, s13, s14]: [L; 7]) -> [L; 4] {
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
        [out0, out1, out2, out3]
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

pub(crate) struct AdamWAmsgrad;

impl Native<5, 8, 4> for AdamWAmsgrad {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4]: [L; 5], [s4, s5, s10, s9, s11, s12, s16, s17]: [L; 8]) -> [L; 4] {
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
        [out0, out1, out2, out3]
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

pub(crate) struct AdamWAverage;

impl Native<5, 10, 4> for AdamWAverage {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4]: [L; 5], [s4, s5, s10, s9, s11, s12, s16, s17, s18, s19]: [L; 10]) -> [L; 4] {
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
        [out0, out1, out2, out3]
    }
}

pub(crate) struct Adamax;

impl Native<4, 5, 3> for Adamax {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s2, s7, s6, s8, s9]: [L; 5]) -> [L; 3] {
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
        [out0, out1, out2]
    }
}

pub(crate) struct NAdam;

impl Native<4, 9, 3> for NAdam {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s16, s2, s26, s25, s0, s27, s28, s32, s33]: [L; 9]) -> [L; 3] {
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
        [out0, out1, out2]
    }
}

pub(crate) struct RAdam;

impl Native<4, 10, 3> for RAdam {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s8, s9, s33, s35, s32, s19, s1, s6, s2, s36]: [L; 10]) -> [L; 3] {
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
        [out0, out1, out2]
    }
}

pub(crate) struct AdaBelief;

impl Native<4, 8, 3> for AdaBelief {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s2, s7, s6, s8, s9, s10, s14, s15]: [L; 8]) -> [L; 3] {
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
        [out0, out1, out2]
    }
}

pub(crate) struct AdEmaMix;

impl Native<5, 12, 4> for AdEmaMix {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4]: [L; 5], [s1, s3, s6, s8, s9, s7, s10, s11, s15, s16, s17, s0]: [L; 12]) -> [L; 4] {
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
        [out0, out1, out2, out3]
    }
}

pub(crate) struct Adopt;

impl Native<4, 9, 3> for Adopt {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s4, s6, s10, s9, s5, s3, s0, s11, s12]: [L; 9]) -> [L; 3] {
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
        [out0, out1, out2]
    }
}

pub(crate) struct Adan;

impl Native<6, 15, 5> for Adan {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3, in4, in5]: [L; 6], [s1, s3, s6, s7, s12, s13, s11, s10, s0, s14, s15, s17, s18, s19, s22]: [L; 15]) -> [L; 5] {
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
        [out0, out1, out2, out3, out4]
    }
}

pub(crate) struct Yogi;

impl Native<4, 6, 3> for Yogi {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s2, s7, s6, s9, s13, s14]: [L; 6]) -> [L; 3] {
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
        [out0, out1, out2]
    }
}

pub(crate) struct Sophia;

impl Native<4, 12, 3> for Sophia {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s1, s3, s6, s7, s8, s10, s9, s11, s0, s17, s20, s16]: [L; 12]) -> [L; 3] {
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
        [out0, out1, out2]
    }
}

pub(crate) struct ScheduleFreeSgd;

impl Native<3, 5, 2> for ScheduleFreeSgd {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2]: [L; 3], [s2, s0, s14, s4, s13]: [L; 5]) -> [L; 2] {
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
        [out0, out1]
    }
}

pub(crate) struct ScheduleFreeAdamW;

impl Native<4, 9, 3> for ScheduleFreeAdamW {
    #[inline(always)]
    fn call<L: Lane>([in0, in1, in2, in3]: [L; 4], [s2, s0, s14, s15, s20, s21, s22, s4, s13]: [L; 9]) -> [L; 3] {
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
        [out0, out1, out2]
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
