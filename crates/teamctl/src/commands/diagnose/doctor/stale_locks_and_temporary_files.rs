//! Finds what killed processes left in the root while they were writing: stale locks, abandoned
//! temporary files, and inboxes without a team.
//!
//! Stale locks and abandoned temporary files do no harm. `--fix` removes them from all teams,
//! except from those of Claude Code.
//!
//! A lock is an empty directory. A file at the path of a lock blocks all writers, and so does a
//! directory that is not empty. `--fix` does not remove these, because a person may need their
//! content.

use super::report::DoctorReport;
use super::report_only_or_fix::FixMode;
use protocol::team_and_member_names::TeamName;
use std::fs::{Metadata, read_dir};
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::{Root, Team};

/// A lock older than this is stale: its holder would have touched it since.
const LOCK_STALE_AFTER: Duration = Duration::from_secs(10);
/// A temporary file older than this is abandoned: no writer takes so long.
pub(super) const TEMP_ABANDONED_AFTER: Duration = Duration::from_secs(3600);

/// A file that does not belong where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StaleFile {
    /// A lock that no process holds any more.
    StaleLock,
    /// Something else at the path of a lock, such as `a file`.
    NotALock(&'static str),
    /// A temporary file or a removed lock that a killed writer left.
    AbandonedTemp,
}

pub(super) fn check(root: &Root, mode: FixMode, report: &mut DoctorReport) {
    if mode == FixMode::Fix {
        fix(root, report);
    }
    let stale_files: Vec<(PathBuf, StaleFile)> =
        directories(root.path()).iter().flat_map(|directory| stale_files_in(directory)).collect();
    if stale_files.is_empty() {
        report.ok("stale_files", "no stale locks and no old files on their way");
    }
    for (path, file) in stale_files {
        report_file(&path, file, &remedy(root, &path, file, mode), report);
    }
    for path in teams_without_config(root.path()) {
        let message = format!("{} has inboxes and no team around them", path.display());
        report.warn(
            "inboxes",
            message,
            "no program reads them; move the directory away if you know its owner",
        );
    }
}

fn report_file(path: &Path, file: StaleFile, remedy: &str, report: &mut DoctorReport) {
    let path_text = path.display();
    match file {
        StaleFile::StaleLock => report.warn("locks", format!("{path_text} is stale"), remedy),
        StaleFile::NotALock(obstacle) => {
            let message = format!("{path_text} is {obstacle} at the path of a lock: no program can write");
            report.fail("locks", message, remedy);
        }
        StaleFile::AbandonedTemp => {
            report.warn("stale_files", format!("{path_text} is of a writer that died"), remedy);
        }
    }
}

/// What the user can do about the file, or why `--fix` has left it.
fn remedy(root: &Root, path: &Path, file: StaleFile, mode: FixMode) -> String {
    let path_text = path.display();
    if let StaleFile::NotALock(_) = file {
        let advice = format!("see what it is for, and move it away: mv {path_text} /tmp");
        return match mode {
            FixMode::ReportOnly => advice,
            FixMode::Fix => {
                format!("left, since a lock is an empty directory and this may be needed: {advice}")
            }
        };
    }
    match (reason_foreign(root.path(), path), mode) {
        (Some(reason), FixMode::ReportOnly) => format!("harmless, and --fix leaves it: {reason}"),
        (Some(reason), FixMode::Fix) => format!("left, and harmless: {reason}"),
        (None, FixMode::ReportOnly) => "teamctl doctor --fix".to_owned(),
        (None, FixMode::Fix) => {
            format!(
                "left, since it can't be opened or removed, or is not known to be ours: see ls -ld {path_text}"
            )
        }
    }
}

/// Why the file belongs to no team of teamd. `None` if it belongs to one.
fn reason_foreign(root: &Path, path: &Path) -> Option<String> {
    let name = path.strip_prefix(root).ok()?.components().nth(1)?.as_os_str();
    let path_text = name.display();
    if TeamName::parse(name.to_str()?).is_ok_and(|team| team.is_claude_session()) {
        return Some(format!("{path_text} belongs to a session of Claude Code"));
    }
    let config = root.join("teams").join(name).join("config.json");
    (!config.exists()).then(|| format!("there is no team {path_text}, for want of {}", config.display()))
}

fn fix(root: &Root, report: &mut DoctorReport) {
    let teams = root.teams().unwrap_or_default();
    for name in teams.iter().filter(|name| !name.is_claude_session()) {
        match root.team(name) {
            Ok(team) => remove_stale(&team, report),
            Err(error) => report.fail_with_error("stale_files", error),
        }
    }
}

fn remove_stale(team: &Team, report: &mut DoctorReport) {
    // Locks come first: a temporary file that cannot be removed must not keep them from removal.
    match team.remove_stale_locks() {
        Ok(paths) => paths.iter().for_each(|path| {
            report.ok("locks", format!("{} was stale, and is removed", path.display()));
        }),
        Err(error) => report.fail_with_error("locks", error),
    }
    if let Err(error) = team.remove_abandoned() {
        report.fail_with_error("stale_files", error);
    }
}

/// The directories in which locks and temporary files are created.
fn directories(root: &Path) -> Vec<PathBuf> {
    let teams = subdirectories(&root.join("teams"));
    let inboxes: Vec<PathBuf> = teams.iter().map(|team| team.join("inboxes")).collect();
    [teams, inboxes, subdirectories(&root.join("tasks"))].concat()
}

fn subdirectories(directory: &Path) -> Vec<PathBuf> {
    let is_directory = |(path, metadata): (PathBuf, Metadata)| metadata.is_dir().then_some(path);
    entries(directory).into_iter().filter_map(is_directory).collect()
}

/// The entries of the directory, sorted by name. For a symbolic link, the metadata is that of the
/// link and not of its target.
fn entries(directory: &Path) -> Vec<(PathBuf, Metadata)> {
    let Ok(entries) = read_dir(directory) else { return Vec::new() };
    let mut entries: Vec<_> =
        entries.flatten().filter_map(|entry| Some((entry.path(), entry.metadata().ok()?))).collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    entries
}

fn stale_files_in(directory: &Path) -> Vec<(PathBuf, StaleFile)> {
    let to_stale_file = |(path, metadata): (PathBuf, Metadata)| {
        let file = classify(&path, &metadata)?;
        Some((path, file))
    };
    entries(directory).into_iter().filter_map(to_stale_file).collect()
}

fn classify(path: &Path, metadata: &Metadata) -> Option<StaleFile> {
    let name = path.file_name()?.to_str()?;
    let age = metadata.modified().ok()?.elapsed().unwrap_or_default();
    if is_temporary(name) || name.contains(".lock.stale.") {
        return (age >= TEMP_ABANDONED_AFTER).then_some(StaleFile::AbandonedTemp);
    }
    // The file `.lock` of a task list is permanent: its lock is a flock.
    if !name.ends_with(".lock") || (name == ".lock" && metadata.is_file()) {
        return None;
    }
    match obstacle(path, metadata) {
        Some(obstacle) => Some(StaleFile::NotALock(obstacle)),
        None => (age > LOCK_STALE_AFTER).then_some(StaleFile::StaleLock),
    }
}

/// What is at the path of a lock. `None` for a lock, which is an empty directory.
fn obstacle(path: &Path, metadata: &Metadata) -> Option<&'static str> {
    if metadata.is_symlink() {
        return Some("a link");
    }
    if !metadata.is_dir() {
        return Some("a file");
    }
    (!entries(path).is_empty()).then_some("a directory with something in it")
}

/// Whether `name` is the name of a temporary file. teamd names temporary files `.NAME.tmp.ID`, and
/// Claude Code names them `NAME.tmp.ID`.
fn is_temporary(name: &str) -> bool {
    let id = name.split_once(".tmp.").map(|(_, id)| id);
    id.is_some_and(|id| id.len() >= 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The directories below `teams` that have inboxes and no config.
fn teams_without_config(root: &Path) -> Vec<PathBuf> {
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

    fn set_age(path: &Path, seconds: u64) {
        let modified = SystemTime::now() - Duration::from_secs(seconds);
        File::open(path).unwrap().set_modified(modified).unwrap();
    }

    #[test]
    fn stale_files_are_distinguished_from_files_in_use() {
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
        set_age(&path("stale.json.lock"), 60);
        set_age(&path(".a.json.tmp.0123456789ab"), 7200);
        let stale_files = stale_files_in(dir.path());
        let expected = [
            (".a.json.tmp.0123456789ab", StaleFile::AbandonedTemp),
            ("file.json.lock", StaleFile::NotALock("a file")),
            ("full.json.lock", StaleFile::NotALock("a directory with something in it")),
            ("link.json.lock", StaleFile::NotALock("a link")),
            ("stale.json.lock", StaleFile::StaleLock),
        ];
        assert_eq!(stale_files, expected.map(|(name, file)| (path(name), file)));
    }

    /// Creates a root with the team `orchard` and a session team. `orchard` has a stale lock and a
    /// new lock. At the path of a third lock is a file, and at the path of a fourth lock is a
    /// directory that is not empty. The session team has a stale lock. The directory `half` is a
    /// team without a config, and has a stale lock too.
    fn create_damaged_root(dir: &Path) -> Root {
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
            set_age(&lock, 60);
        }
        create_dir(teams.join("orchard/inboxes/fresh.json.lock")).unwrap();
        for file in
            ["orchard/inboxes/full.json.lock/pid", "orchard/inboxes/file.json.lock", "session-1/config.json"]
        {
            File::create(teams.join(file)).unwrap();
        }
        root
    }

    fn reported_lines(root: &Root, mode: FixMode) -> Vec<String> {
        let mut report = DoctorReport::default();
        check(root, mode, &mut report);
        let teams = format!("{}/", root.path().join("teams").display());
        report.checks().iter().map(|check| check.to_string().replace(&teams, "")).collect()
    }

    #[test]
    fn report_mode_removes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = create_damaged_root(dir.path());
        let lines = reported_lines(&root, FixMode::ReportOnly);
        let expected = "warn  locks: orchard/inboxes/bob.json.lock is stale; teamctl doctor --fix";
        assert!(lines.iter().any(|line| line == expected), "{lines:#?}");
        assert!(root.path().join("teams/orchard/inboxes/bob.json.lock").exists());
    }

    #[test]
    fn fix_mode_removes_stale_locks_and_reports_the_remaining_files() {
        let dir = tempfile::tempdir().unwrap();
        let root = create_damaged_root(dir.path());
        let lines = reported_lines(&root, FixMode::Fix);
        let reason = "at the path of a lock: no program can write; left, since a lock is an empty directory";
        let expected = [
            "ok    locks: orchard/inboxes/bob.json.lock was stale, and is removed".to_owned(),
            "warn  locks: half/config.json.lock is stale; left, and harmless: there is no team half"
                .to_owned(),
            "warn  locks: session-1/config.json.lock is stale; left, and harmless: session-1 belongs"
                .to_owned(),
            format!("fail  locks: orchard/inboxes/file.json.lock is a file {reason}"),
            format!(
                "fail  locks: orchard/inboxes/full.json.lock is a directory with something in it {reason}"
            ),
        ];
        assert_eq!(lines.len(), expected.len(), "{lines:#?}");
        for start in expected {
            assert!(lines.iter().any(|line| line.starts_with(&start)), "{start}\nis missing in {lines:#?}");
        }
        let inboxes = root.path().join("teams/orchard/inboxes");
        assert!(!inboxes.join("bob.json.lock").exists() && inboxes.join("fresh.json.lock").is_dir());
        assert!(inboxes.join("full.json.lock/pid").exists() && inboxes.join("file.json.lock").is_file());
    }
}
