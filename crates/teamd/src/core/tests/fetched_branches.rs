//! Tests of branches that are fetched from other hosts.

use super::turns_and_task_offers::{new_task, scan_tasks};
use super::*;
use crate::core::jobs::host_jobs::{HostEvent, LinkId};
use mirror::MirrorNotice;
use protocol::event_log_line::EventKind;
use protocol::hosts_file_entry::HostName;
use std::collections::BTreeSet;

/// A home whose host `devbox` runs ann.
fn home() -> State {
    let mut state = new_state();
    let link = LinkId::ToAnnex(HostName::parse("devbox").unwrap());
    let members = BTreeSet::from([MemberName::parse("ann").unwrap()]);
    let notice = MirrorNotice::MembersListed { team: survey_team(), members };
    for event in [HostEvent::TeamsChanged(BTreeSet::from([survey_team()])), HostEvent::Notice(notice)] {
        handle_event(&mut state, CoreEvent::HostReported { link: link.clone(), event }, NOW);
    }
    state
}

/// The commands that fetch branches, without the options.
fn fetches(effects: &[Effect]) -> Vec<String> {
    let command = |effect: &Effect| match effect {
        Effect::FetchBranch { argv, .. } => Some(argv[argv.len() - 5..].join(" ")),
        _ => None,
    };
    effects.iter().filter_map(command).collect()
}

fn errors(effects: &[Effect]) -> Vec<String> {
    let error = |effect: &Effect| match effect {
        Effect::Log(event) => match &event.kind {
            EventKind::Error { message } => Some(message.clone()),
            _ => None,
        },
        _ => None,
    };
    effects.iter().filter_map(error).collect()
}

fn complete(state: &mut State, owner: &str, count: u32) -> Vec<Effect> {
    let owner = format!(r#","owner":"{owner}""#);
    scan_tasks(state, (1..=count).map(|id| new_task(id, "completed", &owner)).collect())
}

fn end_fetch(state: &mut State, failure: Option<&str>) -> Vec<Effect> {
    let (member, failure) = (MemberName::parse("ann").unwrap(), failure.map(str::to_owned));
    handle_event(state, CoreEvent::BranchFetched { team: survey_team(), member, failure }, NOW)
}

const COMMAND: &str = "-t survey hosts fetch-branch ann";

#[test]
fn completed_task_of_a_member_on_another_host_fetches_its_branch() {
    let mut state = home();
    assert_eq!(fetches(&complete(&mut state, "bob", 1)), Vec::<String>::new());
    let mut state = home();
    assert_eq!(fetches(&complete(&mut state, "ann", 1)), [COMMAND]);
    // One fetch runs at a time, and another follows it.
    assert_eq!(fetches(&complete(&mut state, "ann", 3)), Vec::<String>::new());
    assert_eq!(fetches(&end_fetch(&mut state, None)), [COMMAND]);
    assert_eq!(fetches(&end_fetch(&mut state, None)), Vec::<String>::new());
}

#[test]
fn failure_is_logged_once_until_a_fetch_succeeds() {
    let mut state = home();
    for (count, failure, logged) in
        [(1, Some("no route"), 1), (2, Some("no route"), 0), (3, None, 0), (4, Some("no route"), 1)]
    {
        assert_eq!(fetches(&complete(&mut state, "ann", count)), [COMMAND]);
        let errors = errors(&end_fetch(&mut state, failure));
        assert_eq!(errors.len(), logged, "{errors:?}");
        let expected = "no route; to try again: teamctl merge ann -t survey";
        assert!(errors.iter().all(|error| error == expected), "{errors:?}");
    }
}
