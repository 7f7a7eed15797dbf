//! Locks, and other files at a lock's path. The tests take several seconds, because they wait for
//! timeouts.

use crate::test_root::{TestRoot, agent, config, list_dir, message, overwrite_in_place, set_mtime, sleep_ms};
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use protocol::error_kind_and_report::ErrorKind;
use protocol::team_and_member_names::TeamName;
use std::fs::{File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use store::Error;

/// Runs all cases at the same time, because many of them take more than ten seconds.
#[test]
fn no_foreign_lock_or_file_is_removed() {
    let cases = [
        a_stale_lock_is_taken_over_at_the_second_check,
        the_lock_of_a_dead_teamd_program_is_taken_over_at_once,
        the_lock_of_a_live_teamd_program_is_waited_for,
        a_teamd_program_that_was_stopped_loses_its_lock,
        a_teamd_program_that_was_stopped_before_the_sticky_bit_loses_its_lock,
        eight_senders_that_find_the_lock_of_a_dead_holder_all_get_it,
        a_fresh_lock_is_waited_for,
        a_lock_that_is_refreshed_is_not_taken_over,
        a_lock_with_a_future_timestamp_is_watched_for_ten_seconds,
        a_file_at_the_locks_path_is_never_removed,
        a_link_at_the_locks_path_is_never_removed,
        a_lock_directory_with_content_is_never_removed,
        eight_senders_that_find_a_stale_lock_all_get_it,
        only_stale_locks_are_removed,
        a_lock_that_changes_before_the_second_check_is_not_removed,
    ];
    std::thread::scope(|scope| cases.into_iter().for_each(|case| drop(scope.spawn(case))));
}

/// A root, and the path of the lock of bob's inbox.
fn root_and_lock_path() -> (TestRoot, PathBuf) {
    let env = TestRoot::new();
    let lock = env.inbox_path("bob.json.lock");
    (env, lock)
}

/// Appends a message to bob's inbox. Returns the result and the duration.
fn send(env: &TestRoot) -> (Result<(), Error>, Duration) {
    let start = Instant::now();
    (env.team.inbox(&agent("bob")).append(&message("x")), start.elapsed())
}

fn a_stale_lock_is_taken_over_at_the_second_check() {
    let (env, lock) = root_and_lock_path();
    std::fs::create_dir(&lock).unwrap();
    set_mtime(&lock, SystemTime::now() - Duration::from_secs(12));
    let (result, duration) = send(&env);
    result.unwrap();
    assert!(duration > Duration::from_millis(400) && duration < Duration::from_secs(3), "{duration:?}");
    assert!(!lock.exists());
}

/// Creates a lock with the sticky bit and without a flock, like the lock of a killed holder.
fn create_sticky_lock(lock: &Path) {
    std::fs::create_dir(lock).unwrap();
    std::fs::set_permissions(lock, Permissions::from_mode(0o1700)).unwrap();
}

fn the_lock_of_a_dead_teamd_program_is_taken_over_at_once() {
    let (env, lock) = root_and_lock_path();
    for ahead in [0, 3600] {
        create_sticky_lock(&lock);
        set_mtime(&lock, SystemTime::now() + Duration::from_secs(ahead));
        let (result, duration) = send(&env);
        result.unwrap();
        assert!(duration < Duration::from_millis(400), "{duration:?}: there is no second check");
        assert_eq!(list_dir(&env.inbox_path("")), [env.inbox_path("bob.json")]);
    }
    create_sticky_lock(&lock);
    assert_eq!(env.team.remove_stale_locks().unwrap(), [lock]);
}

fn the_lock_of_a_live_teamd_program_is_waited_for() {
    let (env, lock) = root_and_lock_path();
    create_sticky_lock(&lock);
    let flock = File::open(&lock).unwrap();
    flock.try_lock().unwrap();
    assert_eq!(env.team.remove_stale_locks().unwrap(), Vec::<PathBuf>::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep_ms(1000);
            assert!(lock.exists());
            // The holder exits without releasing the lock.
            drop(flock);
        });
        let (result, duration) = send(&env);
        result.unwrap();
        assert!(duration >= Duration::from_millis(900) && duration < Duration::from_secs(5), "{duration:?}");
    });
}

fn a_teamd_program_that_was_stopped_loses_its_lock() {
    let (env, lock) = root_and_lock_path();
    create_sticky_lock(&lock);
    let flock = File::open(&lock).unwrap();
    flock.try_lock().unwrap();
    set_mtime(&lock, SystemTime::now() - Duration::from_secs(12));
    let (result, duration) = send(&env);
    result.unwrap();
    assert!(duration > Duration::from_millis(400) && duration < Duration::from_secs(3), "{duration:?}");
}

fn a_teamd_program_that_was_stopped_before_the_sticky_bit_loses_its_lock() {
    let (env, lock) = root_and_lock_path();
    std::fs::create_dir(&lock).unwrap();
    let flock = File::open(&lock).unwrap();
    flock.try_lock().unwrap();
    set_mtime(&lock, stale_time());
    let (result, duration) = send(&env);
    result.unwrap();
    assert!(duration >= Duration::from_secs(10), "{duration:?}: the holder may be removing the lock");
    assert_eq!(list_dir(&env.inbox_path("")), [env.inbox_path("bob.json")]);
}

fn eight_senders_that_find_the_lock_of_a_dead_holder_all_get_it() {
    assert_eight_senders_get_the_lock(30, create_sticky_lock);
}

/// Checks that eight senders get a lock that `create_lock` creates, in each round. The senders
/// start at slightly different times, so that some of them check a lock that another sender has
/// just taken over.
fn assert_eight_senders_get_the_lock(rounds: usize, create_lock: fn(&Path)) {
    let (env, lock) = root_and_lock_path();
    for round in 1..=rounds {
        create_lock(&lock);
        std::thread::scope(|scope| {
            for number in 0..8 {
                let env = &env;
                scope.spawn(move || {
                    sleep_ms(number * (round as u64 % 4));
                    env.reopen_team().inbox(&agent("bob")).append(&message("x")).unwrap();
                });
            }
        });
        assert_eq!(env.team.inbox(&agent("bob")).read().unwrap().len(), 8 * round);
        assert_eq!(list_dir(&env.inbox_path("")), [env.inbox_path("bob.json")], "no lock remains");
    }
}

fn a_fresh_lock_is_waited_for() {
    let (env, lock) = root_and_lock_path();
    std::fs::create_dir(&lock).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep_ms(1000);
            std::fs::remove_dir(&lock).unwrap();
        });
        let (result, duration) = send(&env);
        result.unwrap();
        assert!(duration >= Duration::from_millis(900), "{duration:?}");
    });
}

fn a_lock_that_is_refreshed_is_not_taken_over() {
    let (env, lock) = root_and_lock_path();
    std::fs::create_dir(&lock).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..14 {
                set_mtime(&lock, SystemTime::now());
                sleep_ms(1000);
            }
        });
        let (result, _) = send(&env);
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(error.to_string().contains("bob.json.lock: another program holds it"), "{error}");
        assert!(lock.exists());
    });
}

fn a_lock_with_a_future_timestamp_is_watched_for_ten_seconds() {
    let (env, lock) = root_and_lock_path();
    std::fs::create_dir(&lock).unwrap();
    set_mtime(&lock, SystemTime::now() + Duration::from_secs(3600));
    let (result, duration) = send(&env);
    result.unwrap();
    assert!(duration >= Duration::from_secs(10), "{duration:?}");
}

fn a_file_at_the_locks_path_is_never_removed() {
    let (env, lock) = root_and_lock_path();
    overwrite_in_place(&lock, "4242");
    set_mtime(&lock, SystemTime::now() - Duration::from_secs(60));
    let (result, _) = send(&env);
    assert!(result.unwrap_err().to_string().contains("no directory"));
    assert_eq!(std::fs::read(&lock).unwrap(), b"4242");
}

fn a_link_at_the_locks_path_is_never_removed() {
    let (env, lock) = root_and_lock_path();
    let elsewhere = env.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &lock).unwrap();
    let (result, _) = send(&env);
    assert!(matches!(result, Err(Error::Locked { .. })));
    assert!(lock.is_symlink() && elsewhere.exists());
}

fn a_lock_directory_with_content_is_never_removed() {
    let (env, lock) = root_and_lock_path();
    std::fs::create_dir(&lock).unwrap();
    overwrite_in_place(&lock.join("pid"), "4242");
    set_mtime(&lock, SystemTime::now() - Duration::from_secs(60));
    let (result, _) = send(&env);
    assert!(result.unwrap_err().to_string().contains("something in it"));
    assert!(lock.join("pid").exists());
}

fn eight_senders_that_find_a_stale_lock_all_get_it() {
    // The second check comes half a second after the first, so twenty rounds take ten seconds.
    assert_eight_senders_get_the_lock(20, |lock| {
        std::fs::create_dir(lock).unwrap();
        set_mtime(lock, stale_time());
    });
}

fn stale_time() -> SystemTime {
    SystemTime::now() - Duration::from_secs(60)
}

fn only_stale_locks_are_removed() {
    let env = TestRoot::new();
    let tasks = env.path().join("root/tasks/orchard");
    let stale = [
        env.team.path().join("config.json.lock"),
        env.inbox_path("bob.json.lock"),
        tasks.join(".lock.lock"),
        tasks.join("7.json.lock"),
    ];
    // teamd uses none of the last three names for its locks.
    let others = ["fresh.json.lock", "full.json.lock", "bob.lock", ".x.json.lock", "notes"];
    let others = others.map(|name| env.inbox_path(name));
    stale.iter().chain(&others).for_each(|path| std::fs::create_dir(path).unwrap());
    overwrite_in_place(&others[1].join("pid"), "4242");
    let (file, link) = (env.inbox_path("file.json.lock"), env.inbox_path("link.json.lock"));
    overwrite_in_place(&file, "4242");
    symlink(&others[4], &link).unwrap();
    let long_ago = TimeSpec::new(0, 0);
    utimensat(AT_FDCWD, &link, &long_ago, &long_ago, UtimensatFlags::NoFollowSymlink).unwrap();
    stale.iter().chain(&others[1..]).chain([&file]).for_each(|path| set_mtime(path, stale_time()));
    let (before, start) = (list_dir(&env.inbox_path("")), Instant::now());

    let removed_locks = env.team.remove_stale_locks().unwrap();
    let duration = start.elapsed();

    assert!(duration >= Duration::from_millis(500) && duration < Duration::from_secs(3), "{duration:?}");
    assert_eq!(sorted(removed_locks), sorted(stale.to_vec()));
    let remaining: Vec<PathBuf> = before.into_iter().filter(|path| !stale.contains(path)).collect();
    assert_eq!(list_dir(&env.inbox_path("")), remaining, "no file is moved or created");
    assert!(stale.iter().all(|path| !path.exists()) && others[1].join("pid").exists());
    let start = Instant::now();
    assert_eq!(env.team.remove_stale_locks().unwrap(), Vec::<PathBuf>::new());
    assert!(start.elapsed() < Duration::from_millis(450), "the call does not wait for held locks");
}

fn sorted(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths
}

fn a_lock_that_changes_before_the_second_check_is_not_removed() {
    let (env, lock) = root_and_lock_path();
    let other_lock = env.inbox_path("ann.json.lock");
    for path in [&lock, &other_lock] {
        std::fs::create_dir(path).unwrap();
        set_mtime(path, stale_time());
    }
    let removed_locks = std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep_ms(200);
            set_mtime(&lock, SystemTime::now());
            overwrite_in_place(&other_lock.join("pid"), "4242");
            set_mtime(&other_lock, stale_time() - Duration::from_secs(1));
        });
        env.team.remove_stale_locks().unwrap()
    });
    assert_eq!(removed_locks, Vec::<PathBuf>::new());
    assert!(lock.exists() && other_lock.join("pid").exists());
}

#[test]
fn locks_of_a_session_team_are_not_removed() {
    let env = TestRoot::new();
    let name = TeamName::parse("session-1").unwrap();
    let lock = env.path().join("root/teams/session-1/config.json.lock");
    std::fs::create_dir_all(&lock).unwrap();
    overwrite_in_place(&lock.with_file_name("config.json"), config("session-1").to_text());
    set_mtime(&lock, stale_time());
    let error = env.root.team(&name).unwrap().remove_stale_locks().unwrap_err();
    assert!(matches!(error, Error::ReadOnly(_)), "{error}");
    assert!(lock.exists());
}
