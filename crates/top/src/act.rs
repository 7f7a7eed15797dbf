//! Orders, carried out in threads of their own: the loop never waits. What `teamctl` can do is done by running it, so
//! that a key means what the verb means, and is refused where that is.

use crate::args::{Arguments, Frame};
use crate::event::{Effect, Event, Pane, Told};
use crate::look;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

/// Lines of a log that are shown of a member without a pane.
const LINES: usize = 40;

/// The orders under way.
pub(crate) struct Orders {
    hand: Hand,
    running: Vec<JoinHandle<()>>,
}

impl Orders {
    pub(crate) fn new(arguments: Arguments, sender: Sender<Event>) -> Orders {
        Orders { hand: Hand { arguments, sender }, running: Vec::new() }
    }

    /// Begins it; what becomes of it comes as an event.
    pub(crate) fn begin(&mut self, effect: Effect) {
        let hand = self.hand.clone();
        self.running.retain(|order| !order.is_finished());
        self.running.push(std::thread::spawn(move || {
            // The loop has ended: nobody wants to know.
            hand.sender.send(hand.done(effect)).ok();
        }));
    }

    /// Waits for those under way: who sends a message and leaves has sent it. Each verb has a deadline of its own.
    pub(crate) fn finish(self) {
        for order in self.running {
            // One that panicked has said so.
            order.join().ok();
        }
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
            Effect::Verb { words, input } => Event::Told(told(self.verb(&words, &input))),
            Effect::Screen { name, pane } => self.screen(name, pane),
            Effect::Why { name } => self.why(name),
            Effect::Attach { name } => self.attach(&name),
            Effect::Leave(_) | Effect::Suspend | Effect::Renew => Event::GoOn,
        }
    }

    /// Runs the teamctl that lies beside this program.
    fn verb(&self, words: &[String], input: &str) -> std::io::Result<Output> {
        let mut command = Command::new(beside()?);
        command.args(place(&self.arguments)).args(["--team", self.arguments.team.as_str()]).args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that does not read it to its end says so by itself. A line fits into a pipe.
            stdin.write_all(input.as_bytes()).ok();
        }
        child.wait_with_output()
    }

    /// Where there is no pane, or no daemon to show it, the end of what its program wrote.
    fn screen(&self, name: String, pane: Pane) -> Event {
        let words = ["capture", "--", &name].map(str::to_owned);
        let captured = (pane == Pane::There).then(|| self.verb(&words, "").ok()).flatten();
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
        let told = self.verb(&["why", "--", &name].map(str::to_owned), "").ok();
        let told = told.filter(|output| output.status.success());
        let text = told.map(|output| String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
        Event::Why { name, text: text.unwrap_or_default() }
    }

    fn attach(&self, name: &str) -> Event {
        if std::env::var("TMUX").is_ok_and(|tmux| !tmux.is_empty()) {
            return self.switch(name);
        }
        let team = self.arguments.team.as_str();
        let text =
            format!("not inside tmux: in a terminal of its own, type: teamctl attach {name} -t {team}");
        Event::Told(Told::failed(text))
    }

    fn switch(&self, name: &str) -> Event {
        let client = Client::here();
        let output = self.verb(&["attach", "--", name].map(str::to_owned), "");
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
    let root = store::root_path(variable("TEAMD_ROOT").as_deref()).ok();
    let root = root.and_then(|root| root.canonicalize().ok());
    let socket = variable("TEAMD_SOCKET").unwrap_or_else(|| store::place_of(&arguments.root).socket());
    let mut words: Vec<OsString> = Vec::new();
    if root.as_ref() != Some(&arguments.root) {
        words.extend(["--root".into(), arguments.root.clone().into()]);
    }
    if socket != arguments.socket {
        words.extend(["--socket".into(), arguments.socket.clone().into()]);
    }
    words
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
