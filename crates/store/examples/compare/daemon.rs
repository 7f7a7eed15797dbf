//! Runs a daemon for the comparison. The daemon suggests the task to claim next, as it does for
//! `teamctl task claim`.

use protocol::control_socket::framing::encode;
use protocol::control_socket::{Call, NextTaskHint, NextTaskRequest, Reply, Request, Response};
use protocol::state_and_runtime_directories::{Directories, DirectoryEnvironment};
use protocol::team_and_member_names::{MemberName, TeamName};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running daemon. Dropping it kills the daemon.
pub(crate) struct NextTaskDaemon {
    child: Child,
    socket: PathBuf,
}

impl NextTaskDaemon {
    /// Starts a daemon for the root in `dir` and waits until the daemon has read the tasks. `None`
    /// if the program `teamd` is not built.
    pub(crate) fn start(dir: &Path) -> Option<NextTaskDaemon> {
        let executable = std::env::current_exe().unwrap();
        let program = executable.parent()?.parent()?.join("teamd");
        let [root, run, state] = ["root", "run", "state"].map(|name| dir.join(name));
        std::fs::create_dir(&run).unwrap();
        let mut teamd = Command::new(program);
        teamd.arg("--root").arg(&root).arg("-S").arg(dir.join("tmux")).env_clear();
        teamd.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        teamd.env("XDG_RUNTIME_DIR", &run).env("XDG_STATE_HOME", &state);
        let child = teamd.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let environment = DirectoryEnvironment {
            runtime_dir: Some(run),
            state_home: Some(state),
            ..DirectoryEnvironment::default()
        };
        let daemon = NextTaskDaemon {
            child,
            socket: Directories::for_root(&root.canonicalize().unwrap(), &environment).control_socket(),
        };
        while daemon.next_hint() == NextTaskHint::Unknown {
            std::thread::park_timeout(Duration::from_millis(20));
        }
        Some(daemon)
    }

    /// The daemon's hint. `Unknown` if the daemon can't be reached.
    pub(crate) fn next_hint(&self) -> NextTaskHint {
        self.request_hint().unwrap_or(NextTaskHint::Unknown)
    }

    fn request_hint(&self) -> std::io::Result<NextTaskHint> {
        let mut stream = UnixStream::connect(&self.socket)?;
        let team = TeamName::parse("bench").unwrap();
        let request = Request::NextTask(NextTaskRequest {
            team,
            owner: MemberName::lead(),
            include_in_progress: false,
        });
        stream.write_all(&encode(&Call::new(request)).unwrap())?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        match serde_json::from_str(&line)? {
            Response::Done(reply) => match *reply {
                Reply::NextTask(next) => Ok(next),
                other => panic!("{other:?}"),
            },
            Response::Failed(error) => panic!("{error:?}"),
        }
    }
}

impl Drop for NextTaskDaemon {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
