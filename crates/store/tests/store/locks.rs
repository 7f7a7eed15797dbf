//! What may be found where a lock should go. These take their seconds: the waits are what is tested.

use crate::fixture::{TestRoot, agent, config, list_dir, message, overwrite_in_place, set_mtime, sleep_ms};
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use protocol::error::ErrorKind;
use protocol::name::TeamName;
use std::fs::{File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use store::Error;

/// All at once: most of them wait out the twelve seconds.
#[test]
fn whatever_stands_where_a_lock_goes_is_treated_with_care() {
    let plants = [
        an_old_lock_is_taken_over_at_the_second_look,
        the_lock_of_a_dead_holder_of_ours_is_taken_over_at_once,
        the_lock_of_a_living_holder_of_ours_is_waited_for,
        one_of_ours_that_was_stopped_for_long_loses_its_lock,
        one_of_ours_that_was_stopped_before_its_mark_loses_its_lock,
        of_eight_who_find_a_dead_holders_lock_each_gets_its_turn,
        a_fresh_lock_is_waited_for,
        a_lock_that_is_refreshed_is_not_taken_over,
        a_lock_from_the_future_is_watched_for_ten_seconds,
        a_file_in_the_locks_place_is_never_removed,
        a_link_in_the_locks_place_is_never_removed,
        a_lock_with_something_inside_is_never_removed,
        of_eight_who_find_an_old_lock_each_gets_its_turn,
        stale_locks_are_released_and_nothing_else,
        a_lock_that_changes_before_the_second_look_is_not_released,
    ];
    std::thread::scope(|scope| plants.into_iter().for_each(|plant| drop(scope.spawn(plant))));
}

fn plant_lock() -> (TestRoot, PathBuf) {
    let ground = TestRoot::new();
    let lock = ground.inbox_path("bob.json.lock");
    (ground, lock)
}

fn send(ground: &TestRoot) -> (Result<(), Error>, Duration) {
    let start = Instant::now();
    (ground.team.inbox(&agent("bob")).append(&message("x")), start.elapsed())
}

fn an_old_lock_is_taken_over_at_the_second_look() {
    let (ground, lock) = plant_lock();
    std::fs::create_dir(&lock).unwrap();
    set_mtime(&lock, SystemTime::now() - Duration::from_secs(12));
    let (sent, took) = send(&ground);
    sent.unwrap();
    assert!(took > Duration::from_millis(400) && took < Duration::from_secs(3), "{took:?}");
    assert!(!lock.exists());
}

/// As the kernel leaves it when a holder of ours is killed: marked, and gripped by nobody.
fn set_sticky(lock: &Path) {
    std::fs::create_dir(lock).unwrap();
    std::fs::set_permissions(lock, Permissions::from_mode(0o1700)).unwrap();
}

fn the_lock_of_a_dead_holder_of_ours_is_taken_over_at_once() {
    let (ground, lock) = plant_lock();
    for ahead in [0, 3600] {
        set_sticky(&lock);
        set_mtime(&lock, SystemTime::now() + Duration::from_secs(ahead));
        let (sent, took) = send(&ground);
        sent.unwrap();
        assert!(took < Duration::from_millis(400), "{took:?}: no second look");
        assert_eq!(list_dir(&ground.inbox_path("")), [ground.inbox_path("bob.json")]);
    }
    set_sticky(&lock);
    assert_eq!(ground.team.remove_stale_locks().unwrap(), [lock]);
}

fn the_lock_of_a_living_holder_of_ours_is_waited_for() {
    let (ground, lock) = plant_lock();
    set_sticky(&lock);
    let grip = File::open(&lock).unwrap();
    grip.try_lock().unwrap();
    assert_eq!(ground.team.remove_stale_locks().unwrap(), Vec::<PathBuf>::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep_ms(1000);
            assert!(lock.exists());
            // Its end, without a word.
            drop(grip);
        });
        let (sent, took) = send(&ground);
        sent.unwrap();
        assert!(took >= Duration::from_millis(900) && took < Duration::from_secs(5), "{took:?}");
    });
}

fn one_of_ours_that_was_stopped_for_long_loses_its_lock() {
    let (ground, lock) = plant_lock();
    set_sticky(&lock);
    let grip = File::open(&lock).unwrap();
    grip.try_lock().unwrap();
    set_mtime(&lock, SystemTime::now() - Duration::from_secs(12));
    let (sent, took) = send(&ground);
    sent.unwrap();
    assert!(took > Duration::from_millis(400) && took < Duration::from_secs(3), "{took:?}");
}

fn one_of_ours_that_was_stopped_before_its_mark_loses_its_lock() {
    let (ground, lock) = plant_lock();
    std::fs::create_dir(&lock).unwrap();
    let grip = File::open(&lock).unwrap();
    grip.try_lock().unwrap();
    set_mtime(&lock, stale_time());
    let (sent, took) = send(&ground);
    sent.unwrap();
    assert!(took >= Duration::from_secs(10), "{took:?}: it might be taking the lock away just now");
    assert_eq!(list_dir(&ground.inbox_path("")), [ground.inbox_path("bob.json")]);
}

fn of_eight_who_find_a_dead_holders_lock_each_gets_its_turn() {
    of_eight_each_gets_its_turn(30, set_sticky);
}

/// Of eight at once, in each round; begun a moment apart, so that some look where another has just taken over.
fn of_eight_each_gets_its_turn(rounds: usize, plant: fn(&Path)) {
    let (ground, lock) = plant_lock();
    for round in 1..=rounds {
        plant(&lock);
        std::thread::scope(|scope| {
            for nth in 0..8 {
                let ground = &ground;
                scope.spawn(move || {
                    sleep_ms(nth * (round as u64 % 4));
                    ground.reopen_team().inbox(&agent("bob")).append(&message("x")).unwrap();
                });
            }
        });
        assert_eq!(ground.team.inbox(&agent("bob")).read().unwrap().len(), 8 * round);
        assert_eq!(list_dir(&ground.inbox_path("")), [ground.inbox_path("bob.json")], "no lock is left");
    }
}

fn a_fresh_lock_is_waited_for() {
    let (ground, lock) = plant_lock();
    std::fs::create_dir(&lock).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep_ms(1000);
            std::fs::remove_dir(&lock).unwrap();
        });
        let (sent, took) = send(&ground);
        sent.unwrap();
        assert!(took >= Duration::from_millis(900), "{took:?}");
    });
}

fn a_lock_that_is_refreshed_is_not_taken_over() {
    let (ground, lock) = plant_lock();
    std::fs::create_dir(&lock).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..14 {
                set_mtime(&lock, SystemTime::now());
                sleep_ms(1000);
            }
        });
        let (sent, _) = send(&ground);
        let error = sent.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(error.to_string().contains("bob.json.lock: another program holds it"), "{error}");
        assert!(lock.exists());
    });
}

fn a_lock_from_the_future_is_watched_for_ten_seconds() {
    let (ground, lock) = plant_lock();
    std::fs::create_dir(&lock).unwrap();
    set_mtime(&lock, SystemTime::now() + Duration::from_secs(3600));
    let (sent, took) = send(&ground);
    sent.unwrap();
    assert!(took >= Duration::from_secs(10), "{took:?}");
}

fn a_file_in_the_locks_place_is_never_removed() {
    let (ground, lock) = plant_lock();
    overwrite_in_place(&lock, "4242");
    set_mtime(&lock, SystemTime::now() - Duration::from_secs(60));
    let (sent, _) = send(&ground);
    assert!(sent.unwrap_err().to_string().contains("no directory"));
    assert_eq!(std::fs::read(&lock).unwrap(), b"4242");
}

fn a_link_in_the_locks_place_is_never_removed() {
    let (ground, lock) = plant_lock();
    let elsewhere = ground.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &lock).unwrap();
    let (sent, _) = send(&ground);
    assert!(matches!(sent, Err(Error::Locked { .. })));
    assert!(lock.is_symlink() && elsewhere.exists());
}

fn a_lock_with_something_inside_is_never_removed() {
    let (ground, lock) = plant_lock();
    std::fs::create_dir(&lock).unwrap();
    overwrite_in_place(&lock.join("pid"), "4242");
    set_mtime(&lock, SystemTime::now() - Duration::from_secs(60));
    let (sent, _) = send(&ground);
    assert!(sent.unwrap_err().to_string().contains("something in it"));
    assert!(lock.join("pid").exists());
}

fn of_eight_who_find_an_old_lock_each_gets_its_turn() {
    // The second look comes half a second after the first: ten seconds, as long as others here take.
    of_eight_each_gets_its_turn(20, |lock| {
        std::fs::create_dir(lock).unwrap();
        set_mtime(lock, stale_time());
    });
}

fn stale_time() -> SystemTime {
    SystemTime::now() - Duration::from_secs(60)
}

fn stale_locks_are_released_and_nothing_else() {
    let ground = TestRoot::new();
    let tasks = ground.path().join("root/tasks/orchard");
    let stale = [
        ground.team.path().join("config.json.lock"),
        ground.inbox_path("bob.json.lock"),
        tasks.join(".lock.lock"),
        tasks.join("7.json.lock"),
    ];
    // No program of ours takes the last three, and whose they are is not known.
    let kept = ["fresh.json.lock", "full.json.lock", "bob.lock", ".x.json.lock", "notes"];
    let kept = kept.map(|name| ground.inbox_path(name));
    stale.iter().chain(&kept).for_each(|path| std::fs::create_dir(path).unwrap());
    overwrite_in_place(&kept[1].join("pid"), "4242");
    let (file, link) = (ground.inbox_path("file.json.lock"), ground.inbox_path("link.json.lock"));
    overwrite_in_place(&file, "4242");
    symlink(&kept[4], &link).unwrap();
    let long_ago = TimeSpec::new(0, 0);
    utimensat(AT_FDCWD, &link, &long_ago, &long_ago, UtimensatFlags::NoFollowSymlink).unwrap();
    stale.iter().chain(&kept[1..]).chain([&file]).for_each(|path| set_mtime(path, stale_time()));
    let (before, start) = (list_dir(&ground.inbox_path("")), Instant::now());

    let released = ground.team.remove_stale_locks().unwrap();
    let took = start.elapsed();

    assert!(took >= Duration::from_millis(500) && took < Duration::from_secs(3), "{took:?}");
    assert_eq!(sorted(released), sorted(stale.to_vec()));
    let left: Vec<PathBuf> = before.into_iter().filter(|path| !stale.contains(path)).collect();
    assert_eq!(list_dir(&ground.inbox_path("")), left, "nothing is moved or made either");
    assert!(stale.iter().all(|path| !path.exists()) && kept[1].join("pid").exists());
    let start = Instant::now();
    assert_eq!(ground.team.remove_stale_locks().unwrap(), Vec::<PathBuf>::new());
    assert!(start.elapsed() < Duration::from_millis(450), "what looks held is not waited for");
}

fn sorted(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths
}

fn a_lock_that_changes_before_the_second_look_is_not_released() {
    let (ground, lock) = plant_lock();
    let inside = ground.inbox_path("ann.json.lock");
    for path in [&lock, &inside] {
        std::fs::create_dir(path).unwrap();
        set_mtime(path, stale_time());
    }
    let released = std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep_ms(200);
            set_mtime(&lock, SystemTime::now());
            overwrite_in_place(&inside.join("pid"), "4242");
            set_mtime(&inside, stale_time() - Duration::from_secs(1));
        });
        ground.team.remove_stale_locks().unwrap()
    });
    assert_eq!(released, Vec::<PathBuf>::new());
    assert!(lock.exists() && inside.join("pid").exists());
}

#[test]
fn locks_of_a_team_of_claude_code_are_not_released() {
    let ground = TestRoot::new();
    let name = TeamName::parse("session-1").unwrap();
    let lock = ground.path().join("root/teams/session-1/config.json.lock");
    std::fs::create_dir_all(&lock).unwrap();
    overwrite_in_place(&lock.with_file_name("config.json"), config("session-1").to_text());
    set_mtime(&lock, stale_time());
    let refused = ground.root.team(&name).unwrap().remove_stale_locks().unwrap_err();
    assert!(matches!(refused, Error::ReadOnly(_)), "{refused}");
    assert!(lock.exists());
}
