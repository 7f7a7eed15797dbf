//! Budgets of teams with members on two hosts.

use super::connect_words;
use crate::why::assert_documented;
use harness::{TestEnv, TwoHosts};
use serde_json::{Value, json};

fn set_policy(home: &TestEnv, keys: &str) {
    let path = home.write_file("out/policy.toml", format!("[policy]\npermissions = \"lead\"\n{keys}\n"));
    home.teamctl(["policy", &path]).expect_success();
}

fn budget(env: &TestEnv) -> Value {
    env.json(["status"])["teams"][0]["budget"].clone()
}

/// How many events of this kind the log has, and how many of these happened on other hosts.
fn count_events(env: &TestEnv, kind: &str) -> (usize, usize) {
    let events: Vec<Value> = env.events().into_iter().filter(|event| event["event"] == kind).collect();
    (events.len(), events.iter().filter(|event| event["on_host"].is_string()).count())
}

fn wait_for_turns(home: &TestEnv, turns: u64) {
    home.wait_until(&format!("{turns} turns are counted"), || (budget(home)["turns"] == turns).then_some(()));
}

fn wait_until_ended(env: &TestEnv, name: &str) {
    env.wait_until(&format!("{name} has ended"), || env.member(name).is_none().then_some(()));
}

fn create_task(home: &TestEnv, owner: &str, command: &str) {
    home.teamctl(["task", "create", owner, "--owner", owner, "--command", command]).expect_success();
}

fn restart_daemon(env: &TestEnv) {
    env.kill_process(env.daemon_pid());
    env.start_daemon();
}

fn shut_down(hosts: TwoHosts) {
    hosts.home.shut_down();
    hosts.annex.shut_down();
}

#[test]
fn turns_of_both_hosts_use_up_the_budget_until_it_is_raised() {
    let hosts = TwoHosts::new();
    let (home, annex) = (&hosts.home, &hosts.annex);
    hosts.check(|| {
        set_policy(home, "max_turns = 3");
        home.teamctl(["spawn", "ann", "--host", "devbox", "--profile", "worker"]).expect_success();
        home.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
        create_task(home, "bob", "true");
        create_task(home, "ann", "true");
        wait_for_turns(home, 2);
        // The roster is saved before the event of the same turn is appended.
        home.wait_until("both turns are logged", || {
            (count_events(home, "member_active").0 == 2).then_some(())
        });
        restart_daemon(home);
        hosts.wait_for_exchange();
        assert_eq!(budget(home)["turns"], 2, "the turns are counted once");
        let gate = annex.create_gate("out/go");
        create_task(home, "ann", &format!("read line <{gate}"));
        wait_for_turns(home, 3);
        // The turn that runs is not ended.
        annex.wait_until("ann has the shutdown request", || {
            let inbox = annex.inbox("survey", "ann");
            let texts = inbox.iter().filter_map(|message| message["text"].as_str());
            texts.into_iter().any(|text| text.contains("shutdown_request")).then_some(())
        });
        annex.open_gate("out/go");
        [home, annex].into_iter().for_each(|env| wait_until_ended(env, "ann"));
        wait_until_ended(home, "bob");
        for subject in ["later", "last"] {
            home.teamctl(["task", "create", subject, "--command", "true"]).expect_success();
        }
        let status = home.teamctl(["status"]).expect_success();
        assert!(status.contains("stopped: its budget of 3 turns is used up, 3 of 3 turns"), "{status}");
        let status = annex.teamctl(["status", "-t", "survey"]).expect_success();
        assert!(status.contains("stopped: its budget of 3 turns is used up"), "{status}");
        assert_documented("budget_exhausted", &annex.json(["why", "ann"])["causes"][0]);
        assert_eq!([home, annex].map(|env| count_events(env, "budget_exhausted")), [(1, 0); 2]);
        home.teamctl(["spawn", "eve", "--host", "devbox", "--profile", "worker"]).expect_failure(76);
        let error = annex.teamctl(["up", "--resume", "-t", "survey"]).expect_failure(76);
        assert!(error.contains("give it more at its home"), "{error}");

        [home, annex].into_iter().for_each(restart_daemon);
        hosts.wait_for_exchange();
        assert_eq!([home, annex].map(|env| count_events(env, "budget_exhausted")), [(1, 0); 2]);
        set_policy(home, "max_turns = 100");
        annex.wait_until("the annex knows that the budget is raised", || {
            budget(annex)["exhausted_reason"].is_null().then_some(())
        });
        for env in [home, annex] {
            env.teamctl(["up", "--resume", "-t", "survey"]).expect_success();
        }
        home.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
        wait_for_turns(home, 5);
        home.wait_until("all turns are logged", || {
            (count_events(home, "member_active").0 >= 5).then_some(())
        });
        hosts.wait_for_exchange();
        assert_eq!(budget(home)["turns"], 5);
        assert_eq!(count_events(home, "member_active").0, 5);
    });
    shut_down(hosts);
}

#[test]
fn budget_that_is_used_up_without_contact_applies_after_contact() {
    let hosts = TwoHosts::new();
    let (home, annex) = (&hosts.home, &hosts.annex);
    annex.write_profile("reads", "delivery = 'turn'\nprogram = 'cat'\n");
    hosts.check(|| {
        set_policy(home, "max_turns = 2");
        home.teamctl(["spawn", "ann", "--host", "devbox", "--profile", "reads"]).expect_success();
        annex.wait_until("ann is idle", || (count_events(annex, "member_idle").0 == 1).then_some(()));
        hosts.cut();
        for turn in 1..=3 {
            annex.teamctl(["send", "ann", "hello", "-t", "survey"]).expect_success();
            annex.wait_until("a turn has ended", || {
                (count_events(annex, "member_idle").0 == turn + 1).then_some(())
            });
        }
        // Both daemons forget what only their memory has.
        [home, annex].into_iter().for_each(restart_daemon);
        assert!(annex.member("ann").is_some());
        hosts.heal();
        wait_for_turns(home, 3);
        [home, annex].into_iter().for_each(|env| wait_until_ended(env, "ann"));

        set_policy(home, "max_turns = 4");
        home.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
        annex.wait_until("the annex knows that the budget is raised", || {
            budget(annex)["exhausted_reason"].is_null().then_some(())
        });
        annex.teamctl(["up", "--resume", "-t", "survey"]).expect_success();
        hosts.cut();
        create_task(home, "bob", "true");
        wait_for_turns(home, 4);
        wait_until_ended(home, "bob");
        assert!(annex.member("ann").is_some(), "there is no contact");
        restart_daemon(home);
        hosts.heal();
        [home, annex].into_iter().for_each(|env| wait_until_ended(env, "ann"));
        // Without contact, a new daemon of the annex knows it too.
        hosts.cut();
        restart_daemon(annex);
        annex.teamctl(["up", "--resume", "-t", "survey"]).expect_failure(76);
        hosts.heal();
        hosts.wait_for_contact();
    });
    shut_down(hosts);
}

/// A profile whose program reports the total usage of its session at each turn. `used` is a file.
fn counter_profile(used: &str) -> String {
    let count = |before: &str| {
        format!(
            "n=$(({before} + 400)); echo $n >{used}; echo '{{\"usage\":{{\"in\":'$n',\"out\":100}},\"cost\":0.5}}'"
        )
    };
    format!(
        "delivery = 'turn'\nprogram = 'sh'\n\
         args = ['-c', \"\"\"{}; echo '{{\"id\":\"s-1\"}}'\"\"\", 'sh', '{{prompt}}']\n\
         resume_args = ['-c', \"\"\"{}\"\"\", 'sh', '{{prompt}}', '{{session}}']\n\
         session = {{ output_key = 'id' }}\n\
         usage = {{ tokens = ['usage.in', 'usage.out'], cost = 'cost', scope = 'session' }}\n",
        count("0"),
        count(&format!("$(cat {used})")),
    )
}

#[test]
fn usage_on_another_host_counts_and_a_share_is_enforced_there() {
    let hosts = TwoHosts::new();
    let (home, annex) = (&hosts.home, &hosts.annex);
    annex.write_profile("counter", &counter_profile(&annex.path("out/used").display().to_string()));
    std::fs::create_dir_all(annex.path("out")).unwrap();
    hosts.check(|| {
        set_policy(home, "max_tokens = 1_700\nmember_share = 50");
        home.teamctl(["spawn", "ann", "--host", "devbox", "--profile", "counter", "--prompt", "go"])
            .expect_success();
        let wait_for_tokens = |tokens: u64| {
            home.wait_until(&format!("{tokens} tokens are counted"), || {
                (budget(home)["usage"]["tokens"] == tokens).then_some(())
            });
        };
        wait_for_tokens(500);
        restart_daemon(home);
        hosts.wait_for_exchange();
        assert_eq!(budget(home)["usage"]["tokens"], 500, "the usage is counted once");
        home.teamctl(["send", "ann", "more"]).expect_success();
        // Ann has used 900 tokens, of which 850 count.
        wait_for_tokens(850);
        [home, annex].into_iter().for_each(|env| wait_until_ended(env, "ann"));
        let event = home.wait_until("the home has the event", || {
            home.events().into_iter().find(|event| event["event"] == "budget_exhausted")
        });
        assert_eq!((&event["member"], &event["on_host"]), (&json!("ann"), &json!("devbox")));
        let report = home.teamctl(["report"]).expect_success();
        assert!(report.contains("ann: ") && report.contains("900"), "{report}");
        assert!(budget(home)["exhausted_reason"].is_null());
    });
    shut_down(hosts);
}

#[test]
fn run_over_two_hosts_stops_at_the_budget_and_continues_when_raised() {
    let (home, annex) = (TestEnv::with_team(), TestEnv::with_daemon());
    let log = home.path("out/log").display().to_string();
    let write_run_file = |max_turns: u32| {
        let task = |key: &str, owner: &str, blocked_by: &str| {
            format!(
                "[[task]]\nkey = '{key}'\nsubject = '{key}'\nowner = '{owner}'\n\
                 command = 'echo {key} >>{log}'\n{blocked_by}"
            )
        };
        let text = format!(
            "name = 'far'\nprofile = 'worker'\n[policy]\nmax_turns = {max_turns}\n\
             [host.devbox]\nconnect = {}\n[[member]]\nname = 'ann'\nhost = 'devbox'\n\
             [[member]]\nname = 'bob'\n{}{}{}",
            json!(connect_words(&annex)),
            task("one", "ann", ""),
            task("two", "bob", "blocked_by = ['one']\n"),
            task("three", "ann", "blocked_by = ['two']\n"),
        );
        home.write_file("run.toml", text);
    };
    write_run_file(2);
    let error = home.teamctl(["run", "run.toml"]).expect_failure(1);
    assert!(error.contains("its budget of 2 turns is used up"), "{error}");
    annex.wait_until("ann has ended", || annex.member("ann").is_none().then_some(()));
    write_run_file(20);
    home.teamctl(["run", "run.toml", "--resume", "--keep-team"]).expect_success();
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "one\ntwo\nthree\n");
    home.shut_down();
    annex.shut_down();
}
