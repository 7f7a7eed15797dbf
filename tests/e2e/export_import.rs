//! A team that is packed, and made again elsewhere.

use harness::TestEnv;
use serde_json::json;

fn env_with_team() -> TestEnv {
    let env = TestEnv::new();
    env.start_daemon();
    env.write_file("policy.toml", "[policy]\npermissions = \"person\"\n");
    let policy = env.path("policy.toml").display().to_string();
    env.teamctl(["create", "survey", "--description", "counts", "--policy", &policy]).expect_success();
    // It reads nothing.
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

fn archive(env: &TestEnv) -> String {
    env.path("out/survey.tar").display().to_string()
}

#[test]
fn imported_team_equals_the_exported_one() {
    let env = env_with_team();
    let ran = env.teamctl(["export", "survey", "-o", &archive(&env)]).expect_success();
    assert!(ran.contains("survey is packed in"), "{ran}");
    assert_eq!(env.teamctl(["export", "-o", &archive(&env)]).code, 73);
    let packed = archive(&env);
    for ran in [env.teamctl(["import", &packed]), env.teamctl(["import", &packed, "-t", "survey"])] {
        let taken = ran.expect_failure(73);
        assert!(taken.contains("with -t NAME") && !taken.contains("--unique"), "{taken}");
    }
    let other = TestEnv::with_daemon();
    let ran = other.teamctl(["import", &archive(&env)]).expect_success();
    assert!(ran.contains("Its members were ann: start them with teamctl spawn."), "{ran}");
    assert_eq!(other.inbox("survey", "ann"), env.inbox("survey", "ann"));
    let subjects = |env: &TestEnv| env.json(["task", "list"])["tasks"].clone();
    assert_eq!(subjects(&other), subjects(&env));
    let config = other.read_config();
    assert_eq!((&config["theirs"], &config["description"]), (&json!({"n": 1.5}), &"counts".into()));
    assert_eq!(config["members"].as_array().unwrap().len(), 1);
    // No id comes twice, and the policy is there.
    let made = other.json(["task", "create", "next"]);
    assert_eq!(made["task"]["id"], env.json(["task", "create", "next"])["task"]["id"]);
    other.teamctl(["export", "-o", &other.path("out/again.tar").display().to_string()]).expect_success();
    let list = other.command("tar").arg("-tf").arg(other.path("out/again.tar")).output().unwrap();
    assert!(String::from_utf8_lossy(&list.stdout).contains("teamd/policy.json"), "{list:?}");
    let named = other.teamctl(["import", &archive(&env), "-t", "survey-2"]).expect_success();
    assert!(named.contains("imported team survey-2"), "{named}");
    other.shut_down();
    env.shut_down();
}

#[test]
fn invalid_archive_creates_nothing() {
    let env = env_with_team();
    let shell = |line: &str| {
        let ran = env.command("sh").current_dir(env.path("out")).args(["-c", line]).status().unwrap();
        assert!(ran.success(), "{line}");
    };
    env.teamctl(["export", "survey", "-o", &archive(&env)]).expect_success();
    shell(
        "mkdir x; cd x; tar -xf ../survey.tar; ln -sf /etc/passwd teams/survey/inboxes/bob.json; tar -cf ../link.tar .",
    );
    shell(
        "cd x; rm teams/survey/inboxes/bob.json; printf '[' >teams/survey/inboxes/bob.json; tar -cf ../half.tar .",
    );
    shell("head -c 1500 survey.tar >cut.tar; echo no >text.tar; : >empty.tar");
    let path = |name: &str| env.path(&format!("out/{name}.tar")).display().to_string();
    let passwd = env.write_file("out/passwd", "root:x:0:0:root:/root:/bin/sh\n".repeat(40));
    let other = TestEnv::with_daemon();
    for name in ["link", "half", "cut", "text", "empty"] {
        let ran = other.teamctl(["import", &path(name)]);
        assert_eq!(ran.code, 65, "{ran:#?}");
        assert!(!other.path("root/teams/survey").exists(), "{name} has made something");
    }
    for text in [passwd, path("cut")] {
        let said = other.teamctl(["import", &text]).expect_failure(65);
        let line = format!("teamctl: cannot import {text}: it is no tar archive, or only a part of one\n");
        assert_eq!(said, format!("{line}  pack a team with: teamctl export TEAM\n"));
    }
    let missing = other.teamctl(["import", "/nowhere.tar"]);
    assert_eq!(missing.code, 72, "{missing:#?}");
    other.shut_down();
    env.shut_down();
}
