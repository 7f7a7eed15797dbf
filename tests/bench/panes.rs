//! Panes made, asked for and ended, beside the same commands of a bare tmux: by a process for each, and on one control
//! connection.

use crate::{row, team, timed};
use harness::House;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// What one way took to make so many, to ask for them, and to end them.
type Took = [Duration; 3];

pub(crate) fn beside_bare_tmux() {
    for count in [1, 10, 50, 200] {
        let rounds = if count > 50 { 3 } else { 5 };
        let mut all: [Vec<Took>; 3] = Default::default();
        for _ in 0..rounds {
            all[0].push(ours(count));
            all[1].push(by_processes(count));
            all[2].push(on_a_connection(count));
        }
        let middle = |of: &[Took], which: usize| {
            let mut times: Vec<Duration> = of.iter().map(|took| took[which]).collect();
            times.sort();
            times[times.len() / 2]
        };
        for (which, what) in ["spawn", "status", "kill"].into_iter().enumerate() {
            let [ours, processes, connection] = all.each_ref().map(|of| middle(of, which));
            let ratio = ours.as_secs_f64() / connection.as_secs_f64();
            row(
                &format!("{what} of {count}: ours; tmux, a process each; tmux on a control connection"),
                &format!("{ours:.1?}; {processes:.1?}; {connection:.1?}; {ratio:.2} × the connection"),
                "1.3 ×, and the start of join",
            );
        }
    }
}

/// All at once, as a lead does who starts a team: a process of `teamctl` each.
fn ours(count: usize) -> Took {
    let house = team();
    let spawn = timed(|| {
        let all: Vec<Child> = (0..count)
            .map(|n| house.teamctl_running(["spawn", &format!("a{n}"), "--", "sleep", "3600"]))
            .collect();
        for child in all {
            let ran = child.wait_with_output().unwrap();
            assert!(ran.status.success(), "{ran:?}");
        }
    });
    let status = timed(|| drop(house.teamctl(["status"]).ok()));
    let names: Vec<String> = (0..count).map(|n| format!("a{n}")).collect();
    let words: Vec<&str> = ["kill"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let kill = timed(|| drop(house.teamctl_with(&words, &[]).ok()));
    house.end();
    [spawn, status, kill]
}

/// A window for each, since a window has no room for that many.
const MAKE: [&str; 8] = ["new-window", "-d", "-P", "-F", "#{pane_id}", "--", "sleep", "3600"];
const ASK: [&str; 4] = ["list-panes", "-a", "-F", "#{pane_id} #{pane_pid}"];

fn by_processes(count: usize) -> Took {
    let house = House::empty();
    let mut panes = Vec::new();
    let spawn = timed(|| panes = (0..count).map(|_| house.tmux(MAKE)).collect());
    let status = timed(|| drop(house.tmux(ASK)));
    let kill = timed(|| panes.iter().for_each(|pane| drop(house.tmux(["kill-pane", "-t", pane]))));
    house.end();
    [spawn, status, kill]
}

fn on_a_connection(count: usize) -> Took {
    let house = House::empty();
    let mut connection = Connection::open(&house);
    let mut panes = Vec::new();
    let spawn =
        timed(|| panes = connection.ask(&vec![MAKE.join(" ").replace("#{pane_id}", "'#{pane_id}'"); count]));
    let status = timed(|| drop(connection.ask(&["list-panes -a -F '#{pane_id} #{pane_pid}'".to_owned()])));
    let kill = panes.iter().map(|pane| format!("kill-pane -t {pane}")).collect::<Vec<_>>();
    let kill = timed(|| drop(connection.ask(&kill)));
    connection.end();
    house.end();
    [spawn, status, kill]
}

/// One control client, to which commands are said one behind the other.
struct Connection {
    client: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Connection {
    fn open(house: &House) -> Connection {
        let mut tmux = house.command("tmux");
        tmux.arg("-S").arg(house.tmux_socket()).args(["-C", "attach-session", "-t", "=user"]);
        let mut client = tmux.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (client.stdin.take().unwrap(), client.stdout.take().unwrap());
        let mut connection = Connection { client, input, output: BufReader::new(output) };
        // The answer to the attaching itself.
        connection.answer();
        connection
    }

    /// The first line of each answer.
    fn ask(&mut self, commands: &[String]) -> Vec<String> {
        self.input
            .write_all(commands.iter().map(|command| format!("{command}\n")).collect::<String>().as_bytes())
            .unwrap();
        commands.iter().map(|_| self.answer()).collect()
    }

    fn answer(&mut self) -> String {
        let (mut first, mut inside, until) = (None, false, Instant::now() + Duration::from_secs(60));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0 && Instant::now() < until, "tmux answers");
            match line.trim_end() {
                line if line.starts_with("%begin ") => inside = true,
                line if line.starts_with("%end ") => return first.unwrap_or_default(),
                line if line.starts_with("%error ") => panic!("tmux refuses: {first:?}"),
                line if inside => drop(first.get_or_insert_with(|| line.to_owned())),
                _ => {}
            }
        }
    }

    fn end(self) {
        let Connection { mut client, input, .. } = self;
        drop(input);
        client.wait().unwrap();
    }
}
