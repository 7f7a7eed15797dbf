//! `teamctl hosts` and `teamctl --host`: the hosts file, and transports that fail. A transport that
//! works is a program that starts the command on this machine, with another home directory.

mod members_on_hosts;
mod over_ssh;

use harness::{TaggedProcesses, TestEnv};
use serde_json::Value;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const HOSTS_FILE: &str = "home/.config/teamd/hosts.toml";

/// An environment with a hosts file. `DIR/` in it stands for the environment's directory.
fn env_with_hosts(text: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write_file(HOSTS_FILE, text.replace("DIR/", &env.path("").display().to_string()));
    env
}

/// Checks one host and returns its error. The exit code is `code`.
fn check_error(env: &TestEnv, host: &str, code: i32) -> (String, String) {
    let timeout = if code == 75 { "1s" } else { "60s" };
    let output = env.teamctl_with(&["--json", "hosts", "check", host, "--timeout", timeout], &[]);
    assert_eq!(output.code, code, "{output:?}");
    let error = output.json()["hosts"][0]["errors"][0].clone();
    let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    (text("message"), text("help"))
}

#[test]
fn hosts_are_listed_and_without_a_file_there_is_help() {
    let env = TestEnv::new();
    let text = env.teamctl(["hosts"]).expect_success();
    assert!(text.contains(HOSTS_FILE) && text.contains("[host.devbox]"), "{text}");
    assert_eq!(env.json(["hosts", "check"])["hosts"], serde_json::json!([]));
    let hosts = "[host.b]\nconnect = \"ssh -T 'b b'\"\nlabels = ['gpu', 'big']\nslots = 2\n\
                 [host.a]\nconnect = ['docker', 'exec', '-i', 'a']\nroot = '~/r'\n";
    env.write_file(HOSTS_FILE, hosts);
    assert_eq!(
        env.teamctl(["hosts"]).expect_success(),
        "NAME  CONNECT           ROOT  LABELS   SLOTS\na     docker exec -i a  ~/r   -        -\n\
         b     ssh -T 'b b'      -     gpu,big  2\n"
    );
    let list = env.json(["hosts", "list"])["hosts"].clone();
    assert_eq!(
        (&list[0]["attach"], &list[1]["attach"]),
        (&Value::Null, &serde_json::json!(["ssh", "-t", "b b"]))
    );
    let run = "name = 't'\n[[member]]\nname = 'ann'\nprofile = 'worker'\n[host.c]\nconnect = 'ssh c'\n";
    env.write_file("run.toml", run);
    let text = env.teamctl(["hosts", "list", "--run-file", "run.toml"]).expect_success();
    assert!(text.contains("\nc     ssh c "), "{text}");
    env.shut_down();
}

#[test]
fn errors_of_the_hosts_file_have_their_place_and_unknown_hosts_a_suggestion() {
    let env = env_with_hosts("[host.devbox]\nconect = 'ssh devbox'\n");
    for command in [
        &["hosts"][..],
        &["hosts", "check"],
        &["hosts", "install", "devbox"],
        &["--host", "devbox", "status"],
    ] {
        let output = env.teamctl_with(command, &[]);
        let error = output.stderr.clone();
        assert!(error.contains("hosts.toml:1:7: a host needs the key connect"), "{error}");
        assert!(
            error.contains("hosts.toml:2:1: a host takes no key \"conect\"; the nearest is connect"),
            "{error}"
        );
        assert_eq!(output.code, 65, "{output:?}");
    }
    env.write_file(HOSTS_FILE, "[host.devbox]\nconnect = 'ssh devbox'\n");
    for command in
        [&["hosts", "check", "devbx"][..], &["--host", "devbx", "status"], &["hosts", "install", "devbx"]]
    {
        let error = env.teamctl_with(command, &[]).expect_failure(64);
        assert!(
            error.contains("cannot find the host devbx") && error.contains("did you mean devbox?"),
            "{error}"
        );
    }
    let error = env.teamctl_with(&["status"], &[("TEAMD_HOST", "nobody")]).expect_failure(64);
    assert!(error.contains("cannot find the host nobody") && error.contains("teamctl hosts"), "{error}");
    env.shut_down();
}

#[test]
fn members_and_asked_programs_do_not_reach_other_hosts() {
    let env = env_with_hosts("[host.here]\nconnect = 'env'\n");
    for command in
        [&["hosts"][..], &["hosts", "check"], &["--host", "here", "status"], &["-q", "--host=here", "status"]]
    {
        for variable in [("TEAMD_MEMBER", "ann"), ("TEAMD_ASK", "1")] {
            let error = env.teamctl_with(command, &[variable]).expect_failure(77);
            assert!(error.contains("cannot run"), "{error}");
        }
    }
    env.shut_down();
}

/// Runs a script in a terminal, which is a pane outside any team. Returns the pane.
fn open_terminal(env: &TestEnv, script: &str) -> String {
    let script = format!("unset TMUX TMUX_PANE; {script}");
    env.tmux(["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "user:", "--", "sh", "-c", &script])
}

/// Transports that fail, each with the exit code of a check and parts of its error and help.
const FAILING_TRANSPORTS: [(&str, i32, &str, &str); 8] = [
    ("exec false", 74, "ended with exit code 1", "to see why, type: sh -c"),
    ("echo no route >&2; exit 255", 74, "ended with exit code 255: no route", "to see why"),
    (
        "echo 'sh: teamctl: not found' >&2; exit 127",
        72,
        "there is no teamctl there: sh: teamctl",
        "hosts install",
    ),
    ("exec sleep 3600", 75, "gave no answer within 1 s", "see whether this ends"),
    (
        "echo teamd-host 9.9.9; exec cat >DIR/seen",
        78,
        "it has version 9.9.9, and here it is 0.1.0",
        "hosts install",
    ),
    ("echo teamd-host 0.1.0; exec head -n 2 >DIR/seen", 74, "cannot go on with", "to see why"),
    (
        "echo teamd-host 0.1.0; read line; echo '{broken'; exec cat >DIR/seen",
        74,
        "cannot understand",
        "hosts install",
    ),
    ("exec yes", 74, "prints text without end", "start files"),
];

#[test]
fn failing_transports_say_what_failed_where_and_what_to_do() {
    for (script, code, message, help) in FAILING_TRANSPORTS {
        let env =
            env_with_hosts(&format!("[host.box]\nconnect = ['sh', '-c', \"\"\"{script}\"\"\", 'sh']\n"));
        let start = Instant::now();
        let error = check_error(&env, "box", code);
        assert!(error.0.contains("box") && error.0.contains(message), "{script}: {error:?}");
        assert!(error.1.contains(help), "{script}: {error:?}");
        assert!(start.elapsed() < Duration::from_secs(20), "{script}");
        // Nothing is sent to a host with another version.
        if code == 78 {
            assert_eq!(env.read("seen"), "");
        }
        env.shut_down();
    }
}

#[test]
fn missing_transport_program_and_damaged_connection_of_a_command_are_errors() {
    let env = env_with_hosts(
        "[host.none]\nconnect = 'no-such-program x'\n[host.gone]\nconnect = ['sh', '-c', 'exit 255', 'sh']\n\
         [host.empty]\nconnect = ['sh', '-c', 'exit 127', 'sh']\n[host.old]\nconnect = 'env'\n\
         teamctl = 'DIR/out/old-teamctl'\n",
    );
    env.write_script("out/old-teamctl", "#!/bin/sh\nexec teamctl hosts exec 0.0.9\n");
    for (host, code, text) in [
        ("none", 72, "no-such-program is not installed here"),
        ("gone", 74, "cannot reach gone: its connect command ended with exit code 255"),
        ("empty", 72, "there is no teamctl there"),
        ("old", 78, "cannot run a command for teamctl 0.0.9: this host has teamctl 0.1.0"),
    ] {
        let error = env.teamctl(["--host", host, "status"]).expect_failure(code);
        assert!(error.contains(text), "{error}");
    }
    let error = env.teamctl(["hosts", "exec", "0.1.0", "abc"]).expect_failure(64);
    assert!(error.contains("teamctl --host"), "{error}");
    env.shut_down();
}

#[test]
fn banner_before_the_answer_is_skipped_and_reported() {
    let env = env_with_hosts("[host.box]\nconnect = ['sh', '-c', 'echo; echo Welcome; exec \"$@\"', 'sh']\n");
    let text = env.teamctl(["hosts", "check", "box"]).expect_success();
    assert!(
        text.contains("a start file there prints \"Welcome\"") && text.contains("0.1.0, the same as here"),
        "{text}"
    );
    let check = env.json(["hosts", "check"])["hosts"][0].clone();
    assert_eq!(check["clock_ahead_ms"], 0, "{check}");
    assert!(check["latency_ms"].as_f64().is_some_and(|latency| latency < 1000.0), "{check}");
    assert!(check["tmux"].as_str().is_some_and(|tmux| tmux.starts_with("tmux ")), "{check}");
    env.shut_down();
}

#[test]
fn check_names_programs_with_their_login() {
    let mut env = env_with_hosts("[host.box]\nconnect = 'env'\n");
    let program = "#!/bin/sh\ncase $1 in --version) echo own 1.2.3 ;; --help) echo '--x auth' ;;\n\
                   auth) [ -e \"$TEST_DIR/out/login\" ] ;; esac\n";
    std::fs::create_dir(env.path("out/bin")).unwrap();
    env.write_script("out/bin/own", program);
    let profile =
        "delivery = \"pull\"\nprogram = \"own\"\nversion_args = [\"--version\"]\nhelp_args = [\"--help\"]\n";
    env.write_file("home/.config/teamd/profiles/own.toml", format!("{profile}login_args = [\"auth\"]\n"));
    let path = format!("{}:{}:/usr/bin:/bin", env.path("out/bin").display(), harness::programs().display());
    env.variables.push(("PATH".to_owned(), path));
    let own_line = |args: &[&str]| {
        let text = env.teamctl_with(args, &[]).stdout;
        text.lines().find(|line| line.trim().starts_with("own")).map(str::to_owned).unwrap()
    };
    for args in [&["hosts", "check"][..], &["profiles", "check", "own"]] {
        std::fs::remove_file(env.path("out/login")).ok();
        let line = own_line(args);
        assert!(line.contains("out/bin/own (own 1.2.3), not logged in"), "{line}");
        env.write_file("out/login", "");
        assert!(own_line(args).ends_with("(own 1.2.3), logged in"));
    }
    // A release whose help lacks the command is not asked.
    env.write_script("out/bin/own", &program.replace(" auth'", "'"));
    assert!(own_line(&["hosts", "check"]).ends_with("(own 1.2.3)"));
    env.shut_down();
}

/// Starts a command on a host that prints events until it ends, and waits until it runs there.
fn follow_events(env: &TestEnv, host: &str) -> Child {
    let mut command = env.command("teamctl");
    command.args(["--host", host, "events", "--follow"]).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    env.wait_until("the command runs on the host", || (!commands_on_host(env).is_empty()).then_some(()));
    child
}

/// The processes that run `events --follow` there. The process here has the option `--host`.
fn commands_on_host(env: &TestEnv) -> Vec<String> {
    let is_there = |line: &String| line.contains("events --follow") && !line.contains("--host");
    TaggedProcesses::with_tag(&env.process_tag()).list().into_iter().filter(is_there).collect()
}

fn wait_until_command_on_host_ends(env: &TestEnv) {
    env.wait_until("the command on the host ends", || commands_on_host(env).is_empty().then_some(()));
}

/// SIGHUP is caught last.
#[cfg(target_os = "linux")]
fn wait_until_signals_are_caught(env: &TestEnv, child: &Child) {
    env.wait_until("the command here catches signals", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        (u64::from_str_radix(mask.trim(), 16).ok()? & 1 != 0).then_some(())
    });
}

#[cfg(not(target_os = "linux"))]
fn wait_until_signals_are_caught(_: &TestEnv, _: &Child) {}

#[test]
fn signals_reach_the_command_on_the_host_and_a_lost_caller_ends_it() {
    let env = env_with_hosts("[host.box]\nconnect = 'env'\nroot = 'DIR/root'\n");
    env.start_daemon();
    for (signal, code) in [("-INT", 128 + 2), ("-TERM", 128 + 15), ("-HUP", 128 + 1)] {
        let mut child = follow_events(&env, "box");
        wait_until_signals_are_caught(&env, &child);
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let status = env.wait_until("the command here ends", || child.try_wait().unwrap());
        assert_eq!(status.code(), Some(code), "{signal}");
        wait_until_command_on_host_ends(&env);
    }
    let mut child = follow_events(&env, "box");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until_command_on_host_ends(&env);
    env.shut_down();
}

#[test]
fn input_is_sent_only_to_commands_that_read_it() {
    let env = env_with_hosts("[host.box]\nconnect = 'env'\nroot = 'DIR/root'\n");
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    let run = |args: &[&str], input: &[u8]| {
        let mut command = env.command("sh");
        command.args(["-c", "teamctl \"$@\"; cat >\"$TEST_DIR/out/rest\"", "sh"]).args(args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        assert!(child.wait().unwrap().success());
        env.read("out/rest")
    };
    let long = "x".repeat(200_000);
    assert_eq!(run(&["--host", "box", "send", "team-lead", "-"], long.as_bytes()), "");
    assert_eq!(run(&["--host", "box", "send", "team-lead", "hello"], b"next line"), "next line");
    let texts: Vec<Value> =
        env.inbox("survey", "team-lead").iter().map(|message| message["text"].clone()).collect();
    assert_eq!(texts, [long.as_str(), "hello"]);
    env.shut_down();
}

#[test]
fn variables_that_name_a_member_or_a_root_stay_here() {
    let env = env_with_hosts("[host.box]\nconnect = ['sh', '-c', 'env >DIR/seen; exec \"$@\"', 'sh']\n");
    let variables = [
        ("TEAMD_TOKEN", "secret"),
        ("TEAMD_TEAM", "other"),
        ("TEAMD_HOST", "box"),
        ("CLAUDE_CONFIG_DIR", "/nowhere"),
        ("CLAUDECODE", "1"),
        ("KEPT", "yes"),
    ];
    let output = env.teamctl_with(&["status"], &variables);
    assert_eq!(output.code, 69, "{output:?}");
    let seen = env.read("seen");
    assert!(seen.contains("KEPT=yes\n") && seen.contains("HOME="), "{seen}");
    for name in ["TEAMD_", "CLAUDE"] {
        assert!(!seen.lines().any(|line| line.starts_with(name)), "{seen}");
    }
    assert!(output.stderr.contains("teamctl --host box up"), "{output:?}");
    env.shut_down();
}

#[test]
fn command_for_another_machine_goes_no_further() {
    let env = env_with_hosts(
        "[host.box]\nconnect = ['env', 'TEAMD_HOST=box']\n[host.far]\nconnect = 'env'\nteamctl = 'DIR/out/far'\n",
    );
    env.write_script(
        "out/far",
        "#!/bin/sh\nexport TEAMD_HOST_OF_CALLER=far\nexec teamctl --host box status\n",
    );
    let error = env.teamctl(["--host", "box", "status"]).expect_failure(69);
    assert!(error.contains("teamctl --host box up"), "{error}");
    let error = env.teamctl(["--host", "far", "status"]).expect_failure(64);
    assert!(error.contains("this one runs on far for another machine"), "{error}");
    env.shut_down();
}

#[test]
fn team_of_the_variable_is_the_team_on_the_host() {
    let env = env_with_hosts("[host.box]\nconnect = 'env'\nroot = 'DIR/root'\n");
    env.start_daemon();
    env.teamctl(["create", "other"]).expect_success();
    // `other` is the only team there.
    let delete = |team: &str| {
        env.teamctl_with(&["--host", "box", "delete"], &[("TEAMD_TEAM", team), ("TEAMD_ROOT", "/x")])
    };
    let error = delete("survey").expect_failure(67);
    assert!(error.contains("survey") && env.path("root/teams/other").is_dir(), "{error}");
    assert_eq!(delete("other").code, 0);
    assert!(!env.path("root/teams/other").exists());
    env.shut_down();
}

#[test]
fn host_without_a_command_for_terminals_says_so_only_in_a_terminal() {
    let env = env_with_hosts("[host.box]\nconnect = 'env'\n");
    env.teamctl(["--host", "box", "attach", "ann"]).expect_failure(67);
    let done = env.path("out/done").display().to_string();
    let script = format!("teamctl --host box attach ann; echo $? >{done}; exec cat");
    let pane = open_terminal(&env, &script);
    env.wait_until("the command ends", || Some(()).filter(|()| env.read("out/done") == "78\n"));
    let screen = env.tmux(["capture-pane", "-p", "-t", &pane]);
    assert!(screen.contains("the host has no key `attach`"), "{screen}");
    env.tmux(["kill-pane", "-t", &pane]);
    env.shut_down();
}
