//! A write that runs while the link works on. A failed write is repeated after a pause.

/// The state of the writes of one kind. `W` is what the write in progress writes.
#[derive(Debug)]
pub(crate) struct WriteSlot<W> {
    stage: WriteStage<W>,
    /// Whether the last finished write has failed.
    is_failing: bool,
}

#[derive(Debug)]
enum WriteStage<W> {
    Idle,
    Running(W),
    /// The next write starts at this time, in milliseconds.
    Pausing(u64),
}

/// Whether the report of a write differs from that of the write before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteReport {
    Changed,
    Same,
}

impl WriteReport {
    fn from_states(before: bool, after: bool) -> WriteReport {
        if before == after { WriteReport::Same } else { WriteReport::Changed }
    }
}

impl<W> WriteSlot<W> {
    pub(crate) fn new() -> WriteSlot<W> {
        WriteSlot { stage: WriteStage::Idle, is_failing: false }
    }

    /// Whether a write may start at `now_ms`.
    pub(crate) fn is_free(&self, now_ms: u64) -> bool {
        match self.stage {
            WriteStage::Idle => true,
            WriteStage::Running(_) => false,
            WriteStage::Pausing(until) => until <= now_ms,
        }
    }

    pub(crate) fn start(&mut self, write: W) {
        self.stage = WriteStage::Running(write);
    }

    pub(crate) fn running(&self) -> Option<&W> {
        if let WriteStage::Running(write) = &self.stage { Some(write) } else { None }
    }

    /// Records that the write is done, and returns it. `None` if no write is in progress.
    pub(crate) fn finish(&mut self) -> Option<(W, WriteReport)> {
        let report = WriteReport::from_states(self.is_failing, false);
        Some((self.take(WriteStage::Idle, false)?, report))
    }

    /// Records that the write has failed, and returns it. `None` if no write is in progress.
    pub(crate) fn fail(&mut self, retry_at_ms: u64) -> Option<(W, WriteReport)> {
        let report = WriteReport::from_states(self.is_failing, true);
        Some((self.take(WriteStage::Pausing(retry_at_ms), true)?, report))
    }

    fn take(&mut self, next: WriteStage<W>, is_failing: bool) -> Option<W> {
        match std::mem::replace(&mut self.stage, WriteStage::Idle) {
            WriteStage::Running(write) => {
                (self.stage, self.is_failing) = (next, is_failing);
                Some(write)
            }
            other => {
                self.stage = other;
                None
            }
        }
    }

    /// When the next write starts. `None` if the link does not wait for a time.
    pub(crate) fn retry_at(&self) -> Option<u64> {
        if let WriteStage::Pausing(until) = self.stage { Some(until) } else { None }
    }
}
