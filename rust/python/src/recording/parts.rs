//! The parts of a program while it is made: what its entries refer to, and which of them may be runs.

use std::collections::HashMap;
use std::sync::OnceLock;

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::array::matmul::is_narrow;
use oxigrad_core::array::shape::Reduction;
use oxigrad_core::exec::array_run::small::{MOST, MOST_OF_FACTORS, SmallCall};
use oxigrad_core::exec::array_run::{ArrayRun, Fold, Group, Member};
use oxigrad_core::op::{Op, Structured};
use oxigrad_core::recording::{Computation, Entry, Origin, Rolled, ScalarCall, ScalarOp, ScalarRun, Words};
use oxigrad_core::scalar::Precision;
use pyo3::exceptions::{PyException, PyValueError};
use smallvec::SmallVec;

use crate::arrays::compute::elementwise::op_named;
use crate::arrays::compute::matrices;
use crate::arrays::value::Value;
use crate::prelude::*;
use crate::recording::call::{Call, Role, shape_of};
use crate::recording::folding::is_bounded;
use crate::recording::scalars::{Small, precision_named, view_of};
use crate::recording::statement::{Stated, Statement};
use crate::recording::trace::classes::Classes;
use crate::recording::trace::entry::TraceEntry;

/// A constant takes at most so many bytes, or as many as those that it was folded from.
const MOST_FOLDED: usize = 1 << 16;

/// The computation of a run.
pub enum Pass {
    Arrays(Box<ArrayRun>),
    Scalars(ScalarRun),
    Small(Box<Small>),
}

/// The computation of a call of a run.
pub enum Part {
    Array(Member),
    Small(SmallCall),
    /// An op on scalars of these precisions.
    Scalars(ScalarOp, SmallVec<[Precision; 3]>),
}

impl Part {
    /// Whether the eager result is a view.
    fn is_view(&self) -> bool {
        match self {
            Self::Small(SmallCall::Reshape(_)) => true,
            Self::Small(SmallCall::View(view, _)) => !view.extents.is_empty() || view.of.is_empty(),
            _ => false,
        }
    }
}

/// The group of the calls of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    Arrays(Group),
    /// Small arrays of any shape, and numbers.
    Small,
}

/// A value that Python saw, and where.
pub struct Check {
    pub expected: Py<PyAny>,
    pub line: String,
}

/// The functions and values that entries refer to, while a program is made.
#[derive(Default)]
pub struct Parts {
    pub calls: Vec<Call>,
    pub constants: Vec<Value>,
    pub checks: Vec<Check>,
    pub groups: Vec<Runs>,
    /// The computation of each call that may be part of a run, and its group.
    members: Vec<Option<(Part, u32)>>,
    inputs: u32,
    classes: Classes,
    /// The numbers of the calls of classes.
    stated: HashMap<u64, u32, Words>,
    /// The bytes of constants that were folded.
    pub folded_bytes: usize,
    /// The computations of steps: repeated blocks of a program have one.
    computations: HashMap<Computation, u32, Words>,
    pub works: Vec<Work>,
}

/// The computation of a step, as a replay has it.
pub struct Work {
    /// The number of values that are read.
    pub reads: usize,
    pub calls: Calls,
    /// The calls whose values are needed later.
    pub writes: Vec<usize>,
}

/// The calls of a step.
pub enum Calls {
    /// One call, of the values that the step reads.
    One(u32),
    /// The calls of a run and its kernel, if there is one. Arguments are positions, first among the values read, then among the calls.
    Run(Rolled, Option<Pass>),
}

impl Parts {
    /// The next entry.
    pub fn entry(&mut self, at: usize, statement: &mut Statement<'_>) -> PyResult<Entry> {
        let entry = statement.entries()[at].clone();
        let (py, its) = (entry.py(), entry.get());
        let position = |length: usize| u32::try_from(length - 1).expect("ids are of 32 bits");
        let (class, args) = self.classes.add(statement)?;
        Ok(match &*its.kind.bind(py).to_cow()? {
            "input" => {
                self.inputs += 1;
                Entry { origin: Origin::Input, number: self.inputs - 1, args }
            }
            "constant" => {
                let value = its.value.as_ref().map_or_else(|| py.None(), |value| value.clone_ref(py));
                self.constants.push(Value::new(value.bind(py)));
                Entry { origin: Origin::Constant, number: position(self.constants.len()), args }
            }
            "check" => {
                let expected = its.value.as_ref().map_or_else(|| py.None(), |value| value.clone_ref(py));
                let line = its.line.as_ref().map_or(Ok(String::new()), |line| line.extract(py))?;
                self.checks.push(Check { expected, line });
                Entry { origin: Origin::Check, number: position(self.checks.len()), args }
            }
            "call" => self.call(py, its, (at, class), args, statement)?,
            kind => return Err(PyValueError::new_err(format!("an entry is of kind {kind:?}"))),
        })
    }

    fn call(
        &mut self,
        py: Python<'_>,
        entry: &TraceEntry,
        (at, class): (usize, u64),
        args: SmallVec<[u32; 4]>,
        statement: &mut Statement<'_>,
    ) -> PyResult<Entry> {
        let number = if let Some(known) = self.stated.get(&class) {
            *known
        } else {
            let (number, first) = statement.of(at)?;
            if let Some((is_identity, member)) = first {
                self.state(py, entry, is_identity, member)?;
            }
            // Truth values have the dtype of the compared numbers, which no class tells.
            let is_truth = entry
                .array_type(py)
                .is_some_and(|its| its.bind(py).get_item(1).and_then(|dtype| dtype.eq("|b1")).unwrap_or_default());
            if !is_truth {
                self.stated.insert(class, number);
            }
            number
        };
        let member = self.members[number as usize].as_ref();
        let reduces = matches!(member, Some((Part::Array(Member::Sum | Member::Mean | Member::Axes(..)), _)));
        let group = member.filter(|(part, _)| !part.is_view()).map(|(_, group)| *group);
        Ok(Entry { origin: Origin::Call { group, reduces }, number, args })
    }

    /// The first call of a number.
    fn state(&mut self, py: Python<'_>, entry: &TraceEntry, is_identity: bool, member: Option<Stated>) -> PyResult<()> {
        let target: (String, String) = entry.target(py).extract()?;
        let function = entry.function.as_ref().map_or_else(|| py.None(), |function| function.clone_ref(py));
        let (kind, arguments) = (target.0.clone(), entry.args.bind(py).as_any());
        let shape = entry.array_type(py).map(|its| its.bind(py).get_item(0)?.extract()).transpose()?;
        let shape = shape.map(SmallVec::from_vec);
        let mut call = Call::new(target, function.bind(py), arguments, &entry.named(py), shape)?;
        call.is_identity = is_identity;
        let member = member.map(|member| self.member(py, member, &mut call, &kind)).transpose()?.flatten();
        call.role = match &member {
            Some((Part::Array(Member::Sum | Member::Mean), _)) => Role::Total,
            Some((part, _)) if part.is_view() => Role::View,
            _ => Role::Other,
        };
        self.calls.push(call);
        self.members.push(member);
        Ok(())
    }

    /// The computation and the group of a call of a run; `None` where its eager result is not that of the core.
    fn member(
        &mut self,
        py: Python<'_>,
        (name, shape, dtypes, along): Stated,
        call: &mut Call,
        kind: &str,
    ) -> PyResult<Option<(Part, u32)>> {
        let member = match op_named(&name)? {
            Op::Elementwise(op) if shape.is_empty() => {
                call.scalar_op = ScalarOp::new(kind, op);
                let precisions = dtypes.iter().map(|dtype| precision_named(dtype)).collect::<Option<_>>();
                let part = call.scalar_op.filter(|_| call.is_plain).zip(precisions);
                let part = part.filter(|(op, precisions): &(_, SmallVec<_>)| op.in_run(precisions).is_some());
                return Ok(part.map(|(op, precisions)| (Part::Scalars(op, precisions), self.group(Runs::Small))));
            }
            Op::Elementwise(op) if dtypes.len() > 1 => Member::Truth(op),
            Op::Elementwise(op) => Member::Elementwise(op),
            Op::Structured(Structured::Sum) => return Ok(self.fold(shape, &dtypes, along, Fold::Sum)),
            Op::Structured(Structured::Mean) => return Ok(self.fold(shape, &dtypes, along, Fold::Mean)),
            Op::Structured(
                op @ (Structured::Inv
                | Structured::Solve
                | Structured::Cholesky
                | Structured::Det
                | Structured::Cofactor),
            ) => {
                let fits =
                    dtype_of(&dtypes) == Some(Dtype::F64) && call.is_plain && shape.iter().product::<usize>() <= MOST;
                let small = if fits { matrices::call(py, op, shape.len())?.map(Part::Small) } else { None };
                return Ok(small.map(|part| (part, self.group(Runs::Small))));
            }
            // Products that the function calls have NumPy's bits.
            Op::Structured(Structured::Matmul) if kind != "op" => {
                let small = match dtype_of(&dtypes).filter(|_| call.is_plain && is_small_product(&shape)) {
                    Some(dtype) => matrices::product(py, dtype)?.map(Part::Small),
                    None => None,
                };
                return Ok(small.map(|part| (part, self.group(Runs::Small))));
            }
            Op::Structured(op @ (Structured::Max | Structured::Min)) => {
                let function = dtype_of(&dtypes).map_or(Ok(None), |dtype| matrices::extremum(py, op, dtype))?;
                return Ok(function.and_then(|function| self.fold(shape, &dtypes, along, Fold::Foreign(function))));
            }
            Op::Structured(op) => {
                let small = structured(op, &shape, &dtypes, along, call).map(Part::Small);
                return Ok(small.map(|part| (part, self.group(Runs::Small))));
            }
        };
        let Some(dtype) = dtype_of(&dtypes) else { return Ok(None) };
        let group = Group { shape: SmallVec::from_vec(shape), dtype };
        if (1..=MOST).contains(&group.len()) {
            let is_truth = matches!(member, Member::Truth(_));
            let (Member::Elementwise(op) | Member::Truth(op)) = member else { return Ok(None) };
            let call = SmallCall::Elementwise(op, group, is_truth);
            return Ok(Some((Part::Small(call), self.group(Runs::Small))));
        }
        Ok(Some((Part::Array(member), self.group(Runs::Arrays(group)))))
    }

    /// The computation and the group of a result along axes, or of all elements.
    fn fold(
        &mut self,
        shape: Vec<usize>,
        dtypes: &[String],
        along: Option<(Vec<isize>, bool)>,
        fold: Fold,
    ) -> Option<(Part, u32)> {
        let group = Group { shape: SmallVec::from_vec(shape), dtype: dtype_of(dtypes)? };
        if (1..=MOST).contains(&group.len()) {
            let (axes, keepdims) = along.map_or((None, false), |(axes, keepdims)| (Some(axes), keepdims));
            Reduction::over(&group.shape, axes.as_deref(), keepdims)?;
            let call = SmallCall::Fold(axes.map(SmallVec::from_vec), keepdims, fold);
            return Some((Part::Small(call), self.group(Runs::Small)));
        }
        // A sum along all axes is that of all elements.
        let along = along.filter(|(axes, keepdims)| *keepdims || axes.len() < group.shape.len());
        let member = match (along, fold) {
            (Some((axes, keepdims)), fold) => group.folded(&axes, keepdims, fold)?,
            (None, Fold::Sum) if group.has_sums() => Member::Sum,
            (None, Fold::Mean) if group.has_sums() => Member::Mean,
            _ => return None,
        };
        Some((Part::Array(member), self.group(Runs::Arrays(group))))
    }

    /// The group of calls whose eager results are views, by their number.
    pub fn view(&self, number: u32) -> Option<u32> {
        self.members[number as usize].as_ref().filter(|(part, _)| part.is_view()).map(|(_, group)| *group)
    }

    /// The number of a group.
    fn group(&mut self, group: Runs) -> u32 {
        let at = self.groups.iter().position(|known| *known == group).unwrap_or_else(|| {
            self.groups.push(group);
            self.groups.len() - 1
        });
        u32::try_from(at).expect("ids are of 32 bits")
    }

    /// The number of the constant of a call of constants; `None` where it raises, or takes more memory than they do, or no bounded time.
    pub fn folded(&mut self, py: Python<'_>, entry: &Entry, args: &[u32]) -> PyResult<Option<u32>> {
        let call = &self.calls[entry.number as usize];
        let read: Vec<&Value> = args.iter().map(|number| &self.constants[*number as usize]).collect();
        let most = read.iter().map(|value| bytes(py, value)).sum::<usize>().max(MOST_FOLDED);
        if !is_bounded(py, call, &read, most)? {
            return Ok(None);
        }
        let Some(value) = unless::<PyException, _>(py, call.call(py, &read))? else { return Ok(None) };
        let is_of_shape = call.shape.is_none() || shape_of(py, &value).is_none_or(|found| Some(found) == call.shape);
        if !is_of_shape || bytes(py, &value) > most {
            return Ok(None);
        }
        self.folded_bytes += bytes(py, &value).max(8);
        self.constants.push(value);
        Ok(u32::try_from(self.constants.len() - 1).ok())
    }

    /// The number of a computation.
    pub fn work(&mut self, computation: Computation) -> u32 {
        if let Some(known) = self.computations.get(&computation) {
            return *known;
        }
        let number = u32::try_from(self.works.len()).expect("ids are of 32 bits");
        let calls = if let [only] = &computation.calls[..] {
            Calls::One(only.number)
        } else {
            let rolled = Rolled::of_entries(&computation.calls);
            let pass = self.pass(&computation, &rolled);
            Calls::Run(rolled, pass)
        };
        self.works.push(Work { reads: computation.reads, calls, writes: computation.writes.clone() });
        self.computations.insert(computation, number);
        number
    }

    /// The kernel of a run.
    fn pass(&self, Computation { reads, calls, writes }: &Computation, rolled: &Rolled) -> Option<Pass> {
        let part = |number: u32| self.members[number as usize].as_ref().map(|(part, _)| part);
        let (_, group) = self.members[calls.first()?.number as usize].as_ref()?;
        match &self.groups[*group as usize] {
            Runs::Small if calls.iter().all(|call| matches!(part(call.number), Some(Part::Scalars(..)))) => {
                let stated = |number| match part(number)? {
                    Part::Scalars(op, precisions) => Some((*op, &precisions[..])),
                    _ => None,
                };
                let precisions = ScalarOp::precisions_read(*reads, calls, stated)?;
                let call = |number| stated(number).and_then(|(op, precisions)| op.in_run(precisions));
                ScalarRun::new(precisions, rolled, writes, call).map(Pass::Scalars)
            }
            Runs::Small => {
                let call = |entry: &Entry| {
                    let call = match part(entry.number)? {
                        Part::Small(call) => call.clone(),
                        Part::Scalars(op, precisions) => {
                            let ScalarCall { op, condition, .. } = op.in_run(precisions)?;
                            SmallCall::Number(op, condition, precisions.clone())
                        }
                        Part::Array(_) => return None,
                    };
                    Some((call, entry.args.iter().map(|at| *at as usize).collect()))
                };
                let calls = calls.iter().map(call).collect::<Option<_>>()?;
                Some(Pass::Small(Box::new(Small { calls, writes: writes.clone(), run: OnceLock::new() })))
            }
            Runs::Arrays(group) => {
                let operation = |entry: &Entry| match part(entry.number)? {
                    Part::Array(member) => Some((member.clone(), entry.args.iter().map(|at| *at as usize).collect())),
                    _ => None,
                };
                let operations: Vec<_> = calls.iter().map(operation).collect::<Option<_>>()?;
                ArrayRun::new(&operations, *reads, writes, group).map(|run| Pass::Arrays(Box::new(run)))
            }
        }
    }
}

/// The dtype in which a call is computed.
fn dtype_of(dtypes: &[String]) -> Option<Dtype> {
    match dtypes.first().map(String::as_str) {
        Some("<f4") => Some(Dtype::F32),
        Some("<f8") => Some(Dtype::F64),
        _ => None,
    }
}

fn is_small(extents: &[usize]) -> bool {
    (1..=MOST).contains(&extents.iter().product())
}

/// Whether the factors and the product of these rows, inner length and columns are small.
fn is_small_product(shape: &[usize]) -> bool {
    let fits = |one: usize, other: usize| (1..=MOST_OF_FACTORS).contains(&(one * other));
    matches!(*shape, [rows, inner, columns] if fits(rows, inner) && fits(inner, columns) && fits(rows, columns))
}

/// A call on small arrays: a product, whose rows, inner length and columns are the shape, or a view of an array of the shape.
fn structured(
    op: Structured,
    shape: &[usize],
    dtypes: &[String],
    along: Option<(Vec<isize>, bool)>,
    call: &Call,
) -> Option<SmallCall> {
    match (op, shape) {
        (Structured::Matmul, [_, inner, columns]) => {
            (is_small_product(shape) && is_narrow(*inner, *columns)).then_some(SmallCall::Product)
        }
        (Structured::Reshape | Structured::ExpandDims | Structured::Squeeze, shape) if is_small(shape) => {
            call.shape.clone().map(SmallCall::Reshape)
        }
        (Structured::Concat | Structured::Stack, shape) if is_small(shape) && call.is_plain => {
            let (axes, _) = along?;
            let axis = axes.first().and_then(|axis| usize::try_from(*axis).ok())?;
            Some(SmallCall::Join(axis, op == Structured::Stack))
        }
        (Structured::Index | Structured::ScatterAdd, shape) => {
            let (parts, adds) = along?;
            let (view, dtype) = (view_of(shape, &parts)?, dtype_of(dtypes)?);
            let fits = view.is_within() && is_small(&view.of) && is_small(&view.extents);
            let call = |view| match op {
                Structured::Index => SmallCall::View(view, dtype),
                _ => SmallCall::Scatter(view, dtype, adds),
            };
            fits.then(|| call(view))
        }
        _ => None,
    }
}

/// The bytes of the elements of a NumPy array, at eight an element.
fn bytes(py: Python<'_>, value: &Value) -> usize {
    shape_of(py, value).map_or(0, |shape| shape.iter().fold(8, |bytes: usize, extent| bytes.saturating_mul(*extent)))
}
