//! Whose hook it is. A user's hooks run in every session of a program, also in one that an agent runs in a shell of its
//! own and that has inherited its environment or its terminal: that one's turns, session and mail are not the agent's.

use crate::roster::{Heard, Process, Record};
use crate::state::Leading;
use protocol::control::{HookEvent, HookReport, HookSource};
use protocol::delivery::Delivery;

/// What a word is to the agent or lead whose place it came from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Its program's.
    Own,
    /// Its program's, in a session that was not heard before.
    OfNewSession(String),
    /// Another's.
    Foreign,
}

/// A word for an agent of ours: its program is below its join for as long as it lives.
pub(super) fn of_agent(record: &Record, hooked: &HookReport) -> Word {
    match (record.feed, hooked.source) {
        (Delivery::Keys, HookSource::Typist) => return Word::Own,
        (Delivery::Hook, HookSource::Program) => {}
        _ => return Word::Foreign,
    }
    let holds =
        |pid: Option<u32>| pid.is_some_and(|pid| hooked.ancestors.iter().any(|above| above.pid == pid));
    if holds(record.join.map(|join| join.pid)) && record.agent.is_some() && !holds(record.agent) {
        // One that has outlived the shell that it was started by.
        return Word::Foreign;
    }
    word(&record.heard, record.session.as_deref(), hooked)
}

/// A word for a session that leads.
pub(super) fn of_lead(leading: &Leading, hooked: &HookReport) -> Word {
    match hooked.source {
        HookSource::Program => word(&leading.heard, leading.lead.session_id.as_deref(), hooked),
        HookSource::Typist => Word::Foreign,
    }
}

fn word(heard: &Heard, session: Option<&str>, hooked: &HookReport) -> Word {
    let is_first = heard.above.is_empty();
    match &hooked.session_id {
        Some(theirs) if session == Some(theirs) => Word::Own,
        _ if !is_first && is_deeper(&hooked.ancestors, &heard.above) => Word::Foreign,
        None => Word::Own,
        // A program goes over to another session at its beginning, or with its person's next words.
        Some(theirs)
            if is_first
                || matches!(hooked.event, HookEvent::SessionStarted | HookEvent::TurnStarted { .. }) =>
        {
            Word::OfNewSession(theirs.clone())
        }
        // A part of it that works beside its person's session.
        Some(_) => Word::Foreign,
    }
}

/// Whether these are above a hook of a program that the one heard runs. Between a program and its hook is a shell at
/// most, so one in the place of another that is gone shares with it what is below both, and no more.
fn is_deeper(above: &[Process], heard: &[Process]) -> bool {
    let same = above.iter().rev().zip(heard.iter().rev()).take_while(|(one, other)| one == other).count();
    above.len() > heard.len() && heard.len() - same <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn above(pids: &[u32]) -> Vec<Process> {
        pids.iter().map(|pid| Process { pid: *pid, start_time: u64::from(*pid) }).collect()
    }

    /// A session `old`, whose program 20 in the shell 10 ran its first hook by the shell 21.
    fn word_of(session: &str, pids: &[u32], said: HookEvent) -> Word {
        let heard = Heard { above: above(&[21, 20, 10]), handed: Vec::new(), dialog: None };
        let session = Some(session.to_owned()).filter(|session| !session.is_empty());
        let hooked = HookReport {
            leads_team: None,
            session_id: session,
            ancestors: above(pids),
            source: HookSource::Program,
            usage: None,
            event: said,
        };
        word(&heard, Some("old"), &hooked)
    }

    #[test]
    fn a_program_that_the_one_heard_runs_is_another() {
        for said in [
            HookEvent::SessionStarted,
            HookEvent::TurnEnded,
            HookEvent::TurnStarted { summary: String::new(), delivered_ids: Vec::new() },
        ] {
            for session in ["new", ""] {
                assert_eq!(word_of(session, &[41, 40, 30, 20, 10], said.clone()), Word::Foreign, "{said:?}");
                assert_eq!(word_of(session, &[41, 40, 20, 10], said.clone()), Word::Foreign, "{said:?}");
            }
        }
    }

    #[test]
    fn the_program_itself_may_begin_another_session_and_another_program_may_take_its_place() {
        assert_eq!(word_of("old", &[22, 20, 10], HookEvent::TurnEnded), Word::Own);
        assert_eq!(word_of("", &[22, 20, 10], HookEvent::TurnEnded), Word::Own);
        assert_eq!(
            word_of("new", &[22, 20, 10], HookEvent::SessionStarted),
            Word::OfNewSession("new".into())
        );
        assert_eq!(word_of("new", &[22, 20, 10], HookEvent::TurnEnded), Word::Foreign, "a part of it");
        for place in [&[61, 60, 10][..], &[61, 60, 59, 10], &[61, 60, 59, 58]] {
            assert_eq!(
                word_of("new", place, HookEvent::SessionStarted),
                Word::OfNewSession("new".into()),
                "{place:?}"
            );
        }
    }

    #[test]
    fn who_was_never_heard_is_heard() {
        let hooked = HookReport {
            leads_team: None,
            session_id: Some("new".into()),
            ancestors: above(&[21, 20]),
            source: HookSource::Program,
            usage: None,
            event: HookEvent::TurnEnded,
        };
        assert_eq!(
            word(&Heard::default(), Some("of the life before"), &hooked),
            Word::OfNewSession("new".into())
        );
    }
}
