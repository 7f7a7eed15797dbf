//! Tests with damaged files: they do not block other work, and no message is delivered twice.

use super::*;

#[test]
fn a_damaged_inbox_keeps_nobody_from_tasks_nor_a_task_list_from_mail() {
    let ground = TestTeam::new();
    let task = ground.task("one");
    let inbox = ground.team.inbox(&name("ann")).path();
    put(&inbox, "[{\"from\"");
    let (stage, over) = ground.run(worker("true"), nothing(), vec![ends(0)]);
    assert!(matches!(over, TurnLoopEnd::Terminated));
    assert_eq!(ground.team.tasks().get(&task.id).unwrap().status, TaskStatus::Completed);
    assert!(stage.said.iter().any(|line| line.contains("cannot parse")), "{:?}", stage.said);
}

#[test]
fn a_damaged_inbox_of_the_lead_keeps_nobody_from_the_next_item_and_is_told_once_it_is_mended() {
    let ground = TestTeam::new();
    ground.write("bob", "one");
    ground.write("bob", "two");
    let lead = ground.team.inbox(&AgentName::lead()).path();
    let (spoilt, mended) = (lead.clone(), lead.clone());
    let scenes =
        vec![after(move |_| put(&spoilt, "[{"), 0), ends(0), wake(|_| {}), wake(move |_| put(&mended, "[]"))];
    let (stage, over) = ground.run(agent(), nothing(), scenes);
    assert!(matches!(over, TurnLoopEnd::Terminated));
    assert_eq!(stage.begun.len(), 2);
    assert_eq!(ground.idles().len(), 2);
    let complaints = stage.said.iter().filter(|line| line.contains("cannot parse")).count();
    assert_eq!(complaints, 1, "{:?}", stage.said);
}

#[test]
fn a_prompt_whose_message_can_not_be_found_yet_is_not_given_twice() {
    let ground = TestTeam::new();
    let inbox = ground.team.inbox(&name("ann")).path();
    put(&inbox, "[{");
    let mended = inbox.clone();
    let mend = after(
        move |team| {
            put(&mended, "[]");
            send(team, "team-lead", "ann", "do it");
            send(team, "team-lead", "ann", "and that");
        },
        0,
    );
    let (stage, _) = ground.run(agent(), prompt("do it"), vec![mend, ends(0), ends(0)]);
    let texts = stage.texts();
    assert!(texts.len() == 2 && texts[0] == "do it" && texts[1].contains("and that"), "{texts:?}");
    assert_eq!(ground.unread(), 0);
}
