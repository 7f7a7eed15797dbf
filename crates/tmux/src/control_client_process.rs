//! The client process of a control connection: a tmux process that is attached to a hidden session.
//! The client and its session must end when teamd exits, even if teamd is killed.
//!
//! A shell, the watcher, ensures this. It reads from a socket whose other end teamd holds. When
//! teamd exits, the kernel closes that end, and the read returns. The watcher then kills the client
//! and the only pane of the hidden session, the idle pane, so that the session ends. If another
//! program has put a window into the session, this window stays.
//!
//! Two simpler ways do not work:
//!
//! - Closing the client's pipes: a client for which the server still has output does not exit.
//! - The tmux option `destroy-unattached`, which ends a session without clients: if two clients
//!   exit at the same time, it can crash tmux 3.3a, and the user loses all sessions.

use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tmux_interface::{NewSession, RunShell, SetOption, TmuxCommand};

use crate::Error;
use crate::command_list::CommandList;
use crate::read_process_output_until_deadline::read_pipes;
use crate::server_address_and_program::TmuxEndpoint;

/// The name of a hidden session begins with this. The process id and a number follow.
pub(crate) const CONTROL_SESSION_PREFIX: &str = "_teamd-control-";

/// How long [`ControlClient::kill`] waits for the watcher.
const KILL_TIMEOUT: Duration = Duration::from_millis(500);

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

/// A running control client. Drop kills it and the idle pane of its session.
pub(crate) struct ControlClient {
    child: Child,
    /// teamd's end of a socket pair. When teamd exits, the kernel closes this end, and the
    /// watcher's read from the other end returns. The other end is also the standard error of the
    /// client and the watcher.
    watcher_socket: UnixStream,
}

/// Shell script that starts the watcher in the background and then becomes the client. When teamd
/// exits, the watcher ends the client and its hidden session.
///
/// The arguments: `$0` is the name of the hidden session. `$@` is the complete command line of the
/// client. It begins with the tmux program (`$1`), `-u` (`$2`) and the two words of the server's
/// address (`$3` and `$4`).
///
/// - The part in parentheses is the watcher. Its `read` returns when teamd exits. The watcher then
///   kills the client, and after it the idle pane, the only pane of the hidden session.
/// - `$$` is the process id of the client, because the script becomes the client by `exec`.
/// - The condition of `if-shell` ensures that no pane of another session is killed. If the hidden
///   session is gone, tmux checks the condition on some other session, whose name is not `$0`. A
///   new server at the same address may have a session of the same name. So the condition also
///   compares the session's option `@teamd_server_epoch` with the server's process id and start
///   time.
/// - The `:` at the end makes the watcher wait for the tmux command. Without the `:`, a shell may
///   run its last command by `exec`, which would close the watcher's standard error too early:
///   `ControlClient::kill` takes this as the sign that the pane is killed.
/// - The watcher prints nothing, because SIGPIPE would kill it: its standard error is the socket,
///   whose other end is closed when teamd exits.
const WATCHER_SCRIPT: &str = r##"
(
    read -r nothing <&2; kill -9 $$ 2>/dev/null
    "$1" "$2" "$3" "$4" if-shell -F -t "=$0:" "#{==:#{session_name} #{@teamd_server_epoch},$0 #{pid} #{start_time}}" "run-shell -t '=$0:' -C 'kill-pane -t #{@teamd_idle_pane}'" 2>/dev/null
    :
) </dev/null >/dev/null &
exec "$@"
"##;

impl ControlClient {
    /// Starts the control client and its watcher process.
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

    /// Starts `command` with `-C` and the arguments `words`. The client and its watcher share a new
    /// socket as standard error.
    fn start_process(
        mut command: Command,
        start: ServerStart,
        words: &[String],
    ) -> io::Result<StartedClient> {
        if let ServerStart::Never = start {
            command.arg("-N");
        }
        let (watcher_socket, stderr_socket) = UnixStream::pair()?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(OwnedFd::from(stderr_socket));
        let mut child = command.arg("-C").args(words).spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(StartedClient { client: ControlClient { child, watcher_socket }, stdin, stdout })
    }

    /// Kills the client and the idle pane of its session. Returns what the client printed on
    /// standard error.
    pub(crate) fn kill(&mut self) -> String {
        // These calls fail only if the watcher or the client has exited already.
        drop(self.watcher_socket.shutdown(Shutdown::Write));
        drop(self.child.kill());
        // The watcher exits at once, unless a signal has stopped it.
        let socket = self.watcher_socket.try_clone().ok();
        let printed = socket.and_then(|socket| read_pipes([socket.into()], Instant::now() + KILL_TIMEOUT));
        let printed = printed.map(|[printed]| printed).unwrap_or_default();
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

/// Returns the commands that create the hidden session of a control client and set its options. The
/// options override the user's settings. All commands are in one list, so that the user's settings
/// never apply.
///
/// The session continues to exist while it has no client. It ends when the process in its only
/// pane, the idle pane, exits. Then its client ends too.
fn hidden_session_commands(name: &str) -> CommandList {
    let session = NewSession::new().not_update_env().start_directory("/").session_name(name);
    let mut session = session.width(80).height(24).build();
    session.push_option("-f", "ignore-size,no-output");
    session.push_param("--");
    // The shell waits for a line that is never typed. It needs no program from the server's PATH.
    for word in ["/bin/sh", "-c", "while read -r nothing; do :; done"] {
        session.push_param(word);
    }
    let option = |option, value| {
        SetOption::new().format().target_pane(format!("={name}:")).option(option).value(value).build()
    };
    let window_option = SetOption::new().window().target_pane(format!("={name}:"));
    CommandList::new(&session)
        .with_command(&option("@teamd_server_epoch", "#{pid} #{start_time}"))
        .with_command(&option("@teamd_idle_pane", "#{pane_id}"))
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

/// Returns the command that kills the idle pane of a hidden session. A session without panes ends.
pub(crate) fn kill_idle_pane_command(name: &str) -> TmuxCommand<'static> {
    let kill = RunShell::new().tmux_command().target_pane(format!("={name}:"));
    kill.shell_command("kill-pane -t #{@teamd_idle_pane}").build()
}

/// Returns the process id in the name of a hidden session. `None` if `name` is another session's.
pub(crate) fn session_pid(name: &str) -> Option<u32> {
    name.strip_prefix(CONTROL_SESSION_PREFIX)?.split_once('-')?.0.parse().ok()
}

/// Returns a name for a hidden session that this process has not used yet.
fn new_session_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{CONTROL_SESSION_PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test reaps the client before the watcher runs, so the watcher's `kill` fails.
    #[test]
    fn watcher_kills_the_idle_pane_after_the_client_has_exited() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        // Instead of tmux, this test runs a shell script that gets the arguments for tmux. The
        // script appends the first of them (`$1`) to the file `log` (`$0`).
        let mut program = Command::new("/bin/sh");
        program.args(["-c", "echo $1 >>\"$0\""]).arg(&log);
        let StartedClient { mut client, .. } =
            ControlClient::start_process(with_watcher(&program, "no-session"), ServerStart::IfNeeded, &[])
                .unwrap();
        client.child.wait().unwrap();
        client.watcher_socket.shutdown(Shutdown::Both).unwrap();
        let read_log = || std::fs::read_to_string(&log).unwrap_or_default();
        let deadline = Instant::now() + Duration::from_secs(10);
        while !read_log().contains("if-shell") && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(read_log(), "-C\nif-shell\n");
    }
}
