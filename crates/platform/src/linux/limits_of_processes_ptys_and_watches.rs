//! The limits that can prevent the start of a process, the opening of a terminal, or the watching of a
//! file. If a limit is reached, the error of the kernel does not say which. So this module reads all
//! limits and their usage from files such as /proc/sys/kernel/pty/max.

use crate::{ResourceLimit, WatchLimit};
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

/// The largest value that the kernel takes for `kernel.pid_max` (proc_sys_kernel(5)).
const MAX_PID_MAX: u64 = 1 << 22;

/// All limits of processes and terminals that apply to this process. `root` is `/`, or in a test a
/// directory that stands for it.
pub(super) fn all(root: &Path) -> Vec<ResourceLimit> {
    let mut limits = Vec::new();
    limits.extend(kernel_pty_limit(root));
    limits.extend(mount_pty_limit(root));
    limits.extend(cgroup_limits(root));
    limits.extend(user_limit(root));
    limits.extend(kernel_task_limit(root));
    limits
}

/// The limit of pseudo-terminals of the whole machine (pty(7)).
fn kernel_pty_limit(root: &Path) -> Option<ResourceLimit> {
    let directory = root.join("proc/sys/kernel/pty");
    let (used, allowed) = (read_number(&directory.join("nr"))?, read_number(&directory.join("max"))?);
    Some(ResourceLimit {
        what: "pseudo-terminals (kernel.pty.max)".to_owned(),
        used,
        allowed,
        remedy: format!("raise it: sysctl -w kernel.pty.max={}", allowed * 2),
    })
}

/// The limit of the mount of `/dev/pts`, its option `max`.
fn mount_pty_limit(root: &Path) -> Option<ResourceLimit> {
    let mounts = std::fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    // The mount that was made last covers the others.
    let mount = mounts.lines().rfind(|line| line.split(' ').nth(4) == Some("/dev/pts"))?;
    let options = mount.rsplit(' ').next()?;
    let allowed = options.split(',').find_map(|option| option.strip_prefix("max=")?.parse().ok())?;
    let entries = std::fs::read_dir(root.join("dev/pts")).ok()?.flatten();
    let used = entries.filter(has_numeric_name).count() as u64;
    let what = "pseudo-terminals of /dev/pts (mount option max)".to_owned();
    let remedy = format!("raise it: mount -o remount,max={} /dev/pts", allowed * 2);
    Some(ResourceLimit { what, used, allowed, remedy })
}

/// The limits of the control groups that contain this process (cgroups(7), `pids.max`).
fn cgroup_limits(root: &Path) -> Vec<ResourceLimit> {
    let Ok(groups) = std::fs::read_to_string(root.join("proc/self/cgroup")) else { return Vec::new() };
    let Some(path) = groups.lines().find_map(|line| line.strip_prefix("0::/")) else { return Vec::new() };
    let group = PathBuf::from(path);
    group.ancestors().filter_map(|group| cgroup_limit(root, group)).collect()
}

fn cgroup_limit(root: &Path, group: &Path) -> Option<ResourceLimit> {
    let directory = root.join("sys/fs/cgroup").join(group);
    let (used, allowed) =
        (read_number(&directory.join("pids.current"))?, read_number(&directory.join("pids.max"))?);
    Some(ResourceLimit {
        what: format!("processes and threads of the control group /{} (pids.max)", group.display()),
        used,
        allowed,
        remedy: "raise it: systemd has the setting TasksMax=, container programs the option --pids-limit"
            .to_owned(),
    })
}

/// The limit of processes and threads of this user. It does not bind root.
fn user_limit(root: &Path) -> Option<ResourceLimit> {
    let own_directory = root.join("proc/self");
    let status = std::fs::read_to_string(own_directory.join("status")).ok()?;
    let uid = status_uid(&status).filter(|uid| *uid != 0)?;
    let limits = std::fs::read_to_string(own_directory.join("limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max processes"))?;
    let allowed = line.split_whitespace().next()?.parse().ok()?;
    // `/proc` also has `self` and `thread-self`, which are counted by their numbers already.
    let processes = std::fs::read_dir(root.join("proc")).ok()?.flatten().filter(has_numeric_name);
    let statuses =
        processes.filter_map(|process| std::fs::read_to_string(process.path().join("status")).ok());
    let own_threads = statuses.filter(|status| status_uid(status) == Some(uid)).map(|status| {
        status.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse().ok()).unwrap_or(1)
    });
    Some(ResourceLimit {
        what: format!("processes and threads of the user {uid} (ulimit -u)"),
        used: own_threads.sum(),
        allowed,
        remedy: "raise it: ulimit -u in the shell that starts teamd, or nproc in /etc/security/limits.conf"
            .to_owned(),
    })
}

/// The real user id in the text of `/proc/PID/status`.
fn status_uid(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The limit of processes and threads of the whole machine (proc_loadavg(5), `kernel.threads-max`).
fn kernel_task_limit(root: &Path) -> Option<ResourceLimit> {
    let load = std::fs::read_to_string(root.join("proc/loadavg")).ok()?;
    let used = load.split(' ').nth(3)?.split_once('/')?.1.parse().ok()?;
    let limit = |name: &str| read_number(&root.join("proc/sys/kernel").join(name));
    let (allowed, name) =
        [(limit("threads-max")?, "threads-max"), (limit("pid_max")?, "pid_max")].into_iter().min()?;
    Some(ResourceLimit {
        what: format!("processes and threads of the machine (kernel.{name})"),
        used,
        allowed,
        remedy: match allowed < MAX_PID_MAX {
            true => format!("raise it: sysctl -w kernel.{name}={}", (allowed * 2).min(MAX_PID_MAX)),
            false => "start them on another machine".to_owned(),
        },
    })
}

/// The limits of inotify. A limit whose file cannot be read is left out.
pub(super) fn watch_limits() -> Vec<WatchLimit> {
    let limits = [("max_user_instances", 64), ("max_user_watches", 4096)].into_iter();
    limits.filter_map(|(name, minimum)| read_watch_limit(name, minimum)).collect()
}

fn read_watch_limit(name: &'static str, minimum: u64) -> Option<WatchLimit> {
    let path = format!("/proc/sys/fs/inotify/{name}");
    let text = std::fs::read_to_string(&path).ok()?;
    Some(WatchLimit { name, minimum, path, text, setting: format!("fs.inotify.{name}") })
}

fn has_numeric_name(entry: &DirEntry) -> bool {
    entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `None` if the file does not exist, or if it has no number, as `max` in a control group.
fn read_number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes these files below a new directory, which stands for `/`.
    #[allow(clippy::disallowed_methods, reason = "these are no files of a team")]
    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    fn reached(files: &[(&str, &str)]) -> Vec<String> {
        let limits = all(machine(files).path());
        limits.iter().filter(|limit| limit.is_nearly_reached()).map(ResourceLimit::usage_text).collect()
    }

    #[test]
    fn terminals_of_the_machine_and_of_the_mount_are_counted() {
        let kernel = |nr| [("proc/sys/kernel/pty/nr", nr), ("proc/sys/kernel/pty/max", "4096")];
        assert_eq!(reached(&kernel("12")), [""; 0]);
        assert_eq!(reached(&kernel("4096")), ["4096 of 4096 pseudo-terminals (kernel.pty.max) are in use"]);
        let mount = "30 1 0:25 / /dev/pts rw,nosuid - devpts devpts rw,gid=5,mode=620,ptmxmode=000,max=2\n";
        let files =
            [("proc/self/mountinfo", mount), ("dev/pts/0", ""), ("dev/pts/1", ""), ("dev/pts/ptmx", "")];
        assert_eq!(reached(&files), ["2 of 2 pseudo-terminals of /dev/pts (mount option max) are in use"]);
    }

    #[test]
    fn control_groups_above_the_own_one_count() {
        let files = [
            ("proc/self/cgroup", "0::/user.slice/session\n"),
            ("sys/fs/cgroup/user.slice/session/pids.max", "max\n"),
            ("sys/fs/cgroup/user.slice/session/pids.current", "500\n"),
            ("sys/fs/cgroup/user.slice/pids.max", "512\n"),
            ("sys/fs/cgroup/user.slice/pids.current", "510\n"),
        ];
        let expected =
            "510 of 512 processes and threads of the control group /user.slice (pids.max) are in use";
        assert_eq!(reached(&files), [expected]);
    }

    #[test]
    fn threads_of_the_user_count_but_not_for_root() {
        let files = |uid| {
            [
                ("proc/self/status", uid),
                (
                    "proc/self/limits",
                    "Max processes             10                   20                   processes\n",
                ),
                ("proc/7/status", "Uid:\t1000\t1000\t1000\t1000\nThreads:\t10\n"),
                ("proc/8/status", "Uid:\t0\t0\t0\t0\nThreads:\t90\n"),
            ]
        };
        let expected = "10 of 10 processes and threads of the user 1000 (ulimit -u) are in use";
        assert_eq!(reached(&files("Uid:\t1000\t1000\t1000\t1000\nThreads:\t1\n")), [expected]);
        assert_eq!(reached(&files("Uid:\t0\t0\t0\t0\nThreads:\t1\n")), [""; 0]);
    }

    #[test]
    fn smaller_of_the_machines_limits_counts() {
        let files = [
            ("proc/loadavg", "0.5 0.4 0.3 2/32767 4711\n"),
            ("proc/sys/kernel/threads-max", "100000\n"),
            ("proc/sys/kernel/pid_max", "32768\n"),
        ];
        assert_eq!(
            reached(&files),
            ["32767 of 32768 processes and threads of the machine (kernel.pid_max) are in use"]
        );
    }

    #[test]
    fn machine_that_runs_these_tests_has_its_limits_read() {
        assert!(all(Path::new("/")).iter().any(|limit| limit.what.contains("the machine")));
    }
}
