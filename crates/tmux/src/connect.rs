//! Getting a connection, and learning who is at its other end.
//!
//! A connection counts once tmux has answered over it with its epoch and version. What keeps a first connection from
//! being made is often gone a moment later, so it is tried thrice.

use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::address::Tmux;
use crate::client::Start;
use crate::control::Control;
use crate::deadline::Deadline;
use crate::guard::say;
use crate::server::Herald;
use crate::{Address, Epoch, Error, Version, exec, predecessor};

/// Who answered.
pub(crate) struct Hello {
    pub(crate) epoch: Epoch,
    pub(crate) version: Version,
}

/// A server that is just ending takes connections and drops them, and nothing tells when it is done; and a name may
/// be left over from a process that had our id. Both are gone at the second or third try.
pub(crate) fn first(tmux: &Tmux, herald: &Herald, deadline: Deadline) -> Result<(Control, Hello), Error> {
    check_place(tmux)?;
    probe(tmux, deadline)?;
    predecessor::await_end(tmux, deadline);
    for pause in [50, 400] {
        match once(tmux, Start::Allowed, herald, deadline) {
            Err(Error::Connect { cause, .. }) if is_passing(&cause) => {
                thread::park_timeout(Duration::from_millis(pause));
            }
            result => return result,
        }
    }
    once(tmux, Start::Allowed, herald, deadline)
}

/// One try.
pub(crate) fn once(
    tmux: &Tmux,
    start: Start,
    herald: &Herald,
    deadline: Deadline,
) -> Result<(Control, Hello), Error> {
    let mut control = Control::open(tmux, start, herald)?;
    let question = say(&format!("#{{version}} {}", Epoch::FORMAT));
    match control.ask(&[question], deadline) {
        Ok(mut replies) => {
            let reply = replies.pop().expect("one for one");
            let hello = hello(&reply.text(deadline.verb())?, deadline.verb())?;
            Ok((control, hello))
        }
        Err(Error::Lost { .. }) => Err(refused(tmux, control.cause())),
        Err(other) => Err(other),
    }
}

/// Refuses a program that is too old before it is asked for what it does not know.
fn probe(tmux: &Tmux, deadline: Deadline) -> Result<(), Error> {
    let mut command = tmux.command();
    command.arg("-V");
    let output = exec::output(tmux, command, deadline)?;
    match output.complaint {
        Some(cause) => Err(Error::Failed { verb: "ask tmux for its version", cause }),
        None => Version::supported(&String::from_utf8_lossy(&output.text)).map(drop),
    }
}

/// In a directory that does not exist tmux 3.3a crashes instead of saying so.
fn check_place(tmux: &Tmux) -> Result<(), Error> {
    match &tmux.address {
        Address::Path(path) if path.parent().is_some_and(is_missing) => {
            Err(refused(tmux, "its directory does not exist".to_owned()))
        }
        _ => Ok(()),
    }
}

/// The parent of a bare file name is empty, and means here.
fn is_missing(dir: &Path) -> bool {
    !dir.as_os_str().is_empty() && !dir.is_dir()
}

fn is_passing(cause: &str) -> bool {
    ["server exited", "lost server", "closed the connection", "duplicate session"]
        .iter()
        .any(|words| cause.contains(words))
}

fn hello(text: &str, verb: &'static str) -> Result<Hello, Error> {
    let (version, epoch) = text.split_once(' ').ok_or_else(|| Error::unexpected(verb, text))?;
    Ok(Hello { epoch: epoch.parse()?, version: Version::supported(version)? })
}

pub(crate) fn refused(tmux: &Tmux, cause: String) -> Error {
    Error::Connect { address: tmux.address.to_string(), cause }
}
