//! The annex takes the home of a team, and the old home comes back.

use crate::end::{End, name, task_id, team_name};
use crate::faults::{Fault, run_again_with_faults};
use crate::pair::Pair;
use mirror::{FileChange, Mirror, MirrorNotice, MirrorSide};
use protocol::annex_link::{ConfigForAnnex, ItemPayload};
use protocol::hosts_file_entry::HostName;
use protocol::task::TaskStatus;
use protocol::team_home::{HomeState, HomeUsage, LocalWork, MoveStep, MovingHome, TeamHome};
use store::{NewTask, StateDir};

fn take(annex: &mut End) {
    annex.run_and_send(|mirror| mirror.take_team(&team_name()));
}

/// A pair with ann at the annex. Bob at the home has task 1, and ann has sent a message that the
/// home does not have.
fn pair_with_work() -> Pair {
    let mut pair = Pair::new();
    pair.join("ann");
    pair.home.team().tasks().create(NewTask::new("count", &name("team-lead"))).unwrap();
    pair.home.team().tasks().claim(Some(&task_id(1)), &name("bob")).unwrap();
    pair.home.changed(&FileChange::Task(task_id(1)));
    pair.deliver_all();
    pair.annex.send("ann", "team-lead", "not sent yet", 5);
    pair
}

fn members(end: &End) -> Vec<(String, Option<String>)> {
    let members = end.team().config().unwrap().members;
    members.into_iter().map(|member| (member.name.to_string(), member.host)).collect()
}

fn check_new_home(annex: &End) {
    assert!(!annex.team().is_mirror());
    assert_eq!(annex.root.team_home(&team_name()).unwrap(), TeamHome::with_epoch(2));
    assert_eq!(members(annex), [("team-lead".to_owned(), None), ("ann".to_owned(), None)]);
    let task = annex.task(1);
    assert_eq!((task.status, task.owner), (TaskStatus::Pending, None), "bob is lost, so his task is free");
    assert_eq!(annex.texts("team-lead"), ["not sent yet"]);
}

fn check_old_home(home: &End) {
    let moved = home.team().home().unwrap().moved().unwrap();
    assert_eq!((moved.host.as_str(), moved.epoch), ("devbox", 2));
    assert!(home.mirror.teams().is_empty());
    assert!(home.team().check_home_is_here().is_err());
    assert!(home.notices.iter().any(|notice| matches!(notice, MirrorNotice::HomeMoved { .. })));
}

#[test]
fn old_home_is_fenced_and_changes_nothing_at_the_new_one() {
    let mut pair = pair_with_work();
    take(&mut pair.annex);
    check_new_home(&pair.annex);
    // The old home still changes the team until it hears of the move.
    pair.home.send("bob", "ann", "late", 6);
    pair.home.team().tasks().complete(&task_id(1), &name("bob")).unwrap();
    pair.home.compare_all();
    pair.settle();
    check_new_home(&pair.annex);
    check_old_home(&pair.home);
    assert!(pair.annex.texts("ann").is_empty());
    // A home whose record is lost is fenced again.
    pair.home.root.set_team_home(&team_name(), &TeamHome::default()).unwrap();
    pair.home.add_team();
    pair.settle();
    check_new_home(&pair.annex);
    check_old_home(&pair.home);
}

#[test]
fn another_team_of_the_name_is_not_fenced() {
    let mut pair = pair_with_work();
    take(&mut pair.annex);
    let config = protocol::team_config::TeamConfig { created_at: 9, ..pair.home.team().config().unwrap() };
    pair.home.team().delete().unwrap();
    pair.home.root.create_team(&config).unwrap();
    pair.settle();
    assert_eq!(pair.home.team().home().unwrap().moved(), None);
    check_new_home(&pair.annex);
}

/// A third host has a mirror of the lost home when the new home connects.
#[test]
fn third_host_ends_the_mirror_of_the_replaced_home() {
    let mut pair = pair_with_work();
    let directory = tempfile::tempdir().unwrap();
    let state = StateDir::open(&directory.path().join("link")).unwrap();
    let link = (MirrorSide::Annex, "other-home.devbox".to_owned());
    let mut link_of_new_home = Mirror::open(link, pair.annex.root.clone(), state, (&[], 0)).unwrap();
    let config = serde_json::to_value(pair.home.team().config().unwrap()).unwrap();
    let config: ConfigForAnnex = serde_json::from_value(config).unwrap();
    let team = |epoch| ItemPayload::Team { team: team_name(), config: config.clone(), version: 1, epoch };
    // A home that is no later one is refused.
    let refused = link_of_new_home.apply(&team(1)).unwrap().items;
    assert!(matches!(refused[..], [ItemPayload::TeamRefused { .. }]), "{refused:?}");
    assert!(
        link_of_new_home.apply(&team(2)).unwrap_err().message.contains("its last mirror is being deleted")
    );
    assert_eq!(link_of_new_home.take_notices(), [MirrorNotice::HomeReplaced { team: team_name() }]);
    let ended = pair.annex.mirror.end_mirror(&team_name()).unwrap().notices;
    assert_eq!(ended, [MirrorNotice::TeamEnded { team: team_name() }]);
    pair.annex.team().delete().unwrap();
    pair.annex.run_and_send(|mirror| mirror.remove_team(&team_name()));
    let made = link_of_new_home.apply(&team(2)).unwrap().notices;
    assert_eq!(made, [MirrorNotice::TeamMade { team: team_name() }]);
    assert_eq!(pair.annex.root.team_home(&team_name()).unwrap(), TeamHome::with_epoch(2));
    // The replaced home learns which one the home is.
    let answer = pair.annex.mirror.apply(&team(1)).unwrap().items;
    let [ItemPayload::HomeMoved { epoch: 2, home: Some(home), .. }] = &answer[..] else {
        panic!("{answer:?}")
    };
    assert_eq!(home.as_str(), "other-home");
    pair.home.apply(&answer[0]);
    let moved = pair.home.team().home().unwrap().moved().unwrap();
    assert_eq!((moved.host.as_str(), moved.epoch, moved.work), ("other-home", 2, LocalWork::OnlyHere));
    // The new home reports by itself, as the host `devbox`: it is no second home.
    pair.home.notices.clear();
    pair.home.apply(&ItemPayload::HomeMoved {
        team: team_name(),
        created_at: 1,
        epoch: 2,
        home: None,
        work: LocalWork::OnlyHere,
    });
    let moved = pair.home.team().home().unwrap().moved().unwrap();
    assert!(moved.host.as_str() == "devbox" && pair.home.notices.is_empty());
    // A home with the same epoch is refused, and so are its changes.
    let answer = pair.annex.mirror.apply(&team(2)).unwrap().items;
    let [ItemPayload::HomeMoved { epoch: 2, .. }, ItemPayload::TeamRefused { error, .. }] = &answer[..]
    else {
        panic!("{answer:?}")
    };
    assert!(error.message.contains("another home of survey, other-home, uses it (epoch 2)"), "{error:?}");
}

#[test]
fn old_home_of_two_new_ones_tells_people_and_the_second_one() {
    let mut pair = pair_with_work();
    take(&mut pair.annex);
    pair.settle();
    check_old_home(&pair.home);
    let directory = tempfile::tempdir().unwrap();
    let state = StateDir::open(&directory.path().join("link")).unwrap();
    let link = (MirrorSide::Home { annex: HostName::parse("gpu").unwrap() }, "gpu".to_owned());
    let mut gpu = Mirror::open(link, pair.home.root.clone(), state, (&[], 0)).unwrap();
    let item = ItemPayload::HomeMoved {
        team: team_name(),
        created_at: 1,
        epoch: 2,
        home: None,
        work: LocalWork::OnlyHere,
    };
    let output = gpu.apply(&item).unwrap();
    let [MirrorNotice::TwoHomes { epoch: 2, first: Some(first), second, .. }] = &output.notices[..] else {
        panic!("{output:?}")
    };
    assert_eq!((first.as_str(), second.as_str()), ("devbox", "gpu"));
    let [ItemPayload::OtherHome { epoch: 2, home, .. }] = &output.items[..] else { panic!("{output:?}") };
    assert_eq!(home.as_str(), "devbox");
    check_old_home(&pair.home);
    // The second one is later, so the first one is replaced when it reports again.
    let item = ItemPayload::HomeMoved {
        team: team_name(),
        created_at: 1,
        epoch: 3,
        home: None,
        work: LocalWork::OnlyHere,
    };
    let notices = gpu.apply(&item).unwrap().notices;
    assert!(matches!(&notices[..], [MirrorNotice::HomeMoved { moved, .. }] if moved.host.as_str() == "gpu"));
    pair.annex.notices.clear();
    pair.settle();
    let moved = pair.annex.team().home().unwrap().moved().unwrap();
    assert_eq!((moved.host.as_str(), moved.epoch, moved.work), ("gpu", 3, LocalWork::OnlyHere));
    assert_eq!(pair.annex.notices, [MirrorNotice::HomeMoved { team: team_name(), moved }]);
    assert!(!pair.annex.team().is_mirror() && pair.annex.task(1).subject == "count");
}

#[test]
fn homes_of_the_same_epoch_stay_and_both_are_told() {
    let mut pair = pair_with_work();
    take(&mut pair.annex);
    pair.home.root.set_team_home(&team_name(), &TeamHome::with_epoch(2)).unwrap();
    let mut pair = pair.with_next_generation();
    pair.home.add_team();
    pair.deliver_all();
    let is_told = |end: &End, host: &str| {
        end.notices.iter().any(|notice| match notice {
            MirrorNotice::TwoHomes { epoch: 2, first: None, second, .. } => second.as_str() == host,
            _ => false,
        })
    };
    assert!(is_told(&pair.home, "devbox") && is_told(&pair.annex, "host-home"));
    let refused = pair.home.notices.iter().find_map(|notice| match notice {
        MirrorNotice::TeamRefused { error, .. } => Some(error.message.clone()),
        _ => None,
    });
    assert_eq!(
        refused.as_deref(),
        Some("cannot use this host for survey: it is a home of survey too (epoch 2)")
    );
    for end in [&pair.home, &pair.annex] {
        assert!(end.team().check_home_is_here().is_ok() && !end.team().is_mirror());
    }
    assert_eq!(pair.annex.texts("team-lead"), ["not sent yet"]);
}

/// A home that the annex does not know wants to use it in the middle of a move from the annex.
#[test]
fn refusal_during_a_move_says_that_it_is_undecided() {
    let mut pair = pair_with_work();
    take(&mut pair.annex);
    let moving = MovingHome {
        host: HostName::parse("gpu").unwrap(),
        epoch: 3,
        since: 1,
        created_at: 1,
        step: MoveStep::Offered,
        usage: HomeUsage::default(),
    };
    let home = TeamHome { epoch: 2, state: HomeState::Moving(moving) };
    pair.annex.root.set_team_home(&team_name(), &home).unwrap();
    let mut pair = pair.with_next_generation();
    pair.home.root.set_team_home(&team_name(), &TeamHome::with_epoch(3)).unwrap();
    pair.home.add_team();
    pair.deliver_all();
    let Some(MirrorNotice::TeamRefused { error, .. }) = pair.home.notices.last() else { panic!() };
    assert_eq!(
        error.message,
        "cannot use this host for survey yet: it moves the home of survey to gpu, which has not decided"
    );
}

/// The annex has taken an earlier team of the name over this link.
#[test]
fn team_is_taken_after_an_earlier_one_of_its_name() {
    let mut pair = pair_with_work();
    take(&mut pair.annex);
    let config = protocol::team_config::TeamConfig { created_at: 9, ..pair.home.team().config().unwrap() };
    pair.annex.team().delete().unwrap();
    pair.home.team().delete().unwrap();
    pair.home.root.create_team(&config).unwrap();
    pair.home.restart();
    pair.home.add_team();
    pair.settle();
    assert!(pair.annex.team().is_mirror());
    take(&mut pair.annex);
    assert!(!pair.annex.team().is_mirror());
    assert_eq!(pair.annex.root.team_home(&team_name()).unwrap(), TeamHome::with_epoch(2));
}

#[test]
fn only_a_mirror_is_taken() {
    let mut pair = Pair::new();
    let error = pair.home.mirror.take_team(&team_name()).unwrap_err();
    assert_eq!(error.message, "cannot take survey: it has no mirror here");
    assert!(!pair.home.team().is_mirror());
}

#[test]
fn moves_with_kills_and_failed_writes_are_completed() {
    let killed = run_again_with_faults("take_home::interrupted_moves_are_completed");
    assert!(killed.contains("store.replace") && killed.contains("store.removed"), "{killed:?}");
}

#[test]
fn interrupted_moves_are_completed() {
    for seed in 0..60 {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut pair = pair_with_work();
        while pair.annex.team().is_mirror() {
            pair.annex.next_fault = if random.bool() { Fault::choose(&mut random) } else { None };
            take(&mut pair.annex);
        }
        pair.home.next_fault = Fault::choose(&mut random);
        pair.settle();
        pair.home.restart();
        pair.settle();
        check_new_home(&pair.annex);
        check_old_home(&pair.home);
    }
}

/// Another annex has declined the home, or was forgotten while it was offered the home.
#[test]
fn raised_epoch_reaches_the_annex_with_the_next_change_of_the_config() {
    let mut pair = Pair::new();
    pair.join("ann");
    pair.home.root.set_team_home(&team_name(), &TeamHome::with_epoch(3)).unwrap();
    pair.home.changed(&FileChange::Config);
    pair.deliver_all();
    assert_eq!(pair.annex.root.team_home(&team_name()).unwrap(), TeamHome::with_epoch(3));
}
