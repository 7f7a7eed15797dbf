//! Counts the cases and the failpoints that were hit. A case in which tmux itself crashes is not
//! counted as a failure, as long as there are few of them.

use super::sweep_env::SweepEnv;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The payload of a panic that is raised when the tmux server has ended.
///
/// tmux 3.3a sometimes crashes if something happens while a control client identifies itself. It
/// notifies that client too, which has no control state yet. The function `control_write` of tmux
/// then follows a null pointer.
pub(super) struct TmuxCrashed;

/// Percentage of cases in which tmux may crash. Three crashes are always allowed.
const MAX_TMUX_CRASHES: u64 = 1;

/// The counts of all cases so far.
#[derive(Default)]
pub(super) struct CaseCounter {
    cases: u64,
    tmux_crashes: u64,
    /// Number of failpoints that were hit.
    pub(super) hits: u64,
}

impl CaseCounter {
    /// Runs one case, which returns its number of hits. If tmux crashes, replaces the environment.
    pub(super) fn count(
        &mut self,
        sweep: &mut SweepEnv,
        with_failpoints: bool,
        run_case: impl FnOnce(&mut SweepEnv) -> u64,
    ) {
        self.cases += 1;
        match catch_unwind(AssertUnwindSafe(|| run_case(sweep))) {
            Ok(hits) => self.hits += hits,
            Err(panic) if panic.is::<TmuxCrashed>() => {
                self.record_tmux_crash();
                *sweep = SweepEnv::new(with_failpoints);
            }
            Err(panic) => resume_unwind(panic),
        }
    }

    #[allow(clippy::print_stderr, reason = "reports a case without a result")]
    fn record_tmux_crash(&mut self) {
        self.tmux_crashes += 1;
        eprintln!("tmux itself has crashed, {} times in {} cases", self.tmux_crashes, self.cases);
        assert!(self.tmux_crashes <= (self.cases * MAX_TMUX_CRASHES / 100).max(3), "tmux crashes too often");
    }
}
