//! A damaged or missing config.json, a file size limit and a full disk: no member is lost, and a
//! copy of each damaged file is kept.

use harness::TestEnv;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn config(env: &TestEnv) -> PathBuf {
    env.root().join("teams/survey/config.json")
}

/// Truncates and writes in place, as old clients do.
#[allow(clippy::disallowed_methods, reason = "this is the foreign writer")]
fn write_in_place(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

/// Waits until config.json is valid and has the lead and ann, and returns it.
fn wait_for_whole_config(env: &TestEnv) -> Value {
    env.wait_until("the config is valid and has both members", || {
        let config: Value = serde_json::from_slice(&std::fs::read(config(env)).ok()?).ok()?;
        let names: Vec<&str> =
            config["members"].as_array()?.iter().filter_map(|member| member["name"].as_str()).collect();
        (names == ["team-lead", "ann"]).then(|| config.clone())
    })
}

/// The texts of the copies of damaged files in the state directory.
fn corrupt_copies(env: &TestEnv) -> Vec<String> {
    let base = env.path("state/teamd");
    let directories = std::fs::read_dir(base).unwrap().map(|entry| entry.unwrap().path().join("corrupt"));
    let files = directories.flat_map(|directory| std::fs::read_dir(directory).into_iter().flatten());
    files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn damaged_config_is_rewritten_and_a_copy_kept() {
    let env = TestEnv::with_daemon();
    env.teamctl(["create", "survey", "--description", "what there is"]).expect_success();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    let initial_config = wait_for_whole_config(&env);
    let unclosed_string = initial_config.to_string().replace("\"what there is\"", "\"what there is");
    for damage in ["", &unclosed_string] {
        write_in_place(&config(&env), damage);
        // A command that reads the config meanwhile waits until it is repaired.
        env.teamctl(["send", "ann", "are you there?"]).expect_success();
        assert_eq!(wait_for_whole_config(&env), initial_config);
        assert!(corrupt_copies(&env).iter().any(|copy| copy == damage), "{:?}", corrupt_copies(&env));
    }
    std::fs::remove_file(config(&env)).unwrap();
    assert_eq!(wait_for_whole_config(&env), initial_config);
    assert_eq!(corrupt_copies(&env).len(), 2, "each damaged text is copied once");
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    env.shut_down();
}

#[test]
fn empty_config_is_rewritten_by_the_next_daemon() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    let initial_config = wait_for_whole_config(&env);
    env.kill_process(env.daemon_pid());
    write_in_place(&config(&env), "");
    env.start_daemon();
    assert_eq!(wait_for_whole_config(&env), initial_config);
    env.shut_down();
}

#[test]
fn permission_mode_survives_a_rewritten_config() {
    let env = TestEnv::with_team();
    env.write_profile(
        "modal",
        "delivery = 'turn'\nprogram = 'true'\n[modes]\ndefault = []\nacceptEdits = ['e']\n",
    );
    env.teamctl(["spawn", "ann", "--profile", "modal"]).expect_success();
    env.teamctl(["mode", "ann", "acceptEdits"]).expect_success();
    let mode = || wait_for_whole_config(&env)["members"][1]["mode"].clone();
    env.wait_until("the config has the new mode", || (mode() == "acceptEdits").then_some(()));
    write_in_place(&config(&env), "");
    assert_eq!(mode(), "acceptEdits");
    env.kill_process(env.daemon_pid());
    write_in_place(&config(&env), "");
    env.start_daemon();
    assert_eq!(mode(), "acceptEdits");
    env.shut_down();
}

#[test]
fn foreign_team_config_is_not_rewritten() {
    let env = TestEnv::with_team();
    let text = std::fs::read_to_string(config(&env)).unwrap();
    let other_team = env.root().join("teams/other");
    std::fs::create_dir_all(other_team.join("inboxes")).unwrap();
    write_in_place(&other_team.join("config.json"), &text.replace("survey", "other"));
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    write_in_place(&other_team.join("config.json"), "");
    // The daemon handles the foreign config before this one, so that the check below is not too
    // early.
    env.teamctl(["spawn", "ann", "-t", "survey", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    write_in_place(&config(&env), "");
    wait_for_whole_config(&env);
    assert_eq!(std::fs::read(other_team.join("config.json")).unwrap(), b"");
    env.shut_down();
}

#[test]
fn file_size_limit_leaves_no_partial_state() {
    use rustix::process::{Resource, Rlimit};
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    env.teamctl(["send", "ann", "the first"]).expect_success();
    let inbox = env.inbox("survey", "ann");
    let mut sender = env.command("sh");
    sender.args(["-c", "ulimit -f 0; exec teamctl send ann more"]);
    let output = sender.output().unwrap();
    assert_eq!(output.status.code(), Some(74), "{output:?}");
    assert_eq!(env.inbox("survey", "ann"), inbox);
    let daemon = env.daemon_pid();
    let set_limit = |limit| platform::system().set_limit_of(daemon, Resource::Fsize, limit).unwrap();
    let initial_limit = set_limit(Rlimit { current: Some(0), maximum: None });
    env.teamctl(["create", "other"]).expect_failure(74);
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    set_limit(initial_limit);
    env.teamctl(["create", "other"]).expect_success();
    env.shut_down();
}

/// The end of an agent needs no write, so a full disk does not delay it.
#[test]
fn member_ends_on_a_full_disk_and_is_removed_later() {
    let Some(disk) = harness::SmallDisk::mount(16) else {
        return harness::record_skip("full-disk-ends", "no right to mount a small file system");
    };
    let env = TestEnv::in_directory(disk.path());
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    let spawn = |name: &str| {
        env.json(["spawn", name, "--", &env.scripted_agent_path(), "children"])["pid"].as_u64().unwrap()
    };
    let agents =
        ["ann", "bob"].map(spawn).map(|pid| harness::TaggedProcesses::single(u32::try_from(pid).unwrap()));
    disk.fill();
    env.teamctl(["send", "ann", "x"]).expect_failure(74);
    let outputs =
        [env.teamctl(["kill", "ann"]), env.teamctl(["shutdown", "bob", "--grace", "100ms", "--force"])];
    for (agent, output) in agents.iter().zip(outputs) {
        assert!(agent.exit_within(harness::TIMEOUT), "the agent has ended: {output:#?}");
        assert!(output.code == 1 && output.stdout.contains("it is still on the team"), "{output:#?}");
    }
    let team = &env.json(["status"])["teams"][0];
    let names = |key: &str| {
        let members = team[key].as_array().unwrap().iter();
        members.map(|member| member["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (names("members"), names("past_members")),
        (vec!["team-lead".to_owned(), "ann".into(), "bob".into()], vec!["ann".into(), "bob".into()])
    );
    let states: Vec<_> = (1..3).map(|index| team["members"][index]["lifecycle"].as_str().unwrap()).collect();
    assert_eq!(states, ["exited", "exited"]);
    disk.free();
    // This daemon would retry within 30 s; the next daemon does so at its start.
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    env.wait_until("both members are removed", || {
        ["ann", "bob"].iter().all(|name| env.member(name).is_none()).then_some(())
    });
    env.shut_down_after_kills();
}

/// Another program was killed while it wrote the config of a team that the daemon does not know.
#[test]
fn damaged_config_of_an_unknown_team_is_named_and_the_team_can_be_deleted() {
    let env = TestEnv::with_daemon();
    env.write_file("root/teams/hand/config.json", r#"{"name":"hand","memb"#);
    let status = env.teamctl(["status"]).expect_success();
    assert!(
        status.contains("cannot parse") && status.contains("what is damaged: teamctl doctor"),
        "{status}"
    );
    for command in [&["spawn", "ann", "-t", "hand", "--", "true"][..], &["delete", "hand"]] {
        let error = env.teamctl_with(command, &[]).expect_failure(65);
        assert!(error.contains("remove the team with: teamctl delete hand --force"), "{error}");
    }
    env.teamctl(["delete", "hand", "--force"]).expect_success();
    assert!(!env.root().join("teams/hand").exists());
    env.teamctl(["create", "hand"]).expect_success();
    env.teamctl(["delete", "hand"]).expect_success();
    env.shut_down();
}
