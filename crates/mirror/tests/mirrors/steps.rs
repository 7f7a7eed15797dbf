//! Single steps, each with what the other end then has.

use crate::end::{name, task_id, team_name};
use crate::pair::{Pair, teammate};
use mirror::{FileChange, MirrorNotice, TaskCheck};
use protocol::annex_link::{HomeBudget, ItemPayload};
use protocol::event_log_line::{Event, EventKind};
use protocol::task::TaskStatus;
use protocol::token_and_cost_usage::Usage;
use store::{NewTask, TaskUpdate};

fn inbox(owner: &str) -> FileChange {
    FileChange::Inbox(name(owner))
}

/// A pair with the member ann at the annex, and a task that both ends have.
fn pair_with_task() -> Pair {
    let mut pair = Pair::new();
    pair.join("ann");
    let task = NewTask::new("count", &name("team-lead"));
    pair.home.team().tasks().create(task).unwrap();
    pair.home.changed(&FileChange::Task(task_id(1)));
    pair.deliver_all();
    pair
}

#[test]
fn mirror_has_the_members_and_the_home_lists_those_of_the_annex() {
    let mut pair = Pair::new();
    assert_eq!(pair.annex.notices, [MirrorNotice::TeamMade { team: team_name() }]);
    assert!(pair.annex.team().is_mirror() && !pair.home.team().is_mirror());
    let hosts = |end: &crate::end::End| {
        let members = end.team().config().unwrap().members;
        members.into_iter().map(|member| (member.name.to_string(), member.host)).collect::<Vec<_>>()
    };
    let host = |name: &str, host: Option<&str>| (name.to_owned(), host.map(str::to_owned));
    assert_eq!(hosts(&pair.annex), [host("team-lead", Some("home")), host("bob", Some("home"))]);
    pair.join("ann");
    assert_eq!(hosts(&pair.home), [host("team-lead", None), host("bob", None), host("ann", Some("devbox"))]);
    pair.annex.team().set_member_fields(&name("ann"), &[("isActive", false.into())]).unwrap();
    pair.annex.changed(&FileChange::Config);
    pair.deliver_all();
    assert_eq!(pair.home.team().member("ann").unwrap().is_active, Some(false));
    pair.annex.team().remove_member(&name("ann")).unwrap();
    pair.annex.changed(&FileChange::Config);
    pair.deliver_all();
    assert!(pair.home.team().member("ann").is_err());
}

/// A registration marks messages to an earlier member of the name as read.
#[test]
fn home_learns_what_was_read_before_the_member_joined() {
    let mut pair = Pair::new();
    pair.annex.send("ann", "amy", "for an earlier amy", 1);
    pair.annex.changed(&inbox("amy"));
    pair.deliver_all();
    let unread = |end: &crate::end::End| end.team().inbox(&name("amy")).count_unread().unwrap();
    assert_eq!(unread(&pair.home), 1);
    pair.annex.team().inbox(&name("amy")).mark_all_read().unwrap();
    pair.annex.changed(&inbox("amy"));
    pair.join("amy");
    assert_eq!((unread(&pair.annex), unread(&pair.home)), (0, 0));
    assert_eq!(pair.home.texts("amy"), ["for an earlier amy"]);
}

#[test]
fn messages_go_both_ways_once_and_reads_come_back() {
    let mut pair = Pair::new();
    pair.home.send("bob", "ann", "before she came", 1);
    pair.home.changed(&inbox("ann"));
    pair.join("ann");
    pair.home.send("bob", "ann", "hello", 2);
    pair.home.changed(&inbox("ann"));
    pair.annex.send("ann", "bob", "hi", 3);
    pair.annex.changed(&inbox("bob"));
    pair.deliver_all();
    pair.settle();
    assert_eq!(pair.annex.texts("ann"), ["before she came", "hello"]);
    assert_eq!((pair.home.texts("bob"), pair.home.texts("ann").len()), (vec!["hi".to_owned()], 2));
    assert_eq!(pair.home.team().inbox(&name("ann")).count_unread().unwrap(), 2);
    let first = pair.annex.team().inbox(&name("ann")).read_unread().unwrap().remove(0);
    pair.annex.team().inbox(&name("ann")).mark_read(&[first]).unwrap();
    pair.annex.changed(&inbox("ann"));
    pair.deliver_all();
    let unread = pair.home.team().inbox(&name("ann")).read_unread().unwrap();
    assert_eq!(unread.len(), 1);
    assert_eq!(unread[0].message.as_ref().unwrap().text, "hello");
}

#[test]
fn claims_of_both_ends_give_one_owner_and_the_other_is_told() {
    let mut pair = pair_with_task();
    pair.annex.team().tasks().claim(Some(&task_id(1)), &name("ann")).unwrap();
    pair.home.team().tasks().claim(Some(&task_id(1)), &name("bob")).unwrap();
    pair.home.changed(&FileChange::Task(task_id(1)));
    let (check, output) = pair.annex.mirror.check_task(&team_name(), task_id(1)).unwrap();
    assert_eq!((check, output.items.len()), (TaskCheck::Undecided, 1));
    pair.annex.add_output(output);
    pair.deliver_all();
    assert_eq!(pair.annex.task(1).owner, Some(name("bob")));
    assert_eq!(pair.home.task(1).owner, Some(name("bob")));
    let refused =
        |notice: &MirrorNotice| matches!(notice, MirrorNotice::TaskChangeAnswered { error: Some(_), .. });
    assert!(pair.annex.notices.iter().any(refused));
    let told = pair.annex.texts("ann").pop().unwrap();
    assert_eq!(told, "cannot change task 1: its field owner was changed at the home first");
    assert_eq!(pair.annex.mirror.check_task(&team_name(), task_id(1)).unwrap().0, TaskCheck::Decided);
}

#[test]
fn changes_of_different_fields_are_kept_while_there_is_no_contact() {
    let mut pair = pair_with_task();
    pair.annex.team().tasks().claim(Some(&task_id(1)), &name("ann")).unwrap();
    pair.annex.changed(&FileChange::Task(task_id(1)));
    pair.annex.team().tasks().complete(&task_id(1), &name("ann")).unwrap();
    let subject = TaskUpdate { subject: Some("count again".to_owned()), ..TaskUpdate::default() };
    pair.home.team().tasks().update(&task_id(1), subject, &name("team-lead")).unwrap();
    pair.home.changed(&FileChange::Task(task_id(1)));
    // The home's change arrives before the home has the changes of the annex.
    pair.home.accept_all();
    pair.deliver_to_annex();
    assert_eq!(pair.annex.task(1).status, TaskStatus::Completed);
    pair.annex.changed(&FileChange::Task(task_id(1)));
    pair.deliver_all();
    pair.settle();
    for end in [&pair.home, &pair.annex] {
        let task = end.task(1);
        assert_eq!((task.subject.as_str(), &task.status), ("count again", &TaskStatus::Completed));
    }
}

#[test]
fn task_with_a_taken_id_gets_another_and_nothing_is_lost() {
    let mut pair = Pair::new();
    pair.join("ann");
    let create = |end: &crate::end::End, subject: &str| {
        end.team().tasks().create(NewTask::new(subject, &name("team-lead"))).unwrap();
    };
    create(&pair.home, "of the home");
    create(&pair.annex, "of the annex");
    pair.annex.changed(&FileChange::Task(task_id(1)));
    pair.settle();
    for end in [&pair.home, &pair.annex] {
        assert_eq!((end.task(1).subject, end.task(2).subject), ("of the home".into(), "of the annex".into()));
    }
    let told = pair.annex.texts("ann").pop().unwrap();
    assert_eq!(told, "the new task 1 is task 2 now, because its id was taken at the home");
    pair.home.team().tasks().delete(&task_id(1)).unwrap();
    pair.home.changed(&FileChange::Task(task_id(1)));
    pair.deliver_all();
    assert!(pair.annex.team().tasks().get(&task_id(1)).is_err());
}

/// The watcher reports the new task late. Meanwhile the home's task of the same id arrives, and the process
/// is killed.
#[test]
fn new_task_that_was_not_sent_is_not_replaced_by_one_of_the_home() {
    let mut pair = Pair::new();
    pair.join("ann");
    let create = |end: &crate::end::End, subject: &str| {
        end.team().tasks().create(NewTask::new(subject, &name("team-lead"))).unwrap();
    };
    create(&pair.annex, "of the annex");
    pair.annex.team().tasks().claim(Some(&task_id(1)), &name("ann")).unwrap();
    create(&pair.home, "of the home");
    pair.home.changed(&FileChange::Task(task_id(1)));
    pair.home.accept_all();
    pair.deliver_to_annex();
    assert_eq!(pair.annex.task(1).subject, "of the home");
    pair.annex.restart();
    pair.settle();
    for end in [&pair.home, &pair.annex] {
        assert_eq!((end.task(1).subject, end.task(2).subject), ("of the home".into(), "of the annex".into()));
        assert_eq!(end.task(1).owner, None, "ann has claimed the other task");
    }
    assert_eq!(pair.home.team().tasks().list().unwrap().len(), 2);
}

#[test]
fn another_team_of_the_same_name_is_left_alone() {
    let mut pair = Pair::new();
    let dir = tempfile::tempdir().unwrap();
    let mut other = crate::end::End::new(dir.path().to_owned(), mirror::MirrorSide::Annex);
    let config = pair.home.team().config().unwrap();
    other.root.create_team(&config).unwrap();
    pair.home.compare_all();
    let before = std::fs::read(other.team().config_path()).unwrap();
    // The other host first asks for the whole config.
    for _ in 0..2 {
        pair.home.accept_all();
        while let Some(item) = pair.home.spool.pop_front() {
            other.apply(&item.payload);
        }
        other.accept_all();
        assert_eq!(std::fs::read(other.team().config_path()).unwrap(), before);
        while let Some(item) = other.spool.pop_front() {
            pair.home.apply(&item.payload);
        }
    }
    assert!(pair.home.mirror.teams().is_empty());
    let [MirrorNotice::TeamRefused { error, .. }] = &pair.home.notices[..] else { panic!() };
    assert_eq!(error.message, "cannot use this host for survey: it has another team of that name");
}

#[test]
fn end_of_a_team_reaches_the_annex_after_a_crash() {
    let mut pair = Pair::new();
    drop(pair.home.mirror.remove_team(&team_name()).unwrap());
    pair.home.restart();
    pair.deliver_all();
    let ended = MirrorNotice::TeamEnded { team: team_name() };
    assert_eq!(pair.annex.notices.last(), Some(&ended));
    pair.annex.notices.clear();
    pair.annex.restart();
    assert_eq!(pair.annex.notices, [ended]);
    drop(pair.annex.mirror.remove_team(&team_name()).unwrap());
    pair.annex.restart();
    assert_eq!(pair.annex.notices.len(), 1);
    pair.home.restart();
    assert!(pair.home.mirror.teams().is_empty());
    pair.home.accept_all();
    assert!(pair.home.spool.is_empty());
}

#[test]
#[allow(clippy::disallowed_methods, reason = "this is the foreign writer")]
fn damaged_inbox_stops_no_other_file() {
    let mut pair = pair_with_task();
    std::fs::write(pair.annex.team().inbox(&name("bob")).path(), "{").unwrap();
    pair.annex.send("ann", "team-lead", "done", 5);
    pair.annex.compare_all();
    pair.deliver_all();
    assert_eq!(pair.home.texts("team-lead"), ["done"]);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "this is the foreign writer")]
fn another_team_in_place_of_the_mirror_deletes_no_task_at_the_home() {
    let mut pair = pair_with_task();
    let mut config = pair.annex.team().config().unwrap();
    config.created_at += 1;
    let (team, tasks) = (pair.annex.team().path(), pair.annex.team().tasks().path());
    std::fs::remove_dir_all(team).unwrap();
    std::fs::remove_dir_all(tasks).unwrap();
    pair.annex.root.create_team(&config).unwrap();
    pair.annex.compare_all();
    pair.deliver_all();
    assert_eq!(pair.home.task(1).subject, "count");
    assert!(pair.annex.mirror.teams().is_empty() && !pair.annex.team().is_mirror());
}

#[test]
fn read_message_beside_two_equal_ones_is_reported() {
    let mut pair = Pair::new();
    pair.join("ann");
    for text in ["twice", "once", "twice"] {
        pair.home.send("bob", "ann", text, if text == "once" { 2 } else { 1 });
    }
    // The home sends two equal messages as one.
    pair.home.changed(&inbox("ann"));
    pair.deliver_all();
    pair.annex.send("amy", "ann", "equal", 3);
    pair.annex.send("amy", "ann", "equal", 3);
    pair.annex.changed(&inbox("ann"));
    pair.deliver_all();
    let unread = |end: &crate::end::End| end.team().inbox(&name("ann")).read_unread().unwrap();
    let once = unread(&pair.annex).into_iter().find(|entry| entry.message.as_ref().unwrap().text == "once");
    pair.annex.team().inbox(&name("ann")).mark_read(&[once.unwrap()]).unwrap();
    pair.annex.changed(&inbox("ann"));
    pair.deliver_all();
    let left = unread(&pair.home);
    assert!(left.iter().all(|entry| entry.message.as_ref().unwrap().text != "once"), "{left:?}");
}

#[test]
fn annex_keeps_the_budget_of_the_home_across_restarts_until_the_team_ends() {
    let mut pair = Pair::new();
    let budget = |pair: &Pair| pair.annex.mirror.team_states().remove(&team_name()).map(|team| team.budget);
    assert_eq!(budget(&pair), Some(HomeBudget::default()));
    let exhausted = HomeBudget {
        exhausted_reason: Some("its time is used up".to_owned()),
        member_limit: Some(Usage { tokens: 7, microdollars: u64::MAX }),
    };
    pair.home.run_and_send(|mirror| mirror.send_budget(&team_name(), &exhausted));
    pair.annex.notices.clear();
    pair.deliver_all();
    let changed = MirrorNotice::BudgetChanged { team: team_name(), budget: exhausted.clone() };
    assert_eq!(pair.annex.notices, [changed]);
    pair.annex.restart();
    assert_eq!(budget(&pair), Some(exhausted.clone()));
    pair.home.run_and_send(|mirror| mirror.send_budget(&team_name(), &HomeBudget::default()));
    pair.deliver_all();
    assert_eq!(budget(&pair), Some(HomeBudget::default()));
    pair.home.run_and_send(|mirror| mirror.send_budget(&team_name(), &exhausted));
    pair.deliver_all();
    pair.annex.run_and_send(|mirror| mirror.remove_team(&team_name()));
    assert_eq!(budget(&pair), None);
    // An item that comes after the end of the team does nothing.
    pair.home.run_and_send(|mirror| mirror.send_budget(&team_name(), &exhausted));
    pair.deliver_all();
    assert_eq!(budget(&pair), None);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "this is the foreign writer")]
fn lost_mirror_that_is_made_again_has_the_budget() {
    let mut pair = Pair::new();
    let budget = HomeBudget { exhausted_reason: Some("used up".to_owned()), ..HomeBudget::default() };
    pair.home.run_and_send(|mirror| mirror.send_budget(&team_name(), &budget));
    pair.deliver_all();
    let (team, tasks) = (pair.annex.team().path(), pair.annex.team().tasks().path());
    std::fs::remove_dir_all(team).unwrap();
    std::fs::remove_dir_all(tasks).unwrap();
    pair.annex.run_and_send(|mirror| mirror.remove_team(&team_name()));
    pair.home.compare_all();
    pair.deliver_all();
    assert_eq!(pair.annex.mirror.team_states()[&team_name()].budget, budget);
}

#[test]
fn new_link_makes_its_mirror_only_after_the_one_of_the_earlier_link_is_gone() {
    let mut pair = Pair::new();
    let directory = tempfile::tempdir().unwrap();
    let state = store::StateDir::open(&directory.path().join("second-link")).unwrap();
    let link = (mirror::MirrorSide::Annex, "home.devbox.2".to_owned());
    let mut second = mirror::Mirror::open(link, pair.annex.root.clone(), state, (&[], 0)).unwrap();
    let wanted = ItemPayload::TeamWanted { team: team_name() };
    pair.home.run_and_send(|mirror| mirror.apply(&wanted));
    pair.home.accept_all();
    let team = pair.home.spool.front().unwrap().payload.clone();
    assert!(matches!(team, ItemPayload::Team { .. }));
    assert!(second.apply(&team).unwrap_err().message.contains("its last mirror is being deleted"));
    let output = pair.annex.mirror.end_teams().unwrap();
    assert!(matches!(output.notices[..], [MirrorNotice::TeamEnded { .. }]));
    pair.annex.team().delete().unwrap();
    pair.annex.mirror.remove_team(&team_name()).unwrap();
    assert!(matches!(second.apply(&team).unwrap().notices[..], [MirrorNotice::TeamMade { .. }]));
    assert!(pair.annex.team().is_mirror());
}

/// The annex has sent this before it learned of the end of the team.
#[test]
fn late_items_of_a_deleted_team_do_not_count_for_a_new_team_of_its_name() {
    let mut pair = pair_with_task();
    pair.annex.send("ann", "team-lead", "of the first team", 5);
    pair.annex.team().tasks().claim(Some(&task_id(1)), &name("ann")).unwrap();
    pair.annex.team().add_member(&teammate("amy")).unwrap();
    pair.annex.compare_all();
    let event = Event::for_member(&team_name(), &name("ann"), EventKind::MemberInterrupted);
    let events = [Event { number: Some(1), ..event }];
    pair.annex.run_and_send(|mirror| mirror.send_events(&team_name(), &events));
    pair.annex.accept_all();
    replace_team(&mut pair);
    while pair.deliver_to_home() {}
    check_new_team(&pair);
    // The link of the annex still keeps the items of the first team.
    pair.home.accept_all();
    pair.deliver_to_annex();
    pair.annex.team().delete().unwrap();
    pair.annex.run_and_send(|mirror| mirror.remove_team(&team_name()));
    pair.deliver_all();
    pair.annex.restart();
    pair.settle();
    check_new_team(&pair);
    assert_eq!(pair.annex.task(1).owner, None);
    pair.join("amy");
    assert_eq!(pair.home.team().member("amy").unwrap().host.as_deref(), Some("devbox"));
}

/// A program has replaced the team while the daemon of the home did not run.
#[test]
fn mirror_of_a_team_that_was_replaced_ends_before_the_new_one_is_made() {
    let mut pair = pair_with_task();
    let mut config = pair.home.team().config().unwrap();
    pair.home.stop();
    pair.home.team().delete().unwrap();
    config.created_at += 1;
    pair.home.root.create_team(&config).unwrap();
    pair.home.restart();
    pair.home.accept_all();
    let team = pair.home.spool.front().unwrap().payload.clone();
    assert!(matches!(team, ItemPayload::Team { .. }), "{team:?}");
    pair.annex.mirror.apply(&team).unwrap_err();
    assert_eq!(pair.annex.mirror.take_notices(), [MirrorNotice::TeamEnded { team: team_name() }]);
    pair.annex.team().delete().unwrap();
    pair.annex.run_and_send(|mirror| mirror.remove_team(&team_name()));
    pair.deliver_all();
    assert_eq!(pair.annex.team().config().unwrap().created_at, config.created_at);
    assert!(pair.annex.team().tasks().list().unwrap().is_empty());
}

/// At the home: deletes the team, and creates another with the same name and a task.
fn replace_team(pair: &mut Pair) {
    let mut config = pair.home.team().config().unwrap();
    pair.home.team().delete().unwrap();
    pair.home.run_and_send(|mirror| mirror.remove_team(&team_name()));
    config.created_at += 1;
    config.members.retain(|member| member.host.is_none());
    pair.home.root.create_team(&config).unwrap();
    pair.home.team().tasks().create(NewTask::new("count", &name("team-lead"))).unwrap();
    pair.home.notices.clear();
    pair.home.add_team();
}

fn check_new_team(pair: &Pair) {
    assert!(pair.home.texts("team-lead").is_empty());
    assert_eq!(pair.home.task(1).owner, None);
    let members = pair.home.team().config().unwrap().members;
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["team-lead", "bob"]);
    let received = |notice: &MirrorNotice| matches!(notice, MirrorNotice::EventsReceived { .. });
    assert!(!pair.home.notices.iter().any(received), "{:?}", pair.home.notices);
}
