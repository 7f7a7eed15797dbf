//! Orders, carried out in threads of their own: the loop never waits. What `teamctl` can do is done by running it, so
//! that a key means what the verb means, and is refused where that is. A verb that has begun goes on without us.

use crate::args::{Arguments, Frame};
use crate::event::{Effect, Event, Outcome, Pane, Told};
use crate::look;
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
use view::suggested_commands::SuggestedCommands;

/// Lines of a log that are shown of a member without a pane.
const LINES: usize = 40;
/// So long those under way have to end before us: most have by then, and what became of them is told.
const MOMENT: Duration = Duration::from_millis(500);
/// How often it is seen whether they have.
const STEP: Duration = Duration::from_millis(10);

/// The orders under way.
pub(crate) struct Orders {
    hand: Hand,
    /// The verbs, as they are typed.
    running: Vec<(String, JoinHandle<()>)>,
}

impl Orders {
    pub(crate) fn new(arguments: Arguments, sender: Sender<Event>) -> Orders {
        Orders { hand: Hand { arguments, sender }, running: Vec::new() }
    }

    /// Begins it; what becomes of it comes as an event. A verb has begun when this returns.
    pub(crate) fn begin(&mut self, effect: Effect) {
        let hand = self.hand.clone();
        self.running.retain(|(_, order)| !order.is_finished());
        // In each: the loop has ended, and nobody wants to know.
        match effect {
            Effect::Verb { words, input } => {
                let child = hand.start(&words, &input);
                let order = move || {
                    let output = child.and_then(Child::wait_with_output);
                    hand.sender.send(Event::Told(told(output))).ok();
                };
                self.running.push((words.join(" "), std::thread::spawn(order)));
            }
            other => {
                std::thread::spawn(move || hand.sender.send(hand.done(other)).ok());
            }
        }
    }

    /// Gives those under way a moment, unless somebody ends us; says what failed, and which go on without us.
    pub(crate) fn finish(self, events: &Receiver<Event>) -> Vec<String> {
        let (until, mut said) = (Instant::now() + MOMENT, Vec::new());
        let is_under_way = |(_, order): &&(String, JoinHandle<()>)| !order.is_finished();
        while self.running.iter().any(|order| is_under_way(&order)) && Instant::now() < until {
            match events.recv_timeout(STEP) {
                Ok(Event::Told(told)) if told.outcome == Outcome::Failed => said.push(told.text),
                Ok(Event::End(_)) => break,
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
struct Hand {
    arguments: Arguments,
    sender: Sender<Event>,
}

impl Hand {
    fn done(&self, effect: Effect) -> Event {
        match effect {
            Effect::Screen { name, pane } => self.screen(name, pane),
            Effect::Why { name } => self.why(name),
            Effect::Attach { name } => self.attach(&name),
            Effect::Verb { .. } | Effect::Leave(_) | Effect::Suspend | Effect::Renew => Event::GoOn,
        }
    }

    /// Runs the teamctl that lies beside this program.
    fn verb(&self, words: &[String]) -> std::io::Result<Output> {
        self.start(words, "")?.wait_with_output()
    }

    /// Starts it, with that on its standard input. What ends our terminal does not end it.
    fn start(&self, words: &[String], input: &str) -> std::io::Result<Child> {
        let mut command = Command::new(beside()?);
        command.args(place(&self.arguments)).args(["--team", self.arguments.team.as_str()]).args(words);
        command.stdin(file(input)?).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).spawn()
    }

    /// Where there is no pane, or no daemon to show it, the end of what its program wrote.
    fn screen(&self, name: String, pane: Pane) -> Event {
        let words = ["capture", "--", &name].map(str::to_owned);
        let captured = (pane == Pane::There).then(|| self.verb(&words).ok()).flatten();
        let text = match captured.filter(|output| output.status.success()) {
            Some(output) => {
                format!("its pane shows:\n{}", String::from_utf8_lossy(&output.stdout).trim_end())
            }
            None => {
                let lines = look::tail(&look::log(&self.arguments, &name));
                let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
                format!("its output ends:\n{}", last.trim_end())
            }
        };
        Event::Screen { name, text }
    }

    fn why(&self, name: String) -> Event {
        let told = self.verb(&["why", "--", &name].map(str::to_owned)).ok();
        let told = told.filter(|output| output.status.success());
        let text = told.map(|output| String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
        Event::Why { name, text: text.unwrap_or_default() }
    }

    fn attach(&self, name: &str) -> Event {
        if std::env::var("TMUX").is_ok_and(|tmux| !tmux.is_empty()) {
            return self.switch(name);
        }
        Event::Told(Told::failed(format!(
            "not inside tmux: in a terminal of its own, type: {}",
            attaching(&self.arguments, name, &at(&self.arguments))
        )))
    }

    fn switch(&self, name: &str) -> Event {
        let client = Client::here();
        let output = self.verb(&["attach", "--", name].map(str::to_owned));
        if !output.as_ref().is_ok_and(|output| output.status.success()) {
            return Event::Told(told(output));
        }
        if let Some(client) = client {
            client.tell_the_way_back();
        }
        match self.arguments.frame {
            // What is below a popup is seen once that has closed.
            Frame::Popup => Event::End(0),
            Frame::Terminal => Event::Told(Told::done(format!("you were taken to {name}"))),
        }
    }
}

/// The first line of what it said, with what to do next.
fn told(output: std::io::Result<Output>) -> Told {
    let output = match output {
        Ok(output) => output,
        Err(error) => return Told::failed(format!("cannot start teamctl: {error}")),
    };
    let said = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines.join(" ").trim_start_matches("teamctl: ").trim_start_matches("error: ").to_owned()
    };
    let (out, wrong) = (said(&output.stdout), said(&output.stderr));
    match output.status.success() {
        true if out.is_empty() => Told::done("done"),
        true => Told::done(out),
        false if wrong.is_empty() => Told::failed(out),
        false => Told::failed(wrong),
    }
}

/// Root and socket, where teamctl would not find them by itself: it repeats what it was given in what it says to type.
fn place(arguments: &Arguments) -> Vec<OsString> {
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
fn file(text: &str) -> std::io::Result<File> {
    let mut file = File::from(memfd_create("text", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// How whoever sees the screen types a command about the team.
pub(crate) fn typed(arguments: &Arguments) -> SuggestedCommands {
    let root = Root::open(&arguments.root, &arguments.state.join("aside"), Durability::Process).ok();
    let teams = root.and_then(|root| root.teams().ok()).unwrap_or_default();
    let of_environment = std::env::var("TEAMD_TEAM").ok().filter(|team| !team.is_empty());
    at(arguments).for_team_unless_implied(&arguments.team, &teams, of_environment.as_deref())
}

/// The same about no team.
fn at(arguments: &Arguments) -> SuggestedCommands {
    SuggestedCommands::with_options(
        place(arguments).into_iter().map(|word| word.to_string_lossy().into_owned()),
    )
}

fn attaching(arguments: &Arguments, name: &str, typed: &SuggestedCommands) -> String {
    typed.for_team(&arguments.team).command_for_name("attach", name, &[])
}

fn beside() -> std::io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("teamctl"))
}

/// A tmux client, and what it looks at.
struct Client {
    name: String,
    session: String,
    window: String,
}

impl Client {
    /// The one that looks at this pane; none where nobody does.
    fn here() -> Option<Client> {
        let pane = std::env::var("TMUX_PANE").unwrap_or_default();
        Client::all(&["-t", &pane]).into_iter().next()
    }

    /// Those with a terminal: not the daemon's own.
    fn all(of: &[&str]) -> Vec<Client> {
        let format = "#{client_control_mode} #{session_id} #{window_id} #{client_name}";
        let listed = tmux(&[&["list-clients", "-F", format], of].concat()).unwrap_or_default();
        let client = |line: &str| {
            let mut words = line.strip_prefix("0 ")?.splitn(3, ' ').map(str::to_owned);
            let (session, window, name) = (words.next()?, words.next()?, words.next()?);
            Some(Client { name, session, window })
        };
        listed.lines().filter_map(client).collect()
    }

    /// Shown below the pane, for as long as tmux shows messages; what it says are our own words alone.
    fn tell_the_way_back(&self) {
        let Some(now) = Client::all(&[]).into_iter().find(|client| client.name == self.name) else { return };
        let back = match (now.session == self.session, now.window == self.window) {
            (false, _) => "prefix L (switch-client -l)",
            (true, false) => "prefix l (last-window)",
            (true, true) => "prefix ; (last-pane)",
        };
        let text = format!("back to the team's screen: {back}");
        tmux(&["display-message", "-d", "5000", "-c", &self.name, &text]);
    }
}

/// On the server that we run in; none where it failed.
fn tmux(words: &[&str]) -> Option<String> {
    let socket = std::env::var("TMUX").ok()?.split(',').next()?.to_owned();
    let output = Command::new("tmux").arg("-S").arg(socket).args(words).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Arguments;

    #[test]
    fn the_way_to_a_pane_is_typed_as_it_is_told() {
        let words = ["--root", "/r", "--state", "/s", "--socket", "/c", "--team", "survey"];
        let arguments = Arguments::parse(words.map(OsString::from)).unwrap();
        let place = SuggestedCommands::with_options(["--root", "/a b"].map(str::to_owned));
        let typed = |name: &str, place: &SuggestedCommands| attaching(&arguments, name, place);
        assert_eq!(typed("ann", &SuggestedCommands::default()), "teamctl attach -t survey ann");
        assert_eq!(typed("-x", &place), "teamctl attach --root '/a b' -t survey -- -x");
    }
}
