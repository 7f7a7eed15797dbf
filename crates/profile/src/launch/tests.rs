//! Tests of the command lines that profiles yield.

use super::*;
use crate::parse::parse_profile;
use crate::registry::{built_in_names, built_in_profile};
use protocol::name::{AgentName, TeamName};
use protocol::plan_mode_prompts::PLAN_PROMPT;
use protocol::shim_turn_program::SessionSource;

struct SampleMember {
    name: AgentName,
    team: TeamName,
    allow: Vec<String>,
    deny: Vec<String>,
}

fn member() -> SampleMember {
    SampleMember {
        name: AgentName::parse("ann").unwrap(),
        team: TeamName::parse("survey").unwrap(),
        allow: Vec::new(),
        deny: Vec::new(),
    }
}

impl SampleMember {
    fn facts(&self) -> LaunchFacts<'_> {
        LaunchFacts {
            name: &self.name,
            team: &self.team,
            cwd: "/w d",
            root: "/root-of-teams",
            teamctl_path: "/bin/teamctl",
            prompt: "count {cwd}; $(rm)",
            instructions: "You are ann.",
            agent_type: None,
            definition: None,
            model: None,
            mode: None,
            lead_mode: None,
            allow: &self.allow,
            deny: &self.deny,
            is_plan_approved: false,
        }
    }
}

fn profile(text: &str) -> Profile {
    parse_profile("x", "x.toml", text).unwrap()
}

fn turns(launch: Launch) -> PerTurnProgram {
    match launch.turns {
        Some(TurnProgram::PerTurn(agent)) => agent,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_worker_is_joins_own_and_takes_no_tools() {
    let mut member = member();
    let worker = built_in_profile("worker").unwrap().unwrap();
    let launch = worker.build_launch(&member.facts()).unwrap();
    assert_eq!((launch.delivery, launch.program()), (Delivery::Turn, None));
    assert_eq!(launch.turns, Some(TurnProgram::Worker(Worker::default())));
    assert!(launch.argv.is_empty());
    member.deny = vec!["Bash".to_owned()];
    assert_eq!(worker.build_launch(&member.facts()).unwrap_err().kind, ErrorKind::Usage);
}

#[test]
fn every_built_in_profile_is_whole() {
    for name in built_in_names() {
        let profile = built_in_profile(name).unwrap().unwrap();
        assert!(!profile.description.is_empty(), "{name}");
        profile.build_launch(&member().facts()).unwrap();
    }
    assert!(built_in_profile("nobody").is_none());
}

#[test]
fn a_server_that_a_built_in_profile_hands_over_is_told_for_whom_it_speaks() {
    for name in built_in_names() {
        let ProfileKind::Program(program) = built_in_profile(name).unwrap().unwrap().kind else { continue };
        let mcp = program.mcp.join(" ");
        assert_eq!(
            mcp.contains("{teamctl"),
            mcp.contains("--member") && mcp.contains("{id_"),
            "{name}: {mcp}"
        );
    }
}

#[test]
fn claude_keeps_a_session_of_ours_and_gets_its_text_on_standard_input() {
    let mut member = member();
    member.allow = vec!["Edit".to_owned(), "Bash(git log:*)".to_owned()];
    let claude = built_in_profile("claude-turn").unwrap().unwrap();
    let facts = LaunchFacts { model: Some("opus"), mode: Some(PermissionMode::Plan), ..member.facts() };
    let launch = claude.build_launch(&facts).unwrap();
    assert_eq!(launch.program(), Some("claude"));
    let agent = turns(launch);
    assert_eq!(
        agent.first_argv.join(" "),
        "claude -p --session-id {session} --allowedTools Bash(teamctl:*) --append-system-prompt You are ann. --model \
         opus {mode} --allowedTools mcp__team,Bash(teamctl:*),Edit,Bash(git log:*)"
    );
    assert!(agent.later_argv.join(" ").starts_with("claude -p --resume {session} --allowedTools"));
    assert_eq!(agent.session, SessionSource::Generated);
}

#[test]
fn codex_gets_its_options_before_the_verb_that_resumes() {
    let facts = member();
    let facts = LaunchFacts { model: Some("m"), mode: Some(PermissionMode::AcceptEdits), ..facts.facts() };
    let agent = turns(built_in_profile("codex-turn").unwrap().unwrap().build_launch(&facts).unwrap());
    assert_eq!(agent.first_argv.join(" "), "codex exec --json --skip-git-repo-check -m m {mode} -");
    assert_eq!(
        agent.later_argv.join(" "),
        "codex exec --json --skip-git-repo-check -m m {mode} resume {session} -"
    );
    assert_eq!(agent.session, SessionSource::OutputKey { key: "thread_id".to_owned() });
}

#[test]
fn blanks_are_filled_once_and_the_turns_own_are_left() {
    let member = member();
    let profile = profile(
        "delivery = \"turn\"\nprogram = \"{teamctl}\"\nargs = [\"{id} {cwd}\", \"{team}{agent_type}{model}\", \"{prompt}\"]\n\
         env = { WHERE = \"{cwd}\" }",
    );
    let launch = profile.build_launch(&member.facts()).unwrap();
    assert_eq!(launch.env["WHERE"], "/w d");
    let agent = turns(launch);
    assert_eq!(agent.first_argv, ["/bin/teamctl", "ann@survey /w d", "surveygeneral-purpose", "{prompt}"]);
    assert!(agent.later_argv.is_empty());
}

#[test]
fn a_pulling_program_gets_its_prompt_as_it_stands() {
    let member = member();
    let profile = profile("delivery = \"pull\"\nprogram = \"p\"\nargs = [\"{prompt}\", \"{name}\"]");
    let launch = profile.build_launch(&member.facts()).unwrap();
    assert_eq!(launch.argv, ["p", "count {cwd}; $(rm)", "ann"]);
    assert_eq!((launch.turns.is_none(), launch.delivery), (true, Delivery::Pull));
}

#[test]
fn a_tool_stands_alone_or_with_the_others_and_options_come_last_by_default() {
    let mut member = member();
    (member.allow, member.deny) = (vec!["a".into(), "b".into()], vec!["c".into(), "d".into()]);
    let text = "delivery = \"pull\"\nprogram = \"p\"\nargs = [\"x\"]\nallow = [\"+\", \"{tool}\"]\ndeny = [\"-{tools}\"]";
    let launch = profile(text).build_launch(&member.facts()).unwrap();
    assert_eq!(launch.argv, ["p", "x", "+", "a", "+", "b", "-c,d"]);
}

#[test]
fn what_the_program_has_no_argument_for_is_refused() {
    let mut member = member();
    let plain = profile("delivery = \"turn\"\nprogram = \"p\"\nmodes = { plan = [] }");
    let error =
        plain.build_launch(&LaunchFacts { mode: Some(PermissionMode::Auto), ..member.facts() }).unwrap_err();
    assert_eq!((error.kind, error.help.as_deref()), (ErrorKind::Usage, Some("it has: plan")));
    member.allow = vec!["Edit".to_owned()];
    let error = plain.build_launch(&member.facts()).unwrap_err();
    assert!(error.message.contains("--allow"), "{error}");
}

#[test]
fn what_looks_like_a_blank_arrives_as_it_stands() {
    let mut member = member();
    let text = "delivery = \"turn\"\nprogram = \"p\"\nargs = [\"{cwd}\"]\nallow = [\"{tools}\"]";
    member.allow = vec!["{session}".to_owned()];
    let facts = LaunchFacts { cwd: "/{prompt}{color}", ..member.facts() };
    let first = turns(profile(text).build_launch(&facts).unwrap()).first_argv;
    let filled: Vec<String> =
        first.iter().map(|text| protocol::deferred_variables::fill(text, |_| Some("x"))).collect();
    assert_eq!(filled, ["p", "/{prompt}{color}", "{session}"]);
}

#[test]
fn a_first_prompt_stands_where_its_blank_does_and_nowhere_without_one() {
    let member = member();
    let text = "delivery = \"pull\"\nprogram = \"p\"\nargs = [\"{prompt_args}\", \"x\"]\nprompt_args = [\"-i\", \"{prompt}\"]";
    let argv = |prompt| profile(text).build_launch(&LaunchFacts { prompt, ..member.facts() }).unwrap();
    assert_eq!(argv("hi").argv, ["p", "-i", "hi", "x"]);
    assert!(argv("hi").is_prompt_in_argv && !argv("").is_prompt_in_argv);
    assert_eq!(argv("").argv, ["p", "x"]);
    assert_eq!(argv("--yolo").argv, ["p", "-i", " --yolo", "x"], "a text is no option");
    let dashes = text.replace("\"-i\"", "\"--\"");
    assert_eq!(
        profile(&dashes).build_launch(&LaunchFacts { prompt: "--yolo", ..member.facts() }).unwrap().argv[2],
        "--yolo"
    );
    let long = "x".repeat(MAX_ARGUMENT_BYTES + 1);
    let error = profile(text).build_launch(&LaunchFacts { prompt: &long, ..member.facts() }).unwrap_err();
    assert!(error.kind == ErrorKind::Usage && error.message.contains("131072 bytes"), "{error}");
    let around = text.replace("{prompt}", "--prompt={prompt}");
    let order =
        |length| profile(&around).build_launch(&LaunchFacts { prompt: &long[..length], ..member.facts() });
    assert_eq!(order(MAX_ARGUMENT_BYTES - 9).unwrap().argv[2].len(), MAX_ARGUMENT_BYTES);
    assert!(
        order(MAX_ARGUMENT_BYTES - 8).unwrap_err().message.contains("131072 bytes"),
        "with what is around it"
    );
}

#[test]
fn a_prompt_is_spelled_as_its_blank_says() {
    let member = member();
    let prompt = "it's {prompt_sh} {color}";
    let order = |text: &str| profile(text).build_launch(&LaunchFacts { prompt, ..member.facts() }).unwrap();
    let sh = "'it'\\''s {prompt_sh} {color}'";
    let pull = order("delivery = \"pull\"\nprogram = \"sh\"\nargs = [\"-c\", \"echo {prompt_sh}\"]");
    assert_eq!((pull.argv[2].replace('\0', ""), pull.is_prompt_in_argv), (format!("echo {sh}"), true));
    let prompted =
        order("delivery = \"pull\"\nprogram = \"p\"\nprompt_args = [\"{\\\"a\\\":{prompt_json}}\"]");
    assert_eq!(prompted.argv[1].replace('\0', ""), "{\"a\":\"it's {prompt_sh} {color}\"}");
    let filled = protocol::deferred_variables::fill(&pull.argv[2], |_| Some("x"));
    assert_eq!(filled, format!("echo {sh}"), "nobody fills what it says");
}

#[test]
fn an_agent_with_a_hook_always_has_a_first_turn() {
    let member = member();
    let text = "delivery = \"hook\"\nprogram = \"p\"\nprompt_args = [\"{prompt}\"]\nresume_args = [\"-r\", \"{session}\"]\n";
    let order = |more: &str, prompt| {
        profile(&format!("{text}{more}")).build_launch(&LaunchFacts { prompt, ..member.facts() }).unwrap()
    };
    assert_eq!(order("", "hi").argv, ["p", "You are ann.\n\nhi"]);
    assert_eq!(order("", "").argv, ["p", "You are ann."]);
    let flagged = "instructions = [\"--system={instructions}\"]";
    assert_eq!(order(flagged, "").argv, ["p", "--system=You are ann.", READY_PROMPT]);
    assert!(!order(flagged, "").is_prompt_in_argv, "there is no such message");
    assert_eq!(
        order("", "hi").resume_argv.unwrap().argv,
        ["p", "-r", "{session}", &plan_approval_launch::resume_prompt(&member.facts())]
    );
    assert_eq!(order("", "").env["TEAMD_PROFILE"], "x");
}

#[test]
fn who_plans_is_asked_for_a_plan_and_started_again_in_any_mode_of_its_own() {
    let member = member();
    let modes = "modes = { plan = [\"--read\"], default = [], acceptEdits = [\"--edit\"] }";
    let text = format!(
        "delivery = \"hook\"\nprogram = \"p\"\nprompt_args = [\"{{prompt}}\"]\nresume_args = [\"-r\", \"{{session}}\"]\n{modes}"
    );
    let facts = LaunchFacts { mode: Some(PermissionMode::Plan), prompt: "count", ..member.facts() };
    let launch = profile(&text).build_launch(&facts).unwrap();
    assert_eq!(launch.argv[..2], ["p", "--read"]);
    assert!(launch.argv[2].contains(PLAN_PROMPT) && launch.argv[2].ends_with("count"), "{launch:#?}");
    assert!(launch.resume_argv.unwrap().argv[4].contains(PLAN_PROMPT));
    assert_eq!(launch.approved.keys().collect::<Vec<_>>(), ["acceptEdits", "default"]);
    let edits = &launch.approved["acceptEdits"];
    assert_eq!(edits.argv[..2], ["p", "--edit"]);
    assert!(edits.argv[2].contains("it is approved") && !edits.argv[2].contains("count"), "{edits:#?}");
    let resumed = &edits.resume_argv.as_ref().unwrap().argv;
    assert_eq!(resumed[..4], ["p", "-r", "{session}", "--edit"]);
    assert!(
        resumed[4].starts_with("Your plan is approved.") && resumed[4].contains("acceptEdits"),
        "{resumed:#?}"
    );
    assert!(profile(&text).build_launch(&member.facts()).unwrap().approved.is_empty());
    let error = profile(&text).build_launch(&LaunchFacts { prompt: "", ..facts }).unwrap_err();
    assert!(error.message.contains("without a prompt"), "{error}");
}

#[test]
fn who_could_not_leave_plan_mode_is_not_started_in_it() {
    let member = member();
    let acp = "delivery = \"acp\"\nprogram = \"p\"\n";
    for (text, missing) in [
        ("delivery = \"pull\"\nprogram = \"p\"\nmodes = { plan = [] }".to_owned(), "no default in `modes`"),
        ("delivery = \"hook\"\nprogram = \"p\"\nmodes = { default = [] }".to_owned(), "no plan in `modes`"),
        (format!("{acp}modes = {{ plan = [] }}"), "no plan in `session_modes`"),
        (format!("{acp}session_modes = {{ plan = \"r\" }}"), "no default in `session_modes`"),
    ] {
        let error = profile(&text)
            .build_launch(&LaunchFacts { mode: Some(PermissionMode::Plan), ..member.facts() })
            .unwrap_err();
        assert!(error.kind == ErrorKind::Usage && error.message.contains(missing), "{error}");
    }
    let error = built_in_profile("worker")
        .unwrap()
        .unwrap()
        .build_launch(&LaunchFacts { mode: Some(PermissionMode::Plan), ..member.facts() });
    assert!(error.unwrap_err().message.contains("makes no plans"));
}

#[test]
fn a_type_that_only_reads_is_never_let_write() {
    let member = member();
    let text = "delivery = \"turn\"\nprogram = \"p\"\nmodes = { default = [\"d\"], acceptEdits = [\"w\"] }\n\
                agent_types = { Explore = [\"r\"], tester = [\"t\"] }";
    let order =
        |agent_type, mode| profile(text).build_launch(&LaunchFacts { agent_type, mode, ..member.facts() });
    let first = |agent_type, mode| turns(order(agent_type, mode).unwrap()).first_argv.join(" ");
    assert_eq!(first(Some("Explore"), None), "p r");
    assert_eq!(first(Some("Explore"), Some(PermissionMode::Default)), "p r");
    assert_eq!(first(Some("tester"), Some(PermissionMode::AcceptEdits)), "p t {mode}");
    assert_eq!(first(Some("whatever"), None), "p {mode}");
    assert_eq!(turns(order(Some("tester"), None).unwrap()).mode_args["acceptEdits"], ["w"]);
    assert!(turns(order(Some("Explore"), None).unwrap()).mode_args.is_empty(), "it stays so");
    assert_eq!(order(Some("Explore"), Some(PermissionMode::AcceptEdits)).unwrap_err().kind, ErrorKind::Usage);
    let plans = "delivery = \"turn\"\nprogram = \"p\"\nmodes = { plan = [\"r\"], acceptEdits = [\"w\"] }\ndefault_mode = \"acceptEdits\"";
    let explore = LaunchFacts { agent_type: Some("Explore"), ..member.facts() };
    assert_eq!(turns(profile(plans).build_launch(&explore).unwrap()).first_argv, ["p", "r"], "as it plans");
    let acp = "delivery = \"acp\"\nprogram = \"p\"\nsession_modes = { plan = \"r\", default = \"w\" }";
    let Some(TurnProgram::Driven(stands)) = profile(acp).build_launch(&explore).unwrap().turns else {
        panic!()
    };
    assert_eq!(stands.initial_mode.as_deref(), Some("r"));
    assert_eq!(stands.mode_ids.keys().collect::<Vec<_>>(), ["plan"], "no approval lets it write");
    for name in built_in_names().filter(|name| *name != "claude") {
        let profile = built_in_profile(name).unwrap().unwrap();
        let reads = ["Explore", "Plan"].map(|of| {
            profile.build_launch(&LaunchFacts { agent_type: Some(of), ..member.facts() }).map(drop)
        });
        match name {
            "shell" | "worker" => {
                assert!(
                    reads.iter().all(|read| read.as_ref().is_err_and(|error| error.kind == ErrorKind::Usage)),
                    "{name}"
                );
            }
            _ => assert_eq!(reads, [Ok(()), Ok(())], "{name}"),
        }
    }
}

#[test]
fn a_value_never_becomes_an_option() {
    let mut member = member();
    let text = "delivery = \"turn\"\nprogram = \"p\"\nmodel = [\"-m\", \"{model}\"]\nallow = [\"{tool}\"]\ndeny = [\"-d={tool}\"]";
    let error =
        profile(text).build_launch(&LaunchFacts { model: Some("--yolo"), ..member.facts() }).unwrap_err();
    assert!(error.kind == ErrorKind::Usage && error.message.contains("--yolo"), "{error}");
    member.deny = vec!["--yolo".to_owned()];
    assert_eq!(turns(profile(text).build_launch(&member.facts()).unwrap()).first_argv, ["p", "-d=--yolo"]);
    member.allow = vec!["--yolo".to_owned()];
    assert_eq!(profile(text).build_launch(&member.facts()).unwrap_err().kind, ErrorKind::Usage);
}

#[test]
fn claude_asks_by_default_and_shares_its_leads_freedom_from_asking() {
    let member = member();
    let claude = built_in_profile("claude").unwrap().unwrap();
    let argv = |mode, lead_mode| {
        let launch = claude.build_launch(&LaunchFacts { mode, lead_mode, ..member.facts() }).unwrap();
        assert_eq!((launch.delivery, launch.has_deferred_variables), (Delivery::Native, true));
        launch.argv
    };
    let identity = ["claude", "--agent-id", "ann@survey", "--agent-name", "ann", "--team-name", "survey"];
    assert_eq!(argv(None, None)[..7], identity);
    let last = |mode, lead_mode| argv(mode, lead_mode)[17 - 2..].join(" ");
    assert_eq!(last(None, None), "--permission-mode default");
    assert_eq!(last(None, Some(PermissionMode::AcceptEdits)), "--permission-mode default");
    assert_eq!(last(None, Some(PermissionMode::BypassPermissions)), "--dangerously-skip-permissions");
    assert_eq!(
        last(Some(PermissionMode::Plan), Some(PermissionMode::BypassPermissions)),
        "--plan-mode-required"
    );
    assert_eq!(last(Some(PermissionMode::Delegate), None), "--permission-mode acceptEdits");
    assert!(!argv(None, None).iter().any(|argument| argument.contains("lead-verify-key")));
}

#[test]
fn a_usual_mode_that_is_no_mode_is_refused() {
    let error = parse_profile("x", "x.toml", "delivery = \"pull\"\nprogram = \"x\"\ndefault_mode = \"y\"")
        .unwrap_err();
    assert!(error.message.contains("`default_mode` must be one of `modes`"), "{error:?}");
}

#[test]
fn a_type_that_is_written_down_is_told_and_kept_to() {
    let member = member();
    let tools = vec!["Read".into(), "Bash(ls)".into()];
    let definition = AgentType { model: None, tools, body: "Test it.".into() };
    let asked = |text: &str, allow: &[String]| {
        let facts = LaunchFacts {
            definition: Some(&definition),
            agent_type: Some("tester"),
            allow,
            ..member.facts()
        };
        profile(text).build_launch(&facts)
    };
    let order = |text: &str, allow: &[String]| asked(text, allow).unwrap();
    let text = "delivery = \"turn\"\nprogram = \"p\"\ninstructions = [\"{instructions}\"]\nallow = [\"+{tool}\"]\nteam_tools = [\"team\"]";
    let error = asked(text, &[]).unwrap_err();
    assert!(
        error.kind == ErrorKind::Usage && error.message.contains("only the tools Read, Bash(ls)"),
        "{error}"
    );
    assert_eq!(
        turns(order(text, &["Edit".into()])).first_argv[2..],
        ["+team", "+Edit"],
        "as whoever spawns says"
    );
    let limited = format!("{text}\nonly_tools = [\"--only={{tools}}\"]");
    assert_eq!(turns(order(&limited, &[])).first_argv, ["p", "Test it.\n\nYou are ann.", "--only=Read,Bash"]);
    let of_type = format!("{text}\nagent_types = {{ tester = [\"t\"] }}");
    assert_eq!(turns(order(&of_type, &[])).first_argv[2..], ["t"]);
    let without =
        "delivery = \"turn\"\nprogram = \"p\"\ninstructions = \"prepend\"\nagent_types = { tester = [] }";
    assert_eq!(turns(order(without, &[])).prompt_prefix, "Test it.\n\nYou are ann.");
    let native = "delivery = \"native\"\nprogram = \"p\"\nargs = [\"{agent_type}\"]\nallow = [\"+{tool}\"]";
    assert_eq!(order(native, &[]).argv, ["p", "tester"], "it looks it up itself");
}
