//! `teamctl --host NAME COMMAND`: runs a command by the `teamctl` of another machine, and so by the
//! daemon there. Output, errors, the exit code and signals go through, and standard input if the
//! command reads it.

use super::hosts::read_hosts::{HostSource, hosts_file_text};
use super::hosts::transport_command::{CtrlC, OWN_VERSION, transport_command};
use crate::command_context::CommandContext;
use client::catch_terminating_signals::call_on_signals;
use platform::ExitHandle;
use protocol::command_for_other_host::{HostCommand, HostInput, HostSignal};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::{Host, HostName};
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
    /// It reads standard input if an argument is `-`. Else standard input stays for other programs.
    ReadsInputForDash,
}

pub(crate) fn run(
    context: &CommandContext,
    name: &str,
    terminal_use: TerminalUse,
) -> Result<ExitCode, ErrorReport> {
    let hosts = match HostSource::default().read(context)? {
        Ok(hosts) => hosts,
        Err(code) => return Ok(code),
    };
    let (name, host) = HostSource::default().find(&hosts, name)?;
    let arguments = arguments_for_host(std::env::args_os().skip(1))?;
    let has_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let team = env_var("TEAMD_TEAM");
    let command = HostCommand { host: name.clone(), root: host.root.clone(), team, arguments };
    match terminal_use {
        TerminalUse::NeedsTerminal if has_terminal => Err(exec_with_terminal(&name, &host, &command)?),
        TerminalUse::ReadsInput => run_with_streams(&name, &host, command, InputUse::Sent),
        TerminalUse::ReadsInputForDash if command.arguments.iter().any(|argument| argument == "-") => {
            run_with_streams(&name, &host, command, InputUse::Sent)
        }
        TerminalUse::NeedsTerminal | TerminalUse::ReadsInputForDash => {
            run_with_streams(&name, &host, command, InputUse::Empty)
        }
    }
}

/// Removes the option `--host` from the arguments that a person has typed.
///
/// # Errors
///
/// `Usage` if an argument is not UTF-8.
fn arguments_for_host(typed: impl Iterator<Item = OsString>) -> Result<Vec<String>, ErrorReport> {
    let mut typed = typed.map(|argument| {
        argument.into_string().map_err(|argument| {
            let message = format!("cannot send {} to another host: it is not UTF-8", argument.display());
            ErrorReport::new(ErrorKind::Usage, message)
        })
    });
    let mut kept = Vec::new();
    while let Some(argument) = typed.next().transpose()? {
        match argument.as_str() {
            "--host" => drop(typed.next()),
            "--" => {
                kept.push(argument);
                kept.extend(typed.by_ref().collect::<Result<Vec<_>, _>>()?);
            }
            _ if argument.starts_with("--host=") => {}
            _ => kept.push(argument),
        }
    }
    Ok(kept)
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
    /// Sends a frame. If the connection is lost, nothing happens: the transport reports it.
    ///
    /// # Errors
    ///
    /// `Usage` if the frame is too long. Only a command can be.
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

/// Sends SIGINT, SIGTERM and SIGHUP of this process to the command from now on. A signal
/// that comes a second time, or cannot be sent, ends the transport. Then the host ends the command.
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
    fn host_option_is_removed_and_everything_else_stays() {
        for (typed, expected) in [
            ("--host a status", "status"),
            ("status --host=a -t x", "status -t x"),
            ("spawn ann --host a -- p --host b --host=c", "spawn ann -- p --host b --host=c"),
            ("--host a --host b send ann --hosts", "send ann --hosts"),
        ] {
            let kept = arguments_for_host(typed.split(' ').map(OsString::from)).unwrap();
            assert_eq!(kept.join(" "), expected, "{typed}");
        }
    }
}
