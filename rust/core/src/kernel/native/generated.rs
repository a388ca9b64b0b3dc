//! Printed by `kernel/codegen.rs` from the rules of the Python layer (`make generated`); do not edit.

use super::code::{NativeCode, NativeVisitor, count, native_kernels};
use crate::op::meaning;
#[allow(unused_imports, reason = "no rule may have an op of some arity")]
use crate::simd::{Binary, Lane, Ternary, Unary};

native_kernels! {
    0xabb4a581a57792783e7fc4d1001b10db Sgd {
        Sgd: [in0, in1] [s1, s0] -> [out0] [] {
            let t0 = meaning::Multiply.call(s1, in1);
            let t1 = meaning::Add.call(in0, t0);
            let t2 = meaning::Multiply.call(s0, t1);
            let out0 = meaning::Subtract.call(in1, t2);
        }
    }
    0xa62c993545bde1004b50cadcc8fa463d Momentum {
        Momentum: [in0, in1, in2] [s1, s8, s7, s0] -> [out0, out1] [] {
            let t0 = meaning::Multiply.call(s1, in2);
            let t1 = meaning::Multiply.call(s8, in1);
            let t2 = meaning::Add.call(in0, t1);
            let t3 = meaning::Multiply.call(s7, t2);
            let out1 = meaning::Add.call(t0, t3);
            let t5 = meaning::Multiply.call(s0, out1);
            let out0 = meaning::Subtract.call(in1, t5);
        }
    }
    0x05425526e27b22ae94e68446bc7d7cfa Nesterov {
        Nesterov: [in0, in1, in2] [s1, s2, s8, s0] -> [out0, out1] [] {
            let t0 = meaning::Multiply.call(s1, in1);
            let t1 = meaning::Add.call(in0, t0);
            let t2 = meaning::Multiply.call(s2, in2);
            let t3 = meaning::Multiply.call(s8, t1);
            let out1 = meaning::Add.call(t2, t3);
            let t5 = meaning::Multiply.call(s2, out1);
            let t6 = meaning::Add.call(t1, t5);
            let t7 = meaning::Multiply.call(s0, t6);
            let out0 = meaning::Subtract.call(in1, t7);
        }
    }
    0x35e03599abbcd67e1329eb81bc461813 Asgd {
        Asgd: [in0, in1, in2] [s12, s13, s10, s18, s17] -> [out0, out1] [] {
            let t0 = meaning::Multiply.call(s12, in1);
            let t1 = meaning::Multiply.call(s13, in1);
            let t2 = meaning::Add.call(in0, t1);
            let t3 = meaning::Multiply.call(s10, t2);
            let out0 = meaning::Subtract.call(t0, t3);
            let t5 = meaning::Subtract.call(out0, in2);
            let t6 = meaning::Divide.call(t5, s18);
            let t7 = meaning::Add.call(in2, t6);
            let out1 = meaning::Where.call(s17, t7, out0);
        }
    }
    0xda93c934ef25a4df5e66b9d51867afd3 OptimisticSgd {
        OptimisticSgd: [in0, in1, in2] [s1, s5, s6, s2, s0] -> [out0, out1] [] {
            let t0 = meaning::Multiply.call(s1, in0);
            let t1 = meaning::Subtract.call(in0, in2);
            let t2 = meaning::Where.call(s5, s6, t1);
            let t3 = meaning::Multiply.call(s2, t2);
            let t4 = meaning::Add.call(t0, t3);
            let t5 = meaning::Multiply.call(s0, t4);
            let out0 = meaning::Subtract.call(in1, t5);
            let out1 = meaning::Positive.call(in0);
        }
    }
    0x647110132e6e2817841e8573c402f78c Rprop {
        Rprop: [in0, in1, in2, in3] [s0, s1, s2, s3, s4] -> [out0, out1, out2] [] {
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
        }
    }
    0xe0aa7157c7a5f476a9ac88e61173a393 Signum {
        Signum: [in0, in1, in2] [s1, s3, s0] -> [out0, out1] [] {
            let t0 = meaning::Multiply.call(s1, in2);
            let t1 = meaning::Multiply.call(s3, in0);
            let out1 = meaning::Add.call(t0, t1);
            let t3 = meaning::Sign.call(out1);
            let t4 = meaning::Multiply.call(s0, t3);
            let out0 = meaning::Subtract.call(in1, t4);
        }
    }
    0xcac21c3b3a9e48dc980677bd0d656ab4 Lion {
        Lion: [in0, in1, in2] [s1, s3, s4, s0, s5, s6] -> [out0, out1] [] {
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
        }
    }
    0xa80364f9ac9b127dcee9e108d4bab239 Lars {
        LarsPhase0: [in0, in1] [_, s2, _] -> [] [[in1, in1], [t1, t1]] {
            let t0 = meaning::Multiply.call(s2, in1);
            let t1 = meaning::Add.call(in0, t0);
        }
        LarsPhase1: [in0, in1, in2] [s0, s2, s19] -> [out0, out1] [] {
            let t0 = meaning::Multiply.call(s0, in2);
            let t1 = meaning::Multiply.call(s2, in1);
            let t2 = meaning::Add.call(in0, t1);
            let t3 = meaning::Multiply.call(s19, t2);
            let out1 = meaning::Add.call(t0, t3);
            let out0 = meaning::Subtract.call(in1, out1);
        }
    }
    0xdc8d56623ceba30ebe414ebb099c4548 Adagrad {
        Adagrad: [in0, in1, in2] [s7, s8] -> [out0, out1] [] {
            let t0 = meaning::Multiply.call(s7, in0);
            let t1 = meaning::Multiply.call(in0, in0);
            let out1 = meaning::Add.call(in2, t1);
            let t3 = meaning::Sqrt.call(out1);
            let t4 = meaning::Add.call(t3, s8);
            let t5 = meaning::Divide.call(t0, t4);
            let out0 = meaning::Subtract.call(in1, t5);
        }
    }
    0x54f59e561b6a094fbf08af2ee3577198 Adadelta {
        Adadelta: [in0, in1, in2, in3] [s1, s2, s4, s0] -> [out0, out1, out2] [] {
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
        }
    }
    0x2aaebb08acef6ef4ec2b9ad387410d62 RmsProp {
        RmsProp: [in0, in1, in2] [s1, s3, s4, s0] -> [out0, out1] [] {
            let t0 = meaning::Multiply.call(s1, in2);
            let t1 = meaning::Multiply.call(s3, in0);
            let t2 = meaning::Multiply.call(t1, in0);
            let out1 = meaning::Add.call(t0, t2);
            let t4 = meaning::Sqrt.call(out1);
            let t5 = meaning::Add.call(t4, s4);
            let t6 = meaning::Divide.call(in0, t5);
            let t7 = meaning::Multiply.call(s0, t6);
            let out0 = meaning::Subtract.call(in1, t7);
        }
    }
    0xee02558aa0984722f0477e8ff6f250d4 RmsPropMomentum {
        RmsPropMomentum: [in0, in1, in2, in3] [s1, s2, s4, s5, s0] -> [out0, out1, out2] [] {
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
        }
    }
    0xedd24185ace5c6bdca2b3fd3adba5b4c RmsPropCentered {
        RmsPropCentered: [in0, in1, in2, in3] [s1, s3, s4, s5, s0] -> [out0, out1, out2] [] {
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
        }
    }
    0xa6f8b15f8b3ab4c6fa75f4cc4a804f7d Ftrl {
        Ftrl: [in0, in1, in2, in3] [s5, s7, s9, s11, s10, s17, s2] -> [out0, out1, out2] [] {
            let t0 = meaning::Add.call(in2, in0);
            let t1 = meaning::Multiply.call(s5, in1);
            let t2 = meaning::Add.call(t0, t1);
            let t3 = meaning::Multiply.call(in0, in0);
            let t4 = meaning::Add.call(in3, t3);
            let t5 = meaning::Pow.call(t4, s7);
            let t6 = meaning::Pow.call(in3, s7);
            let t7 = meaning::Subtract.call(t5, t6);
            let t8 = meaning::Divide.call(t7, s9);
            let t9 = meaning::Multiply.call(t8, in1);
            let t10 = meaning::Subtract.call(t2, t9);
            let t11 = meaning::Maximum.call(t10, s11);
            let t12 = meaning::Minimum.call(t11, s10);
            let t13 = meaning::Subtract.call(t12, t10);
            let t14 = meaning::Divide.call(t5, s9);
            let t15 = meaning::Add.call(t14, s17);
            let t16 = meaning::Divide.call(t13, t15);
            let out0 = meaning::Where.call(s2, t16, in1);
            let out1 = meaning::Where.call(s2, t10, in2);
            let out2 = meaning::Where.call(s2, t4, in3);
        }
    }
    0xdcd49fe55cad5c1b795a242625818bf0 Madgrad {
        Madgrad: [in0, in1, in2, in3, in4] [s0, s8, s9, s4, s2] -> [out0, out1, out2] [] {
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
        }
    }
    0xefa12581b0cffbd94a5fbc18e5a5ddaf Adam {
        Adam: [in0, in1, in2, in3] [s2, s7, s6, s8, s9, s13, s14] -> [out0, out1, out2] [] {
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
        }
    }
    0xc668cfcf3b789baa54548b96998e0845 AdamAmsgrad {
        AdamAmsgrad: [in0, in1, in2, in3, in4] [s2, s7, s6, s8, s9, s13, s14] -> [out0, out1, out2, out3] [] {
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
        }
    }
    0xa01ff991339e8c82f74987a3352bdec3 AdamW {
        AdamW: [in0, in1, in2, in3] [s4, s5, s10, s9, s11, s12, s16, s17] -> [out0, out1, out2] [] {
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
        }
    }
    0xe0b91315266ae2ff2331e71c64c5633f AdamWAmsgrad {
        AdamWAmsgrad: [in0, in1, in2, in3, in4] [s4, s5, s10, s9, s11, s12, s16, s17] -> [out0, out1, out2, out3] [] {
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
        }
    }
    0x6af4098b4182f1c93d8d6738e35927ec AdamWMaster {
        AdamWMaster: [in0, in2, in3, in4] [s4, s5, s10, s9, s11, s12, s16, s17] -> [out0, out1, out2, out3] [] {
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
        }
    }
    0x5f218fedd2c9afd26a97d1f7f9c3e26e AdamWKahan {
        AdamWKahan: [in0, in1, in2, in3, in4] [s4, s5, s10, s9, s11, s12, s16, s17] -> [out0, out1, out2, out3] [] {
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
        }
    }
    0xf98fc84a853a67722af055e7ee37393b AdamWAverage {
        AdamWAverage: [in0, in1, in2, in3, in4] [s4, s5, s10, s9, s11, s12, s16, s17, s18, s19] -> [out0, out1, out2, out3] [] {
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
        }
    }
    0x79f630a7a87b22ef854bedcdc84b7ffc ClippedAdamW {
        ClippedAdamWPhase0: [in0] [_, _, _, _, _, _, _, _, _] -> [] [[in0, in0]] {

        }
        ClippedAdamWPhase1: [in0, in1, in2, in3] [s4, s5, s25, s10, s9, s12, s13, s17, s18] -> [out0, out1, out2] [] {
            let t0 = meaning::Multiply.call(s4, in1);
            let t1 = meaning::Multiply.call(s5, in2);
            let t2 = meaning::Multiply.call(in0, s25);
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
        }
    }
    0x26bfd35fe7fd47530eed82c61459a0e0 ClippedAdamWMaster {
        ClippedAdamWMasterPhase0: [in0] [_, _, _, _, _, _, _, _, _] -> [] [[in0, in0]] {

        }
        ClippedAdamWMasterPhase1: [in0, in2, in3, in4] [s4, s5, s25, s10, s9, s12, s13, s17, s18] -> [out0, out1, out2, out3] [] {
            let t0 = meaning::Multiply.call(s4, in4);
            let t1 = meaning::Multiply.call(s5, in2);
            let t2 = meaning::Multiply.call(in0, s25);
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
            let out3 = meaning::Positive.call(out0);
        }
    }
    0xb577eb1d9f4f66d39bcc1a9299855c6f AdamWOfKnownNorm {
        AdamWOfKnownNorm: [in0, in1, in2, in3] [s4, s5, s17, s10, s9, s18, s19, s23, s24] -> [out0, out1, out2] [] {
            let t0 = meaning::Multiply.call(s4, in1);
            let t1 = meaning::Multiply.call(s5, in2);
            let t2 = meaning::Multiply.call(in0, s17);
            let t3 = meaning::Multiply.call(s10, t2);
            let out1 = meaning::Add.call(t1, t3);
            let t5 = meaning::Multiply.call(s9, out1);
            let t6 = meaning::Multiply.call(s18, in3);
            let t7 = meaning::Multiply.call(s19, t2);
            let t8 = meaning::Multiply.call(t7, t2);
            let out2 = meaning::Add.call(t6, t8);
            let t10 = meaning::Sqrt.call(out2);
            let t11 = meaning::Multiply.call(t10, s23);
            let t12 = meaning::Add.call(t11, s24);
            let t13 = meaning::Divide.call(t5, t12);
            let out0 = meaning::Subtract.call(t0, t13);
        }
    }
    0xd32d456d814de5a0126ceb986c8a4d38 AdamWOfKnownNormMaster {
        AdamWOfKnownNormMaster: [in0, in2, in3, in4] [s4, s5, s17, s10, s9, s18, s19, s23, s24] -> [out0, out1, out2, out3] [] {
            let t0 = meaning::Multiply.call(s4, in4);
            let t1 = meaning::Multiply.call(s5, in2);
            let t2 = meaning::Multiply.call(in0, s17);
            let t3 = meaning::Multiply.call(s10, t2);
            let out1 = meaning::Add.call(t1, t3);
            let t5 = meaning::Multiply.call(s9, out1);
            let t6 = meaning::Multiply.call(s18, in3);
            let t7 = meaning::Multiply.call(s19, t2);
            let t8 = meaning::Multiply.call(t7, t2);
            let out2 = meaning::Add.call(t6, t8);
            let t10 = meaning::Sqrt.call(out2);
            let t11 = meaning::Multiply.call(t10, s23);
            let t12 = meaning::Add.call(t11, s24);
            let t13 = meaning::Divide.call(t5, t12);
            let out0 = meaning::Subtract.call(t0, t13);
            let out3 = meaning::Positive.call(out0);
        }
    }
    0xe9fa4849aa605c3a09d793adb1ad901d ClippedAdamWAverage {
        ClippedAdamWAveragePhase0: [in0] [_, _, _, _, _, _, _, _, _, _, _] -> [] [[in0, in0]] {

        }
        ClippedAdamWAveragePhase1: [in0, in1, in2, in3, in4] [s4, s5, s27, s10, s9, s12, s13, s17, s18, s19, s20] -> [out0, out1, out2, out3] [] {
            let t0 = meaning::Multiply.call(s4, in1);
            let t1 = meaning::Multiply.call(s5, in2);
            let t2 = meaning::Multiply.call(in0, s27);
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
        }
    }
    0xf294c0a0ef6b6001e165e29302475091 ClippedAdamWTail {
        ClippedAdamWTailPhase0: [in0] [_, _, s12, _, _, _, _, _, _, _, _, _, _] -> [] [[t0, t0], [t1]] {
            let t0 = meaning::Multiply.call(in0, s12);
            let t1 = meaning::Subtract.call(t0, t0);
        }
        ClippedAdamWTailPhase1: [in0, in1, in2, in3, in4] [s5, s6, s12, s29, s11, s10, s14, s15, s19, s20, s21, s22, s0] -> [out0, out1, out2, out3, out4, out5] [] {
            let t0 = meaning::Multiply.call(s5, in1);
            let t1 = meaning::Multiply.call(s6, in2);
            let t2 = meaning::Multiply.call(in0, s12);
            let t3 = meaning::Multiply.call(t2, s29);
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
        }
    }
    0xcebf8445a741e90ad92f2f657732ce01 AdamLrd {
        AdamLrd: [in0, in1, in2, in3, noise0] [s0, s1, s2, s4, s9, s8, s10, s11, s15, s16] -> [out0, out1, out2] [] {
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
        }
    }
    0x6eb7b77eabd0be0ad39c85359f412ab0 Adamax {
        Adamax: [in0, in1, in2, in3] [s2, s7, s6, s8, s9] -> [out0, out1, out2] [] {
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
        }
    }
    0x1f2e4f97356d9b9e55b4cb102c45ec46 NAdam {
        NAdam: [in0, in1, in2, in3] [s16, s2, s26, s25, s0, s27, s28, s32, s33] -> [out0, out1, out2] [] {
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
        }
    }
    0x8eaf5ae02f2ad835471576fd8bb25d57 RAdam {
        RAdam: [in0, in1, in2, in3] [s8, s9, s33, s35, s32, s19, s1, s6, s2, s36] -> [out0, out1, out2] [] {
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
        }
    }
    0x07e2cf61189ca13059c1bf670b198b69 OptimisticAdam {
        OptimisticAdam: [in0, in1, in2, in3, in4] [s2, s9, s8, s12, s13, s14, s18, s19, s1, s21, s22, s20, s0] -> [out0, out1, out2, out3] [] {
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
        }
    }
    0x2724bef937894312a34230ad6251c8ac AdaBelief {
        AdaBelief: [in0, in1, in2, in3] [s2, s7, s6, s8, s9, s10, s14, s15] -> [out0, out1, out2] [] {
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
        }
    }
    0x6d8c3e6cfacc712e8aec0b0066a42b08 AdEmaMix {
        AdEmaMix: [in0, in1, in2, in3, in4] [s1, s3, s6, s8, s9, s7, s10, s11, s15, s16, s17, s0] -> [out0, out1, out2, out3] [] {
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
        }
    }
    0x87306d1eaf879bb7da2a04ab04b1097e Adopt {
        Adopt: [in0, in1, in2, in3] [s4, s6, s10, s9, s5, s3, s0, s11, s12] -> [out0, out1, out2] [] {
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
        }
    }
    0xc109b1042335433236fb303d4c5ea352 Adan {
        Adan: [in0, in1, in2, in3, in4, in5] [s1, s3, s6, s7, s12, s13, s11, s10, s0, s14, s15, s17, s18, s19, s22] -> [out0, out1, out2, out3, out4] [] {
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
        }
    }
    0xcd74d724a379a71a63140ad3dd1a5478 Yogi {
        Yogi: [in0, in1, in2, in3] [s2, s7, s6, s9, s13, s14] -> [out0, out1, out2] [] {
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
        }
    }
    0xd4890ef67cc4e8b3ef2bd2a243d8f748 Lamb {
        LambPhase0: [in0, in1, in2, in3] [s1, s3, s6, s7, s8, s12, s13, s14, _] -> [] [[in1, in1], [t13, t13]] {
            let t0 = meaning::Multiply.call(s1, in2);
            let t1 = meaning::Multiply.call(s3, in0);
            let t2 = meaning::Add.call(t0, t1);
            let t3 = meaning::Divide.call(t2, s6);
            let t4 = meaning::Multiply.call(s7, in3);
            let t5 = meaning::Multiply.call(s8, in0);
            let t6 = meaning::Multiply.call(t5, in0);
            let t7 = meaning::Add.call(t4, t6);
            let t8 = meaning::Sqrt.call(t7);
            let t9 = meaning::Multiply.call(t8, s12);
            let t10 = meaning::Add.call(t9, s13);
            let t11 = meaning::Divide.call(t3, t10);
            let t12 = meaning::Multiply.call(s14, in1);
            let t13 = meaning::Add.call(t11, t12);
        }
        LambPhase1: [in0, in1, in2, in3] [s1, s3, s6, s7, s8, s12, s13, s14, s28] -> [out0, out1, out2] [] {
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
        }
    }
    0x6a1f6d567a3f612065cb0d5649c08911 NovoGrad {
        NovoGradPhase0: [in0] [_, _, _, _] -> [] [[in0, in0]] {

        }
        NovoGradPhase1: [in0, in1, in2] [s1, s16, s10, s0] -> [out0, out1] [] {
            let t0 = meaning::Multiply.call(s1, in2);
            let t1 = meaning::Divide.call(in0, s16);
            let t2 = meaning::Add.call(t0, t1);
            let t3 = meaning::Multiply.call(s10, in1);
            let out1 = meaning::Add.call(t2, t3);
            let t5 = meaning::Multiply.call(s0, out1);
            let out0 = meaning::Subtract.call(in1, t5);
        }
    }
    0x015a7f4c87911ad7706f8a8b65fcf7c9 Sophia {
        Sophia: [in0, in1, in2, in3] [s1, s3, s6, s7, s8, s10, s9, s11, s0, s17, s20, s16] -> [out0, out1, out2] [] {
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
        }
    }
    0x7ecbb54bf10c1ae020019ec220c58eee Prodigy {
        ProdigyPhase0: [in0, in1, in4, in5] [_, _, _, _, _, s28, s34, _, _] -> [] [[in0, t0], [t4]] {
            let t0 = meaning::Subtract.call(in5, in1);
            let t1 = meaning::Multiply.call(s28, in4);
            let t2 = meaning::Multiply.call(s34, in0);
            let t3 = meaning::Add.call(t1, t2);
            let t4 = meaning::Abs.call(t3);
        }
        ProdigyPhase1: [in0, in1, in2, in3, in4] [s17, s13, s19, s8, s22, s28, s34, s47, s16] -> [out0, out1, out2, out3] [] {
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
        }
    }
    0x2e33f2801b37ad708beb30b8a4bd463a ScheduleFreeSgd {
        ScheduleFreeSgd: [in0, in1, in2] [s2, s0, s14, s4, s13] -> [out0, out1] [] {
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
        }
    }
    0xe866dec3424534e98694425e63fd718c ScheduleFreeAdamW {
        ScheduleFreeAdamW: [in0, in1, in2, in3] [s2, s0, s14, s15, s20, s21, s22, s4, s13] -> [out0, out1, out2] [] {
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
        }
    }
}
