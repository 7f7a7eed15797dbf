//! Tests of the parser of profiles, mostly of its errors. Each error names the file, the key and
//! the allowed values.

use super::*;
use protocol::error_kind_and_report::ErrorKind;

/// The message and the help of the error for an invalid profile.
fn parse_error(text: &str) -> String {
    let error = parse_profile("x", "the profile x.toml", text).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Config, "{text}");
    let message = format!("{}; {}", error.message, error.help.unwrap_or_default());
    assert!(message.starts_with("cannot use the profile x.toml: "), "{message}");
    message
}

/// The text of a profile with delivery `turn`.
fn turn_profile(rest: &str) -> String {
    format!("delivery = \"turn\"\nprogram = \"p\"\n{rest}")
}

#[test]
fn complete_profile_is_parsed() {
    let text = turn_profile(
        r#"
        description = "a program"
        args = ["-s", "{session}", "{options}", "{prompt}", "--id={id}"]
        resume_args = ["-r", "{session}", "{prompt}"]
        session = "generated"
        model = ["-m", "{model}"]
        allow = ["+{tool}"]
        deny = ["--no", "{tools}"]
        env = { A = "{cwd}" }
        remove_env = ["B"]
        [modes]
        plan = ["--plan"]"#,
    );
    let profile = parse_profile("x", "x.toml", &text).unwrap();
    assert_eq!((profile.name.as_str(), profile.description.as_str()), ("x", "a program"));
    let ProfileKind::Program(program) = profile.kind else { panic!("the profile describes a program") };
    let resume = ["-r", "{session}", "{prompt}"].map(str::to_owned).to_vec();
    assert_eq!(
        program.delivery,
        DeliverySpec::Turn(TurnDelivery {
            resume_args: resume,
            session: SessionSource::Generated,
            reply_key: None,
            usage_paths: None
        })
    );
    assert_eq!(program.modes["plan"], ["--plan"]);
    let pull = parse_profile("x", "x.toml", "delivery = \"pull\"\nprogram = \"p\"").unwrap();
    assert!(
        matches!(pull.kind, ProfileKind::Program(program) if program.delivery == DeliverySpec::Pull && program.args.is_empty())
    );
}

#[test]
fn example_in_the_documentation_is_a_valid_profile() {
    let page = include_str!("../../../../docs/agents.md");
    let (_, example) = page.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    parse_profile("ask", "docs/agents.md", example).unwrap();
    for key in PROFILE_KEYS {
        assert!(page.contains(&format!("`{key}`")), "{key} is not on the page");
    }
}

#[test]
fn syntax_error_names_the_line() {
    assert!(parse_error("delivery = \"turn\"\nprogram = p").contains("line 2: "));
    assert!(parse_error("a = 1\na = 2").contains("line 2: "));
    assert!(parse_error("a = \"\u{1b}[2J\"").contains("line 1: "));
}

#[test]
fn error_for_an_unknown_key_suggests_the_nearest_key_and_lists_all() {
    let message = parse_error(&turn_profile("arg = []"));
    assert!(message.contains("`arg` is unknown") && message.contains("did you mean args?"), "{message}");
    assert!(message.contains("resume_args, session"), "{message}");
}

#[test]
fn error_for_a_wrong_type_names_the_expected_type() {
    for (key, value, expected) in [
        ("description", "1", "a text"),
        ("args", "\"-p\"", "a list of texts"),
        ("args", "[1]", "a list of texts"),
        ("resume_args", "{}", "a list of texts"),
        ("model", "\"m\"", "a list of texts"),
        ("modes", "[]", "a table of lists of texts"),
        ("modes", "{ plan = \"x\" }", "a table of lists of texts"),
        ("allow", "true", "a list of texts"),
        ("deny", "1.5", "a list of texts"),
        ("env", "[\"A=1\"]", "a table of texts"),
        ("remove_env", "\"A\"", "a list of texts"),
        ("session", "\"theirs\"", "{ output_key = \"KEY\" }"),
        ("session", "{ output_key = 1 }", "{ output_key = \"KEY\" }"),
        ("session", "{ output_key = \"\" }", "{ output_key = \"KEY\" }"),
        ("session", "{ tell = \"id\" }", "{ output_key = \"KEY\" }"),
        ("usage", "\"cost\"", "{ tokens = ["),
        ("usage", "{ scope = \"turn\" }", "{ tokens = ["),
        ("usage", "{ tokens = [\"a..b\"] }", "{ tokens = ["),
        ("usage", "{ tokens = [\"a\"], file_key = \"f\" }", "{ tokens = ["),
        ("usage", "{ cost = \"a\", scope = \"life\" }", "{ tokens = ["),
    ] {
        let message = parse_error(&turn_profile(&format!("{key} = {value}")));
        assert!(message.contains(&format!("`{key}` must be")) && message.contains(expected), "{message}");
    }
    assert!(parse_error("delivery = 1\nprogram = \"p\"").contains("`delivery` must be a text"));
    assert!(parse_error("delivery = \"turn\"\nprogram = [\"p\"]").contains("`program` must be a text"));
}

#[test]
fn allowed_keys_of_usage_depend_on_the_delivery() {
    let parse = |delivery: &str, usage: &str| {
        parse_profile(
            "x",
            "x.toml",
            &format!("delivery = \"{delivery}\"\nprogram = \"p\"\nusage = {usage}\n"),
        )
        .map_err(|error| error.message)
    };
    for (delivery, usage) in [
        ("turn", "{ cost = \"a.*\" }"),
        ("hook", "{ cost = \"a\", file_key = \"f\" }"),
        ("acp", "{ scope = \"session\" }"),
    ] {
        assert!(parse(delivery, usage).is_ok(), "{delivery} {usage}");
    }
    assert!(parse("hook", "{ cost = \"a\" }").unwrap_err().contains("must hold file_key = \"KEY\""));
    assert!(
        parse("acp", "{ cost = \"a\" }").unwrap_err().contains("{ scope = \"session\" } with delivery acp")
    );
    assert!(parse("acp", "{ scope = \"process\" }").unwrap_err().contains("with delivery acp"));
    assert!(parse("pull", "{ cost = \"a\" }").unwrap_err().contains("`usage` is for delivery \"turn\""));
}

#[test]
fn program_and_delivery_are_required() {
    assert!(parse_error("delivery = \"turn\"").contains("`program` must be there"));
    assert!(parse_error("delivery = \"turn\"\nprogram = \"\"").contains("`program` must be there"));
    assert!(
        parse_error("program = \"p\"").contains("`delivery` must be there: native, hook, acp, turn or pull")
    );
    assert!(parse_error("delivery = \"push\"\nprogram = \"p\"").contains("turn or pull, not \"push\""));
}

#[test]
fn allowed_keys_and_variables_depend_on_the_delivery() {
    for (delivery, setting, expected) in [
        ("pull", "resume_args = [\"{session}\"]", "`resume_args` is for delivery \"turn\""),
        ("acp", "resume_args = [\"{session}\"]", "`resume_args` is for delivery \"turn\""),
        ("pull", "session = \"none\"", "`session` is for delivery \"turn\""),
        ("pull", "reply = { key = \"x\" }", "`reply` is for delivery \"turn\", \"hook\""),
        ("hook", "reply = { file_key = \"x\" }", "`reply` must be { key"),
        ("hook", "reply = { key = \"\" }", "`reply` must be { key"),
        ("turn", "hook_response = { a = \"{text}\" }", "`hook_response` is for delivery \"hook\""),
        ("turn", "max_wait = \"5s\"", "`max_wait` is for delivery \"hook\""),
        ("turn", "prompt_args = [\"{prompt}\"]", "`prompt_args` is for delivery \"hook\""),
        ("native", "prompt_args = [\"{prompt}\"]", "`prompt_args` is for delivery \"hook\""),
        ("pull", "instructions = \"prepend\"", "cannot be \"prepend\""),
        ("pull", "args = [\"{session}\"]", "holds {session}"),
        ("acp", "args = [\"{prompt}\"]", "holds {prompt}"),
        ("hook", "args = [\"{color}\"]", "holds {color}"),
        ("hook", "resume_args = [\"-c\"]", "`resume_args` must hold {session}"),
        ("hook", "prompt_args = [\"-i\"]", "`prompt_args` must hold {prompt}"),
        ("hook", "args = [\"{prompt_args}\"]", "there is no `prompt_args`"),
        ("hook", "args = [\"-i={prompt_args}\"]", "one of its own"),
        ("hook", "hook_response = \"text\"", "`hook_response` must be a table"),
        ("hook", "hook_response = { decision = \"block\" }", "holds {text}"),
        ("hook", "max_wait = \"long\"", "`max_wait` must be a duration"),
        ("turn", "reply = { key = \"\" }", "`reply` must be { key"),
        ("turn", "instructions = \"behind\"", "`instructions` must be"),
        ("turn", "instructions = [\"-s\"]", "must hold {instructions}"),
        ("turn", "verified = \"no\"", "`verified` must be true or false"),
        ("turn", "dialogs = \"x\"", "`dialogs` must be a list"),
        ("turn", "limits = \"x\"", "`limits` must be a list"),
        ("turn", "limits = [\"resets {time}\", \"resets\"]", "`limits` must hold {time} once in each text"),
        ("turn", "limits = [\"{time}\"]", "after other words"),
    ] {
        let message = parse_error(&format!("delivery = \"{delivery}\"\nprogram = \"p\"\n{setting}"));
        assert!(message.contains(expected), "{setting}: {message}");
    }
}

#[test]
fn invalid_settings_are_rejected() {
    for (value, expected) in [
        ("[{ file = \"x\" }]", "`settings` must be a list of tables"),
        ("[{ file = \"~/../x\", format = \"json\", merge = {} }]", "must name its file"),
        ("[{ file = \"/etc/x\", format = \"json\", merge = {} }]", "must name its file"),
        ("[{ file = \"x\", format = \"yaml\", merge = {} }]", "`settings` must be a list of tables"),
        ("[{ file = \"x\", format = \"json\", merge = { a = \"{cwd}\" } }]", "holds {cwd}"),
    ] {
        let message = parse_error(&format!("delivery = \"turn\"\nprogram = \"p\"\nsettings = {value}"));
        assert!(message.contains(expected), "{value}: {message}");
    }
}

#[test]
fn settings_of_a_delivery_have_default_values() {
    let program = |text: &str| match parse_profile("x", "x.toml", text).unwrap().kind {
        ProfileKind::Program(program) => program,
        ProfileKind::Worker => panic!("the profile describes a program"),
    };
    let hook = program("delivery = \"hook\"\nprogram = \"p\"\nmax_wait = \"550s\"");
    let DeliverySpec::Hook { hook: delivery, .. } = &hook.delivery else { panic!("{hook:?}") };
    let response = &delivery.response_template;
    assert_eq!((response["decision"].as_str(), response["reason"].as_str()), (Some("block"), Some("{text}")));
    assert_eq!((delivery.max_wait_ms, &hook.instructions), (Some(550_000), &InstructionDelivery::Prepended));
    let filter = program("delivery = \"turn\"\nprogram = \"tr\"");
    assert_eq!(filter.instructions, InstructionDelivery::NotNeeded);
    assert_eq!(
        program(&turn_profile("session = { output_key = \"id\" }\nresume_args = [\"{session}\"]"))
            .instructions,
        InstructionDelivery::Prepended
    );
    let with_suffixes =
        program("delivery = \"pull\"\nprogram = \"p\"\nargs = [\"{id_json}\", \"{teamctl_sh}\"]");
    assert_eq!(with_suffixes.args, ["{id_json}", "{teamctl_sh}"]);
}

#[test]
fn error_for_an_unknown_variable_suggests_the_nearest_variable() {
    let message = parse_error(&turn_profile("args = [\"{promt}\"]"));
    assert!(message.contains("holds {promt}") && message.contains("did you mean {prompt}?"), "{message}");
    for rest in [
        "args = [\"{tool}\"]",
        "model = [\"{prompt}\"]",
        "allow = [\"{session}\"]",
        "modes = { plan = [\"{x}\"] }",
        "env = { A = \"{prompt}\" }",
    ] {
        assert!(parse_error(&turn_profile(rest)).contains("is no variable here"), "{rest}");
    }
    assert!(parse_error("delivery = \"turn\"\nprogram = \"{prompt}\"").contains("`program` holds {prompt}"));
    assert!(parse_error(&turn_profile("args = [\"x{options}\"]")).contains("one of its own"));
    assert!(parse_error(&turn_profile("args = [\"a\\u0000\"]")).contains("zero byte"));
}

#[test]
fn session_variable_is_required_where_the_session_is_known_and_refused_elsewhere() {
    let session_error = |session: &str, args: &str, resume: &str| {
        parse_error(&turn_profile(&format!(
            "session = {session}\nargs = [\"{args}\"]\nresume_args = [\"{resume}\"]"
        )))
    };
    assert!(session_error("\"none\"", "{session}", "x").contains("`args` holds {session}"));
    assert!(session_error("\"none\"", "x", "{session}").contains("`resume_args` holds {session}"));
    assert!(session_error("\"generated\"", "x", "{session}").contains("`args` must hold {session}"));
    assert!(session_error("\"generated\"", "{session}", "x").contains("`resume_args` must hold {session}"));
    assert!(
        session_error("{ output_key = \"id\" }", "{session}", "{session}").contains("before the first turn")
    );
    assert!(session_error("{ output_key = \"id\" }", "x", "y").contains("`resume_args` must hold {session}"));
}

#[test]
fn profile_cannot_set_reserved_or_invalid_variables() {
    assert!(parse_error(&turn_profile("env = { TEAMD_TOKEN = \"x\" }")).contains("cannot set TEAMD_TOKEN"));
    assert!(parse_error(&turn_profile("env = { \"A=B\" = \"x\" }")).contains("cannot set A=B"));
}
