//! A limit of the kernel that prevents the start of a member is named, with how to raise it.

use harness::TestEnv;

/// In a mount namespace, `/dev/pts` gets a mount of its own with space for few pseudo-terminals.
const FEW_TERMINALS: &str = "mount -t devpts devpts /dev/pts -o newinstance,ptmxmode=0666,max=5 && \
    mount --bind /dev/pts/ptmx /dev/ptmx && exec \"$0\" \"$@\"";

#[test]
#[allow(clippy::print_stderr, reason = "the reason for a skipped test")]
fn limit_of_terminals_is_named() {
    if harness::skips_without(harness::Facility::SystemLimits) {
        return;
    }
    let env = TestEnv::new();
    let teamctl = harness::programs().join("teamctl");
    let in_namespace = |args: &[&str]| {
        let mut command = env.command("unshare");
        command.args(["--mount", "sh", "-c", FEW_TERMINALS]).arg(&teamctl).args(args);
        command.output().unwrap()
    };
    if !in_namespace(&["--version"]).status.success() {
        eprintln!("skipped: this process may not make a mount namespace");
        return env.shut_down();
    }
    let up = in_namespace(&["up", "-L", "own"]);
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
    env.teamctl(["create", "survey"]).expect_success();
    let spawns = (0..5).map(|n| env.teamctl(["spawn", &format!("a{n}"), "--", "sleep", "3600"]));
    let results: Vec<_> = spawns.collect();
    let refused = results.iter().find(|result| result.code != 0).expect("five terminals are too few");
    assert_eq!(refused.code, 74, "{refused:?}");
    for part in [
        "5 of 5 pseudo-terminals of /dev/pts (mount option max) are in use",
        "mount -o remount,max=10 /dev/pts",
    ] {
        assert!(refused.stderr.contains(part), "{part}: {refused:?}");
    }
    // A member without a pane has a terminal too, which its shim opens.
    let headless = env.teamctl(["spawn", "bob", "--backend", "in-process", "--", "sleep", "3600"]);
    assert!(headless.code == 74 && headless.stderr.contains("5 of 5 pseudo-terminals"), "{headless:?}");
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    env.shut_down();
}

#[test]
fn limit_of_descriptors_is_named() {
    let env = TestEnv::new();
    let mut teamd = env.command("sh");
    teamd.args(["-c", "ulimit -n 64; exec \"$0\" -S \"$1\""]).arg(harness::programs().join("teamd"));
    let mut teamd = teamd.arg(env.tmux_socket()).stdout(std::process::Stdio::null()).spawn().unwrap();
    env.wait_for_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    let spawn =
        |n: usize| env.teamctl(["spawn", &format!("a{n}"), "--backend", "in-process", "--", "sleep", "3600"]);
    let refused = (0..64).map(spawn).find(|result| result.code != 0).expect("64 descriptors are too few");
    assert!(
        refused.code == 74 && refused.stderr.contains("raise the hard limit of descriptors"),
        "{refused:#?}"
    );
    // Some are kept free for people.
    env.teamctl(["status"]).expect_success();
    env.teamctl(["kill", "a0"]).expect_success();
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    env.teamctl(["down"]).expect_success();
    teamd.wait().unwrap();
    env.shut_down();
}
