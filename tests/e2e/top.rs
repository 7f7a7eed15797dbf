//! The screen, in a real tmux: what it shows, what its keys do, and how it leaves.

use crate::dialogs;
use crate::why::Stopped;
use harness::House;
use serde_json::{Value, json};

/// The screen in a pane of 80×24, in a shell that says how it left.
struct Top<'a> {
    house: &'a House,
    pane: String,
}

impl<'a> Top<'a> {
    fn open(house: &'a House) -> Top<'a> {
        let top = Top::begin(house);
        top.until("team-lead");
        top
    }

    fn begin(house: &'a House) -> Top<'a> {
        let teamctl = harness::programs().join("teamctl").display().to_string();
        let shell = format!("'{teamctl}' top; echo left $?; stty -a; exec sleep 3600");
        let pane = house.tmux([
            "new-session",
            "-d",
            "-s",
            "top",
            "-x",
            "80",
            "-y",
            "24",
            "-P",
            "-F",
            "#{pane_id}",
            "--",
            "sh",
            "-c",
            &shell,
        ]);
        Top { house, pane }
    }

    fn shown(&self) -> String {
        self.house.tmux(["capture-pane", "-p", "-t", &self.pane])
    }

    /// Waits until that is on the screen.
    fn until(&self, part: &str) -> String {
        let what = format!("the screen shows {part:?}");
        self.house.until(&what, || Some(self.shown()).filter(|shown| shown.contains(part)))
    }

    fn press(&self, key: &str) {
        self.house.tmux(["send-keys", "-t", &self.pane, key]);
    }

    fn type_in(&self, text: &str) {
        self.house.tmux(["send-keys", "-t", &self.pane, "-l", text]);
    }

    /// Chooses the line that begins with that.
    fn choose(&self, name: &str) {
        self.press("Home");
        self.house.until(&format!("{name} is chosen"), || {
            let chosen = self.shown().contains(&format!(">{name} "));
            if !chosen {
                self.press("Down");
            }
            chosen.then_some(())
        });
    }

    fn pid(&self) -> u32 {
        let shell = self.house.tmux(["display-message", "-p", "-t", &self.pane, "#{pane_pid}"]);
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// It has left, with that exit code, and the terminal is as it was.
    fn left(&self, code: u32) {
        let shown = self.until(" echoke");
        assert!(shown.contains(&format!("left {code}\n")), "{shown}");
        let words: Vec<&str> = shown.split([' ', ';', '\n']).collect();
        assert!(words.contains(&"icanon") && words.contains(&"echo") && words.contains(&"isig"), "{shown}");
        let format = "#{alternate_on} #{cursor_flag}";
        assert_eq!(self.house.tmux(["display-message", "-p", "-t", &self.pane, format]), "0 1");
    }
}

fn spawn(house: &House, name: &str) {
    house.teamctl(["spawn", name, "--", &house.agent(), "stay"]).ok();
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

fn request(id: &str, command: &str) -> String {
    let input = json!({"command": command});
    json!({"type": "permission_request", "request_id": id, "agent_id": "ann", "tool_name": "Bash", "tool_use_id": "t",
        "description": "run it", "input": input, "permission_suggestions": []})
    .to_string()
}

fn ask(house: &House, text: &str) {
    let ran = house.command(harness::programs().join("agent")).args(["ask", "ann", text]).status();
    assert!(ran.unwrap().success());
}

fn answers(house: &House) -> Vec<Value> {
    let inbox = house.inbox("survey", "ann");
    inbox.iter().filter_map(|message| serde_json::from_str(message["text"].as_str()?).ok()).collect()
}

#[test]
fn what_happens_is_seen_and_q_leaves() {
    let house = House::with_team();
    let top = Top::open(&house);
    spawn(&house, "ann");
    top.until("ann          active");
    house.teamctl(["send", "ann", "count\u{1b}[2J the lines"]).ok();
    let shown = top.until("team-lead -> ann: count\\u{1b}[2J the lines");
    assert!(shown.contains("1 new") && shown.is_ascii(), "{shown}");
    house.teamctl(["task", "create", "read it"]).ok();
    house.teamctl(["task", "create", "write it up", "--blocked-by", "2"]).ok();
    top.until("` #3     waits   -            write it up");
    house.teamctl(["kill", "ann"]).ok();
    top.until("ann          killed ");
    house.teamctl(["delete", "survey"]).ok();
    top.until("no such team any more");
    house.teamctl(["create", "survey"]).ok();
    top.until("[members 1]");
    top.press("q");
    top.left(0);
    house.end();
}

#[test]
fn a_line_of_the_output_is_seen_also_without_a_pane() {
    let house = House::with_team();
    let top = Top::open(&house);
    for (name, backend) in [("ann", "tmux"), ("bob", "in-process")] {
        let program = "printf 'begin\\n\\033[31mred end\\033[0m\\n\\n'; exec sleep 3600";
        house.teamctl(["spawn", name, "--backend", backend, "--", "sh", "-c", program]).ok();
    }
    house.until("both lines", || (top.shown().matches("red end").count() == 2).then_some(()));
    top.choose("bob");
    top.press("Enter");
    top.until("its output ends:\nbegin\nred end");
    let why = house.teamctl(["why", "bob"]).ok();
    top.until(&why.lines().next().unwrap().chars().take(30).collect::<String>());
    house.end();
}

#[test]
fn a_message_is_typed_and_sent_a_shutdown_asked_for_and_k_twice_kills() {
    let house = House::with_team();
    spawn(&house, "ann");
    let top = Top::open(&house);
    top.until("ann          active");
    top.choose("ann");
    top.press("s");
    top.until("message to ann:");
    top.type_in("hello; $(touch evil)");
    top.press("Enter");
    let sent = house.until("it is stored", || house.inbox("survey", "ann").pop());
    assert_eq!((&sent["text"], &sent["from"]), (&json!("hello; $(touch evil)"), &json!("team-lead")));
    top.until("Message sent to ann");
    top.press("x");
    top.until("ask ann to shut down");
    top.type_in("enough");
    top.press("Enter");
    top.until("Shutdown request sent to ann");
    let asked =
        house.until("it is asked", || house.inbox("survey", "ann").pop().filter(|last| *last != sent));
    let asked: Value = serde_json::from_str(asked["text"].as_str().unwrap()).unwrap();
    assert_eq!((&asked["type"], &asked["reason"]), (&json!("shutdown_request"), &json!("enough")));
    top.until("ann          stopping ");
    top.press("K");
    top.until("kill ann: K once more");
    top.press("Escape");
    top.until("q:quit");
    assert!(house.member("ann").is_some());
    top.press("K");
    top.until("kill ann: K once more");
    top.press("K");
    top.until(" killed ");
    house.end();
}

#[test]
fn a_request_is_answered_only_after_all_of_it_was_shown() {
    let house = House::with_team();
    spawn(&house, "ann");
    let top = Top::open(&house);
    let long = format!("{}; rm -r /", "echo a very long line of a command".repeat(80));
    ask(&house, &request("perm-1-abcdefg", &long));
    top.until("1 request waits");
    top.press("Tab");
    top.until("[requests 1]");
    top.press("Enter");
    let shown = top.until("then it can be answered");
    assert!(shown.contains("asks to use Bash: run it") && !shown.contains("rm -r /"), "{shown}");
    top.press("y");
    top.until("read it to its end first");
    assert!(answers(&house).is_empty());
    top.press("End");
    assert!(top.until("y:approve").contains("; rm -r /"));
    top.press("n");
    top.until("no, since:");
    top.type_in("not that");
    top.press("Enter");
    let no = house.until("it is refused", || answers(&house).pop());
    assert_eq!((&no["subtype"], &no["error"]), (&json!("error"), &json!("not that")));
    top.until("[requests 0]");
    ask(&house, &request("perm-2-abcdefg", "ls"));
    top.until("[requests 1]");
    top.press("Enter");
    top.until("y:approve");
    top.press("y");
    house
        .until("it is allowed", || answers(&house).into_iter().find(|answer| answer["subtype"] == "success"));
    top.until("[requests 0]");
    house.end();
}

#[test]
fn requests_that_can_not_be_read_are_told_as_not_known() {
    let house = House::with_team();
    spawn(&house, "ann");
    let top = Top::open(&house);
    top.until(" requests 0 ");
    ask(&house, &request("perm-1-abcdefg", "ls"));
    top.until(" requests 1 ");
    let whole = house.read("root/teams/survey/inboxes/team-lead.json");
    house.put("root/teams/survey/inboxes/team-lead.json", "{");
    top.until(" requests ? ");
    top.until("requests can't be read: teamctl requests says why");
    house.put("root/teams/survey/inboxes/team-lead.json", whole);
    top.until(" requests 1 ");
    house.end();
}

#[test]
fn it_goes_on_without_the_daemon_and_with_the_next() {
    let house = House::with_team();
    spawn(&house, "ann");
    let top = Top::open(&house);
    top.until("1 member active");
    house.kill_9(house.daemon());
    top.until("teamd is down (teamctl up): this is what the files say");
    house.teamctl(["send", "ann", "still here?"]).ok();
    top.until("team-lead -> ann: still here?");
    house.start_daemon();
    top.until("1 member active");
    house.end();
}

#[test]
fn a_dialog_that_only_the_screen_tells_of_is_shown() {
    let house = House::with_team();
    dialogs::profile(&house, "asker", "pull", dialogs::ASKER);
    house.teamctl(["spawn", "ann", "--agent", "asker"]).ok();
    dialogs::until_shown(&house, "ann", "It asks");
    let top = Top::open(&house);
    top.until("ann          ");
    dialogs::says(&house, "ann", "ask");
    top.until("!dialog");
    dialogs::says(&house, "ann", "go");
    house.until("it is gone", || (!top.shown().contains("!dialog")).then_some(()));
    house.end();
}

#[test]
fn nothing_is_drawn_while_nothing_changes() {
    let house = House::with_team();
    spawn(&house, "ann");
    let top = Top::open(&house);
    top.until("ann          active");
    let record = house.path("out/drawn").display().to_string();
    // Each drawing hides the cursor once.
    let drawings = || house.read("out/drawn").matches("\u{1b}[?25l").count();
    house.tmux(["pipe-pane", "-t", &top.pane, &format!("cat >> '{record}'")]);
    house.quiet(std::time::Duration::from_millis(500));
    let before = drawings();
    // Looks that find nothing new, and then a key, which is drawn once.
    for n in 0..20 {
        house.put(&format!("root/teams/survey/{n}.tmp"), "x");
    }
    house.put("root/teams/survey/inboxes/odd.tmp", "x");
    house.quiet(std::time::Duration::from_millis(500));
    top.press("?");
    top.until("[help]");
    house.until("it is drawn", || (drawings() > before).then_some(()));
    assert_eq!(drawings() - before, 1, "{:?}", house.read("out/drawn"));
    for n in 0..20 {
        std::fs::remove_file(house.root().join(format!("teams/survey/{n}.tmp"))).unwrap();
    }
    std::fs::remove_file(house.root().join("teams/survey/inboxes/odd.tmp")).unwrap();
    house.end();
}

#[test]
fn q_leaves_at_once_and_what_is_under_way_goes_on() {
    let house = House::empty();
    let mut teamd = house.start_teamd();
    house.teamctl(["create", "survey"]).ok();
    spawn(&house, "ann");
    let top = Top::open(&house);
    top.until("ann          active");
    top.choose("ann");
    let stopped = Stopped::new(teamd.id());
    top.press("K");
    top.until("kill ann: K once more");
    top.press("K");
    top.until("q:quit");
    top.press("q");
    top.until("this goes on without the screen: teamctl kill -- ann");
    top.left(0);
    drop(stopped);
    house.until("ann is killed", || house.member("ann").is_none().then_some(()));
    house.teamctl(["down"]).ok();
    assert!(teamd.wait().unwrap().success());
    house.end();
}

#[test]
fn whatever_ends_or_stops_it_the_terminal_is_as_it_was() {
    use rustix::process::Signal;
    for (by, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let house = House::with_team();
        let top = Top::open(&house);
        signal(top.pid(), by);
        top.left(code);
        house.end();
    }
    let house = House::with_team();
    let top = Top::open(&house);
    let pid = top.pid();
    let stops: [&dyn Fn(); 2] = [&|| signal(pid, Signal::TSTP), &|| top.press("C-z")];
    for stop in stops {
        stop();
        house.until("the terminal is given back", || {
            (house.tmux(["display-message", "-p", "-t", &top.pane, "#{alternate_on}"]) == "0").then_some(())
        });
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        house.until("it has stopped", || state().contains(") T ").then_some(()));
        signal(pid, Signal::CONT);
        top.until("[members 1]");
    }
    top.press("C-c");
    top.left(0);
    house.end();
}

/// Another tmux server, whose pane is a terminal that looks at a session of the house's.
pub(crate) struct Terminal<'a> {
    house: &'a House,
    socket: String,
}

impl<'a> Terminal<'a> {
    pub(crate) fn at(house: &'a House, session: &str) -> Terminal<'a> {
        let inner = house.tmux_socket().display().to_string();
        let words = format!("unset TMUX TMUX_PANE; exec tmux -S '{inner}' attach -t {session}");
        let terminal = Terminal { house, socket: house.path("outer").display().to_string() };
        terminal.tmux(&["new-session", "-d", "-x", "100", "-y", "30", "--", "/bin/sh", "-c", &words]);
        house.until("somebody sits there", || {
            (house.tmux(["list-clients", "-t", session, "-F", "x"]) == "x").then_some(())
        });
        terminal
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut command = self.house.command("tmux");
        let output = command.args(["-S", &self.socket, "-f", "/dev/null"]).args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn until(&self, part: &str) {
        let what = format!("the terminal shows {part:?}");
        self.house.until(&what, || self.tmux(&["capture-pane", "-p"]).contains(part).then_some(()));
    }

    pub(crate) fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    fn looks_at(&self, pane: &str) {
        self.house.until(&format!("it looks at {pane}"), || {
            let clients = self.house.tmux(["list-clients", "-F", "#{client_control_mode} #{pane_id}"]);
            clients.lines().any(|line| line == format!("0 {pane}")).then_some(())
        });
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn pane(house: &House, name: &str) -> String {
    house.member(name).unwrap()["pane"].as_str().unwrap().to_owned()
}

#[test]
fn a_goes_to_the_pane_and_tmux_says_how_to_come_back() {
    let house = House::with_team();
    spawn(&house, "ann");
    let top = Top::open(&house);
    top.choose("ann");
    top.press("a");
    top.until("cannot switch to the pane");
    let terminal = Terminal::at(&house, "top");
    top.press("a");
    terminal.looks_at(&pane(&house, "ann"));
    terminal.until("back to the team's screen: prefix L");
    terminal.press("C-b");
    terminal.press("L");
    terminal.looks_at(&top.pane);
    top.until("you were taken to ann");
    drop(terminal);
    house.end();
}

#[test]
fn a_popup_shows_the_same_and_closes_to_show_a_pane() {
    let house = House::with_team();
    spawn(&house, "ann");
    let terminal = Terminal::at(&house, "user");
    let teamctl = harness::programs().join("teamctl").display().to_string();
    let popup = |said: &str| {
        let shell = format!("'{teamctl}' top --popup; echo {said} $?; exec sleep 3600");
        house.tmux(["new-window", "-t", "user:", "--", "sh", "-c", &shell]);
        terminal.until("[members 2]");
    };
    popup("closed");
    terminal.press("q");
    terminal.until("closed 0");
    popup("gone");
    terminal.until(">ann");
    terminal.press("a");
    terminal.looks_at(&pane(&house, "ann"));
    house.until("the popup has closed", || {
        (!terminal.tmux(&["capture-pane", "-p"]).contains("[members 2]")).then_some(())
    });
    drop(terminal);
    house.end();
}

#[test]
fn of_several_teams_one_key_chooses() {
    let house = House::with_team();
    house.teamctl(["create", "other"]).ok();
    let top = Top::begin(&house);
    let shown = top.until("Which team?");
    assert!(shown.contains("\n 1  other\n 2  survey"), "{shown}");
    top.press("3");
    top.press("2");
    top.until("survey  0 members active");
    top.press("q");
    top.left(0);
    let terminal = Terminal::at(&house, "top");
    let teamctl = harness::programs().join("teamctl").display().to_string();
    for (key, shows) in [("1", "other  0 members active"), ("q", "closed 0")] {
        let shell = format!("'{teamctl}' top --popup; echo closed $?; exec sleep 3600");
        house.tmux(["new-window", "-t", "top:", "--", "sh", "-c", &shell]);
        terminal.until("Which team?");
        terminal.press(key);
        terminal.until(shows);
        terminal.press("q");
        terminal.until("closed 0");
    }
    let said = house.teamctl(["top"]).fails(64);
    assert!(said.contains("this is no terminal") && !said.contains("-t other"), "{said}");
    drop(terminal);
    house.end();
}

#[test]
fn it_is_for_whoever_leads_at_a_terminal() {
    let house = House::with_team();
    let said = house.teamctl(["top"]).fails(64);
    assert!(said.contains("this is no terminal") && said.contains("teamctl status"), "{said}");
    let said = house.teamctl(["top", "--popup"]).fails(76);
    assert!(said.contains("not inside tmux"), "{said}");
    house.teamctl_with(&["top"], &[("TEAMD_AGENT", "ann"), ("TEAMD_TEAM", "survey")]).fails(77);
    house.teamctl(["top", "-t", "none"]).fails(67);
    house.end();
}
