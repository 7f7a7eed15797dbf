//! Hooks of other programs: of a program that the agent runs, of an agent with another delivery,
//! outside of a team, and of a lead session.

use super::{
    env_with_hook_profile, idle_notifications, recorded_events, spawn, unread_messages, wait_for_turn,
    wait_until_idle,
};
use harness::{TaggedProcesses, TestEnv};
use serde_json::Value;

#[test]
fn nested_program_gets_no_messages_or_turns() {
    let env = env_with_hook_profile();
    let gate = env.create_gate("gate");
    spawn(&env, "ann");
    env.teamctl(["send", "ann", &format!("work nested hold:{gate} on")]).expect_success();
    wait_for_turn(&env, "ann", "nested");
    env.teamctl(["send", "ann", "for ann alone"]).expect_success();
    let count = idle_notifications(&env, "ann").len();
    env.open_gate("gate");
    let output =
        env.wait_until("the nested program has ended", || recorded_events(&env, "ann", "nested").pop());
    assert_eq!(output, "over\n");
    wait_for_turn(&env, "ann", "for ann alone");
    wait_until_idle(&env, "ann");
    assert_eq!(idle_notifications(&env, "ann").len(), count + 2, "two turns have ended");
    env.shut_down();
}

#[test]
fn hook_of_another_delivery_delivers_nothing_without_a_daemon() {
    let env = TestEnv::with_team();
    let gate = env.create_gate("gate");
    let text = format!(
        "#!/bin/sh\nread _ <{gate}\nteamd-shim hook turn-end >out/said </dev/null\necho over >>out/said\n"
    );
    let script = env.write_script("asks.sh", &text).display().to_string();
    let profile = format!("delivery = \"turn\"\nprogram = \"{script}\"\n");
    env.write_file("home/.config/teamd/profiles/asks.toml", profile);
    env.teamctl(["spawn", "ann", "--profile", "asks", "--prompt", "begin"]).expect_success();
    env.kill_process(env.daemon_pid());
    env.teamctl(["send", "ann", "for its next turn"]).expect_success();
    env.open_gate("gate");
    env.wait_until("the script continues after the hook", || {
        env.read("out/said").ends_with("over\n").then_some(())
    });
    assert_eq!(env.read("out/said"), "over\n");
    env.start_daemon();
    env.shut_down();
}

#[test]
fn hook_outside_a_team_does_nothing() {
    let env = TestEnv::new();
    for event in ["turn-end", "prompt", "session-start", "session-end", "notification", "tool", "what"] {
        let output = env.hook(event, &[]);
        assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{event}");
    }
    let unknown_member = [("TEAMD_MEMBER", "ann"), ("TEAMD_TEAM", "survey"), ("TEAMD_TOKEN", "x")];
    for event in ["prompt", "tool", "what"] {
        let output = env.hook(event, &unknown_member);
        assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{event}: {}", output.stderr);
    }
    env.shut_down();
}

#[test]
fn hook_of_another_delivery_does_not_block() {
    let env = TestEnv::with_team();
    let script = env.write_script(
        "asks.sh",
        "#!/bin/sh\nteamd-shim hook turn-end >out/said\necho done >>out/said\nsleep 1000\n",
    );
    env.teamctl(["spawn", "ann", "--", &script.display().to_string()]).expect_success();
    env.wait_until("the script continues after the hook", || {
        (env.read("out/said") == "done\n").then_some(())
    });
    env.shut_down();
}

/// Script of a lead session in a pane of the user. `read _` keeps it running.
const LEAD_SCRIPT: &str = r#"
tool() { printf '{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"%s"}}' "$1" | teamd-shim hook tool; }
teamctl lead survey >out/led
tool "rm -rf x" >out/free
teamctl mode team-lead delegate >out/mode
tool "rm -rf x" >out/refused
tool "teamctl mode team-lead default" >out/kept
tool "teamctl status" >out/allowed
echo '{"hook_event_name":"Stop"}' | teamd-shim hook turn-end >out/mail.new
mv out/mail.new out/mail
echo '{"hook_event_name":"Stop","stop_hook_active":true}' | teamd-shim hook turn-end
read _
"#;

#[test]
fn lead_session_is_delivered_to_and_restricted_in_delegate_mode() {
    let env = TestEnv::new();
    env.start_daemon();
    env.tmux(["new-session", "-d", "-x", "80", "-y", "24", "--", "sh", "-c", LEAD_SCRIPT]);
    env.wait_until("the hook waits for messages", || {
        let is_hook = |line: &String| line.ends_with("teamd-shim hook turn-end");
        TaggedProcesses::with_tag(&env.process_tag()).list().into_iter().find(is_hook)
    });
    assert_eq!(env.read("out/led"), "This session leads survey, which is new.\n");
    assert_eq!((env.read("out/free").as_str(), env.read("out/allowed").as_str()), ("", ""));
    for file in ["out/refused", "out/kept"] {
        let answer: Value = serde_json::from_str(&env.read(file)).unwrap();
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{file}: {answer}");
    }
    env.teamctl(["lead", "survey"]).expect_failure(73);
    let lead = env.json(["status", "team-lead"])["teams"][0]["members"][0].clone();
    assert!(lead["pane"].as_str().is_some_and(|pane| pane.starts_with('%')), "{lead}");
    assert_eq!(lead["mode"], "delegate");
    env.teamctl(["spawn", "ann", "--", "sh", "-c", "teamctl send team-lead 'hello <you>'; sleep 1000"])
        .expect_success();
    let hook_output = env.wait_until("the hook has delivered the message", || {
        Some(env.read("out/mail")).filter(|hook_output| !hook_output.is_empty())
    });
    assert!(
        hook_output.contains("teammate_id=\\\"ann\\\"") && hook_output.contains("hello &lt;you&gt;"),
        "{hook_output}"
    );
    env.wait_until("the message is read after the turn", || {
        unread_messages(&env, "team-lead").is_empty().then_some(())
    });
    env.shut_down();
}
