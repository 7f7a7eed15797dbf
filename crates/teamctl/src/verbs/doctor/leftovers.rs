//! What killed writers left in the root: locks and files on their way; and inboxes without a team. Old
//! leftovers disturb nobody; what stands where a lock goes, and is none, blocks every writer for ever.

use super::Treatment;
use super::report::Report;
use crate::here::fault;
use std::fs::{Metadata, read_dir};
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::Root;

/// Older than this nobody holds a lock.
const STALE: Duration = Duration::from_secs(10);
/// Older than this nobody is writing a file any more, and the store removes it.
const OLD: Duration = Duration::from_secs(3600);

/// Something that may be in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leftover {
    /// An empty directory where a lock goes, older than any holding.
    StaleLock,
    /// A file or a full directory where a lock goes.
    NoLock,
    /// A file on its way that never got there, or a lock that was moved aside.
    Old,
}

pub(super) fn examine(root: &Root, treatment: Treatment, report: &mut Report) {
    if treatment == Treatment::Mend {
        tidy(root, report);
    }
    let found: Vec<(PathBuf, Leftover)> =
        directories(root.path()).iter().flat_map(|directory| of(directory)).collect();
    if found.is_empty() {
        report.ok("leftovers", "no stale locks and no old files on their way");
    }
    for (path, leftover) in found {
        tell(&path, leftover, report);
    }
    for path in teamless(root.path()) {
        let message = format!("{} has inboxes and no team around them", path.display());
        report.warn("inboxes", message, "nobody reads them; move it away if you know whose it is");
    }
}

fn tell(path: &Path, leftover: Leftover, report: &mut Report) {
    let shown = path.display();
    match leftover {
        Leftover::StaleLock => {
            report.warn("locks", format!("{shown} is stale"), "the next writer takes it over; nothing to do");
        }
        Leftover::NoLock => {
            let message = format!("{shown} is no lock, but stands where one goes: nobody can write");
            report.fail("locks", message, format!("see what is in it, and move it away: mv {shown} /tmp"));
        }
        Leftover::Old => {
            report.warn("leftovers", format!("{shown} is of a writer that died"), "teamctl doctor --fix");
        }
    }
}

fn tidy(root: &Root, report: &mut Report) {
    let ours = root.teams().unwrap_or_default().into_iter().filter(|name| !name.is_foreign());
    for name in ours {
        if let Err(fault) = root.team(&name).and_then(|team| team.tidy()).map_err(fault) {
            report.fault("leftovers", &fault);
        }
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

fn of(directory: &Path) -> Vec<(PathBuf, Leftover)> {
    let known = |(path, found): (PathBuf, Metadata)| Some((path.clone(), leftover(&path, &found)?));
    entries(directory).into_iter().filter_map(known).collect()
}

fn leftover(path: &Path, found: &Metadata) -> Option<Leftover> {
    let name = path.file_name()?.to_str()?;
    let age = found.modified().ok()?.elapsed().unwrap_or_default();
    if is_on_its_way(name) || name.contains(".lock.stale.") {
        return (age >= OLD).then_some(Leftover::Old);
    }
    // `.lock` of a task list is a file for ever: what its lock is taken on.
    if !name.ends_with(".lock") || (name == ".lock" && found.is_file()) {
        return None;
    }
    if !found.is_dir() || !entries(path).is_empty() {
        return Some(Leftover::NoLock);
    }
    (age > STALE).then_some(Leftover::StaleLock)
}

/// `.NAME.tmp.ID` is ours, `NAME.tmp.ID` Claude Code's.
fn is_on_its_way(name: &str) -> bool {
    let id = name.split_once(".tmp.").map(|(_, id)| id);
    id.is_some_and(|id| id.len() >= 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Directories of teams that have inboxes and no config.
fn teamless(root: &Path) -> Vec<PathBuf> {
    let mut teams = subdirectories(&root.join("teams"));
    teams.retain(|team| team.join("inboxes").is_dir() && !team.join("config.json").exists());
    teams
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, create_dir};
    use std::time::SystemTime;

    #[test]
    fn leftovers_are_told_from_what_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let age = |name: &str, seconds: u64| {
            let then = SystemTime::now() - Duration::from_secs(seconds);
            File::open(path(name)).unwrap().set_modified(then).unwrap();
        };
        for lock in ["fresh.json.lock", "stale.json.lock", "full.json.lock"] {
            create_dir(path(lock)).unwrap();
        }
        for file in
            [".lock", "file.json.lock", "full.json.lock/x", ".a.json.tmp.0123456789ab", "b.json.tmp.0123abcd"]
        {
            File::create(path(file)).unwrap();
        }
        age("stale.json.lock", 60);
        age(".a.json.tmp.0123456789ab", 7200);
        let found = of(dir.path());
        let expected = [
            (".a.json.tmp.0123456789ab", Leftover::Old),
            ("file.json.lock", Leftover::NoLock),
            ("full.json.lock", Leftover::NoLock),
            ("stale.json.lock", Leftover::StaleLock),
        ];
        assert_eq!(found, expected.map(|(name, leftover)| (path(name), leftover)));
    }
}
