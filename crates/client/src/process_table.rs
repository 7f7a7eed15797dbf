//! Reads the kernel's process table from /proc.

use std::fs::File;
use std::io::Read;

/// Size of the read buffer, in bytes. The buffer is larger than any line of /proc/PID/stat, so the
/// kernel returns the whole line in one read.
const STAT_BYTES: usize = 4096;

/// The content of /proc/PID/stat for one process. Pid and start time together identify a process,
/// even if pids are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessStat {
    pub pid: u32,
    pub parent: u32,
    /// The session id. 0 if the session was created outside of this pid namespace.
    pub session: u32,
    /// Device number of the controlling terminal. 0 if there is none.
    pub tty: u32,
    /// Start time in clock ticks since boot.
    pub start: u64,
    /// Whether all threads of the process have exited and its parent has not waited for it yet.
    pub zombie: bool,
    /// Whether a signal or a debugger has stopped the process.
    pub stopped: bool,
}

impl ProcessStat {
    /// Whether both values are for the same process.
    pub fn is_same(&self, other: &ProcessStat) -> bool {
        (self.pid, self.start) == (other.pid, other.start)
    }

    /// Whether the process is still in the table, running or as a zombie.
    pub fn exists(&self) -> bool {
        ProcessStat::read(self.pid).is_some_and(|current| current.is_same(self))
    }

    /// Reads the entry of process `pid`. `None` if there is no such process or no /proc.
    pub fn read(pid: u32) -> Option<ProcessStat> {
        let stat = read_stat(pid)?;
        // The second field is the program's name in parentheses. The name can contain any
        // character, also spaces and parentheses. So the fields are counted from the third field,
        // after the last parenthesis.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse().ok();
        Some(ProcessStat {
            pid,
            parent: number(4)?,
            session: number(6)?,
            // The kernel prints the device number as a signed integer.
            tty: fields.get(7 - 3)?.parse::<i32>().ok()?.cast_unsigned(),
            start: fields.get(22 - 3)?.parse().ok()?,
            // The state `Z` alone does not mean that the process has ended: it is also shown if
            // only the main thread has exited. So the number of threads is checked too.
            zombie: matches!(*fields.first()?, "Z" | "X") && number(20)? <= 1,
            stopped: matches!(*fields.first()?, "T" | "t"),
        })
    }
}

/// Reads the content of /proc/PID/stat for the process `pid`. The program's name in the content can
/// be invalid UTF-8, because the kernel cuts long names after any byte.
fn read_stat(pid: u32) -> Option<String> {
    let mut buffer = [0; STAT_BYTES];
    let byte_count = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut buffer).ok()?;
    Some(String::from_utf8_lossy(&buffer[..byte_count]).into_owned())
}

/// Name of the program that process `pid` runs. The kernel truncates long names. `None` if there is
/// no such process.
pub fn program_name(pid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim().to_owned())
}

/// Reads the entries of all processes.
pub fn all_processes() -> Vec<ProcessStat> {
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(ProcessStat::read).collect()
}

/// Returns the processes with the pids `roots` and all their descendants. `table` is the process
/// table. In the result, each process comes after its parent.
pub fn descendants_of(table: &[ProcessStat], roots: &[u32]) -> Vec<ProcessStat> {
    let mut processes: Vec<ProcessStat> =
        table.iter().filter(|process| roots.contains(&process.pid)).copied().collect();
    let mut next_index = 0;
    while let Some(parent) = processes.get(next_index).map(|process| process.pid) {
        let is_new = |child: &&ProcessStat| child.parent == parent && !processes.contains(child);
        let children: Vec<ProcessStat> = table.iter().filter(is_new).copied().collect();
        processes.extend(children);
        next_index += 1;
    }
    processes
}

/// The calling process, its parent, and so on, at most 64 processes. The limit prevents an endless
/// loop if the processes change while they are read.
pub fn self_and_ancestors() -> Vec<ProcessStat> {
    let mut processes: Vec<ProcessStat> = Vec::new();
    let mut next_pid = std::process::id();
    while let Some(process) = ProcessStat::read(next_pid).filter(|process| process.pid > 1)
        && processes.len() < 64
    {
        next_pid = process.parent;
        processes.push(process);
    }
    processes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_with_invalid_utf8_in_its_name_is_read() {
        let script = r"printf 'n\303' > /proc/self/comm; echo; read -r nothing";
        let (input, output) = (std::process::Stdio::piped(), std::process::Stdio::piped());
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .stdin(input)
            .stdout(output)
            .spawn()
            .unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        assert_eq!(program_name(child.id()).unwrap(), "n\u{fffd}");
        let stat = ProcessStat::read(child.id());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(stat.unwrap().parent, std::process::id());
    }

    #[test]
    fn own_entry_is_read() {
        let own_process = ProcessStat::read(std::process::id()).unwrap();
        assert_eq!(own_process.parent, std::os::unix::process::parent_id());
        assert_eq!(own_process.session, nix::unistd::getsid(None).unwrap().as_raw().unsigned_abs());
        assert!(own_process.start > 0 && !own_process.zombie, "{own_process:?}");
        assert_eq!(ProcessStat::read(0), None);
        // In a container this process can be pid 1, which `self_and_ancestors` omits.
        assert_eq!(
            self_and_ancestors().first(),
            Some(&own_process).filter(|own_process| own_process.pid > 1)
        );
    }
}
