//! Ends the members of a run on other hosts, at the end of the run.

use crate::parts_that_all_run_steps_use::RunContext;
use crate::run_teamctl_for_hosted_members::teamctl;
use client::grouped_command::{CommandKiller, GroupedCommand};
use std::collections::BTreeMap;
use std::process::{Command, ExitStatus};
use std::thread::JoinHandle;
use std::time::Duration;
use store::Team;

/// How long the run waits for a host beyond the grace period of its members.
const HOST_TIMEOUT: Duration = Duration::from_secs(10);

/// How the members of other hosts are ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HostedEnd<'a> {
    /// They are asked, and killed after the grace period.
    ShutDown {
        grace: Duration,
        reason: &'a str,
    },
    Kill,
}

impl HostedEnd<'_> {
    fn timeout(self) -> Duration {
        match self {
            HostedEnd::ShutDown { grace, .. } => grace.saturating_add(HOST_TIMEOUT),
            HostedEnd::Kill => HOST_TIMEOUT,
        }
    }
}

/// The commands that end members, one for each host.
#[derive(Debug, Default)]
pub(crate) struct HostedEnding {
    threads: Vec<JoinHandle<Option<ExitStatus>>>,
    killers: Vec<CommandKiller>,
}

impl HostedEnding {
    fn start(commands: impl Iterator<Item = Command>, timeout: Duration) -> HostedEnding {
        let groups: Vec<GroupedCommand> = commands.flat_map(GroupedCommand::start).collect();
        let killers = groups.iter().map(GroupedCommand::killer).collect();
        let wait = |group: GroupedCommand| std::thread::spawn(move || group.wait_at_most(timeout));
        HostedEnding { threads: groups.into_iter().map(wait).collect(), killers }
    }

    /// Ends the commands early.
    pub(crate) fn killers(&self) -> Vec<CommandKiller> {
        self.killers.clone()
    }

    /// Waits until every command has ended. Each command ends the members on one host. After the
    /// timeout the commands are killed, because a host without contact may never answer.
    pub(crate) fn wait(self) {
        self.threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// Begins to end the members on other hosts. An error is not reported, because the deletion of the
/// team also ends these members.
pub(crate) fn end_hosted_members(run: &RunContext, team: &Team, end: HostedEnd<'_>) -> HostedEnding {
    let mut names_by_host: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let members = team.config().map(|config| config.members).unwrap_or_default();
    for (host, name) in members.into_iter().filter_map(|member| Some((member.host?, member.name))) {
        names_by_host.entry(host).or_default().push(name.to_string());
    }
    let commands = names_by_host.into_values().filter_map(|names| {
        let mut command = teamctl(run.team_context, team.name()).ok()?;
        match end {
            HostedEnd::Kill => command.arg("kill").args(names),
            HostedEnd::ShutDown { grace, reason } => command
                .args(["shutdown", "--force", &format!("--grace={}ms", grace.as_millis())])
                .arg(format!("--reason={reason}"))
                .args(names),
        };
        Some(command)
    });
    HostedEnding::start(commands, end.timeout())
}

/// Kills the members of other hosts, and then ends the commands that still wait for them.
pub(crate) fn kill_hosted_members(run: &RunContext, team: &Team, waiting: Vec<CommandKiller>) {
    let killing = end_hosted_members(run, team, HostedEnd::Kill);
    std::thread::spawn(move || {
        killing.wait();
        waiting.iter().for_each(CommandKiller::kill);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_for_a_host_that_does_not_answer_ends() {
        let endless = || {
            let mut command = Command::new("sleep");
            command.arg("600");
            std::iter::once(command)
        };
        HostedEnding::start(endless(), Duration::ZERO).wait();
        let ending = HostedEnding::start(endless(), Duration::from_secs(600));
        assert_eq!(ending.killers().len(), 1);
        ending.killers().iter().for_each(CommandKiller::kill);
        ending.wait();
    }
}
