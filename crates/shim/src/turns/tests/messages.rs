//! Tests of delivered messages, and of when they are marked read.

use super::*;
use protocol::control::Activity;

#[test]
fn the_prompt_is_the_first_turn_and_each_message_another() {
    let ground = TestTeam::new();
    ground.write("team-lead", "do it");
    ground.write("bob", "hi <ann>");
    ground.write("user", "stop that");
    let (stage, over) = ground.run(agent(), prompt("do it"), vec![ends(0), ends(0), ends(0)]);
    assert!(matches!(over, TurnLoopEnd::Terminated));
    let texts = stage.texts();
    let letter = "<teammate-message teammate_id=\"bob\">\nhi &lt;ann&gt;\n</teammate-message>";
    assert_eq!(texts, ["do it", "stop that", letter]);
    assert_eq!(ground.unread(), 0);
    assert_eq!(ground.idles().len(), 3, "one for each turn");
    let idle: Vec<u64> =
        stage.told.iter().filter(|now| now.activity == Activity::Idle).map(|now| now.turn_number).collect();
    assert_eq!(idle, [3], "no flicker while there is more to do");
    let active: Vec<Option<u32>> =
        stage.told.iter().filter(|now| now.activity == Activity::Active).map(|now| now.pid).collect();
    assert_eq!(active, [Some(77); 3]);
}

#[test]
fn a_message_is_read_once_its_turn_runs_and_not_before() {
    let ground = TestTeam::new();
    ground.write("bob", "hi");
    let (_, over) = ground.run(agent(), nothing(), vec![after(move |team| assert_eq!(unread(team), 0), 0)]);
    assert!(matches!(over, TurnLoopEnd::Terminated));
    ground.write("bob", "again");
    let stage = FakeExecutor { missing: true, ..ground.stage(Vec::new()) };
    let (_, over) = ground.run_on(stage, agent(), nothing());
    assert!(matches!(over, TurnLoopEnd::NotStarted(why) if why.contains("no such program")));
    assert_eq!(ground.unread(), 1, "nobody was given it");
}

#[test]
fn letters_to_peers_are_told_and_those_to_the_lead_are_not() {
    let ground = TestTeam::new();
    ground.write("bob", "early");
    let scene = after(
        |team| {
            send(team, "ann", "bob", "the gate\nis open");
            send(team, "ann", "team-lead", r#"{"type":"teammate_terminated","message":"x"}"#);
            send(team, "cat", "bob", "not hers");
        },
        0,
    );
    ground.run(agent(), nothing(), vec![scene]);
    assert_eq!(ground.idles()[0].summary.as_deref(), Some("[to bob] the gate"));
}
