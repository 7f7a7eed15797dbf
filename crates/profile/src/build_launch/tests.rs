//! Tests of the launches that profiles make, mostly of their command lines.

use super::*;
use crate::parse_profile::parse_profile;
use crate::registry::{built_in_names, built_in_profile};
use protocol::plan_mode_prompts::PLAN_PROMPT;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::worker_or_program_that_runs_turns::SessionSource;

struct SampleMember {
    name: MemberName,
    team: TeamName,
    allow: Vec<String>,
    deny: Vec<String>,
}

fn member() -> SampleMember {
    SampleMember {
        name: MemberName::parse("ann").unwrap(),
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

/// The per-turn program of a launch.
fn per_turn_program(launch: Launch) -> PerTurnProgram {
    match launch.turns {
        Some(TurnProgram::PerTurn(program)) => program,
        other => panic!("{other:?}"),
    }
}

#[test]
fn worker_runs_in_the_shim_and_takes_no_tools() {
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
fn every_built_in_profile_has_a_description_and_makes_a_launch() {
    for name in built_in_names() {
        let profile = built_in_profile(name).unwrap().unwrap();
        assert!(!profile.description.is_empty(), "{name}");
        profile.build_launch(&member().facts()).unwrap();
    }
    assert!(built_in_profile("nobody").is_none());
}

#[test]
fn built_in_profiles_pass_the_member_to_their_mcp_server() {
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
fn claude_turn_uses_a_generated_session_and_has_no_prompt_argument() {
    let mut member = member();
    member.allow = vec!["Edit".to_owned(), "Bash(git log:*)".to_owned()];
    let claude = built_in_profile("claude-turn").unwrap().unwrap();
    let facts = LaunchFacts { model: Some("opus"), mode: Some(PermissionMode::Plan), ..member.facts() };
    let launch = claude.build_launch(&facts).unwrap();
    assert_eq!(launch.program(), Some("claude"));
    let agent = per_turn_program(launch);
    assert_eq!(
        agent.first_argv.join(" "),
        "claude -p --session-id {session} --allowedTools Bash(teamctl:*) --append-system-prompt You are ann. --model \
         opus {mode} --allowedTools mcp__team,Bash(teamctl:*),Edit,Bash(git log:*)"
    );
    assert!(agent.later_argv.join(" ").starts_with("claude -p --resume {session} --allowedTools"));
    assert_eq!(agent.session, SessionSource::Generated);
}

#[test]
fn codex_turn_has_its_options_before_the_resume_subcommand() {
    let member = member();
    let facts = LaunchFacts { model: Some("m"), mode: Some(PermissionMode::AcceptEdits), ..member.facts() };
    let agent =
        per_turn_program(built_in_profile("codex-turn").unwrap().unwrap().build_launch(&facts).unwrap());
    assert_eq!(agent.first_argv.join(" "), "codex exec --json --skip-git-repo-check -m m {mode} -");
    assert_eq!(
        agent.later_argv.join(" "),
        "codex exec --json --skip-git-repo-check -m m {mode} resume {session} -"
    );
    assert_eq!(agent.session, SessionSource::OutputKey { key: "thread_id".to_owned() });
}

#[test]
fn template_variables_are_filled_once_and_deferred_variables_are_kept() {
    let member = member();
    let profile = profile(
        "delivery = \"turn\"\nprogram = \"{teamctl}\"\nargs = [\"{id} {cwd}\", \"{team}{agent_type}{model}\", \"{prompt}\"]\n\
         env = { WHERE = \"{cwd}\" }",
    );
    let launch = profile.build_launch(&member.facts()).unwrap();
    assert_eq!(launch.env["WHERE"], "/w d");
    let agent = per_turn_program(launch);
    assert_eq!(agent.first_argv, ["/bin/teamctl", "ann@survey /w d", "surveygeneral-purpose", "{prompt}"]);
    assert!(agent.later_argv.is_empty());
}

#[test]
fn program_with_delivery_pull_gets_its_prompt_unchanged() {
    let member = member();
    let profile = profile("delivery = \"pull\"\nprogram = \"p\"\nargs = [\"{prompt}\", \"{name}\"]");
    let launch = profile.build_launch(&member.facts()).unwrap();
    assert_eq!(launch.argv, ["p", "count {cwd}; $(rm)", "ann"]);
    assert_eq!((launch.turns.is_none(), launch.delivery), (true, Delivery::Pull));
}

#[test]
fn tools_are_passed_one_by_one_or_as_a_list_and_options_come_last_by_default() {
    let mut member = member();
    (member.allow, member.deny) = (vec!["a".into(), "b".into()], vec!["c".into(), "d".into()]);
    let text = "delivery = \"pull\"\nprogram = \"p\"\nargs = [\"x\"]\nallow = [\"+\", \"{tool}\"]\ndeny = [\"-{tools}\"]";
    let launch = profile(text).build_launch(&member.facts()).unwrap();
    assert_eq!(launch.argv, ["p", "x", "+", "a", "+", "b", "-c,d"]);
}

#[test]
fn mode_and_tools_without_an_argument_in_the_profile_are_refused() {
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
fn values_that_look_like_variables_are_unchanged() {
    let mut member = member();
    let text = "delivery = \"turn\"\nprogram = \"p\"\nargs = [\"{cwd}\"]\nallow = [\"{tools}\"]";
    member.allow = vec!["{session}".to_owned()];
    let facts = LaunchFacts { cwd: "/{prompt}{color}", ..member.facts() };
    let first = per_turn_program(profile(text).build_launch(&facts).unwrap()).first_argv;
    let filled_argv: Vec<String> =
        first.iter().map(|text| protocol::deferred_template_variables::fill(text, |_| Some("x"))).collect();
    assert_eq!(filled_argv, ["p", "/{prompt}{color}", "{session}"]);
}

#[test]
fn prompt_args_replace_their_variable_and_are_omitted_without_a_prompt() {
    let member = member();
    let text = "delivery = \"pull\"\nprogram = \"p\"\nargs = [\"{prompt_args}\", \"x\"]\nprompt_args = [\"-i\", \"{prompt}\"]";
    let argv = |prompt| profile(text).build_launch(&LaunchFacts { prompt, ..member.facts() }).unwrap();
    assert_eq!(argv("hi").argv, ["p", "-i", "hi", "x"]);
    assert!(argv("hi").is_prompt_in_argv && !argv("").is_prompt_in_argv);
    assert_eq!(argv("").argv, ["p", "x"]);
    assert_eq!(argv("--yolo").argv, ["p", "-i", " --yolo", "x"], "a prompt is never an option");
    let dashes = text.replace("\"-i\"", "\"--\"");
    assert_eq!(
        profile(&dashes).build_launch(&LaunchFacts { prompt: "--yolo", ..member.facts() }).unwrap().argv[2],
        "--yolo"
    );
    let long = "x".repeat(MAX_ARGUMENT_BYTES + 1);
    let error = profile(text).build_launch(&LaunchFacts { prompt: &long, ..member.facts() }).unwrap_err();
    assert!(error.kind == ErrorKind::Usage && error.message.contains("131072 bytes"), "{error}");
    let with_flag = text.replace("{prompt}", "--prompt={prompt}");
    let launch =
        |length| profile(&with_flag).build_launch(&LaunchFacts { prompt: &long[..length], ..member.facts() });
    assert_eq!(launch(MAX_ARGUMENT_BYTES - 9).unwrap().argv[2].len(), MAX_ARGUMENT_BYTES);
    assert!(
        launch(MAX_ARGUMENT_BYTES - 8).unwrap_err().message.contains("131072 bytes"),
        "the limit includes the text around the prompt"
    );
}

#[test]
fn suffix_of_the_prompt_variable_selects_the_encoding() {
    let member = member();
    let prompt = "it's {prompt_sh} {color}";
    let launch = |text: &str| profile(text).build_launch(&LaunchFacts { prompt, ..member.facts() }).unwrap();
    let sh = "'it'\\''s {prompt_sh} {color}'";
    let pull = launch("delivery = \"pull\"\nprogram = \"sh\"\nargs = [\"-c\", \"echo {prompt_sh}\"]");
    assert_eq!((pull.argv[2].replace('\0', ""), pull.is_prompt_in_argv), (format!("echo {sh}"), true));
    let with_prompt_args =
        launch("delivery = \"pull\"\nprogram = \"p\"\nprompt_args = [\"{\\\"a\\\":{prompt_json}}\"]");
    assert_eq!(with_prompt_args.argv[1].replace('\0', ""), "{\"a\":\"it's {prompt_sh} {color}\"}");
    let command = protocol::deferred_template_variables::fill(&pull.argv[2], |_| Some("x"));
    assert_eq!(command, format!("echo {sh}"), "variables in the prompt are not filled in");
}

#[test]
fn program_with_hooks_always_gets_a_first_prompt() {
    let member = member();
    let text = "delivery = \"hook\"\nprogram = \"p\"\nprompt_args = [\"{prompt}\"]\nresume_args = [\"-r\", \"{session}\"]\n";
    let launch = |more: &str, prompt| {
        profile(&format!("{text}{more}")).build_launch(&LaunchFacts { prompt, ..member.facts() }).unwrap()
    };
    assert_eq!(launch("", "hi").argv, ["p", "You are ann.\n\nhi"]);
    assert_eq!(launch("", "").argv, ["p", "You are ann."]);
    let instructions_setting = "instructions = [\"--system={instructions}\"]";
    assert_eq!(launch(instructions_setting, "").argv, ["p", "--system=You are ann.", READY_PROMPT]);
    assert!(!launch(instructions_setting, "").is_prompt_in_argv, "the prompt is no message in the inbox");
    assert_eq!(
        launch("", "hi").resume_argv.unwrap().argv,
        ["p", "-r", "{session}", &launches_after_plan_approval::resume_prompt(&member.facts())]
    );
    assert_eq!(launch("", "").env["TEAMD_PROFILE"], "x");
}

#[test]
fn launch_in_plan_mode_asks_for_a_plan_and_has_a_respawn_for_each_other_mode() {
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
    assert_eq!(launch.launches_after_approval.keys().collect::<Vec<_>>(), ["acceptEdits", "default"]);
    let edits = &launch.launches_after_approval["acceptEdits"];
    assert_eq!(edits.argv[..2], ["p", "--edit"]);
    assert!(edits.argv[2].contains("it is approved") && !edits.argv[2].contains("count"), "{edits:#?}");
    let resume_argv = &edits.resume_argv.as_ref().unwrap().argv;
    assert_eq!(resume_argv[..4], ["p", "-r", "{session}", "--edit"]);
    assert!(
        resume_argv[4].starts_with("Your plan is approved.") && resume_argv[4].contains("acceptEdits"),
        "{resume_argv:#?}"
    );
    assert!(profile(&text).build_launch(&member.facts()).unwrap().launches_after_approval.is_empty());
    let error = profile(&text).build_launch(&LaunchFacts { prompt: "", ..facts }).unwrap_err();
    assert!(error.message.contains("without a prompt"), "{error}");
}

#[test]
fn plan_mode_is_refused_if_the_program_cannot_enter_or_leave_it() {
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
fn read_only_agent_type_never_gets_write_access() {
    let member = member();
    let text = "delivery = \"turn\"\nprogram = \"p\"\nmodes = { default = [\"d\"], acceptEdits = [\"w\"] }\n\
                agent_types = { Explore = [\"r\"], tester = [\"t\"] }";
    let launch =
        |agent_type, mode| profile(text).build_launch(&LaunchFacts { agent_type, mode, ..member.facts() });
    let first_argv =
        |agent_type, mode| per_turn_program(launch(agent_type, mode).unwrap()).first_argv.join(" ");
    assert_eq!(first_argv(Some("Explore"), None), "p r");
    assert_eq!(first_argv(Some("Explore"), Some(PermissionMode::Default)), "p r");
    assert_eq!(first_argv(Some("tester"), Some(PermissionMode::AcceptEdits)), "p t {mode}");
    assert_eq!(first_argv(Some("whatever"), None), "p {mode}");
    assert_eq!(per_turn_program(launch(Some("tester"), None).unwrap()).mode_args["acceptEdits"], ["w"]);
    assert!(
        per_turn_program(launch(Some("Explore"), None).unwrap()).mode_args.is_empty(),
        "its mode never changes"
    );
    assert_eq!(
        launch(Some("Explore"), Some(PermissionMode::AcceptEdits)).unwrap_err().kind,
        ErrorKind::Usage
    );
    let plans = "delivery = \"turn\"\nprogram = \"p\"\nmodes = { plan = [\"r\"], acceptEdits = [\"w\"] }\ndefault_mode = \"acceptEdits\"";
    let explore = LaunchFacts { agent_type: Some("Explore"), ..member.facts() };
    assert_eq!(
        per_turn_program(profile(plans).build_launch(&explore).unwrap()).first_argv,
        ["p", "r"],
        "it gets the arguments of the plan mode"
    );
    let acp = "delivery = \"acp\"\nprogram = \"p\"\nsession_modes = { plan = \"r\", default = \"w\" }";
    let Some(TurnProgram::Driven(driven)) = profile(acp).build_launch(&explore).unwrap().turns else {
        panic!()
    };
    assert_eq!(driven.initial_mode.as_deref(), Some("r"));
    assert_eq!(driven.mode_ids.keys().collect::<Vec<_>>(), ["plan"], "no approval gives it write access");
    for name in built_in_names().filter(|name| *name != "claude") {
        let profile = built_in_profile(name).unwrap().unwrap();
        let results = ["Explore", "Plan"].map(|agent_type| {
            profile.build_launch(&LaunchFacts { agent_type: Some(agent_type), ..member.facts() }).map(drop)
        });
        match name {
            "shell" | "worker" => {
                assert!(
                    results
                        .iter()
                        .all(|result| result.as_ref().is_err_and(|error| error.kind == ErrorKind::Usage)),
                    "{name}"
                );
            }
            _ => assert_eq!(results, [Ok(()), Ok(())], "{name}"),
        }
    }
}

#[test]
fn model_or_tool_cannot_be_an_option() {
    let mut member = member();
    let text = "delivery = \"turn\"\nprogram = \"p\"\nmodel = [\"-m\", \"{model}\"]\nallow = [\"{tool}\"]\ndeny = [\"-d={tool}\"]";
    let error =
        profile(text).build_launch(&LaunchFacts { model: Some("--yolo"), ..member.facts() }).unwrap_err();
    assert!(error.kind == ErrorKind::Usage && error.message.contains("--yolo"), "{error}");
    member.deny = vec!["--yolo".to_owned()];
    assert_eq!(
        per_turn_program(profile(text).build_launch(&member.facts()).unwrap()).first_argv,
        ["p", "-d=--yolo"]
    );
    member.allow = vec!["--yolo".to_owned()];
    assert_eq!(profile(text).build_launch(&member.facts()).unwrap_err().kind, ErrorKind::Usage);
}

#[test]
fn claude_has_the_default_mode_unless_its_lead_bypasses_permissions() {
    let member = member();
    let claude = built_in_profile("claude").unwrap().unwrap();
    let argv = |mode, lead_mode| {
        let launch = claude.build_launch(&LaunchFacts { mode, lead_mode, ..member.facts() }).unwrap();
        assert_eq!((launch.delivery, launch.has_deferred_variables), (Delivery::Native, true));
        launch.argv
    };
    let identity = ["claude", "--agent-id", "ann@survey", "--agent-name", "ann", "--team-name", "survey"];
    assert_eq!(argv(None, None)[..7], identity);
    let mode_args = |mode, lead_mode| argv(mode, lead_mode)[17 - 2..].join(" ");
    assert_eq!(mode_args(None, None), "--permission-mode default");
    assert_eq!(mode_args(None, Some(PermissionMode::AcceptEdits)), "--permission-mode default");
    assert_eq!(mode_args(None, Some(PermissionMode::BypassPermissions)), "--dangerously-skip-permissions");
    assert_eq!(
        mode_args(Some(PermissionMode::Plan), Some(PermissionMode::BypassPermissions)),
        "--plan-mode-required"
    );
    assert_eq!(mode_args(Some(PermissionMode::Delegate), None), "--permission-mode acceptEdits");
    assert!(!argv(None, None).iter().any(|argument| argument.contains("lead-verify-key")));
}

#[test]
fn unknown_default_mode_is_refused() {
    let error = parse_profile("x", "x.toml", "delivery = \"pull\"\nprogram = \"x\"\ndefault_mode = \"y\"")
        .unwrap_err();
    assert!(error.message.contains("`default_mode` must be one of `modes`"), "{error:?}");
}

#[test]
fn agent_type_definition_sets_instructions_and_tools() {
    let member = member();
    let tools = vec!["Read".into(), "Bash(ls)".into()];
    let definition = AgentType { model: None, tools, body: "Test it.".into() };
    let build = |text: &str, allow: &[String]| {
        let facts = LaunchFacts {
            definition: Some(&definition),
            agent_type: Some("tester"),
            allow,
            ..member.facts()
        };
        profile(text).build_launch(&facts)
    };
    let launch = |text: &str, allow: &[String]| build(text, allow).unwrap();
    let text = "delivery = \"turn\"\nprogram = \"p\"\ninstructions = [\"{instructions}\"]\nallow = [\"+{tool}\"]\nteam_tools = [\"team\"]";
    let error = build(text, &[]).unwrap_err();
    assert!(
        error.kind == ErrorKind::Usage && error.message.contains("only the tools Read, Bash(ls)"),
        "{error}"
    );
    assert_eq!(
        per_turn_program(launch(text, &["Edit".into()])).first_argv[2..],
        ["+team", "+Edit"],
        "the tools of the spawn request take precedence"
    );
    let with_tool_limit = format!("{text}\nonly_tools = [\"--only={{tools}}\"]");
    assert_eq!(
        per_turn_program(launch(&with_tool_limit, &[])).first_argv,
        ["p", "Test it.\n\nYou are ann.", "--only=Read,Bash"]
    );
    let with_type_args = format!("{text}\nagent_types = {{ tester = [\"t\"] }}");
    assert_eq!(per_turn_program(launch(&with_type_args, &[])).first_argv[2..], ["t"]);
    let without_tool_limit =
        "delivery = \"turn\"\nprogram = \"p\"\ninstructions = \"prepend\"\nagent_types = { tester = [] }";
    assert_eq!(per_turn_program(launch(without_tool_limit, &[])).prompt_prefix, "Test it.\n\nYou are ann.");
    let native = "delivery = \"native\"\nprogram = \"p\"\nargs = [\"{agent_type}\"]\nallow = [\"+{tool}\"]";
    assert_eq!(launch(native, &[]).argv, ["p", "tester"], "the program reads the definition itself");
}
