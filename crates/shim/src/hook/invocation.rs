//! One call of a hook: the event, whose hook it is, and what it reports to the daemon.

use super::event_input::HookInput;
use super::hook_owner::HookOwner;
use super::hook_protocol::HookProtocol;
use super::usage_file::usage_report;
use crate::turns::team_files::TeamFiles;
use client::controlling_terminal::ancestor_ids;
use client::error::unexpected_reply;
use client::team_context::TeamContext;
use protocol::control::{HookEvent, HookReply, HookReport, Reply, Request};
use protocol::error::ErrorReport;

/// One hook of one program.
pub(crate) struct HookInvocation<'a> {
    pub(super) context: &'a TeamContext,
    pub(super) owner: HookOwner,
    pub(super) input: HookInput,
    pub(super) protocol: HookProtocol,
}

impl HookInvocation<'_> {
    /// Tells the daemon, and marks read what the program had from its command line.
    pub(super) fn report_event(&self, event: HookEvent) -> Result<(), ErrorReport> {
        let reply = self.send_report(event)?;
        match reply.prompt_in_args.is_some() || reply.approval_in_args {
            true => self.mark_launch_prompt_read(&mut open_team_files(self)?, &reply),
            false => Ok(()),
        }
    }

    /// What its program had from its command line is read. Until the daemon has heard that, it tells every hook of it.
    pub(super) fn mark_launch_prompt_read(
        &self,
        files: &mut TeamFiles,
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

    /// Whether the program of a member tells it, and not we: what it writes down of its last answer may be there only when
    /// it tells the next thing.
    pub(super) fn is_reported_by_program(&self, event: &HookEvent) -> bool {
        let ours = matches!(event, HookEvent::PromptRead)
            || matches!(event, HookEvent::TurnStarted { delivered_ids: handed, .. } if !handed.is_empty());
        self.owner == HookOwner::Teammate && !ours
    }

    pub(super) fn send_report(&self, event: HookEvent) -> Result<HookReply, ErrorReport> {
        let report = HookReport {
            leads_team: self.owner.led_team(),
            session_id: self.input.session.clone(),
            ancestors: ancestor_ids(),
            usage: if self.is_reported_by_program(&event) {
                usage_report(self.protocol.delivery.usage_file.as_ref(), &self.input)
            } else {
                None
            },
            event: event,
        };
        match self.context.call_daemon(Request::ReportHook(report))? {
            Reply::ReportHook(reply) => Ok(reply),
            _ => Err(unexpected_reply()),
        }
    }
}

/// The own place in the team's files.
pub(super) fn open_team_files(invocation: &HookInvocation<'_>) -> Result<TeamFiles, ErrorReport> {
    let root = invocation.context.root()?;
    let team = match invocation.owner.led_team() {
        Some(team) => root.team(&team)?,
        None => invocation.context.team()?,
    };
    let me = invocation.owner.name(invocation.context);
    let color = team.member(me.as_str()).ok().and_then(|member| member.color);
    Ok(TeamFiles::new(team, me, color).with_next_task_client(invocation.context.next_task_client()?))
}
