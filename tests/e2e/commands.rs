//! What the verbs promise beside the great stories: profiles, policies, what status tells.

use harness::TestEnv;
use std::io::Write;

/// An environment with a team and one profile of the user's own, `own`, whose program leaves word in `out/said`.
fn env_with_profile() -> TestEnv {
    let env = TestEnv::with_team();
    let said = env.path("out/said").display().to_string();
    let script = format!(
        "#!/bin/sh\nprintf '%s|' \"$@\" >{said}.new\necho \"$WHERE $GONE\" >>{said}.new\nmv {said}.new {said}\nexec sleep 3600\n"
    );
    env.write_script("out/own", &script);
    env.write_profile(
        "own",
        "delivery = \"pull\"\nprogram = \"{cwd}/own\"\nargs = [\"{id}\", \"{options}\", \"{prompt}\"]\n\
         model = [\"-m\", \"{model}\"]\nallow = [\"+{tool}\"]\ndeny = [\"-{tools}\"]\n\
         env = { WHERE = \"{team}\" }\nremove_env = [\"GONE\"]\n[modes]\nacceptEdits = [\"--edits\"]\n",
    );
    env
}

#[test]
fn help_contains_the_callers_options() {
    let env = TestEnv::with_team();
    env.teamctl(["create", "other"]).expect_success();
    env.teamctl([
        "spawn",
        "ann",
        "-t",
        "survey",
        "--backend",
        "in-process",
        "--",
        "sh",
        "-c",
        "echo hello; sleep 3600",
    ])
    .expect_success();
    let nowhere = env.path("second root").display().to_string();
    let hint = |words: &[&str]| {
        let ran = env.teamctl_with(&[words, &["--json"]].concat(), &[]);
        let (told, error) = (ran.stderr.clone(), ran.json()["error"].clone());
        let hint = error["help"].as_str().unwrap().to_owned();
        assert!(told.contains(&hint), "{told}");
        hint
    };
    // The daemon does not know what was typed, and nor do those that read the files.
    assert_eq!(hint(&["capture", "ann", "-t", "survey"]), "its output: teamctl logs ann -t survey");
    env.teamctl(["logs", "ann", "-t", "survey"]).expect_success();
    let gone = "a member that has printed nothing has none; see: teamctl status -t survey";
    assert_eq!(hint(&["logs", "bob", "-t", "survey"]), gone);
    let none = format!("make it with: teamctl create --root '{nowhere}' none");
    assert_eq!(hint(&["--root", &nowhere, "-t", "none", "task", "list"]), none);
    let down = env.teamctl(["status", "--root", &nowhere]);
    assert!(
        down.stdout.contains(&format!("Make one with: teamctl create --root '{nowhere}' NAME")),
        "{down:#?}"
    );
    assert!(down.stderr.contains(&format!("start it with: teamctl up --root '{nowhere}'")), "{down:#?}");
    env.shut_down();
}

fn write_config(env: &TestEnv, name: &str, text: &str) {
    env.write_file(&format!("home/.config/teamd/{name}"), text);
}

fn output_path(env: &TestEnv) -> String {
    env.path("out").display().to_string()
}

fn program_output(env: &TestEnv) -> String {
    env.wait_until("the program leaves word", || Some(env.read("out/said")).filter(|said| !said.is_empty()))
}

#[test]
fn user_profile_starts_without_a_shell() {
    let mut env = env_with_profile();
    env.variables.push(("GONE".to_owned(), "still here".to_owned()));
    let prompt = "$(touch evil) {cwd}\n`x`";
    let spawned = env.json([
        "spawn",
        "ann",
        "--profile",
        "own",
        "--cwd",
        &output_path(&env),
        "--prompt",
        prompt,
        "--model",
        "m 1",
        "--mode",
        "acceptEdits",
        "--allow",
        "Edit",
        "--allow",
        "Bash(git log:*)",
        "--deny",
        "x",
        "--deny",
        "y",
    ]);
    assert_eq!(spawned["model"], "m 1");
    assert_eq!(
        program_output(&env),
        format!("ann@survey|-m|m 1|--edits|+Edit|+Bash(git log:*)|-x,y|{prompt}|survey \n")
    );
    assert_eq!(env.member("ann").unwrap()["delivery"], "pull");
    env.shut_down();
}

#[test]
fn default_profile_is_used() {
    let env = env_with_profile();
    let said_no = env.teamctl(["spawn", "ann", "--env", "PATH=/nonexistent"]).expect_failure(64);
    assert!(said_no.contains("opencode, own, qwen"), "{said_no}");
    write_config(&env, "config.toml", "default_profile = \"own\"\n");
    env.teamctl(["spawn", "ann", "--cwd", &output_path(&env), "--env", "WHERE=there"]).expect_success();
    assert_eq!(program_output(&env), "ann@survey||there \n");
    env.shut_down();
}

#[test]
fn invalid_profile_starts_nothing() {
    let env = env_with_profile();
    env.write_profile("polled", "delivery = \"poll\"\nprogram = \"p\"\n");
    env.write_profile("broken", "delivery = \"turn\"\nprogramm = \"p\"\n");
    env.write_profile("gone", "delivery = \"turn\"\nprogram = \"no-such-program\"\n");
    for (arguments, code, told) in [
        (&["--profile", "owm"][..], 64, "did you mean own?"),
        (&["--profile", "polled"], 78, "`delivery` must be"),
        (&["--profile", "own", "--mode", "plan"], 64, "its profile has no"),
        (&["--profile", "broken"], 78, "profiles/broken.toml: `programm` is unknown"),
        (&["--profile", "gone"], 72, "no-such-program"),
        (&["--profile", "own", "--mode", "auto"], 64, "it has: acceptEdits"),
        (&["--profile", "worker", "--allow", "Edit"], 64, "--allow"),
        (&["--deny", "Edit", "--", "true"], 64, "--deny"),
        (&["--mode", "acceptEdits", "--", "true"], 64, "--mode"),
        (&["--agent-type", "Explore", "--", "true"], 64, "nothing keeps it from writing"),
        (&["--agent-type", "Plan", "--profile", "worker"], 64, "nothing keeps it from writing"),
        (&["--backend", "screen", "--", "true"], 64, "in-process"),
        (&["--restart", "always", "--", "true"], 64, "on-failure"),
    ] {
        let ran = env.teamctl_with(&[&["spawn", "ann"], arguments].concat(), &[]);
        assert_eq!(ran.code, code, "{ran:#?}");
        assert!(ran.stderr.contains(told), "{told}: {ran:#?}");
    }
    assert_eq!(env.member("ann"), None);
    env.shut_down();
}

#[test]
fn policy_allows_commands_of_teammates() {
    let env = TestEnv::with_team();
    let state = std::fs::read_dir(env.path("state/teamd")).unwrap().next().unwrap().unwrap().path();
    let policy = state.join("policy-survey.json");
    std::fs::File::create(policy).unwrap().write_all(br#"{"task_commands":"any"}"#).unwrap();
    let script = "teamctl task create more --metadata '{\"command\": \"true\"}'; echo $? >out/code";
    env.teamctl(["spawn", "ann", "--cwd", &env.path("").display().to_string(), "--", "sh", "-c", script])
        .expect_success();
    let code = env.wait_until("it tried", || Some(env.read("out/code")).filter(|code| code.ends_with('\n')));
    assert_eq!(code, "0\n");
    env.shut_down();
}

#[test]
fn teammate_cannot_interrupt_and_unknown_team_suggests_the_nearest() {
    let env = TestEnv::with_team();
    let script = "teamctl interrupt bob; echo $? >out/code";
    env.teamctl(["spawn", "ann", "--cwd", &env.path("").display().to_string(), "--", "sh", "-c", script])
        .expect_success();
    let code = env.wait_until("it tried", || Some(env.read("out/code")).filter(|code| code.ends_with('\n')));
    assert_eq!(code, "77\n");
    let said = env.teamctl(["interrupt", "bob", "-t", "survye"]).expect_failure(67);
    assert!(said.contains("survey"), "{said}");
    env.shut_down();
}

#[test]
fn status_shows_abandoned_and_failed_tasks() {
    let env = TestEnv::with_team();
    for name in ["ann", "bob"] {
        env.teamctl(["spawn", name, "--", "sleep", "3600"]).expect_success();
    }
    let mut ids = Vec::new();
    for (subject, owner) in [("hers", "ann"), ("his", "bob"), ("failed", "bob")] {
        let task = env.json(["task", "create", subject, "--owner", owner]);
        let id = task["task"]["id"].as_str().unwrap().to_owned();
        env.teamctl(["task", "update", &id, "--status", "in_progress"]).expect_success();
        ids.push(id);
    }
    env.teamctl(["task", "update", &ids[2], "--metadata", r#"{"failure": "exit 1\nlast words"}"#])
        .expect_success();
    let team = env.json(["status"])["teams"][0].clone();
    assert_eq!(
        (&team["abandoned_tasks"], team["past_members"].is_array()),
        (&serde_json::json!([]), true),
        "{team:#}"
    );
    env.teamctl(["kill", "ann"]).expect_success();
    let team = env.json(["status"])["teams"][0].clone();
    assert_eq!(
        team["abandoned_tasks"],
        serde_json::json!([{"id": ids[0], "subject": "hers", "owner": "ann"}])
    );
    assert_eq!(team["failed_tasks"][0]["failure"], "exit 1\nlast words");
    let shown = env.teamctl(["status"]).expect_success();
    assert!(
        shown.contains(&format!("task {0} was left by ann: teamctl task release {0}", ids[0])),
        "{shown}"
    );
    assert!(shown.contains(&format!("task {} failed (exit 1)\n", ids[2])), "{shown}");
    assert!(shown.lines().skip(1).all(|line| line.chars().count() <= 80), "{shown}");
    let one = env.teamctl(["status", "bob"]).expect_success();
    assert!(one.contains("  pid ") && one.contains("backend tmux") && !one.contains("left by"), "{one}");
    env.teamctl(["create", "other"]).expect_success();
    let release = format!("teamctl task -t survey release {}", ids[0]);
    let shown = env.teamctl(["status", "-t", "survey"]).expect_success();
    assert!(shown.contains(&format!("task {} was left by ann: {release}\n", ids[0])), "{shown}");
    assert!(env.command("sh").args(["-c", &release]).status().unwrap().success(), "{release}");
    assert_eq!(env.json(["status", "-t", "survey"])["teams"][0]["abandoned_tasks"], serde_json::json!([]));
    env.shut_down();
}

#[test]
fn instructions_differ_for_lead_and_teammate() {
    let env = TestEnv::new();
    assert!(env.teamctl(["instructions"]).expect_success().contains("You can lead a team of agents"));
    assert!(!env.root().join("teams").exists() && !env.root().join("tasks").exists());
    env.start_daemon();
    for team in ["one", "two"] {
        env.teamctl(["create", team]).expect_success();
    }
    let text = env.teamctl(["instructions", "--for", "teammate"]).expect_success();
    assert!(
        text.starts_with("You are `a-teammate`, a teammate on a team; its lead is `team-lead`."),
        "{text}"
    );
    let ran = env.teamctl(["lead", "My Team"]);
    assert!(ran.stderr.contains("the team is called my-team"), "{ran:#?}");
    env.teamctl(["lead", "--release"]).expect_success();
    env.shut_down();
}
