//! How long a caller waits for the reply to each request.

use protocol::control::Request;
use std::time::Duration;

/// How long the daemon may take for this. It has deadlines of its own, and these are longer: what they catch is a
/// daemon that is stopped.
pub fn request_timeout(request: &Request) -> Duration {
    match request {
        Request::Status
        | Request::StatusWithScreens
        | Request::NextTask(_)
        | Request::ReportActivity(_)
        | Request::LocatePane(_)
        | Request::ReportHook(_)
        | Request::SetLead(_) => Duration::from_secs(5),
        // It is a wait: its caller has a deadline of its own.
        Request::LongPoll(_) => Duration::from_secs(24 * 3600),
        Request::SetMode(_) => Duration::from_secs(20),
        // Its pane, the green light, and the session that its program may have to open.
        Request::Spawn(_) => Duration::from_secs(90),
        Request::Interrupt(_)
        | Request::Kill(_)
        | Request::StopDaemon
        | Request::StopDaemonAndSuspend
        | Request::ConnectShim(_) => Duration::from_secs(60),
        // Git's own deadline, and the user's hooks and filters: several calls, one after the other.
        Request::CreateWorktree(_) | Request::DeleteTeam(_) => Duration::from_secs(900),
        Request::CreateTeam(_)
        | Request::CapturePane(_)
        | Request::TypeInPane(_)
        | Request::HidePane(_)
        | Request::ShowPane(_)
        | Request::SetLayout(_)
        | Request::ResumeMembers(_)
        | Request::SetPolicy(_) => Duration::from_secs(20),
        Request::Shutdown(order) => {
            Duration::from_millis(order.grace_ms).saturating_add(Duration::from_secs(60))
        }
    }
}
