//! `status`: teams and members. The daemon tells who lives; the files tell mail and tasks. Without a daemon
//! there are the files alone, and its roster for who rests, and exit code 69.

mod table;
mod tmux_segment;

use crate::command_rewriter;
use crate::context::CommandContext;
use crate::output;
use client::error::unexpected_reply;
use client::team_view::{StatusSource, TeamView, count_unread, read_suspended_teams, team_view};
use protocol::control::{Reply, Request, StatusReply};
use protocol::did_you_mean::did_you_mean;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{TeamName, strip_team};
use serde_json::json;
use std::process::ExitCode;
use store::Root;

/// Show teams and members: phase, activity, task, unread mail, pane
///
/// With a name also its process, and what tells us that it is active or idle. A member that ended is told with
/// how, and a task that it left behind with what to do.
///
/// Exit code 0 when teamd answers, 69 when there is none: then the files are told as they stand, and who rests.
///
/// With --format tmux it is a segment for tmux's status line: of each team how many of its members are active, behind
/// a ! how many wait for somebody, behind an x how many have failed, behind a z how many rest.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl status\n  teamctl ps ann\n  teamctl status --json\n  tmux set -ag status-right ' #(teamctl status --format tmux)'"
)]
pub(crate) struct StatusArgs {
    /// Only this member
    name: Option<String>,
    /// Also teams that Claude Code keeps for its own sessions
    #[arg(long)]
    all: bool,
    /// A segment for a status line
    #[arg(long, value_enum, conflicts_with_all = ["name", "all"])]
    format: Option<StatusFormat>,
}

/// See `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StatusFormat {
    /// With tmux's styles
    Tmux,
}

pub(crate) fn run(here: &CommandContext, args: &StatusArgs) -> Result<ExitCode, ErrorReport> {
    if args.format.is_some() {
        return print_tmux_segment(here);
    }
    let asked = here.call_daemon(Request::StatusWithScreens);
    let daemon = match asked {
        Ok(Reply::Status(status)) => Ok(status),
        Ok(_) => return Err(unexpected_reply()),
        Err(fault) if fault.kind == ErrorKind::NoDaemon => Err(fault),
        Err(fault) => return Err(fault),
    };
    let root = here.root()?;
    let written =
        if daemon.is_err() { read_suspended_teams(&here.directories()?.state_dir) } else { Vec::new() };
    let mut teams =
        team_views(here, &root, StatusSource::from_reply_or_roster(daemon.as_ref().ok(), &written), args)?;
    let leads = store::read_leads_file(&here.directories()?.state_dir);
    teams.iter_mut().for_each(|team| team.set_lead_session(&leads));
    if let Some(name) = &args.name {
        keep_member(&mut teams, name)?;
        let state = here.state_dir()?;
        let members = teams.iter_mut().flat_map(|team| &mut team.members);
        members.for_each(|member| member.load_environment(&state));
    }
    let told = daemon.as_ref().ok().map(|status| &status.daemon);
    if here.args.json {
        let ok = daemon.is_ok();
        output::print_json(&json!({"ok": ok, "daemon": told, "teams": teams}).to_string());
    } else if !here.args.quiet {
        print_teams(here, &teams, &daemon, args)?;
    }
    match daemon {
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(fault) => {
            let next = fault.help.as_ref().map_or_else(String::new, |hint| {
                format!("\n  {}", command_rewriter::rewrite_commands(here, hint))
            });
            output::print_warning(&format!("{}; this is what the files say{next}", fault.message));
            Ok(ExitCode::from(fault.kind.exit_code()))
        }
    }
}

/// Of what the daemon knows: no file is read, and no other word said, since a status line shows it again and again.
fn print_tmux_segment(here: &CommandContext) -> Result<ExitCode, ErrorReport> {
    match here.daemon_status() {
        Ok(Reply::Status(status)) => {
            let team = here.args.team.as_deref().and_then(|name| TeamName::parse(name).ok());
            output::print_line(&tmux_segment::segment_line(&status, team.as_ref()));
            Ok(ExitCode::SUCCESS)
        }
        Ok(_) => Err(unexpected_reply()),
        Err(fault) => {
            output::print_line(tmux_segment::DAEMON_DOWN);
            Ok(ExitCode::from(fault.kind.exit_code()))
        }
    }
}

fn team_views(
    here: &CommandContext,
    root: &Root,
    lives: StatusSource,
    args: &StatusArgs,
) -> Result<Vec<TeamView>, ErrorReport> {
    let named = here.args.team.is_some().then(|| here.team_name(root)).transpose()?;
    let shown = |team: &TeamName| match &named {
        Some(named) => team == named,
        None => args.all || !team.is_claude_session(),
    };
    let names: Vec<TeamName> = root.teams()?.into_iter().filter(shown).collect();
    Ok(names.into_iter().map(|name| team_view(root, name, lives, &mut count_unread)).collect())
}

fn keep_member(teams: &mut Vec<TeamView>, name: &str) -> Result<(), ErrorReport> {
    let names = |team: &TeamView| {
        let past = team.past_members.iter().map(|past| past.name.to_string());
        team.members.iter().map(|member| member.name.clone()).chain(past).collect::<Vec<_>>()
    };
    let all: Vec<String> = teams.iter().flat_map(names).collect();
    for team in teams.iter_mut() {
        let bare = strip_team(name, &team.name);
        let is_it = |name: &str| name.eq_ignore_ascii_case(bare);
        team.members.retain(|member| is_it(&member.name));
        team.past_members.retain(|past| is_it(past.name.as_str()));
        team.worktrees.retain(|tree| is_it(tree.member.as_str()));
        team.abandoned_tasks.retain(|task| is_it(task.owner.as_str()));
        team.failed_tasks.retain(|task| task.owner.as_ref().is_some_and(|owner| is_it(owner.as_str())));
    }
    teams.retain(|team| !team.members.is_empty() || !team.past_members.is_empty());
    if !teams.is_empty() {
        return Ok(());
    }
    let near = did_you_mean(name, all.iter().map(String::as_str));
    Err(ErrorReport::new(ErrorKind::NotFound, format!("cannot find {name}: no such member"))
        .with_help(near.unwrap_or_else(|| "those there are: teamctl status".to_owned())))
}

fn print_teams(
    here: &CommandContext,
    teams: &[TeamView],
    daemon: &Result<StatusReply, ErrorReport>,
    args: &StatusArgs,
) -> Result<(), ErrorReport> {
    if let Ok(status) = daemon {
        let about = &status.daemon;
        let tmux = about
            .tmux
            .as_ref()
            .map_or_else(|| "no tmux".to_owned(), |path| format!("tmux {}", path.display()));
        let root = about.root.display();
        output::print_line(&format!("teamd {}, pid {}, root {root}, {tmux}", about.version, about.pid));
    }
    for team in teams {
        let typed = command_rewriter::suggested_commands_for_team(here, &team.name)?;
        output::print_line(&table::team_heading(team));
        output::print_table(&table::member_rows(team));
        if args.name.is_some() {
            let details = |member| table::member_details(member, &typed);
            team.members.iter().flat_map(details).for_each(|line| output::print_line(&line));
            team.worktrees.iter().for_each(|tree| output::print_line(&table::worktree(tree)));
        }
        table::team_notes(team, &typed).iter().for_each(|line| output::print_line(line));
        if args.name.is_some() {
            team.members.iter().flat_map(table::environment).for_each(|line| output::print_line(&line));
        }
    }
    if teams.is_empty() {
        output::print_line(&format!(
            "No teams. Make one with: {}",
            command_rewriter::suggested_commands(here).command(&["create", "NAME"])
        ));
    }
    Ok(())
}
