//! At the home: when a member on another host has completed a task, fetches the member's branch by
//! `teamctl hosts fetch-branch`. So no finished work is lost with that host.

use crate::core::effect::Effect;
use crate::core::state::branch_fetches::{FetchResult, FetchStart};
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::event_log_line::{Event, EventKind};
use protocol::state_file_names::branches_of_hosts;
use protocol::team_and_member_names::{MemberName, TeamName};

/// Fetches the branches of the members whose task this event has completed.
pub(crate) fn fetch_branches_of_completed_tasks(context: &mut Context) {
    let links = &context.state.host_links;
    let owner = |event: &Event| match (&event.team, &event.kind) {
        (Some(team), EventKind::TaskCompleted { owner: Some(owner), .. }) => {
            links.is_on_annex(team, owner).then(|| (team.clone(), owner.clone()))
        }
        _ => None,
    };
    let members: Vec<(TeamName, MemberName)> = context.effects.events().filter_map(owner).collect();
    members.into_iter().for_each(|(team, member)| fetch_branch(context, team, member));
}

fn fetch_branch(context: &mut Context, team: TeamName, member: MemberName) {
    if context.state.host_links.branch_fetches.begin(&team, &member) == FetchStart::AfterRunningOne {
        return;
    }
    let settings = &context.state.settings;
    let path = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let (root, socket) = (path(&settings.root), path(&settings.socket));
    let words = ["--root", &root, "--socket", &socket, "-t", team.as_str(), "hosts", "fetch-branch"];
    let words = words.into_iter().chain([member.as_str()]).map(str::to_owned);
    let argv = [settings.teamctl_path()].into_iter().chain(words).collect();
    let record = settings.state_dir.join(branches_of_hosts(&team));
    context.effects.push(Effect::FetchBranch { team, member, record, argv });
}

/// Logs a failed fetch of a member's branch. Of several failures in a row, only the first is
/// logged. The next completed task of the member and `teamctl merge` fetch the branch again.
pub(crate) fn handle_branch_fetched(
    context: &mut Context,
    team: TeamName,
    member: MemberName,
    failure: Option<String>,
) {
    let result = if failure.is_some() { FetchResult::Failed } else { FetchResult::Succeeded };
    let end = context.state.host_links.branch_fetches.finish(&team, &member, result);
    if let Some(reason) = failure.filter(|_| end.is_first_failure && context.state.teams.contains_key(&team))
    {
        let message = format!("{reason}; to try again: teamctl merge {member} -t {team}");
        context.effects.push(Effect::Log(Event::for_member(&team, &member, EventKind::Error { message })));
    }
    if end.is_fetched_again {
        fetch_branch(context, team, member);
    }
}
