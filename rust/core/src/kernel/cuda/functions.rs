//! The functions of a text: ops, each printed once from its traced meaning.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::array::dtype::Dtype;
use crate::error::{Error, Result};
use crate::op::{Elementwise, Visitor};
use crate::simd::traced::{Operand, Primitive, Step, Trace, Traceable, Traced, ValueType};
use crate::simd::{Binary, Element, Lane, Ternary, Unary};

/// The functions that a text has so far.
pub(super) struct Functions {
    /// The type of the elements.
    computed: Dtype,
    names: BTreeSet<(&'static str, &'static str)>,
    text: String,
}

impl Functions {
    pub fn new(computed: Dtype) -> Self {
        Self { computed, names: BTreeSet::new(), text: String::new() }
    }

    /// The functions.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name of the type of the elements.
    pub fn element(&self) -> &'static str {
        if self.computed == Dtype::F64 { "double" } else { "float" }
    }

    /// An op on elements, as an expression.
    pub fn on_elements(&mut self, op: Elementwise, args: &[&str]) -> Result<String> {
        if self.computed == Dtype::F64 { self.call::<f64>(op, args) } else { self.call::<f32>(op, args) }
    }

    /// An op on scalars, which are of `f64`, as an expression.
    pub fn on_scalars(&mut self, op: Elementwise, args: &[&str]) -> Result<String> {
        self.call::<f64>(op, args)
    }

    fn call<T: Traceable + Element>(&mut self, op: Elementwise, args: &[&str]) -> Result<String>
    where
        for<'a> Traced<'a, T>: Lane,
    {
        let function = Function::of::<T>(op).ok_or_else(|| {
            Error::Rule(format!("the op {} cannot run on a device: it has no form for one", op.name()))
        })?;
        if let Some(expression) = function.as_expression(args) {
            return Ok(expression);
        }
        if self.names.insert((op.name(), function.kind)) {
            self.text.push_str(&function.print(op));
        }
        Ok(format!("ox_{}({})", op.name(), args.join(", ")))
    }
}

/// The trace of an op.
struct Function {
    steps: Vec<Step>,
    result: Operand,
    kind: &'static str,
}

impl Function {
    fn of<T: Traceable + Element>(op: Elementwise) -> Option<Self>
    where
        for<'a> Traced<'a, T>: Lane,
    {
        let trace = Trace::default();
        let result = op.visit::<Traced<T>, _>(Tracer(&trace)).operand()?;
        Some(Self { steps: trace.into_steps(), result, kind: type_name(T::KIND) })
    }

    /// The function as an expression, if it is one operation on its arguments, or an argument.
    fn as_expression(&self, args: &[&str]) -> Option<String> {
        let arguments = self.steps.iter().take_while(|step| matches!(step.primitive, Primitive::Argument(_))).count();
        let argument = |operand: &Operand| match operand {
            Operand::Step(step) if *step < arguments => args[*step].to_string(),
            other => constant(*other),
        };
        match &self.steps[arguments..] {
            [] => Some(argument(&self.result)),
            [step] if self.result == Operand::Step(arguments) => {
                Some(expression(step, &step.operands.iter().map(argument).collect::<Vec<_>>()))
            }
            _ => None,
        }
    }

    fn print(&self, op: Elementwise) -> String {
        let kind = self.kind;
        let arguments: Vec<String> = (0..op.arity()).map(|k| format!("{kind} v{k}")).collect();
        let mut text =
            format!("static __device__ __forceinline__ {kind} ox_{}({})\n{{\n", op.name(), arguments.join(", "));
        for (number, step) in self.steps.iter().enumerate() {
            let operands: Vec<String> = step.operands.iter().map(|operand| named(*operand)).collect();
            let kind = type_name(step.kind);
            _ = match step.primitive {
                Primitive::Argument(_) => Ok(()),
                Primitive::Variable => writeln!(text, "    {kind} v{number} = {};", operands[0]),
                Primitive::If => writeln!(text, "    if ({}) {{", operands[0]),
                Primitive::Assign => writeln!(text, "    {} = {};", operands[0], operands[1]),
                Primitive::EndIf => writeln!(text, "    }}"),
                _ => writeln!(text, "    const {kind} v{number} = {};", expression(step, &operands)),
            };
        }
        _ = writeln!(text, "    return {};\n}}\n", named(self.result));
        text
    }
}

/// Calls the meaning of an op with the arguments of a trace.
struct Tracer<'a>(&'a Trace);

impl<'a, T: Traceable> Visitor<Traced<'a, T>> for Tracer<'a>
where
    Traced<'a, T>: Lane,
{
    type Output = Traced<'a, T>;

    fn unary(self, f: impl Unary<Traced<'a, T>>) -> Self::Output {
        f.call(self.0.argument(0))
    }

    fn binary(self, f: impl Binary<Traced<'a, T>>) -> Self::Output {
        f.call(self.0.argument(0), self.0.argument(1))
    }

    fn ternary(self, f: impl Ternary<Traced<'a, T>>) -> Self::Output {
        f.call(self.0.argument(0), self.0.argument(1), self.0.argument(2))
    }
}

const fn type_name(kind: ValueType) -> &'static str {
    match kind {
        ValueType::F32 => "float",
        ValueType::F64 => "double",
        ValueType::Bits32 => "ox_u32",
        ValueType::Bits64 => "ox_u64",
        ValueType::Truth => "bool",
    }
}

fn named(operand: Operand) -> String {
    match operand {
        Operand::Step(step) => format!("v{step}"),
        Operand::F32(_) | Operand::F64(_) | Operand::Bits32(_) | Operand::Bits64(_) | Operand::Truth(_) => {
            constant(operand)
        }
    }
}

fn constant(operand: Operand) -> String {
    match operand {
        Operand::F32(value) if value.is_finite() => format!("{value:?}f"),
        Operand::F32(value) => format!("ox_f32({:#x}u)", value.to_bits()),
        Operand::F64(value) => number(value),
        Operand::Bits32(bits) => format!("{bits:#x}u"),
        Operand::Bits64(bits) => format!("{bits:#x}ull"),
        Operand::Truth(truth) => truth.to_string(),
        Operand::Step(step) => format!("v{step}"),
    }
}

/// A constant of `f64`. The shortest digits that are read back as the number are those of Rust as of C++.
pub(super) fn number(value: f64) -> String {
    if value.is_finite() { format!("{value:?}") } else { format!("ox_f64({:#x}ull)", value.to_bits()) }
}

/// The place of the exponent in such bits.
const fn digits(bits: ValueType) -> u32 {
    if matches!(bits, ValueType::Bits32) { f32::FRACTION } else { f64::FRACTION }
}

/// The operation of a step on these operands.
fn expression(step: &Step, operands: &[String]) -> String {
    let is_float = step.kind == ValueType::F32;
    let infix = |sign: &str| format!("{} {sign} {}", operands[0], operands[1]);
    let call = |name: &str| format!("{name}({})", operands.join(", "));
    let either = |float: &str, double: &str| call(if is_float { float } else { double });
    match step.primitive {
        Primitive::Argument(number) => format!("v{number}"),
        Primitive::Add | Primitive::BitsAdd => infix("+"),
        Primitive::Sub | Primitive::BitsSub => infix("-"),
        Primitive::Mul => infix("*"),
        Primitive::Div => infix("/"),
        Primitive::MulAdd => either("fmaf", "fma"),
        Primitive::Rem => call("ox_rem"),
        Primitive::Neg => format!("-{}", operands[0]),
        Primitive::Abs => either("fabsf", "fabs"),
        Primitive::Sqrt => either("sqrtf", "sqrt"),
        Primitive::Floor => either("floorf", "floor"),
        Primitive::Lt => infix("<"),
        Primitive::Le => infix("<="),
        Primitive::Eq => infix("=="),
        Primitive::Ne => infix("!="),
        Primitive::Select => format!("{} ? {} : {}", operands[0], operands[1], operands[2]),
        Primitive::Widen => format!("(double){}", operands[0]),
        Primitive::Narrow => format!("(float){}", operands[0]),
        Primitive::RoundToBfloat16 => call("ox_round_to_bfloat16"),
        Primitive::RoundToFloat16 => call("ox_round_to_float16"),
        Primitive::ToBits => call("ox_bits"),
        Primitive::FromBits => either("ox_f32", "ox_f64"),
        Primitive::BitsAnd => infix("&"),
        Primitive::BitsOr => infix("|"),
        Primitive::BitsUp => format!("{} << {}", operands[0], digits(step.kind)),
        Primitive::BitsDown => format!("{} >> {}", operands[0], digits(step.kind)),
        Primitive::Variable | Primitive::If | Primitive::Assign | Primitive::EndIf => {
            unreachable!("a statement is no expression")
        }
    }
}
