//! The other side of `teamctl --host`: runs the `teamctl` command that another machine sends. The
//! command comes through standard input. If standard input is a terminal, the command comes as an
//! argument, in hexadecimal digits.

use super::transport_command::OWN_VERSION;
use client::catch_terminating_signals::{call_on_signals, catch_terminal_signals};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use platform::ExitHandle;
use protocol::command_for_other_host::{
    ENV_OPTIONS_VARIABLE, FRAME_HEADER_BYTES, FrameHeader, HOST_OF_CALLER_VARIABLE, HostCommand, HostInput,
    HostSignal,
};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use serde_json::json;
use signal_hook::consts::SIGTERM;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{ChildStdin, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use store::{env_var, own_program};

/// The arguments.
#[derive(Debug, clap::Args)]
pub(super) struct ExecArgs {
    /// The version of the caller, which must be the version here
    version: String,
    /// The command in hexadecimal digits [default: from standard input]
    command: Option<String>,
}

pub(super) fn run(args: &ExecArgs) -> Result<ExitCode, ErrorReport> {
    if args.version != OWN_VERSION {
        let message =
            format!("cannot run a command for teamctl {}: this host has teamctl {OWN_VERSION}", args.version);
        return Err(ErrorReport::new(ErrorKind::Config, message)
            .with_help("install the same version here; from the other machine: teamctl hosts install NAME"));
    }
    match &args.command {
        Some(digits) => {
            let command = HostCommand::from_hex(digits).ok_or_else(command_error)?;
            Err(ErrorReport::from_io("start", &own_program()?, &own_command(&command)?.exec()))
        }
        None => run_with_framed_input(),
    }
}

/// Runs the command of the first frame. The other frames are its input and its signals.
fn run_with_framed_input() -> Result<ExitCode, ErrorReport> {
    let mut input = std::io::stdin();
    let Some(HostInput::Command(command)) = read_frame(&mut input) else { return Err(command_error()) };
    let program = own_program()?;
    let mut command = own_command(&command)?;
    // The transport may have started this process with some signals ignored, and the command would
    // ignore them too. A signal with a handler is not ignored in a child process, so this process
    // sets handlers.
    catch_terminal_signals();
    let mut child = command
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| ErrorReport::from_io("start", &program, &error))?;
    let command_input = child.stdin.take();
    // `None` if the command has ended already.
    if let Some(process) = ExitHandle::open(child.id()) {
        let group = Arc::new(CommandGroup { process, pid: child.id() });
        let signalled_group = group.clone();
        call_on_signals(&[SIGTERM], move || signalled_group.signal(Signal::SIGTERM))?;
        std::thread::spawn(move || pass_input(input, command_input, &group));
    }
    let status = child.wait().map_err(|error| ErrorReport::from_io("wait for", &program, &error))?;
    Ok(exit_code(status))
}

/// The process group of the command.
struct CommandGroup {
    process: ExitHandle,
    pid: u32,
}

impl CommandGroup {
    fn signal(&self, signal: Signal) {
        // The group exists as long as its first process was not waited for.
        if self.process.exits_within(Duration::ZERO).is_ok_and(|has_exited| !has_exited)
            && let Ok(pid) = i32::try_from(self.pid)
        {
            killpg(Pid::from_raw(pid), signal).ok();
        }
    }
}

/// Passes input and signals to the command until the connection ends. Then sends SIGHUP to the
/// command if it still runs, as when a terminal is closed.
fn pass_input(mut frames: impl Read, mut command_input: Option<ChildStdin>, group: &CommandGroup) {
    loop {
        match read_frame(&mut frames) {
            // A command need not read its input.
            Some(HostInput::Data(bytes)) => {
                if command_input.as_mut().is_some_and(|input| input.write_all(&bytes).is_err()) {
                    command_input = None;
                }
            }
            Some(HostInput::End) => command_input = None,
            Some(HostInput::Signal(signal)) => group.signal(match signal {
                HostSignal::Interrupt => Signal::SIGINT,
                HostSignal::Terminate => Signal::SIGTERM,
                HostSignal::Hangup => Signal::SIGHUP,
            }),
            Some(HostInput::Command(_)) | None => return group.signal(Signal::SIGHUP),
        }
    }
}

/// Reads a frame. `None` at the end of the stream, and if the bytes are no frame.
fn read_frame(stream: &mut impl Read) -> Option<HostInput> {
    let mut header = [0; FRAME_HEADER_BYTES];
    stream.read_exact(&mut header).ok()?;
    let header = FrameHeader::parse(header)?;
    let mut content = vec![0; header.length];
    stream.read_exact(&mut content).ok()?;
    header.with_content(content)
}

fn command_error() -> ErrorReport {
    ErrorReport::new(ErrorKind::Usage, "cannot read the command of the other machine")
        .with_help("this command is only for: teamctl --host NAME COMMAND")
}

/// This program with the arguments of the command.
fn own_command(command: &HostCommand) -> Result<Command, ErrorReport> {
    let mut own = Command::new(own_program()?);
    own.args(&command.arguments).env(HOST_OF_CALLER_VARIABLE, command.host.as_str());
    // A start file here can name a host, and two machines can name each other.
    own.env_remove("TEAMD_HOST");
    if let Some(root) = &command.root {
        own.env("TEAMD_ROOT", expand_home(root)).env_remove("TEAMD_SOCKET");
    }
    if let Some(team) = &command.team {
        own.env("TEAMD_TEAM", team);
    }
    own.env(ENV_OPTIONS_VARIABLE, json!(command.env).to_string());
    Ok(own)
}

/// The path with `~/` at its beginning replaced by the home directory.
pub(super) fn expand_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), env_var("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(path),
    }
}

/// The exit code that a shell would report.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::hosts_file_entry::HostName;
    use std::collections::BTreeMap;

    #[test]
    fn command_gets_the_team_and_no_further_host() {
        let host = HostName::parse("box").unwrap();
        let team = Some("survey".to_owned());
        let (arguments, env) = (Vec::new(), BTreeMap::from([("K".to_owned(), "v".to_owned())]));
        let own = own_command(&HostCommand { host, root: None, team, arguments, env }).unwrap();
        let variables: Vec<_> = own.get_envs().collect();
        for (name, value) in [
            ("TEAMD_HOST", None),
            ("TEAMD_TEAM", Some("survey")),
            (HOST_OF_CALLER_VARIABLE, Some("box")),
            (ENV_OPTIONS_VARIABLE, Some("{\"K\":\"v\"}")),
        ] {
            assert!(variables.contains(&(name.as_ref(), value.map(AsRef::as_ref))), "{variables:?}");
        }
    }

    #[test]
    fn frames_end_at_damage_and_at_the_end() {
        let bytes = [HostInput::Data(b"ab".to_vec()), HostInput::End].map(|frame| frame.to_frame().unwrap());
        let mut stream = &*bytes.concat();
        assert_eq!(read_frame(&mut stream), Some(HostInput::Data(b"ab".to_vec())));
        assert_eq!(read_frame(&mut stream), Some(HostInput::End));
        assert_eq!(read_frame(&mut stream), None);
        assert_eq!(
            (read_frame(&mut &b"D\0\0\0\x05ab"[..]), read_frame(&mut &b"hello world"[..])),
            (None, None)
        );
    }
}
