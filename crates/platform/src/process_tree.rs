//! Ancestors and descendants in the process table.

use crate::ProcessEntry;

/// The maximum number of ancestors that are read. The limit prevents an endless loop if the
/// processes change while they are read.
const MAX_ANCESTORS: usize = 64;

/// Returns the processes with the pids `roots` and all their descendants. `table` is the process
/// table. Each process comes after its parent.
pub fn descendants_of(table: &[ProcessEntry], roots: &[u32]) -> Vec<ProcessEntry> {
    let mut processes: Vec<ProcessEntry> =
        table.iter().filter(|process| roots.contains(&process.pid)).copied().collect();
    let mut next_index = 0;
    while let Some(parent) = processes.get(next_index).map(|process| process.pid) {
        let is_new = |child: &&ProcessEntry| child.parent == parent && !processes.contains(child);
        let children: Vec<ProcessEntry> = table.iter().filter(is_new).copied().collect();
        processes.extend(children);
        next_index += 1;
    }
    processes
}

/// The process `pid`, its parent, and so on, without the first process of the system.
pub fn with_ancestors(pid: u32) -> impl Iterator<Item = ProcessEntry> {
    let read = |pid: u32| ProcessEntry::read(pid).filter(|process| process.pid > 1);
    std::iter::successors(read(pid), move |process| read(process.parent)).take(MAX_ANCESTORS)
}

/// The calling process, its parent, and so on.
pub fn self_and_ancestors() -> Vec<ProcessEntry> {
    with_ancestors(std::process::id()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_entry_is_read() {
        let own_process = ProcessEntry::read(std::process::id()).unwrap();
        assert_eq!(own_process.parent, std::os::unix::process::parent_id());
        assert_eq!(own_process.session, nix::unistd::getsid(None).unwrap().as_raw().unsigned_abs());
        assert!(own_process.start > 0 && !own_process.zombie, "{own_process:?}");
        assert_eq!(ProcessEntry::read(0), None);
        // In a container this process can be pid 1, which `self_and_ancestors` omits.
        assert_eq!(
            self_and_ancestors().first(),
            Some(&own_process).filter(|own_process| own_process.pid > 1)
        );
    }
}
