//! Whose hook it is: of the agent's own program, of one that it runs, of one that is fed in another way, of nobody, of a
//! session that leads.

use super::{house, idle_told, noted, spawn, unread, until_turn, waits};
use harness::{House, Processes};
use serde_json::Value;

#[test]
fn a_program_that_it_runs_in_a_shell_takes_neither_its_mail_nor_its_turn() {
    let house = house();
    let gate = house.gate("gate");
    spawn(&house, "ann");
    house.teamctl(["send", "ann", &format!("work nested hold:{gate} on")]).ok();
    until_turn(&house, "ann", "nested");
    house.teamctl(["send", "ann", "for ann alone"]).ok();
    let told = idle_told(&house, "ann").len();
    house.open_gate("gate");
    let said = house.until("the other is over", || noted(&house, "ann", "nested").pop());
    assert_eq!(said, "over\n");
    until_turn(&house, "ann", "for ann alone");
    waits(&house, "ann");
    assert_eq!(idle_told(&house, "ann").len(), told + 2, "a turn each");
    house.end();
}

#[test]
fn without_a_daemon_too_no_hook_feeds_a_program_that_is_fed_in_another_way() {
    let house = House::with_team();
    let gate = house.gate("gate");
    let text = format!(
        "#!/bin/sh\nread _ <{gate}\nteamctl hook turn-end >out/said </dev/null\necho over >>out/said\n"
    );
    let script = house.script("asks.sh", &text).display().to_string();
    let profile = format!("feed = \"turn\"\nprogram = \"{script}\"\n");
    house.put("home/.config/teamd/agents/asks.toml", profile);
    house.teamctl(["spawn", "ann", "--agent", "asks", "--prompt", "begin"]).ok();
    house.kill_9(house.daemon());
    house.teamctl(["send", "ann", "for its next turn"]).ok();
    house.open_gate("gate");
    house.until("it went on", || house.read("out/said").ends_with("over\n").then_some(()));
    assert_eq!(house.read("out/said"), "over\n");
    house.start_daemon();
    house.end();
}

#[test]
fn outside_of_a_team_a_hook_does_nothing_and_never_fails_its_program() {
    let house = House::empty();
    for event in ["turn-end", "prompt", "session-start", "session-end", "notification", "tool", "what"] {
        let ran = house.teamctl(["hook", event]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{event}");
    }
    let nobody = [("TEAMD_AGENT", "ann"), ("TEAMD_TEAM", "survey"), ("TEAMD_TOKEN", "x")];
    for event in ["prompt", "tool", "what"] {
        let ran = house.teamctl_with(&["hook", event], &nobody);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{event}: {}", ran.stderr);
    }
    house.end();
}

#[test]
fn a_program_that_is_fed_in_another_way_is_not_held_up_by_its_users_hooks() {
    let house = House::with_team();
    let script = house
        .script("asks.sh", "#!/bin/sh\nteamctl hook turn-end >out/said\necho done >>out/said\nsleep 1000\n");
    house.teamctl(["spawn", "ann", "--", &script.display().to_string()]).ok();
    house.until("it went on", || (house.read("out/said") == "done\n").then_some(()));
    house.end();
}

/// What the session in the user's own pane does; `read _` keeps it there.
const LEADING: &str = r#"
tool() { printf '{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"%s"}}' "$1" | teamctl hook tool; }
teamctl lead survey >out/led
tool "rm -rf x" >out/free
teamctl mode team-lead delegate >out/mode
tool "rm -rf x" >out/refused
tool "teamctl mode team-lead default" >out/kept
tool "teamctl status" >out/allowed
echo '{"hook_event_name":"Stop"}' | teamctl hook turn-end >out/mail.new
mv out/mail.new out/mail
echo '{"hook_event_name":"Stop","stop_hook_active":true}' | teamctl hook turn-end
read _
"#;

#[test]
fn a_session_leads_from_its_own_pane_is_fed_there_and_in_delegate_mode_does_nothing_else() {
    let house = House::empty();
    house.start_daemon();
    house.tmux(["new-session", "-d", "-x", "80", "-y", "24", "--", "sh", "-c", LEADING]);
    house.until("its hook waits", || {
        let hook = |line: &String| line.ends_with("teamctl hook turn-end");
        Processes::marked(&house.mark()).list().into_iter().find(hook)
    });
    assert_eq!(house.read("out/led"), "This session leads survey, which is new.\n");
    assert_eq!((house.read("out/free").as_str(), house.read("out/allowed").as_str()), ("", ""));
    for refused in ["out/refused", "out/kept"] {
        let answer: Value = serde_json::from_str(&house.read(refused)).unwrap();
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{refused}: {answer}");
    }
    house.teamctl(["lead", "survey"]).fails(73);
    let lead = house.json(["status", "team-lead"])["teams"][0]["members"][0].clone();
    assert!(lead["pane"].as_str().is_some_and(|pane| pane.starts_with('%')), "{lead}");
    assert_eq!(lead["mode"], "delegate");
    house
        .teamctl(["spawn", "ann", "--", "sh", "-c", "teamctl send team-lead 'hello <you>'; sleep 1000"])
        .ok();
    let mail = house.until("the mail comes", || Some(house.read("out/mail")).filter(|mail| !mail.is_empty()));
    assert!(mail.contains("teammate_id=\\\"ann\\\"") && mail.contains("hello &lt;you&gt;"), "{mail}");
    house
        .until("it is read once its turn has ended", || unread(&house, "team-lead").is_empty().then_some(()));
    house.end();
}
