//! Runs a command on another machine, for `teamctl --host NAME COMMAND` and for commands about a
//! member on another host. The `teamctl` of the other machine runs the command with the daemon
//! there. This `teamctl` prints the command's output and errors, and exits with its exit code. It
//! passes its signals to the command, and also its standard input if the command reads standard
//! input.

mod arguments_for_other_host;

use super::hosts::read_hosts::{HostSource, hosts_file_text};
use super::hosts::transport_command::{CtrlC, OWN_VERSION, transport_command};
use crate::cli::TEXT_OPTIONS;
use crate::command_context::CommandContext;
use crate::use_other_hosts::env_options_of_starter;
use arguments_for_other_host::{for_member_of, split_env_options, without_host_option};
use client::catch_terminating_signals::call_on_signals;
use platform::ExitHandle;
use profile::directory_environment_and_prompt::parse_env_options;
use protocol::command_for_other_host::{HostCommand, HostInput, HostSignal};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::{Host, HostName};
use protocol::team_and_member_names::TeamName;
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::io::{IsTerminal, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStdin, ExitCode, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use store::env_var;

/// How much of standard input is sent at once, in bytes.
const BLOCK_BYTES: usize = 1 << 16;

/// What a command does with the terminal and with standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalUse {
    /// It takes over the terminal, if there is one.
    NeedsTerminal,
    /// It reads standard input.
    ReadsInput,
    /// The command reads standard input only if an argument or the text of an option is `-`, as in
    /// `--prompt=-`.
    ReadsInputForDash,
}

/// Why a command runs on another host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RemoteRunReason {
    /// The user has typed `--host`: everything else is meant there.
    Typed,
    /// A member of this team runs there, or shall. Root, socket and team were chosen here.
    RunsMemberOf(TeamName),
}

pub(crate) fn run(
    context: &CommandContext,
    name: &str,
    reason: &RemoteRunReason,
    terminal_use: TerminalUse,
) -> Result<ExitCode, ErrorReport> {
    let mut source = HostSource::default();
    let hosts = match reason {
        RemoteRunReason::Typed => source.read(context)?,
        RemoteRunReason::RunsMemberOf(team) => source.read_for_team(context, team)?,
    };
    let hosts = match hosts {
        Ok(hosts) => hosts,
        Err(code) => return Ok(code),
    };
    let (name, host) = source.find(&hosts, name)?;
    let has_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let command = host_command(&name, &host, reason)?;
    match terminal_use {
        TerminalUse::NeedsTerminal if has_terminal => Err(exec_with_terminal(&name, &host, &command)?),
        TerminalUse::ReadsInput => run_with_streams(&name, &host, command, InputUse::Sent),
        TerminalUse::ReadsInputForDash if command.arguments.iter().any(|argument| is_dash(argument)) => {
            run_with_streams(&name, &host, command, InputUse::Sent)
        }
        TerminalUse::NeedsTerminal | TerminalUse::ReadsInputForDash => {
            run_with_streams(&name, &host, command, InputUse::Empty)
        }
    }
}

/// Whether the argument stands for standard input.
fn is_dash(argument: &str) -> bool {
    let option = argument.strip_suffix("=-");
    argument == "-" || option.is_some_and(|option| TEXT_OPTIONS.contains(&option))
}

/// The command with the arguments of this process.
fn host_command(name: &HostName, host: &Host, reason: &RemoteRunReason) -> Result<HostCommand, ErrorReport> {
    let typed = std::env::args_os().skip(1).map(to_utf8).collect::<Result<Vec<_>, _>>()?;
    let (team, arguments) = match reason {
        RemoteRunReason::Typed => (env_var("TEAMD_TEAM"), without_host_option(typed)),
        RemoteRunReason::RunsMemberOf(team) => (None, for_member_of(team, typed)),
    };
    let (arguments, env) = split_env_options(arguments);
    let mut env = parse_env_options(&env)?;
    env.extend(env_options_of_starter());
    Ok(HostCommand { host: name.clone(), root: host.root.clone(), team, arguments, env })
}

fn to_utf8(argument: OsString) -> Result<String, ErrorReport> {
    argument.into_string().map_err(|argument| {
        let message = format!("cannot send {} to another host: it is not UTF-8", argument.display());
        ErrorReport::new(ErrorKind::Usage, message)
    })
}

/// Replaces this process by the command that connects a terminal. Returns only if that fails.
fn exec_with_terminal(
    name: &HostName,
    host: &Host,
    command: &HostCommand,
) -> Result<ErrorReport, ErrorReport> {
    let argv = host.attach_command().ok_or_else(|| {
        let message = format!("cannot use a terminal on {name}: the host has no key `attach`");
        let help = format!("add the command with a terminal in {}: attach = \"…\"", hosts_file_text());
        ErrorReport::new(ErrorKind::Config, message).with_help(help)
    })?;
    let digits = command.to_hex();
    let words = [host.teamctl.as_str(), "hosts", "exec", OWN_VERSION, &digits];
    let error = transport_command(name, &argv, &words, CtrlC::EndsTransport)?.exec();
    Ok(ErrorReport::new(ErrorKind::Io, format!("cannot reach {name}: cannot start {}: {error}", argv[0])))
}

/// Whether standard input is sent to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputUse {
    Sent,
    Empty,
}

fn run_with_streams(
    name: &HostName,
    host: &Host,
    command: HostCommand,
    input_use: InputUse,
) -> Result<ExitCode, ErrorReport> {
    let words = [host.teamctl.as_str(), "hosts", "exec", OWN_VERSION];
    let mut transport = transport_command(name, &host.connect, &words, CtrlC::IsSent)?;
    let start_error = |error: std::io::Error| {
        ErrorReport::new(ErrorKind::Io, format!("cannot reach {name}: cannot start sh: {error}"))
    };
    let mut child = transport.stdin(Stdio::piped()).spawn().map_err(start_error)?;
    let frames = FrameSender(Arc::new(Mutex::new(child.stdin.take().expect("standard input is a pipe"))));
    frames.send(&HostInput::Command(command))?;
    send_signals(&frames, child.id())?;
    match input_use {
        InputUse::Empty => frames.send(&HostInput::End)?,
        InputUse::Sent => {
            let frames = frames.clone();
            std::thread::spawn(move || send_input(&frames));
        }
    }
    let status = child.wait().map_err(start_error)?;
    exit_code_or_error(name, status)
}

/// Sends frames to the host.
#[derive(Debug, Clone)]
struct FrameSender(Arc<Mutex<ChildStdin>>);

impl FrameSender {
    /// Sends a frame to the host. A failed write is no error here, because it means that the
    /// connection is lost. The transport (the command that connects to the host, such as ssh) then
    /// exits, and the caller notices that.
    ///
    /// # Errors
    ///
    /// `Usage` if the frame is too long. Only the frame with the command can be too long.
    fn send(&self, frame: &HostInput) -> Result<(), ErrorReport> {
        let bytes = frame.to_frame().ok_or_else(|| {
            ErrorReport::new(
                ErrorKind::Usage,
                "cannot send the command to another host: its arguments are too long",
            )
            .with_help("send a long text through standard input, with the argument -")
        })?;
        if let Ok(mut stream) = self.0.lock() {
            stream.write_all(&bytes).ok();
        }
        Ok(())
    }

    /// Sends a signal. Returns false if the host does not take more input now.
    fn try_send_signal(&self, signal: HostSignal) -> bool {
        let bytes = HostInput::Signal(signal).to_frame();
        match (self.0.try_lock(), bytes) {
            (Ok(mut stream), Some(bytes)) => stream.write_all(&bytes).is_ok(),
            _ => false,
        }
    }
}

/// Sets handlers that pass SIGINT, SIGTERM and SIGHUP of this process to the command on the host.
/// If a signal comes a second time, or cannot be passed, the handler ends the transport (the
/// program that connects to the host). The host then ends the command.
fn send_signals(frames: &FrameSender, transport_pid: u32) -> Result<(), ErrorReport> {
    // `None` if the transport has ended already.
    let transport = Arc::new(ExitHandle::open(transport_pid));
    for (number, signal) in
        [(SIGINT, HostSignal::Interrupt), (SIGTERM, HostSignal::Terminate), (SIGHUP, HostSignal::Hangup)]
    {
        let (frames, transport) = (frames.clone(), transport.clone());
        let mut is_first = true;
        call_on_signals(&[number], move || {
            let was_first = std::mem::replace(&mut is_first, false);
            if (!was_first || !frames.try_send_signal(signal))
                && let Some(transport) = &*transport
            {
                transport.send_signal(Signal::TERM).ok();
            }
        })?;
    }
    Ok(())
}

fn send_input(frames: &FrameSender) {
    let mut input = std::io::stdin().lock();
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        match input.read(&mut block) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(length) if length > 0 => drop(frames.send(&HostInput::Data(block[..length].to_vec()))),
            _ => return drop(frames.send(&HostInput::End)),
        }
    }
}

/// The exit code of the command. An exit code that `teamctl` does not have is one of the transport.
fn exit_code_or_error(name: &HostName, status: ExitStatus) -> Result<ExitCode, ErrorReport> {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    match code {
        126 | 127 => {
            let message = format!("cannot run the command on {name}: there is no teamctl there");
            Err(ErrorReport::new(ErrorKind::MissingPath, message).with_help(format!(
                "what is there: teamctl hosts check {name}; to install it: teamctl hosts install {name}"
            )))
        }
        255 => {
            let message = format!("cannot reach {name}: its connect command ended with exit code 255");
            Err(ErrorReport::new(ErrorKind::Io, message)
                .with_help(format!("to see why: teamctl hosts check {name}")))
        }
        code => Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dash_of_each_text_option_stands_for_standard_input() {
        let dashes = ["-", "--prompt=-", "--reason=-", "--description=-"];
        assert!(dashes.iter().all(|argument| is_dash(argument)));
        assert!(!["--", "--prompt=-a", "--force=-", "a=-", "=-"].iter().any(|argument| is_dash(argument)));
    }
}
