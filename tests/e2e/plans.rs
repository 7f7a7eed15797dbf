//! Plan mode: who begins in it reads, hands in a plan, and leaves it by the approval of the plan alone.

use crate::acp;
use crate::hooks::waits;
use harness::House;
use serde_json::{Value, json};

/// The plan request of ann with that number, from 1.
fn plan(house: &House, number: usize) -> Value {
    let all = || acp::said(house, "plan_approval_request");
    house.until(&format!("ann hands in plan {number}"), || all().get(number - 1).cloned())
}

fn id(request: &Value) -> &str {
    request["requestId"].as_str().unwrap()
}

#[test]
fn an_agent_over_the_protocol_plans_in_its_words_and_approval_alone_ends_that_mode() {
    for backend in acp::BACKENDS {
        let house = acp::house(&[]);
        acp::spawn(&house, &["--backend", backend, "--mode", "plan", "--prompt", "do talk"]);
        let first = plan(&house, 1);
        let text = first["planContent"].as_str().unwrap();
        assert!(text.starts_with("turn 1 in mode read: ") && !text.contains("hm"), "{text}");
        house.teamctl(["mode", "ann", "acceptEdits"]).fails(76);
        house.teamctl(["deny", id(&first), "--reason", "smaller"]).ok();
        let second = plan(&house, 2);
        assert_ne!(first["requestId"], second["requestId"]);
        assert!(second["planContent"].as_str().unwrap().starts_with("turn 2 in mode read: "), "{second}");
        house.teamctl(["approve", id(&second), "--mode", "acceptEdits"]).ok();
        acp::shows(&house, "turn 3 in mode code");
        acp::turn(&house, 3);
        assert_eq!(acp::said(&house, "plan_approval_request").len(), 2);
        acp::ends(house);
    }
}

#[test]
fn in_its_reading_mode_an_agent_over_the_protocol_neither_writes_through_us_nor_leaves_by_itself() {
    let house = acp::house(&[]);
    let work = house.path("out/work");
    std::fs::create_dir(&work).unwrap();
    acp::spawn(&house, &["--cwd", work.to_str().unwrap(), "--mode", "plan", "--prompt", "do leave step one"]);
    let first = plan(&house, 1);
    assert!(first["planContent"].as_str().unwrap().contains("step one"), "{first}");
    assert_eq!(acp::said(&house, "permission_request"), Vec::<Value>::new());
    for (number, order) in
        [(2, format!("do write {}", work.join("new").display())), (3, "do drift code".to_owned())]
    {
        let before = plan(&house, number - 1);
        house.teamctl(["deny", id(&before), "--reason", &format!("x\n{order}")]).ok();
        plan(&house, number);
    }
    acp::shows(&house, "cannot write: in this mode it only reads");
    house.until("it is set back", || {
        let modes = acp::heard(&house, "session/set_mode");
        modes.iter().map(|set| &set["params"]["modeId"]).eq(["read", "read"]).then_some(())
    });
    assert!(!work.join("new").exists());
    house.teamctl(["approve", id(&plan(&house, 3))]).ok();
    acp::turn(&house, 4);
    acp::send(&house, &format!("do write {}", work.join("new").display()));
    acp::turn(&house, 5);
    assert!(work.join("new").exists());
    acp::ends(house);
}

/// Its join, killed.
fn kill(house: &House) {
    let pane = house.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    let join = house.tmux(["display-message", "-p", "-t", &pane, "#{pane_pid}"]);
    house.kill_9(join.parse().unwrap());
}

#[test]
fn a_next_life_over_the_protocol_begins_in_the_mode_of_the_one_before() {
    let house = acp::house(&[]);
    let modes = || -> Vec<Value> {
        acp::heard(&house, "session/set_mode").iter().map(|set| set["params"]["modeId"].clone()).collect()
    };
    acp::spawn(&house, &["--restart", "on-failure", "--mode", "plan", "--prompt", "do talk"]);
    plan(&house, 1);
    house.until("it waits", || (house.member("ann")?["activity"] == "idle").then_some(()));
    kill(&house);
    let again = plan(&house, 2);
    assert_eq!(modes(), ["read", "read"]);
    house.teamctl(["approve", id(&again), "--mode", "acceptEdits"]).ok();
    acp::turn(&house, 2);
    house.until("it idles", || (house.member("ann")?["activity"] == "idle").then_some(()));
    kill(&house);
    house.until("it is there again", || (modes() == ["read", "read", "code", "code"]).then_some(()));
    house.until("it idles again", || (house.member("ann")?["activity"] == "idle").then_some(()));
    acp::ends(house);
}

/// A team, and a profile `planner` for the scripted program of that name, whose mode is an argument of its start.
fn house(program: &str, more: &str) -> House {
    let house = House::with_team();
    profile(&house, program, &house.agent(), more);
    house
}

fn profile(house: &House, kind: &str, program: &str, more: &str) {
    let out = house.path("out/ann").display().to_string();
    let feed = if kind == "typed" { "feed = \"keys\"\nready = [\">\"]" } else { "feed = \"hook\"" };
    let text = format!(
        "{feed}\nprogram = \"{program}\"\nargs = [\"{kind}\", \"{out}\", \"{{options}}\", \"{{first_prompt}}\"]\n\
         prompt = [\"{{prompt}}\"]\n{more}\n[modes]\nplan = [\"--mode=read\"]\ndefault = [\"--mode=ask\"]\n\
         acceptEdits = [\"--mode=edit\"]\n"
    );
    put(house, "planner", &text);
}

fn put(house: &House, name: &str, profile: &str) {
    house.put(&format!("home/.config/teamd/agents/{name}.toml"), profile);
}

/// The profile's line for a program that goes on with its session.
fn resumes(house: &House) -> String {
    let out = house.path("out/ann").display().to_string();
    format!(
        "resume = [\"hooked\", \"{out}\", \"--session={{session}}\", \"{{options}}\", \"{{first_prompt}}\"]"
    )
}

fn spawn(house: &House, more: &[&str]) {
    let words = ["spawn", "ann", "--agent", "planner", "--mode", "plan"];
    let ran = house.teamctl_with(&[&words, more].concat(), &[]);
    assert_eq!(ran.code, 0, "{ran:#?}\n{}", house.portrait());
}

/// Its turn on a text with that in it.
fn on(house: &House, part: &str) -> Value {
    let turn = |line: &str| serde_json::from_str::<Value>(line).ok();
    let is = |turn: &Value| turn["text"].as_str().is_some_and(|text| text.contains(part));
    house.until(&format!("a turn on {part}"), || house.read("out/ann").lines().filter_map(turn).find(is))
}

/// What its lead wrote.
fn all_is_read(house: &House) -> Option<()> {
    let inbox = house.inbox("survey", "ann").into_iter();
    inbox
        .filter(|message| message["from"] == "team-lead")
        .all(|message| message["read"] == true)
        .then_some(())
}

/// It carries its plan out in that mode: seen from outside.
fn works(house: &House, mode: &str) {
    house.until("it is a member in that mode", || {
        let config: Value = serde_json::from_str(&house.read("root/teams/survey/config.json")).ok()?;
        let ann = config["members"].as_array()?.iter().find(|member| member["name"] == "ann")?.clone();
        (ann["mode"] == mode && house.member("ann")?["phase"] == "running").then_some(())
    });
    assert_eq!(acp::said(house, "teammate_terminated"), Vec::<Value>::new());
}

#[test]
fn a_program_with_hooks_hands_in_its_last_words_and_is_started_again_by_an_approval_alone() {
    for backend in acp::BACKENDS {
        let house = House::with_team();
        profile(&house, "hooked", &house.agent(), &resumes(&house));
        spawn(&house, &["--backend", backend, "--prompt", "begin"]);
        let first = plan(&house, 1);
        assert_eq!(first["planContent"], "turn 1 is done");
        let begun = on(&house, "begin");
        assert_eq!(begun["options"], json!(["--mode=read"]));
        assert!(begun["text"].as_str().unwrap().contains("You are in plan mode"), "{begun}");
        house.teamctl(["mode", "ann", "acceptEdits"]).fails(76);
        house.json(["task", "create", "later"]);
        house.teamctl(["deny", id(&first), "--reason", "smaller"]).ok();
        let second = plan(&house, 2);
        assert_eq!(second["planContent"], "turn 2 is done");
        assert_eq!(on(&house, "smaller")["options"], json!(["--mode=read"]));
        let refused = house.teamctl(["approve", id(&second), "--mode", "dontAsk"]);
        assert!(refused.code == 76 && refused.stderr.contains("default, acceptEdits"), "{refused:#?}");
        house.teamctl(["approve", id(&second), "--mode", "acceptEdits"]).ok();
        let begun = on(&house, "Your plan is approved.");
        assert_eq!(
            (&begun["turn"], &begun["options"]),
            (&json!(1), &json!(["--session=s-1", "--mode=edit"]))
        );
        works(&house, "acceptEdits");
        on(&house, "later");
        house.until("all is read", || all_is_read(&house));
        assert_eq!(acp::said(&house, "plan_approval_request").len(), 2);
        assert!(!house.read("out/ann").contains("Your plan is approved. Carry it out;"), "it is told once");
        waits(&house, "ann");
        house.end();
    }
}

#[test]
fn a_plan_that_is_approved_at_once_leaves_no_lock_behind() {
    let house = House::start();
    house.put("policy.toml", "[policy]\nplans = 'auto'\n");
    house.teamctl(["create", "survey", "--policy", house.path("policy.toml").to_str().unwrap()]).ok();
    profile(&house, "hooked", &house.agent(), &resumes(&house));
    spawn(&house, &["--prompt", "begin"]);
    on(&house, "Your plan is approved.");
    waits(&house, "ann");
    // What was written before the life ended is whole, and the next one has been idle since.
    assert_eq!(
        (acp::said(&house, "plan_approval_request").len(), acp::said(&house, "idle_notification").len()),
        (1, 2)
    );
    house.end();
}

#[test]
fn who_has_no_session_to_go_on_with_gets_its_plan_as_a_message() {
    let house = house("hooked", "");
    spawn(&house, &["--prompt", "begin"]);
    house.teamctl(["approve", id(&plan(&house, 1))]).ok();
    assert_eq!(on(&house, "in an earlier life")["options"], json!(["--mode=ask"]));
    let turn = on(&house, "Your plan is approved.");
    assert!(turn["text"].as_str().unwrap().contains("turn 1 is done"), "{turn}");
    works(&house, "default");
    house.until("all is read", || all_is_read(&house));
    waits(&house, "ann");
    house.end();
}

#[test]
fn a_turn_that_said_nothing_hands_in_nothing_and_the_agent_can_do_so_itself() {
    let house = house("hooked", "");
    spawn(&house, &["--prompt", "mute"]);
    let told = acp::turn(&house, 1);
    assert_eq!(told["idleReason"], "failed");
    assert!(told["failureReason"].as_str().unwrap().contains("there is no plan"), "{told}");
    let ann = [("TEAMD_AGENT", "ann")];
    let plan_of = |text: &str| {
        house.script("out/plan", text);
        house.teamctl_with(&["plan", house.path("out/plan").to_str().unwrap()], &ann)
    };
    assert_eq!(plan_of(" \n").code, 64);
    assert_eq!(plan_of("1. read").code, 0);
    let again = plan_of("2. write");
    assert!(again.code == 76 && again.stderr.contains("has no answer yet"), "{again:#?}");
    assert_eq!(plan(&house, 1)["planContent"], "1. read");
    // A turn while it waits is no other plan.
    acp::send(&house, "what is it?");
    acp::turn(&house, 2);
    assert_eq!(acp::said(&house, "plan_approval_request").len(), 1);
    assert_eq!(house.teamctl(["plan", "/dev/null"]).code, 77, "a lead has none");
    house.teamctl(["approve", "plan_approval"]).ok();
    works(&house, "default");
    assert_eq!(plan_of("3. more").code, 76, "it plans no more");
    waits(&house, "ann");
    house.end();
}

#[test]
fn a_program_that_is_typed_to_hands_in_its_plan_itself() {
    let house = house("typed", "");
    let file = house.script("out/plan", "1. read\n2. write\n");
    spawn(&house, &["--prompt", &format!("hand-in:{}", file.display())]);
    let first = plan(&house, 1);
    assert_eq!(first["planContent"], "1. read\n2. write\n");
    assert!(on(&house, "hand-in:")["text"].as_str().unwrap().contains("teamctl plan FILE"));
    house.teamctl(["deny", id(&first), "--reason", &format!("hand-in:{} again", file.display())]).ok();
    house.teamctl(["approve", id(&plan(&house, 2)), "--mode", "acceptEdits"]).ok();
    let turn = on(&house, "Your plan is approved.");
    assert_eq!(turn["options"], json!(["--mode=edit"]));
    assert!(turn["text"].as_str().unwrap().contains("2. write"), "{turn}");
    works(&house, "acceptEdits");
    house.until("all is read", || all_is_read(&house));
    waits(&house, "ann");
    house.end();
}

#[test]
fn a_program_that_looks_by_itself_begins_again_in_the_mode_of_the_approval() {
    let house = House::with_team();
    let out = house.path("out/ann").display().to_string();
    let text = format!(
        "feed = \"pull\"\nprogram = \"sh\"\nargs = [\"-c\", \"echo $1 >>{out}; exec sleep 1000\", \"x\", \"{{options}}\"]\n\
         [modes]\nplan = [\"read\"]\ndefault = [\"ask\"]\nacceptEdits = [\"edit\"]\n"
    );
    put(&house, "planner", &text);
    spawn(&house, &[]);
    let ann = [("TEAMD_AGENT", "ann")];
    let asked = house.teamctl_with(&["prompt"], &ann);
    assert!(asked.stdout.contains("teamctl plan"), "{asked:#?}");
    house.script("out/plan", "1. look");
    house.teamctl_with(&["plan", house.path("out/plan").to_str().unwrap()], &ann).ok();
    let first = plan(&house, 1);
    house.teamctl(["approve", id(&first), "--mode", "bypassPermissions"]).fails(76);
    house.teamctl(["mode", "team-lead", "bypassPermissions"]).ok();
    house.teamctl(["approve", id(&first)]).ok();
    house.until("it begins again", || (house.read("out/ann") == "read\nask\n").then_some(()));
    let mut unread = house.inbox("survey", "ann").into_iter().filter(|message| message["read"] != true);
    assert!(unread.next_back().unwrap()["text"].as_str().unwrap().contains("plan_approval_response"));
    house.end();
}

/// A program that does not heed TERM, so that its end takes the grace.
fn stubborn() -> House {
    let house = House::with_team();
    let script = format!("#!/bin/sh\ntrap '' TERM\nexec {} \"$@\"\n", house.agent());
    let program = house.script("out/stubborn", &script).display().to_string();
    profile(&house, "hooked", &program, &resumes(&house));
    spawn(&house, &["--prompt", "begin"]);
    house
}

fn is_stopping(house: &House) {
    house.until("its life ends", || (house.member("ann")?["phase"] == "stopping").then_some(()));
}

#[test]
fn an_approval_is_carried_out_whenever_the_daemon_dies() {
    let before = |house: &House| {
        let first = plan(house, 1);
        house.kill_9(house.daemon());
        house.teamctl(["approve", id(&first), "--mode", "acceptEdits"]).ok();
    };
    let between = |house: &House| {
        house.teamctl(["approve", id(&plan(house, 1)), "--mode", "acceptEdits"]).ok();
        is_stopping(house);
        house.kill_9(house.daemon());
    };
    for dies in [&before as &dyn Fn(&House), &between] {
        let house = stubborn();
        dies(&house);
        house.start_daemon();
        assert_eq!(on(&house, "Your plan is approved.")["options"], json!(["--session=s-1", "--mode=edit"]));
        works(&house, "acceptEdits");
        let begun = house.read("out/ann").matches("Your plan is approved.").count();
        assert_eq!((begun, acp::said(&house, "plan_approval_request").len()), (1, 1));
        waits(&house, "ann");
        house.end();
    }
}

#[test]
fn who_is_killed_on_the_way_to_its_next_life_stays_gone() {
    let house = stubborn();
    house.teamctl(["approve", id(&plan(&house, 1))]).ok();
    is_stopping(&house);
    house.teamctl(["kill", "ann"]).ok();
    house.until("it is gone", || house.member("ann").is_none_or(|ann| ann["phase"] == "ended").then_some(()));
    assert!(!house.read("out/ann").contains("started again"));
    house.end();
}

#[test]
fn a_life_that_fails_before_the_approval_is_followed_by_one_that_plans() {
    let house = House::with_team();
    profile(&house, "hooked", &house.agent(), &resumes(&house));
    spawn(&house, &["--restart", "on-failure", "--prompt", "begin"]);
    plan(&house, 1);
    waits(&house, "ann");
    let pid = house.member("ann").unwrap()["pid"].as_u64().unwrap();
    house.kill_9(u32::try_from(pid).unwrap());
    assert_eq!(on(&house, "You were started again")["options"], json!(["--session=s-1", "--mode=read"]));
    house.teamctl(["approve", id(&plan(&house, 2))]).ok();
    assert_eq!(on(&house, "Your plan is approved.")["options"], json!(["--session=s-1", "--mode=ask"]));
    waits(&house, "ann");
    house.end();
}

#[test]
fn who_has_no_reading_mode_is_refused_in_plan_mode() {
    let house = House::with_team();
    put(&house, "open", "feed = \"pull\"\nprogram = \"sh\"\nmodes = { default = [] }\n");
    for (words, told) in [
        (&["--agent", "worker"][..], "makes no plans"),
        (&["--agent", "shell"], "no plan in `modes`"),
        (&["--agent", "open"], "no plan in `modes`"),
        (&["--", "sleep", "1000"], "nothing says how it only reads"),
    ] {
        let ran = house.teamctl_with(&[&["spawn", "ann", "--mode", "plan"], words].concat(), &[]);
        assert!(ran.code == 64 && ran.stderr.contains(told), "{ran:#?}");
    }
    assert_eq!(house.member("ann"), None);
    house.end();
}
