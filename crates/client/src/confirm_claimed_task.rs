//! Waits until a claim of a task in a mirrored team is confirmed. A mirror is a copy of a team
//! whose true files are on another host, the team's home. In the mirror, a claim is only a
//! proposal, because a member on a different host may have claimed the task first. So teamd's
//! programs wait for the home's decision after a claim, and then begin the task.

use crate::connect_to_daemon::DaemonAddress;
use crate::daemon_call_error::Error;
use protocol::control_socket::{Call, ConfirmTaskRequest, Request, Response};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use std::time::Duration;
use store::Team;

/// How long [`confirm_task_in_progress`] waits for the decision.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// What the home has decided about a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimDecision {
    /// The member has the task.
    Confirmed,
    /// The member does not have the task. The error says why.
    Refused(ErrorReport),
}

/// Waits until the team's home, the host with its true files, has decided whether `owner` has the
/// task. Returns at once if the team's home is this host.
///
/// # Errors
///
/// `Timeout` if the home has not decided within `timeout`, for example because there is no contact
/// with it. Other errors if the daemon of this host cannot be asked. After an error, the caller
/// must not begin the task, and may call this function again.
pub fn confirm_claimed_task(
    daemon: &DaemonAddress,
    team: &Team,
    task: TaskId,
    owner: &MemberName,
    timeout: Duration,
) -> Result<ClaimDecision, ErrorReport> {
    if !team.is_mirror() {
        return Ok(ClaimDecision::Confirmed);
    }
    let request = ConfirmTaskRequest { team: team.name().clone(), task, owner: owner.clone() };
    match send_request(daemon, request, timeout) {
        Ok(Response::Done(_)) => Ok(ClaimDecision::Confirmed),
        Ok(Response::Failed(error)) if is_refusal(&error) => Ok(ClaimDecision::Refused(error)),
        Ok(Response::Failed(error)) => Err(error),
        Err(Error::Unresponsive(_)) => Err(undecided_error(team, task)),
        Err(error) => Err(error.into()),
    }
}

/// Checks that the task's owner really has the task, if the task is in progress. In a mirrored team
/// only the team's home, another host, knows this. So this function waits for the home's decision,
/// for a minute at most.
///
/// # Errors
///
/// Why the owner does not have the task, or why the home's decision is not known.
pub fn confirm_task_in_progress(daemon: &DaemonAddress, team: &Team, task: &Task) -> Result<(), ErrorReport> {
    let Some(owner) = task.owner.as_ref().filter(|_| task.status == TaskStatus::InProgress) else {
        return Ok(());
    };
    match confirm_claimed_task(daemon, team, task.id, owner, MAX_WAIT)? {
        ClaimDecision::Confirmed => Ok(()),
        ClaimDecision::Refused(error) => Err(error),
    }
}

fn send_request(
    daemon: &DaemonAddress,
    request: ConfirmTaskRequest,
    timeout: Duration,
) -> Result<Response, Error> {
    let mut connection = daemon.open()?;
    connection.set_timeout(timeout)?;
    connection.call(&Call::new(Request::ConfirmTask(request)))
}

/// Whether the error says that the member does not have the task. Any other error says that it is
/// unknown who has the task.
fn is_refusal(error: &ErrorReport) -> bool {
    matches!(
        error.kind,
        ErrorKind::AlreadyExists | ErrorKind::NotFound | ErrorKind::NotPermitted | ErrorKind::Refused
    )
}

fn undecided_error(team: &Team, task: TaskId) -> ErrorReport {
    let message = format!("cannot begin task {task} yet: the home of {} has not confirmed it", team.name());
    ErrorReport::new(ErrorKind::Timeout, message)
        .with_help("there may be no contact with it: teamctl status; whose task it is: teamctl task list")
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::state_file_names::mirror_marker;
    use protocol::team_config::TeamConfig;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    fn team(dir: &Path) -> Team {
        let root = store::Root::open(&dir.join("root"), dir, store::Durability::Process).unwrap();
        root.create_team(&TeamConfig::parse(r#"{"name":"t","members":[]}"#).unwrap()).unwrap()
    }

    fn confirm(dir: &Path, team: &Team, timeout: Duration) -> Result<ClaimDecision, ErrorKind> {
        let daemon = DaemonAddress { socket: dir.join("socket"), state_dir: dir.to_owned() };
        let id = TaskId::from_number(3).unwrap();
        confirm_claimed_task(&daemon, team, id, &MemberName::new_unchecked("ann"), timeout)
            .map_err(|error| error.kind)
    }

    /// The decision about a claim if the daemon answers with this line.
    fn decision(dir: &Path, team: &Team, answer: &str) -> Result<ClaimDecision, ErrorKind> {
        let socket = dir.join("socket");
        let daemon = UnixListener::bind(&socket).unwrap();
        let decision = std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = daemon.accept().unwrap();
                let mut line = String::new();
                BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
                assert!(line.contains(r#"{"confirm_task":{"team":"t","task":"3","owner":"ann"}}"#), "{line}");
                writeln!(stream, "{answer}").unwrap();
            });
            confirm(dir, team, Duration::from_secs(5))
        });
        std::fs::remove_file(socket).unwrap();
        decision
    }

    #[test]
    fn only_the_answer_of_the_home_decides() {
        let dir = tempfile::tempdir().unwrap();
        let (dir, team) = (dir.path(), team(dir.path()));
        let wait = Duration::from_millis(20);
        assert_eq!(confirm(dir, &team, wait), Ok(ClaimDecision::Confirmed), "the team's home is here");
        std::fs::File::create(dir.join(mirror_marker(team.name()))).unwrap();
        assert_eq!(confirm(dir, &team, wait), Err(ErrorKind::NoDaemon));
        assert_eq!(decision(dir, &team, r#"{"done":"ack"}"#), Ok(ClaimDecision::Confirmed));
        let failed = |kind: &str| format!(r#"{{"failed":{{"kind":"{kind}","message":"bob has it"}}}}"#);
        let refused = decision(dir, &team, &failed("already_exists"));
        assert!(matches!(refused, Ok(ClaimDecision::Refused(error)) if error.message == "bob has it"));
        assert_eq!(decision(dir, &team, &failed("config")), Err(ErrorKind::Config));
        let _silent = UnixListener::bind(dir.join("socket")).unwrap();
        assert_eq!(confirm(dir, &team, wait), Err(ErrorKind::Timeout));
    }
}
