//! The watcher: directories, never files (a file's watch dies at the first rename), by notify.
//!
//! Says what changed, never how: one change may come as several events, and several as one. When the
//! kernel's queue overflows, everything is looked at.

use crate::core::event::CoreEvent;
use crate::io::wake_sockets::WakeSockets;
use crate::io::watcher::barrier::Barriers;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use protocol::id::TaskId;
use protocol::name::TeamName;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc::UnboundedSender;

/// The watched directories of a team; one within another comes after it: made in between, the other's watch tells.
pub(crate) fn directories(root: &Path, team: &TeamName) -> [PathBuf; 3] {
    let home = root.join("teams").join(team.as_str());
    let inboxes = home.join("inboxes");
    [home, inboxes, root.join("tasks").join(team.as_str())]
}

/// Below the root; nothing where it is not.
pub(super) fn relative_parts<'a>(root: &Path, path: &'a Path) -> Vec<&'a str> {
    let below = path.strip_prefix(root).into_iter().flatten();
    below.filter_map(|part| part.to_str()).collect()
}

/// What a change of this path means; none for temporary files and locks.
pub(crate) fn event_for(root: &Path, path: &Path) -> Option<CoreEvent> {
    match relative_parts(root, path).as_slice() {
        ["teams", file] if file.starts_with(".probe.") => Some(CoreEvent::ProbeSeen),
        ["teams", team] | ["teams", team, "inboxes"] => session_team_event(team),
        ["teams", team, "config.json"] => {
            Some(CoreEvent::ConfigChanged { team: TeamName::parse(team).ok()? })
        }
        ["teams", team, "inboxes", file] if !file.starts_with('.') => {
            let inbox = file.strip_suffix(".json")?.to_owned();
            Some(CoreEvent::InboxChanged { team: TeamName::parse(team).ok()?, inbox, is_owner_woken: false })
        }
        ["tasks", team, file] => {
            let task = TaskId::parse(file.strip_suffix(".json")?).ok()?;
            Some(CoreEvent::TaskChanged { team: TeamName::parse(team).ok()?, task })
        }
        _ => None,
    }
}

/// One of the directories of a team that is not another program's session.
pub(super) fn is_team_directory(root: &Path, path: &Path) -> bool {
    match relative_parts(root, path).as_slice() {
        ["teams" | "tasks", team] | ["teams", team, "inboxes"] => {
            TeamName::parse(team).is_ok_and(|team| !team.is_claude_session())
        }
        _ => false,
    }
}

/// The root, or one of the two directories in it.
pub(super) fn is_root_directory(root: &Path, path: &Path) -> bool {
    path == root || matches!(relative_parts(root, path).as_slice(), ["teams" | "tasks"])
}

/// Of other teams we hear from whoever asks us to make them.
pub(super) fn session_team_event(name: &str) -> Option<CoreEvent> {
    let team = TeamName::parse(name).ok().filter(TeamName::is_claude_session)?;
    Some(CoreEvent::SessionTeamChanged { team })
}

/// That something was missed is told once until the loop has heard it: in a storm each change would tell it again, and what
/// comes behind them would wait for as long.
#[derive(Debug, Clone, Default)]
pub(crate) struct OverflowFlag(Arc<AtomicBool>);

impl OverflowFlag {
    pub(super) fn report_once(&self, events: &UnboundedSender<CoreEvent>) {
        if !self.0.swap(true, Ordering::SeqCst) {
            events.send(CoreEvent::WatcherOverflow).ok();
        }
    }

    /// Before anybody looks: what is missed from now on is told.
    pub(crate) fn reset(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// Watches what it is told to, for as long as it lives.
#[derive(Debug)]
pub(crate) struct FileWatcher {
    pub(super) watcher: RecommendedWatcher,
    pub(super) root: PathBuf,
    /// Else why not: then nobody says which task is next.
    pub(super) barriers: Result<Barriers, String>,
    /// That something can't be watched was told.
    pub(super) is_failure_logged: bool,
}

impl FileWatcher {
    /// Sends what it sees to the loop, and rings for mail.
    pub(crate) fn start(root: &Path, marks: Barriers, told: WatchSinks) -> notify::Result<FileWatcher> {
        let (base, ours) = (root.to_owned(), marks.clone());
        let mut watcher =
            notify::recommended_watcher(move |event| handle_event((&base, &ours), event, &told))?;
        for directory in ["teams", "tasks"] {
            watcher.watch(&root.join(directory), RecursiveMode::NonRecursive)?;
        }
        // Of the removal of a directory that we have open nobody tells but the one above it. Without this watch it is
        // found at the next look.
        watcher.watch(root, RecursiveMode::NonRecursive).ok();
        let watched = marks.ensure_directory().map_err(notify::Error::io);
        let watched = watched.and_then(|directory| watcher.watch(directory, RecursiveMode::NonRecursive));
        let watched = watched.map(|()| marks);
        Ok(FileWatcher {
            watcher,
            root: root.to_owned(),
            barriers: watched.map_err(|error| error.to_string()),
            is_failure_logged: false,
        })
    }

    /// Has a mark told of behind all that has been written so far.
    pub(crate) fn create_barrier(&self, mark: u64) -> Result<(), String> {
        let marks = self.barriers.as_ref().map_err(String::clone)?;
        marks.create(mark).map_err(|error| error.to_string())
    }

    /// Arms the directories of a team; those that are missing come with the next rescan. False where one is there and
    /// can't be watched.
    pub(crate) fn watch_team(&mut self, team: &TeamName) -> bool {
        let armed = directories(&self.root, team).map(|directory| self.watch_directory(&directory));
        let all = armed.iter().all(|armed| *armed);
        self.is_failure_logged |= !all;
        all
    }

    /// Of one that is not there nobody is asked: an answer waits until all that was seen so far is told, and in a storm of
    /// changes that is long, for each team whose directories somebody has removed.
    pub(super) fn watch_directory(&mut self, directory: &Path) -> bool {
        if !directory.is_dir() {
            return true;
        }
        let Err(error) = self.watcher.watch(directory, RecursiveMode::NonRecursive) else { return true };
        let there = !matches!(error.kind, notify::ErrorKind::PathNotFound) && directory.is_dir();
        // What is tried again with each look is told once.
        if there && !self.is_failure_logged {
            tracing::warn!("cannot watch {}: {error}", directory.display());
        }
        !there
    }

    /// Leaves them alone again.
    pub(crate) fn unwatch_team(&mut self, team: &TeamName) {
        for directory in directories(&self.root, team) {
            // Gone already: the kernel dropped the watch with the directory.
            self.watcher.unwatch(&directory).ok();
        }
    }
}

pub(super) fn handle_event(
    (root, marks): (&Path, &Barriers),
    event: notify::Result<notify::Event>,
    (lines, missed, events): &WatchSinks,
) {
    failpoint::hit("watch.saw");
    let Ok(event) = event else { return missed.report_once(events) };
    if event.need_rescan() {
        missed.report_once(events);
    }
    if is_irrelevant(event.kind) {
        return;
    }
    let made = matches!(event.kind, notify::EventKind::Create(_) | notify::EventKind::Modify(_));
    let unwatched = |path: &PathBuf| is_root_directory(root, path) || made && is_team_directory(root, path);
    if event.paths.iter().any(unwatched) {
        // Made anew, it has no watch yet, and what came into it was told by nobody.
        missed.report_once(events);
    }
    for path in &event.paths {
        if let Some(event) = event_for(root, path).or_else(|| marks.event_for(event.kind, path)) {
            events.send(wake_owner(event, lines)).ok();
        }
    }
}

/// The owner of an inbox hears of it at once.
pub(super) fn wake_owner(event: CoreEvent, lines: &WakeSockets) -> CoreEvent {
    match event {
        CoreEvent::InboxChanged { team, inbox, .. } => {
            let rung = lines.wake_inbox_owner(&team, &inbox);
            CoreEvent::InboxChanged { team, inbox, is_owner_woken: rung }
        }
        event => event,
    }
}

/// Of the accesses only the end of a writing means a change; and what was moved within a directory is told of both its names
/// before it is told of the two together.
pub(super) fn is_irrelevant(kind: notify::EventKind) -> bool {
    use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind, RenameMode};
    match kind {
        EventKind::Access(kind) => kind != AccessKind::Close(AccessMode::Write),
        kind => kind == EventKind::Modify(ModifyKind::Name(RenameMode::Both)),
    }
}

/// Whom the watcher tells, and what it keeps until they have heard it.
pub(crate) type WatchSinks = (WakeSockets, OverflowFlag, UnboundedSender<CoreEvent>);

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::time::Duration;

    #[test]
    fn what_is_moved_is_told_of_by_each_of_its_names_and_not_of_both_again() {
        use notify::event::{EventKind, ModifyKind, RenameMode};
        let root = Path::new("/root");
        let inbox = |name: &str| root.join("teams/survey/inboxes").join(name);
        let (events, mut told) = tokio::sync::mpsc::unbounded_channel();
        let told_to = (WakeSockets::default(), OverflowFlag::default(), events);
        let both = [inbox(".ann.json.tmp.1"), inbox("ann.json")];
        let [from, to] = both.clone().map(|path| vec![path]);
        for (mode, paths) in [(RenameMode::From, from), (RenameMode::To, to), (RenameMode::Both, both.into())]
        {
            let kind = EventKind::Modify(ModifyKind::Name(mode));
            let event = notify::Event { kind, paths, attrs: notify::event::EventAttributes::new() };
            handle_event((root, &Barriers::new(Path::new("/state"))), Ok(event), &told_to);
        }
        let told: Vec<CoreEvent> = std::iter::from_fn(|| told.try_recv().ok()).collect();
        let [CoreEvent::InboxChanged { inbox, is_owner_woken: false, .. }] = told.as_slice() else {
            panic!("{told:?}")
        };
        assert_eq!(inbox, "ann");
    }

    #[test]
    fn in_a_storm_what_was_missed_is_told_once_until_it_is_heard() {
        let (root, missed) = (Path::new("/root"), OverflowFlag::default());
        let (events, mut told) = tokio::sync::mpsc::unbounded_channel();
        let told_to = (WakeSockets::default(), missed.clone(), events);
        let mut storm = || {
            for team in (0..1_000).map(|n| root.join(format!("teams/t{n}"))) {
                let kind = notify::EventKind::Create(notify::event::CreateKind::Folder);
                let event =
                    notify::Event { kind, paths: vec![team], attrs: notify::event::EventAttributes::new() };
                handle_event((root, &Barriers::new(Path::new("/state"))), Ok(event), &told_to);
            }
            std::iter::from_fn(|| told.try_recv().ok()).count()
        };
        assert_eq!([storm(), storm()], [1, 0]);
        missed.reset();
        assert_eq!(storm(), 1);
    }

    #[tokio::test]
    async fn a_mark_is_told_of_behind_all_that_was_written_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let (root, team) = (dir.path().join("root"), TeamName::parse("survey").unwrap());
        for directory in directories(&root, &team) {
            std::fs::create_dir_all(directory).unwrap();
        }
        let (events, mut told) = tokio::sync::mpsc::unbounded_channel();
        let marks = Barriers::new(&dir.path().join("state"));
        let mut watch =
            FileWatcher::start(&root, marks, (WakeSockets::default(), OverflowFlag::default(), events))
                .unwrap();
        assert!(watch.watch_team(&team));
        for mark in 1..=50 {
            // In place, as programs do that are not ours.
            let task = root.join(format!("tasks/survey/{mark}.json"));
            std::fs::File::create(task).unwrap().write_all(b"{}").unwrap();
            watch.create_barrier(mark).unwrap();
            let mut tasks = std::collections::BTreeSet::new();
            loop {
                match tokio::time::timeout(Duration::from_secs(20), told.recv()).await.unwrap() {
                    Some(CoreEvent::TaskChanged { task, .. }) => drop(tasks.insert(u64::from(task.number()))),
                    Some(CoreEvent::BarrierReached { mark: caught }) if caught == mark => break,
                    Some(_) => {}
                    None => panic!("it has stopped"),
                }
            }
            assert!(tasks.contains(&mark), "{tasks:?}");
        }
    }

    #[test]
    fn a_directory_that_is_made_while_its_team_is_armed_is_told_of() {
        let team = TeamName::parse("survey").unwrap();
        let armed = directories(Path::new("/root"), &team);
        for (n, directory) in armed.iter().enumerate() {
            assert!(is_team_directory(Path::new("/root"), directory));
            assert!(!armed[n..].iter().any(|later| directory.parent() == Some(later)), "{armed:?}");
        }
    }
}
