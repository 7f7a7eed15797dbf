//! Members in sessions of iTerm2. The real `it2` talks to a scripted server of iTerm2's API.

use crate::mcp::is_installed;
use harness::{CommandOutput, TestEnv};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// The session that the server begins with.
const CALLER: &str = "11111111-2222-4333-8444-555555555555";

/// The scripted server, and an `it2` that has the cookie of the server. Without the cookie, `it2`
/// would ask iTerm2 for one through AppleScript.
struct ScriptedIterm2<'a> {
    env: &'a TestEnv,
    server: Child,
    it2: PathBuf,
    path: String,
}

impl<'a> ScriptedIterm2<'a> {
    /// Starts the server. `None` if the Python packages are not installed.
    fn start(env: &'a TestEnv) -> Option<ScriptedIterm2<'a>> {
        let programs = harness::programs().parent().unwrap().join("python/bin");
        let real_it2 = is_installed(programs.join("it2"))?;
        std::fs::create_dir(env.path("bin")).unwrap();
        let cookie = "ITERM2_COOKIE=cookie-of-the-test";
        let it2 = env
            .write_script("bin/it2", &format!("#!/bin/sh\n{cookie} exec '{}' \"$@\"\n", real_it2.display()));
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/compat/iterm2_server.py");
        let mut server = env.command(programs.join("python"));
        server.args([script.as_ref(), env.path("out").as_os_str()]).stderr(Stdio::inherit());
        let path = format!("{}:{}", env.path("bin").display(), std::env::var("PATH").unwrap_or_default());
        let iterm2 = ScriptedIterm2 { env, server: server.spawn().unwrap(), it2, path };
        env.wait_until("the server has its first session", || iterm2.sessions().get(CALLER).map(drop));
        Some(iterm2)
    }

    /// Runs `teamctl` in the session `session`.
    fn teamctl_in(&self, session: &str, args: &[&str]) -> CommandOutput {
        let variables = [("PATH", self.path.as_str()), ("ITERM_SESSION_ID", &format!("w0t0p0:{session}"))];
        self.env.teamctl_with(args, &variables)
    }

    /// Spawns a member in a session. Returns the id of the session.
    fn spawn(&self, name: &str, options: &[&str]) -> String {
        let args = [&["--json", "spawn", name, "--backend", "iterm2"], options].concat();
        let output = self.teamctl_in(CALLER, &args);
        assert_eq!(output.code, 0, "{output:#?}\n{}", self.env.dump_state());
        let reply = output.json();
        assert_eq!(reply["backend"], "iterm2");
        reply["pane"].as_str().unwrap().to_owned()
    }

    /// Runs `it2 session`, as a person or another program does.
    fn it2(&self, args: &[&str]) -> String {
        let output = self.env.command(&self.it2).arg("session").args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn sessions(&self) -> Value {
        let text = std::fs::read(self.env.path("out/sessions.json")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn wait_until_closed(&self, session: &str) {
        self.env.wait_until("the session is closed", || self.sessions().get(session).is_none().then_some(()));
    }

    fn wait_for_screen(&self, name: &str, text: &str) {
        self.env.wait_until(&format!("the screen of {name} has {text}"), || {
            self.env.teamctl(["capture", name]).stdout.contains(text).then_some(())
        });
    }
}

impl Drop for ScriptedIterm2<'_> {
    fn drop(&mut self) {
        self.server.kill().ok();
        self.server.wait().ok();
        let socket = self.env.path("home/Library/Application Support/iTerm2/private/socket");
        std::fs::remove_file(socket).ok();
    }
}

#[test]
fn member_works_in_a_session_of_iterm2_until_it_is_shut_down_killed_or_closed() {
    let env = TestEnv::with_team();
    let Some(iterm2) = ScriptedIterm2::start(&env) else { return env.shut_down() };
    let echo = ["--", "sh", "-c", "echo ready; read text; echo \"got $text\"; exec sleep 3600"];
    let ann = iterm2.spawn("ann", &echo);
    iterm2.wait_for_screen("ann", "ready");
    let session = iterm2.sessions()[&ann].take();
    assert_eq!((&session["name"], &session["beside"]), (&"ann@survey".into(), &CALLER.into()));
    assert_eq!(session["vertical"], true);
    let text = session["text"].as_str().unwrap();
    assert!(text.contains("\x1b]6;1;bg;blue;brightness;230\x07"), "blue is the first color: {text:?}");
    assert!(text.contains(" exec sh '") && !text.contains("TEAMD_TOKEN"), "{text:?}");
    let member = env.read_config()["members"][1].take();
    assert_eq!(
        (&member["backendType"], &member["tmuxPaneId"]),
        (&"iterm2".into(), &ann.as_str().into()),
        "{member}"
    );
    iterm2.it2(&["run", "-s", &ann, "hello"]);
    iterm2.wait_for_screen("ann", "got hello");
    assert_eq!(env.teamctl(["capture", "ann", "--lines", "1"]).expect_success().trim_end(), "got hello");
    // The next member is below the first one.
    let bob = iterm2.spawn("bob", &["--profile", "worker"]);
    let session = iterm2.sessions()[&bob].take();
    assert_eq!((&session["beside"], &session["vertical"]), (&ann.as_str().into(), &false.into()));

    for (args, text) in [
        (["hide", "ann"], "only tmux panes can be moved"),
        (["layout", "tiled"], "only tmux panes can be moved"),
        (["logs", "ann"], "teamctl capture NAME"),
        (["attach", "ann"], "ann is in front, in iTerm2."),
        (["status", "ann"], "backend iterm2"),
    ] {
        let output = env.teamctl(args);
        assert!(format!("{}{}", output.stdout, output.stderr).contains(text), "{output:#?}");
    }
    assert_eq!(iterm2.sessions()[&ann]["focused"], true);

    env.kill_process(env.daemon_pid());
    env.start_daemon();
    env.wait_until("ann is adopted", || (env.member("ann")?["lifecycle"] == "running").then_some(()));
    iterm2.wait_for_screen("ann", "got hello");
    iterm2.it2(&["close", "-f", "-s", &ann]);
    env.wait_until("ann has ended", || env.teamctl(["status"]).stdout.contains("pane killed").then_some(()));
    env.teamctl(["shutdown", "bob"]).expect_success();
    iterm2.wait_until_closed(&bob);

    // The sessions of ann and bob are closed, so the caller's session is split again.
    let fails_once = "test -e out/failed || { : >out/failed; exit 3; }; exec sleep 3600";
    let first = iterm2.spawn("carl", &["--restart", "on-failure", "--", "sh", "-c", fails_once]);
    let second = env.wait_until("carl is respawned in another session", || {
        let carl = env.member("carl").filter(|carl| carl["lifecycle"] == "running")?;
        carl["pane"].as_str().filter(|pane| *pane != first).map(str::to_owned)
    });
    iterm2.wait_until_closed(&first);
    env.teamctl(["kill", "carl"]).expect_success();
    iterm2.wait_until_closed(&second);
    assert_eq!(iterm2.sessions().as_object().unwrap().len(), 1, "only the caller's session is left");
    env.teamctl(["delete", "survey"]).expect_success();
    drop(iterm2);
    env.shut_down();
}

#[test]
fn missing_it2_session_or_api_is_an_error_that_says_what_to_do() {
    let env = TestEnv::with_team();
    let Some(iterm2) = ScriptedIterm2::start(&env) else { return env.shut_down() };
    let spawn = ["spawn", "ann", "--backend", "iterm2", "--", "sleep", "3600"];
    let check = |output: CommandOutput, text: &str| {
        assert!(output.code != 0 && output.stderr.contains(text), "{text}: {output:#?}");
        assert_eq!(iterm2.sessions().as_object().unwrap().len(), 1);
        assert!(env.member("ann").is_none(), "the name is free again");
    };
    check(env.teamctl(spawn), "pipx install it2");
    check(env.teamctl_with(&spawn, &[("PATH", &iterm2.path)]), "tmux -CC");
    check(iterm2.teamctl_in("66666666-2222-4333-8444-555555555555", &spawn), "tmux -CC");
    check(iterm2.teamctl_in("--all", &spawn), "tmux -CC");
    std::fs::File::create(env.path("out/refuse")).unwrap();
    check(iterm2.teamctl_in(CALLER, &spawn), "enable iTerm2's Python API");
    std::fs::remove_file(env.path("out/refuse")).unwrap();
    iterm2.spawn("ann", &["--", "sleep", "3600"]);
    std::fs::File::create(env.path("out/refuse")).unwrap();
    assert!(env.teamctl(["capture", "ann"]).stderr.contains("cannot capture it"));
    // The name is free even if iTerm2 does not answer.
    env.teamctl(["kill", "ann"]).expect_success();
    drop(iterm2);
    env.shut_down();
}
