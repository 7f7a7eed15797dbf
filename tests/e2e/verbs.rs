//! What the verbs promise beside the great stories: profiles, policies, what status tells.

use harness::House;
use std::io::Write;

/// A house with a team and one profile of the user's own, `own`, whose program leaves word in `out/said`.
fn house() -> House {
    let house = House::with_team();
    let said = house.path("out/said").display().to_string();
    let script = format!(
        "#!/bin/sh\nprintf '%s|' \"$@\" >{said}.new\necho \"$WHERE $GONE\" >>{said}.new\nmv {said}.new {said}\nexec sleep 3600\n"
    );
    house.script("out/own", &script);
    house.profile(
        "own",
        "feed = \"pull\"\nprogram = \"{cwd}/own\"\nargs = [\"{id}\", \"{options}\", \"{prompt}\"]\n\
         model = [\"-m\", \"{model}\"]\nallow = [\"+{tool}\"]\ndeny = [\"-{tools}\"]\n\
         env = { WHERE = \"{team}\" }\nunset = [\"GONE\"]\n[modes]\nacceptEdits = [\"--edits\"]\n",
    );
    house
}

#[test]
fn a_hint_is_typed_as_it_is_printed_wherever_it_comes_from() {
    let house = House::with_team();
    house.teamctl(["create", "other"]).ok();
    house
        .teamctl([
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
        .ok();
    let nowhere = house.path("second root").display().to_string();
    let hint = |words: &[&str]| {
        let ran = house.teamctl_with(&[words, &["--json"]].concat(), &[]);
        let (told, error) = (ran.stderr.clone(), ran.json()["error"].clone());
        let hint = error["hint"].as_str().unwrap().to_owned();
        assert!(told.contains(&hint), "{told}");
        hint
    };
    // The daemon does not know what was typed, and nor do those that read the files.
    assert_eq!(hint(&["capture", "ann", "-t", "survey"]), "its output: teamctl logs ann -t survey");
    house.teamctl(["logs", "ann", "-t", "survey"]).ok();
    let gone = "who has printed nothing has none; whether it lives: teamctl status -t survey";
    assert_eq!(hint(&["logs", "bob", "-t", "survey"]), gone);
    let none = format!("make it with: teamctl create --root '{nowhere}' none");
    assert_eq!(hint(&["--root", &nowhere, "-t", "none", "task", "list"]), none);
    let down = house.teamctl(["status", "--root", &nowhere]);
    assert!(
        down.stdout.contains(&format!("Make one with: teamctl create --root '{nowhere}' NAME")),
        "{down:#?}"
    );
    assert!(down.stderr.contains(&format!("start it with: teamctl up --root '{nowhere}'")), "{down:#?}");
    house.end();
}

fn configure(house: &House, name: &str, text: &str) {
    house.put(&format!("home/.config/teamd/{name}"), text);
}

fn out(house: &House) -> String {
    house.path("out").display().to_string()
}

fn said(house: &House) -> String {
    house.until("the program leaves word", || Some(house.read("out/said")).filter(|said| !said.is_empty()))
}

#[test]
fn a_profile_of_the_users_own_starts_its_program_and_no_shell_reads_its_arguments() {
    let mut house = house();
    house.variables.push(("GONE".to_owned(), "still here".to_owned()));
    let prompt = "$(touch evil) {cwd}\n`x`";
    let spawned = house.json([
        "spawn",
        "ann",
        "--agent",
        "own",
        "--cwd",
        &out(&house),
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
        said(&house),
        format!("ann@survey|-m|m 1|--edits|+Edit|+Bash(git log:*)|-x,y|{prompt}|survey \n")
    );
    assert_eq!(house.member("ann").unwrap()["feed"], "pull");
    house.end();
}

#[test]
fn where_nobody_says_which_agent_the_configured_one_is_taken() {
    let house = house();
    let said_no = house.teamctl(["spawn", "ann", "--env", "PATH=/nonexistent"]).fails(64);
    assert!(said_no.contains("opencode, own, qwen"), "{said_no}");
    configure(&house, "config.toml", "agent = \"own\"\n");
    house.teamctl(["spawn", "ann", "--cwd", &out(&house), "--env", "WHERE=there"]).ok();
    assert_eq!(said(&house), "ann@survey||there \n");
    house.end();
}

#[test]
fn what_is_wrong_with_a_profile_is_told_and_nothing_starts() {
    let house = house();
    house.profile("polled", "feed = \"poll\"\nprogram = \"p\"\n");
    house.profile("broken", "feed = \"turn\"\nprogramm = \"p\"\n");
    house.profile("gone", "feed = \"turn\"\nprogram = \"no-such-program\"\n");
    for (arguments, code, told) in [
        (&["--agent", "owm"][..], 64, "did you mean own?"),
        (&["--agent", "polled"], 78, "`feed` must be"),
        (&["--agent", "own", "--mode", "plan"], 64, "its profile has no"),
        (&["--agent", "broken"], 78, "agents/broken.toml: `programm` is unknown"),
        (&["--agent", "gone"], 72, "no-such-program"),
        (&["--agent", "own", "--mode", "auto"], 64, "it has: acceptEdits"),
        (&["--agent", "worker", "--allow", "Edit"], 64, "--allow"),
        (&["--deny", "Edit", "--", "true"], 64, "--deny"),
        (&["--mode", "acceptEdits", "--", "true"], 64, "--mode"),
        (&["--type", "Explore", "--", "true"], 64, "nothing keeps it from writing"),
        (&["--type", "Plan", "--agent", "worker"], 64, "nothing keeps it from writing"),
        (&["--backend", "iterm2", "--", "true"], 72, "not on this system"),
        (&["--backend", "screen", "--", "true"], 64, "in-process"),
        (&["--restart", "always", "--", "true"], 64, "on-failure"),
    ] {
        let ran = house.teamctl_with(&[&["spawn", "ann"], arguments].concat(), &[]);
        assert_eq!(ran.code, code, "{ran:#?}");
        assert!(ran.stderr.contains(told), "{told}: {ran:#?}");
    }
    assert_eq!(house.member("ann"), None);
    house.end();
}

#[test]
fn a_teammate_may_put_a_command_into_a_task_where_the_policy_says_so() {
    let house = House::with_team();
    let state = std::fs::read_dir(house.path("state/teamd")).unwrap().next().unwrap().unwrap().path();
    let policy = state.join("policy-survey.json");
    std::fs::File::create(policy).unwrap().write_all(br#"{"commands":"any"}"#).unwrap();
    let script = "teamctl task create more --metadata '{\"command\": \"true\"}'; echo $? >out/code";
    house
        .teamctl(["spawn", "ann", "--cwd", &house.path("").display().to_string(), "--", "sh", "-c", script])
        .ok();
    let code = house.until("it tried", || Some(house.read("out/code")).filter(|code| code.ends_with('\n')));
    assert_eq!(code, "0\n");
    house.end();
}

#[test]
fn a_teammate_may_not_interrupt_and_a_team_that_is_not_there_is_told_with_the_nearest() {
    let house = House::with_team();
    let script = "teamctl interrupt bob; echo $? >out/code";
    house
        .teamctl(["spawn", "ann", "--cwd", &house.path("").display().to_string(), "--", "sh", "-c", script])
        .ok();
    let code = house.until("it tried", || Some(house.read("out/code")).filter(|code| code.ends_with('\n')));
    assert_eq!(code, "77\n");
    let said = house.teamctl(["interrupt", "bob", "-t", "survye"]).fails(67);
    assert!(said.contains("survey"), "{said}");
    house.end();
}

#[test]
fn status_tells_what_was_left_and_what_has_failed() {
    let house = House::with_team();
    for name in ["ann", "bob"] {
        house.teamctl(["spawn", name, "--", "sleep", "3600"]).ok();
    }
    let mut ids = Vec::new();
    for (subject, owner) in [("hers", "ann"), ("his", "bob"), ("failed", "bob")] {
        let task = house.json(["task", "create", subject, "--owner", owner]);
        let id = task["task"]["id"].as_str().unwrap().to_owned();
        house.teamctl(["task", "update", &id, "--status", "in_progress"]).ok();
        ids.push(id);
    }
    house.teamctl(["task", "update", &ids[2], "--metadata", r#"{"failure": "exit 1\nlast words"}"#]).ok();
    let team = house.json(["status"])["teams"][0].clone();
    assert_eq!((&team["left"], team["past"].is_array()), (&serde_json::json!([]), true), "{team:#}");
    house.teamctl(["kill", "ann"]).ok();
    let team = house.json(["status"])["teams"][0].clone();
    assert_eq!(team["left"], serde_json::json!([{"id": ids[0], "subject": "hers", "owner": "ann"}]));
    assert_eq!(team["failed"][0]["failure"], "exit 1\nlast words");
    let shown = house.teamctl(["status"]).ok();
    assert!(
        shown.contains(&format!("task {0} was left by ann: teamctl task release {0}", ids[0])),
        "{shown}"
    );
    assert!(shown.contains(&format!("task {} failed (exit 1)\n", ids[2])), "{shown}");
    assert!(shown.lines().skip(1).all(|line| line.chars().count() <= 80), "{shown}");
    let one = house.teamctl(["status", "bob"]).ok();
    assert!(one.contains("  pid ") && one.contains("backend tmux") && !one.contains("left by"), "{one}");
    house.teamctl(["create", "other"]).ok();
    let release = format!("teamctl task -t survey release {}", ids[0]);
    let shown = house.teamctl(["status", "-t", "survey"]).ok();
    assert!(shown.contains(&format!("task {} was left by ann: {release}\n", ids[0])), "{shown}");
    assert!(house.command("sh").args(["-c", &release]).status().unwrap().success(), "{release}");
    assert_eq!(house.json(["status", "-t", "survey"])["teams"][0]["left"], serde_json::json!([]));
    house.end();
}

#[test]
fn the_prompt_of_a_teammate_is_never_a_leads_and_makes_nothing_and_a_lead_hears_what_its_team_is_called() {
    let house = House::empty();
    assert!(house.teamctl(["prompt"]).ok().contains("You can lead a team of agents"));
    assert!(!house.root().join("teams").exists() && !house.root().join("tasks").exists());
    house.start_daemon();
    for team in ["one", "two"] {
        house.teamctl(["create", team]).ok();
    }
    let text = house.teamctl(["prompt", "--for", "teammate"]).ok();
    assert!(
        text.starts_with("You are `a-teammate`, a teammate on a team; its lead is `team-lead`."),
        "{text}"
    );
    let ran = house.teamctl(["lead", "My Team"]);
    assert!(ran.stderr.contains("the team is called my-team"), "{ran:#?}");
    house.teamctl(["lead", "--release"]).ok();
    house.end();
}
