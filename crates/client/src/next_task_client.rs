//! Asks the daemon which task is next: of a long list that is much sooner answered than by a look at all its files. Its
//! word is a hint, and none is no loss: then there is that look.

use crate::connection::Connection;
use crate::error::Error;
use protocol::control::{Call, NextTaskHint, NextTaskRequest, PROTOCOL_VERSION, Reply, Request, Response};
use std::cell::Cell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// It answers within a millisecond; one that is busy for longer than this is as good as stopped.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);
/// One that has said nothing is not asked again for so long.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// See the head of this file.
#[derive(Debug)]
pub struct NextTaskClient {
    socket: PathBuf,
    silent_until: Cell<Option<Instant>>,
}

impl NextTaskClient {
    /// Of the daemon that serves this socket, whether there is one or not.
    pub fn new(socket: PathBuf) -> NextTaskClient {
        NextTaskClient { socket, silent_until: Cell::new(None) }
    }

    pub fn next_task(&self, asked: NextTaskRequest) -> NextTaskHint {
        if self.silent_until.get().is_some_and(|until| Instant::now() < until) {
            return NextTaskHint::Unknown;
        }
        self.send_request(asked).unwrap_or_else(|error| {
            if matches!(error, Error::Unresponsive(_)) {
                self.silent_until.set(Some(Instant::now() + RETRY_AFTER));
            }
            NextTaskHint::Unknown
        })
    }

    fn send_request(&self, asked: NextTaskRequest) -> Result<NextTaskHint, Error> {
        let mut connection = Connection::open_without_blocking(&self.socket)?;
        connection.set_timeout(REPLY_TIMEOUT)?;
        let call = Call {
            version: PROTOCOL_VERSION,
            token: None,
            idempotency_key: None,
            request: Request::NextTask(asked),
        };
        Ok(match connection.call(&call)? {
            Response::Done(reply) => match *reply {
                Reply::NextTask(next) => next,
                _ => NextTaskHint::Unknown,
            },
            // Of another release, say.
            Response::Failed(_) => NextTaskHint::Unknown,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::name::{AgentName, TeamName};
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    fn next_task_request() -> NextTaskRequest {
        NextTaskRequest {
            team: TeamName::parse("t").unwrap(),
            owner: AgentName::lead(),
            include_in_progress: false,
        }
    }

    #[test]
    fn who_says_nothing_is_waited_for_once() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let hints = NextTaskClient::new(socket.clone());
        assert_eq!(hints.next_task(next_task_request()), NextTaskHint::Unknown, "nobody is there");
        let daemon = UnixListener::bind(socket).unwrap();
        assert_eq!(
            hints.next_task(next_task_request()),
            NextTaskHint::Unknown,
            "it takes the question and does not answer"
        );
        daemon.accept().unwrap();
        assert_eq!(hints.next_task(next_task_request()), NextTaskHint::Unknown);
        daemon.set_nonblocking(true).unwrap();
        assert!(daemon.accept().is_err(), "it is not asked again");
    }

    #[test]
    fn a_daemon_of_another_release_knows_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let daemon = UnixListener::bind(&socket).unwrap();
        let refuses = std::thread::spawn(move || {
            let (mut stream, _) = daemon.accept().unwrap();
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            writeln!(stream, r#"{{"failed":{{"kind":"usage","message":"cannot understand"}}}}"#).unwrap();
            line
        });
        assert_eq!(NextTaskClient::new(socket).next_task(next_task_request()), NextTaskHint::Unknown);
        assert!(refuses.join().unwrap().contains(r#"{"next_task":{"team":"t","owner":"team-lead""#));
    }
}
