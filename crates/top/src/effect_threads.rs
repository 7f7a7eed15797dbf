//! Runs effects on threads of their own, so that the event loop never waits. Most effects run
//! `teamctl`, so a key does what the command does, with the same checks. A command that has started
//! continues when the screen ends.

use crate::args::{ScreenArgs, ScreenKind};
use crate::event::{ActionResult, ActionStatus, PaneAvailability, UiEffect, UiEvent};
use crate::snapshot_reader;
use client::suggested_commands::SuggestedCommands;
use protocol::installed_program::installed_program;
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::{Durability, Root};

/// How many lines of the log are shown of a member without a pane.
const LOG_LINES: usize = 40;
/// How long running commands may take when the screen ends. Most finish in this time, so that their
/// errors can be printed.
const FINISH_TIMEOUT: Duration = Duration::from_millis(500);
/// How often the end of the running commands is checked.
const FINISH_POLL: Duration = Duration::from_millis(10);

/// The threads of the effects that run.
pub(crate) struct EffectThreads {
    worker: EffectWorker,
    /// The commands that run: their arguments, as typed, and their threads.
    running: Vec<(String, JoinHandle<()>)>,
}

impl EffectThreads {
    pub(crate) fn new(arguments: ScreenArgs, sender: Sender<UiEvent>) -> EffectThreads {
        EffectThreads { worker: EffectWorker { arguments, sender }, running: Vec::new() }
    }

    /// Starts an effect. Its result arrives as an event. The process of a command has started when
    /// this returns.
    pub(crate) fn start(&mut self, effect: UiEffect) {
        let worker = self.worker.clone();
        self.running.retain(|(_, thread)| !thread.is_finished());
        // Sending fails only if the event loop has ended, and then the result is not needed.
        match effect {
            UiEffect::RunTeamctl { args, stdin } => {
                let child = worker.start_teamctl(&args, &stdin);
                let wait = move || {
                    let output = child.and_then(Child::wait_with_output);
                    worker.sender.send(UiEvent::ActionFinished(command_result(output))).ok();
                };
                self.running.push((args.join(" "), std::thread::spawn(wait)));
            }
            other => {
                std::thread::spawn(move || worker.sender.send(worker.run_effect(other)).ok());
            }
        }
    }

    /// Waits up to [`FINISH_TIMEOUT`] for the commands that run, or until a signal ends the
    /// program. Returns lines for people: the errors of failed commands, and the commands that
    /// continue.
    pub(crate) fn wait_briefly(self, events: &Receiver<UiEvent>) -> Vec<String> {
        let (deadline, mut lines) = (Instant::now() + FINISH_TIMEOUT, Vec::new());
        let is_running = |(_, thread): &&(String, JoinHandle<()>)| !thread.is_finished();
        while self.running.iter().any(|command| is_running(&command)) && Instant::now() < deadline {
            match events.recv_timeout(FINISH_POLL) {
                Ok(UiEvent::ActionFinished(result)) if result.status == ActionStatus::Failed => {
                    lines.push(result.text);
                }
                Ok(UiEvent::Terminate(_)) => break,
                _ => {}
            }
        }
        let running = self.running.iter().filter(is_running);
        lines.extend(running.map(|(args, _)| format!("this goes on without the screen: teamctl {args}")));
        lines
    }
}

/// Runs one effect on its thread.
#[derive(Clone)]
struct EffectWorker {
    arguments: ScreenArgs,
    sender: Sender<UiEvent>,
}

impl EffectWorker {
    fn run_effect(&self, effect: UiEffect) -> UiEvent {
        match effect {
            UiEffect::CapturePane { name, pane } => self.capture_or_log(name, pane),
            UiEffect::Diagnose { name } => self.diagnose(name),
            UiEffect::Attach { name } => self.attach(&name),
            UiEffect::RunTeamctl { .. } | UiEffect::Quit(_) | UiEffect::Suspend | UiEffect::Redraw => {
                UiEvent::Continued
            }
        }
    }

    /// Runs the `teamctl` of this installation and waits for it.
    fn run_teamctl(&self, args: &[String]) -> std::io::Result<Output> {
        self.start_teamctl(args, "")?.wait_with_output()
    }

    /// Starts `teamctl` with `input` on standard input. It has a process group of its own, so that
    /// signals of the terminal do not reach it.
    fn start_teamctl(&self, args: &[String], input: &str) -> std::io::Result<Child> {
        let mut command = Command::new(teamctl_path()?);
        command
            .args(location_args(&self.arguments))
            .args(["--team", self.arguments.team.as_str()])
            .args(args);
        command.stdin(memory_file(input)?).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).spawn()
    }

    /// The screen of a member's pane. Without a pane, or if the daemon cannot read it, the end of
    /// the member's log.
    fn capture_or_log(&self, name: String, pane: PaneAvailability) -> UiEvent {
        let args = ["capture", "--", &name].map(str::to_owned);
        let captured = (pane == PaneAvailability::Exists).then(|| self.run_teamctl(&args).ok()).flatten();
        let text = match captured.filter(|output| output.status.success()) {
            Some(output) => {
                format!("its pane shows:\n{}", String::from_utf8_lossy(&output.stdout).trim_end())
            }
            None => {
                let lines =
                    snapshot_reader::last_log_lines(&snapshot_reader::agent_log_path(&self.arguments, &name));
                let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
                format!("its output ends:\n{}", last.trim_end())
            }
        };
        UiEvent::PaneCaptured { name, text }
    }

    fn diagnose(&self, name: String) -> UiEvent {
        let output = self.run_teamctl(&["why", "--", &name].map(str::to_owned)).ok();
        let output = output.filter(|output| output.status.success());
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
        UiEvent::Diagnosed { name, text: text.unwrap_or_default() }
    }

    fn attach(&self, name: &str) -> UiEvent {
        if std::env::var("TMUX").is_ok_and(|tmux| !tmux.is_empty()) {
            return self.switch_client(name);
        }
        UiEvent::ActionFinished(ActionResult::failure(format!(
            "not inside tmux: in a terminal of its own, type: {}",
            attach_command(&self.arguments, name, &commands_without_team(&self.arguments))
        )))
    }

    fn switch_client(&self, name: &str) -> UiEvent {
        let client = TmuxClient::find_for_this_pane();
        let output = self.run_teamctl(&["attach", "--", name].map(str::to_owned));
        if !output.as_ref().is_ok_and(|output| output.status.success()) {
            return UiEvent::ActionFinished(command_result(output));
        }
        if let Some(client) = client {
            client.show_return_key();
        }
        match self.arguments.screen_kind {
            // The popup covers the member's pane until it closes.
            ScreenKind::Popup => UiEvent::Terminate(0),
            ScreenKind::Terminal => {
                UiEvent::ActionFinished(ActionResult::success(format!("you were taken to {name}")))
            }
        }
    }
}

/// The result of a command: its output or its error as one line.
fn command_result(output: std::io::Result<Output>) -> ActionResult {
    let output = match output {
        Ok(output) => output,
        Err(error) => return ActionResult::failure(format!("cannot start teamctl: {error}")),
    };
    let joined_lines = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines.join(" ").trim_start_matches("teamctl: ").trim_start_matches("error: ").to_owned()
    };
    let (stdout, stderr) = (joined_lines(&output.stdout), joined_lines(&output.stderr));
    match output.status.success() {
        true if stdout.is_empty() => ActionResult::success("done"),
        true => ActionResult::success(stdout),
        false if stderr.is_empty() => ActionResult::failure(stdout),
        false => ActionResult::failure(stderr),
    }
}

/// `--root` and `--socket`, where `teamctl` would not find these by itself. `teamctl` repeats the
/// options that it was given in the commands that it suggests, so needless ones are left out.
fn location_args(arguments: &ScreenArgs) -> Vec<OsString> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let root = store::resolve_root_path(variable("TEAMD_ROOT").as_deref()).ok();
    let root = root.and_then(|root| root.canonicalize().ok());
    let socket = variable("TEAMD_SOCKET")
        .unwrap_or_else(|| store::directories_for_root(&arguments.root).control_socket());
    let mut args: Vec<OsString> = Vec::new();
    if root.as_ref() != Some(&arguments.root) {
        args.extend(["--root".into(), arguments.root.clone().into()]);
    }
    if socket != arguments.socket {
        args.extend(["--socket".into(), arguments.socket.clone().into()]);
    }
    args
}

/// A file in memory with this content, open at its start. It needs no thread that writes, as a pipe
/// would.
fn memory_file(text: &str) -> std::io::Result<File> {
    let mut file = File::from(memfd_create("text", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// How a person in front of the screen types a command about the team.
pub(crate) fn suggested_commands(arguments: &ScreenArgs) -> SuggestedCommands {
    let root = Root::open(&arguments.root, &arguments.state_dir, Durability::Process).ok();
    let teams = root.and_then(|root| root.teams().ok()).unwrap_or_default();
    let team_from_env = std::env::var("TEAMD_TEAM").ok().filter(|team| !team.is_empty());
    commands_without_team(arguments).for_team_unless_implied(
        &arguments.team,
        &teams,
        team_from_env.as_deref(),
    )
}

/// How that person types a command without a team.
fn commands_without_team(arguments: &ScreenArgs) -> SuggestedCommands {
    SuggestedCommands::with_options(
        location_args(arguments).into_iter().map(|argument| argument.to_string_lossy().into_owned()),
    )
}

fn attach_command(arguments: &ScreenArgs, name: &str, commands: &SuggestedCommands) -> String {
    commands.for_team(&arguments.team).command_for_name("attach", name, &[])
}

fn teamctl_path() -> std::io::Result<PathBuf> {
    Ok(installed_program(&std::env::current_exe()?, "teamctl", Path::is_file))
}

/// A tmux client, and the session and window that it shows.
struct TmuxClient {
    name: String,
    session: String,
    window: String,
}

impl TmuxClient {
    /// The first client of this pane's session. `None` if there is none.
    fn find_for_this_pane() -> Option<TmuxClient> {
        let pane = std::env::var("TMUX_PANE").unwrap_or_default();
        TmuxClient::list(&["-t", &pane]).into_iter().next()
    }

    /// The clients with a terminal. The daemon's own client is in control mode and is left out.
    fn list(options: &[&str]) -> Vec<TmuxClient> {
        let format = "#{client_control_mode} #{session_id} #{window_id} #{client_name}";
        let listed = run_tmux(&[&["list-clients", "-F", format], options].concat()).unwrap_or_default();
        let client = |line: &str| {
            let mut fields = line.strip_prefix("0 ")?.splitn(3, ' ').map(str::to_owned);
            let (session, window, name) = (fields.next()?, fields.next()?, fields.next()?);
            Some(TmuxClient { name, session, window })
        };
        listed.lines().filter_map(client).collect()
    }

    /// Shows for 5 s in the client which key leads back. The message has no texts of others.
    fn show_return_key(&self) {
        let Some(now) = TmuxClient::list(&[]).into_iter().find(|client| client.name == self.name) else {
            return;
        };
        let back = match (now.session == self.session, now.window == self.window) {
            (false, _) => "prefix L (switch-client -l)",
            (true, false) => "prefix l (last-window)",
            (true, true) => "prefix ; (last-pane)",
        };
        let text = format!("back to the team's screen: {back}");
        run_tmux(&["display-message", "-d", "5000", "-c", &self.name, &text]);
    }
}

/// Runs tmux on the server of this pane. `None` if it failed.
fn run_tmux(args: &[&str]) -> Option<String> {
    let socket = std::env::var("TMUX").ok()?.split(',').next()?.to_owned();
    let output = Command::new("tmux").arg("-S").arg(socket).args(args).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ScreenArgs;

    #[test]
    fn attach_command_includes_options() {
        let args = ["--root", "/r", "--state", "/s", "--socket", "/c", "--team", "survey"];
        let arguments = ScreenArgs::parse(args.map(OsString::from)).unwrap();
        let with_root = SuggestedCommands::with_options(["--root", "/a b"].map(str::to_owned));
        let command = |name: &str, commands: &SuggestedCommands| attach_command(&arguments, name, commands);
        assert_eq!(command("ann", &SuggestedCommands::default()), "teamctl attach -t survey ann");
        assert_eq!(command("-x", &with_root), "teamctl attach --root '/a b' -t survey -- -x");
    }
}
