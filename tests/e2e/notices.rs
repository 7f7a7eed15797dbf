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

/// A word is noted as told while it is rung, and of a daemon that is killed just then the next tells it again: rather
/// twice than never. What is asked for now is done behind that note.
fn is_noted(house: &House) {
    house.teamctl(["create", "later"]).ok();
    house.teamctl(["delete", "later"]).ok();
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

#[test]
fn that_each_is_told_once_whoever_is_killed() {
    let house = house("");
    house.start_daemon();
    house.teamctl(["create", "survey"]).ok();
    house.teamctl(["spawn", "ann", "--", "sh", "-c", "exit 3"]).ok();
    is_told(&house, "ann@survey has ended: teamctl why ann -t survey");
    house.teamctl(["spawn", "bob", "--", &house.agent(), "stay"]).ok();
    let asks = r#"{"type":"permission_request","request_id":"perm-1-abcdefg","agent_id":"bob","tool_name":"Bash","tool_use_id":"t","description":"count","input":{"command":"true"},"permission_suggestions":[]}"#;
    let asked = house.command(harness::programs().join("agent")).args(["ask", "bob", asks]).status();
    assert!(asked.unwrap().success());
    is_told(&house, "bob@survey asks for permission: teamctl requests -t survey");
    house.teamctl(["spawn", "cat", "--agent", "worker"]).ok();
    house.teamctl(["task", "create", "count", "--metadata", r#"{"command": "true"}"#]).ok();
    is_told(&house, "the one task of survey is done: teamctl task list -t survey");
    let policy = house.put("out/policy.toml", "[policy]\ntime = \"1s\"\n");
    house.teamctl(["create", "brief", "--policy", &policy]).ok();
    is_told(&house, "the budget of brief is used up: teamctl status -t brief");
    is_noted(&house);
    house.kill_9(house.daemon());
    house.start_daemon();
    house.teamctl(["-t", "survey", "spawn", "dan", "--", "sh", "-c", "exit 3"]).ok();
    is_told(&house, "dan@survey has ended: teamctl why dan -t survey");
    assert_eq!(told(&house).len(), 5, "{:?}", told(&house));
    house.end();
}

/// Its word waits for a second after the last one, and the roster has it meanwhile.
#[test]
fn that_of_which_nobody_was_told_when_the_daemon_was_killed() {
    let house = house("");
    house.tmux(["set-environment", "-g", "TEAMD_FAILPOINTS", &house.path("out").display().to_string()]);
    house.put("out/order", "kill teamd act.ring 2\n");
    house.put("out/passed", "");
    house.start_daemon();
    house.teamctl(["create", "survey"]).ok();
    let gate = house.gate("out/gate");
    house.teamctl(["spawn", "bob", "--", "sh", "-c", &format!("read line <{gate}; exit 3")]).ok();
    house.teamctl(["spawn", "ann", "--", "sh", "-c", "exit 3"]).ok();
    is_told(&house, "ann@survey has ended: teamctl why ann -t survey");
    house.open_gate("out/gate");
    house.until("teamd is killed", || (house.teamctl(["status"]).code == 69).then_some(()));
    assert_eq!(told(&house).len(), 1, "{:?}", told(&house));
    house.start_daemon();
    is_told(&house, "bob@survey has ended: teamctl why bob -t survey");
    house.teamctl(["spawn", "cat", "--", "sh", "-c", "exit 3"]).ok();
    is_told(&house, "cat@survey has ended: teamctl why cat -t survey");
    assert_eq!(told(&house).len(), 3, "{:?}", told(&house));
    house.end();
}

/// By the daemon that `up` starts, with what the person's configuration says.
#[test]
fn that_a_turn_writes_nothing() {
    let house = house("stuck = '1s'\n");
    let server = format!("up-{}", house.mark().len());
    let ran = house.teamctl(["up", "-L", &server]);
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
    is_noted(&house);
    house.kill_9(house.daemon());
    house.teamctl(["up", "-L", &server]).ok();
    house.teamctl(["spawn", "bob", "--agent", "worker"]).ok();
    house.teamctl(["task", "create", "think", "--metadata", r#"{"command": "sleep 3600"}"#]).ok();
    house.until_within(std::time::Duration::from_secs(60), "the next one is told", || {
        told(&house).iter().any(|line| line.starts_with("bob@survey has written nothing")).then_some(())
    });
    assert_eq!(told(&house).len(), 2, "of ann the daemon before has told");
    house.teamctl(["kill", "bob"]).ok();
    house.put("home/.config/teamd/config.toml", "stuck = 'soon'\n");
    house.teamctl(["kill", "ann"]).ok();
    house.teamctl(["down"]).ok();
    house.teamctl(["up"]).fails(78);
    house.end();
}
