//! CPU time of this thread, for measurements: other programs on the machine do not change it much.

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The parts of the home that are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Core,
    FileJobs,
    Mirrors,
    Links,
}

/// The CPU time that the home has used.
#[derive(Debug, Default)]
pub(super) struct CpuTimes {
    parts: BTreeMap<Part, Duration>,
    /// How much each kind of event has used.
    kinds: BTreeMap<&'static str, Vec<Duration>>,
}

/// The CPU time of this thread so far.
pub(super) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

impl CpuTimes {
    pub(super) fn time<T>(&mut self, part: Part, run: impl FnOnce() -> T) -> T {
        let began = cpu_time();
        let result = run();
        *self.parts.entry(part).or_default() += cpu_time() - began;
        result
    }

    /// Counts a time that was counted as that of `from` as that of `to`.
    pub(super) fn move_time(&mut self, (from, to): (Part, Part), time: Duration) {
        let counted = self.parts.entry(from).or_default();
        *counted = counted.saturating_sub(time);
        *self.parts.entry(to).or_default() += time;
    }

    pub(super) fn total(&self) -> Duration {
        self.parts.values().sum()
    }

    /// Adds an event of this kind, which has used all time since the total was `before`.
    pub(super) fn add_event(&mut self, kind: &'static str, before: Duration) {
        let used = self.total().saturating_sub(before);
        self.kinds.entry(kind).or_default().push(used);
    }

    pub(super) fn kinds(&self) -> Map<String, Value> {
        let figures = |times: &Vec<Duration>| {
            let total: Duration = times.iter().sum();
            let max = times.iter().max().map_or(0, Duration::as_micros);
            json!({"count": times.len(), "mean_us": total.as_micros() as u64 / times.len() as u64, "max_us": max as u64})
        };
        self.kinds.iter().map(|(kind, times)| ((*kind).to_owned(), figures(times))).collect()
    }

    pub(super) fn parts(&self) -> Map<String, Value> {
        let name = |part: &Part| match part {
            Part::Core => "core",
            Part::FileJobs => "file jobs",
            Part::Mirrors => "mirrors",
            Part::Links => "links",
        };
        let parts = self.parts.iter();
        parts.map(|(part, time)| (name(part).to_owned(), json!(time.as_millis() as u64))).collect()
    }
}
