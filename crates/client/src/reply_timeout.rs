//! How long a client waits for the reply to a call.

use protocol::control_socket::Request;
use protocol::policy::WorktreeCommandKind;
use std::time::Duration;

/// How long the daemon's git commands for one request may take.
const GIT_TIMEOUT: Duration = Duration::from_secs(900);

/// How long a client waits for the daemon's reply to `request`. The daemon has shorter deadlines
/// for carrying out the request. So if this timeout passes, the daemon's process is stopped or
/// hangs.
pub fn reply_timeout(request: &Request) -> Duration {
    match request {
        Request::Status
        | Request::StatusWithScreens
        | Request::NextTask(_)
        | Request::ReportActivity(_)
        | Request::LocatePane(_)
        | Request::PlaceMember(_)
        | Request::ReportHook(_)
        | Request::SetLead(_) => Duration::from_secs(5),
        // A long poll has no reply before there may be work, which can take hours. The caller of a
        // long poll sets its own, shorter deadline.
        Request::LongPoll(_) => Duration::from_secs(24 * 3600),
        // The home of a mirrored team may be out of reach for any time.
        Request::ConfirmTask(_) => Duration::from_secs(24 * 3600),
        Request::UseHost(_) | Request::AwaitHost(_) | Request::ForgetHost(_) | Request::TakeHome(_) => {
            Duration::from_secs(90)
        }
        // The daemon waits up to 60 s for each of the two answers of the host.
        Request::MoveHome(_) => Duration::from_secs(150),
        Request::SetMode(_) => Duration::from_secs(20),
        // For a spawn request, the daemon opens a pane, the shim starts the agent, and the agent's
        // program may have to open a session. Together these steps may take long.
        Request::Spawn(_) => Duration::from_secs(90),
        Request::Interrupt(_)
        | Request::Kill(_)
        | Request::StopDaemon
        | Request::StopDaemonAndSuspend
        | Request::ConnectHome(_)
        | Request::ConnectShim(_) => Duration::from_secs(60),
        // To create or remove worktrees, the daemon runs several git commands, each with its own
        // deadline. Git can also run the user's hooks and filters, and the team's policy can add
        // commands. All of these may take long.
        Request::CreateWorktree(_) => GIT_TIMEOUT + WorktreeCommandKind::Setup.max_timeout(),
        Request::DeleteTeam(_) => GIT_TIMEOUT + WorktreeCommandKind::Teardown.max_timeout(),
        Request::CreateTeam(_)
        | Request::CapturePane(_)
        | Request::HidePane(_)
        | Request::ShowPane(_)
        | Request::SetLayout(_)
        | Request::SetPersonPane(_)
        | Request::ResumeMembers(_)
        | Request::SetPolicy(_) => Duration::from_secs(20),
        Request::Shutdown(request) => {
            Duration::from_millis(request.grace_ms).saturating_add(Duration::from_secs(60))
        }
    }
}
