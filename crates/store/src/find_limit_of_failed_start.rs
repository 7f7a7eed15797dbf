//! If a process could not be started or a terminal could not be opened, finds the system limit that
//! was reached, such as the maximum number of processes. The kernel's error does not name the
//! limit.

use platform::ResourceLimit;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};

/// The system's limits on processes and pseudo-terminals that apply to this process. The limit that
/// leaves the smallest number free comes first.
pub fn process_limits() -> Vec<ResourceLimit> {
    let mut limits = platform::system().resource_limits();
    limits.sort_by_key(|limit| limit.allowed.saturating_sub(limit.used));
    limits
}

/// The limit that may be the reason why the kernel started no process or opened no terminal.
pub fn reached_process_limit() -> Option<ResourceLimit> {
    process_limits().into_iter().find(ResourceLimit::is_nearly_reached)
}

/// The error for a start that has failed with `message`, probably because of the limit.
pub fn process_limit_error(limit: &ResourceLimit, message: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::Io, format!("{message}: {}", limit.usage_text()))
        .with_help(format!("end other programs, or {}", limit.remedy))
}
