//! What a trial has ordered, and what was passed.
//!
//! `order` is one line: `DEED PROGRAM POINT NTH`, the deed one of kill, pause, panic, error. `passed` has a line for each
//! point passed, `PROGRAM POINT KIND PID`; who does the deed adds `did PID` first. The lock on `passed` makes one sequence of
//! all processes. What can't be read or written there orders nothing.

use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What a point stands ahead of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Plain,
    /// A call that may fail.
    Call,
}

/// The order, and who it may be for.
struct Desk {
    directory: PathBuf,
    program: String,
}

/// Gives the error with which the next call is to fail.
pub(crate) fn pass(point: &'static str, place: Place) -> Option<Errno> {
    static DESK: OnceLock<Option<Desk>> = OnceLock::new();
    let desk = DESK.get_or_init(Desk::open).as_ref()?;
    match desk.deed(point, place)?.as_str() {
        "kill" => signal(Signal::KILL),
        "pause" => signal(Signal::STOP),
        "panic" => panic!("a trial wants it so at {point}"),
        "error" if place == Place::Call => return Some(Errno::NOSPC),
        _ => {}
    }
    None
}

fn signal(signal: Signal) {
    // To ourselves: it is there.
    kill_process(getpid(), signal).unwrap_or_default();
    if signal == Signal::KILL {
        std::process::abort();
    }
}

impl Desk {
    fn open() -> Option<Desk> {
        let directory = PathBuf::from(std::env::var_os("TEAMD_CRASH").filter(|value| !value.is_empty())?);
        let program = std::env::current_exe().ok()?;
        Some(Desk { directory, program: program.file_name()?.to_string_lossy().into_owned() })
    }

    /// Notes the point; what is to be done at it.
    fn deed(&self, point: &str, place: Place) -> Option<String> {
        let path = self.directory.join("passed");
        let mut passed = File::options().read(true).append(true).open(path).ok()?;
        passed.lock().ok()?;
        let kind = if place == Place::Call { "call" } else { "plain" };
        let (program, pid) = (&self.program, std::process::id());
        passed.write_all(format!("{program} {point} {kind} {pid}\n").as_bytes()).ok()?;
        let deed = ordered(&self.directory.join("order"), program, point, &mut passed)?;
        passed.write_all(format!("did {pid}\n").as_bytes()).ok()?;
        Some(deed)
    }
}

/// The deed, if this is the passing that is meant.
fn ordered(order: &Path, program: &str, point: &str, passed: &mut File) -> Option<String> {
    let order = std::fs::read_to_string(order).ok()?;
    let [deed, of, at, nth] = order.split_whitespace().collect::<Vec<_>>().try_into().ok()?;
    if (of, at) != (program, point) {
        return None;
    }
    let mut text = String::new();
    passed.rewind().and_then(|()| passed.read_to_string(&mut text)).ok()?;
    let here = format!("{program} {point} ");
    let times = text.lines().filter(|line| line.starts_with(&here)).count();
    (nth.parse() == Ok(times)).then(|| deed.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_passing_that_is_meant_gets_the_deed_and_no_other() {
        let directory = std::env::temp_dir().join(format!("crash-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        File::create(directory.join("passed")).unwrap();
        let order = |text: &str| File::create(directory.join("order")).unwrap().write_all(text.as_bytes());
        let desk = Desk { directory: directory.clone(), program: "teamd".to_owned() };
        assert_eq!(desk.deed("a", Place::Plain), None, "nothing is ordered");
        order("kill teamd a 3\n").unwrap();
        assert_eq!(desk.deed("a", Place::Plain), None);
        assert_eq!(desk.deed("b", Place::Call), None);
        assert_eq!(desk.deed("a", Place::Plain).as_deref(), Some("kill"));
        assert_eq!(desk.deed("a", Place::Plain), None);
        let noted = std::fs::read_to_string(directory.join("passed")).unwrap();
        let noted: Vec<&str> = noted.lines().map(|line| line.rsplit_once(' ').unwrap().0).collect();
        let a = "teamd a plain";
        assert_eq!(noted, [a, a, "teamd b call", a, "did", a]);
        for name in ["order", "passed"] {
            std::fs::remove_file(directory.join(name)).unwrap();
        }
        std::fs::remove_dir(directory).unwrap();
    }
}
