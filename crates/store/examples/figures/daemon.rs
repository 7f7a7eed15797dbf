//! A daemon beside the list, as `teamctl task claim` asks it which task is next.

use protocol::control::frame::encode;
use protocol::control::{Call, Next, NextTask, Reply, Request, Response, VERSION};
use protocol::name::{AgentName, TeamName};
use protocol::place::{Environment, Place};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// One that runs, for as long as this is kept.
pub(crate) struct Daemon {
    child: Child,
    socket: PathBuf,
}

impl Daemon {
    /// Of the root in `dir`, and knows its tasks; none where the program is not built.
    pub(crate) fn at(dir: &Path) -> Option<Daemon> {
        let own = std::env::current_exe().unwrap();
        let program = own.parent()?.parent()?.join("teamd");
        let [root, run, state] = ["root", "run", "state"].map(|name| dir.join(name));
        std::fs::create_dir(&run).unwrap();
        let mut teamd = Command::new(program);
        teamd.arg("--root").arg(&root).arg("-S").arg(dir.join("tmux")).env_clear();
        teamd.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        teamd.env("XDG_RUNTIME_DIR", &run).env("XDG_STATE_HOME", &state);
        let child = teamd.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let place = Environment { runtime_dir: Some(run), state_home: Some(state), ..Environment::default() };
        let daemon = Daemon { child, socket: Place::of(&root.canonicalize().unwrap(), &place).socket() };
        while daemon.next() == Next::Unknown {
            std::thread::park_timeout(Duration::from_millis(20));
        }
        Some(daemon)
    }

    pub(crate) fn next(&self) -> Next {
        self.ask().unwrap_or(Next::Unknown)
    }

    fn ask(&self) -> std::io::Result<Next> {
        let mut stream = UnixStream::connect(&self.socket)?;
        let team = TeamName::parse("bench").unwrap();
        let request = Request::NextTask(NextTask { team, owner: AgentName::lead(), resume: false });
        stream.write_all(&encode(&Call { v: VERSION, token: None, once: None, request }).unwrap())?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        match serde_json::from_str(&line)? {
            Response::Done(reply) => match *reply {
                Reply::NextTask(next) => Ok(next),
                other => panic!("{other:?}"),
            },
            Response::Failed(fault) => panic!("{fault:?}"),
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
