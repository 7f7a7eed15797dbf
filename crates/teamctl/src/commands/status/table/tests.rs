use super::*;
use crate::commands::status::member_details::{environment_lines, member_details};
use crate::commands::status::notes_below_table::team_notes;
use crate::commands::status::past_members_in_table::MAX_UNREMARKABLE_PAST_MEMBERS;
use client::suggested_commands::SuggestedCommands;
use client::task_counts_and_failures::{AbandonedTask, FailedTask};
use protocol::control_socket::{Activity, HostContact, HostStatus, MemberFlag};
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::token_and_cost_usage::Usage;
use serde_json::json;

fn ann() -> MemberView {
    MemberView {
        name: "ann".into(),
        agent_id: "ann@t".into(),
        host: None,
        lifecycle: "running".into(),
        state: Some("running".into()),
        dialog: None,
        turn_pause: None,
        usage_limit: None,
        flags: vec![MemberFlag::ShutdownRequested],
        activity: Some(Activity::Active),
        activity_since: Some(now() + 1000),
        activity_reason: Some("turn 3 by pid 77: task 4:\ncount".into()),
        task: Some("count\nthe lines".into()),
        usage: Usage::default(),
        unread: None,
        mode: Some("plan".into()),
        delivery: Some(protocol::delivery_kind::Delivery::Turn),
        delivery_point: Some(protocol::delivery_kind::DeliveryPoint::TurnEnd),
        pane: None,
        is_hidden: false,
        pid: Some(77),
        backend: Some("in-process".into()),
        respawns: Some(2),
        worktree: None,
        branch: None,
        color: "none".into(),
        environment: None,
        environment_file: String::new(),
    }
}

fn team() -> TeamView {
    let bob = MemberName::new_unchecked("bob");
    let past = PastMember {
        name: bob.clone(),
        outcome: "failed".into(),
        description: "exit 1\u{1b}[2J".to_owned(),
        ended_at: now(),
        respawns_at: Some(now() + 3_500),
        is_suspended: false,
        respawns_exhausted_reason: None,
        usage: Usage::default(),
    };
    let id = |id: &str| protocol::member_task_and_request_ids::TaskId::parse(id).unwrap();
    TeamView {
        name: TeamName::parse("t").unwrap(),
        members: vec![ann()],
        past_members: vec![past],
        worktrees: vec![],
        budget: None,
        lead_session_ended_at: None,
        record: None,
        config_error: None,
        hosts: Vec::new(),
        tasks: TaskCounts { pending: 1, in_progress: 2, completed: 3, failed: 1 },
        abandoned_tasks: vec![AbandonedTask { id: id("3"), subject: "x".into(), owner: bob.clone() }],
        task_cycles: Vec::new(),
        failed_tasks: vec![FailedTask {
            id: id("4"),
            subject: "y".into(),
            owner: Some(bob),
            failure: "exit 1\u{7}\nlast lines".into(),
        }],
    }
}

#[test]
fn row_shows_flags_and_a_missing_pane() {
    let rows = member_rows(&team());
    assert_eq!(
        rows[1],
        ["ann", "running!shutdown", "active", "0s", "?", "turn", "in-process", "count"].map(str::to_owned)
    );
    assert_eq!(rows[2][..3], ["bob", "failed", "-"].map(str::to_owned));
    assert_eq!(rows[2][7], "exit 1\\u{1b}[2J, again in 4 s");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
}

#[test]
fn hosts_have_a_column_and_a_line_without_contact() {
    let mut team = team();
    team.members.push(MemberView { host: Some("devbox".to_owned()), ..ann() });
    let cells: Vec<String> =
        member_rows(&team).into_iter().map(|mut row| row.swap_remove(HOST_COLUMN)).collect();
    assert_eq!(cells, ["HOST", "-", "devbox", "-"].map(str::to_owned));
    let contact = HostContact::NoContact { since: now() - 180_000, reason: "exit\ncode 255".to_owned() };
    let host = protocol::hosts_file_entry::HostName::parse("devbox").unwrap();
    team.hosts = vec![HostStatus { host: host.clone(), contact, storage_error: None }];
    let notes = team_notes(&team, &SuggestedCommands::default());
    assert!(notes[0].starts_with("host devbox: no contact for 3m: exit"), "{notes:?}");
    let storage_error = Some("no space left".to_owned());
    team.hosts = vec![HostStatus { host, contact: HostContact::Connected, storage_error }];
    let notes = team_notes(&team, &SuggestedCommands::default());
    assert_eq!(notes[0], "host devbox stores nothing: no space left");
}

#[test]
fn only_the_last_ended_members_are_shown_beside_those_that_need_attention() {
    let mut team = team();
    let failed = team.past_members[0].clone();
    let ended = |n: usize| PastMember {
        name: MemberName::new_unchecked(&format!("w{n}")),
        outcome: "completed".into(),
        respawns_at: None,
        ..failed.clone()
    };
    team.past_members.extend((1..=MAX_UNREMARKABLE_PAST_MEMBERS).map(ended));
    assert_eq!(member_rows(&team).len(), 2 + team.past_members.len());
    assert!(!team_notes(&team, &SuggestedCommands::default())[0].contains("not shown"));
    team.past_members.push(ended(11));
    let names: Vec<String> = member_rows(&team).into_iter().map(|mut row| row.swap_remove(0)).collect();
    assert_eq!(names[2..4], ["bob", "w2"]);
    let notes = team_notes(&team, &SuggestedCommands::default());
    assert_eq!(notes[0], "1 past member is not shown: teamctl status --json");
}

#[test]
fn usage_has_a_column_if_a_member_has_usage() {
    let mut team = team();
    team.members[0].usage = Usage { tokens: 12_300, microdollars: 420_000 };
    let rows = member_rows(&team);
    let columns: Vec<[&str; 2]> = rows.iter().map(|row| [row[0].as_str(), &row[USAGE_COLUMN]]).collect();
    assert_eq!(columns, [["NAME", "USAGE"], ["ann", "12.3k $0.42"], ["bob", "-"]]);
    assert_eq!(rows[1][USAGE_COLUMN + 1], "count");
}

#[test]
fn hidden_pane_is_marked() {
    let hidden = MemberView { pane: Some("%3".into()), is_hidden: true, ..ann() };
    assert_eq!(member_row(&hidden)[6], "%3 hidden");
    assert_eq!(member_row(&MemberView { is_hidden: false, ..hidden })[6], "%3");
}

#[test]
fn notes_suggest_commands() {
    let mut team = team();
    let task_notes = ["task 3 was left by bob: teamctl task release 3", "task 4 failed (exit 1\\u{7})"];
    assert_eq!(team_notes(&team, &SuggestedCommands::default()), task_notes);
    (team.past_members[0].respawns_at, team.past_members[0].is_suspended) = (None, true);
    let commands = SuggestedCommands::default().for_team(&TeamName::parse("t").unwrap());
    let suspended_note = "1 member is suspended; resume it with: teamctl up -t t --resume";
    assert_eq!(team_notes(&team, &commands)[2], suspended_note);
    let row = &member_rows(&team)[2];
    assert_eq!((row[1].as_str(), row[7].as_str()), ("suspended", "exit 1\\u{1b}[2J"));
    let budget = json!({"turns": 2, "started_at": 1, "exhausted_reason": "its budget of 2 turns is used up"});
    team.budget = Some(serde_json::from_value(budget).unwrap());
    let budget_note = "No member is started: its budget of 2 turns is used up; give it more with: teamctl policy FILE; \
                   then resume the suspended members with: teamctl up --resume";
    assert_eq!(team_notes(&team, &SuggestedCommands::default())[2], budget_note);
    team.budget = None;
    assert_eq!(team_heading(&team), "\nt: 1 pending, 2 in progress, 3 completed, 1 failed");
}

#[test]
fn member_details_have_the_activity_reason() {
    assert_eq!(
        member_details(&ann(), &SuggestedCommands::default()),
        [
            "  pid 77, backend in-process, started again 2 times",
            "  mode plan",
            "  active for 0s: turn 3 by pid 77: task 4: count",
            "  messages reach it at the end of its turn, at once while it is idle",
            "  it was asked to shut down, and has not answered"
        ]
    );
}

#[test]
fn unknown_activity_is_omitted_and_a_dialog_suggests_a_command() {
    let unknown = MemberView { activity: None, mode: None, flags: vec![MemberFlag::AtDialog], ..ann() };
    let details = member_details(&unknown, &SuggestedCommands::default());
    assert_eq!(details[1], "  turn 3 by pid 77: task 4: count");
    assert_eq!(details[3], "  its program waits at a dialog: go there with teamctl attach ann");
    assert_eq!(member_row(&unknown)[2], "-");
}

#[test]
fn environment_is_not_part_of_the_details() {
    let environment = [("A".to_owned(), "b\nc".to_owned())].into();
    let ann = MemberView { environment: Some(environment), ..ann() };
    assert!(
        member_details(&ann, &SuggestedCommands::default()).iter().all(|line| !line.contains("environment"))
    );
    assert_eq!(environment_lines(&ann), ["  environment:", "    A=b c"]);
}

#[test]
fn long_text_is_clipped_between_characters() {
    assert_eq!(clip_cell(&"é".repeat(41)), format!("{}…", "é".repeat(40)));
    assert_eq!(clip_cell(&"é".repeat(40)), "é".repeat(40));
    assert_eq!(clip_cell(""), "");
}
