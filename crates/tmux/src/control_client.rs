//! The client process of a control connection, and what takes it and its session down with us.
//!
//! A client that just loses its pipes is not enough: if the server has something left to tell it, the client stays for
//! ever, and then the server cannot end either. So beside it stands a watcher, which reads the other end of a socket
//! that we hold and never write to. The kernel closes that with us; then the watcher kills the client, whose place in
//! the server is free at once, and the hidden session after it.
//!
//! The option `destroy-unattached` would do without a watcher, and is dangerous: while a client is on its way out, the
//! end of any other one destroys the session under it, and tmux 3.3a crashes, with all the user's sessions.

use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use tmux_interface::{NewSession, SetOption, TmuxCommand};

use crate::address::TmuxEndpoint;
use crate::command_list::CommandList;
use crate::{Error, subprocess};

/// Whether a server may be started where none is running.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ServerStart {
    IfNeeded,
    Never,
}

/// A running client. Dropped, it is gone, and its session follows.
pub(crate) struct ControlClient {
    child: Child,
    /// The watcher and the client have the other end, as their standard error.
    watcher_socket: UnixStream,
    /// What they printed there, once both have closed it.
    stderr: Receiver<Vec<u8>>,
}

/// `$0` is the session, the first four words are the program and the address, all of them are the client. The shell
/// becomes the client, so the watcher knows it by its process id; and we reap that only after the watcher let go,
/// which is when the session is gone: hence the `:`, for a last command would take the watcher's place. The server that
/// answers by then may be another, and have a session of that name: only one that was made there is ended. Nothing is
/// said to the closed end, that the client has gone by itself least of all: to speak there is to die of SIGPIPE.
const WATCHER_SCRIPT: &str = r#"
(
    read -r nothing <&2; kill -9 $$ 2>/dev/null
    "$1" "$2" "$3" "$4" if-shell -F -t "=$0:" '#{==:#{@teamd_server},#{pid} #{start_time}}' "kill-session -t =$0" 2>/dev/null
    :
) </dev/null >/dev/null &
exec "$@"
"#;

impl ControlClient {
    /// Starts it, and gives its input and output.
    ///
    /// # Errors
    /// `Run`, or `Invalid` for words that cannot be spelled.
    pub(crate) fn start(
        tmux: &TmuxEndpoint,
        start: ServerStart,
    ) -> Result<(ControlClient, Option<ChildStdin>, Option<ChildStdout>), Error> {
        let name = new_session_name();
        let words = hidden_session_commands(&name).to_args()?;
        let command = with_watcher(&tmux.command(), &name);
        ControlClient::start_process(command, start, &words).map_err(|source| tmux.start_error(source))
    }

    fn start_process(
        mut command: Command,
        start: ServerStart,
        words: &[String],
    ) -> io::Result<(ControlClient, Option<ChildStdin>, Option<ChildStdout>)> {
        if let ServerStart::Never = start {
            command.arg("-N");
        }
        let (leash, theirs) = UnixStream::pair()?;
        let ours = leash.try_clone()?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(OwnedFd::from(theirs));
        let mut child = command.arg("-C").args(words).spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let complaints = subprocess::read_in_thread(Some(ours));
        Ok((ControlClient { child, watcher_socket: leash, stderr: complaints }, stdin, stdout))
    }

    /// Ends it, and gives what it had to complain about.
    pub(crate) fn kill(&mut self) -> String {
        // Either may fail only where there is nothing left to end.
        drop(self.watcher_socket.shutdown(Shutdown::Write));
        drop(self.child.kill());
        // At once, unless somebody has stopped the watcher.
        let printed = self.stderr.recv_timeout(Duration::from_millis(500)).unwrap_or_default();
        drop(self.child.wait());
        String::from_utf8_lossy(&printed).trim().to_owned()
    }
}

impl Drop for ControlClient {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The same command, with the watcher beside it.
fn with_watcher(command: &Command, session: &str) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", WATCHER_SCRIPT, session]).arg(command.get_program()).args(command.get_args());
    TmuxEndpoint::detach_from_tmux(&mut shell);
    shell
}

/// The options are set on this session alone, in the command line that makes it, so that a user's settings don't get
/// a say: it must outlive a moment without a client, end with its process, and take its client along.
fn hidden_session_commands(name: &str) -> CommandList {
    let session = NewSession::new().not_update_env().start_directory("/").session_name(name);
    let mut session = session.width(80).height(24).build();
    session.push_option("-f", "ignore-size,no-output");
    session.push_param("--");
    // Waits for a line that nobody types, whatever the server's PATH is.
    for word in ["/bin/sh", "-c", "while read -r nothing; do :; done"] {
        session.push_param(word);
    }
    let made = SetOption::new().format().target_pane(format!("={name}:"));
    let window = SetOption::new().window().target_pane(format!("={name}:"));
    CommandList::new(&session)
        .with_command(&made.option("@teamd_server").value("#{pid} #{start_time}").build())
        .with_command(&set_session_option(name, "destroy-unattached", "off"))
        .with_command(&set_session_option(name, "detach-on-destroy", "on"))
        .with_command(&set_session_option(name, "status", "off"))
        .with_command(&window.option("remain-on-exit").value("off").build())
}

/// Sets an option of the session of exactly this name.
pub(crate) fn set_session_option(
    session: &str,
    option: &'static str,
    value: &'static str,
) -> TmuxCommand<'static> {
    SetOption::new().target_pane(format!("={session}:")).option(option).value(value).build()
}

/// The process whose hidden session this is the name of.
pub(crate) fn session_pid(name: &str) -> Option<u32> {
    name.strip_prefix("_teamd-")?.split_once('-')?.0.parse().ok()
}

fn new_session_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("_teamd-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Where the dead are reaped at once the client's number is nobody's by then.
    #[test]
    fn watcher_works_after_the_client_has_exited() {
        let directory = tempfile::tempdir().unwrap();
        let told = directory.path().join("told");
        // Four words, as a program and its address have; the fifth is what it is asked to do.
        let mut stand_in = Command::new("/bin/sh");
        stand_in.args(["-c", "echo $1 >>\"$0\""]).arg(&told);
        let (mut client, ..) =
            ControlClient::start_process(with_watcher(&stand_in, "nobody"), ServerStart::IfNeeded, &[])
                .unwrap();
        client.child.wait().unwrap();
        client.watcher_socket.shutdown(Shutdown::Both).unwrap();
        let did = || std::fs::read_to_string(&told).unwrap_or_default();
        let until = Instant::now() + Duration::from_secs(10);
        while !did().contains("if-shell") && Instant::now() < until {
            std::thread::yield_now();
        }
        assert_eq!(did(), "-C\nif-shell\n");
    }
}
