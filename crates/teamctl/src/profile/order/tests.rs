//! What a profile comes to for one member.

use super::super::file::parse;
use super::super::shelf::built_in;
use super::*;
use protocol::turn::Session;

struct Member {
    name: AgentName,
    team: TeamName,
    allow: Vec<String>,
    deny: Vec<String>,
}

fn member() -> Member {
    Member {
        name: AgentName::parse("ann").unwrap(),
        team: TeamName::parse("survey").unwrap(),
        allow: Vec::new(),
        deny: Vec::new(),
    }
}

impl Member {
    fn facts(&self) -> Facts<'_> {
        Facts {
            name: &self.name,
            team: &self.team,
            cwd: "/w d",
            own: "/bin/teamctl",
            prompt: "count {cwd}; $(rm)",
            agent_type: None,
            model: None,
            mode: None,
            allow: &self.allow,
            deny: &self.deny,
        }
    }
}

fn profile(text: &str) -> Profile {
    parse("x", "x.toml", text).unwrap()
}

fn turns(ordered: Ordered) -> TurnAgent {
    match ordered.turns {
        Some(TurnProgram::Agent(agent)) => agent,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_worker_is_joins_own_and_takes_no_tools() {
    let mut member = member();
    let worker = built_in("worker").unwrap().unwrap();
    let ordered = worker.order(&member.facts()).unwrap();
    assert_eq!(
        (ordered.feed, ordered.program(), worker.needs_name()),
        (protocol::feed::Feed::Turn, None, false)
    );
    assert_eq!(ordered.turns, Some(TurnProgram::Worker(Worker::default())));
    assert!(ordered.argv.is_empty());
    member.deny = vec!["Bash".to_owned()];
    assert_eq!(worker.order(&member.facts()).unwrap_err().kind, Kind::Usage);
}

#[test]
fn every_built_in_profile_is_whole() {
    for name in ["worker", "claude", "codex"] {
        let profile = built_in(name).unwrap().unwrap();
        assert!(!profile.about.is_empty() && !profile.needs_name(), "{name}");
        profile.order(&member().facts()).unwrap();
    }
    assert!(built_in("nobody").is_none());
}

#[test]
fn claude_keeps_a_session_of_ours_and_gets_its_text_on_standard_input() {
    let mut member = member();
    member.allow = vec!["Edit".to_owned(), "Bash(git log:*)".to_owned()];
    let claude = built_in("claude").unwrap().unwrap();
    let facts = Facts { model: Some("opus"), mode: Some("plan"), ..member.facts() };
    let ordered = claude.order(&facts).unwrap();
    assert!(ordered.unset.contains(&"CLAUDECODE".to_owned()));
    assert_eq!(ordered.program(), Some("claude"));
    let agent = turns(ordered);
    assert_eq!(
        agent.first.join(" "),
        "claude -p --session-id {session} --allowedTools Bash(teamctl:*) --model opus --permission-mode plan \
         --allowedTools Edit,Bash(git log:*)"
    );
    assert!(agent.next.join(" ").starts_with("claude -p --resume {session} --allowedTools"));
    assert_eq!(agent.session, Session::Ours);
}

#[test]
fn codex_gets_its_options_before_the_verb_that_resumes() {
    let facts = member();
    let facts = Facts { model: Some("m"), mode: Some("acceptEdits"), ..facts.facts() };
    let agent = turns(built_in("codex").unwrap().unwrap().order(&facts).unwrap());
    assert_eq!(agent.first.join(" "), "codex exec --json --skip-git-repo-check -m m -s workspace-write -");
    assert_eq!(
        agent.next.join(" "),
        "codex exec --json --skip-git-repo-check -m m -s workspace-write resume {session} -"
    );
    assert_eq!(agent.session, Session::Told { key: "thread_id".to_owned() });
}

#[test]
fn blanks_are_filled_once_and_the_turns_own_are_left() {
    let member = member();
    let profile = profile(
        "feed = \"turn\"\nprogram = \"{self}\"\nargs = [\"{id} {cwd}\", \"{team}{type}{model}\", \"{prompt}\"]\n\
         env = { WHERE = \"{cwd}\" }",
    );
    assert!(profile.needs_name());
    let ordered = profile.order(&member.facts()).unwrap();
    assert_eq!(ordered.env["WHERE"], "/w d");
    let agent = turns(ordered);
    assert_eq!(agent.first, ["/bin/teamctl", "ann@survey /w d", "surveygeneral-purpose", "{prompt}"]);
    assert!(agent.next.is_empty());
}

#[test]
fn a_pulling_program_gets_its_prompt_as_it_stands() {
    let member = member();
    let profile = profile("feed = \"pull\"\nprogram = \"p\"\nargs = [\"{prompt}\", \"{name}\"]");
    let ordered = profile.order(&member.facts()).unwrap();
    assert_eq!(ordered.argv, ["p", "count {cwd}; $(rm)", "ann"]);
    assert_eq!(
        (ordered.turns.is_none(), ordered.feed, profile.needs_name()),
        (true, protocol::feed::Feed::Pull, true)
    );
}

#[test]
fn a_tool_stands_alone_or_with_the_others_and_options_come_last_by_default() {
    let mut member = member();
    (member.allow, member.deny) = (vec!["a".into(), "b".into()], vec!["c".into(), "d".into()]);
    let text = "feed = \"pull\"\nprogram = \"p\"\nargs = [\"x\"]\nallow = [\"+\", \"{tool}\"]\ndeny = [\"-{tools}\"]";
    let ordered = profile(text).order(&member.facts()).unwrap();
    assert_eq!(ordered.argv, ["p", "x", "+", "a", "+", "b", "-c,d"]);
}

#[test]
fn what_the_program_has_no_argument_for_is_refused() {
    let mut member = member();
    let plain = profile("feed = \"turn\"\nprogram = \"p\"\nmodes = { plan = [] }");
    let fault = plain.order(&Facts { mode: Some("auto"), ..member.facts() }).unwrap_err();
    assert_eq!((fault.kind, fault.hint.as_deref()), (Kind::Usage, Some("it has: plan")));
    member.allow = vec!["Edit".to_owned()];
    let fault = plain.order(&member.facts()).unwrap_err();
    assert!(fault.message.contains("--allow"), "{fault}");
}

#[test]
fn a_value_that_would_be_filled_again_is_refused() {
    let mut member = member();
    let text = "feed = \"turn\"\nprogram = \"p\"\nargs = [\"{cwd}\"]\nallow = [\"{tools}\"]";
    let fault = profile(text).order(&Facts { cwd: "/{prompt}", ..member.facts() }).unwrap_err();
    assert!(fault.message.contains("/{prompt}"), "{fault}");
    member.allow = vec!["{session}".to_owned()];
    assert_eq!(profile(text).order(&member.facts()).unwrap_err().kind, Kind::Usage);
}
