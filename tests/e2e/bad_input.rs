//! Invalid input, missing permissions and missing programs: the error message, the exit code, and
//! no partial change.

use harness::TestEnv;

fn env_with_team() -> TestEnv {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    env
}

#[test]
fn unknown_names_suggest_the_nearest() {
    let env = env_with_team();
    let error = env.teamctl(["status", "-t", "survye"]).expect_failure(67);
    assert!(error.contains("survey"), "{error}");
    for command in [
        ["send", "amn", "hi"],
        ["capture", "amn", "--lines=1"],
        ["shutdown", "amn", "--grace=1s"],
        ["kill", "amn", "amm"],
    ] {
        let error = env.teamctl(command).expect_failure(67);
        assert!(error.contains("ann"), "{command:?}: {error}");
    }
    env.teamctl(["send", "", "hi"]).expect_failure(64);
    env.teamctl(["task", "get", "99"]).expect_failure(67);
    env.teamctl(["task", "claim", "99"]).expect_failure(67);
    assert!(!env.path("root/teams/survey/inboxes/amn.json").exists());
    env.shut_down();
}

#[test]
fn member_of_same_name_on_another_team_is_not_used() {
    let env = env_with_team();
    for command in [
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
        let output = env.teamctl_with(&[&["-t", "survey"], command].concat(), &[]);
        assert!([64, 67].contains(&output.code), "{output:#?}");
    }
    assert_eq!(env.inbox("survey", "ann").len(), 0);
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    env.teamctl(["status", "ANN@Survey"]).expect_success();
    env.teamctl(["send", "ANN@Survey", "hello"]).expect_success();
    env.teamctl(["kill", "ANN@Survey"]).expect_success();
    env.shut_down();
}

#[test]
fn commands_fail_at_once_without_a_daemon() {
    let env = TestEnv::new();
    for command in [["create", "survey"], ["down", "-q"], ["kill", "ann"]] {
        let output = env.teamctl(command);
        assert!([67, 69].contains(&output.code), "{output:?}");
    }
    let error = env.teamctl(["create", "survey"]).expect_failure(69);
    assert!(error.contains("teamctl up"), "{error}");
    let status = env.teamctl(["status", "--json"]);
    assert_eq!(status.code, 69);
    assert!(status.json()["daemon"].is_null());
    env.shut_down();
}

#[test]
fn missing_or_old_tmux_is_reported() {
    let env = TestEnv::new();
    let programs = env.path("out/bin");
    std::fs::create_dir(&programs).unwrap();
    let run_teamd = |env: &TestEnv| {
        let output = env.daemon_command().env("PATH", &programs).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, error) = run_teamd(&env);
    assert_eq!(code, Some(72), "{error}");
    assert!(error.contains("tmux"), "{error}");
    env.write_script("out/bin/tmux", "#!/bin/sh\necho tmux 3.1c\n");
    let (code, error) = run_teamd(&env);
    assert_eq!(code, Some(78), "{error}");
    assert!(error.contains("3.2"), "{error}");
    env.shut_down();
}

#[test]
fn group_writable_root_is_rejected() {
    let env = TestEnv::new();
    std::fs::set_permissions(env.root(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let output = env.daemon_command().output().unwrap();
    assert_eq!(output.status.code(), Some(77), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("chmod"), "{output:?}");
    env.teamctl(["send", "ann", "hi", "-t", "survey"]).expect_failure(77);
    std::fs::set_permissions(env.root(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    env.shut_down();
}

#[test]
fn environment_of_an_ended_spawn_does_not_act_for_its_namesake() {
    if harness::skips_without(harness::Facility::Subreaper) {
        return;
    }
    let env = env_with_team();
    let first = env.spawn_member("survey", "eve");
    env.teamctl_as(&first, &["inbox"]).expect_success();
    let mut mcp = env.mcp_as(&first);
    env.teamctl(["kill", "eve"]).expect_success();
    let second = env.spawn_member("survey", "eve");
    env.teamctl(["send", "eve", "for the second"]).expect_success();
    let commands: [&[&str]; 5] = [
        &["inbox", "--unread", "--mark-read"],
        &["send", "team-lead", "hi"],
        &["task", "create", "dig"],
        &["answer-shutdown", "shutdown-1@eve", "--approve"],
        &["status"],
    ];
    for command in commands {
        let error = env.teamctl_as(&first, command).expect_failure(77);
        // Commands that ask the daemon first get its error about the token.
        assert!(error.contains("earlier spawn") || error.contains("has exited"), "{command:?}: {error}");
    }
    let error = mcp.call("ReadInbox", &serde_json::json!({})).unwrap_err();
    assert!(error.contains("earlier spawn"), "{error}");
    mcp.close();
    let output = env.teamctl_as(&second, &["inbox", "--unread"]).expect_success();
    assert!(output.contains("for the second"), "{output}");
    env.shut_down();
}

#[test]
fn teammate_acts_only_in_its_own_team_and_root() {
    let env = env_with_team();
    env.teamctl(["create", "other"]).expect_success();
    let other_root = env.path("elsewhere").display().to_string();
    let member = [("TEAMD_MEMBER", "bob"), ("TEAMD_TEAM", "survey"), ("TEAMD_ROOT", "root")];
    let commands: [&[&str]; 11] = [
        &["send", "ann", "hi"],
        &["broadcast", "hi"],
        &["inbox", "--unread", "--mark-read"],
        &["task", "create", "dig"],
        &["task", "delete", "1"],
        &["task", "claim"],
        &["answer-shutdown", "shutdown-1@bob", "--approve"],
        &["status"],
        &["logs", "bob"],
        &["events"],
        &["mcp"],
    ];
    for command in commands {
        let other_team = env.teamctl_with(&[&["-t", "other"], command].concat(), &member);
        let error = other_team.expect_failure(77);
        assert!(error.contains("the caller is bob of survey") || command == ["mcp"], "{error}");
        let elsewhere = env.teamctl_with(&[&["--root", &other_root], command].concat(), &member);
        let error = elsewhere.expect_failure(77);
        assert!(error.contains("the caller is bob, an agent of"), "{error}");
    }
    env.teamctl_with(&["--root", &other_root, "up"], &member).expect_failure(77);
    env.teamctl_with(&["--root", &other_root, "doctor", "--fix"], &member).expect_failure(77);
    assert!(!std::path::Path::new(&other_root).exists());
    env.shut_down();
}

#[test]
fn teammate_cannot_run_lead_commands() {
    let env = env_with_team();
    let script =
        "for verb in 'spawn x -- true' 'kill bob' 'shutdown bob' 'delete survey' 'create other' down; do
        teamctl $verb >>out/said 2>&1; echo $? >>out/codes; done; echo end >>out/codes";
    env.teamctl(["spawn", "bob", "--cwd", &env.path("").display().to_string(), "--", "sh", "-c", script])
        .expect_success();
    let codes = env.wait_until("bob has run all commands", || {
        Some(env.read("out/codes")).filter(|codes| codes.ends_with("end\n"))
    });
    assert_eq!(codes, "77\n77\n77\n77\n77\n77\nend\n", "{}", env.read("out/said"));
    // Without TEAMD_MEMBER, the token still identifies the teammate.
    let script_without_name = "unset TEAMD_MEMBER; teamctl kill bob >out/said2 2>&1; echo $? >out/code2";
    env.teamctl([
        "spawn",
        "cat",
        "--cwd",
        &env.path("").display().to_string(),
        "--",
        "sh",
        "-c",
        script_without_name,
    ])
    .expect_success();
    let code = env.wait_until("cat has run the command", || {
        Some(env.read("out/code2")).filter(|code| code.ends_with('\n'))
    });
    assert_eq!(code, "77\n", "{}", env.read("out/said2"));
    env.shut_down();
}

#[test]
fn damaged_config_stays_without_a_daemon() {
    let env = env_with_team();
    env.kill_process(env.daemon_pid());
    let config = env.root().join("teams/survey/config.json");
    let damaged = b"{\"name\": \"survey\", \"members\": [";
    std::io::Write::write_all(&mut std::fs::File::create(&config).unwrap(), damaged).unwrap();
    let error = env.teamctl(["send", "ann", "hi"]).expect_failure(65);
    assert!(error.contains("config.json"), "{error}");
    assert_eq!(std::fs::read(&config).unwrap(), damaged);
    env.start_daemon();
    env.shut_down();
}

#[test]
fn foreign_member_is_not_replaced_or_removed() {
    let env = TestEnv::with_team();
    let config = env.root().join("teams/survey/config.json");
    let mut value: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&config).unwrap()).unwrap();
    let bob = serde_json::json!({"agentId": "bob@survey", "name": "bob", "joinedAt": 1, "tmuxPaneId": "%0", "cwd": "/", "subscriptions": []});
    value["members"].as_array_mut().unwrap().push(bob);
    let text = serde_json::to_string_pretty(&value).unwrap();
    std::io::Write::write_all(&mut std::fs::File::create(&config).unwrap(), text.as_bytes()).unwrap();
    env.teamctl(["send", "bob", "hello"]).expect_success();
    env.teamctl(["spawn", "bob", "--", "sleep", "3600"]).expect_failure(73);
    assert_eq!(env.inbox("survey", "bob").len(), 1);
    assert_eq!(env.inbox("survey", "bob")[0]["read"], false);
    assert!(std::fs::read_to_string(&config).unwrap().contains("bob@survey"));
    let error = env.teamctl(["delete", "survey"]).expect_failure(76);
    assert!(error.contains("bob"), "{error}");
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    env.shut_down();
}

#[test]
fn taken_name_of_maximum_length_gets_a_number() {
    let env = TestEnv::with_daemon();
    let longest = "x".repeat(64);
    env.teamctl(["create", &longest]).expect_success();
    let reply = env.json(["create", &longest, "--unique"]);
    assert_eq!(reply["team_name"].as_str().unwrap(), format!("{}-2", "x".repeat(62)));
    env.shut_down();
}

#[test]
fn usage_errors_show_the_input_and_valid_events() {
    let env = TestEnv::new();
    // The usage line has no --root, although $TEAMD_ROOT is set for each command of a test.
    let output = env.teamctl(["deny", "x"]);
    assert!(output.stderr.contains("--reason") && !output.stderr.contains("--root"), "{output:#?}");
    assert_eq!(output.code, 64);
    let output = env.hook("foo", &[]);
    assert!(output.stderr.contains("no such event, only turn-end, prompt,"), "{output:#?}");
    output.expect_success();
    env.assert_no_files();
}

#[test]
fn status_without_daemon_suggests_up() {
    let env = TestEnv::with_team();
    env.kill_process(env.daemon_pid());
    let error = env.teamctl(["status"]).expect_failure(69);
    assert!(error.contains("the lines above are from the files") && error.contains("teamctl up"), "{error}");
    env.start_daemon();
    env.shut_down();
}

#[test]
fn too_long_socket_path_is_rejected_before_any_write() {
    let env = TestEnv::new();
    let long = env.path(&"x".repeat(120)).display().to_string();
    let tmux = format!("{},0,0", env.tmux_socket().display());
    let output = env.teamctl_with(&["up", "--socket", &format!("{long}/s")], &[("TMUX", &tmux)]);
    assert_eq!(output.code, 78, "{output:#?}");
    assert!(output.stderr.contains("103 bytes"), "{output:#?}");
    env.shut_down();
}

#[test]
fn usage_errors_are_objects_with_json() {
    let env = TestEnv::new();
    for args in [&["--json", "send"][..], &["spawn", "--json", "--nope", "ann"], &["--json", "nonsense"]] {
        let output = env.teamctl_with(args, &[]);
        assert!(output.code == 64 && !output.stderr.is_empty(), "{output:?}");
        let object: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(object["error"]["kind"], "usage", "{object}");
        assert!(!object["error"]["message"].as_str().unwrap().is_empty(), "{object}");
        let has_placeholder = object["error"]["message"].as_str().unwrap().contains("<NAME>");
        assert_eq!(has_placeholder, args == ["--json", "send"], "{object}");
    }
}
