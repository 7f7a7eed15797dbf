//! The home of a team moves to the annex, and back.

use crate::end::{End, name, task_id, team_name};
use crate::faults::{Fault, run_again_with_faults};
use crate::pair::Pair;
use mirror::{FileChange, Mirror, MirrorNotice, MirrorSide};
use protocol::annex_link::ItemPayload;
use protocol::hosts_file_entry::HostName;
use protocol::policy::Policy;
use protocol::task::Task;
use protocol::team_home::{HomeUsage, LocalWork, MoveStep, TeamHome};
use std::collections::BTreeSet;
use store::{NewTask, StateDir};

const BARRIER: u64 = 7;

/// A pair with ann at the annex. Each end has tasks and messages that the other one lacks. Task 1
/// was deleted, and both have created a task 3.
fn pair_with_work() -> Pair {
    let mut pair = Pair::new();
    pair.join("ann");
    for subject in ["deleted", "count"] {
        pair.home.team().tasks().create(NewTask::new(subject, &name("team-lead"))).unwrap();
    }
    pair.home.team().tasks().delete(&task_id(1)).unwrap();
    pair.home.team().set_policy(&policy()).unwrap();
    pair.home.send("user", "team-lead", "read", 1);
    pair.home.team().inbox(&name("team-lead")).mark_all_read().unwrap();
    pair.annex.send("ann", "team-lead", "old", 2);
    pair.settle();
    pair.annex.team().tasks().claim(Some(&task_id(2)), &name("ann")).unwrap();
    for (end, subject) in [(&pair.home, "at home"), (&pair.annex, "at annex")] {
        end.team().tasks().create(NewTask::new(subject, &name("team-lead"))).unwrap();
    }
    pair.home.send("user", "team-lead", "unread", 3);
    pair.home.send("team-lead", "ann", "to ann", 4);
    pair.annex.send("ann", "team-lead", "new", 5);
    pair
}

fn policy() -> Policy {
    Policy { max_turns: Some(5), ..Policy::default() }
}

fn usage() -> HomeUsage {
    HomeUsage { turns: 7, ..HomeUsage::default() }
}

fn begin(pair: &mut Pair) {
    pair.home.run_and_send(|mirror| mirror.begin_move(&team_name(), BARRIER));
}

fn home_of(end: &End) -> TeamHome {
    end.root.team_home(&team_name()).unwrap()
}

fn step(end: &End) -> Option<MoveStep> {
    home_of(end).moving().map(|moving| moving.step)
}

/// The daemon at the home offers the home once the annex has answered the barrier.
fn offer_if_due(home: &mut End) {
    let reached = MirrorNotice::BarrierReached { number: BARRIER };
    if step(home) == Some(MoveStep::Exchanging) && home.notices.contains(&reached) {
        home.run_and_send(|mirror| mirror.offer_home(&team_name(), usage()));
    }
}

fn move_to_annex(pair: &mut Pair) {
    begin(pair);
    pair.deliver_all();
    offer_if_due(&mut pair.home);
    pair.deliver_all();
}

fn is_home(end: &End) -> bool {
    !end.team().is_mirror() && home_of(end).check(&team_name()).is_ok()
}

fn subjects(end: &End) -> BTreeSet<String> {
    let tasks: Vec<Task> = end.team().tasks().list().unwrap();
    assert!(tasks.iter().all(|task| task.id != task_id(1)), "the id of a deleted task is used again");
    let subjects: BTreeSet<String> = tasks.iter().map(|task| task.subject.clone()).collect();
    assert_eq!(subjects.len(), tasks.len(), "{tasks:?}");
    subjects
}

fn sorted_texts(end: &End, owner: &str) -> Vec<String> {
    let mut texts = end.texts(owner);
    texts.sort();
    texts
}

/// The messages in ann's inbox, without those of teamd about tasks.
fn texts_of_lead_to_ann(end: &End) -> Vec<String> {
    let is_about_task = |text: &String| text.contains("task");
    end.texts("ann").into_iter().filter(|text| !is_about_task(text)).collect()
}

fn check_complete(end: &End) {
    assert_eq!(subjects(end), ["at annex", "at home", "count"].map(str::to_owned).into());
    assert_eq!(end.task(2).owner, Some(name("ann")));
    assert_eq!(end.team().tasks().last_id().unwrap(), 4);
    assert_eq!(sorted_texts(end, "team-lead"), ["new", "old", "read", "unread"]);
    let unread = end.team().inbox(&name("team-lead")).read_unread().unwrap();
    assert!(unread.iter().all(|entry| entry.message.as_ref().unwrap().text != "read"));
    assert_eq!(end.team().policy().unwrap(), policy());
}

#[test]
fn annex_is_the_home_with_everything_and_the_old_home_changes_nothing() {
    let mut pair = pair_with_work();
    begin(&mut pair);
    let error = pair.home.team().check_home_is_here().unwrap_err();
    assert!(
        error.message.contains("cannot change survey here: its home moves to devbox"),
        "{}",
        error.message
    );
    pair.deliver_all();
    offer_if_due(&mut pair.home);
    pair.deliver_all();
    assert!(is_home(&pair.annex));
    assert_eq!(home_of(&pair.annex), TeamHome::with_epoch(2));
    check_complete(&pair.annex);
    let handed_over = pair.annex.notices.iter().find_map(|notice| match notice {
        MirrorNotice::HomeTaken { handover, .. } => Some(handover.as_ref().unwrap().usage),
        _ => None,
    });
    assert_eq!(handed_over, Some(usage()));
    assert_eq!(texts_of_lead_to_ann(&pair.annex), ["to ann"]);
    let moved = home_of(&pair.home).moved().unwrap();
    assert_eq!((moved.host.as_str(), moved.epoch, moved.created_at), ("devbox", 2, 1));
    assert_eq!(moved.work, LocalWork::HandedOver);
    // The next daemon of the new home learns of the usage again: a crash may have lost it.
    pair.annex.restart();
    assert_eq!(pair.annex.mirror.usage_of_old_homes(), [(team_name(), (2, usage()))].into());
    assert!(pair.home.team().check_home_is_here().is_err());
    // What the old home changes all the same does not arrive.
    pair.home.send("user", "ann", "late", 9);
    pair.settle();
    check_complete(&pair.annex);
    assert_eq!(texts_of_lead_to_ann(&pair.annex), ["to ann"]);
}

/// A person has typed `home take` at the annex before the offer arrived there.
#[test]
fn home_that_was_taken_before_the_offer_arrived_lacks_the_work_of_the_old_one() {
    let mut pair = pair_with_work();
    begin(&mut pair);
    pair.deliver_all();
    offer_if_due(&mut pair.home);
    pair.annex.run_and_send(|mirror| mirror.take_team(&team_name()));
    pair.deliver_all();
    assert!(is_home(&pair.annex));
    let moved = home_of(&pair.home).moved().unwrap();
    assert_eq!((moved.epoch, moved.work), (2, LocalWork::OnlyHere));
    assert!(pair.annex.mirror.usage_of_old_homes().is_empty());
}

#[test]
fn task_of_the_annex_is_kept_if_the_old_home_never_answers() {
    let mut pair = pair_with_work();
    begin(&mut pair);
    pair.deliver_all();
    // The annex creates task 5 when the home has sent its own task 5 already, and the offer.
    pair.home.team().tasks().create(NewTask::new("home 5", &name("team-lead"))).unwrap();
    pair.home.team().tasks().create(NewTask::new("deleted 6", &name("team-lead"))).unwrap();
    pair.home.team().tasks().delete(&task_id(6)).unwrap();
    pair.annex.team().tasks().create(NewTask::new("annex 5", &name("ann"))).unwrap();
    offer_if_due(&mut pair.home);
    pair.home.accept_all();
    while pair.deliver_to_annex() {}
    let both: BTreeSet<String> = ["home 5", "annex 5"].map(str::to_owned).into();
    assert!(is_home(&pair.annex) && subjects(&pair.annex).is_superset(&both));
    assert_eq!(pair.annex.task(7).subject, "annex 5", "the id of a deleted task is used again");
    pair.settle();
    assert!(subjects(&pair.annex).is_superset(&both));
}

#[test]
fn cancelled_move_leaves_the_home_and_an_offer_cannot_be_cancelled() {
    let mut pair = pair_with_work();
    begin(&mut pair);
    pair.home.run_and_send(|mirror| mirror.cancel_move(&team_name()));
    pair.settle();
    assert!(is_home(&pair.home) && pair.annex.team().is_mirror());
    begin(&mut pair);
    assert!(pair.home.mirror.begin_move(&team_name(), 8).is_err(), "one move at a time");
    pair.deliver_all();
    offer_if_due(&mut pair.home);
    pair.home.run_and_send(|mirror| mirror.cancel_move(&team_name()));
    assert!(!is_home(&pair.home));
    pair.deliver_all();
    assert!(is_home(&pair.annex));
}

#[test]
fn annex_without_mirror_declines_and_a_later_move_has_a_higher_epoch() {
    let mut pair = pair_with_work();
    begin(&mut pair);
    pair.deliver_all();
    offer_if_due(&mut pair.home);
    pair.annex.team().delete().unwrap();
    pair.settle();
    assert!(pair.home.notices.iter().any(|notice| matches!(notice, MirrorNotice::HomeDeclined { .. })));
    assert!(is_home(&pair.home));
    assert_eq!(home_of(&pair.home), TeamHome::with_epoch(2));
    pair.home.add_team();
    pair.settle();
    pair.home.notices.clear();
    move_to_annex(&mut pair);
    assert_eq!(home_of(&pair.annex), TeamHome::with_epoch(3));
}

/// A pair whose annex has declined the home, because it has deleted the mirror. Its answer has not
/// arrived yet.
fn pair_after_declined_offer() -> Pair {
    let mut pair = pair_with_work();
    begin(&mut pair);
    pair.deliver_all();
    offer_if_due(&mut pair.home);
    pair.annex.team().delete().unwrap();
    pair.home.accept_all();
    while pair.deliver_to_annex() {}
    pair
}

/// The home is killed after the offer, and offers the home again before it has the answer.
#[test]
fn annex_that_declines_one_of_two_offers_and_takes_the_other_is_the_only_home() {
    let mut pair = pair_after_declined_offer();
    // The link has forgotten the offer, because the annex has stored it.
    pair.home.stored.clear();
    pair.home.restart();
    pair.home.accept_all();
    while pair.deliver_to_annex() {}
    pair.settle();
    assert_ne!(is_home(&pair.home), is_home(&pair.annex));
}

/// The annex is killed before the link has its answer.
#[test]
fn declined_offer_is_answered_after_a_kill_of_the_annex() {
    let mut pair = pair_after_declined_offer();
    pair.annex.restart();
    pair.deliver_all();
    assert!(is_home(&pair.home));
    pair.home.notices.clear();
    pair.annex.restart();
    pair.settle();
    assert!(pair.home.notices.iter().all(|notice| !matches!(notice, MirrorNotice::HomeDeclined { .. })));
}

/// The home was told to forget the annex, which has no contact and has taken the home.
#[test]
#[allow(clippy::disallowed_methods, reason = "it reads the copy")]
fn forgotten_annex_that_is_the_home_becomes_an_annex_when_it_is_used_again() {
    let mut pair = pair_with_work();
    move_to_annex(&mut pair);
    assert!(is_home(&pair.annex));
    // The answer of the annex has not arrived.
    pair.home.root.set_team_home(&team_name(), &TeamHome::with_epoch(3)).unwrap();
    pair.home.team().remove_members(&[name("ann")]).unwrap();
    let mut pair = pair.with_next_generation();
    pair.home.add_team();
    pair.home.accept_all();
    let item = pair.home.spool.front().cloned().unwrap();
    let error = pair.annex.mirror.apply(&item.payload).unwrap_err();
    assert!(error.message.contains("its members here must end first"), "{error:?}");
    let moved = home_of(&pair.annex).moved().unwrap();
    assert_eq!((moved.epoch, moved.work), (3, LocalWork::OnlyHere));
    let error = pair.annex.team().check_home_is_here().unwrap_err();
    assert!(error.help.unwrap().contains("keep the files here: teamctl export survey"));
    assert_eq!(pair.annex.mirror.take_notices(), [MirrorNotice::HomeMoved { team: team_name(), moved }]);
    pair.annex.team().tasks().create(NewTask::new("done here", &name("team-lead"))).unwrap();
    pair.annex.team().remove_members(&[name("ann")]).unwrap();
    pair.settle();
    let copies = pair.annex.notices.iter().filter_map(|notice| match notice {
        MirrorNotice::TeamReplaced { copy, .. } => Some(copy.join("tasks/survey/5.json")),
        _ => None,
    });
    let tasks: Vec<String> = copies.map(|task| std::fs::read_to_string(task).unwrap()).collect();
    assert!(tasks.len() == 1 && tasks[0].contains("done here"), "{tasks:?}");
    assert!(!subjects(&pair.annex).contains("done here"));
    assert!(is_home(&pair.home) && pair.annex.team().is_mirror());
    assert_eq!(home_of(&pair.annex), TeamHome::with_epoch(3));
    assert_eq!(subjects(&pair.annex), subjects(&pair.home));
}

/// The daemon of the old home refuses changes of the team until it hears of the mirror.
#[test]
fn new_mirror_of_the_old_home_is_reported_after_a_kill() {
    let mut pair = pair_with_work();
    move_to_annex(&mut pair);
    let moved = home_of(&pair.home);
    let mut back = pair.with_link_back();
    back.home.add_team();
    back.deliver_all();
    // The kill came before the record of the home.
    back.annex.root.set_team_home(&team_name(), &moved).unwrap();
    back.annex.notices.clear();
    back.home.restart();
    back.settle();
    assert!(back.annex.notices.contains(&MirrorNotice::TeamMade { team: team_name() }));
}

#[test]
#[allow(clippy::disallowed_methods, reason = "another program damages the file")]
fn damaged_file_prevents_the_move() {
    let mut pair = pair_with_work();
    std::fs::write(pair.home.team().inbox(&name("team-lead")).path(), "{").unwrap();
    assert!(pair.home.mirror.begin_move(&team_name(), BARRIER).is_err());
    assert!(is_home(&pair.home));
}

/// The link of the move is still there, and its report of the new home arrives once more.
fn check_late_report_is_ignored(annex: &End) {
    let directory = tempfile::tempdir().unwrap();
    let state = StateDir::open(&directory.path().join("link")).unwrap();
    let link = (MirrorSide::Home { annex: HostName::parse("devbox").unwrap() }, "laptop.devbox".to_owned());
    let mut link_of_move = Mirror::open(link, annex.root.clone(), state, (&[], 0)).unwrap();
    let item = ItemPayload::HomeMoved {
        team: team_name(),
        created_at: 1,
        epoch: 2,
        home: None,
        work: LocalWork::HandedOver,
    };
    assert!(link_of_move.apply(&item).unwrap().notices.is_empty());
    assert!(annex.team().is_mirror() && home_of(annex).moved().is_none());
}

/// The old home becomes an annex of the new one, over another link, and the home moves back.
#[test]
fn home_moves_back() {
    let mut pair = pair_with_work();
    move_to_annex(&mut pair);
    let mut back = pair.with_link_back();
    back.home.add_team();
    back.settle();
    assert!(back.annex.team().is_mirror() && is_home(&back.home));
    check_complete(&back.home);
    assert!(back.annex.notices.iter().any(|notice| matches!(notice, MirrorNotice::TeamMade { .. })));
    check_late_report_is_ignored(&back.annex);
    back.home.team().tasks().create(NewTask::new("later", &name("team-lead"))).unwrap();
    back.home.send("user", "team-lead", "later", 10);
    back.settle();
    assert!(subjects(&back.annex).contains("later"));
    move_to_annex(&mut back);
    assert!(is_home(&back.annex) && !is_home(&back.home));
    assert_eq!(home_of(&back.annex), TeamHome::with_epoch(3));
    assert_eq!(sorted_texts(&back.annex, "team-lead"), ["later", "new", "old", "read", "unread"]);
    assert_eq!(subjects(&back.annex).len(), 4);
}

#[test]
fn moves_with_kills_and_failed_writes_are_completed() {
    let killed = run_again_with_faults("move_home::interrupted_moves_have_one_home");
    assert!(killed.contains("store.replace") && killed.contains("store.removed"), "{killed:?}");
}

#[test]
fn interrupted_moves_have_one_home() {
    let (mut moved, mut cancelled) = (0, 0);
    for seed in 0..40 {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut pair = pair_with_work();
        begin(&mut pair);
        for _ in 0..60 {
            run_random_step(&mut pair, &mut random);
            let homes = [&pair.home, &pair.annex].into_iter().filter(|end| is_home(end)).count();
            assert!(homes <= 1);
        }
        (pair.home.next_fault, pair.annex.next_fault) = (None, None);
        pair.settle();
        offer_if_due(&mut pair.home);
        // A kill of the home has lost the answer to the barrier.
        pair.home.run_and_send(|mirror| mirror.cancel_move(&team_name()));
        pair.settle();
        match is_home(&pair.home) {
            true => cancelled += 1,
            false => moved += 1,
        }
        assert_ne!(is_home(&pair.home), is_home(&pair.annex));
        check_complete(if is_home(&pair.home) { &pair.home } else { &pair.annex });
        assert_eq!(texts_of_lead_to_ann(&pair.annex), ["to ann"]);
    }
    assert!(moved > 0 && cancelled > 0, "{moved} {cancelled}");
}

fn run_random_step(pair: &mut Pair, random: &mut fastrand::Rng) {
    if random.u8(..4) == 0 {
        let fault = Fault::choose(random);
        if random.bool() { pair.home.next_fault = fault } else { pair.annex.next_fault = fault }
    }
    match random.u8(..16) {
        0..4 => drop(pair.deliver_to_annex()),
        4..8 => drop(pair.deliver_to_home()),
        8 => pair.home.accept(random.usize(1..9)),
        9 => pair.annex.accept(random.usize(1..9)),
        10 => pair.home.compare_all(),
        11 => pair.annex.changed(&FileChange::Inbox(name("team-lead"))),
        12 => pair.annex.compare_all(),
        13 if random.u8(..3) == 0 => {
            pair.home.restart();
            // The next daemon cancels a move that was not offered.
            pair.home.run_and_send(|mirror| mirror.cancel_move(&team_name()));
        }
        14 if random.u8(..3) == 0 => pair.annex.restart(),
        _ => offer_if_due(&mut pair.home),
    }
}
