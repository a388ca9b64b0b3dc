//! The count of an optimizer's steps and the progress of the one under way, which other threads and forked children may
//! read at any time.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::error::{Error, Result};

/// The largest count of steps.
pub const MOST_STEPS: u64 = i64::MAX.cast_unsigned();

/// The progress of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No step is under way.
    Idle,
    /// A step makes its checks, and has written nothing.
    Checking,
    /// A step writes.
    Writing,
    /// A step was stopped while it wrote.
    Broken,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Idle, Self::Checking, Self::Writing, Self::Broken];
}

/// The count of steps, and of the gradients that were accumulated since the last one. A process is given by a number
/// that differs from that of its parent.
#[derive(Debug, Default)]
pub struct StepCount {
    steps: AtomicU64,
    micro: AtomicU64,
    phase: AtomicU8,
    /// The process in which the step under way began.
    process: AtomicU32,
}

impl StepCount {
    /// The number of steps taken.
    #[inline]
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// The number of gradients accumulated since the last step.
    pub fn micro(&self) -> u64 {
        self.micro.load(Ordering::Relaxed)
    }

    /// Sets the number of steps.
    ///
    /// # Errors
    /// `State` if it is too large.
    pub fn set_steps(&self, steps: u64) -> Result<()> {
        self.steps.store(countable(steps)?, Ordering::Relaxed);
        Ok(())
    }

    /// Sets the number of accumulated gradients.
    ///
    /// # Errors
    /// `State` if it is too large.
    pub fn set_micro(&self, micro: u64) -> Result<()> {
        self.micro.store(countable(micro)?, Ordering::Relaxed);
        Ok(())
    }

    /// Begins a step.
    ///
    /// # Errors
    /// `State` if one is under way, or no further one can be counted.
    pub fn begin(&self, process: u32) -> Result<()> {
        self.check_idle(process)?;
        if self.steps() >= MOST_STEPS || self.micro() >= MOST_STEPS {
            return Err(Error::State(format!("{MOST_STEPS} steps have been taken: the step count cannot exceed this")));
        }
        self.set_phase(Phase::Checking);
        self.process.store(process, Ordering::Relaxed);
        Ok(())
    }

    /// Marks that the step under way writes from now on.
    #[inline]
    pub fn begin_writing(&self) {
        self.set_phase(Phase::Writing);
    }

    /// Counts the step under way, or, where it `holds`, one more accumulated gradient.
    pub fn advance(&self, holds: bool) {
        if holds {
            self.micro.fetch_add(1, Ordering::Relaxed);
        } else {
            self.micro.store(0, Ordering::Relaxed);
            self.steps.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Ends the step under way; `is_broken` says that it has written a part, and `panics` that it may have, if it was
    /// writing.
    pub fn end(&self, is_broken: bool, panics: bool) {
        let is_broken = is_broken || (panics && self.phase() == Phase::Writing);
        self.set_phase(if is_broken { Phase::Broken } else { Phase::Idle });
    }

    /// Refuses a step while another one is under way. One that was under way in another thread of the parent of a forked
    /// process, and had written nothing, is none.
    ///
    /// # Errors
    /// `State`, with what is under way, or was stopped.
    pub fn check_idle(&self, process: u32) -> Result<()> {
        match self.phase() {
            Phase::Idle => Ok(()),
            Phase::Checking if self.is_forked(process) => {
                self.set_phase(Phase::Idle);
                Ok(())
            }
            Phase::Checking | Phase::Writing | Phase::Broken => Err(self.halted(process)),
        }
    }

    /// Checks that slots and counts are those of a whole number of steps.
    ///
    /// # Errors
    /// `State` while a step writes, or after one that was stopped while it wrote.
    pub fn check_whole(&self, process: u32) -> Result<()> {
        match self.phase() {
            Phase::Writing | Phase::Broken => Err(self.halted(process)),
            Phase::Idle | Phase::Checking => Ok(()),
        }
    }

    fn phase(&self) -> Phase {
        Phase::ALL[usize::from(self.phase.load(Ordering::Relaxed))]
    }

    fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// Whether the step under way belongs to the parent of this process.
    fn is_forked(&self, process: u32) -> bool {
        self.process.load(Ordering::Relaxed) != process
    }

    /// The error for a step that cannot begin.
    fn halted(&self, process: u32) -> Error {
        let half = "parameters and slots may be those of half a step: load a state, and the parameters with it";
        Error::State(match self.phase() {
            Phase::Broken => format!("a step of this optimizer ended in an internal error; {half}"),
            Phase::Writing if self.is_forked(process) => {
                format!("this process was forked while another thread took a step of this optimizer; {half}")
            }
            Phase::Idle | Phase::Checking | Phase::Writing => "another step of this optimizer is under way".into(),
        })
    }
}

fn countable(count: u64) -> Result<u64> {
    if count <= MOST_STEPS {
        return Ok(count);
    }
    Err(Error::State(format!("a count of steps is {count}: expected at most {MOST_STEPS}")))
}

#[cfg(test)]
mod tests {
    use super::{MOST_STEPS, StepCount};

    const OURS: u32 = 0;
    const CHILD: u32 = 1;

    type Case = (&'static str, fn(&StepCount), [bool; 2], [bool; 2]);

    fn begun(count: &StepCount) {
        count.begin(OURS).unwrap();
    }

    fn writing(count: &StepCount) {
        begun(count);
        count.begin_writing();
    }

    /// A count in each phase, with what its own process and a forked child may do.
    #[test]
    fn each_phase_allows_what_it_may() {
        let cases: [Case; 6] = [
            ("idle", |_| (), [true, true], [true, true]),
            ("checking", begun, [false, true], [true, true]),
            ("writing", writing, [false, false], [false, false]),
            ("ended", |count| (writing(count), count.end(false, false)).1, [true, true], [true, true]),
            ("panicked", |count| (writing(count), count.end(false, true)).1, [false, false], [false, false]),
            ("panicked early", |count| (begun(count), count.end(false, true)).1, [true, true], [true, true]),
        ];
        for (name, prepare, may_begin, is_whole) in cases {
            for (at, process) in [OURS, CHILD].into_iter().enumerate() {
                let count = StepCount::default();
                prepare(&count);
                assert_eq!(count.check_whole(process).is_ok(), is_whole[at], "{name}, {process}");
                assert_eq!(count.begin(process).is_ok(), may_begin[at], "{name}, {process}");
            }
        }
    }

    #[test]
    fn errors_say_what_is_under_way() {
        let count = StepCount::default();
        count.begin(OURS).unwrap();
        let says = |process| count.begin(process).unwrap_err().message().to_owned();
        assert!(says(OURS).contains("another step of this optimizer is under way"));
        count.begin_writing();
        assert!(says(OURS).contains("another step of this optimizer is under way"));
        assert!(says(CHILD).contains("this process was forked"));
        count.end(true, false);
        assert!(says(OURS).contains("ended in an internal error"));
    }

    #[test]
    fn counts_advance_up_to_the_largest() {
        let count = StepCount::default();
        for (holds, expected) in [(true, (0, 1)), (true, (0, 2)), (false, (1, 0))] {
            count.advance(holds);
            assert_eq!((count.steps(), count.micro()), expected);
        }
        assert!(count.set_steps(MOST_STEPS + 1).is_err() && count.set_micro(MOST_STEPS + 1).is_err());
        count.set_steps(MOST_STEPS - 1).unwrap();
        count.begin(OURS).unwrap();
        count.advance(false);
        count.end(false, false);
        assert!(count.begin(OURS).unwrap_err().message().contains("the step count cannot exceed this"));
    }
}
