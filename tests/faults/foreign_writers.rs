//! Those who are not ours on the same files, for any trial to go on beside: writers of inboxes in each manner, one of
//! config.json without a lock, one of the task list with flock alone, and what the dead leave in the locks' places.

use harness::TestEnv;
use harness::foreign_writer::{ForeignWriter, WriterKind, WriterReport};
use harness::stale_lock::LockPlanter;
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Who they are, where they write and how fast.
#[derive(Clone, Copy)]
pub(crate) struct WriterPlan {
    /// Whose inbox, in which manner, under which name.
    pub(crate) writers: &'static [(&'static str, WriterKind, &'static str)],
    /// Files of the team in whose locks' places something is put, in turn with the kinds of it.
    ///
    /// Where two of theirs write there must be nothing that looks dead to them: of two one may find it so, and remove
    /// the lock that the other has taken since, whatever stood there before.
    pub(crate) lock_targets: &'static [&'static str],
    /// How often each writes; none: until it is told to stop.
    pub(crate) count: Option<u64>,
    /// The longest between two writes of one, ten times that between two tasks; without a word each has its own.
    pub(crate) pace: Option<Duration>,
    /// Between two that are put in a lock's place.
    pub(crate) plant_interval: Duration,
    /// Whether agents of ours take tasks, too.
    pub(crate) has_workers: bool,
}

/// A cast at a team. A full disk is not theirs to bear: they go before it, and come again.
pub(crate) struct ForeignWriters<'h> {
    env: &'h TestEnv,
    team: String,
    plan: WriterPlan,
    running: Option<RunningWriters>,
    rounds: u64,
    missing: bool,
    finished: Vec<FinishedWriters>,
}

/// While they are there.
struct RunningWriters {
    writers: Vec<(&'static str, WriterKind, ForeignWriter)>,
    config: Option<ForeignWriter>,
    tasks: Option<ForeignWriter>,
    planter: LockPlanter,
}

/// What those who were there have stored.
struct FinishedWriters {
    writers: Vec<(&'static str, WriterKind, WriterReport)>,
    tasks: Option<WriterReport>,
}

impl<'h> ForeignWriters<'h> {
    pub(crate) fn new(env: &'h TestEnv, team: &str, cast: WriterPlan) -> ForeignWriters<'h> {
        ForeignWriters {
            env,
            team: team.to_owned(),
            plan: cast,
            running: None,
            rounds: 0,
            missing: false,
            finished: Vec::new(),
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.env.root().join("teams").join(&self.team).join(file)
    }

    pub(crate) fn start_all(&mut self) {
        self.rounds += 1;
        let writers = self.plan.writers.iter().filter_map(|who| self.start_writer(*who)).collect::<Vec<_>>();
        // This machine has not what they need, and has said so.
        self.missing = writers.is_empty();
        let (tasks, named) = (self.env.root().join("tasks").join(&self.team), format!("f{}", self.rounds));
        let locked = self.plan.lock_targets.iter().map(|file| self.path(file)).collect();
        self.running = Some(RunningWriters {
            config: self.start(
                WriterKind::ConfigWithoutLock,
                self.path("config.json"),
                "",
                None,
                self.plan.pace,
            ),
            // What the daemon holds of a task it holds as long as there is that task, 2 kB or so.
            tasks: self.start(
                WriterKind::TasksWithFlock,
                tasks,
                &named,
                self.plan.count,
                self.plan.pace.map(|pace| pace * 10),
            ),
            writers,
            planter: LockPlanter::start(locked, self.plan.plant_interval),
        });
    }

    /// Each of theirs makes its file if it is missing, without the lock: in two steps, with the others in between.
    fn start_writer(
        &self,
        (inbox, manner, name): (&'static str, WriterKind, &str),
    ) -> Option<(&'static str, WriterKind, ForeignWriter)> {
        let file = self.path(&format!("inboxes/{inbox}.json"));
        // A message of ours may have made it meanwhile.
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        drop(std::fs::File::create_new(&file).and_then(|mut made| made.write_all(b"[]")));
        let named = format!("{name}-{}", self.rounds);
        Some((inbox, manner, self.start(manner, file, &named, self.plan.count, self.plan.pace)?))
    }

    fn start(
        &self,
        manner: WriterKind,
        target: PathBuf,
        named: &str,
        count: Option<u64>,
        pace: Option<Duration>,
    ) -> Option<ForeignWriter> {
        if self.missing {
            return None;
        }
        ForeignWriter::start_with_pause(self.env, manner, &target, named, count, pace)
    }

    pub(crate) fn are_stopped(&self) -> bool {
        self.running.is_none()
    }

    /// Tells all of them to stop.
    ///
    /// # Panics
    /// Where something in a lock's place was not treated as it must be: what is no empty directory is no lock.
    pub(crate) fn stop_all(&mut self) {
        let Some(RunningWriters { writers, config, tasks, planter }) = self.running.take() else { return };
        let ended = |(inbox, manner, writer): (_, _, ForeignWriter)| (inbox, manner, writer.finish());
        drop(config.map(ForeignWriter::finish));
        let tasks = tasks.map(ForeignWriter::finish);
        self.finished.push(FinishedWriters { writers: writers.into_iter().map(ended).collect(), tasks });
        let planted = planter.stop();
        assert!(planted.iter().all(|(_, well)| *well), "{planted:?}");
    }

    /// What they say they have stored is there, once, with what only they know of; who waits for a lock was refused
    /// nothing.
    pub(crate) fn check(&self) {
        for (inbox, manner, outcome) in self.finished.iter().flat_map(|gone| &gone.writers) {
            assert!(
                *manner == WriterKind::SkipIfLocked || outcome.refused.is_empty(),
                "{manner:?}: {outcome:?}"
            );
            let file = self.env.inbox(&self.team, inbox);
            for text in &outcome.stored {
                let theirs: Vec<_> = file.iter().filter(|message| message["text"] == text.as_str()).collect();
                assert_eq!(theirs.len(), 1, "{text} of theirs in {inbox}");
                assert_eq!(theirs[0]["theirs"]["of"], text.as_str(), "{text} of theirs in {inbox}");
            }
        }
        let writers = || self.finished.iter().flat_map(|gone| &gone.writers);
        for (_, manner, _) in writers().filter(|(_, manner, _)| *manner != WriterKind::SkipIfLocked) {
            let stored = writers().any(|(_, other, outcome)| other == manner && !outcome.stored.is_empty());
            assert!(stored, "{manner:?} stored nothing");
        }
        let tasks: Vec<_> = self.finished.iter().filter_map(|gone| gone.tasks.as_ref()).collect();
        assert!(tasks.is_empty() || tasks.iter().any(|tasks| !tasks.stored.is_empty()), "no task was stored");
        tasks.iter().flat_map(|tasks| &tasks.stored).for_each(|said| self.check_task(said));
    }

    /// `ID SUBJECT OWNER`, as its maker knows it. What it took is its own; the rest a worker may have taken since, where
    /// there are some.
    fn check_task(&self, said: &str) {
        let mut words = said.split(' ');
        let (id, subject, owner) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        let text = self.env.read(&format!("root/tasks/{}/{id}.json", self.team));
        let task: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("task {id} of theirs: {error}"));
        assert_eq!(task["subject"], subject, "task {id} of theirs");
        let is_free = owner == "-" && self.plan.has_workers;
        assert!(is_free || task["owner"].as_str().unwrap_or("-") == owner, "task {id} of theirs: {task}");
    }
}

/// For inboxes of two readers, about as often as ours send: an inbox is read whole now and then, and what that takes
/// grows with it.
pub(crate) const PACED_PLAN: WriterPlan = WriterPlan {
    writers: &[
        ("r0", WriterKind::RenameUnderLock, "f"),
        ("r0", WriterKind::SkipIfLocked, "g"),
        ("r0", WriterKind::TruncateUnderLock, "t"),
    ],
    lock_targets: &["inboxes/r1.json", "config.json"],
    count: None,
    pace: Some(Duration::from_millis(200)),
    plant_interval: Duration::from_secs(2),
    has_workers: true,
};
