//! Sends shutdown requests to members, and reads their answers in the lead's inbox.

use crate::core::exit_record::ReportTo;
use crate::core::jobs::file_results::ShutdownAnswer;
use crate::core::roster::agent_record::{AgentRecord, SharedRecord};
use crate::core::stop_and_exit_of_spawn::ShutdownApproval;
use crate::io::files::files_thread::FilesThread;
use protocol::inbox_file::{InboxEntry, Message};
use protocol::inbox_message_payload::{Payload, ShutdownRequest};
use protocol::member_task_and_request_ids::RequestId;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::timestamp::iso8601;
use std::collections::{BTreeMap, BTreeSet};
use store::{Error, Inbox};

impl FilesThread {
    /// Sends a shutdown request with the id `request` to a member. Does nothing if the inbox has an
    /// unread shutdown request whose id is in `unless_unread`.
    ///
    /// A daemon that starts after a crash does not know whether `request` was sent, so it passes
    /// `request` in `unless_unread` too. In that case this function also does nothing if the member
    /// has already read `request`.
    pub(super) fn send_shutdown_request(
        &self,
        team: &TeamName,
        name: &MemberName,
        request: &RequestId,
        reason: Option<String>,
        unless_unread: &[RequestId],
        at: u64,
    ) -> Result<(), Error> {
        let inbox = self.root.team(team)?.inbox(name);
        if unless_unread.contains(request) && contains_request(&inbox, request)? {
            return Ok(());
        }
        let is_pending = |entry: &InboxEntry| {
            entry
                .unread()
                .is_some_and(|message| unless_unread.iter().any(|id| message.text.contains(id.as_str())))
        };
        if !unless_unread.is_empty() && inbox.read_unread()?.iter().any(is_pending) {
            return Ok(());
        }
        let lead = MemberName::lead();
        let payload = Payload::ShutdownRequest(ShutdownRequest {
            request_id: request.clone(),
            from: lead.to_string(),
            reason,
            timestamp: iso8601(at),
        });
        inbox.append(&Message::new(&lead, payload.to_text(), at))
    }

    /// Reads the answers to these shutdown requests in the lead's inbox.
    pub(super) fn read_shutdown_answers(
        &self,
        team: &TeamName,
        requests: &BTreeSet<RequestId>,
    ) -> Result<Vec<ShutdownAnswer>, Error> {
        self.root.team(team)?.inbox(&MemberName::lead()).fold(|answers: &mut Vec<ShutdownAnswer>, entry| {
            let answer = entry.message.as_ref().ok().and_then(parse_shutdown_answer);
            answers.extend(answer.filter(|answer| requests.contains(&answer.request)));
        })
    }

    /// Finds the members that approved their shutdown. All `records` are of one team.
    ///
    /// An agent may have sent its approval just before its end, so no scan has found it yet. So
    /// this function reads the lead's inbox, if an agent ended while a shutdown request to it was
    /// open.
    pub(super) fn read_approvals(
        &self,
        records: &[SharedRecord],
    ) -> Result<BTreeMap<MemberName, ShutdownApproval>, Error> {
        let stopped_records = records.iter().filter(|record| has_open_request(record));
        let requests: BTreeSet<RequestId> =
            stopped_records.clone().flat_map(|record| record.lifecycle.shutdown_ids().to_vec()).collect();
        let Some(first) = stopped_records.clone().next() else { return Ok(BTreeMap::new()) };
        let answers = match self.read_shutdown_answers(&first.request.team, &requests) {
            Err(Error::NoSuchTeam { .. }) => Vec::new(),
            answers => answers?,
        };
        let is_given = |record: &SharedRecord| {
            answers.iter().any(|answer| {
                answer.rejection_reason.is_none()
                    && answer.from == record.request.name
                    && record.lifecycle.shutdown_ids().contains(&answer.request)
            })
        };
        let approved_records = stopped_records.filter(|record| is_given(record));
        Ok(approved_records.map(|record| (record.request.name.clone(), ShutdownApproval::Given)).collect())
    }
}

/// Whether the agent ended while a shutdown request to it was open.
pub(super) fn has_open_request(record: &AgentRecord) -> bool {
    record.lifecycle.exit().is_some_and(|exit| exit.report_to == ReportTo::LeadUnlessApproved)
}

/// Whether the inbox has a message with this request, read or unread.
fn contains_request(inbox: &Inbox, request: &RequestId) -> Result<bool, Error> {
    inbox.fold(|found: &mut bool, entry| {
        *found |= entry.message.is_ok_and(|message| message.text.contains(request.as_str()));
    })
}

fn parse_shutdown_answer(message: &Message) -> Option<ShutdownAnswer> {
    // Most messages are something else, and need not be parsed.
    if !message.text.contains("shutdown_") {
        return None;
    }
    let from = MemberName::new_unchecked(&message.from);
    match Payload::parse(&message.text)? {
        Payload::ShutdownApproved(answer) => {
            Some(ShutdownAnswer { request: answer.request_id, from, rejection_reason: None })
        }
        Payload::ShutdownRejected(answer) => {
            let rejection_reason = Some(answer.reason);
            Some(ShutdownAnswer { request: answer.request_id, from, rejection_reason })
        }
        _ => None,
    }
}
