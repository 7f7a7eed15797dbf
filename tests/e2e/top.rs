//! Checks `teamctl top` in tmux: its screen, its keys and its exit.

use crate::dialogs;
use crate::why::PausedProcess;
use harness::TestEnv;
use serde_json::{Value, json};

/// A pane in which a shell runs `teamctl top` and then prints its exit code and the
/// terminal settings.
pub(crate) struct TopPane<'a> {
    env: &'a TestEnv,
    pub(crate) pane: String,
}

impl<'a> TopPane<'a> {
    /// Opens a pane of 80×24.
    pub(crate) fn open(env: &'a TestEnv) -> TopPane<'a> {
        TopPane::open_with_size(env, (80, 24))
    }

    pub(crate) fn open_with_size(env: &'a TestEnv, size: (u16, u16)) -> TopPane<'a> {
        let top = TopPane::start(env, size);
        top.wait_for_text("team-lead");
        top
    }

    fn start(env: &'a TestEnv, size: (u16, u16)) -> TopPane<'a> {
        TopPane::start_command(env, size, "top")
    }

    /// Opens a pane in which a shell runs this command of `teamctl`.
    pub(crate) fn start_command(env: &'a TestEnv, (width, height): (u16, u16), command: &str) -> TopPane<'a> {
        let teamctl = harness::programs().join("teamctl").display().to_string();
        let shell = format!("'{teamctl}' {command}; echo left $?; stty -a; exec sleep 3600");
        let pane = env.tmux([
            "new-session",
            "-d",
            "-s",
            "top",
            "-x",
            &width.to_string(),
            "-y",
            &height.to_string(),
            "-P",
            "-F",
            "#{pane_id}",
            "--",
            "sh",
            "-c",
            &shell,
        ]);
        TopPane { env, pane }
    }

    pub(crate) fn screen_text(&self) -> String {
        self.env.tmux(["capture-pane", "-p", "-t", &self.pane])
    }

    pub(crate) fn screen_text_with_colors(&self) -> String {
        self.env.tmux(["capture-pane", "-p", "-e", "-t", &self.pane])
    }

    /// What a format of tmux says about the pane.
    pub(crate) fn format(&self, format: &str) -> String {
        self.env.tmux(["display-message", "-p", "-t", &self.pane, format])
    }

    /// Waits until the screen contains `part`, and returns the screen.
    pub(crate) fn wait_for_text(&self, part: &str) -> String {
        let what = format!("the screen shows {part:?}");
        self.env.wait_until(&what, || Some(self.screen_text()).filter(|screen| screen.contains(part)))
    }

    pub(crate) fn press(&self, key: &str) {
        self.env.tmux(["send-keys", "-t", &self.pane, key]);
    }

    pub(crate) fn type_in(&self, text: &str) {
        self.env.tmux(["send-keys", "-t", &self.pane, "-l", text]);
    }

    /// Selects the line that begins with `name`.
    pub(crate) fn select(&self, name: &str) {
        self.press("Home");
        self.env.wait_until(&format!("{name} is selected"), || {
            let is_selected = self.screen_text().contains(&format!(">{name} "));
            if !is_selected {
                self.press("Down");
            }
            is_selected.then_some(())
        });
    }

    fn pid(&self) -> u32 {
        let shell = self.env.tmux(["display-message", "-p", "-t", &self.pane, "#{pane_pid}"]);
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Checks that teamctl has exited with `code` and has restored the terminal.
    pub(crate) fn assert_exited(&self, code: u32) {
        let screen = self.wait_for_text(" echoke");
        assert!(screen.contains(&format!("left {code}\n")), "{screen}");
        let settings: Vec<&str> = screen.split([' ', ';', '\n']).collect();
        assert!(
            settings.contains(&"icanon") && settings.contains(&"echo") && settings.contains(&"isig"),
            "{screen}"
        );
        assert_eq!(self.format("#{alternate_on} #{cursor_flag}"), "0 1");
    }
}

fn spawn(env: &TestEnv, name: &str) {
    env.teamctl(["spawn", name, "--", &env.scripted_agent_path(), "stay"]).expect_success();
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

fn permission_request(id: &str, command: &str) -> String {
    let input = json!({"command": command});
    json!({"type": "permission_request", "request_id": id, "agent_id": "ann", "tool_name": "Bash", "tool_use_id": "t",
        "description": "run it", "input": input, "permission_suggestions": []})
    .to_string()
}

fn write_request(env: &TestEnv, text: &str) {
    let status = env.command(harness::programs().join("scripted-agent")).args(["ask", "ann", text]).status();
    assert!(status.unwrap().success());
}

fn answers(env: &TestEnv) -> Vec<Value> {
    let inbox = env.inbox("survey", "ann");
    inbox.iter().filter_map(|message| serde_json::from_str(message["text"].as_str()?).ok()).collect()
}

#[test]
fn screen_shows_events_and_q_quits() {
    let env = TestEnv::with_team();
    let top = TopPane::open(&env);
    spawn(&env, "ann");
    top.wait_for_text("ann          active");
    env.teamctl(["send", "ann", "count\u{1b}[2J the lines"]).expect_success();
    let screen = top.wait_for_text("team-lead -> ann: count\\u{1b}[2J the lines");
    assert!(screen.contains("1 new") && screen.is_ascii(), "{screen}");
    env.teamctl(["task", "create", "read it"]).expect_success();
    env.teamctl(["task", "create", "write it up", "--blocked-by", "2"]).expect_success();
    top.wait_for_text("` #3         waits   -            write it up");
    env.teamctl(["kill", "ann"]).expect_success();
    top.wait_for_text("ann          killed ");
    env.teamctl(["delete", "survey"]).expect_success();
    top.wait_for_text("no such team any more");
    env.teamctl(["create", "survey"]).expect_success();
    top.wait_for_text("[members 1]");
    top.press("q");
    top.assert_exited(0);
    env.shut_down();
}

#[test]
fn last_output_line_is_shown_without_a_pane() {
    let env = TestEnv::with_team();
    let top = TopPane::open(&env);
    for (name, backend) in [("ann", "tmux"), ("bob", "in-process")] {
        let program = "printf 'begin\\n\\033[31mred end\\033[0m\\n\\n'; exec sleep 3600";
        env.teamctl(["spawn", name, "--backend", backend, "--", "sh", "-c", program]).expect_success();
    }
    env.wait_until("the screen shows the last line of both members", || {
        (top.screen_text().matches("red end").count() == 2).then_some(())
    });
    top.select("bob");
    top.press("Enter");
    top.wait_for_text("its output ends:\nbegin\nred end");
    let why = env.teamctl(["why", "bob"]).expect_success();
    top.wait_for_text(&why.lines().next().unwrap().chars().take(30).collect::<String>());
    env.shut_down();
}

#[test]
fn send_shutdown_and_kill_keys_work() {
    let env = TestEnv::with_team();
    spawn(&env, "ann");
    let top = TopPane::open(&env);
    top.wait_for_text("ann          active");
    top.select("ann");
    top.press("s");
    top.wait_for_text("message to ann:");
    top.type_in("hello; $(touch evil)");
    top.press("Enter");
    let message = env.wait_until("the message is stored", || env.inbox("survey", "ann").pop());
    assert_eq!((&message["text"], &message["from"]), (&json!("hello; $(touch evil)"), &json!("team-lead")));
    top.wait_for_text("Message sent to ann");
    top.press("x");
    top.wait_for_text("ask ann to shut down");
    top.type_in("enough");
    top.press("Enter");
    top.wait_for_text("Shutdown request sent to ann");
    let request = env.wait_until("ann has a shutdown request", || {
        env.inbox("survey", "ann").pop().filter(|last| *last != message)
    });
    let request: Value = serde_json::from_str(request["text"].as_str().unwrap()).unwrap();
    assert_eq!((&request["type"], &request["reason"]), (&json!("shutdown_request"), &json!("enough")));
    top.wait_for_text("ann          stopping ");
    top.press("K");
    top.wait_for_text("kill ann: press K again");
    top.press("Escape");
    top.wait_for_text("q:quit");
    assert!(env.member("ann").is_some());
    top.press("K");
    top.wait_for_text("kill ann: press K again");
    top.press("K");
    top.wait_for_text(" killed ");
    env.shut_down();
}

#[test]
fn request_is_answered_only_after_it_was_shown_completely() {
    let env = TestEnv::with_team();
    spawn(&env, "ann");
    let top = TopPane::open(&env);
    let command = format!("{}; rm -r /", "echo a very long line of a command".repeat(80));
    write_request(&env, &permission_request("perm-1-abcdefg", &command));
    top.wait_for_text("1 request waits");
    top.press("Tab");
    top.wait_for_text("[requests 1]");
    top.press("Enter");
    let screen = top.wait_for_text("then it can be answered");
    assert!(screen.contains("asks to use Bash: run it") && !screen.contains("rm -r /"), "{screen}");
    top.press("y");
    top.wait_for_text("read it to its end first");
    assert!(answers(&env).is_empty());
    top.press("End");
    assert!(top.wait_for_text("y:approve").contains("; rm -r /"));
    top.press("n");
    top.wait_for_text("no, since:");
    top.type_in("not that");
    top.press("Enter");
    let answer = env.wait_until("the request is denied", || answers(&env).pop());
    assert_eq!((&answer["subtype"], &answer["error"]), (&json!("error"), &json!("not that")));
    top.wait_for_text("[requests 0]");
    write_request(&env, &permission_request("perm-2-abcdefg", "ls"));
    top.wait_for_text("[requests 1]");
    top.press("Enter");
    top.wait_for_text("y:approve");
    top.press("y");
    env.wait_until("the request is approved", || {
        answers(&env).into_iter().find(|answer| answer["subtype"] == "success")
    });
    top.wait_for_text("[requests 0]");
    env.shut_down();
}

#[test]
fn unreadable_requests_are_shown_as_unknown() {
    let env = TestEnv::with_team();
    spawn(&env, "ann");
    let top = TopPane::open(&env);
    top.wait_for_text(" requests 0 ");
    write_request(&env, &permission_request("perm-1-abcdefg", "ls"));
    top.wait_for_text(" requests 1 ");
    let inbox = env.read("root/teams/survey/inboxes/team-lead.json");
    env.write_file("root/teams/survey/inboxes/team-lead.json", "{");
    top.wait_for_text(" requests ? ");
    top.wait_for_text("requests can't be read: teamctl requests says why");
    env.write_file("root/teams/survey/inboxes/team-lead.json", inbox);
    top.wait_for_text(" requests 1 ");
    env.shut_down();
}

#[test]
fn screen_survives_the_daemon() {
    let env = TestEnv::with_team();
    spawn(&env, "ann");
    let top = TopPane::open(&env);
    top.wait_for_text("1 member active");
    env.kill_process(env.daemon_pid());
    top.wait_for_text("teamd is down (teamctl up): this is what the files say");
    env.teamctl(["send", "ann", "still here?"]).expect_success();
    top.wait_for_text("team-lead -> ann: still here?");
    env.start_daemon();
    top.wait_for_text("1 member active");
    env.shut_down();
}

#[test]
fn dialog_seen_only_on_screen_is_shown() {
    let env = TestEnv::with_team();
    dialogs::write_profile(&env, "asker", "pull", dialogs::ASKER);
    env.teamctl(["spawn", "ann", "--profile", "asker"]).expect_success();
    dialogs::wait_for_screen(&env, "ann", "It asks");
    let top = TopPane::open(&env);
    top.wait_for_text("ann          ");
    dialogs::type_answer(&env, "ann", "ask");
    top.wait_for_text("!dialog");
    dialogs::type_answer(&env, "ann", "go");
    env.wait_until("the dialog is not shown", || (!top.screen_text().contains("!dialog")).then_some(()));
    env.shut_down();
}

#[test]
fn idle_screen_is_not_redrawn() {
    for size in [(80, 24), (130, 40)] {
        check_redraws(size);
    }
}

fn check_redraws(size: (u16, u16)) {
    let env = TestEnv::with_team();
    spawn(&env, "ann");
    let top = TopPane::open_with_size(&env, size);
    top.wait_for_text("ann          active");
    top.select("ann");
    let record = env.path("out/drawn").display().to_string();
    // Each redraw hides the cursor once.
    let count_redraws = || env.read("out/drawn").matches("\u{1b}[?25l").count();
    env.tmux(["pipe-pane", "-t", &top.pane, &format!("cat >> '{record}'")]);
    env.wait_until_quiet(std::time::Duration::from_millis(500));
    let redraws_before = count_redraws();
    // These files cause scans that find nothing new. The key after that causes one redraw.
    for n in 0..20 {
        env.write_file(&format!("root/teams/survey/{n}.tmp"), "x");
    }
    env.write_file("root/teams/survey/inboxes/odd.tmp", "x");
    env.wait_until_quiet(std::time::Duration::from_millis(500));
    top.press("?");
    top.wait_for_text("[help]");
    env.wait_until("the help is drawn", || (count_redraws() > redraws_before).then_some(()));
    assert_eq!(count_redraws() - redraws_before, 1, "{:?}", env.read("out/drawn"));
    for n in 0..20 {
        std::fs::remove_file(env.root().join(format!("teams/survey/{n}.tmp"))).unwrap();
    }
    std::fs::remove_file(env.root().join("teams/survey/inboxes/odd.tmp")).unwrap();
    env.shut_down();
}

#[test]
fn q_quits_at_once_and_commands_continue() {
    let env = TestEnv::new();
    let mut teamd = env.start_daemon_without_pane();
    env.teamctl(["create", "survey"]).expect_success();
    spawn(&env, "ann");
    let top = TopPane::open(&env);
    top.wait_for_text("ann          active");
    top.select("ann");
    let paused_daemon = PausedProcess::new(teamd.id());
    top.press("K");
    top.wait_for_text("kill ann: press K again");
    top.press("K");
    top.wait_for_text("q:quit");
    top.press("q");
    top.wait_for_text("this goes on without the screen: teamctl kill -- ann");
    top.assert_exited(0);
    drop(paused_daemon);
    env.wait_until("ann has exited", || env.member("ann").is_none().then_some(()));
    env.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    env.shut_down();
}

#[test]
fn terminal_is_restored_on_every_exit() {
    use rustix::process::Signal;
    for (exit_signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let env = TestEnv::with_team();
        let top = TopPane::open(&env);
        signal(top.pid(), exit_signal);
        top.assert_exited(code);
        env.shut_down();
    }
    let env = TestEnv::with_team();
    let top = TopPane::open(&env);
    let pid = top.pid();
    let stops: [&dyn Fn(); 2] = [&|| signal(pid, Signal::TSTP), &|| top.press("C-z")];
    for stop in stops {
        stop();
        env.wait_until("the terminal is restored", || (top.format("#{alternate_on}") == "0").then_some(()));
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        env.wait_until("teamctl is stopped", || state().contains(") T ").then_some(()));
        signal(pid, Signal::CONT);
        top.wait_for_text("[members 1]");
    }
    top.press("C-c");
    top.assert_exited(0);
    env.shut_down();
}

/// A second tmux server, with a client in its pane that is attached to a session of the
/// environment's tmux server.
pub(crate) struct OuterTerminal<'a> {
    env: &'a TestEnv,
    socket: String,
}

impl<'a> OuterTerminal<'a> {
    pub(crate) fn open(env: &'a TestEnv, session: &str) -> OuterTerminal<'a> {
        let inner = env.tmux_socket().display().to_string();
        let script = format!("unset TMUX TMUX_PANE; exec tmux -S '{inner}' attach -t {session}");
        let terminal = OuterTerminal { env, socket: env.path("outer").display().to_string() };
        terminal.tmux(&["new-session", "-d", "-x", "100", "-y", "30", "--", "/bin/sh", "-c", &script]);
        env.wait_until("the client is attached", || {
            (env.tmux(["list-clients", "-t", session, "-F", "x"]) == "x").then_some(())
        });
        terminal
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut command = self.env.command("tmux");
        let output = command.args(["-S", &self.socket, "-f", "/dev/null"]).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn wait_for_text(&self, part: &str) {
        let what = format!("the terminal shows {part:?}");
        self.env.wait_until(&what, || self.tmux(&["capture-pane", "-p"]).contains(part).then_some(()));
    }

    pub(crate) fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    fn wait_for_active_pane(&self, pane: &str) {
        self.env.wait_until(&format!("the client shows the pane {pane}"), || {
            let clients = self.env.tmux(["list-clients", "-F", "#{client_control_mode} #{pane_id}"]);
            clients.lines().any(|line| line == format!("0 {pane}")).then_some(())
        });
    }
}

impl Drop for OuterTerminal<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn pane(env: &TestEnv, name: &str) -> String {
    env.member(name).unwrap()["pane"].as_str().unwrap().to_owned()
}

#[test]
fn a_attaches_and_shows_the_way_back() {
    let env = TestEnv::with_team();
    spawn(&env, "ann");
    let top = TopPane::open(&env);
    top.select("ann");
    top.press("a");
    top.wait_for_text("cannot switch to the pane");
    let terminal = OuterTerminal::open(&env, "top");
    top.press("a");
    terminal.wait_for_active_pane(&pane(&env, "ann"));
    terminal.wait_for_text("back to the team's screen: prefix L");
    terminal.press("C-b");
    terminal.press("L");
    terminal.wait_for_active_pane(&top.pane);
    top.wait_for_text("you were taken to ann");
    drop(terminal);
    env.shut_down();
}

#[test]
fn popup_closes_to_show_a_pane() {
    let env = TestEnv::with_team();
    spawn(&env, "ann");
    let terminal = OuterTerminal::open(&env, "user");
    let teamctl = harness::programs().join("teamctl").display().to_string();
    let open_popup = |exit_text: &str| {
        let shell = format!("'{teamctl}' top --popup; echo {exit_text} $?; exec sleep 3600");
        env.tmux(["new-window", "-t", "user:", "--", "sh", "-c", &shell]);
        terminal.wait_for_text("[members 2]");
    };
    open_popup("closed");
    terminal.press("q");
    terminal.wait_for_text("closed 0");
    open_popup("gone");
    terminal.wait_for_text(">ann");
    terminal.press("a");
    terminal.wait_for_active_pane(&pane(&env, "ann"));
    env.wait_until("the popup has closed", || {
        (!terminal.tmux(&["capture-pane", "-p"]).contains("[members 2]")).then_some(())
    });
    drop(terminal);
    env.shut_down();
}

#[test]
fn team_is_chosen_with_one_key() {
    let env = TestEnv::with_team();
    env.teamctl(["create", "other"]).expect_success();
    let top = TopPane::start(&env, (80, 24));
    let screen = top.wait_for_text("Which team?");
    assert!(screen.contains("\n 1  other\n 2  survey"), "{screen}");
    top.press("3");
    top.press("2");
    top.wait_for_text("survey  0 members active");
    top.press("q");
    top.assert_exited(0);
    let terminal = OuterTerminal::open(&env, "top");
    let teamctl = harness::programs().join("teamctl").display().to_string();
    for (key, part) in [("1", "other  0 members active"), ("q", "closed 0")] {
        let shell = format!("'{teamctl}' top --popup; echo closed $?; exec sleep 3600");
        env.tmux(["new-window", "-t", "top:", "--", "sh", "-c", &shell]);
        terminal.wait_for_text("Which team?");
        terminal.press(key);
        terminal.wait_for_text(part);
        terminal.press("q");
        terminal.wait_for_text("closed 0");
    }
    let error = env.teamctl(["top"]).expect_failure(64);
    assert!(error.contains("this is no terminal") && !error.contains("-t other"), "{error}");
    drop(terminal);
    env.shut_down();
}

#[test]
fn screen_requires_a_lead_at_a_terminal() {
    let env = TestEnv::with_team();
    let error = env.teamctl(["top"]).expect_failure(64);
    assert!(error.contains("this is no terminal") && error.contains("teamctl status"), "{error}");
    let error = env.teamctl(["top", "--popup"]).expect_failure(76);
    assert!(error.contains("not inside tmux"), "{error}");
    env.teamctl_with(&["top"], &[("TEAMD_MEMBER", "ann"), ("TEAMD_TEAM", "survey")]).expect_failure(77);
    env.teamctl(["top", "-t", "none"]).expect_failure(67);
    env.shut_down();
}
