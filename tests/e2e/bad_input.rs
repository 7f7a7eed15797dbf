//! Bad input: a sentence, the right exit code, nothing half done.

use harness::House;

fn team() -> House {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", "sleep", "3600"]).ok();
    house
}

#[test]
fn unknown_names_are_told_with_the_nearest() {
    let house = team();
    let said = house.teamctl(["status", "-t", "survye"]).fails(67);
    assert!(said.contains("survey"), "{said}");
    for verb in [
        ["send", "amn", "hi"],
        ["capture", "amn", "--lines=1"],
        ["shutdown", "amn", "--grace=1s"],
        ["kill", "amn", "amm"],
    ] {
        let said = house.teamctl(verb).fails(67);
        assert!(said.contains("ann"), "{verb:?}: {said}");
    }
    house.teamctl(["send", "", "hi"]).fails(64);
    house.teamctl(["task", "get", "99"]).fails(67);
    house.teamctl(["task", "claim", "99"]).fails(67);
    assert!(!house.path("root/teams/survey/inboxes/amn.json").exists());
    house.end();
}

#[test]
fn a_namesake_on_another_team_is_not_meant() {
    let house = team();
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
    assert_eq!(house.member("ann").unwrap()["phase"], "running");
    house.teamctl(["status", "ANN@Survey"]).ok();
    house.teamctl(["send", "ANN@Survey", "hello"]).ok();
    house.teamctl(["kill", "ANN@Survey"]).ok();
    house.end();
}

#[test]
fn without_a_daemon_it_is_said_at_once() {
    let house = House::empty();
    for verb in [["create", "survey"], ["down", "-q"], ["kill", "ann"]] {
        let ran = house.teamctl(verb);
        assert!([67, 69].contains(&ran.code), "{ran:?}");
    }
    let said = house.teamctl(["create", "survey"]).fails(69);
    assert!(said.contains("teamctl up"), "{said}");
    let status = house.teamctl(["status", "--json"]);
    assert_eq!(status.code, 69);
    assert!(status.json()["daemon"].is_null());
    house.end();
}

#[test]
fn without_tmux_or_with_an_old_one_the_daemon_says_so() {
    let house = House::empty();
    let programs = house.path("out/bin");
    std::fs::create_dir(&programs).unwrap();
    let teamd = |house: &House| {
        let output = house.teamd().env("PATH", &programs).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = teamd(&house);
    assert_eq!(code, Some(72), "{said}");
    assert!(said.contains("tmux"), "{said}");
    house.script("out/bin/tmux", "#!/bin/sh\necho tmux 3.1c\n");
    let (code, said) = teamd(&house);
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("3.2"), "{said}");
    house.end();
}

#[test]
fn a_root_that_others_can_write_is_refused() {
    let house = House::empty();
    std::fs::set_permissions(house.root(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let output = house.teamd().output().unwrap();
    assert_eq!(output.status.code(), Some(77), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("chmod"), "{output:?}");
    house.teamctl(["send", "ann", "hi", "-t", "survey"]).fails(77);
    std::fs::set_permissions(house.root(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    house.end();
}

#[test]
fn a_teammate_may_not_do_what_is_the_leads() {
    let house = team();
    let script =
        "for verb in 'spawn x -- true' 'kill bob' 'shutdown bob' 'delete survey' 'create other' down; do
        teamctl $verb >>out/said 2>&1; echo $? >>out/codes; done; echo end >>out/codes";
    house
        .teamctl(["spawn", "bob", "--cwd", &house.path("").display().to_string(), "--", "sh", "-c", script])
        .ok();
    let codes =
        house.until("it tried", || Some(house.read("out/codes")).filter(|codes| codes.ends_with("end\n")));
    assert_eq!(codes, "77\n77\n77\n77\n77\n77\nend\n", "{}", house.read("out/said"));
    // And not by forgetting who it is either: its token tells.
    let token = "unset TEAMD_AGENT; teamctl kill bob >out/said2 2>&1; echo $? >out/code2";
    house
        .teamctl(["spawn", "cat", "--cwd", &house.path("").display().to_string(), "--", "sh", "-c", token])
        .ok();
    let code = house.until("it tried", || Some(house.read("out/code2")).filter(|code| code.ends_with('\n')));
    assert_eq!(code, "77\n", "{}", house.read("out/said2"));
    house.end();
}

#[test]
fn a_damaged_config_is_left_as_it_is_where_no_daemon_runs() {
    let house = team();
    house.kill_9(house.daemon());
    let config = house.root().join("teams/survey/config.json");
    let damaged = b"{\"name\": \"survey\", \"members\": [";
    std::io::Write::write_all(&mut std::fs::File::create(&config).unwrap(), damaged).unwrap();
    let said = house.teamctl(["send", "ann", "hi"]).fails(65);
    assert!(said.contains("config.json"), "{said}");
    assert_eq!(std::fs::read(&config).unwrap(), damaged);
    house.start_daemon();
    house.end();
}

#[test]
fn another_programs_member_is_neither_replaced_nor_removed() {
    let house = House::with_team();
    let config = house.root().join("teams/survey/config.json");
    let mut value: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&config).unwrap()).unwrap();
    let bob = serde_json::json!({"agentId": "bob@survey", "name": "bob", "joinedAt": 1, "tmuxPaneId": "%0", "cwd": "/", "subscriptions": []});
    value["members"].as_array_mut().unwrap().push(bob);
    let text = serde_json::to_string_pretty(&value).unwrap();
    std::io::Write::write_all(&mut std::fs::File::create(&config).unwrap(), text.as_bytes()).unwrap();
    house.teamctl(["send", "bob", "hello"]).ok();
    house.teamctl(["spawn", "bob", "--", "sleep", "3600"]).fails(73);
    assert_eq!(house.inbox("survey", "bob").len(), 1);
    assert_eq!(house.inbox("survey", "bob")[0]["read"], false);
    assert!(std::fs::read_to_string(&config).unwrap().contains("bob@survey"));
    let said = house.teamctl(["delete", "survey"]).fails(76);
    assert!(said.contains("bob"), "{said}");
    house.teamctl(["delete", "survey", "--force"]).ok();
    house.end();
}

#[test]
fn a_longest_name_that_is_taken_still_gets_a_number() {
    let house = House::start();
    let longest = "x".repeat(64);
    house.teamctl(["create", &longest]).ok();
    let created = house.json(["create", &longest, "--unique"]);
    assert_eq!(created["team_name"].as_str().unwrap(), format!("{}-2", "x".repeat(62)));
    house.end();
}

#[test]
fn a_usage_shows_what_was_typed_and_an_unknown_event_those_that_there_are() {
    let house = House::empty();
    // Every call here has $TEAMD_ROOT.
    let said = house.teamctl(["deny", "x"]);
    assert!(said.stderr.contains("--reason") && !said.stderr.contains("--root"), "{said:#?}");
    assert_eq!(said.code, 64);
    let said = house.teamctl(["hook", "foo"]);
    assert!(said.stderr.contains("no such event, only turn-end, prompt,"), "{said:#?}");
    said.ok();
    house.nothing_left_of_ours();
}

#[test]
fn without_a_daemon_status_says_how_to_start_one() {
    let house = House::with_team();
    house.kill_9(house.daemon());
    let said = house.teamctl(["status"]).fails(69);
    assert!(said.contains("this is what the files say") && said.contains("teamctl up"), "{said}");
    house.start_daemon();
    house.end();
}

#[test]
fn a_socket_whose_path_is_too_long_is_told_before_anything_is_made() {
    let house = House::empty();
    let long = house.path(&"x".repeat(120)).display().to_string();
    let tmux = format!("{},0,0", house.tmux_socket().display());
    let said = house.teamctl_with(&["up", "--socket", &format!("{long}/s")], &[("TMUX", &tmux)]);
    assert_eq!(said.code, 78, "{said:#?}");
    assert!(said.stderr.contains("103 bytes"), "{said:#?}");
    house.end();
}
