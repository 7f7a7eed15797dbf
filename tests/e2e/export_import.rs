//! `teamctl export` and `teamctl import`: a team is restored from its archive, and an invalid
//! archive creates nothing.

use harness::TestEnv;
use serde_json::json;

fn env_with_team() -> TestEnv {
    let env = TestEnv::new();
    env.start_daemon();
    env.write_file("policy.toml", "[policy]\npermissions = \"person\"\n");
    let policy = env.path("policy.toml").display().to_string();
    env.teamctl(["create", "survey", "--description", "counts", "--policy", &policy]).expect_success();
    // The agent reads no messages.
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    env.teamctl(["send", "ann", "h\u{e4}llo \u{1f98a}"]).expect_success();
    let path = "root/teams/survey/config.json";
    let config = env.read(path).replacen('{', "{\"theirs\": {\"n\": 1.50},", 1);
    env.write_file(path, config);
    for subject in ["count", "report"] {
        env.teamctl(["task", "create", subject]).expect_success();
    }
    env.teamctl(["task", "delete", "3"]).expect_success();
    env
}

fn archive_path(env: &TestEnv) -> String {
    env.path("out/survey.tar").display().to_string()
}

#[test]
fn imported_team_equals_the_exported_one() {
    let env = env_with_team();
    let output = env.teamctl(["export", "survey", "-o", &archive_path(&env)]).expect_success();
    assert!(output.contains("survey is packed in"), "{output}");
    assert_eq!(env.teamctl(["export", "-o", &archive_path(&env)]).code, 73);
    let archive = archive_path(&env);
    for output in [env.teamctl(["import", &archive]), env.teamctl(["import", &archive, "-t", "survey"])] {
        let error = output.expect_failure(73);
        assert!(error.contains("with -t NAME") && !error.contains("--unique"), "{error}");
    }
    let other_env = TestEnv::with_daemon();
    let output = other_env.teamctl(["import", &archive_path(&env)]).expect_success();
    assert!(output.contains("Its members were ann: start them with teamctl spawn."), "{output}");
    // A member that is spawned with the name must not work by messages from elsewhere.
    let mut messages = env.inbox("survey", "ann");
    messages.iter_mut().for_each(|message| message["read"] = true.into());
    assert_eq!(other_env.inbox("survey", "ann"), messages);
    let list_tasks = |env: &TestEnv| env.json(["task", "list"])["tasks"].clone();
    assert_eq!(list_tasks(&other_env), list_tasks(&env));
    let config = other_env.read_config();
    assert_eq!((&config["theirs"], &config["description"]), (&json!({"n": 1.5}), &"counts".into()));
    assert_eq!(config["members"].as_array().unwrap().len(), 1);
    // Task ids are not used again, and the policy is kept.
    let reply = other_env.json(["task", "create", "next"]);
    assert_eq!(reply["task"]["id"], env.json(["task", "create", "next"])["task"]["id"]);
    other_env
        .teamctl(["export", "-o", &other_env.path("out/again.tar").display().to_string()])
        .expect_success();
    let tar_output =
        other_env.command("tar").arg("-tf").arg(other_env.path("out/again.tar")).output().unwrap();
    assert!(String::from_utf8_lossy(&tar_output.stdout).contains("teamd/policy.json"), "{tar_output:?}");
    let output = other_env.teamctl(["import", &archive_path(&env), "-t", "survey-2"]).expect_success();
    assert!(output.contains("imported team survey-2"), "{output}");
    other_env.shut_down();
    env.shut_down();
}

#[test]
fn invalid_archive_creates_nothing() {
    let env = env_with_team();
    let run_shell = |line: &str| {
        let status = env.command("sh").current_dir(env.path("out")).args(["-c", line]).status().unwrap();
        assert!(status.success(), "{line}");
    };
    env.teamctl(["export", "survey", "-o", &archive_path(&env)]).expect_success();
    run_shell(
        "mkdir x; cd x; tar -xf ../survey.tar; ln -sf /etc/passwd teams/survey/inboxes/bob.json; tar -cf ../link.tar .",
    );
    run_shell(
        "cd x; rm teams/survey/inboxes/bob.json; printf '[' >teams/survey/inboxes/bob.json; tar -cf ../half.tar .",
    );
    run_shell("head -c 1500 survey.tar >cut.tar; echo no >text.tar; : >empty.tar");
    let path = |name: &str| env.path(&format!("out/{name}.tar")).display().to_string();
    let passwd = env.write_file("out/passwd", "root:x:0:0:root:/root:/bin/sh\n".repeat(40));
    let other_env = TestEnv::with_daemon();
    for name in ["link", "half", "cut", "text", "empty"] {
        let output = other_env.teamctl(["import", &path(name)]);
        assert_eq!(output.code, 65, "{output:#?}");
        assert!(!other_env.path("root/teams/survey").exists(), "no team is created from {name}");
    }
    for archive in [passwd, path("cut")] {
        let error = other_env.teamctl(["import", &archive]).expect_failure(65);
        let line = format!("teamctl: cannot import {archive}: it is no tar archive, or only a part of one\n");
        assert_eq!(error, format!("{line}  pack a team with: teamctl export TEAM\n"));
    }
    let output = other_env.teamctl(["import", "/nowhere.tar"]);
    assert_eq!(output.code, 72, "{output:#?}");
    other_env.shut_down();
    env.shut_down();
}

#[test]
fn archive_with_commands_is_shown_and_needs_yes() {
    let env = env_with_team();
    env.write_file("policy.toml", "[policy]\ncommands = \"any\"\n");
    env.teamctl(["policy", &env.path("policy.toml").display().to_string()]).expect_success();
    env.teamctl(["task", "create", "build", "--command", "make all && touch built"]).expect_success();
    env.teamctl(["export", "survey", "-o", &archive_path(&env)]).expect_success();
    let other_env = TestEnv::with_daemon();
    let archive = archive_path(&env);
    let error = other_env.teamctl(["import", &archive]).expect_failure(76);
    for shown in
        ["task 4: make all && touch built", "commands: any", &format!("teamctl import {archive} --yes")]
    {
        assert!(error.contains(shown), "{error}");
    }
    assert!(!other_env.path("root/teams/survey").exists());
    let output = other_env.teamctl(["import", &archive, "--yes"]).expect_success();
    assert!(
        output.contains("task 4: make all && touch built") && output.contains("commands: any"),
        "{output}"
    );
    other_env.shut_down();
    env.shut_down();
}

#[test]
fn oversized_entry_and_second_policy_are_refused() {
    let env = env_with_team();
    env.teamctl(["export", "survey", "-o", &archive_path(&env)]).expect_success();
    let run_shell = |line: &str| {
        let status = env.command("sh").current_dir(env.path("out")).args(["-c", line]).status().unwrap();
        assert!(status.success(), "{line}");
    };
    // The entry is a hole of 2 GiB, so the archive takes no room. Its size is in the header.
    run_shell("mkdir -p big/teams/survey && truncate -s 2G big/teams/survey/config.json");
    run_shell("tar -cf - -C big teams | head -c 10000 >big.tar && truncate -s 2G big.tar");
    run_shell(
        "mkdir two && cd two && tar -xf ../survey.tar && tar --hard-dereference -cf ../two.tar teams tasks teamd teamd",
    );
    let other_env = TestEnv::with_daemon();
    for (name, reason) in [("big", "too large"), ("two", "there twice")] {
        let archive = env.path(&format!("out/{name}.tar")).display().to_string();
        // Less memory than the entry has.
        let script = format!("ulimit -v 500000; exec teamctl import {archive}");
        let output = other_env.command("sh").args(["-c", &script]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(65) && error.contains(reason), "{name}: {output:?}");
    }
    other_env.shut_down();
    env.shut_down();
}
