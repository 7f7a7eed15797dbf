//! Agents that join runs a turn at a time, with a daemon of the test's own: it says what the real one says, and writes
//! down what it hears.

use harness::{House, Processes};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A house whose daemon is the test, with a team of the lead, ann and bob on disk.
struct Play {
    house: House,
    listener: UnixListener,
    pid: u32,
    join: Option<Join>,
    heard: BufReader<UnixStream>,
    stream: UnixStream,
    wake: OwnedFd,
}

impl Play {
    /// Starts join for ann, and gives it the green light for these turns.
    fn start(house: House, turns: &Value, log: Option<&str>) -> Play {
        let (listener, socket) = listen(&house);
        let mut command = house.command(harness::programs().join("teamctl"));
        command.arg("join").arg("x-1").arg("--socket").arg(&socket);
        if let Some(log) = log {
            command.arg("--headless").arg(house.path(log));
        }
        let out = std::fs::File::create(house.path("out/pane")).unwrap();
        let join = Join(command.stdout(out).stderr(Stdio::null()).spawn().unwrap());
        let pid = join.0.id();
        Play::with(house, listener, turns, (pid, Some(join)))
    }

    /// The same in a pane of a window of its own, which is called `ann`; what it shows is kept as above.
    fn in_a_pane(house: House, turns: &Value) -> Play {
        let (listener, socket) = listen(&house);
        let socket = socket.display().to_string();
        let teamctl = harness::programs().join("teamctl").display().to_string();
        let words = ["new-window", "-d", "-n", "ann", "-P", "-F", "#{pane_pid}", "--"];
        let pid =
            house.tmux_ran(&[&words[..], &[&teamctl, "join", "x-1", "--socket", &socket]].concat()).ok();
        let copy = format!("cat >{}", house.path("out/pane").display());
        house.tmux(["pipe-pane", "-t", "ann", &copy]);
        Play::with(house, listener, turns, (pid.trim().parse().unwrap(), None))
    }

    fn with(house: House, listener: UnixListener, turns: &Value, (pid, join): (u32, Option<Join>)) -> Play {
        let (heard, stream, wake, hello) = accept(&listener);
        assert_eq!(hello["request"]["join"]["spawn"], "x-1");
        let mut play = Play { house, listener, pid, join, heard, stream, wake };
        play.tell(&json!({"go": play.go(turns)}));
        play
    }

    fn go(&self, turns: &Value) -> Value {
        let env = |name: &str| std::env::var(name).unwrap_or_default();
        let path = format!("{}:{}", harness::programs().display(), env("PATH"));
        let root = self.house.root();
        let environment = json!({
            "PATH": path, "HOME": self.house.path("home"), "XDG_STATE_HOME": self.house.path("state"),
            "HOUSE": self.house.mark().trim_start_matches("HOUSE="), "TEAMD_ROOT": root, "TEAMD_TEAM": "survey", "TEAMD_AGENT": "ann",
        });
        let (cwd, state) = (self.house.root().parent().unwrap().to_owned(), self.house.path("state/own"));
        if turns["argv"].is_array() {
            return json!({"argv": turns["argv"], "cwd": cwd, "env": environment, "state": state});
        }
        let mut all = json!({
            "root": root, "team": "survey", "name": "ann", "color": "blue", "prompt": "", "again": false,
            "session": null,
        });
        all.as_object_mut().unwrap().extend(turns.as_object().unwrap().clone());
        json!({"argv": [], "cwd": cwd, "env": environment, "state": state, "turns": all})
    }

    fn tell(&mut self, word: &Value) {
        let text: Vec<char> = word.to_string().chars().collect();
        let parts: Vec<String> = text.chunks(10_000).map(|part| part.iter().collect()).collect();
        let (last, parts) = parts.split_last().unwrap();
        parts.iter().for_each(|part| writeln!(self.stream, "{}", json!({"part": part})).unwrap());
        writeln!(self.stream, "{}", json!({"last": last})).unwrap();
    }

    fn wake(&self) {
        rustix::io::write(&self.wake, b"\n").unwrap();
    }

    /// The next word that `wanted` takes; others are passed over.
    fn until<T>(&mut self, what: &str, mut wanted: impl FnMut(&Value) -> Option<T>) -> T {
        loop {
            let mut line = String::new();
            let read = self.heard.read_line(&mut line);
            assert!(read.is_ok_and(|read| read > 0), "{what}: join said no more\n{}", self.house.portrait());
            if let Some(found) = wanted(&serde_json::from_str(&line).unwrap()) {
                return found;
            }
        }
    }

    fn turn(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.until(what, |word| word.get("turn").filter(|now| wanted(now)).cloned())
    }

    fn idle(&mut self, turns: u64) -> Value {
        self.turn("it idles", |now| now["activity"] == "idle" && now["number"] == turns)
    }

    /// What the agent showed in its pane, so far.
    fn pane(&self) -> String {
        self.house.read("out/pane")
    }

    fn idle_notifications(&self) -> Vec<Value> {
        let lead = self.house.inbox("survey", "team-lead");
        let texts = lead.iter().map(|m| serde_json::from_str(m["text"].as_str().unwrap()).unwrap());
        texts.filter(|text: &Value| text["type"] == "idle_notification").collect()
    }

    /// Waits for the word of the end, notes it, and sees join go with everything that was its own.
    fn ends(mut self) -> (House, Value) {
        let ended = self.until("it ends", |word| word.get("ended").cloned());
        self.tell(&json!("noted"));
        self.exit_code();
        std::fs::remove_file(self.house.path("run/play.sock")).unwrap();
        let left = Processes::marked(&self.house.mark()).list();
        let left: Vec<&String> = left.iter().filter(|line| line.contains("sleep")).collect();
        assert!(left.is_empty(), "{left:#?}");
        (self.house, ended)
    }

    /// Once it has gone. A pane's own process is none of ours to wait for: its window goes with it.
    fn exit_code(&mut self) -> Option<i32> {
        if let Some(join) = &mut self.join {
            return join.0.wait().unwrap().code();
        }
        let windows = || self.house.tmux(["list-windows", "-a", "-F", "#{window_name}"]);
        self.house.until("its window closes", || (!windows().contains("ann")).then_some(()));
        None
    }

    /// Tells it to end.
    fn end(mut self) -> House {
        self.tell(&json!({"end": {"grace_ms": 2000}}));
        self.ends().0
    }
}

/// Ended with the test, however that ends.
struct Join(Child);

impl Drop for Join {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn listen(house: &House) -> (UnixListener, PathBuf) {
    let socket = house.path("run/play.sock");
    (UnixListener::bind(&socket).unwrap(), socket)
}

/// The hello, with the far end of the wake line beside it.
fn accept(listener: &UnixListener) -> (BufReader<UnixStream>, UnixStream, OwnedFd, Value) {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    let mut bytes = [0; 16 * 1024];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(&stream, &mut [IoSliceMut::new(&mut bytes)], &mut beside, RecvFlags::empty()).unwrap();
    let line = beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
        _ => None,
    });
    let hello = serde_json::from_slice(&bytes[..got.bytes]).unwrap();
    (BufReader::new(stream.try_clone().unwrap()), stream, line.unwrap(), hello)
}

/// The files of a team that no daemon has made.
fn house() -> House {
    let house = House::empty();
    let member = |name: &str| {
        json!({"agentId": format!("{name}@survey"), "name": name, "agentType": "x", "model": "", "joinedAt": 1,
            "tmuxPaneId": "", "cwd": "/", "subscriptions": []})
    };
    let members: Vec<Value> = ["team-lead", "ann", "bob"].map(member).to_vec();
    let config = json!({"name": "survey", "createdAt": 1, "leadAgentId": "team-lead@survey",
        "leadSessionId": "x", "members": members});
    std::fs::create_dir_all(house.path("root/teams/survey/inboxes")).unwrap();
    put(&house.path("root/teams/survey/config.json"), &config.to_string());
    house
}

fn put(path: &PathBuf, text: &str) {
    std::fs::File::create(path).and_then(|mut file| file.write_all(text.as_bytes())).unwrap();
}

fn worker() -> Value {
    json!({"program": {"worker": {}}})
}

fn agent(first: &[&str], next: &[&str], session: &Value) -> Value {
    json!({"program": {"agent": {"first": first, "next": next, "session": session}}})
}

fn shell(script: &str) -> Value {
    agent(&["sh", "-c", script], &[], &json!("none"))
}

fn task(house: &House, subject: &str, command: &str) {
    let metadata = json!({"command": command}).to_string();
    house.teamctl(["-t", "survey", "task", "create", subject, "--metadata", &metadata]).ok();
}

fn send(house: &House, text: &str) {
    house.teamctl(["-t", "survey", "send", "ann", text]).ok();
}

#[test]
fn a_worker_does_its_tasks_in_its_pane_and_tells_each_once() {
    let house = house();
    task(&house, "one", "echo out; echo err >&2; test -t 1 && echo on a terminal");
    task(&house, "two", "echo the reason >&2; exit 7");
    let mut play = Play::start(house, &worker(), None);
    let pid = play.until("it starts", |word| word["started"]["pid"].as_u64());
    assert_eq!(pid, u64::from(play.pid), "join itself");
    let now = play.turn("the first turn runs", |now| now["activity"] == "active");
    assert_eq!((&now["number"], &now["about"]), (&json!(1), &json!("task 1: one")));
    assert!(now["pid"].is_u64());
    assert_eq!(play.idle(2)["reason"], "failed");
    let shown = play.pane().replace("\u{1b}[0m", "");
    let expected = "── task 1: one\nout\nerr\non a terminal\nTask 1 is done: one\n── task 2: two\nthe reason\nTask 2 failed (exit 7: the reason): two\nidle\n";
    assert_eq!(shown, expected);
    let told = play.idle_notifications();
    assert_eq!(told.len(), 2, "{told:#?}");
    assert_eq!(
        (&told[0]["completedTaskId"], &told[0]["completedStatus"]),
        (&json!("1"), &json!("completed"))
    );
    assert_eq!(
        (&told[1]["idleReason"], &told[1]["failureReason"]),
        (&json!("failed"), &json!("exit 7: the reason"))
    );
    task(&play.house, "three", "touch out/three");
    play.wake();
    play.idle(3);
    assert!(play.house.path("out/three").exists());
    play.end().end();
}

#[test]
fn an_agent_gets_prompt_messages_and_words_each_in_a_turn_of_its_own() {
    let house = house();
    send(&house, "begin");
    let mut turns = shell("cat >>out/seen; echo ' |' >>out/seen");
    turns["prompt"] = json!("begin");
    // All before it starts: whoever sends to one that has just gone idle races with its last look.
    send(&house, "a < b");
    house.teamctl(["-t", "survey", "send", "ann", "a person & words", "--as-user"]).ok();
    let mut play = Play::start(house, &turns, None);
    play.idle(3);
    let inbox = play.house.inbox("survey", "ann");
    assert!(inbox.iter().all(|message| message["read"] == true), "{inbox:#?}");
    let seen = "begin |\na person & words |\n<teammate-message teammate_id=\"team-lead\">\na &lt; b\n</teammate-message> |\n";
    assert_eq!(play.house.read("out/seen"), seen);
    play.end().end();
}

#[test]
fn a_turns_process_finds_a_clean_world() {
    let house = house();
    let dump = format!("{} dump out/dump; cp /proc/self/status out/signals", house.agent());
    task(&house, "look", &dump);
    let mut play = Play::in_a_pane(house, &worker());
    play.idle(1);
    let dump = play.house.read("out/dump");
    let descriptors: Vec<&str> = dump.lines().filter(|line| line.starts_with("fd ")).collect();
    let others = descriptors.iter().filter(|line| {
        !line.contains("/dev/pts/") && !line.contains("/dev/null") && !line.contains("/proc/")
    });
    assert_eq!((others.count(), descriptors.len()), (0, 4), "{descriptors:#?}");
    assert!(!dump.contains("TEAMD_WAKE_FD"), "the line is not for it: {dump}");
    assert!(dump.contains("env TMUX_PANE=%") && dump.contains("env TASK_ID=1\n"), "{dump}");
    let status = play.house.read("out/signals");
    for set in ["SigBlk:", "SigIgn:"] {
        let line = status.lines().find_map(|line| line.strip_prefix(set)).unwrap();
        assert_eq!(u64::from_str_radix(line.trim(), 16).unwrap() & 0x7fff_ffff, 0, "{set} {line}");
    }
    play.end().end();
}

#[test]
fn a_session_is_told_by_the_first_turn_and_resumed_by_the_next() {
    let house = house();
    let first =
        ["sh", "-c", r#"echo "$0" >>out/seen; echo '{"type":"thread","thread_id":"t-9"}'"#, "{prompt}"];
    let next = ["sh", "-c", r#"echo "$1: $0" >>out/seen"#, "{prompt}", "{session}"];
    let mut turns = agent(&first, &next, &json!({"told": {"key": "thread_id"}}));
    turns["prompt"] = json!("$(touch evil) `x`");
    let mut play = Play::start(house, &turns, None);
    assert_eq!(play.idle(1)["session"], "t-9");
    play.house.teamctl(["-t", "survey", "send", "ann", "go on", "--as-user"]).ok();
    play.wake();
    play.idle(2);
    assert_eq!(play.house.read("out/seen"), "$(touch evil) `x`\nt-9: go on\n");
    play.end().end();
}

#[test]
fn a_turn_is_interrupted_and_the_agent_lives_on() {
    let house = house();
    task(&house, "stubborn", "trap '' INT TERM; touch out/up; while :; do sleep 1; done");
    let mut play = Play::start(house, &worker(), None);
    play.house.until("it is up", || play.house.path("out/up").exists().then_some(()));
    play.tell(&json!("interrupt"));
    assert_eq!(play.idle(1)["reason"], "interrupted");
    assert!(play.until("it answers", |word| word["interrupted"]["turn"].as_bool()));
    let told = play.idle_notifications();
    assert_eq!(
        (&told[0]["idleReason"], &told[0]["completedStatus"]),
        (&json!("interrupted"), &json!("failed"))
    );
    play.tell(&json!("interrupt"));
    assert!(!play.until("it answers", |word| word["interrupted"]["turn"].as_bool()));
    task(&play.house, "next", "touch out/next");
    play.wake();
    play.idle(2);
    assert!(play.house.path("out/next").exists());
    play.end().end();
}

#[test]
fn an_interrupted_turn_leaves_nothing_in_its_session() {
    let house = house();
    let stubborn = "(trap '' INT TERM; touch out/deaf; while :; do sleep 1; done) &";
    task(&house, "serve", &format!("sleep 777 & {stubborn} touch out/up; exec sleep 3600"));
    let mut play = Play::start(house, &worker(), None);
    let up = |name: &str| play.house.path(name).exists();
    play.house.until("it is up", || (up("out/up") && up("out/deaf")).then_some(()));
    play.tell(&json!("interrupt"));
    assert_eq!(play.idle(1)["reason"], "interrupted");
    let left = Processes::marked(&play.house.mark()).list();
    let left: Vec<&String> = left.iter().filter(|line| line.contains("sleep")).collect();
    assert!(left.is_empty(), "{left:#?}");
    play.end().end();
}

#[test]
fn an_interrupt_while_a_turn_is_written_down_is_not_for_the_next_one() {
    let house = house();
    let file = house.root().join("tasks/survey/1.json");
    task(&house, "one", &format!("cp {0} out/whole; echo '{{' >{0}", file.display()));
    task(&house, "two", "sleep 0.3; touch out/next");
    let mut play = Play::start(house, &worker(), None);
    let first = play.turn("it works", |now| now["pid"].is_u64())["pid"].clone();
    // Reaped: now it reads the damaged file, and is patient with it.
    play.house.until("it ended", || (!PathBuf::from(format!("/proc/{first}")).exists()).then_some(()));
    Command::new("kill").args(["-INT", &play.pid.to_string()]).status().unwrap();
    put(&file, &play.house.read("out/whole"));
    assert_eq!(play.idle(2)["reason"], "available");
    assert!(play.house.path("out/next").exists());
    play.end().end();
}

#[test]
fn ctrl_c_in_the_pane_is_an_interrupt() {
    let house = house();
    task(&house, "long", "touch out/up; exec sleep 3600");
    let mut play = Play::in_a_pane(house, &worker());
    play.house.until("it is up", || play.house.path("out/up").exists().then_some(()));
    play.house.tmux(["send-keys", "-t", "ann", "C-c"]);
    assert_eq!(play.idle(1)["reason"], "interrupted");
    play.end().end();
}

#[test]
fn a_turn_has_the_size_of_its_pane_and_what_it_prints_is_shown_there() {
    let house = house();
    task(&house, "size", "stty size <&2; printf '\\033[31mred'");
    let mut play = Play::in_a_pane(house, &worker());
    play.idle(1);
    let size = |play: &Play| play.house.tmux(["display", "-p", "-t", "ann", "#{pane_height} #{pane_width}"]);
    let expected = format!("{}\r\n\u{1b}[31mred\u{1b}[0m\r\nTask 1 is done: size\r\nidle\r\n", size(&play));
    play.house.until("it is shown", || play.pane().contains(&expected).then_some(()));
    play.house.tmux(["resize-window", "-t", "ann", "-x", "90", "-y", "20"]);
    task(&play.house, "size", "until [ \"$(stty size <&2)\" = '20 90' ]; do sleep 0.05; done");
    play.wake();
    play.idle(2);
    assert_eq!(size(&play), "20 90");
    play.end().end();
}

#[test]
fn a_shutdown_waits_for_the_turn_and_takes_the_background_with_it() {
    let house = house();
    Command::new("mkfifo").arg(house.path("out/go")).status().unwrap();
    task(&house, "long", "setsid sleep 3600 & touch out/up; read line <out/go");
    let mut play = Play::start(house, &worker(), None);
    play.house.until("it is up", || play.house.path("out/up").exists().then_some(()));
    let text = json!({"type": "shutdown_request", "requestId": "shutdown-1@ann", "from": "team-lead",
        "timestamp": "2026-01-01T00:00:00.000Z"});
    send(&play.house, &text.to_string());
    play.wake();
    play.turn("it knows", |now| now["shutdown_requested"] == true && now["pid"].is_u64());
    std::fs::File::options().write(true).open(play.house.path("out/go")).unwrap().write_all(b"go\n").unwrap();
    let (house, ended) = play.ends();
    assert_eq!(ended, json!({"exit": 0}));
    let lead = house.inbox("survey", "team-lead");
    let last = lead.last().unwrap()["text"].as_str().unwrap();
    assert!(last.contains("shutdown_approved") && last.contains("shutdown-1@ann"), "{last}");
    assert_eq!(house.json(["-t", "survey", "task", "get", "1"])["task"]["status"], "completed");
    house.end();
}

#[test]
fn what_a_turn_leaves_in_the_background_goes_on_writing_between_the_turns() {
    let house = house();
    Command::new("mkfifo").arg(house.path("out/go")).status().unwrap();
    task(&house, "serve", "(read line <out/go; echo the server says $line; touch out/said) &");
    let mut play = Play::start(house, &worker(), None);
    play.idle(1);
    std::fs::File::options().write(true).open(play.house.path("out/go")).unwrap().write_all(b"hi\n").unwrap();
    play.house.until("it is shown", || play.pane().contains("the server says hi\n").then_some(()));
    play.end().end();
}

#[test]
fn without_a_daemon_it_works_on_and_says_what_it_does_to_the_next_one() {
    let house = house();
    Command::new("mkfifo").arg(house.path("out/go")).status().unwrap();
    task(&house, "long", "touch out/up; read line <out/go");
    task(&house, "next", "touch out/next; exec sleep 3600");
    let mut play = Play::start(house, &worker(), None);
    play.house.until("it is up", || play.house.path("out/up").exists().then_some(()));
    play.stream.shutdown(std::net::Shutdown::Both).unwrap();
    std::fs::File::options().write(true).open(play.house.path("out/go")).unwrap().write_all(b"go\n").unwrap();
    play.house.until("it works on", || play.house.path("out/next").exists().then_some(()));
    let turn = loop {
        let (heard, stream, wake, hello) = accept(&play.listener);
        (play.heard, play.stream, play.wake) = (heard, stream, wake);
        let turn = hello["request"]["join"]["turn"].clone();
        assert_eq!(hello["request"]["join"]["agent"], play.pid);
        if turn["number"] == 2 {
            break turn;
        }
        // It came back while the first one still ran.
        play.stream.shutdown(std::net::Shutdown::Both).unwrap();
    };
    assert_eq!((&turn["activity"], &turn["about"]), (&json!("active"), &json!("task 2: next")));
    play.tell(&json!("adopted"));
    play.end().end();
}

#[test]
fn a_program_that_is_missing_ends_the_agent_before_or_after_it_started() {
    let mut play = Play::start(house(), &agent(&["no-such-program"], &[], &json!("none")), None);
    let message = play.until("it fails", |word| word["failed"]["message"].as_str().map(str::to_owned));
    assert!(message.contains("cannot start no-such-program"), "{message}");
    play.tell(&json!("noted"));
    assert_eq!(play.exit_code(), Some(72));

    let house = house();
    let program = house.script("prog", "#!/bin/sh\nrm -- \"$0\"\n").display().to_string();
    let mut play = Play::start(house, &agent(&[&program], &[], &json!("none")), None);
    for (turns, text) in [(1, "one"), (2, "two")] {
        send(&play.house, text);
        play.wake();
        if turns == 1 {
            play.idle(turns);
        }
    }
    let (house, ended) = play.ends();
    let why = ended["not_started"].as_str().unwrap();
    assert!(why.contains("cannot start") && why.contains("prog"), "{why}");
    let inbox = house.inbox("survey", "ann");
    assert_eq!((&inbox[0]["read"], &inbox[1]["read"]), (&json!(true), &json!(false)));
    house.end();
}

#[test]
fn a_text_too_long_for_an_argument_is_read_from_a_file() {
    let house = house();
    let script = "for word in $0; do case $word in /*) wc -c <$word >out/size;; esac; done";
    let mut turns = agent(&["sh", "-c", script, "{prompt}"], &[], &json!("none"));
    turns["prompt"] = json!("x".repeat(200_000));
    let mut play = Play::start(house, &turns, None);
    play.idle(1);
    assert_eq!(play.house.read("out/size").trim(), "200000");
    let left = std::fs::read_dir(play.house.path("state/own")).unwrap().flatten();
    assert_eq!(left.filter(|file| file.file_name().to_string_lossy().starts_with("prompt")).count(), 0);
    play.end().end();
}

#[test]
fn a_long_text_on_standard_input_stops_nobody() {
    let house = house();
    let mut turns = shell("touch out/up; read line <out/go; wc -c >out/size");
    Command::new("mkfifo").arg(house.path("out/go")).status().unwrap();
    turns["prompt"] = json!("y".repeat(1_000_000));
    let mut play = Play::start(house, &turns, None);
    play.house.until("it is up", || play.house.path("out/up").exists().then_some(()));
    play.wake();
    play.turn("the loop goes on", |now| now["pid"].is_u64());
    std::fs::File::options().write(true).open(play.house.path("out/go")).unwrap().write_all(b"go\n").unwrap();
    play.idle(1);
    assert_eq!(play.house.read("out/size").trim(), "1000000");
    play.end().end();
}

#[test]
fn without_a_pane_everything_is_in_the_log() {
    let house = house();
    task(&house, "one", "echo term $TERM, color $NO_COLOR, tmux ${TMUX-none}; echo err >&2");
    let mut play = Play::start(house, &worker(), Some("state/own/logs/agents/survey/ann.log"));
    play.idle(1);
    let log = play.house.read("state/own/logs/agents/survey/ann.log");
    assert_eq!(log, "── task 1: one\nterm dumb, color 1, tmux none\nerr\nTask 1 is done: one\nidle\n");
    assert_eq!(play.pane(), "", "nothing goes where the daemon writes");
    play.end().end();
}

#[test]
fn without_a_pane_no_descriptor_of_the_daemon_lives_on() {
    let house = house();
    task(&house, "look", "ls -l /proc/$$/fd >out/fds");
    let inherited = std::fs::File::create(house.path("out/inherited")).unwrap();
    rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).unwrap();
    let mut play = Play::start(house, &worker(), Some("logs/ann.log"));
    drop(inherited);
    play.idle(1);
    let fds = std::fs::read_dir(format!("/proc/{}/fd", play.pid)).unwrap().flatten();
    let held: Vec<PathBuf> = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok()).collect();
    assert!(held.len() > 3 && !held.iter().any(|path| path.ends_with("out/inherited")), "{held:#?}");
    let turn = play.house.read("out/fds");
    assert!(turn.contains("/dev/null") && !turn.contains("inherited"), "{turn}");
    play.end().end();
}

#[test]
fn an_agent_for_life_without_a_pane_has_its_output_in_the_log_too() {
    let house = house();
    let log = "state/own/logs/agents/survey/ann.log";
    let mut play =
        Play::start(house, &json!({"argv": ["sh", "-c", "echo up $TERM; sleep 3600 & exit 3"]}), Some(log));
    play.until("it starts", |word| word["started"]["pid"].as_u64());
    let (house, ended) = play.ends();
    assert_eq!(ended, json!({"exit": 3}));
    assert!(house.read(log).starts_with("up dumb\n"), "{}", house.read(log));
    house.end();
}

#[test]
fn what_a_pane_shows_is_recorded_in_a_file_of_bounded_size() {
    let house = House::empty();
    let path = house.path("state/logs/ann.log");
    let script = format!("yes 0123456789abcde | head -c 23000000 | teamctl record {}", path.display());
    let status = house.command("sh").args(["-c", &script]).status().unwrap();
    assert!(status.success());
    let size = |name: &str| house.path(name).metadata().unwrap().len();
    assert!(size("state/logs/ann.log") <= 10 << 20 && size("state/logs/ann.log.1") <= 10 << 20);
    assert!(house.read("state/logs/ann.log").ends_with("0123456789abcde\n"));
    assert_eq!(std::fs::read_dir(house.path("state/logs")).unwrap().count(), 2);
    house.end();
}
