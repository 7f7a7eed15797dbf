//! The report as a page of Markdown that people read in a terminal.

use super::branch_section::{PAGE_COLUMNS, branch_lines};
use super::failures::ReportedFailure;
use super::team_report::{TeamReport, time_text};
use crate::add_options_to_suggested_commands::rewrite_commands;
use crate::command_context::CommandContext;
use crate::commands::task_result_table::{ReasonColumn, log_help, result_rows};
use crate::output::{clip, sanitize, table_lines};
use client::short_duration::short_duration;
use client::suggested_commands::SuggestedCommands;
use protocol::single_line::single_line;
use runner::{TaskOutcome, TaskResult};

/// How many lines the page has at most, if the list of tasks alone can be cut.
const PAGE_LINES: usize = 40;

/// The shortest and the longest list of tasks.
const TASK_LINES: (usize, usize) = (6, 20);

/// The longest list of failures, and of items that wait for a person.
const MAX_ITEMS: usize = 5;

/// In Markdown, a line with this indent is shown as it is.
const TABLE_INDENT: &str = "    ";

/// The lines of the page. `commands` are for the team of the report.
pub(super) fn page(
    context: &CommandContext,
    report: &TeamReport,
    commands: &SuggestedCommands,
) -> Vec<String> {
    let sections = [
        failure_lines(context, report, commands),
        open_task_lines(report, commands),
        waiting_lines(report, commands),
        branch_lines(&report.branches),
        cost_lines(report),
    ];
    let other_lines: usize = sections.iter().map(|section| section.len() + 1).sum();
    let (shortest, longest) = TASK_LINES;
    let free_lines = PAGE_LINES.saturating_sub(other_lines + report.notes.len() + 8);
    let tasks = task_lines(report, free_lines.clamp(shortest, longest), commands);
    let mut lines = vec![heading(report)];
    if !report.notes.is_empty() {
        lines.extend([String::new(), report.notes.join(" ")]);
    }
    for section in std::iter::once(tasks).chain(sections).filter(|section| !section.is_empty()) {
        lines.push(String::new());
        lines.extend(section);
    }
    lines.iter().map(|line| sanitize(line)).collect()
}

/// `# night, since 2026-11-27 22:00 UTC, 9h ago`.
fn heading(report: &TeamReport) -> String {
    let begin = match (report.since, report.log_begins_at) {
        (Some(since), _) => Some(("since", since)),
        (None, Some(first)) => Some(("from", first)),
        (None, None) => None,
    };
    let begin = begin.map(|(word, at)| {
        let age = short_duration(report.now.saturating_sub(at));
        format!(", {word} {} UTC, {age} ago", time_text(at))
    });
    format!("# {}{}", report.team, begin.unwrap_or_default())
}

/// The table of the tasks that ended, at most `max_rows` of them.
fn task_lines(report: &TeamReport, max_rows: usize, commands: &SuggestedCommands) -> Vec<String> {
    let counts = &report.task_counts;
    let (completed, failed, open) = (counts.completed, counts.failed, counts.open);
    let open_word = if report.waiting.is_some() { "open" } else { "not done" };
    let mut lines = vec![format!("## Tasks: {completed} completed, {failed} failed, {open} {open_word}")];
    if report.tasks.is_empty() {
        return lines;
    }
    lines.push(String::new());
    let shown = &report.tasks[..report.tasks.len().min(max_rows)];
    let rows = table_lines(&result_rows(shown, ReasonColumn::Omitted));
    lines.extend(
        rows.iter().map(|row| format!("{TABLE_INDENT}{}", clip(row, PAGE_COLUMNS - TABLE_INDENT.len()))),
    );
    let rest = report.tasks.len() - shown.len();
    if rest > 0 {
        let command = commands.command(&["report", "--json"]);
        lines.extend([String::new(), format!("… and {rest} more: `{command}`")]);
    }
    lines
}

fn failure_lines(context: &CommandContext, report: &TeamReport, commands: &SuggestedCommands) -> Vec<String> {
    if report.failures.is_empty() {
        return vec!["Nothing failed.".to_owned()];
    }
    let lines = report.failures.iter().map(ReportedFailure::line).collect();
    let mut lines = list("## Failed", lines, &commands.command(&["report", "--json"]));
    let help = log_help(&report.team, &report.tasks).map(|help| rewrite_commands(context, &help));
    lines.extend(help.iter().flat_map(|help| [String::new(), capitalized(help)]));
    lines.extend(release_line(report, commands));
    lines
}

/// How a failed task is tried again. `None` if there is none, or if the team is deleted.
fn release_line(report: &TeamReport, commands: &SuggestedCommands) -> Option<String> {
    report.waiting.as_ref()?;
    let failed_task = report.tasks.iter().find(|task| task.outcome == TaskOutcome::Failed)?;
    let release = commands.command(&["task", "release", &failed_task.id?.to_string()]);
    Some(format!("Then try it again: `{release}`"))
}

fn open_task_lines(report: &TeamReport, commands: &SuggestedCommands) -> Vec<String> {
    if report.open_tasks.is_empty() {
        return Vec::new();
    }
    list(
        "## Open",
        report.open_tasks.iter().map(open_task_line).collect(),
        &commands.command(&["task", "list"]),
    )
}

/// `task 7 (check) of wes: waits for task 6`.
fn open_task_line(task: &TaskResult) -> String {
    let id = task.id.map_or_else(String::new, |id| format!(" {id}"));
    let owner = task.owner.as_ref().map_or_else(String::new, |owner| format!(" of {owner}"));
    let reason = task.reason.as_deref().unwrap_or_default();
    clip(&single_line(&format!("task{id} ({}){owner}: {reason}", task.subject)), PAGE_COLUMNS)
}

fn capitalized(help: &str) -> String {
    let mut chars = help.chars();
    chars.next().map_or_else(String::new, |first| format!("{}{}", first.to_uppercase(), chars.as_str()))
}

fn waiting_lines(report: &TeamReport, commands: &SuggestedCommands) -> Vec<String> {
    let Some(waiting) = &report.waiting else { return Vec::new() };
    let items = waiting.lines(commands, report.now);
    if items.is_empty() {
        return vec!["Nothing waits for a person.".to_owned()];
    }
    let mut lines = list("## Waits for a person", items, &commands.command(&["why"]));
    if waiting.has_requests() {
        let requests = commands.command(&["requests"]);
        lines.extend([String::new(), format!("See and answer the requests: `{requests}`")]);
    }
    lines
}

/// A heading and a list of at most [`MAX_ITEMS`] items. `command` shows all of them.
fn list(heading: &str, items: Vec<String>, command: &str) -> Vec<String> {
    let rest = items.len().saturating_sub(MAX_ITEMS);
    let rest = (rest > 0).then(|| format!("- … and {rest} more: `{command}`"));
    let items = items.into_iter().take(MAX_ITEMS).map(|item| format!("- {}", single_line(&item)));
    [heading.to_owned(), String::new()].into_iter().chain(items).chain(rest).collect()
}

fn cost_lines(report: &TeamReport) -> Vec<String> {
    let cost = &report.cost;
    let mut lines = vec![format!("## Cost: {}", cost.total_text(report.since, report.now))];
    let members = cost.member_texts();
    if !members.is_empty() {
        lines.push(String::new());
        lines.extend(wrap(&members));
    }
    if report.since.is_some() && cost.usage.is_some_and(|usage| !usage.is_zero()) {
        lines.push("Turns are since then; tokens and cost are of the whole time.".to_owned());
    }
    lines
}

/// The items with `; ` between them, in lines that fit the page.
fn wrap(items: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if line.len() + item.len() + 3 <= PAGE_COLUMNS => *line += &format!("; {item}"),
            Some(line) => {
                line.push(';');
                lines.push(item.clone());
            }
            None => lines.push(item.clone()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::member_costs::TeamCost;
    use super::super::read_member_branches::{BranchState, MemberBranch, NewCommit};
    use super::super::team_events::TeamEvents;
    use super::super::team_report::ReportedTaskCounts;
    use super::super::waiting_for_person::WaitingForPerson;
    use super::*;
    use crate::command_context::GlobalArgs;
    use protocol::event_log_line::Event;
    use protocol::member_task_and_request_ids::TaskId;
    use protocol::roster_file_for_clients::TeamUsageRecord;
    use protocol::team_and_member_names::{MemberName, TeamName};
    use protocol::token_and_cost_usage::Usage;

    fn name(number: usize) -> MemberName {
        MemberName::new_unchecked(&format!("m{number}"))
    }

    fn branch(number: usize) -> MemberBranch {
        let commit =
            || NewCommit { id: "c".into(), subject: "change the lexer\nand more".into(), committed_at: 1 };
        let branch = format!("teamd/night/m{number}");
        let command = Some(format!("git -C /home/me/night log --oneline main..{branch}"));
        MemberBranch {
            member: name(number),
            branch,
            host: None,
            worktree: "/home/me/night.worktrees/night-m1".into(),
            state: BranchState::Present {
                commits: 5,
                newest: vec![commit(), commit(), commit()],
                target: "main".into(),
                unmerged: 5,
                command,
            },
            uncommitted: Vec::new(),
            worktree_error: None,
        }
    }

    fn task(number: usize) -> TaskResult {
        TaskResult {
            key: Some(format!("t{number}")),
            id: None,
            subject: "a subject that is too long for a line of eighty columns, so it is clipped".into(),
            owner: Some("m1".into()),
            outcome: TaskOutcome::Completed,
            seconds: Some(1.0),
            reason: None,
            answer: None,
        }
    }

    fn report(members: usize, tasks: usize) -> TeamReport {
        let turn = |number| -> Event {
            let member = name(number);
            let line = format!(
                r#"{{"time":"1970-01-01T00:00:00Z","team":"night","member":"{member}","event":"member_active"}}"#
            );
            serde_json::from_str(&line).unwrap()
        };
        let events = TeamEvents::new(&(0..members).map(turn).collect::<Vec<_>>(), None);
        let usage = Usage { tokens: 120_000, microdollars: 420_000 };
        let usage =
            TeamUsageRecord { total: usage, members: (0..members).map(|n| (name(n), usage)).collect() };
        TeamReport {
            team: TeamName::parse("night").unwrap(),
            since: None,
            now: 9 * 3_600_000,
            log_begins_at: Some(0),
            deleted_at: None,
            notes: Vec::new(),
            tasks: (0..tasks).map(task).collect(),
            task_counts: ReportedTaskCounts { completed: tasks, failed: 0, open: 2 },
            open_tasks: Vec::new(),
            failures: Vec::new(),
            waiting: Some(WaitingForPerson::default()),
            branches: (0..members).map(branch).collect(),
            cost: TeamCost::new(&events, Some(&usage), None),
        }
    }

    fn lines(report: &TeamReport) -> Vec<String> {
        let args = GlobalArgs { root: None, socket: None, team: None, host: None, json: false, quiet: false };
        page(&CommandContext::new(args), report, &SuggestedCommands::default())
    }

    #[test]
    fn page_of_eight_members_has_about_forty_lines_of_eighty_columns() {
        let lines = lines(&report(8, 30));
        assert!(lines.len() <= 44, "{}: {lines:#?}", lines.len());
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
        assert!(lines.contains(&"… and 24 more: `teamctl report --json`".to_owned()), "{lines:#?}");
    }

    #[test]
    fn page_of_a_small_team_has_a_line_for_each_commit() {
        let text = lines(&report(1, 1)).join("\n");
        let expected = "# night, from 1970-01-01 00:00 UTC, 9h ago\n\n## Tasks: 1 completed, 0 failed, 2 open\n\n    \
            TASK  OWNER  TIME  OUTCOME    SUBJECT\n    \
            t0    m1     1.0s  completed  a subject that is too long for a line of eigh…\n\n\
            Nothing failed.\n\nNothing waits for a person.\n\n## Branches\n\n\
            - m0, teamd/night/m0: 5 new commits, 5 not in main\n  - change the lexer and more\n  \
            - change the lexer and more\n  - change the lexer and more\n  \
            `git -C /home/me/night log --oneline main..teamd/night/m0`\n\n\
            ## Cost: 1 turn, 120.0k tokens, $0.42\n\nm0: 1 turn, 120.0k tokens, $0.42";
        assert_eq!(text, expected);
    }

    #[test]
    fn open_tasks_are_listed_with_the_reason() {
        let open = TaskResult {
            id: Some(TaskId::from_number(7).unwrap()),
            subject: "check".into(),
            reason: Some("waits for task 6".into()),
            ..task(7)
        };
        let report = TeamReport { open_tasks: vec![open], ..report(1, 1) };
        let text = lines(&report).join("\n");
        assert!(text.contains("\n\n## Open\n\n- task 7 (check) of m1: waits for task 6\n\n"), "{text}");
    }

    #[test]
    fn lists_are_cut_and_say_how_to_see_the_rest() {
        let items = (0..7).map(|number| format!("item\n{number}")).collect();
        let lines = list("## Failed", items, "teamctl why");
        assert_eq!(lines.len(), 2 + MAX_ITEMS + 1);
        assert_eq!((lines[2].as_str(), lines[7].as_str()), ("- item 0", "- … and 2 more: `teamctl why`"));
    }
}
