//! Reads and writes the failpoint directory, which `$TEAMD_FAILPOINTS` names. In this directory a
//! test says which program must fail at which failpoint. The programs record there which failpoints
//! they have reached. The directory has two files:
//!
//! - `armed` is written by the test. Its only line is `ACTION PROGRAM FAILPOINT NTH`: the process
//!   of `PROGRAM` that reaches `FAILPOINT` for the `NTH` time must take `ACTION`. All processes of
//!   `PROGRAM` are counted together. The action `kill` kills the process, `pause` stops it, and
//!   `panic` makes it panic. `error` makes the system call that follows the failpoint return an
//!   error.
//! - `hits` is written by the programs. A program that reaches a failpoint appends the line
//!   `PROGRAM FAILPOINT KIND PID`. `KIND` is `call` if the action `error` is possible there,
//!   otherwise `plain`. A program that takes the action also appends `acted PID`. A program locks
//!   the file while it appends and counts, so exactly one process finds that its hit is the `NTH`.
//!
//! If one of the files is missing or unreadable, no program takes an action.

use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What follows a failpoint in the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailpointKind {
    Plain,
    /// A system call follows. The action `error` makes this call fail.
    BeforeCall,
}

/// The failpoint directory, and the file name of this program.
struct FailpointDirectory {
    directory: PathBuf,
    program: String,
}

/// Records in the file `hits` that this program has reached `failpoint`. If a test has armed the
/// failpoint for this hit, takes the action. For the action `error`, returns the error that the
/// caller must return instead of making its system call. Otherwise `None`.
pub(crate) fn hit(failpoint: &'static str, kind: FailpointKind) -> Option<Errno> {
    static DIRECTORY: OnceLock<Option<FailpointDirectory>> = OnceLock::new();
    let directory = DIRECTORY.get_or_init(FailpointDirectory::from_env).as_ref()?;
    match directory.record_hit(failpoint, kind)?.as_str() {
        "kill" => signal_self(Signal::KILL),
        "pause" => signal_self(Signal::STOP),
        "panic" => panic!("failpoint {failpoint} is armed with panic"),
        "error" if kind == FailpointKind::BeforeCall => return Some(Errno::NOSPC),
        _ => {}
    }
    None
}

fn signal_self(signal: Signal) {
    // This process exists, so the signal cannot fail.
    kill_process(getpid(), signal).unwrap_or_default();
    if signal == Signal::KILL {
        std::process::abort();
    }
}

impl FailpointDirectory {
    fn from_env() -> Option<FailpointDirectory> {
        let directory =
            PathBuf::from(std::env::var_os("TEAMD_FAILPOINTS").filter(|value| !value.is_empty())?);
        let program = std::env::current_exe().ok()?;
        Some(FailpointDirectory { directory, program: program.file_name()?.to_string_lossy().into_owned() })
    }

    /// Adds a line to `hits`. Returns the action that this process must take. `None` if the test
    /// has armed no failpoint, or if the armed action is not for this hit.
    fn record_hit(&self, failpoint: &str, kind: FailpointKind) -> Option<String> {
        let path = self.directory.join("hits");
        let mut hits = File::options().read(true).append(true).open(path).ok()?;
        hits.lock().ok()?;
        let kind = if kind == FailpointKind::BeforeCall { "call" } else { "plain" };
        let (program, pid) = (&self.program, std::process::id());
        hits.write_all(format!("{program} {failpoint} {kind} {pid}\n").as_bytes()).ok()?;
        let action = armed_action(&self.directory.join("armed"), program, failpoint, &mut hits)?;
        hits.write_all(format!("acted {pid}\n").as_bytes()).ok()?;
        Some(action)
    }
}

/// Returns the action in the file `armed` if this hit must take it. This is so if `armed` names
/// `program` and `failpoint`, and if the file `hits` now has as many hits of this failpoint as
/// `armed` demands (`NTH`).
fn armed_action(armed: &Path, program: &str, failpoint: &str, hits: &mut File) -> Option<String> {
    let armed = std::fs::read_to_string(armed).ok()?;
    let [action, armed_program, armed_failpoint, nth] =
        armed.split_whitespace().collect::<Vec<_>>().try_into().ok()?;
    if (armed_program, armed_failpoint) != (program, failpoint) {
        return None;
    }
    let mut text = String::new();
    hits.rewind().and_then(|()| hits.read_to_string(&mut text)).ok()?;
    let line_start = format!("{program} {failpoint} ");
    let count = text.lines().filter(|line| line.starts_with(&line_start)).count();
    (nth.parse() == Ok(count)).then(|| action.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_armed_hit_gets_the_action() {
        let directory = std::env::temp_dir().join(format!("failpoint-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        File::create(directory.join("hits")).unwrap();
        let arm = |text: &str| File::create(directory.join("armed")).unwrap().write_all(text.as_bytes());
        let directory_of_teamd =
            FailpointDirectory { directory: directory.clone(), program: "teamd".to_owned() };
        assert_eq!(directory_of_teamd.record_hit("a", FailpointKind::Plain), None, "nothing is armed");
        arm("kill teamd a 3\n").unwrap();
        assert_eq!(directory_of_teamd.record_hit("a", FailpointKind::Plain), None);
        assert_eq!(directory_of_teamd.record_hit("b", FailpointKind::BeforeCall), None);
        assert_eq!(directory_of_teamd.record_hit("a", FailpointKind::Plain).as_deref(), Some("kill"));
        assert_eq!(directory_of_teamd.record_hit("a", FailpointKind::Plain), None);
        let hits = std::fs::read_to_string(directory.join("hits")).unwrap();
        let hits: Vec<&str> = hits.lines().map(|line| line.rsplit_once(' ').unwrap().0).collect();
        let a = "teamd a plain";
        assert_eq!(hits, [a, a, "teamd b call", a, "acted", a]);
        for name in ["armed", "hits"] {
            std::fs::remove_file(directory.join(name)).unwrap();
        }
        std::fs::remove_dir(directory).unwrap();
    }
}
