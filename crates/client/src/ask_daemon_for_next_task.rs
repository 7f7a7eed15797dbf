//! Asks the daemon for a member's next task. The daemon replies at once, even if there is no task.
//! If the task list is long, this query is much faster than reading all task files.
//!
//! The daemon's reply is a hint: the member must still claim the task in the task files. If the
//! daemon does not reply, the caller reads the task files instead.

use crate::connect_to_daemon::DaemonAddress;
use crate::daemon_call_error::Error;
use protocol::control_socket::{Call, NextTaskHint, NextTaskRequest, Reply, Request, Response};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The timeout for connecting, and for the reply. A running daemon replies within a millisecond.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How long a shim waits for the connection to the daemon, and for its reply. This is longer than
/// the [`TIMEOUT`] of other clients, because a message to all members can make thousands of shims
/// ask at once. A shim whose wait times out reads all task files, which keeps the machine busy even
/// longer.
const SHIM_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the client does not ask the daemon after a timeout.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Asks the daemon for the next task of a member. If the daemon does not reply in time, the client
/// does not ask it again for 10 s.
#[derive(Debug)]
pub struct NextTaskClient {
    daemon: DaemonAddress,
    timeout: Duration,
    retry_at: Cell<Option<Instant>>,
}

impl NextTaskClient {
    /// A client for the daemon at this address. The daemon need not be running.
    pub fn new(daemon: DaemonAddress) -> NextTaskClient {
        NextTaskClient { daemon, timeout: TIMEOUT, retry_at: Cell::new(None) }
    }

    /// A client for a shim, with a longer timeout.
    pub fn for_shim(daemon: DaemonAddress) -> NextTaskClient {
        NextTaskClient { timeout: SHIM_TIMEOUT, ..NextTaskClient::new(daemon) }
    }

    /// Where the daemon is found.
    pub fn daemon(&self) -> &DaemonAddress {
        &self.daemon
    }

    /// Asks the daemon for the next task, without waiting for one. Returns `Unknown` if the daemon
    /// cannot be reached, does not reply, or replies with an error.
    pub fn next_task(&self, request: NextTaskRequest) -> NextTaskHint {
        if self.retry_at.get().is_some_and(|retry_at| Instant::now() < retry_at) {
            return NextTaskHint::Unknown;
        }
        self.send_request(request).unwrap_or_else(|error| {
            if matches!(error, Error::Unresponsive(_)) {
                self.retry_at.set(Some(Instant::now() + RETRY_AFTER));
            }
            NextTaskHint::Unknown
        })
    }

    fn send_request(&self, request: NextTaskRequest) -> Result<NextTaskHint, Error> {
        let mut connection = self.daemon.open_within(self.timeout)?;
        connection.set_timeout(self.timeout)?;
        let call = Call::new(Request::NextTask(request));
        Ok(match connection.call(&call)? {
            Response::Done(reply) => match *reply {
                Reply::NextTask(hint) => hint,
                _ => NextTaskHint::Unknown,
            },
            // The request can fail if, for example, the daemon is of another release.
            Response::Failed(_) => NextTaskHint::Unknown,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::team_and_member_names::{MemberName, TeamName};
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    fn address(dir: &Path) -> DaemonAddress {
        DaemonAddress { socket: dir.join("socket"), state_dir: dir.to_owned() }
    }

    fn next_task_request() -> NextTaskRequest {
        NextTaskRequest {
            team: TeamName::parse("t").unwrap(),
            owner: MemberName::lead(),
            include_in_progress: false,
        }
    }

    #[test]
    fn unresponsive_daemon_gets_one_request() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let client = NextTaskClient::new(address(dir.path()));
        assert_eq!(client.next_task(next_task_request()), NextTaskHint::Unknown, "no daemon is running");
        let daemon = UnixListener::bind(socket).unwrap();
        assert_eq!(client.next_task(next_task_request()), NextTaskHint::Unknown, "the daemon does not reply");
        daemon.accept().unwrap();
        assert_eq!(client.next_task(next_task_request()), NextTaskHint::Unknown);
        daemon.set_nonblocking(true).unwrap();
        assert!(daemon.accept().is_err(), "the client sends no second request");
    }

    #[test]
    fn error_response_becomes_an_unknown_hint() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let daemon = UnixListener::bind(&socket).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = daemon.accept().unwrap();
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            writeln!(stream, r#"{{"failed":{{"kind":"usage","message":"cannot understand"}}}}"#).unwrap();
            line
        });
        assert_eq!(
            NextTaskClient::new(address(dir.path())).next_task(next_task_request()),
            NextTaskHint::Unknown
        );
        assert!(server.join().unwrap().contains(r#"{"next_task":{"team":"t","owner":"team-lead""#));
    }
}
