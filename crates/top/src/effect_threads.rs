//! Orders, carried out in threads of their own: the loop never waits. What `teamctl` can do is done by running it, so
//! that a key means what the verb means, and is refused where that is. A verb that has begun goes on without us.

use crate::args::{ScreenArgs, ScreenKind};
use crate::event::{ActionResult, ActionStatus, PaneAvailability, UiEffect, UiEvent};
use crate::snapshot_reader;
use client::suggested_commands::SuggestedCommands;
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::{Durability, Root};

/// Lines of a log that are shown of a member without a pane.
const LOG_LINES: usize = 40;
/// So long those under way have to end before us: most have by then, and what became of them is told.
const FINISH_TIMEOUT: Duration = Duration::from_millis(500);
/// How often it is seen whether they have.
const FINISH_POLL: Duration = Duration::from_millis(10);

/// The orders under way.
pub(crate) struct EffectThreads {
    hand: EffectWorker,
    /// The verbs, as they are typed.
    running: Vec<(String, JoinHandle<()>)>,
}

impl EffectThreads {
    pub(crate) fn new(arguments: ScreenArgs, sender: Sender<UiEvent>) -> EffectThreads {
        EffectThreads { hand: EffectWorker { arguments, sender }, running: Vec::new() }
    }

    /// Begins it; what becomes of it comes as an event. A verb has begun when this returns.
    pub(crate) fn start(&mut self, effect: UiEffect) {
        let hand = self.hand.clone();
        self.running.retain(|(_, order)| !order.is_finished());
        // In each: the loop has ended, and nobody wants to know.
        match effect {
            UiEffect::RunTeamctl { args: words, stdin: input } => {
                let child = hand.start_teamctl(&words, &input);
                let order = move || {
                    let output = child.and_then(Child::wait_with_output);
                    hand.sender.send(UiEvent::ActionFinished(command_result(output))).ok();
                };
                self.running.push((words.join(" "), std::thread::spawn(order)));
            }
            other => {
                std::thread::spawn(move || hand.sender.send(hand.run_effect(other)).ok());
            }
        }
    }

    /// Gives those under way a moment, unless somebody ends us; says what failed, and which go on without us.
    pub(crate) fn wait_briefly(self, events: &Receiver<UiEvent>) -> Vec<String> {
        let (until, mut said) = (Instant::now() + FINISH_TIMEOUT, Vec::new());
        let is_under_way = |(_, order): &&(String, JoinHandle<()>)| !order.is_finished();
        while self.running.iter().any(|order| is_under_way(&order)) && Instant::now() < until {
            match events.recv_timeout(FINISH_POLL) {
                Ok(UiEvent::ActionFinished(told)) if told.status == ActionStatus::Failed => {
                    said.push(told.text)
                }
                Ok(UiEvent::Terminate(_)) => break,
                _ => {}
            }
        }
        let left = self.running.iter().filter(is_under_way);
        said.extend(left.map(|(words, _)| format!("this goes on without the screen: teamctl {words}")));
        said
    }
}

/// Whoever carries one out.
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

    /// Runs the teamctl that lies beside this program.
    fn run_teamctl(&self, words: &[String]) -> std::io::Result<Output> {
        self.start_teamctl(words, "")?.wait_with_output()
    }

    /// Starts it, with that on its standard input. What ends our terminal does not end it.
    fn start_teamctl(&self, words: &[String], input: &str) -> std::io::Result<Child> {
        let mut command = Command::new(teamctl_path()?);
        command
            .args(location_args(&self.arguments))
            .args(["--team", self.arguments.team.as_str()])
            .args(words);
        command.stdin(memory_file(input)?).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).spawn()
    }

    /// Where there is no pane, or no daemon to show it, the end of what its program wrote.
    fn capture_or_log(&self, name: String, pane: PaneAvailability) -> UiEvent {
        let words = ["capture", "--", &name].map(str::to_owned);
        let captured = (pane == PaneAvailability::Exists).then(|| self.run_teamctl(&words).ok()).flatten();
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
        let told = self.run_teamctl(&["why", "--", &name].map(str::to_owned)).ok();
        let told = told.filter(|output| output.status.success());
        let text = told.map(|output| String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
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
        let client = TmuxClient::of_this_pane();
        let output = self.run_teamctl(&["attach", "--", name].map(str::to_owned));
        if !output.as_ref().is_ok_and(|output| output.status.success()) {
            return UiEvent::ActionFinished(command_result(output));
        }
        if let Some(client) = client {
            client.show_way_back();
        }
        match self.arguments.screen_kind {
            // What is below a popup is seen once that has closed.
            ScreenKind::Popup => UiEvent::Terminate(0),
            ScreenKind::Terminal => {
                UiEvent::ActionFinished(ActionResult::success(format!("you were taken to {name}")))
            }
        }
    }
}

/// The first line of what it said, with what to do next.
fn command_result(output: std::io::Result<Output>) -> ActionResult {
    let output = match output {
        Ok(output) => output,
        Err(error) => return ActionResult::failure(format!("cannot start teamctl: {error}")),
    };
    let said = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines.join(" ").trim_start_matches("teamctl: ").trim_start_matches("error: ").to_owned()
    };
    let (out, wrong) = (said(&output.stdout), said(&output.stderr));
    match output.status.success() {
        true if out.is_empty() => ActionResult::success("done"),
        true => ActionResult::success(out),
        false if wrong.is_empty() => ActionResult::failure(out),
        false => ActionResult::failure(wrong),
    }
}

/// Root and socket, where teamctl would not find them by itself: it repeats what it was given in what it says to type.
fn location_args(arguments: &ScreenArgs) -> Vec<OsString> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let root = store::resolve_root_path(variable("TEAMD_ROOT").as_deref()).ok();
    let root = root.and_then(|root| root.canonicalize().ok());
    let socket = variable("TEAMD_SOCKET")
        .unwrap_or_else(|| store::directories_for_root(&arguments.root).control_socket());
    let mut words: Vec<OsString> = Vec::new();
    if root.as_ref() != Some(&arguments.root) {
        words.extend(["--root".into(), arguments.root.clone().into()]);
    }
    if socket != arguments.socket {
        words.extend(["--socket".into(), arguments.socket.clone().into()]);
    }
    words
}

/// A file without a name that holds this, from its beginning: whoever reads it needs nobody who writes.
fn memory_file(text: &str) -> std::io::Result<File> {
    let mut file = File::from(memfd_create("text", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// How whoever sees the screen types a command about the team.
pub(crate) fn suggested_commands(arguments: &ScreenArgs) -> SuggestedCommands {
    let root = Root::open(&arguments.root, &arguments.state_dir.join("aside"), Durability::Process).ok();
    let teams = root.and_then(|root| root.teams().ok()).unwrap_or_default();
    let of_environment = std::env::var("TEAMD_TEAM").ok().filter(|team| !team.is_empty());
    commands_without_team(arguments).for_team_unless_implied(
        &arguments.team,
        &teams,
        of_environment.as_deref(),
    )
}

/// The same about no team.
fn commands_without_team(arguments: &ScreenArgs) -> SuggestedCommands {
    SuggestedCommands::with_options(
        location_args(arguments).into_iter().map(|word| word.to_string_lossy().into_owned()),
    )
}

fn attach_command(arguments: &ScreenArgs, name: &str, typed: &SuggestedCommands) -> String {
    typed.for_team(&arguments.team).command_for_name("attach", name, &[])
}

fn teamctl_path() -> std::io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("teamctl"))
}

/// A tmux client, and what it looks at.
struct TmuxClient {
    name: String,
    session: String,
    window: String,
}

impl TmuxClient {
    /// The one that looks at this pane; none where nobody does.
    fn of_this_pane() -> Option<TmuxClient> {
        let pane = std::env::var("TMUX_PANE").unwrap_or_default();
        TmuxClient::list(&["-t", &pane]).into_iter().next()
    }

    /// Those with a terminal: not the daemon's own.
    fn list(of: &[&str]) -> Vec<TmuxClient> {
        let format = "#{client_control_mode} #{session_id} #{window_id} #{client_name}";
        let listed = run_tmux(&[&["list-clients", "-F", format], of].concat()).unwrap_or_default();
        let client = |line: &str| {
            let mut words = line.strip_prefix("0 ")?.splitn(3, ' ').map(str::to_owned);
            let (session, window, name) = (words.next()?, words.next()?, words.next()?);
            Some(TmuxClient { name, session, window })
        };
        listed.lines().filter_map(client).collect()
    }

    /// Shown below the pane, for as long as tmux shows messages; what it says are our own words alone.
    fn show_way_back(&self) {
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

/// On the server that we run in; none where it failed.
fn run_tmux(words: &[&str]) -> Option<String> {
    let socket = std::env::var("TMUX").ok()?.split(',').next()?.to_owned();
    let output = Command::new("tmux").arg("-S").arg(socket).args(words).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ScreenArgs;

    #[test]
    fn attach_command_includes_options() {
        let words = ["--root", "/r", "--state", "/s", "--socket", "/c", "--team", "survey"];
        let arguments = ScreenArgs::parse(words.map(OsString::from)).unwrap();
        let place = SuggestedCommands::with_options(["--root", "/a b"].map(str::to_owned));
        let typed = |name: &str, place: &SuggestedCommands| attach_command(&arguments, name, place);
        assert_eq!(typed("ann", &SuggestedCommands::default()), "teamctl attach -t survey ann");
        assert_eq!(typed("-x", &place), "teamctl attach --root '/a b' -t survey -- -x");
    }
}
