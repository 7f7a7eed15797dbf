//! Checks that the run files in the directory `examples` run unchanged.

use harness::TestEnv;

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

#[test]
fn survey_example_runs() {
    let env = env_with_example("survey.toml");
    let output = env.teamctl(["run", "project/examples/team.toml", "--json"]);
    assert_eq!(output.code, 0, "{output:#?}");
    let report = env.read("project/target/survey/report");
    assert!(report.contains("2 src/lib.rs") && report.contains("Finished"), "{report}");
    env.shut_down();
}

#[test]
fn pipeline_example_runs_in_order() {
    let env = env_with_example("cargo-pipeline.toml");
    let output = env.teamctl(["run", "project/examples/team.toml", "--json"]);
    assert_eq!(output.code, 0, "{output:#?}");
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
