//! Checks that the run files in the directory `examples` run unchanged.
//!
//! `RECORDS=write cargo test -p teamd-tests --test e2e run::examples` writes the records of these
//! runs to tests/records, without what is particular to the machine. The simulator of crates/teamd
//! replays them.

use crate::docs::fake_programs::install_fake_programs;
use harness::TestEnv;
use serde_json::{Value, json};

/// An environment with a daemon and a git repository that contains the example. A script stands in
/// for `cargo`.
fn env_with_example(example: &str) -> TestEnv {
    let mut env = TestEnv::with_daemon();
    let path = format!(
        "{}:{}:{}",
        env.path("bin").display(),
        harness::programs().display(),
        std::env::var("PATH").unwrap()
    );
    for directory in ["bin", "project", "project/src", "project/examples"] {
        std::fs::create_dir(env.path(directory)).unwrap();
    }
    let example = format!("{}/../examples/{example}", env!("CARGO_MANIFEST_DIR"));
    std::fs::copy(example, env.path("project/examples/team.toml")).unwrap();
    env.write_file("project/src/lib.rs", "//! Nothing.\npub fn nothing() {}\n");
    env.write_script("bin/cargo", "#!/bin/sh\necho \"$*\" >> \"$TEST_DIR/out/cargo\"\necho Finished >&2\n");
    let git = |args: &[&str]| {
        let status = env.command("git").arg("-C").arg(env.path("project")).args(args).status();
        assert!(status.unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    env.variables.push(("PATH".to_owned(), path));
    env
}

/// Runs an example to its end, and records it.
#[allow(clippy::disallowed_methods, reason = "not below ROOT")]
fn run_recorded(env: &TestEnv, run_file: &str, name: &str) {
    let output = env.teamctl(["run", run_file, "--json", "--record"]);
    assert_eq!(output.code, 0, "{output:#?}");
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    let record = env.wait_until("the record is complete", || {
        let record = std::fs::read_to_string(result["record"].as_str().unwrap()).unwrap();
        record.contains("team_deleted").then_some(record)
    });
    if std::env::var("RECORDS").is_ok_and(|action| action == "write") {
        let path = format!("{}/records/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, without_machine(env, &record)).unwrap();
    }
}

/// A record without the environments and paths of this machine.
fn without_machine(env: &TestEnv, record: &str) -> String {
    let record = record.replace(&env.path("").display().to_string(), "/test/");
    let lines = record.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        for variables in ["/request/spawn/env", "/request/delete_team/git_env"] {
            line.pointer_mut(variables).into_iter().for_each(|variables| *variables = json!({}));
        }
        format!("{line}\n")
    });
    lines.collect()
}

#[test]
fn survey_example_runs() {
    let env = env_with_example("survey.toml");
    run_recorded(&env, "project/examples/team.toml", "survey");
    let report = env.read("project/target/survey/report");
    assert!(report.contains("2 src/lib.rs") && report.contains("Finished"), "{report}");
    env.shut_down();
}

#[test]
fn pipeline_example_runs_in_order() {
    let env = env_with_example("cargo-pipeline.toml");
    run_recorded(&env, "project/examples/team.toml", "cargo-pipeline");
    let commands: Vec<String> =
        env.read("out/cargo").lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    let position = |command: &str| {
        commands
            .iter()
            .position(|entry| entry == command)
            .unwrap_or_else(|| panic!("{command}: {commands:?}"))
    };
    assert!(
        position("clippy") < position("test")
            && position("fmt") < position("test")
            && position("test") < position("bench"),
        "{commands:?}"
    );
    env.shut_down();
}

#[test]
fn review_example_runs() {
    let mut env = TestEnv::with_daemon();
    install_fake_programs(&env);
    let programs = harness::programs();
    let path =
        format!("{}:{}:{}", env.path("bin").display(), programs.display(), std::env::var("PATH").unwrap());
    env.variables.push(("PATH".to_owned(), path));
    run_recorded(&env, "home/project/examples/review.toml", "review");
    assert!(env.read("home/project/target/review/summary.md").contains("nothing"));
    env.shut_down();
}
