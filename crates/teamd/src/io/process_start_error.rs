//! The error report for a process or thread that the kernel did not start. It names the limit that is
//! reached.

use protocol::error::{ErrorKind, ErrorReport};
use rustix::process::{Resource, getrlimit};
use store::ProcessLimit;

/// The report for `error`, which the kernel returned for the start of `what`.
pub(crate) fn start_error(what: &str, error: &str) -> ErrorReport {
    let message = format!("cannot start {what}: {error}");
    let own_limit = Some(descriptor_limit()).filter(ProcessLimit::is_nearly_reached);
    match own_limit.or_else(store::reached_process_limit) {
        Some(limit) => limit.to_error(&message),
        None => ErrorReport::new(ErrorKind::Io, message).with_help("see: teamctl doctor"),
    }
}

/// The daemon's limit of descriptors. It needs three for each member.
fn descriptor_limit() -> ProcessLimit {
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // Without a free descriptor, the directory cannot be read.
    let used = std::fs::read_dir("/proc/self/fd").map_or(allowed, |files| files.count() as u64);
    let what = "descriptors of teamd (ulimit -n)".to_owned();
    let remedy = "start teamd again under a higher limit of descriptors: ulimit -Hn".to_owned();
    ProcessLimit { what, used, allowed, remedy }
}

/// The error with which the daemon exits at startup if one of its threads cannot be started.
pub(crate) fn thread_error(error: &std::io::Error) -> ErrorReport {
    start_error("a thread", &error.to_string())
}
