//! The messages of the night: notes of the lead, and the exchange of dan and eve. Each note is sent once,
//! at a moment at which its recipient cannot take it at once.

use super::team::{WORKTREE_MEMBERS, running_member, team_status};
use harness::TestEnv;
use serde_json::Value;
use std::collections::BTreeSet;

/// The notes to members whose programs record them, in order of their names.
const NOTES: [&str; 10] = [
    "ann note after-the-limit",
    "ann note at-the-limit",
    "bob note while-hung",
    "cat note without-daemon",
    "cat note without-tmux",
    "dan note stop",
    "eve note stop",
    "fay note before-the-crash",
    "gil note at-the-dialog",
    "hal note before-the-crash",
];

/// The messages to members whose programs do not record them: recipient, and its text.
pub(super) const WORKER_NOTE: (&str, &str) = ("wes", "note after-the-reboot");
pub(super) const PLANNER_NOTE: (&str, &str) = ("pat", "note to-the-planner");

pub(super) fn send(env: &TestEnv, name: &str, text: &str) {
    env.teamctl(["send", name, text]).expect_success();
}

/// The members whose exchange is paused, according to `status`.
pub(super) fn paused_exchanges(team: &Value) -> BTreeSet<String> {
    let members = team["members"].as_array().into_iter().flatten();
    let paused = members.filter(|member| member["turn_pause"]["cause"] == "exchange");
    paused.map(|member| member["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits until dan and eve are idle and the next message of their exchange waits.
pub(super) fn wait_until_exchange_pauses(env: &TestEnv) {
    env.wait_until("the exchange of dan and eve is paused", || {
        let are_idle = ["dan", "eve"]
            .iter()
            .all(|name| running_member(env, name).is_some_and(|member| member["activity"] == "idle"));
        (are_idle && !paused_exchanges(&team_status(env)?).is_empty()).then_some(())
    });
}

/// Ends the exchange: the programs of dan and eve answer no more, and the lead's notes end the pauses.
pub(super) fn stop_exchange(env: &TestEnv) {
    env.write_file("out/stop", "");
    for name in ["dan", "eve"] {
        send(env, name, "note stop");
    }
    env.wait_until("dan and eve have taken all messages", || {
        let are_done = |name: &&str| running_member(env, name).is_some_and(|member| member["unread"] == 0);
        ["dan", "eve"].iter().all(are_done).then_some(())
    });
}

/// Checks that each message led to one turn that succeeded, and is read.
pub(super) fn assert_messages_taken_once(env: &TestEnv) {
    let recorded = env.read("out/messages");
    let mut notes: Vec<&str> = recorded.lines().filter(|line| line.contains(" note ")).collect();
    notes.sort_unstable();
    assert_eq!(notes, NOTES);
    assert_exchange_complete(&recorded);
    let (name, text) = WORKER_NOTE;
    let shown = env.teamctl(["logs", name]).expect_success();
    assert_eq!(shown.matches(text).count(), 1, "{shown}");
    let (_, text) = PLANNER_NOTE;
    let heard = env.read("out/heard");
    let prompts = heard.lines().filter(|line| line.contains("session/prompt") && line.contains(text));
    assert_eq!(prompts.count(), 1, "{heard}");
    for name in WORKTREE_MEMBERS {
        let inbox = env.inbox("night", name);
        assert!(inbox.iter().all(|message| message["read"] == true), "{name}: {inbox:?}");
    }
}

/// Checks that dan and eve have each got every second number from 1 on, once and in order.
fn assert_exchange_complete(recorded: &str) {
    for (name, first) in [("dan", 1), ("eve", 2)] {
        let prefix = format!("{name} ball ");
        let numbers: Vec<usize> =
            recorded.lines().filter_map(|line| line.strip_prefix(&prefix)?.parse().ok()).collect();
        let expected: Vec<usize> = (0..numbers.len()).map(|n| first + 2 * n).collect();
        assert_eq!(numbers, expected, "{name}");
        assert!(numbers.len() >= 4, "the exchange has reached its limit: {numbers:?}");
    }
}
