//! The parts of a program while it is made: what its entries refer to, and which of them may be runs.

use std::collections::HashMap;
use std::sync::Arc;

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::op::{Attribute, Op, Structured};
use oxigrad_core::recording::{Entry, Id, Origin, Program, ScalarCall, ScalarRun, Step};
use oxigrad_core::scalar::Precision;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use crate::arrays::compute::elementwise::op_named;
use crate::arrays::compute::run::{Group, Member, Run};
use crate::arrays::memory::numpy::Numpy;
use crate::arrays::value::Value;
use crate::error::unless;
use crate::recording::call::Call;
use crate::recording::scalars::{ScalarOp, precision_named};

/// A constant takes at most so many bytes, or as many as those that it was folded from.
const MOST_FOLDED: usize = 1 << 16;

/// The computation of a run.
pub enum Pass {
    Arrays(Box<Run>),
    Scalars(ScalarRun),
}

/// The computation of a call of a run.
pub enum Part {
    Array(Member),
    /// An op on scalars of these precisions.
    Scalars(ScalarOp, SmallVec<[Precision; 3]>),
}

/// The group of the calls of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    Arrays(Group),
    Scalars,
}

/// A value that Python saw, and where.
pub struct Check {
    pub expected: Py<PyAny>,
    pub line: String,
}

/// The op of a call of a run, the shape of its arrays, and their dtype; without a shape, the precisions of its arguments. Sums along axes have
/// these, and whether they are kept.
type Stated = (String, Vec<usize>, Vec<String>, Option<(Vec<isize>, bool)>);

/// The functions and values that entries refer to, while a program is made.
pub struct Parts {
    pub calls: Vec<Call>,
    pub constants: Vec<Value>,
    pub checks: Vec<Check>,
    pub groups: Vec<Runs>,
    /// The computation of each call that may be part of a run, and its group.
    members: Vec<Option<(Part, u32)>>,
    /// The number of the call of each key.
    keys: Py<PyDict>,
    inputs: u32,
    /// The kernels of runs: repeated blocks of a program have one.
    runs: HashMap<Shape, Option<Arc<Pass>>>,
}

/// A run: the number of values that it reads, its calls, each with the positions of its arguments, and those that it writes.
type Shape = (usize, Vec<(u32, SmallVec<[usize; 3]>)>, Vec<usize>);

impl Parts {
    pub fn new(py: Python<'_>) -> Self {
        Self {
            calls: Vec::new(),
            constants: Vec::new(),
            checks: Vec::new(),
            groups: Vec::new(),
            members: Vec::new(),
            keys: PyDict::new(py).unbind(),
            inputs: 0,
            runs: HashMap::new(),
        }
    }

    pub fn entry(&mut self, given: &Bound<'_, PyTuple>) -> PyResult<Entry> {
        let kind: String = given.get_item(0)?.extract()?;
        let position = |length: usize| u32::try_from(length - 1).expect("ids are of 32 bits");
        Ok(match kind.as_str() {
            "input" => {
                self.inputs += 1;
                Entry { origin: Origin::Input, number: self.inputs - 1, args: Vec::new() }
            }
            "constant" => {
                self.constants.push(Value::new(&given.get_item(1)?));
                Entry { origin: Origin::Constant, number: position(self.constants.len()), args: Vec::new() }
            }
            "check" => {
                let (id, expected, line) =
                    (given.get_item(1)?.extract()?, given.get_item(2)?.unbind(), given.get_item(3)?);
                self.checks.push(Check { expected, line: line.extract()? });
                Entry { origin: Origin::Check, number: position(self.checks.len()), args: vec![id] }
            }
            "call" => self.call(given)?,
            _ => return Err(PyValueError::new_err(format!("an entry is of kind {kind:?}"))),
        })
    }

    fn call(&mut self, given: &Bound<'_, PyTuple>) -> PyResult<Entry> {
        let py = given.py();
        let (mut args, named) = (Vec::new(), given.get_item(4)?.cast_into::<PyDict>()?);
        let shape: Option<Vec<usize>> = given.get_item(5)?.extract()?;
        let (function, arguments) = (given.get_item(2)?, given.get_item(3)?);
        let target: (String, String) = given.get_item(1)?.extract()?;
        let kind = target.0.clone();
        let mut call = Call::new(target, &function, &arguments, &named, &mut args, shape.map(SmallVec::from_vec))?;
        call.is_identity = given.get_item(7)?.is_truthy()?;
        let stated: Option<Stated> = given.get_item(8)?.extract()?;
        let member = stated.map(|stated| self.member(stated, &mut call, &kind)).transpose()?.flatten();
        let (key, fresh) = (given.get_item(6)?, self.calls.len());
        let known: Option<usize> = self.keys.bind(py).get_item(&key)?.map(|known| known.extract()).transpose()?;
        let number = if let Some(known) = known {
            known
        } else {
            self.keys.bind(py).set_item(&key, fresh)?;
            self.calls.push(call);
            self.members.push(member);
            fresh
        };
        let group = self.members[number].as_ref().map(|(_, group)| *group);
        let reduces =
            matches!(self.members[number], Some((Part::Array(Member::Sum | Member::Mean | Member::Axes(..)), _)));
        let number = u32::try_from(number).expect("ids are of 32 bits");
        Ok(Entry { origin: Origin::Call { group, reduces }, number, args })
    }

    /// The computation and the group of a call of a run; `None` where its eager result is not that of the core.
    fn member(
        &mut self,
        (name, shape, dtypes, along): Stated,
        call: &mut Call,
        kind: &str,
    ) -> PyResult<Option<(Part, u32)>> {
        let member = match op_named(&name)? {
            Op::Elementwise(op) if shape.is_empty() => {
                call.scalar_op = ScalarOp::new(kind, op);
                let precisions = dtypes.iter().map(|dtype| precision_named(dtype)).collect::<Option<_>>();
                let part = call.scalar_op.filter(|_| call.is_plain).zip(precisions);
                return Ok(part.map(|(op, precisions)| (Part::Scalars(op, precisions), self.group(Runs::Scalars))));
            }
            Op::Elementwise(op) => Member::Elementwise(op),
            Op::Structured(Structured::Sum) => Member::Sum,
            Op::Structured(Structured::Mean) => Member::Mean,
            Op::Structured(_) => return Ok(None),
        };
        let dtype = match dtypes.first().map(String::as_str) {
            Some("<f4") => Dtype::F32,
            Some("<f8") => Dtype::F64,
            _ => return Ok(None),
        };
        let group = Group { shape: SmallVec::from_vec(shape), dtype };
        if let Some((axes, keepdims)) = along {
            let member = group.sums_along(&axes, keepdims, matches!(member, Member::Mean));
            return Ok(member.map(|member| (Part::Array(member), self.group(Runs::Arrays(group)))));
        }
        if !(matches!(member, Member::Elementwise(_)) || group.has_sums()) {
            return Ok(None);
        }
        Ok(Some((Part::Array(member), self.group(Runs::Arrays(group)))))
    }

    /// The number of a group.
    fn group(&mut self, group: Runs) -> u32 {
        let at = self.groups.iter().position(|known| *known == group).unwrap_or_else(|| {
            self.groups.push(group);
            self.groups.len() - 1
        });
        u32::try_from(at).expect("ids are of 32 bits")
    }

    /// The number of the constant of a call of constants; `None` where it raises, or takes more memory than they do.
    pub fn folded(&mut self, py: Python<'_>, entry: &Entry, args: &[u32]) -> PyResult<Option<u32>> {
        let call = &self.calls[entry.number as usize];
        let read: Vec<&Value> = args.iter().map(|number| &self.constants[*number as usize]).collect();
        let Some(value) = unless::<PyException, _>(py, call.call(py, &read))? else { return Ok(None) };
        let most = read.iter().map(|value| bytes(py, value)).sum::<usize>().max(MOST_FOLDED);
        let is_of_shape = call.shape.is_none() || shape_of(py, &value).is_none_or(|found| Some(found) == call.shape);
        if !is_of_shape || bytes(py, &value) > most {
            return Ok(None);
        }
        self.constants.push(value);
        Ok(u32::try_from(self.constants.len() - 1).ok())
    }

    /// The kernel of a step that is a run.
    pub fn run(&mut self, program: &Program, step: &Step) -> Option<Arc<Pass>> {
        let Step::Run { calls, reads, writes } = step else { return None };
        let at: HashMap<Id, usize> = reads.iter().chain(calls).enumerate().map(|(at, id)| (*id, at)).collect();
        let writes = writes.iter().map(|id| at[id] - reads.len()).collect();
        let call = |id: &Id| {
            let entry = &program.entries()[*id as usize];
            (entry.number, entry.args.iter().map(|arg| at[arg]).collect())
        };
        let shape: Shape = (reads.len(), calls.iter().map(call).collect(), writes);
        if let Some(known) = self.runs.get(&shape) {
            return known.clone();
        }
        let made = self.made(&shape).map(Arc::new);
        self.runs.insert(shape, made.clone());
        made
    }

    fn made(&self, (reads, calls, writes): &Shape) -> Option<Pass> {
        let part = |(number, args): &(u32, SmallVec<[usize; 3]>)| {
            let (part, group) = self.members[*number as usize].as_ref()?;
            Some((part, *group, args.clone()))
        };
        let parts: Vec<_> = calls.iter().map(part).collect::<Option<_>>()?;
        match &self.groups[parts.first()?.1 as usize] {
            Runs::Scalars => scalar_run(*reads, parts, writes.clone()).map(Pass::Scalars),
            Runs::Arrays(group) => {
                let operation = |(part, _, args): (&Part, _, _)| match part {
                    Part::Array(member) => Some((member.clone(), args)),
                    Part::Scalars(..) => None,
                };
                let operations: Vec<_> = parts.into_iter().map(operation).collect::<Option<_>>()?;
                Run::new(&operations, *reads, writes, group).map(|run| Pass::Arrays(Box::new(run)))
            }
        }
    }
}

/// The shape of a NumPy array.
pub fn shape_of(py: Python<'_>, value: &Value) -> Option<SmallVec<[usize; 4]>> {
    let Value::Object(object) = value else { return None };
    Some(Numpy::get(py)?.fields(object.bind(py))?.extents().collect())
}

/// The bytes of the elements of a NumPy array, at eight an element.
fn bytes(py: Python<'_>, value: &Value) -> usize {
    shape_of(py, value).map_or(0, |shape| shape.iter().fold(8, |bytes: usize, extent| bytes.saturating_mul(*extent)))
}

/// The run of calls on scalars, which state the precisions of what they read; `None` where two of them differ.
fn scalar_run(reads: usize, parts: Vec<(&Part, u32, SmallVec<[usize; 3]>)>, writes: Vec<usize>) -> Option<ScalarRun> {
    let mut precisions: Vec<Option<Precision>> = vec![None; reads];
    let mut calls: Vec<ScalarCall> = Vec::with_capacity(parts.len());
    for (part, _, args) in parts {
        let Part::Scalars(op, stated) = part else { return None };
        for (at, precision) in args.iter().zip(stated) {
            if *precisions[*at].get_or_insert(*precision) != *precision {
                return None;
            }
        }
        let call = op.in_run(stated, &args)?;
        precisions.push(Some(call.precision));
        calls.push(call);
    }
    precisions.truncate(reads);
    Some(ScalarRun { reads: precisions.into_iter().collect::<Option<_>>()?, calls, writes })
}

/// Whether the eager result of an op on NumPy arrays is that of the core, for each elementwise op by name.
#[pyfunction]
pub fn is_computed_in_core(name: &str) -> PyResult<bool> {
    let Op::Elementwise(op) = op_named(name)? else { return Ok(false) };
    Ok([Attribute::Exact, Attribute::Vectorized, Attribute::Precise].iter().any(|attribute| op.has(*attribute)))
}
