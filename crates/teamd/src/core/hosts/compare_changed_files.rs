//! Queues jobs for the mirrors: to compare changed files, and to end mirrors of deleted teams.

use crate::core::core_event::CoreEvent;
use crate::core::effect::Effect;
use crate::core::jobs::host_jobs::{HostJob, LinkId, MirrorJob};
use crate::core::state_time_and_effects_of_one_event::Context;
use mirror::FileChange;
use protocol::team_and_member_names::{MemberName, TeamName};

/// Queues jobs that compare the file of `event` with what the other hosts have. The jobs compare
/// all files if the watcher has lost events, or if the root directory was opened again.
pub(crate) fn compare_file_of_event(context: &mut Context, event: &CoreEvent) {
    if context.state.host_links.links.is_empty() {
        return;
    }
    match event {
        CoreEvent::InboxChanged { team, inbox, .. } => {
            compare(context, team, FileChange::Inbox(MemberName::new_unchecked(inbox)));
        }
        CoreEvent::TaskChanged { team, task } => compare(context, team, FileChange::Task(*task)),
        CoreEvent::ConfigChanged { team } => compare(context, team, FileChange::Config),
        CoreEvent::WatcherOverflow | CoreEvent::RootReopened(Ok(())) => {
            let links: Vec<LinkId> = context.state.host_links.links.keys().cloned().collect();
            links.into_iter().for_each(|link| push_job(context, link, MirrorJob::CompareAll));
        }
        _ => {}
    }
}

fn compare(context: &mut Context, team: &TeamName, change: FileChange) {
    let links: Vec<LinkId> = context.state.host_links.links_of(team).cloned().collect();
    for link in links {
        push_job(context, link, MirrorJob::Compare { team: team.clone(), change: change.clone() });
    }
}

/// Ends all mirrors of a team, because the team was deleted here.
pub(crate) fn remove_deleted_team(context: &mut Context, team: &TeamName) {
    let links: Vec<LinkId> = context.state.host_links.links_of(team).cloned().collect();
    links.into_iter().for_each(|link| push_job(context, link, MirrorJob::RemoveTeam(team.clone())));
}

pub(crate) fn push_job(context: &mut Context, link: LinkId, job: MirrorJob) {
    context.effects.push(Effect::Host(HostJob::Mirror { link, job }));
}
