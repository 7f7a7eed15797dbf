//! `status`: shows teams and members. The status of agents comes from the daemon. Messages and
//! tasks come from the team files. If no daemon runs, the command shows only the files and the
//! suspended members from the roster, and the exit code is 69.

mod member_details;
mod notes_below_table;
mod past_members_in_table;
mod table;
mod table_cells;
mod tmux_segment;

pub(super) use notes_below_table::abandoned_task_line;

use crate::add_options_to_suggested_commands::{
    rewrite_commands, suggested_commands, suggested_commands_for_team,
};
use crate::command_context::CommandContext;
use crate::commands::daemon_suspension_and_budget_lines::interrupted_run_line;
use crate::output::{self, print_json, print_line, print_table, print_warning};
use client::member_view::count_unread;
use client::status_source::{StatusSource, read_suspended_teams};
use client::team_view::{TeamView, team_view};
use protocol::control_socket::{Request, StatusReply};
use protocol::did_you_mean::did_you_mean;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::{TeamName, strip_team};
use runner::{InterruptedRun, interrupted_run};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::process::ExitCode;
use store::Root;

/// Show teams and members with state, task and unread messages
///
/// Example: teamctl status
///
/// `teamctl ps` is the same command. With a name, it also shows the member's process, and why the
/// member counts as active or idle. For a member that has exited, it shows how. For a task that
/// such a member left in progress, it shows what to do.
///
/// Exit code 0: teamd answers. 69: no teamd runs; only the files and the suspended members are
/// shown.
///
/// --format tmux prints a segment for tmux's status line, such as `survey 2/5 !1 x1 z1`: two of
/// five members are active, one waits for a person, one has failed, one is suspended.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl ps ann\n  git merge \"$(teamctl status ann --format branch)\"\n  tmux set -ag status-right ' #(teamctl status --format tmux)'"
)]
pub(crate) struct StatusArgs {
    /// Show only this member, with details
    name: Option<String>,
    /// Also show the teams of Claude Code's own sessions
    #[arg(long)]
    all: bool,
    /// With a name, also show the member's environment
    #[arg(short, long, requires = "name")]
    verbose: bool,
    /// Print one line for other programs: a segment for tmux's status line, or the branch of the
    /// worktree of the member NAME
    #[arg(long, value_enum, conflicts_with = "all")]
    format: Option<StatusFormat>,
}

/// The values of `--format`. Doc comments on them would become part of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StatusFormat {
    Tmux,
    Branch,
}

/// A team as `status --json` prints it.
#[derive(Debug, Serialize)]
struct TeamAndRun {
    #[serde(flatten)]
    team: TeamView,
    /// The team's `teamctl run`, if it was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupted_run: Option<InterruptedRun>,
}

pub(crate) fn run(context: &CommandContext, args: &StatusArgs) -> Result<ExitCode, ErrorReport> {
    match (args.format, &args.name) {
        (Some(StatusFormat::Tmux), None) => return print_tmux_segment(context),
        (Some(StatusFormat::Tmux), Some(_)) => return Err(format_error("tmux", "leave out NAME")),
        (Some(StatusFormat::Branch), None) => return Err(format_error("branch", "name a member")),
        (Some(StatusFormat::Branch), Some(name)) => return print_branch(context, name, args),
        (None, _) => {}
    }
    let status = running_daemon_status(context)?;
    let teams = teams_with_members(context, status.as_ref().ok(), args)?;
    if context.args.json {
        let daemon = status.as_ref().ok().map(|status| &status.daemon);
        print_json(&json!({"ok": status.is_ok(), "daemon": daemon, "teams": teams}).to_string());
    } else if !context.args.quiet {
        print_teams(context, &teams, status.as_ref().ok(), args)?;
    }
    let Err(error) = status else { return Ok(ExitCode::SUCCESS) };
    let help = error.help.as_ref().map(|help| format!("\n  {}", rewrite_commands(context, help)));
    let source_note = if teams.is_empty() { "" } else { "; the lines above are from the files" };
    print_warning(&format!("{}{source_note}{}", error.message, help.unwrap_or_default()));
    Ok(ExitCode::from(error.kind.exit_code()))
}

/// The daemon's status. The inner result is an error if no daemon is running.
fn running_daemon_status(context: &CommandContext) -> Result<Result<StatusReply, ErrorReport>, ErrorReport> {
    match context.request(Request::StatusWithScreens) {
        Ok(status) => Ok(Ok(status)),
        Err(error) if error.kind == ErrorKind::NoDaemon => Ok(Err(error)),
        Err(error) => Err(error),
    }
}

/// Prints the tmux segment from the daemon's status alone. No file is read, because tmux runs this
/// command every few seconds.
fn print_tmux_segment(context: &CommandContext) -> Result<ExitCode, ErrorReport> {
    match context.daemon_status() {
        Ok(status) => {
            let team = context.args.team.as_deref().and_then(|name| TeamName::parse(name).ok());
            print_line(&tmux_segment::segment_line(&status, team.as_ref()));
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            print_line(tmux_segment::DAEMON_DOWN);
            Ok(ExitCode::from(error.kind.exit_code()))
        }
    }
}

fn format_error(format: &str, help: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::Usage, format!("cannot print --format {format}")).with_help(help)
}

/// Prints the branch that the worktree of a current or past member was created for.
fn print_branch(context: &CommandContext, name: &str, args: &StatusArgs) -> Result<ExitCode, ErrorReport> {
    let status = context.daemon_status()?;
    let teams = teams_with_members(context, Some(&status), args)?;
    let branches: Vec<&str> = teams.iter().filter_map(|team| latest_branch(&team.team)).collect();
    let [branch] = branches.as_slice() else {
        let (reason, help) = match branches.is_empty() {
            true => ("it has no worktree", "a member gets one with: teamctl spawn NAME --worktree"),
            false => ("several teams have such a member", "name its team with -t TEAM"),
        };
        let message = format!("cannot print the branch of {name}: {reason}");
        return Err(ErrorReport::new(ErrorKind::NotFound, message).with_help(help));
    };
    output::print_result(context, &json!({"name": name, "branch": branch}), &output::sanitize(branch));
    Ok(ExitCode::SUCCESS)
}

/// The branch of the only member of `team`: that of its current worktree, or else of its last one.
fn latest_branch(team: &TeamView) -> Option<&str> {
    let current = team.members.iter().find_map(|member| member.branch.as_deref());
    current.or_else(|| team.worktrees.last().map(|tree| tree.branch.as_str()))
}

/// The selected teams, reduced to one member if a name is given.
fn teams_with_members(
    context: &CommandContext,
    status: Option<&StatusReply>,
    args: &StatusArgs,
) -> Result<Vec<TeamAndRun>, ErrorReport> {
    let Some(root) = context.existing_root()? else { return Ok(Vec::new()) };
    let state = context.directories()?.state_dir;
    let suspended_teams = if status.is_none() { read_suspended_teams(&state) } else { Vec::new() };
    let source = StatusSource::from_reply_or_roster(status, &suspended_teams);
    let mut teams = team_views(context, &root, source, args)?;
    let leads = store::read_leads_file(&state);
    teams.iter_mut().for_each(|team| team.set_lead_session(&leads));
    if let Some(name) = &args.name {
        keep_member(&mut teams, name)?;
        let state_dir = context.state_dir()?;
        let members = teams.iter_mut().flat_map(|team| &mut team.members);
        if args.verbose || context.args.json {
            members.for_each(|member| member.load_environment(&state_dir));
        }
    }
    let run_of = |team: &TeamView| interrupted_run(&state, &root.team(&team.name).ok()?);
    Ok(teams.into_iter().map(|team| TeamAndRun { interrupted_run: run_of(&team), team }).collect())
}

fn team_views(
    context: &CommandContext,
    root: &Root,
    source: StatusSource,
    args: &StatusArgs,
) -> Result<Vec<TeamView>, ErrorReport> {
    let selected_team = context.args.team.is_some().then(|| context.team_name(root)).transpose()?;
    let is_shown = |team: &TeamName| match &selected_team {
        Some(selected_team) => team == selected_team,
        None => args.all || !team.is_claude_session(),
    };
    // While a team's config.json is missing, only the daemon knows the team.
    let known_names = source.teams().iter().map(|team| team.name.clone());
    let names: BTreeSet<TeamName> = root.teams()?.into_iter().chain(known_names).filter(is_shown).collect();
    Ok(names.into_iter().map(|name| team_view(root, name, source, &mut count_unread)).collect())
}

/// Removes everything that is not about the current or past member `name`.
fn keep_member(teams: &mut Vec<TeamView>, name: &str) -> Result<(), ErrorReport> {
    let team_members = |team: &TeamView| {
        let past_names = team.past_members.iter().map(|past_member| past_member.name.to_string());
        team.members.iter().map(|member| member.name.clone()).chain(past_names).collect::<Vec<_>>()
    };
    let known_names: Vec<String> = teams.iter().flat_map(team_members).collect();
    let team_of_name = teams.iter().map(|team| &team.name).find(|team| team.as_str() == name).cloned();
    for team in teams.iter_mut() {
        let bare_name = strip_team(name, &team.name);
        let is_match = |name: &str| name.eq_ignore_ascii_case(bare_name);
        team.members.retain(|member| is_match(&member.name));
        team.past_members.retain(|past_member| is_match(past_member.name.as_str()));
        team.worktrees.retain(|worktree| is_match(worktree.member.as_str()));
        team.abandoned_tasks.retain(|task| is_match(task.owner.as_str()));
        team.failed_tasks.retain(|task| task.owner.as_ref().is_some_and(|owner| is_match(owner.as_str())));
    }
    teams.retain(|team| !team.members.is_empty() || !team.past_members.is_empty());
    if !teams.is_empty() {
        return Ok(());
    }
    if let Some(team) = team_of_name {
        let message = format!("cannot find a member {name}: it is a team");
        return Err(ErrorReport::new(ErrorKind::NotFound, message)
            .with_help(format!("its status: teamctl status -t {team}")));
    }
    let suggestion = did_you_mean(name, known_names.iter().map(String::as_str));
    Err(ErrorReport::new(ErrorKind::NotFound, format!("cannot find {name}: no such member"))
        .with_help(suggestion.unwrap_or_else(|| "list them with: teamctl status".to_owned())))
}

fn print_teams(
    context: &CommandContext,
    teams: &[TeamAndRun],
    status: Option<&StatusReply>,
    args: &StatusArgs,
) -> Result<(), ErrorReport> {
    if let Some(StatusReply { daemon, .. }) = status {
        let tmux = daemon.tmux.as_ref().map(|path| format!("tmux {}", path.display()));
        let tmux = tmux.unwrap_or_else(|| "no tmux".to_owned());
        let root = daemon.root.display();
        print_line(&format!("teamd {}, pid {}, root {root}, {tmux}", daemon.version, daemon.pid));
        if daemon.watch_mode == "rescan" {
            let doctor = suggested_commands(context).command(&["doctor"]);
            print_line(&format!("teamd cannot watch files, so it reads them every 2 s; see why: {doctor}"));
        }
    }
    for team in teams {
        print_team(context, team, args)?;
    }
    if teams.is_empty() {
        let create = suggested_commands(context).command(&["create", "NAME"]);
        // Without a daemon, the first step is to start one: an error says so.
        let hint = status.map_or_else(String::new, |_| format!(" Create one: {create}"));
        print_line(&format!("No teams.{hint}"));
        print_session_teams_hint(context)?;
    }
    Ok(())
}

/// Says that `--all` shows the teams of Claude Code's own sessions, if there are any.
fn print_session_teams_hint(context: &CommandContext) -> Result<(), ErrorReport> {
    let teams = context.existing_root()?.map_or(Ok(Vec::new()), |root| root.teams())?;
    let count = teams.iter().filter(|team| team.is_claude_session()).count();
    let all_command = suggested_commands(context).command(&["status", "--all"]);
    match count {
        0 => {}
        1 => print_line(&format!("1 team of a Claude Code session: {all_command}")),
        count => print_line(&format!("{count} teams of Claude Code sessions: {all_command}")),
    }
    Ok(())
}

fn print_team(
    context: &CommandContext,
    TeamAndRun { team, interrupted_run }: &TeamAndRun,
    args: &StatusArgs,
) -> Result<(), ErrorReport> {
    let commands = suggested_commands_for_team(context, &team.name)?;
    print_line(&table::team_heading(team));
    print_table(&table::member_rows(team));
    let mut lines = Vec::new();
    if args.name.is_some() {
        lines
            .extend(team.members.iter().flat_map(|member| member_details::member_details(member, &commands)));
        lines.extend(team.worktrees.iter().map(member_details::worktree_line));
    }
    lines.extend(notes_below_table::team_notes(team, &commands));
    lines.extend(interrupted_run.iter().map(|run| output::sanitize(&interrupted_run_line(run, &commands))));
    lines.extend(team.members.iter().flat_map(member_details::environment_lines));
    lines.iter().for_each(|line| print_line(line));
    Ok(())
}
