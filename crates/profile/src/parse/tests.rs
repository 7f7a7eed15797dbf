//! Tests of the errors of a profile's file: each names the file, the key and the allowed values.

use super::*;
use protocol::error::ErrorKind;

fn error_of(text: &str) -> String {
    let error_of = parse_profile("x", "the profile x.toml", text).unwrap_err();
    assert_eq!(error_of.kind, ErrorKind::Config, "{text}");
    let message = format!("{}; {}", error_of.message, error_of.help.unwrap_or_default());
    assert!(message.starts_with("cannot use the profile x.toml: "), "{message}");
    message
}

fn turn(rest: &str) -> String {
    format!("delivery = \"turn\"\nprogram = \"p\"\n{rest}")
}

#[test]
fn a_whole_file_is_read() {
    let text = turn(
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
    let ProfileKind::Program(program) = profile.kind else { panic!("it is a program") };
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
fn the_example_of_the_page_is_a_profile() {
    let page = include_str!("../../../../docs/agents.md");
    let (_, example) = page.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    parse_profile("ask", "docs/agents.md", example).unwrap();
    for key in PROFILE_KEYS {
        assert!(page.contains(&format!("`{key}`")), "{key} is not on the page");
    }
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    assert!(error_of("delivery = \"turn\"\nprogram = p").contains("line 2: "));
    assert!(error_of("a = 1\na = 2").contains("line 2: "));
    assert!(error_of("a = \"\u{1b}[2J\"").contains("line 1: "));
}

#[test]
fn an_unknown_key_is_told_with_the_nearest_and_all_others() {
    let message = error_of(&turn("arg = []"));
    assert!(message.contains("`arg` is unknown") && message.contains("did you mean args?"), "{message}");
    assert!(message.contains("resume_args, session"), "{message}");
}

#[test]
fn a_value_of_the_wrong_kind_is_told_with_the_right_one() {
    for (key, value, wanted) in [
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
        let message = error_of(&turn(&format!("{key} = {value}")));
        assert!(message.contains(&format!("`{key}` must be")) && message.contains(wanted), "{message}");
    }
    assert!(error_of("delivery = 1\nprogram = \"p\"").contains("`delivery` must be a text"));
    assert!(error_of("delivery = \"turn\"\nprogram = [\"p\"]").contains("`program` must be a text"));
}

#[test]
fn where_what_is_used_up_stands_is_another_thing_for_each_feed() {
    let of = |feed: &str, used: &str| {
        parse_profile("x", "x.toml", &format!("delivery = \"{feed}\"\nprogram = \"p\"\nusage = {used}\n"))
            .map_err(|error| error.message)
    };
    for (feed, used) in [
        ("turn", "{ cost = \"a.*\" }"),
        ("hook", "{ cost = \"a\", file_key = \"f\" }"),
        ("acp", "{ scope = \"session\" }"),
    ] {
        assert!(of(feed, used).is_ok(), "{feed} {used}");
    }
    assert!(of("hook", "{ cost = \"a\" }").unwrap_err().contains("must hold file_key = \"KEY\""));
    assert!(of("acp", "{ cost = \"a\" }").unwrap_err().contains("{ scope = \"session\" } with delivery acp"));
    assert!(of("acp", "{ scope = \"process\" }").unwrap_err().contains("with delivery acp"));
    assert!(of("pull", "{ cost = \"a\" }").unwrap_err().contains("`usage` is for delivery \"turn\""));
}

#[test]
fn program_and_feed_must_be_there() {
    assert!(error_of("delivery = \"turn\"").contains("`program` must be there"));
    assert!(error_of("delivery = \"turn\"\nprogram = \"\"").contains("`program` must be there"));
    assert!(
        error_of("program = \"p\"").contains("`delivery` must be there: native, hook, acp, turn or pull")
    );
    assert!(error_of("delivery = \"push\"\nprogram = \"p\"").contains("turn or pull, not \"push\""));
}

#[test]
fn every_feed_has_its_own_keys() {
    for (feed, key, feeds) in [
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
    ] {
        let message = error_of(&format!("delivery = \"{feed}\"\nprogram = \"p\"\n{key}"));
        assert!(message.contains(feeds), "{key}: {message}");
    }
}

#[test]
fn settings_are_checked() {
    for (value, expected) in [
        ("[{ file = \"x\" }]", "`settings` must be a list of tables"),
        ("[{ file = \"~/../x\", format = \"json\", merge = {} }]", "must name its file"),
        ("[{ file = \"/etc/x\", format = \"json\", merge = {} }]", "must name its file"),
        ("[{ file = \"x\", format = \"yaml\", merge = {} }]", "`settings` must be a list of tables"),
        ("[{ file = \"x\", format = \"json\", merge = { a = \"{cwd}\" } }]", "holds {cwd}"),
    ] {
        let message = error_of(&format!("delivery = \"turn\"\nprogram = \"p\"\nsettings = {value}"));
        assert!(message.contains(expected), "{value}: {message}");
    }
}

#[test]
fn what_a_feed_needs_has_its_usual_value() {
    let program = |text: &str| match parse_profile("x", "x.toml", text).unwrap().kind {
        ProfileKind::Program(program) => program,
        ProfileKind::Worker => panic!("it is a program"),
    };
    let hook = program("delivery = \"hook\"\nprogram = \"p\"\nmax_wait = \"550s\"");
    let DeliverySpec::Hook { hook: delivery, .. } = &hook.delivery else { panic!("{hook:?}") };
    let answer = &delivery.response_template;
    assert_eq!((answer["decision"].as_str(), answer["reason"].as_str()), (Some("block"), Some("{text}")));
    assert_eq!((delivery.max_wait_ms, &hook.instructions), (Some(550_000), &InstructionDelivery::Prepended));
    let filter = program("delivery = \"turn\"\nprogram = \"tr\"");
    assert_eq!(filter.instructions, InstructionDelivery::NotNeeded);
    assert_eq!(
        program(&turn("session = { output_key = \"id\" }\nresume_args = [\"{session}\"]")).instructions,
        InstructionDelivery::Prepended
    );
    let spelled = program("delivery = \"pull\"\nprogram = \"p\"\nargs = [\"{id_json}\", \"{teamctl_sh}\"]");
    assert_eq!(spelled.args, ["{id_json}", "{teamctl_sh}"]);
}

#[test]
fn a_blank_that_nothing_stands_for_is_told_with_the_nearest() {
    let message = error_of(&turn("args = [\"{promt}\"]"));
    assert!(message.contains("holds {promt}") && message.contains("did you mean {prompt}?"), "{message}");
    for rest in [
        "args = [\"{tool}\"]",
        "model = [\"{prompt}\"]",
        "allow = [\"{session}\"]",
        "modes = { plan = [\"{x}\"] }",
        "env = { A = \"{prompt}\" }",
    ] {
        assert!(error_of(&turn(rest)).contains("is no variable here"), "{rest}");
    }
    assert!(error_of("delivery = \"turn\"\nprogram = \"{prompt}\"").contains("`program` holds {prompt}"));
    assert!(error_of(&turn("args = [\"x{options}\"]")).contains("one of its own"));
    assert!(error_of(&turn("args = [\"a\\u0000\"]")).contains("zero byte"));
}

#[test]
fn a_session_is_named_where_it_is_known_and_nowhere_else() {
    let session = |session: &str, args: &str, resume: &str| {
        error_of(&turn(&format!("session = {session}\nargs = [\"{args}\"]\nresume_args = [\"{resume}\"]")))
    };
    assert!(session("\"none\"", "{session}", "x").contains("`args` holds {session}"));
    assert!(session("\"none\"", "x", "{session}").contains("`resume_args` holds {session}"));
    assert!(session("\"generated\"", "x", "{session}").contains("`args` must hold {session}"));
    assert!(session("\"generated\"", "{session}", "x").contains("`resume_args` must hold {session}"));
    assert!(session("{ output_key = \"id\" }", "{session}", "{session}").contains("before the first turn"));
    assert!(session("{ output_key = \"id\" }", "x", "y").contains("`resume_args` must hold {session}"));
}

#[test]
fn teamds_own_variables_are_not_for_a_profile() {
    assert!(error_of(&turn("env = { TEAMD_TOKEN = \"x\" }")).contains("cannot set TEAMD_TOKEN"));
    assert!(error_of(&turn("env = { \"A=B\" = \"x\" }")).contains("cannot set A=B"));
}
