use super::*;
use crate::member_request::{Answer, Approval, MemberRequest};
use crate::permission_mode::PermissionMode;
use crate::worker_or_program_that_runs_turns::{DrivenProgram, PerTurnProgram};
use serde_json::{Value, json};

fn roster(request: Value, lifecycle: &str) -> RosterFile {
    let mut full_request = json!({"team": "survey", "name": "ann"});
    full_request.as_object_mut().unwrap().extend(request.as_object().unwrap().clone());
    let record = json!({"spawn_id": "s-1", "token": "t-1", "request": full_request, "pane": null, "lifecycle": {lifecycle: {}}});
    let bytes = json!({"version": RosterFile::VERSION, "records": [record]}).to_string();
    RosterFile::parse(bytes.as_bytes()).unwrap()
}

fn capabilities(request: Value, lifecycle: &str) -> Capabilities {
    let team = TeamName::parse("survey").unwrap();
    roster(request, lifecycle).member_capabilities(&team, &MemberName::new_unchecked("ann"))
}

fn ann_capabilities(request: Value) -> Capabilities {
    capabilities(request, "running")
}

/// The spawn request for a program that runs one process per turn and has these permission
/// modes.
fn turn_request(delivery: &str) -> Value {
    let program = PerTurnProgram {
        mode_args: ["", "plan", "acceptEdits"].map(|mode| (mode.to_owned(), Vec::new())).into(),
        ..PerTurnProgram::default()
    };
    json!({"delivery": delivery, "turns": TurnProgram::PerTurn(program)})
}

fn check_answer(capabilities: &Capabilities, request: Value, approval: Approval) -> Option<String> {
    let request = MemberRequest::parse(&request.to_string()).unwrap();
    capabilities.check_answer(&request, &Answer::Approve(approval)).map(|unsupported| unsupported.help)
}

fn plan(capabilities: &Capabilities, mode: PermissionMode) -> Option<String> {
    let request = json!({"type": "plan_approval_request", "from": "ann", "timestamp": "", "planFilePath": "p",
        "planContent": "c", "requestId": "plan-1"});
    check_answer(capabilities, request, Approval { mode: Some(mode), ..Approval::default() })
}

#[test]
fn spawn_is_superseded_if_another_spawn_of_its_member_runs() {
    let team = TeamName::parse("survey").unwrap();
    let is_superseded = |name: &str, token: &str, lifecycle: &str| {
        let roster = roster(json!({"delivery": "pull"}), lifecycle);
        roster.is_superseded(&team, &MemberName::new_unchecked(name), token)
    };
    assert!(is_superseded("ann", "t-0", "running"));
    assert!(!is_superseded("ann", "t-1", "running"), "its own record");
    assert!(!is_superseded("bob", "t-0", "running"), "nobody else has the name");
    assert!(!is_superseded("ann", "t-0", "exited"));
}

#[test]
fn modes_are_refused_only_if_known_to_be_missing() {
    let driven = DrivenProgram {
        mode_ids: ["plan", "acceptEdits"].map(|mode| (mode.to_owned(), mode.to_owned())).into(),
        ..DrivenProgram::default()
    };
    for request in [
        turn_request("turn"),
        json!({"delivery": "acp", "turns": TurnProgram::Driven(driven)}),
        json!({"delivery": "hook", "launches_after_approval": {"default": {}, "acceptEdits": {}}}),
    ] {
        let capabilities = ann_capabilities(request);
        assert_eq!(
            plan(&capabilities, PermissionMode::DontAsk).as_deref(),
            Some("it has: default, acceptEdits")
        );
        assert_eq!(capabilities.supported_mode(PermissionMode::DontAsk), PermissionMode::Default);
        for mode in [PermissionMode::AcceptEdits, PermissionMode::Default] {
            assert_eq!((plan(&capabilities, mode), capabilities.supported_mode(mode)), (None, mode));
        }
    }
    for capabilities in
        [ann_capabilities(json!({"delivery": "native"})), capabilities(turn_request("turn"), "exited")]
    {
        assert_eq!(plan(&capabilities, PermissionMode::DontAsk), None);
        assert_eq!(capabilities.supported_mode(PermissionMode::DontAsk), PermissionMode::DontAsk);
    }
}

#[test]
fn changed_input_is_refused_if_the_input_is_fixed() {
    let request = || {
        json!({"type": "permission_request", "request_id": "perm-1", "agent_id": "ann", "tool_name": "Bash",
            "input": {"command": "ls"}})
    };
    let check_input = |delivery: &str, input: Value| {
        let approval = Approval { input: Some(input), ..Approval::default() };
        check_answer(&ann_capabilities(json!({"delivery": delivery})), request(), approval)
    };
    assert!(check_input("acp", json!({"command": "ls -l"})).is_some());
    assert_eq!(check_input("acp", json!({"command": "ls"})), None, "the input is unchanged");
    assert_eq!(check_input("acp", json!({})), None);
    assert_eq!(check_input("native", json!({"command": "ls -l"})), None);
}

#[test]
fn invalid_roster_gives_unknown_capabilities() {
    for bytes in
        [&b""[..], b"{", b"{\"records\": 3}", b"{\"version\": 1}", b"{\"version\": 3, \"records\": []}"]
    {
        assert!(RosterFile::parse(bytes).is_err());
    }
    let team = TeamName::parse("survey").unwrap();
    let capabilities = RosterFile::default().member_capabilities(&team, &MemberName::new_unchecked("ann"));
    assert_eq!(capabilities, Capabilities::default());
}

#[test]
fn only_suspended_past_members_are_listed() {
    let past = |name: &str, is_suspended: bool| json!({"name": name, "outcome": "killed", "description": "", "ended_at": 1, "is_suspended": is_suspended});
    let roster = json!({
        "version": RosterFile::VERSION,
        "past_members": {"survey": [past("ann", true), past("bob", false)], "other": [past("cy", false)]},
    });
    let roster = roster.to_string();
    let roster = RosterFile::parse(roster.as_bytes()).unwrap();
    let teams = roster.suspended_teams();
    assert_eq!((teams.len(), teams[0].name.as_str()), (1, "survey"));
    assert_eq!(teams[0].past_members.iter().map(|past| past.name.as_str()).collect::<Vec<_>>(), ["ann"]);
    let is_suspended = |name: &str| roster.is_suspended(&teams[0].name, &MemberName::new_unchecked(name));
    assert_eq!(["Ann", "bob", "cy"].map(is_suspended), [true, false, false]);
    assert!(RosterFile::default().suspended_teams().is_empty());
}

#[test]
fn worktrees_are_those_of_the_team() {
    let record = json!({"path": "/w/ann", "branch": "teamd/t/ann", "common_git_dir": "/r/.git", "inode": 1});
    let worktrees = json!({"t": [{"member": "ann", "record": record}]});
    let roster = json!({"version": RosterFile::VERSION, "worktrees": worktrees}).to_string();
    let roster = RosterFile::parse(roster.as_bytes()).unwrap();
    let worktrees_of = |team: &str| roster.worktree_statuses(&TeamName::parse(team).unwrap());
    let [worktree] = &worktrees_of("t")[..] else { panic!("there is one worktree") };
    assert_eq!((worktree.member.as_str(), worktree.branch.as_str()), ("ann", "teamd/t/ann"));
    assert!(worktrees_of("u").is_empty());
}

#[test]
fn plans_that_wait_for_approval_are_submitted_again() {
    let plan = |id: &str| json!({"awaiting_approval": {"request_id": id, "file": "f"}});
    let pending = |team: &str, plan: serde_json::Value| {
        let start = RESUMED_START;
        json!({"request": {"team": team}, "respawn": {"plan": plan}, "start": start})
    };
    let mut respawning = pending("t", plan("p-3"));
    respawning["start"] = json!({"at": 5});
    let roster = json!({
        "version": RosterFile::VERSION,
        "pending_respawns": [pending("t", plan("p-1")), pending("t", json!("planning")), pending("u", plan("p-2")), respawning],
    });
    let roster = RosterFile::parse(roster.to_string().as_bytes()).unwrap();
    let plans = roster.plans_to_resubmit(&TeamName::parse("t").unwrap());
    assert_eq!(plans.iter().map(RequestId::as_str).collect::<Vec<_>>(), ["p-1"]);
}
#[test]
fn usage_and_worktrees_of_a_team_are_listed() {
    let past = |name: &str, tokens: u64| json!({"name": name, "outcome": "failed", "description": "", "ended_at": 1, "usage": {"tokens": tokens}});
    let request = json!({"team": "t", "name": "ann", "delivery": "turn"});
    let ann = json!({"spawn_id": "s", "request": request, "lifecycle": {"running": {}},
        "respawn": {"usage": {"usage": {"tokens": 30}}}});
    let roster = json!({
        "version": RosterFile::VERSION,
        "records": [ann],
        "past_members": {"t": [past("ann", 20), past("bob", 5), past("cy", 0)]},
        "usage": {"t": {"turns": 4, "usage": {"tokens": 35}, "started_at": 1}},
        "worktrees": {"t": [{"member": "ann", "record": {"path": "/w"}}]},
    });
    let roster = RosterFile::parse(roster.to_string().as_bytes()).unwrap();
    let team = TeamName::parse("t").unwrap();
    let usage = roster.team_usage(&team);
    let members: Vec<(&str, u64)> =
        usage.members.iter().map(|(name, usage)| (name.as_str(), usage.tokens)).collect();
    assert_eq!((usage.total.tokens, members), (35, vec![("ann", 30), ("bob", 5)]));
    assert_eq!(roster.worktrees(&team)[0].record["path"], "/w");
    let other = TeamName::parse("u").unwrap();
    assert_eq!((roster.team_usage(&other), roster.worktrees(&other).len()), Default::default());
}
