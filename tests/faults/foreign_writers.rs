//! Foreign programs that write a team's files while a test runs: several kinds of inbox writers, a
//! writer of config.json that takes no lock, and a writer of the task list that takes only the
//! flock. Stale locks are planted too, as killed programs leave them.

use harness::TestEnv;
use harness::foreign_writer::{ForeignWriter, WriterKind, WriterReport};
use harness::stale_lock::LockPlanter;
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Which foreign writers run, which files they write, and how fast.
#[derive(Clone, Copy)]
pub(crate) struct WriterPlan {
    /// The inbox, the kind and the name of each inbox writer.
    pub(crate) writers: &'static [(&'static str, WriterKind, &'static str)],
    /// Files of the team at whose lock paths stale locks are planted. The files are used in turn,
    /// like the kinds of stale locks.
    ///
    /// No lock that looks stale may be planted for a file that two foreign writers write. One of
    /// them could find the lock stale and then remove the lock that the other has taken meanwhile.
    pub(crate) lock_targets: &'static [&'static str],
    /// The number of writes of each writer. `None`: each writes until it is stopped.
    pub(crate) count: Option<u64>,
    /// The longest pause between two writes of a writer. The task writer pauses up to ten times as
    /// long. `None`: each kind of writer has its own default.
    pub(crate) pause: Option<Duration>,
    /// The time between two planted locks.
    pub(crate) plant_interval: Duration,
    /// Whether the team has workers, which claim tasks too.
    pub(crate) has_workers: bool,
}

/// The foreign writers of one team. They cannot handle a full disk, so a test stops them before it
/// fills the disk and starts them again afterwards.
pub(crate) struct ForeignWriters<'h> {
    env: &'h TestEnv,
    team: String,
    plan: WriterPlan,
    running: Option<RunningWriters>,
    /// How often the writers were started. It is part of their names.
    rounds: u64,
    /// Whether this machine lacks a program that the writers need.
    is_unavailable: bool,
    finished: Vec<FinishedWriters>,
}

/// The processes of the running writers.
struct RunningWriters {
    writers: Vec<(&'static str, WriterKind, ForeignWriter)>,
    config: Option<ForeignWriter>,
    tasks: Option<ForeignWriter>,
    planter: LockPlanter,
}

/// What stopped writers have stored.
struct FinishedWriters {
    writers: Vec<(&'static str, WriterKind, WriterReport)>,
    tasks: Option<WriterReport>,
}

impl<'h> ForeignWriters<'h> {
    pub(crate) fn new(env: &'h TestEnv, team: &str, plan: WriterPlan) -> ForeignWriters<'h> {
        ForeignWriters {
            env,
            team: team.to_owned(),
            plan,
            running: None,
            rounds: 0,
            is_unavailable: false,
            finished: Vec::new(),
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.env.root().join("teams").join(&self.team).join(file)
    }

    pub(crate) fn start_all(&mut self) {
        self.rounds += 1;
        let writers =
            self.plan.writers.iter().filter_map(|writer| self.start_writer(*writer)).collect::<Vec<_>>();
        // If the inbox writers cannot run here, neither can the others. The skip is recorded
        // already.
        self.is_unavailable = writers.is_empty();
        let (tasks, prefix) = (self.env.root().join("tasks").join(&self.team), format!("f{}", self.rounds));
        let lock_targets = self.plan.lock_targets.iter().map(|file| self.path(file)).collect();
        self.running = Some(RunningWriters {
            config: self.start(
                WriterKind::ConfigWithoutLock,
                self.path("config.json"),
                "",
                None,
                self.plan.pause,
            ),
            // The daemon keeps about 2 kB in memory for each task, so there must not be too many.
            tasks: self.start(
                WriterKind::TasksWithFlock,
                tasks,
                &prefix,
                self.plan.count,
                self.plan.pause.map(|pause| pause * 10),
            ),
            writers,
            planter: LockPlanter::start(lock_targets, self.plan.plant_interval),
        });
    }

    /// Starts an inbox writer. Creates its inbox first if it is missing. The writer itself would
    /// create it without the lock and in two steps, and other programs could write in between.
    fn start_writer(
        &self,
        (inbox, kind, name): (&'static str, WriterKind, &str),
    ) -> Option<(&'static str, WriterKind, ForeignWriter)> {
        let file = self.path(&format!("inboxes/{inbox}.json"));
        // A member's message may have created the file already, so an error is ignored.
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        drop(std::fs::File::create_new(&file).and_then(|mut inbox| inbox.write_all(b"[]")));
        let prefix = format!("{name}-{}", self.rounds);
        Some((inbox, kind, self.start(kind, file, &prefix, self.plan.count, self.plan.pause)?))
    }

    fn start(
        &self,
        kind: WriterKind,
        target: PathBuf,
        prefix: &str,
        count: Option<u64>,
        pause: Option<Duration>,
    ) -> Option<ForeignWriter> {
        if self.is_unavailable {
            return None;
        }
        ForeignWriter::start_with_pause(self.env, kind, &target, prefix, count, pause)
    }

    pub(crate) fn are_stopped(&self) -> bool {
        self.running.is_none()
    }

    /// Stops all writers.
    ///
    /// # Panics
    /// If a program has removed a planted lock that is not an empty directory.
    pub(crate) fn stop_all(&mut self) {
        let Some(RunningWriters { writers, config, tasks, planter }) = self.running.take() else { return };
        let finish = |(inbox, kind, writer): (_, _, ForeignWriter)| (inbox, kind, writer.finish());
        drop(config.map(ForeignWriter::finish));
        let tasks = tasks.map(ForeignWriter::finish);
        self.finished.push(FinishedWriters { writers: writers.into_iter().map(finish).collect(), tasks });
        let planted = planter.stop();
        assert!(planted.iter().all(|(_, is_correct)| *is_correct), "{planted:?}");
    }

    /// Checks that each message and task that a writer reported as stored exists once, with the
    /// fields that only that writer knows. A writer that waits for the lock must not have failed.
    pub(crate) fn check(&self) {
        for (inbox, kind, report) in self.finished.iter().flat_map(|finished| &finished.writers) {
            assert!(*kind == WriterKind::SkipIfLocked || report.refused.is_empty(), "{kind:?}: {report:?}");
            let messages = self.env.inbox(&self.team, inbox);
            for text in &report.stored {
                let found: Vec<_> =
                    messages.iter().filter(|message| message["text"] == text.as_str()).collect();
                assert_eq!(found.len(), 1, "foreign message {text} in {inbox}");
                assert_eq!(found[0]["theirs"]["of"], text.as_str(), "foreign message {text} in {inbox}");
            }
        }
        let writers = || self.finished.iter().flat_map(|finished| &finished.writers);
        for (_, kind, _) in writers().filter(|(_, kind, _)| *kind != WriterKind::SkipIfLocked) {
            let stored = writers().any(|(_, other, report)| other == kind && !report.stored.is_empty());
            assert!(stored, "{kind:?} stored nothing");
        }
        let reports: Vec<_> = self.finished.iter().filter_map(|finished| finished.tasks.as_ref()).collect();
        assert!(
            reports.is_empty() || reports.iter().any(|report| !report.stored.is_empty()),
            "no task was stored"
        );
        reports.iter().flat_map(|report| &report.stored).for_each(|line| self.check_task(line));
    }

    /// Checks a task against the line `ID SUBJECT OWNER` of the task writer. The writer still owns
    /// each task that it has claimed. If the team has workers, one of them may have claimed an
    /// unowned task.
    fn check_task(&self, line: &str) {
        let mut fields = line.split(' ');
        let (id, subject, owner) = (fields.next().unwrap(), fields.next().unwrap(), fields.next().unwrap());
        let text = self.env.read(&format!("root/tasks/{}/{id}.json", self.team));
        let task: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("foreign task {id}: {error}"));
        assert_eq!(task["subject"], subject, "foreign task {id}");
        let may_be_claimed = owner == "-" && self.plan.has_workers;
        let actual = task["owner"].as_str().unwrap_or("-");
        assert!(may_be_claimed || actual == owner, "foreign task {id}: {task}");
    }
}

/// A plan for the inboxes of two readers. The writers are about as slow as the members' senders, so
/// that the inboxes stay short: an inbox is sometimes read completely.
pub(crate) const PACED_PLAN: WriterPlan = WriterPlan {
    writers: &[
        ("r0", WriterKind::RenameUnderLock, "f"),
        ("r0", WriterKind::SkipIfLocked, "g"),
        ("r0", WriterKind::TruncateUnderLock, "t"),
    ],
    lock_targets: &["inboxes/r1.json", "config.json"],
    count: None,
    pause: Some(Duration::from_millis(200)),
    plant_interval: Duration::from_secs(2),
    has_workers: true,
};
