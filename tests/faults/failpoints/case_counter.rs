//! What came of the tries. That tmux itself crashes in some is no fault of what is tried, as long as they are few.

use super::sweep_env::SweepEnv;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Thrown where the tmux server of a scene has gone.
///
/// tmux 3.3a ends by itself where something happens while a control client says who it is: it tells that one too, which
/// has no state yet (`control_write` of a client without one).
pub(super) struct TmuxCrashed;

/// So many in a hundred may be spoilt by that, and three of a few.
const MAX_TMUX_CRASHES: u64 = 1;

/// Of one scene after the other.
#[derive(Default)]
pub(super) struct CaseCounter {
    cases: u64,
    tmux_crashes: u64,
    /// Points that were hit.
    pub(super) hits: u64,
}

impl CaseCounter {
    /// One try; after it a new scene, where its tmux has died.
    pub(super) fn count(&mut self, sweep: &mut SweepEnv, desk: bool, act: impl FnOnce(&mut SweepEnv) -> u64) {
        self.cases += 1;
        match catch_unwind(AssertUnwindSafe(|| act(sweep))) {
            Ok(hits) => self.hits += hits,
            Err(thrown) if thrown.is::<TmuxCrashed>() => {
                self.record_tmux_crash();
                *sweep = SweepEnv::new(desk);
            }
            Err(failure) => resume_unwind(failure),
        }
    }

    #[allow(clippy::print_stderr, reason = "a try that came to nothing is told")]
    fn record_tmux_crash(&mut self) {
        self.tmux_crashes += 1;
        eprintln!("tmux itself has crashed, {} times in {} tries", self.tmux_crashes, self.cases);
        assert!(self.tmux_crashes <= (self.cases * MAX_TMUX_CRASHES / 100).max(3), "tmux crashes too often");
    }
}
