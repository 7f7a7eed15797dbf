//! Formats teams and members for people. Each team gets a table, whose usual rows fit into 80
//! columns. Notes below the table say what needs attention.

use crate::commands::daemon_suspension_and_budget_lines::suspended_line;
use crate::output::{paint, sanitize};
use client::budget_text::{budget_text, time_budget_text};
use client::short_duration::short_duration;
use client::suggested_commands::SuggestedCommands;
use client::team_view::{AbandonedTask, FailedTask, MemberView, TaskCounts, TeamView};
use protocol::control_socket::{
    Activity, Backend, FailedTurnsPause, HostContact, HostStatus, MemberFlag, PastMember, TurnPause,
    WorktreeStatus,
};
use protocol::single_line::single_line;
use protocol::task::WaitCycle;
use store::now;

/// The maximum length of a text in the table or the notes, in characters. Longer texts are cut.
const CELL_WIDTH: usize = 40;

/// How many of the past members that need no attention the table shows.
const MAX_UNREMARKABLE_PAST_MEMBERS: usize = 10;

/// The line above a table: the team, its task counts and its budget.
pub(super) fn team_heading(team: &TeamView) -> String {
    let TaskCounts { pending, in_progress, completed, failed } = team.tasks;
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    let budget = team
        .budget
        .as_ref()
        .map(|budget| format!("; {}", budget_text(budget, time_budget_text(budget, now()))))
        .unwrap_or_default();
    format!(
        "\n{}: {pending} pending, {in_progress} in progress, {completed} completed{failed}{budget}",
        team.name
    )
}

/// Index of the column with tokens and cost.
const USAGE_COLUMN: usize = 7;
/// Index of the column with the hosts of members, in a table without it.
const HOST_COLUMN: usize = 1;

/// Returns the rows of the member table, the heading first. The table has a column with tokens and
/// cost if the program of at least one member reports them. The table has a column with hosts if at
/// least one member runs on another host.
pub(super) fn member_rows(team: &TeamView) -> Vec<Vec<String>> {
    let head = ["NAME", "STATE", "ACTIVITY", "SINCE", "UNREAD", "DELIVERY", "PANE", "USAGE", "TASK"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(team.members.iter().map(member_row));
    rows.extend(shown_past_members(team).map(past_row));
    let mut usages = team
        .members
        .iter()
        .map(|member| member.usage)
        .chain(shown_past_members(team).map(|past_member| past_member.usage));
    if usages.all(|usage| usage.is_zero()) {
        rows.iter_mut().for_each(|row| drop(row.remove(USAGE_COLUMN)));
    }
    if team.members.iter().any(|member| member.host.is_some()) {
        let hosts = team.members.iter().map(|member| member.host.as_deref().map_or_else(dash, sanitize));
        let cells = std::iter::once("HOST".to_owned()).chain(hosts).chain(std::iter::repeat_with(dash));
        rows.iter_mut().zip(cells).for_each(|(row, cell)| row.insert(HOST_COLUMN, cell));
    }
    rows
}

/// What keeps a host from working with this machine. `None` if nothing does.
pub(in crate::commands) fn no_contact_line(host: &HostStatus) -> Option<String> {
    match &host.contact {
        HostContact::Connected => {
            let reason = single_line(host.storage_error.as_ref()?);
            Some(format!("host {} stores nothing: {reason}", host.host))
        }
        HostContact::IsHome { since, epoch } => Some(format!(
            "the home is {} since {}, with epoch {epoch}: this machine changes the team no more",
            host.host,
            age(*since)
        )),
        HostContact::BecomesHome { since } => Some(format!(
            "the home moves to {} since {}: this machine changes the team no more",
            host.host,
            age(*since)
        )),
        HostContact::NoContact { since, reason } => {
            let (time, reason) = (age(*since), single_line(reason));
            Some(format!("host {}: no contact for {time}: {reason}", host.host))
        }
    }
}

/// The past members that the table shows: those that need attention, and the last ones that
/// completed their work or were killed. The others are left out, because hundreds of them would
/// fill the screen.
fn shown_past_members(team: &TeamView) -> impl Iterator<Item = &PastMember> {
    let mut unremarkable_count =
        team.past_members.iter().filter(|past_member| !needs_attention(past_member)).count();
    team.past_members.iter().filter(move |past_member| {
        let is_shown = needs_attention(past_member) || unremarkable_count <= MAX_UNREMARKABLE_PAST_MEMBERS;
        unremarkable_count -= usize::from(!needs_attention(past_member));
        is_shown
    })
}

fn needs_attention(past_member: &PastMember) -> bool {
    past_member.outcome == "failed" || past_member.is_suspended || past_member.has_respawn()
}

/// The lines below the table: what needs attention, such as an unreadable config.json, failed tasks
/// or suspended members, and how many past members the table leaves out.
pub(super) fn team_notes(team: &TeamView, commands: &SuggestedCommands) -> Vec<String> {
    let abandoned = |task: &AbandonedTask| abandoned_task_line(task, commands);
    let suspended = team.past_members.iter().filter(|past_member| past_member.is_suspended).count();
    let note = match team.budget.as_ref().and_then(|budget| budget.exhausted_reason.as_ref()) {
        Some(reason) => Some(budget_line(reason, suspended, commands)),
        None => suspended_line(suspended, commands),
    };
    let json = || commands.command(&["status", "--json"]);
    let omitted = match team.past_members.len() - shown_past_members(team).count() {
        0 => None,
        1 => Some(format!("1 past member is not shown: {}", json())),
        count => Some(format!("{count} past members are not shown: {}", json())),
    };
    let abandoned = team.abandoned_tasks.iter().map(abandoned);
    let doctor = || commands.without_team().command(&["doctor"]);
    let damage = team.config_error.as_ref().map(|error| format!("{error}; what is damaged: {}", doctor()));
    let lines = damage
        .into_iter()
        .chain(team.hosts.iter().filter_map(no_contact_line))
        .chain(omitted)
        .chain(abandoned)
        .chain(team.failed_tasks.iter().map(failed_task_line))
        .chain(team.lead_session_ended_at.map(|at| lead_session_line(team, at, commands)))
        .chain(team.task_cycles.iter().map(|cycle| task_cycle_line(cycle, commands)))
        .chain(note);
    lines.map(|line| sanitize(&line)).collect()
}

fn lead_session_line(team: &TeamView, ended_at: u64, commands: &SuggestedCommands) -> String {
    let lead = commands.without_team().command(&["lead", team.name.as_str()]);
    format!("the session that led the team ended {} ago; lead it from here: {lead}", age(ended_at))
}

fn task_cycle_line(cycle: &WaitCycle, commands: &SuggestedCommands) -> String {
    format!("{cycle}, so none of them can start: {}", commands.command_to_cut(cycle))
}

/// Details of one member that the table does not show.
pub(super) fn member_details(member: &MemberView, commands: &SuggestedCommands) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(pid) = member.pid {
        let backend =
            member.backend.as_deref().map_or_else(String::new, |backend| format!(", backend {backend}"));
        let respawns = match member.respawns.unwrap_or(0) {
            0 => String::new(),
            1 => ", started again once".to_owned(),
            times => format!(", started again {times} times"),
        };
        lines.push(format!("  pid {pid}{backend}{respawns}"));
    }
    lines.extend(member.mode.iter().map(|mode| format!("  mode {}", single_line(mode))));
    if let (Some(since), Some(activity_reason)) = (member.activity_since, &member.activity_reason)
        && !activity_reason.is_empty()
    {
        let activity =
            member.activity.map(|activity| format!("{} for {}: ", activity_name(activity), age(since)));
        lines.push(format!("  {}{}", activity.unwrap_or_default(), single_line(activity_reason)));
    }
    lines.extend(member.delivery_point.map(|point| format!("  {}", point.description())));
    lines.extend(member.flags.iter().map(|flag| format!("  {}", flag_text(*flag, member, commands))));
    lines.into_iter().map(|line| sanitize(&line)).collect()
}

/// The member's environment. It is long and seldom needed, so it is printed last.
pub(super) fn environment_lines(member: &MemberView) -> Vec<String> {
    let Some(environment) = &member.environment else { return Vec::new() };
    let pairs = environment.iter().map(|(name, value)| format!("    {name}={}", single_line(value)));
    std::iter::once("  environment:".to_owned()).chain(pairs).map(|line| sanitize(&line)).collect()
}

/// The worktree of a current or past member.
pub(super) fn worktree_line(worktree: &WorktreeStatus) -> String {
    sanitize(
        &format!("  worktree {}, branch {}", worktree.path.display(), worktree.branch).replace('\n', "\\n"),
    )
}

fn member_row(member: &MemberView) -> Vec<String> {
    vec![
        paint(&member.color, &sanitize(&member.name)),
        member.lifecycle_and_flags(),
        member.activity.map_or_else(dash, activity_name),
        member.activity_since.map_or_else(dash, age),
        member.unread.map_or_else(|| "?".to_owned(), |n| n.to_string()),
        member.delivery.map_or_else(dash, |delivery| delivery.as_str().to_owned()),
        pane_cell(member),
        member.usage.to_string(),
        member.task.as_deref().map_or_else(dash, |task| sanitize(&clip_cell(task))),
    ]
}

fn pane_cell(member: &MemberView) -> String {
    if member.backend.as_deref() == Some(Backend::Iterm2.as_str()) {
        // The id of a session is too long for a table.
        return "iterm2".to_owned();
    }
    let in_process = member.backend.as_deref().filter(|backend| *backend == "in-process");
    match (&member.pane, member.is_hidden) {
        (Some(pane), true) => format!("{pane} hidden"),
        (pane, _) => pane.as_deref().or(in_process).unwrap_or("-").to_owned(),
    }
}

fn flag_text(flag: MemberFlag, member: &MemberView, commands: &SuggestedCommands) -> String {
    let text = match flag {
        MemberFlag::AtDialog => {
            let attach = commands.command_for_name("attach", &member.name, &[]);
            let question = member.dialog.as_ref().map(|text| format!(" ({})", single_line(text)));
            let question = question.unwrap_or_default();
            return format!("its program waits at a dialog{question}: go there with {attach}");
        }
        MemberFlag::NoOutput => {
            let capture = commands.command_for_name("capture", &member.name, &[]);
            return format!(
                "its turn has written nothing for long, it may wait for a person; see its screen: {capture}"
            );
        }
        MemberFlag::Limited => return limit_text(member, commands),
        MemberFlag::Paused | MemberFlag::TurnsStopped => return pause_text(member, commands),
        MemberFlag::AwaitingPlanApproval => "its plan waits for an answer",
        MemberFlag::AwaitingPermission => "it asks for permission, and waits for the answer",
        MemberFlag::ShutdownRequested => "it was asked to shut down, and has not answered",
        MemberFlag::DialogUnknown => {
            "whether its program waits at a dialog is not known: tmux did not show its screen"
        }
    };
    text.to_owned()
}

/// Why turns of the member wait, and what starts the next one.
fn pause_text(member: &MemberView, commands: &SuggestedCommands) -> String {
    match &member.turn_pause {
        Some(TurnPause::FailedTurns(pause)) => failed_turns_text(member, pause, commands),
        Some(TurnPause::Exchange(pause)) => format!(
            "it answered {with} in {} turns within {}: more messages from {with} wait {}",
            pause.turns,
            short_duration(pause.within_ms),
            short_duration(pause.until.saturating_sub(now())),
            with = single_line(pause.with.as_str()),
        ),
        Some(TurnPause::NoContact(pause)) => format!(
            "it begins no turn until the home of its team has contact again: none for {}",
            short_duration(now().saturating_sub(pause.since)),
        ),
        None => "its turns are paused".to_owned(),
    }
}

/// Until when the member's program is at its usage limit, and what starts the next turn.
fn limit_text(member: &MemberView, commands: &SuggestedCommands) -> String {
    let time = member.usage_limit.as_ref().map(|limit| single_line(&limit.local_time)).unwrap_or_default();
    let limited = format!("its program is limited until {time}");
    match &member.turn_pause {
        Some(TurnPause::FailedTurns(FailedTurnsPause { reason, until: Some(until), .. })) => {
            let send = commands.command_for_name("send", &member.name, &["TEXT"]);
            let wait = short_duration(until.saturating_sub(now()));
            format!(
                "{limited} ({}): the next turn starts in {wait}, or at once with {send}",
                single_line(reason)
            )
        }
        _ => limited,
    }
}

/// How many turns of the member have failed, why, and what starts the next one.
fn failed_turns_text(member: &MemberView, pause: &FailedTurnsPause, commands: &SuggestedCommands) -> String {
    let turns = match pause.failed_turns {
        1 => "its last turn has failed".to_owned(),
        count => format!("its last {count} turns have failed"),
    };
    let send = commands.command_for_name("send", &member.name, &["TEXT"]);
    let next_turn = match pause.until.map(|at| short_duration(at.saturating_sub(now()))) {
        Some(time) => format!("the next turn starts in {time}, or at once with {send}"),
        None => format!("it starts no further turn until you write to it: {send}"),
    };
    format!("{turns} ({}): {next_turn}", single_line(&pause.reason))
}

fn past_row(past_member: &PastMember) -> Vec<String> {
    let seconds = past_member.respawns_at.map(|at| at.saturating_sub(now()).div_ceil(1000));
    let next_spawn = seconds.map(|seconds| format!(", again in {seconds} s"));
    let exhausted =
        past_member.respawns_exhausted_reason.as_ref().map(|reason| format!(", not started again: {reason}"));
    let next_spawn = next_spawn.or(exhausted).unwrap_or_default();
    let state = if past_member.is_suspended { "suspended" } else { &past_member.outcome };
    let mut row =
        vec![sanitize(past_member.name.as_str()), sanitize(state), dash(), age(past_member.ended_at)];
    row.extend([
        dash(),
        dash(),
        dash(),
        past_member.usage.to_string(),
        sanitize(&format!("{}{next_spawn}", clip_cell(&past_member.description))),
    ]);
    row
}

pub(in crate::commands) fn abandoned_task_line(task: &AbandonedTask, commands: &SuggestedCommands) -> String {
    let release = commands.command(&["task", "release", &task.id.to_string()]);
    format!("task {} was left by {}: {release}", task.id, task.owner)
}

/// The note about an exhausted budget, with the commands that let members start again.
fn budget_line(reason: &str, suspended_count: usize, commands: &SuggestedCommands) -> String {
    let raise = commands.command(&["policy", "FILE"]);
    let resume = commands.command(&["up", "--resume"]);
    let next_step = match suspended_count {
        0 => String::new(),
        _ => format!("; then resume the suspended members with: {resume}"),
    };
    format!("No member is started: {reason}; give it more with: {raise}{next_step}")
}

fn failed_task_line(task: &FailedTask) -> String {
    format!("task {} failed ({})", task.id, clip_cell(&task.failure))
}

fn dash() -> String {
    "-".to_owned()
}

fn activity_name(activity: Activity) -> String {
    match activity {
        Activity::Active => "active".to_owned(),
        Activity::Idle => "idle".to_owned(),
    }
}

/// The time since `since`, which is in ms since the epoch.
fn age(since: u64) -> String {
    short_duration(now().saturating_sub(since))
}

/// The first line of the text, cut to [`CELL_WIDTH`].
fn clip_cell(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().replace('\t', " ");
    match line.char_indices().nth(CELL_WIDTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            ["ann", "running!shutdown", "active", "0s", "?", "turn", "in-process", "count"]
                .map(str::to_owned)
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
        let budget =
            json!({"turns": 2, "started_at": 1, "exhausted_reason": "its budget of 2 turns is used up"});
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
            member_details(&ann, &SuggestedCommands::default())
                .iter()
                .all(|line| !line.contains("environment"))
        );
        assert_eq!(environment_lines(&ann), ["  environment:", "    A=b c"]);
    }

    #[test]
    fn long_text_is_clipped_between_characters() {
        assert_eq!(clip_cell(&"é".repeat(41)), format!("{}…", "é".repeat(40)));
        assert_eq!(clip_cell(&"é".repeat(40)), "é".repeat(40));
        assert_eq!(clip_cell(""), "");
    }
}
