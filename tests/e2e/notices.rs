//! What a person's own command is told, without anybody asking.

use harness::House;

/// A house whose person has a command, which writes down what it is told; `more` is for its config.toml.
fn house(more: &str) -> House {
    let house = House::empty();
    let out = house.path("out/told").display().to_string();
    let tell = house.script("tell", &format!("#!/bin/sh\nprintf '%s\\n' \"$1\" >>{out}\n"));
    let config = format!("notify = ['{}', '{{text}}']\n{more}", tell.display());
    house.put("home/.config/teamd/config.toml", config);
    house
}

fn told(house: &House) -> Vec<String> {
    let text = std::fs::read_to_string(house.path("out/told")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn is_told(house: &House, words: &str) {
    house.until(words, || told(house).iter().any(|line| line == words).then_some(()));
}

#[test]
fn that_one_died_and_that_all_is_done() {
    let house = house("");
    house.start_daemon();
    house.teamctl(["create", "survey"]).ok();
    house.teamctl(["spawn", "ann", "--", "sh", "-c", "sleep 0.2; exit 3"]).ok();
    is_told(&house, "ann@survey has ended: teamctl why ann -t survey");
    house.teamctl(["spawn", "bob", "--agent", "worker"]).ok();
    house.teamctl(["task", "create", "count", "--metadata", r#"{"command": "true"}"#]).ok();
    is_told(&house, "the one task of survey is done: teamctl task list -t survey");
    house.teamctl(["kill", "bob"]).ok();
    assert_eq!(told(&house).len(), 2, "a death that was asked for is no news");
    house.end();
}

/// By the daemon that `up` starts, with what the person's configuration says.
#[test]
fn that_a_turn_writes_nothing() {
    let house = house("stuck = '1s'\n");
    let ran = house.teamctl(["up", "-L", &format!("up-{}", house.mark().len())]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    house.teamctl(["create", "survey"]).ok();
    house.teamctl(["spawn", "ann", "--agent", "worker"]).ok();
    house.teamctl(["task", "create", "think", "--metadata", r#"{"command": "sleep 3600"}"#]).ok();
    house.until_within(std::time::Duration::from_secs(60), "it is told", || {
        told(&house)
            .iter()
            .any(|line| line.starts_with("ann@survey has written nothing for 0 min"))
            .then_some(())
    });
    assert!(house.events().iter().any(|event| event["event"] == "member_stuck"));
    house.put("home/.config/teamd/config.toml", "stuck = 'soon'\n");
    house.teamctl(["kill", "ann"]).ok();
    house.teamctl(["down"]).ok();
    house.teamctl(["up"]).fails(78);
    house.end();
}
