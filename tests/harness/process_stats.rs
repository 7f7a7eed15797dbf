//! Reads from `/proc` which resources a process uses.

/// The resources that one process uses at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessStats {
    pub descriptors: u64,
    /// Resident memory in kB, including the shared pages of its program.
    pub resident: u64,
    /// The maximum of `resident` since the process started, in kB.
    pub peak: u64,
    pub threads: u64,
    /// Children that have exited and that the process has not waited for.
    pub zombies: u64,
}

impl ProcessStats {
    /// Reads the resources of a process. `None` if the process has ended.
    pub fn read(pid: u32) -> Option<ProcessStats> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        Some(ProcessStats {
            descriptors: std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64,
            resident: field("VmRSS")?,
            peak: field("VmHWM")?,
            threads: field("Threads")?,
            zombies: count_zombies(pid),
        })
    }

    /// The maximum of each field.
    #[must_use]
    pub fn fieldwise_max(self, other: ProcessStats) -> ProcessStats {
        ProcessStats {
            descriptors: self.descriptors.max(other.descriptors),
            resident: self.resident.max(other.resident),
            peak: self.peak.max(other.peak),
            threads: self.threads.max(other.threads),
            zombies: self.zombies.max(other.zombies),
        }
    }
}

fn count_zombies(parent: u32) -> u64 {
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_zombie_child = |pid: &std::ffi::OsString| {
        let stat = std::fs::read(format!("/proc/{}/stat", pid.display())).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        (fields.next()? == "Z" && fields.next()? == parent.to_string()).then_some(())
    };
    pids.map(|entry| entry.file_name()).filter(|pid| is_zombie_child(pid).is_some()).count() as u64
}
