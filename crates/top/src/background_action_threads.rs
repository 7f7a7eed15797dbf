//! Runs actions on threads of their own, so that the event loop never waits for an action. Most
//! actions run `teamctl`, so that a key has the same effects and checks as the command. A `teamctl`
//! process that still runs when `top` ends is not killed.

use crate::args::{ScreenArgs, ScreenKind};
use crate::output_log_tail::{agent_log_path, last_output};
use crate::teamctl_command::{
    attach_command, command_result, commands_without_team, run_teamctl, start_teamctl,
};
use crate::tmux_client_of_this_pane::{TmuxClient, copy_to_tmux, is_inside_tmux};
use crate::ui_events_and_effects::{
    ActionResult, ActionStatus, BackgroundAction, MemberOutput, MemberPane, UiEvent,
};
use client::select_tmux_server::tmux_output;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long `top` waits for running `teamctl` commands before it exits. Most commands finish in
/// this time, so that `top` can still print their errors.
const FINISH_TIMEOUT: Duration = Duration::from_millis(500);

/// Carries out the background actions of the event loop.
pub(crate) trait BackgroundRunner {
    /// Starts an action. Its result is an event.
    fn start(&mut self, action: BackgroundAction);
}

/// The actions that are running, each on its own thread.
pub(crate) struct BackgroundThreads {
    worker: BackgroundWorker,
    running: Vec<RunningCommand>,
    /// The member whose output was read last, and the thread that reads it.
    capture: Option<(String, JoinHandle<()>)>,
}

/// A running `teamctl`.
struct RunningCommand {
    /// The arguments of `teamctl`, as a person would type them.
    args: String,
    thread: JoinHandle<()>,
}

impl BackgroundThreads {
    pub(crate) fn new(arguments: ScreenArgs, sender: Sender<UiEvent>) -> BackgroundThreads {
        BackgroundThreads {
            worker: BackgroundWorker { arguments, sender },
            running: Vec::new(),
            capture: None,
        }
    }

    /// Reads a member's output, unless a thread still reads the output of the same member.
    fn capture(&mut self, name: String, pane: MemberPane) {
        let is_running =
            |(member, thread): &(String, JoinHandle<()>)| *member == name && !thread.is_finished();
        if !self.capture.as_ref().is_some_and(is_running) {
            let member = name.clone();
            let thread = self.worker.clone().run(move |worker| worker.capture_or_log(name, &pane));
            self.capture = Some((member, thread));
        }
    }

    /// Waits until the running commands have ended, or [`FINISH_TIMEOUT`] has passed. Returns lines
    /// for people: the errors of failed commands, and the commands that are still running.
    pub(crate) fn wait_briefly(self, events: &Receiver<UiEvent>) -> Vec<String> {
        let (deadline, (sender, ended)) = (Instant::now() + FINISH_TIMEOUT, channel());
        let mut running = BTreeMap::new();
        for (number, command) in self.running.into_iter().enumerate() {
            running.insert(number, command.args);
            let sender = sender.clone();
            std::thread::spawn(move || {
                command.thread.join().ok();
                sender.send(number).ok();
            });
        }
        while !running.is_empty()
            && let Ok(number) = ended.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            running.remove(&number);
        }
        // The thread of a command sends the result before it ends, so no result is missed.
        let failures = events.try_iter().filter_map(failure_text);
        let running = running.into_values();
        failures
            .chain(running.map(|args| format!("this goes on without the screen: teamctl {args}")))
            .collect()
    }
}

/// The error of a failed action.
fn failure_text(event: UiEvent) -> Option<String> {
    match event {
        UiEvent::ActionFinished(result) if result.status == ActionStatus::Failed => Some(result.text),
        _ => None,
    }
}

impl BackgroundRunner for BackgroundThreads {
    /// Runs an action on a new thread, which sends the result as an event. The process of a
    /// [`BackgroundAction::RunTeamctl`] is started before this function returns. So these commands
    /// start in the order of the calls.
    fn start(&mut self, action: BackgroundAction) {
        let worker = self.worker.clone();
        self.running.retain(|command| !command.thread.is_finished());
        match action {
            BackgroundAction::RunTeamctl { args, stdin } => {
                let child = start_teamctl(&worker.arguments, &args, &stdin);
                let thread = worker.run(|_| {
                    UiEvent::ActionFinished(command_result(child.and_then(Child::wait_with_output)))
                });
                self.running.push(RunningCommand { args: args.join(" "), thread });
            }
            BackgroundAction::CapturePane { name, pane } => self.capture(name, pane),
            BackgroundAction::Diagnose { name } => {
                worker.run(move |worker| worker.diagnose(name));
            }
            BackgroundAction::CopyToTmux { text } => copy_to_tmux_in_background(text, worker.sender),
            BackgroundAction::Attach { name } => {
                worker.run(move |worker| worker.attach(&name));
            }
            // A running team is no film.
            BackgroundAction::MoveFilm(_) => {}
        }
    }
}

/// Runs one action on its own thread.
#[derive(Clone)]
struct BackgroundWorker {
    arguments: ScreenArgs,
    sender: Sender<UiEvent>,
}

impl BackgroundWorker {
    /// Runs `action` on a new thread, which sends the result as an event.
    fn run(self, action: impl FnOnce(&BackgroundWorker) -> UiEvent + Send + 'static) -> JoinHandle<()> {
        // Sending fails only if the event loop has ended, and then the result is not needed.
        std::thread::spawn(move || drop(self.sender.send(action(&self))))
    }

    /// Reads the screen of a member's pane. If the member has no pane, or if the pane cannot be
    /// read, the result has the last lines of the member's log instead.
    fn capture_or_log(&self, name: String, pane: &MemberPane) -> UiEvent {
        let screen = match pane {
            MemberPane::Tmux { socket, pane } => capture_own_pane(socket, pane, &name),
            MemberPane::Other => self.capture_by_daemon(&name),
            MemberPane::Missing => None,
        };
        let output = screen.map_or_else(|| self.end_of_log(&name), MemberOutput::Screen);
        UiEvent::PaneCaptured { name, output }
    }

    fn capture_by_daemon(&self, name: &str) -> Option<String> {
        let output = run_teamctl(&self.arguments, &["capture", "--", name]).ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn end_of_log(&self, name: &str) -> MemberOutput {
        let log = last_output(&agent_log_path(&self.arguments, name));
        MemberOutput::end_of_log(&String::from_utf8_lossy(&log))
    }

    fn diagnose(&self, name: String) -> UiEvent {
        let output = run_teamctl(&self.arguments, &["why", "--", &name]).ok();
        let output = output.filter(|output| output.status.success());
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
        UiEvent::Diagnosed { name, text: text.unwrap_or_default() }
    }

    fn attach(&self, name: &str) -> UiEvent {
        if is_inside_tmux() {
            return self.switch_client(name);
        }
        UiEvent::ActionFinished(ActionResult::failure(format!(
            "not inside tmux: in a terminal of its own, type: {}",
            attach_command(&self.arguments, name, &commands_without_team(&self.arguments))
        )))
    }

    fn switch_client(&self, name: &str) -> UiEvent {
        let client = TmuxClient::find_for_this_pane();
        let output = run_teamctl(&self.arguments, &["attach", "--", name]);
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

/// Copies a text to tmux on a thread of its own, which sends the result as an event.
pub(crate) fn copy_to_tmux_in_background(text: String, sender: Sender<UiEvent>) {
    std::thread::spawn(move || sender.send(UiEvent::ActionFinished(copy_result(&text))));
}

fn copy_result(text: &str) -> ActionResult {
    match copy_to_tmux(text) {
        true => ActionResult::success("copied: prefix ] pastes it in tmux"),
        false => ActionResult::failure("cannot copy: tmux refused the text"),
    }
}

/// Returns the screen of a pane with its colors. `None` if the pane does not belong to the member.
/// For example, a member that another program has started may have its pane on a different tmux
/// server.
fn capture_own_pane(socket: &Path, pane: &str, name: &str) -> Option<String> {
    let server = ["-S".to_owned(), socket.display().to_string()];
    let owner = "#{==:#{@teamd_pane_pid},#{pane_pid}} #{@teamd_name}";
    let print_owner = ["display-message", "-p", "-t", pane, owner];
    let capture = ["capture-pane", "-p", "-e", "-t", pane];
    let output = tmux_output(&server, &[&print_owner[..], &[";"], &capture].concat()).ok()?;
    let (owner, screen) = output.split_once('\n')?;
    (owner == format!("1 {name}")).then(|| screen.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    #[test]
    fn error_of_a_command_that_ends_last_is_printed() {
        let args = ["--root", "/r", "--state-dir", "/s", "--socket", "/c", "--team", "survey"];
        let arguments = ScreenArgs::parse(args.map(OsString::from)).unwrap();
        for _ in 0..100 {
            let (sender, events) = channel();
            let mut threads = BackgroundThreads::new(arguments.clone(), sender);
            let thread = threads
                .worker
                .clone()
                .run(|_| UiEvent::ActionFinished(ActionResult::failure("cannot kill ann".to_owned())));
            threads.running.push(RunningCommand { args: "kill -- ann".to_owned(), thread });
            assert_eq!(threads.wait_briefly(&events), ["cannot kill ann"]);
        }
    }
}
