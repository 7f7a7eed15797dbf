//! What may be found where a lock should go. These take their seconds: the waits are what is tested.

use crate::fixture::{Ground, age, agent, delay, message, put};
use protocol::fault::Kind;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};
use store::Error;

/// All at once: most of them wait out the twelve seconds.
#[test]
fn whatever_stands_where_a_lock_goes_is_treated_with_care() {
    let plants = [
        an_old_lock_is_taken_over_at_the_second_look,
        a_fresh_lock_is_waited_for,
        a_lock_that_is_refreshed_is_not_taken_over,
        a_lock_from_the_future_is_watched_for_ten_seconds,
        a_file_in_the_locks_place_is_never_removed,
        a_link_in_the_locks_place_is_never_removed,
        a_lock_with_something_inside_is_never_removed,
        of_eight_who_find_an_old_lock_each_gets_its_turn,
    ];
    std::thread::scope(|scope| plants.into_iter().for_each(|plant| drop(scope.spawn(plant))));
}

fn planted() -> (Ground, PathBuf) {
    let ground = Ground::new();
    let lock = ground.inbox_path("bob.json.lock");
    (ground, lock)
}

fn send(ground: &Ground) -> (Result<(), Error>, Duration) {
    let start = Instant::now();
    (ground.team.inbox(&agent("bob")).append(&message("x")), start.elapsed())
}

fn an_old_lock_is_taken_over_at_the_second_look() {
    let (ground, lock) = planted();
    std::fs::create_dir(&lock).unwrap();
    age(&lock, SystemTime::now() - Duration::from_secs(12));
    let (sent, took) = send(&ground);
    sent.unwrap();
    assert!(took > Duration::from_millis(400) && took < Duration::from_secs(3), "{took:?}");
    assert!(!lock.exists());
}

fn a_fresh_lock_is_waited_for() {
    let (ground, lock) = planted();
    std::fs::create_dir(&lock).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            delay(1000);
            std::fs::remove_dir(&lock).unwrap();
        });
        let (sent, took) = send(&ground);
        sent.unwrap();
        assert!(took >= Duration::from_millis(900), "{took:?}");
    });
}

fn a_lock_that_is_refreshed_is_not_taken_over() {
    let (ground, lock) = planted();
    std::fs::create_dir(&lock).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..14 {
                age(&lock, SystemTime::now());
                delay(1000);
            }
        });
        let (sent, _) = send(&ground);
        let error = sent.unwrap_err();
        assert_eq!(error.kind(), Kind::Timeout);
        assert!(error.to_string().contains("bob.json.lock: another program holds it"), "{error}");
        assert!(lock.exists());
    });
}

fn a_lock_from_the_future_is_watched_for_ten_seconds() {
    let (ground, lock) = planted();
    std::fs::create_dir(&lock).unwrap();
    age(&lock, SystemTime::now() + Duration::from_secs(3600));
    let (sent, took) = send(&ground);
    sent.unwrap();
    assert!(took >= Duration::from_secs(10), "{took:?}");
}

fn a_file_in_the_locks_place_is_never_removed() {
    let (ground, lock) = planted();
    put(&lock, "4242");
    age(&lock, SystemTime::now() - Duration::from_secs(60));
    let (sent, _) = send(&ground);
    assert!(sent.unwrap_err().to_string().contains("no directory"));
    assert_eq!(std::fs::read(&lock).unwrap(), b"4242");
}

fn a_link_in_the_locks_place_is_never_removed() {
    let (ground, lock) = planted();
    let elsewhere = ground.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &lock).unwrap();
    let (sent, _) = send(&ground);
    assert!(matches!(sent, Err(Error::Locked { .. })));
    assert!(lock.is_symlink() && elsewhere.exists());
}

fn a_lock_with_something_inside_is_never_removed() {
    let (ground, lock) = planted();
    std::fs::create_dir(&lock).unwrap();
    put(&lock.join("pid"), "4242");
    age(&lock, SystemTime::now() - Duration::from_secs(60));
    let (sent, _) = send(&ground);
    assert!(sent.unwrap_err().to_string().contains("something in it"));
    assert!(lock.join("pid").exists());
}

fn of_eight_who_find_an_old_lock_each_gets_its_turn() {
    let (ground, lock) = planted();
    std::fs::create_dir(&lock).unwrap();
    age(&lock, SystemTime::now() - Duration::from_secs(60));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| ground.again().inbox(&agent("bob")).append(&message("x")).unwrap());
        }
    });
    assert_eq!(ground.team.inbox(&agent("bob")).read().unwrap().len(), 8);
    assert_eq!(std::fs::read_dir(ground.inbox_path("")).unwrap().count(), 1, "no lock is left, moved or not");
}
