//! One call of a hook: the event, the hook's owner, and the report to the daemon.

use super::event_input::HookInput;
use super::hook_owner::HookOwner;
use super::read_hook_settings_from_profile::ProfileHookSettings;
use super::read_usage_file::usage_report;
use crate::turns::agent_team_files::AgentTeamFiles;
use client::daemon_call_error::unexpected_reply;
use client::find_terminal_and_ancestors_of_caller::ancestor_ids;
use client::root_socket_team_and_caller::TeamContext;
use protocol::control_socket::{HookEvent, HookReply, HookReport, Reply, Request};
use protocol::error_kind_and_report::ErrorReport;

pub(crate) struct HookInvocation<'a> {
    pub(super) context: &'a TeamContext,
    pub(super) owner: HookOwner,
    pub(super) input: HookInput,
    pub(super) hook_settings: ProfileHookSettings,
}

impl HookInvocation<'_> {
    /// Reports the event to the daemon. A program may have got its first prompt, or the approval of
    /// its plan, as an argument at its start. Then the daemon's reply says so, and this function
    /// marks the inbox message with the same text as read.
    pub(super) fn report_event(&self, event: HookEvent) -> Result<(), ErrorReport> {
        let reply = self.send_report(event)?;
        match reply.prompt_in_args.is_some() || reply.approval_in_args {
            true => self.mark_launch_prompt_read(&mut open_agent_team_files(self)?, &reply),
            false => Ok(()),
        }
    }

    /// Marks as read the messages that the program got as arguments at its start, and reports this
    /// to the daemon. Until this report, each reply of the daemon to a hook mentions these
    /// messages.
    pub(super) fn mark_launch_prompt_read(
        &self,
        files: &mut AgentTeamFiles,
        reply: &HookReply,
    ) -> Result<(), ErrorReport> {
        if let Some(text) = &reply.prompt_in_args {
            files.mark_prompt_read(text)?;
        }
        if reply.approval_in_args {
            files.mark_approval_read()?;
        }
        match reply.prompt_in_args.is_some() || reply.approval_in_args {
            true => self.send_report(HookEvent::PromptRead).map(drop),
            false => Ok(()),
        }
    }

    /// Whether the agent's program caused `event`. The hook also reports events of its own, for
    /// example that it has delivered a prompt. It reports no usage with its own events, because the
    /// program may not have written the usage of its last turn yet.
    pub(super) fn is_reported_by_program(&self, event: &HookEvent) -> bool {
        let is_ours = matches!(event, HookEvent::PromptRead)
            || matches!(event, HookEvent::TurnStarted { delivered_ids, .. } if !delivered_ids.is_empty());
        self.owner == HookOwner::Teammate && !is_ours
    }

    pub(super) fn send_report(&self, event: HookEvent) -> Result<HookReply, ErrorReport> {
        let report = HookReport {
            leads_team: self.owner.led_team(),
            session_id: self.input.session.clone(),
            ancestors: ancestor_ids(),
            usage: if self.is_reported_by_program(&event) {
                usage_report(self.hook_settings.delivery.usage_file.as_ref(), &self.input)
            } else {
                None
            },
            event,
        };
        match self.context.call_daemon(Request::ReportHook(report))? {
            Reply::ReportHook(reply) => Ok(reply),
            _ => Err(unexpected_reply()),
        }
    }
}

/// The team files of the hook's owner.
pub(super) fn open_agent_team_files(invocation: &HookInvocation<'_>) -> Result<AgentTeamFiles, ErrorReport> {
    let root = invocation.context.root()?;
    let team = match invocation.owner.led_team() {
        Some(team) => root.team(&team)?,
        None => invocation.context.team()?,
    };
    let member = invocation.owner.name(invocation.context);
    let color = team.member(member.as_str()).ok().and_then(|member| member.color);
    Ok(AgentTeamFiles::new(team, member, color).with_next_task_client(invocation.context.next_task_client()?))
}
