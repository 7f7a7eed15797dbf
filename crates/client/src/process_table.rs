//! A process as the kernel's table has it.

use std::fs::File;
use std::io::Read;

/// Bytes, more than a line has: the kernel says all of it in one read.
const STAT_BYTES: usize = 4096;

/// One line of /proc/PID/stat; number and start together are one process for ever, however numbers are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessStat {
    pub pid: u32,
    pub parent: u32,
    /// 0: it began outside of this namespace of processes.
    pub session: u32,
    /// The number of its controlling terminal's device; 0: none.
    pub tty: u32,
    /// Ticks since boot.
    pub start: u64,
    /// It has ended with all its threads, and its parent has not looked.
    pub zombie: bool,
    /// A signal has stopped it, or a debugger holds it.
    pub stopped: bool,
}

impl ProcessStat {
    /// Whether the two lines are of one process.
    pub fn is_same(&self, other: &ProcessStat) -> bool {
        (self.pid, self.start) == (other.pid, other.start)
    }

    /// Whether it is in the table still, dead or alive.
    pub fn exists(&self) -> bool {
        ProcessStat::read(self.pid).is_some_and(|now| now.is_same(self))
    }

    /// None where there is no such process, or no /proc.
    pub fn read(pid: u32) -> Option<ProcessStat> {
        let stat = read_stat(pid)?;
        // The second field is the program's name in parentheses, which may hold anything: these count from the third.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse().ok();
        Some(ProcessStat {
            pid,
            parent: number(4)?,
            session: number(6)?,
            // Signed in the kernel's table, and a device's number all the same.
            tty: fields.get(7 - 3)?.parse::<i32>().ok()?.cast_unsigned(),
            start: fields.get(22 - 3)?.parse().ok()?,
            // Of one whose first thread alone has ended the letter is the same.
            zombie: matches!(*fields.first()?, "Z" | "X") && number(20)? <= 1,
            stopped: matches!(*fields.first()?, "T" | "t"),
        })
    }
}

/// Its line in the table. The name in it is bytes, cut in the middle of a letter where it is long.
fn read_stat(pid: u32) -> Option<String> {
    let mut room = [0; STAT_BYTES];
    let read = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut room).ok()?;
    Some(String::from_utf8_lossy(&room[..read]).into_owned())
}

/// Its program's name, as far as the kernel keeps it.
pub fn program_name(pid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim().to_owned())
}

/// The whole table.
pub fn all_processes() -> Vec<ProcessStat> {
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(ProcessStat::read).collect()
}

/// Of a table those processes and all below them, each behind its parent.
pub fn descendants_of(all: &[ProcessStat], roots: &[u32]) -> Vec<ProcessStat> {
    let mut found: Vec<ProcessStat> =
        all.iter().filter(|process| roots.contains(&process.pid)).copied().collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|process| process.pid) {
        let is_new = |child: &&ProcessStat| child.parent == parent && !found.contains(child);
        let children: Vec<ProcessStat> = all.iter().filter(is_new).copied().collect();
        found.extend(children);
        next += 1;
    }
    found
}

/// This process, its parent, and so on; bounded, since the table changes while it is read.
pub fn self_and_ancestors() -> Vec<ProcessStat> {
    let mut all: Vec<ProcessStat> = Vec::new();
    let mut next = std::process::id();
    while let Some(process) = ProcessStat::read(next).filter(|process| process.pid > 1)
        && all.len() < 64
    {
        next = process.parent;
        all.push(process);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_whose_name_is_no_text_is_there_as_any_other() {
        let named = r"printf 'n\303' > /proc/self/comm; echo; read -r nothing";
        let (input, output) = (std::process::Stdio::piped(), std::process::Stdio::piped());
        let mut child =
            std::process::Command::new("sh").args(["-c", named]).stdin(input).stdout(output).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        assert_eq!(program_name(child.id()).unwrap(), "n\u{fffd}");
        let seen = ProcessStat::read(child.id());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(seen.unwrap().parent, std::process::id());
    }

    #[test]
    fn our_own_line_is_read() {
        let own = ProcessStat::read(std::process::id()).unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id());
        assert_eq!(own.session, nix::unistd::getsid(None).unwrap().as_raw().unsigned_abs());
        assert!(own.start > 0 && !own.zombie, "{own:?}");
        assert_eq!(ProcessStat::read(0), None);
        // A first process has nobody above it, and is nobody's teammate.
        assert_eq!(self_and_ancestors().first(), Some(&own).filter(|own| own.pid > 1));
    }
}
