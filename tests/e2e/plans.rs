//! Plan mode: who begins in it reads, hands in a plan, and leaves it by the approval of the plan alone.

use crate::acp;
use harness::House;
use serde_json::Value;

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
