//! Variables for a member on another host.

use super::connect_words;
use harness::{TaggedProcesses, TestEnv, run_command};
use serde_json::json;
use std::process::Stdio;

/// The command lines of all processes of both hosts.
fn command_lines(home: &TestEnv, annex: &TestEnv) -> Vec<String> {
    [home, annex].iter().flat_map(|env| TaggedProcesses::with_tag(&env.process_tag()).list()).collect()
}

#[test]
fn values_of_variables_are_in_no_arguments() {
    let (home, annex) = (TestEnv::with_team(), TestEnv::with_daemon());
    home.write_file(
        "home/.config/teamd/hosts.toml",
        format!("[host.devbox]\nconnect = {}\n", json!(connect_words(&annex))),
    );
    let file = annex.path("out/variables");
    let script = format!("echo \"$TOKEN $NODE_OPTIONS\" >{}; exec sleep 3600", file.display());
    let mut spawn = home.command("teamctl");
    spawn.args([
        "spawn",
        "ann",
        "--host",
        "devbox",
        "--env",
        "TOKEN",
        "--env",
        "NODE_OPTIONS=",
        "--prompt",
        "-",
    ]);
    spawn.args(["--", "sh", "-c", &script]).env("TOKEN", "se cret").stdin(Stdio::piped());
    let mut spawn = spawn.stdout(Stdio::null()).spawn().unwrap();
    // The command there reads the prompt.
    let lines = home.wait_until("the command there runs", || {
        let lines = command_lines(&home, &annex);
        lines.iter().any(|line| line.contains("-t survey spawn ann")).then_some(lines)
    });
    assert!(!lines.iter().any(|line| line.contains("se cret")), "{lines:?}");
    drop(spawn.stdin.take());
    assert!(spawn.wait().unwrap().success());
    annex.wait_until("the agent runs", || file.exists().then_some(()));
    annex.wait_until("the agent has its variables", || {
        (std::fs::read_to_string(&file).unwrap() == "se cret \n").then_some(())
    });
    let lines = command_lines(&home, &annex);
    assert!(!lines.iter().any(|line| line.contains("se cret")), "{lines:?}");

    // The command there reads the question.
    let mut ask = home.command("teamctl");
    ask.args(["--host", "devbox", "ask", "-", "--env", "TOKEN", "--", "sh", "-c", "echo \"$TOKEN\""]);
    let mut ask = ask.env("TOKEN", "se cret").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = home.wait_until("the command there runs", || {
        let lines = command_lines(&home, &annex);
        lines.iter().any(|line| line.contains("teamctl ask -")).then_some(lines)
    });
    assert!(!lines.iter().any(|line| line.contains("se cret")), "{lines:?}");
    drop(ask.stdin.take());
    let output = ask.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), "se cret");

    let mut unknown = home.command("teamctl");
    unknown.args(["spawn", "bob", "--host", "devbox", "--env", "NO_SUCH", "--", "cat"]);
    let error = run_command(unknown).expect_failure(64);
    assert!(error.contains("there is no variable of that name"), "{error}");
    home.shut_down();
    annex.shut_down();
}
