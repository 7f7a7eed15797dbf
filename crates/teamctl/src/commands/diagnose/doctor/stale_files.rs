//! What killed writers left in the root: locks and files on their way; and inboxes without a team. Old
//! leftovers disturb nobody; what stands where a lock goes, and is none, blocks every writer for ever. What
//! `--fix` leaves it names, with the reason.

use super::FixMode;
use super::report::DoctorReport;
use protocol::error::ErrorReport;
use protocol::name::TeamName;
use std::fs::{Metadata, read_dir};
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::{Root, Team};

/// Older than this nobody holds a lock.
const LOCK_STALE_AFTER: Duration = Duration::from_secs(10);
/// Older than this nobody is writing a file any more, and the store removes it.
pub(super) const TEMP_ABANDONED_AFTER: Duration = Duration::from_secs(3600);

/// Something that may be in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StaleFile {
    /// An empty directory where a lock goes, older than any holding.
    StaleLock,
    /// Something else where a lock goes: a file, a link, a full directory.
    NotALock(&'static str),
    /// A file on its way that never got there, or a lock that was moved aside.
    AbandonedTemp,
}

pub(super) fn check(root: &Root, treatment: FixMode, report: &mut DoctorReport) {
    if treatment == FixMode::Fix {
        fix(root, report);
    }
    let found: Vec<(PathBuf, StaleFile)> =
        directories(root.path()).iter().flat_map(|directory| stale_files_in(directory)).collect();
    if found.is_empty() {
        report.ok("stale_files", "no stale locks and no old files on their way");
    }
    for (path, leftover) in found {
        report_file(&path, leftover, &remedy(root, &path, leftover, treatment), report);
    }
    for path in directories_without_config(root.path()) {
        let message = format!("{} has inboxes and no team around them", path.display());
        report.warn("inboxes", message, "nobody reads them; move it away if you know whose it is");
    }
}

/// Reports it; `rest` is what becomes of it.
fn report_file(path: &Path, leftover: StaleFile, rest: &str, report: &mut DoctorReport) {
    let shown = path.display();
    match leftover {
        StaleFile::StaleLock => report.warn("locks", format!("{shown} is stale"), rest),
        StaleFile::NotALock(what) => {
            let message = format!("{shown} is {what}, but stands where a lock goes: nobody can write");
            report.fail("locks", message, rest);
        }
        StaleFile::AbandonedTemp => {
            report.warn("stale_files", format!("{shown} is of a writer that died"), rest);
        }
    }
}

/// What to do about a leftover, or why it was left.
fn remedy(root: &Root, path: &Path, leftover: StaleFile, treatment: FixMode) -> String {
    let shown = path.display();
    if let StaleFile::NotALock(_) = leftover {
        let advice = format!("see what it is for, and move it away: mv {shown} /tmp");
        return match treatment {
            FixMode::ReportOnly => advice,
            FixMode::Fix => {
                format!("left, since a lock is an empty directory and this may be needed: {advice}")
            }
        };
    }
    match (reason_foreign(root.path(), path), treatment) {
        (Some(why), FixMode::ReportOnly) => format!("disturbs nobody, and --fix leaves it: {why}"),
        (Some(why), FixMode::Fix) => format!("left, and disturbs nobody: {why}"),
        (None, FixMode::ReportOnly) => "teamctl doctor --fix".to_owned(),
        (None, FixMode::Fix) => {
            format!(
                "left, since it can't be opened or removed, or is not known to be ours: see ls -ld {shown}"
            )
        }
    }
}

/// Why nothing of this team is ours to remove; none if it is.
fn reason_foreign(root: &Path, path: &Path) -> Option<String> {
    let name = path.strip_prefix(root).ok()?.components().nth(1)?.as_os_str();
    let shown = name.display();
    if TeamName::parse(name.to_str()?).is_ok_and(|team| team.is_claude_session()) {
        return Some(format!("{shown} belongs to a session of Claude Code"));
    }
    let config = root.join("teams").join(name).join("config.json");
    (!config.exists()).then(|| format!("there is no team {shown}, for want of {}", config.display()))
}

fn fix(root: &Root, report: &mut DoctorReport) {
    let ours = root.teams().unwrap_or_default().into_iter().filter(|name| !name.is_claude_session());
    for name in ours {
        match root.team(&name).map_err(ErrorReport::from) {
            Ok(team) => remove_stale(&team, report),
            Err(fault) => report.fail_with_error("stale_files", &fault),
        }
    }
}

/// Locks first: what keeps an old file from going shall not keep them.
fn remove_stale(team: &Team, report: &mut DoctorReport) {
    match team.remove_stale_locks().map_err(ErrorReport::from) {
        Ok(released) => {
            released.iter().for_each(|path| {
                report.ok("locks", format!("{} was stale, and is removed", path.display()));
            });
        }
        Err(fault) => report.fail_with_error("locks", &fault),
    }
    if let Err(fault) = team.remove_abandoned().map_err(ErrorReport::from) {
        report.fail_with_error("stale_files", &fault);
    }
}

/// Every directory in which files are replaced.
fn directories(root: &Path) -> Vec<PathBuf> {
    let teams = subdirectories(&root.join("teams"));
    let inboxes: Vec<PathBuf> = teams.iter().map(|team| team.join("inboxes")).collect();
    [teams, inboxes, subdirectories(&root.join("tasks"))].concat()
}

fn subdirectories(directory: &Path) -> Vec<PathBuf> {
    let is_directory = |(path, found): (PathBuf, Metadata)| found.is_dir().then_some(path);
    entries(directory).into_iter().filter_map(is_directory).collect()
}

/// What is in it, by name; links are not followed.
fn entries(directory: &Path) -> Vec<(PathBuf, Metadata)> {
    let Ok(entries) = read_dir(directory) else { return Vec::new() };
    let mut entries: Vec<_> =
        entries.flatten().filter_map(|entry| Some((entry.path(), entry.metadata().ok()?))).collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    entries
}

fn stale_files_in(directory: &Path) -> Vec<(PathBuf, StaleFile)> {
    let known = |(path, found): (PathBuf, Metadata)| Some((path.clone(), classify(&path, &found)?));
    entries(directory).into_iter().filter_map(known).collect()
}

fn classify(path: &Path, found: &Metadata) -> Option<StaleFile> {
    let name = path.file_name()?.to_str()?;
    let age = found.modified().ok()?.elapsed().unwrap_or_default();
    if is_temporary(name) || name.contains(".lock.stale.") {
        return (age >= TEMP_ABANDONED_AFTER).then_some(StaleFile::AbandonedTemp);
    }
    // `.lock` of a task list is a file for ever: what its lock is taken on.
    if !name.ends_with(".lock") || (name == ".lock" && found.is_file()) {
        return None;
    }
    match obstacle(path, found) {
        Some(what) => Some(StaleFile::NotALock(what)),
        None => (age > LOCK_STALE_AFTER).then_some(StaleFile::StaleLock),
    }
}

/// What it is that blocks a lock's place; none for a lock.
fn obstacle(path: &Path, found: &Metadata) -> Option<&'static str> {
    if found.is_symlink() {
        return Some("a link");
    }
    if !found.is_dir() {
        return Some("a file");
    }
    (!entries(path).is_empty()).then_some("a directory with something in it")
}

/// `.NAME.tmp.ID` is ours, `NAME.tmp.ID` Claude Code's.
fn is_temporary(name: &str) -> bool {
    let id = name.split_once(".tmp.").map(|(_, id)| id);
    id.is_some_and(|id| id.len() >= 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Directories of teams that have inboxes and no config.
fn directories_without_config(root: &Path) -> Vec<PathBuf> {
    let mut teams = subdirectories(&root.join("teams"));
    teams.retain(|team| team.join("inboxes").is_dir() && !team.join("config.json").exists());
    teams
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::team_config::{Member, TeamConfig};
    use std::fs::{File, create_dir, create_dir_all};
    use std::os::unix::fs::symlink;
    use std::time::SystemTime;
    use store::Durability;

    fn age(path: &Path, seconds: u64) {
        let then = SystemTime::now() - Duration::from_secs(seconds);
        File::open(path).unwrap().set_modified(then).unwrap();
    }

    #[test]
    fn leftovers_are_told_from_what_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for lock in ["fresh.json.lock", "stale.json.lock", "full.json.lock"] {
            create_dir(path(lock)).unwrap();
        }
        for file in
            [".lock", "file.json.lock", "full.json.lock/x", ".a.json.tmp.0123456789ab", "b.json.tmp.0123abcd"]
        {
            File::create(path(file)).unwrap();
        }
        symlink("nowhere", path("link.json.lock")).unwrap();
        age(&path("stale.json.lock"), 60);
        age(&path(".a.json.tmp.0123456789ab"), 7200);
        let found = stale_files_in(dir.path());
        let expected = [
            (".a.json.tmp.0123456789ab", StaleFile::AbandonedTemp),
            ("file.json.lock", StaleFile::NotALock("a file")),
            ("full.json.lock", StaleFile::NotALock("a directory with something in it")),
            ("link.json.lock", StaleFile::NotALock("a link")),
            ("stale.json.lock", StaleFile::StaleLock),
        ];
        assert_eq!(found, expected.map(|(name, leftover)| (path(name), leftover)));
    }

    /// A team with a stale lock, a fresh one, a file and a full directory; and a session with a stale one.
    fn damaged_root(dir: &Path) -> Root {
        let root = Root::open(&dir.join("root"), dir, Durability::Process).unwrap();
        let team = TeamName::parse("orchard").unwrap();
        let config = TeamConfig {
            name: team.to_string(),
            description: None,
            created_at: 1,
            lead_agent_id: format!("team-lead@{team}"),
            lead_session_id: String::new(),
            members: vec![Member::lead(&team, None, String::new(), "/".to_owned(), 1)],
            hidden_pane_ids: vec![],
        };
        root.create_team(&config).unwrap();
        let teams = root.path().join("teams");
        for lock in ["orchard/inboxes/bob", "orchard/inboxes/full", "session-1/config", "half/config"] {
            let lock = teams.join(format!("{lock}.json.lock"));
            create_dir_all(&lock).unwrap();
            age(&lock, 60);
        }
        create_dir(teams.join("orchard/inboxes/fresh.json.lock")).unwrap();
        for file in
            ["orchard/inboxes/full.json.lock/pid", "orchard/inboxes/file.json.lock", "session-1/config.json"]
        {
            File::create(teams.join(file)).unwrap();
        }
        root
    }

    fn reported_lines(root: &Root, treatment: FixMode) -> Vec<String> {
        let mut report = DoctorReport::default();
        check(root, treatment, &mut report);
        let inside = format!("{}/", root.path().join("teams").display());
        report.checks().iter().map(|check| check.to_string().replace(&inside, "")).collect()
    }

    #[test]
    fn a_look_removes_nothing_and_says_what_can_be_mended() {
        let dir = tempfile::tempdir().unwrap();
        let root = damaged_root(dir.path());
        let told = reported_lines(&root, FixMode::ReportOnly);
        let expected = "warn  locks: orchard/inboxes/bob.json.lock is stale; teamctl doctor --fix";
        assert!(told.iter().any(|line| line == expected), "{told:#?}");
        assert!(root.path().join("teams/orchard/inboxes/bob.json.lock").exists());
    }

    #[test]
    fn mending_removes_stale_locks_and_says_what_it_leaves_and_why() {
        let dir = tempfile::tempdir().unwrap();
        let root = damaged_root(dir.path());
        let told = reported_lines(&root, FixMode::Fix);
        let left = "stands where a lock goes: nobody can write; left, since a lock is an empty directory";
        let expected = [
            "ok    locks: orchard/inboxes/bob.json.lock was stale, and is removed".to_owned(),
            "warn  locks: half/config.json.lock is stale; left, and disturbs nobody: there is no team half"
                .to_owned(),
            "warn  locks: session-1/config.json.lock is stale; left, and disturbs nobody: session-1 belongs"
                .to_owned(),
            format!("fail  locks: orchard/inboxes/file.json.lock is a file, but {left}"),
            format!(
                "fail  locks: orchard/inboxes/full.json.lock is a directory with something in it, but {left}"
            ),
        ];
        assert_eq!(told.len(), expected.len(), "{told:#?}");
        for line in expected {
            assert!(told.iter().any(|told| told.starts_with(&line)), "{line}\nis not in {told:#?}");
        }
        let inboxes = root.path().join("teams/orchard/inboxes");
        assert!(!inboxes.join("bob.json.lock").exists() && inboxes.join("fresh.json.lock").is_dir());
        assert!(inboxes.join("full.json.lock/pid").exists() && inboxes.join("file.json.lock").is_file());
    }
}
