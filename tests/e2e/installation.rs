//! Programs at the paths where `make install` and the packages install them: two in `bin`, which
//! start the programs in `libexec/teamd`.

use harness::{FaultTarget, TestEnv};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies the programs below `prefix`. With links, a program would find the others in the directory
/// where they were built.
fn install(prefix: &Path) {
    let directories = [("bin", &["teamctl", "teamd"][..]), ("libexec/teamd", &["teamd-shim"])];
    for (directory, names) in directories {
        let directory = prefix.join(directory);
        std::fs::create_dir_all(&directory).unwrap();
        let programs = names.iter().map(|name| harness::programs().join(name));
        assert!(Command::new("cp").args(programs).arg(&directory).status().unwrap().success());
    }
}

#[test]
fn programs_in_bin_start_those_in_libexec() {
    let env = TestEnv::new();
    let prefix = env.path("prefix");
    install(&prefix);
    let [bin, libexec] =
        ["bin", "libexec/teamd"].map(|directory: &str| -> PathBuf { prefix.join(directory) });
    let teamctl = |arguments: &[&str]| {
        let output = env.command(bin.join("teamctl")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let server = format!("up-{}", env.process_tag().len());
    teamctl(&["up", "-L", &server]);
    teamctl(&["create", "survey"]);
    teamctl(&["spawn", "ann", "--profile", "worker"]);
    let daemons = env.processes_of(FaultTarget::Daemon).concat();
    assert!(daemons.contains(&bin.join("teamd").display().to_string()), "{daemons}");
    let shims = env.processes_of(FaultTarget::Shim).concat();
    assert!(shims.contains(&libexec.join("teamd-shim").display().to_string()), "{shims}");
    // The error names the missing program and the command that installs it.
    let output = env.command(bin.join("teamctl")).arg("top").output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("teamd-top") && error.contains("make install"), "{error}");
    // The hooks in an agent program's settings start the installed shim.
    teamctl(&["setup", "codex", "--write"]);
    let settings = env.read("home/.codex/hooks.json");
    assert!(settings.contains(&libexec.join("teamd-shim").display().to_string()), "{settings}");
    env.shut_down();
}

#[test]
fn programs_that_an_upgrade_removed_are_named() {
    let env = TestEnv::new();
    let prefix = env.path("prefix");
    install(&prefix);
    let teamctl = |arguments: &[&str]| {
        let output = env.command(prefix.join("bin/teamctl")).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let server = format!("up-{}", env.process_tag().len());
    assert_eq!(teamctl(&["up", "-L", &server]).0, Some(0));
    assert_eq!(teamctl(&["create", "survey"]).0, Some(0));
    assert!(
        Command::new("rm")
            .arg("-r")
            .arg(prefix.join("libexec"))
            .arg(prefix.join("bin/teamd"))
            .status()
            .unwrap()
            .success()
    );
    for backend in ["tmux", "in-process"] {
        let (_, text) = teamctl(&["spawn", "ann", "--backend", backend, "--", "sleep", "3600"]);
        assert!(text.contains("teamd-shim is gone") && text.contains("down --suspend"), "{backend}: {text}");
    }
    if !harness::skips_without(harness::Facility::OpenFiles) {
        let (_, text) = teamctl(&["doctor"]);
        assert!(text.contains("was replaced or removed while teamd runs"), "{text}");
    }
    assert_eq!(teamctl(&["down"]).0, Some(0));
    env.shut_down();
}
