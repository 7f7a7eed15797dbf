//! Bad input: a sentence, the right exit code, nothing half done.

use harness::TestEnv;

fn env_with_team() -> TestEnv {
    let house = TestEnv::with_team();
    house.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    house
}

#[test]
fn unknown_names_suggest_the_nearest() {
    let house = env_with_team();
    let said = house.teamctl(["status", "-t", "survye"]).expect_failure(67);
    assert!(said.contains("survey"), "{said}");
    for verb in [
        ["send", "amn", "hi"],
        ["capture", "amn", "--lines=1"],
        ["shutdown", "amn", "--grace=1s"],
        ["kill", "amn", "amm"],
    ] {
        let said = house.teamctl(verb).expect_failure(67);
        assert!(said.contains("ann"), "{verb:?}: {said}");
    }
    house.teamctl(["send", "", "hi"]).expect_failure(64);
    house.teamctl(["task", "get", "99"]).expect_failure(67);
    house.teamctl(["task", "claim", "99"]).expect_failure(67);
    assert!(!house.path("root/teams/survey/inboxes/amn.json").exists());
    house.shut_down();
}

#[test]
fn member_of_same_name_on_another_team_is_not_used() {
    let house = env_with_team();
    for verb in [
        &["kill", "ann@other"][..],
        &["kill", "ann@"],
        &["shutdown", "ann@other", "--grace=1s"],
        &["interrupt", "ann@other"],
        &["hide", "ann@other"],
        &["mode", "ann@other", "plan"],
        &["inbox", "ann@other"],
        &["logs", "ann@other"],
        &["status", "ann@other"],
        &["wait", "--for", "exit", "ann@other", "--timeout", "1s"],
    ] {
        let ran = house.teamctl_with(&[&["-t", "survey"], verb].concat(), &[]);
        assert!([64, 67].contains(&ran.code), "{ran:#?}");
    }
    assert_eq!(house.inbox("survey", "ann").len(), 0);
    assert_eq!(house.member("ann").unwrap()["lifecycle"], "running");
    house.teamctl(["status", "ANN@Survey"]).expect_success();
    house.teamctl(["send", "ANN@Survey", "hello"]).expect_success();
    house.teamctl(["kill", "ANN@Survey"]).expect_success();
    house.shut_down();
}

#[test]
fn commands_fail_at_once_without_a_daemon() {
    let house = TestEnv::new();
    for verb in [["create", "survey"], ["down", "-q"], ["kill", "ann"]] {
        let ran = house.teamctl(verb);
        assert!([67, 69].contains(&ran.code), "{ran:?}");
    }
    let said = house.teamctl(["create", "survey"]).expect_failure(69);
    assert!(said.contains("teamctl up"), "{said}");
    let status = house.teamctl(["status", "--json"]);
    assert_eq!(status.code, 69);
    assert!(status.json()["daemon"].is_null());
    house.shut_down();
}

#[test]
fn missing_or_old_tmux_is_reported() {
    let house = TestEnv::new();
    let programs = house.path("out/bin");
    std::fs::create_dir(&programs).unwrap();
    let teamd = |house: &TestEnv| {
        let output = house.daemon_command().env("PATH", &programs).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = teamd(&house);
    assert_eq!(code, Some(72), "{said}");
    assert!(said.contains("tmux"), "{said}");
    house.write_script("out/bin/tmux", "#!/bin/sh\necho tmux 3.1c\n");
    let (code, said) = teamd(&house);
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("3.2"), "{said}");
    house.shut_down();
}

#[test]
fn group_writable_root_is_rejected() {
    let house = TestEnv::new();
    std::fs::set_permissions(house.root(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let output = house.daemon_command().output().unwrap();
    assert_eq!(output.status.code(), Some(77), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("chmod"), "{output:?}");
    house.teamctl(["send", "ann", "hi", "-t", "survey"]).expect_failure(77);
    std::fs::set_permissions(house.root(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    house.shut_down();
}

#[test]
fn teammate_cannot_run_lead_commands() {
    let house = env_with_team();
    let script =
        "for verb in 'spawn x -- true' 'kill bob' 'shutdown bob' 'delete survey' 'create other' down; do
        teamctl $verb >>out/said 2>&1; echo $? >>out/codes; done; echo end >>out/codes";
    house
        .teamctl(["spawn", "bob", "--cwd", &house.path("").display().to_string(), "--", "sh", "-c", script])
        .expect_success();
    let codes = house
        .wait_until("it tried", || Some(house.read("out/codes")).filter(|codes| codes.ends_with("end\n")));
    assert_eq!(codes, "77\n77\n77\n77\n77\n77\nend\n", "{}", house.read("out/said"));
    // And not by forgetting who it is either: its token tells.
    let token = "unset TEAMD_MEMBER; teamctl kill bob >out/said2 2>&1; echo $? >out/code2";
    house
        .teamctl(["spawn", "cat", "--cwd", &house.path("").display().to_string(), "--", "sh", "-c", token])
        .expect_success();
    let code =
        house.wait_until("it tried", || Some(house.read("out/code2")).filter(|code| code.ends_with('\n')));
    assert_eq!(code, "77\n", "{}", house.read("out/said2"));
    house.shut_down();
}

#[test]
fn damaged_config_stays_without_a_daemon() {
    let house = env_with_team();
    house.kill_process(house.daemon_pid());
    let config = house.root().join("teams/survey/config.json");
    let damaged = b"{\"name\": \"survey\", \"members\": [";
    std::io::Write::write_all(&mut std::fs::File::create(&config).unwrap(), damaged).unwrap();
    let said = house.teamctl(["send", "ann", "hi"]).expect_failure(65);
    assert!(said.contains("config.json"), "{said}");
    assert_eq!(std::fs::read(&config).unwrap(), damaged);
    house.start_daemon();
    house.shut_down();
}

#[test]
fn foreign_member_is_not_replaced_or_removed() {
    let house = TestEnv::with_team();
    let config = house.root().join("teams/survey/config.json");
    let mut value: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&config).unwrap()).unwrap();
    let bob = serde_json::json!({"agentId": "bob@survey", "name": "bob", "joinedAt": 1, "tmuxPaneId": "%0", "cwd": "/", "subscriptions": []});
    value["members"].as_array_mut().unwrap().push(bob);
    let text = serde_json::to_string_pretty(&value).unwrap();
    std::io::Write::write_all(&mut std::fs::File::create(&config).unwrap(), text.as_bytes()).unwrap();
    house.teamctl(["send", "bob", "hello"]).expect_success();
    house.teamctl(["spawn", "bob", "--", "sleep", "3600"]).expect_failure(73);
    assert_eq!(house.inbox("survey", "bob").len(), 1);
    assert_eq!(house.inbox("survey", "bob")[0]["read"], false);
    assert!(std::fs::read_to_string(&config).unwrap().contains("bob@survey"));
    let said = house.teamctl(["delete", "survey"]).expect_failure(76);
    assert!(said.contains("bob"), "{said}");
    house.teamctl(["delete", "survey", "--force"]).expect_success();
    house.shut_down();
}

#[test]
fn taken_name_of_maximum_length_gets_a_number() {
    let house = TestEnv::with_daemon();
    let longest = "x".repeat(64);
    house.teamctl(["create", &longest]).expect_success();
    let created = house.json(["create", &longest, "--unique"]);
    assert_eq!(created["team_name"].as_str().unwrap(), format!("{}-2", "x".repeat(62)));
    house.shut_down();
}

#[test]
fn usage_errors_show_the_input_and_valid_events() {
    let house = TestEnv::new();
    // Every call here has $TEAMD_ROOT.
    let said = house.teamctl(["deny", "x"]);
    assert!(said.stderr.contains("--reason") && !said.stderr.contains("--root"), "{said:#?}");
    assert_eq!(said.code, 64);
    let said = house.hook("foo", &[]);
    assert!(said.stderr.contains("no such event, only turn-end, prompt,"), "{said:#?}");
    said.expect_success();
    house.assert_no_files();
}

#[test]
fn status_without_daemon_suggests_up() {
    let house = TestEnv::with_team();
    house.kill_process(house.daemon_pid());
    let said = house.teamctl(["status"]).expect_failure(69);
    assert!(said.contains("this is what the files say") && said.contains("teamctl up"), "{said}");
    house.start_daemon();
    house.shut_down();
}

#[test]
fn too_long_socket_path_is_rejected_before_any_write() {
    let house = TestEnv::new();
    let long = house.path(&"x".repeat(120)).display().to_string();
    let tmux = format!("{},0,0", house.tmux_socket().display());
    let said = house.teamctl_with(&["up", "--socket", &format!("{long}/s")], &[("TMUX", &tmux)]);
    assert_eq!(said.code, 78, "{said:#?}");
    assert!(said.stderr.contains("103 bytes"), "{said:#?}");
    house.shut_down();
}

#[test]
fn usage_errors_are_objects_with_json() {
    let house = TestEnv::new();
    for arguments in [&["--json", "send"][..], &["spawn", "--json", "--nope", "ann"], &["--json", "nonsense"]]
    {
        let ran = house.teamctl_with(arguments, &[]);
        assert!(ran.code == 64 && !ran.stderr.is_empty(), "{ran:?}");
        let object: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(object["error"]["kind"], "usage", "{object}");
        assert!(!object["error"]["message"].as_str().unwrap().is_empty(), "{object}");
        let names_it = object["error"]["message"].as_str().unwrap().contains("<NAME>");
        assert_eq!(names_it, arguments == ["--json", "send"], "{object}");
    }
}
