//! Another machine over a real ssh connection: a server of the test on a loopback port. Its commands
//! have another home, root and tmux server, so that this machine acts as two.

use super::{HOSTS_FILE, commands_on_host, follow_events, open_terminal, wait_until_command_on_host_ends};
use harness::{SshServer, TestEnv};
use serde_json::json;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

/// An environment with the host `far`. `None` if there is no ssh server.
fn env_with_ssh(keys: &str) -> Option<(TestEnv, SshServer)> {
    let env = TestEnv::new();
    let Some(server) = SshServer::start(&env) else {
        env.shut_down();
        return None;
    };
    env.write_file(HOSTS_FILE, format!("[host.far]\n{}{keys}", server.connect_line()));
    Some((env, server))
}

/// As [`env_with_ssh`], with the programs in the `PATH` there, a daemon and the team `survey`.
fn env_with_far_team() -> Option<(TestEnv, SshServer)> {
    let (env, server) = env_with_ssh("root = '~/root'\n")?;
    for program in ["teamctl", "teamd", "teamd-shim", "teamd-top"] {
        std::os::unix::fs::symlink(harness::programs().join(program), env.path("far/bin").join(program))
            .unwrap();
    }
    env.teamctl(["--host", "far", "up"]).expect_success();
    env.teamctl(["--host", "far", "create", "survey"]).expect_success();
    Some((env, server))
}

/// Stops the daemon there, and then the environment.
fn shut_down((env, server): (TestEnv, SshServer)) {
    env.teamctl(["--host", "far", "down"]).expect_success();
    drop(server);
    env.shut_down();
}

#[test]
fn check_finds_what_is_there_after_an_installation() {
    let Some((env, server)) = env_with_ssh("root = '~/root'\n") else { return };
    let output = env.teamctl(["hosts", "check", "far"]);
    assert!(output.stdout.contains("there is no teamctl there") && output.code == 72, "{output:?}");
    assert!(output.stdout.contains("teamctl hosts install far"), "{output:?}");
    let error = env.teamctl(["hosts", "install", "far"]).expect_failure(64);
    assert!(error.contains("teamctl hosts install far --yes"), "{error}");
    let installation = env.json(["hosts", "install", "far", "--yes"]);
    let prefix = env.path("far/home/.local").display().to_string();
    assert_eq!(
        (&installation["prefix"], &installation["version"]),
        (&json!(prefix), &json!("teamctl 0.1.0"))
    );
    assert_eq!((&installation["replaced"], &installation["found_in_path"]), (&json!(null), &json!(null)));
    // The home directory's bin is not in the PATH there, so its path goes into the hosts file.
    env.teamctl(["hosts", "check", "far"]).expect_failure(72);
    env.write_file(
        HOSTS_FILE,
        format!("[host.far]\n{}root = '~/root'\nteamctl = '~/.local/bin/teamctl'\n", server.connect_line()),
    );
    let text = env.teamctl(["hosts", "check", "far"]).expect_success();
    for fact in [
        "teamctl     0.1.0, the same as here",
        "teamd       does not run; to start it: teamctl --host far up",
    ] {
        assert!(text.contains(fact), "{text}");
    }
    let check = env.json(["hosts", "check", "far"])["hosts"][0].clone();
    assert_eq!(check["root"], env.path("far/home/root").display().to_string());
    env.teamctl(["--host", "far", "up"]).expect_success();
    let check = env.json(["hosts", "check", "far"])["hosts"][0].clone();
    assert_eq!(check["daemon"]["version"], "0.1.0", "{check}");
    // A second installation keeps the first one, also while a daemon runs. Its undo command works.
    let text = env.teamctl(["hosts", "install", "far", "-y"]).expect_success();
    assert!(text.contains("down --suspend") && text.contains("teamd-old"), "{text}");
    let undo = text.lines().find_map(|line| line.strip_prefix("To undo it, type on far: ")).unwrap();
    assert!(Command::new("sh").args(["-c", undo]).status().unwrap().success());
    shut_down((env, server));
}

#[test]
fn failed_installation_changes_nothing() {
    let Some((env, server)) = env_with_ssh("") else { return };
    let install = |from: &str| env.teamctl(["hosts", "install", "far", "--yes", "--from", from]);
    let error = install("nowhere").expect_failure(72);
    assert!(error.contains("nowhere/bin/teamctl") && error.contains("make install"), "{error}");
    for program in ["bin/teamctl", "bin/teamd"] {
        env.write_file(&format!("prefix/{program}"), "no program");
    }
    for program in ["teamd-shim", "teamd-acp", "teamd-mcp", "teamd-top"] {
        env.write_file(&format!("prefix/libexec/teamd/{program}"), "no program");
    }
    let error = install("prefix").expect_failure(74);
    assert!(
        error.contains("the programs do not run there") && error.contains("nothing was replaced"),
        "{error}"
    );
    let left = harness::files_below(&env.path("far/home/.local"));
    assert!(left.iter().all(|path| path.is_dir()), "{left:?}");
    let machine = "[host.arm]\nconnect = ['sh', '-c', 'printf \"teamd-install\\tLinux\\taarch65\\t/home/me\\t\\n\"', 'sh']\n";
    env.write_file(HOSTS_FILE, machine);
    let error = env.teamctl(["hosts", "install", "arm", "--yes"]).expect_failure(78);
    assert!(error.contains("it is Linux aarch65") && error.contains("--from DIR"), "{error}");
    drop(server);
    env.shut_down();
}

#[test]
fn arguments_input_output_and_exit_codes_go_through_unchanged() {
    let Some((env, server)) = env_with_far_team() else { return };
    let texts = [
        "-it's",
        "a \"b\" 'c' $HOME `id` \\ ! * ~ #",
        "two\nlines ; exit 3 && x",
        "",
        "--host=x",
        "ünï \u{1f600}",
    ];
    for text in texts.iter().filter(|text| !text.is_empty()) {
        env.teamctl(["--host", "far", "send", "team-lead", "--", text]).expect_success();
    }
    let mut command = env.command("teamctl");
    command.args(["--host=far", "send", "team-lead", "-"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all("from stdin\n\n".as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let inbox = env.teamctl(["--host", "far", "--json", "inbox", "team-lead"]).expect_success();
    let inbox: serde_json::Value = serde_json::from_str(&inbox).unwrap();
    let received: Vec<&str> = inbox["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["text"].as_str().unwrap())
        .collect();
    let expected = texts.iter().filter(|text| !text.is_empty()).chain(&["from stdin\n\n"]);
    assert_eq!(received, expected.copied().collect::<Vec<_>>());
    let output = env.teamctl(["--host", "far", "send", "nobody", "x"]);
    assert_eq!((output.code, output.stdout.as_str()), (67, ""));
    assert!(output.stderr.contains("teamctl --host far status"), "{output:?}");
    // A person's windows on the tmux server there are not those of a caller from here.
    let socket = format!(
        "{}/far/run/tmux-{}/teamd",
        env.path("").display(),
        env.path("far").metadata().unwrap().uid()
    );
    let mut tmux = env.command("tmux");
    let variables = tmux.args(["-S", &socket, "show-environment", "-g"]).output().unwrap().stdout;
    let variables = String::from_utf8(variables).unwrap();
    assert!(variables.contains("HOME=") && !variables.contains("TEAMD_HOST"), "{variables}");
    // The team is there, and none is here.
    env.teamctl(["send", "team-lead", "x"]).expect_failure(67);
    let variables = [("TEAMD_HOST", "far"), ("TEAMD_TOKEN", "x")];
    assert_eq!(env.teamctl_with(&["status"], &variables).code, 0);
    shut_down((env, server));
}

#[test]
fn ctrl_c_in_a_terminal_reaches_the_command_there() {
    let Some((env, server)) = env_with_far_team() else { return };
    let done = env.path("out/done").display().to_string();
    let script = format!("trap : INT; teamctl --host far events --follow; echo $? >{done}; exec cat");
    let pane = open_terminal(&env, &script);
    env.wait_until("the command runs there", || (!commands_on_host(&env).is_empty()).then_some(()));
    env.tmux(["send-keys", "-t", &pane, "C-c"]);
    env.wait_until("the command ends", || Some(()).filter(|()| env.read("out/done") == "130\n"));
    wait_until_command_on_host_ends(&env);
    env.tmux(["kill-pane", "-t", &pane]);
    // If the connection is lost, the command there ends too.
    let mut child = follow_events(&env, "far");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until_command_on_host_ends(&env);
    shut_down((env, server));
}

#[test]
fn attach_and_top_get_a_terminal_there() {
    let Some((env, server)) = env_with_far_team() else { return };
    env.teamctl(["--host", "far", "spawn", "ann", "--", "sh", "-c", "echo I am far; exec cat"])
        .expect_success();
    let screen = |pane: &str| env.tmux(["capture-pane", "-p", "-t", pane]);
    for (command, text) in [("attach ann", "I am far"), ("top", "survey")] {
        let pane = open_terminal(&env, &format!("exec teamctl --host far {command}"));
        env.wait_until("the terminal shows the team", || screen(&pane).contains(text).then_some(()));
        match command {
            "top" => env.tmux(["send-keys", "-t", &pane, "q"]),
            _ => env.tmux(["send-keys", "-t", &pane, "C-b", "d"]),
        };
        let panes = || env.tmux(["list-panes", "-a", "-F", "#{pane_id}"]);
        env.wait_until("the command ends", || (!panes().lines().any(|line| line == pane)).then_some(()));
    }
    shut_down((env, server));
}
