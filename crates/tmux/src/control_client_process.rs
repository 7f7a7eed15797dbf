//! The client process of a control connection. It ends with this process, and so does its session.
//!
//! Closing the pipes of the client is not enough. If the server still has output for it, the client
//! never exits, and then the server can't exit either. So a watcher process runs beside the client.
//! It reads from a socket whose other end this process holds and never writes to. The kernel closes
//! that end when this process exits. The watcher then kills the client, which frees the client's
//! entry in the server at once, and then kills the hidden session.
//!
//! The tmux option `destroy-unattached` needs no watcher, but it is dangerous. If any other client
//! exits while this one is exiting, tmux destroys the session of the exiting client. tmux 3.3a then
//! crashes, and all sessions of the user are lost.

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

/// Whether tmux starts a server if none is running.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ServerStart {
    IfNeeded,
    Never,
}

/// A control client with its standard input and output.
pub(crate) struct StartedClient {
    pub(crate) client: ControlClient,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

/// A running control client. Drop kills it and its session.
pub(crate) struct ControlClient {
    child: Child,
    /// The other end is the standard error of the watcher and of the client.
    watcher_socket: UnixStream,
    /// Receives what they printed there, once both have closed it.
    stderr: Receiver<Vec<u8>>,
}

/// Shell script that starts the watcher in the background and then becomes the client.
///
/// `$0` is the name of the session. `$1` to `$4` are the program and its address. All arguments
/// together are the command line of the client.
///
/// - The shell becomes the client by `exec`, so `$$` is the process id of the client.
/// - `ControlClient::kill` reaps the client only after the watcher has closed its standard error.
///   The session is gone by then. The `:` is needed for that: without it the shell could `exec` the
///   last command, and the watcher would no longer exist.
/// - Another server may listen at the address by then and may have a session with this name. So the
///   watcher kills the session only if its `@teamd_server_epoch` names the server that replies.
/// - The watcher prints nothing, not even that the client has already exited. Writing to the closed
///   socket would kill it by SIGPIPE.
const WATCHER_SCRIPT: &str = r#"
(
    read -r nothing <&2; kill -9 $$ 2>/dev/null
    "$1" "$2" "$3" "$4" if-shell -F -t "=$0:" '#{==:#{@teamd_server_epoch},#{pid} #{start_time}}' "kill-session -t =$0" 2>/dev/null
    :
) </dev/null >/dev/null &
exec "$@"
"#;

impl ControlClient {
    /// Starts the client and the watcher.
    ///
    /// # Errors
    ///
    /// `ProgramNotStarted`; `InvalidArgument` if a word contains NUL.
    pub(crate) fn start(tmux: &TmuxEndpoint, start: ServerStart) -> Result<StartedClient, Error> {
        let name = new_session_name();
        let words = hidden_session_commands(&name).to_args()?;
        let command = with_watcher(&tmux.command(), &name);
        ControlClient::start_process(command, start, &words).map_err(|source| tmux.start_error(source))
    }

    /// Runs `command` with `-C` and `words`. The standard error of both processes is a new socket.
    fn start_process(
        mut command: Command,
        start: ServerStart,
        words: &[String],
    ) -> io::Result<StartedClient> {
        if let ServerStart::Never = start {
            command.arg("-N");
        }
        let (watcher_socket, stderr_socket) = UnixStream::pair()?;
        let stderr_reader = watcher_socket.try_clone()?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(OwnedFd::from(stderr_socket));
        let mut child = command.arg("-C").args(words).spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        let stderr = subprocess::read_in_thread(Some(stderr_reader));
        Ok(StartedClient { client: ControlClient { child, watcher_socket, stderr }, stdin, stdout })
    }

    /// Kills the client and its session. Returns what the client printed on standard error.
    pub(crate) fn kill(&mut self) -> String {
        // Both fail only if the watcher or the client has exited already.
        drop(self.watcher_socket.shutdown(Shutdown::Write));
        drop(self.child.kill());
        // The watcher exits at once, unless a signal has stopped it.
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

/// Returns a command that runs `command` with the watcher beside it.
fn with_watcher(command: &Command, session: &str) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", WATCHER_SCRIPT, session]).arg(command.get_program()).args(command.get_args());
    TmuxEndpoint::detach_from_tmux(&mut shell);
    shell
}

/// Returns the commands that create the hidden session.
///
/// The options are set on this session only. They are in the same command list as the session, so
/// the user's settings never apply to it. The session must survive a moment without a client, must
/// end with the process in its pane, and must end its client when it ends.
fn hidden_session_commands(name: &str) -> CommandList {
    let session = NewSession::new().not_update_env().start_directory("/").session_name(name);
    let mut session = session.width(80).height(24).build();
    session.push_option("-f", "ignore-size,no-output");
    session.push_param("--");
    // The shell waits for a line that is never typed. It needs no program from the server's PATH.
    for word in ["/bin/sh", "-c", "while read -r nothing; do :; done"] {
        session.push_param(word);
    }
    let session_option = SetOption::new().format().target_pane(format!("={name}:"));
    let window_option = SetOption::new().window().target_pane(format!("={name}:"));
    CommandList::new(&session)
        .with_command(&session_option.option("@teamd_server_epoch").value("#{pid} #{start_time}").build())
        .with_command(&set_session_option(name, "destroy-unattached", "off"))
        .with_command(&set_session_option(name, "detach-on-destroy", "on"))
        .with_command(&set_session_option(name, "status", "off"))
        .with_command(&window_option.option("remain-on-exit").value("off").build())
}

/// Returns the command that sets an option of the session with exactly this name.
pub(crate) fn set_session_option(
    session: &str,
    option: &'static str,
    value: &'static str,
) -> TmuxCommand<'static> {
    SetOption::new().target_pane(format!("={session}:")).option(option).value(value).build()
}

/// Returns the process id in the name of a hidden session. `None` if `name` is another session's.
pub(crate) fn session_pid(name: &str) -> Option<u32> {
    name.strip_prefix("_teamd-control-")?.split_once('-')?.0.parse().ok()
}

/// Returns a name for a hidden session that this process has not used yet.
fn new_session_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("_teamd-control-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// The test reaps the client before the watcher runs, so the watcher's `kill` finds no process.
    #[test]
    fn watcher_works_after_the_client_has_exited() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        // The first four words stand for the program and its address. `$1` in the script is the
        // fifth word: the tmux command.
        let mut program = Command::new("/bin/sh");
        program.args(["-c", "echo $1 >>\"$0\""]).arg(&log);
        let StartedClient { mut client, .. } =
            ControlClient::start_process(with_watcher(&program, "no-session"), ServerStart::IfNeeded, &[])
                .unwrap();
        client.child.wait().unwrap();
        client.watcher_socket.shutdown(Shutdown::Both).unwrap();
        let logged = || std::fs::read_to_string(&log).unwrap_or_default();
        let deadline = Instant::now() + Duration::from_secs(10);
        while !logged().contains("if-shell") && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(logged(), "-C\nif-shell\n");
    }
}
