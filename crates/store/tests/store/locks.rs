//! Locks, and other things at the path of a lock. These tests take seconds, because they test
//! timeouts.

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

/// Runs all cases at the same time, because most of them wait for twelve seconds.
#[test]
fn no_foreign_lock_or_file_is_removed() {
    let plants = [
        a_stale_lock_is_taken_over_at_the_second_check,
        the_lock_of_a_dead_teamd_program_is_taken_over_at_once,
        the_lock_of_a_live_teamd_program_is_waited_for,
        a_teamd_program_that_was_stopped_loses_its_lock,
        a_teamd_program_that_was_stopped_before_the_sticky_bit_loses_its_lock,
        eight_processes_that_find_a_dead_holders_lock_all_get_it,
        a_fresh_lock_is_waited_for,
        a_lock_that_is_refreshed_is_not_taken_over,
        a_lock_with_a_future_timestamp_is_watched_for_ten_seconds,
        a_file_at_the_locks_path_is_never_removed,
        a_link_at_the_locks_path_is_never_removed,
        a_lock_directory_with_content_is_never_removed,
        eight_processes_that_find_a_stale_lock_all_get_it,
        only_stale_locks_are_removed,
        a_lock_that_changes_before_the_second_check_is_not_removed,
    ];
    std::thread::scope(|scope| plants.into_iter().for_each(|plant| drop(scope.spawn(plant))));
}

fn plant_lock() -> (TestRoot, PathBuf) {
    let env = TestRoot::new();
    let lock = env.inbox_path("bob.json.lock");
    (env, lock)
}

fn send(env: &TestRoot) -> (Result<(), Error>, Duration) {
    let start = Instant::now();
    (env.team.inbox(&agent("bob")).append(&message("x")), start.elapsed())
}

fn a_stale_lock_is_taken_over_at_the_second_check() {
    let (env, lock) = plant_lock();
    std::fs::create_dir(&lock).unwrap();
    set_mtime(&lock, SystemTime::now() - Duration::from_secs(12));
    let (sent, took) = send(&env);
    sent.unwrap();
    assert!(took > Duration::from_millis(400) && took < Duration::from_secs(3), "{took:?}");
    assert!(!lock.exists());
}

/// Sets the sticky bit of a lock and takes no flock, so that the lock looks like one of a killed
/// holder.
fn set_sticky(lock: &Path) {
    std::fs::create_dir(lock).unwrap();
    std::fs::set_permissions(lock, Permissions::from_mode(0o1700)).unwrap();
}

fn the_lock_of_a_dead_teamd_program_is_taken_over_at_once() {
    let (env, lock) = plant_lock();
    for ahead in [0, 3600] {
        set_sticky(&lock);
        set_mtime(&lock, SystemTime::now() + Duration::from_secs(ahead));
        let (sent, took) = send(&env);
        sent.unwrap();
        assert!(took < Duration::from_millis(400), "{took:?}: no second look");
        assert_eq!(list_dir(&env.inbox_path("")), [env.inbox_path("bob.json")]);
    }
    set_sticky(&lock);
    assert_eq!(env.team.remove_stale_locks().unwrap(), [lock]);
}

fn the_lock_of_a_live_teamd_program_is_waited_for() {
    let (env, lock) = plant_lock();
    set_sticky(&lock);
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
        let (sent, took) = send(&env);
        sent.unwrap();
        assert!(took >= Duration::from_millis(900) && took < Duration::from_secs(5), "{took:?}");
    });
}

fn a_teamd_program_that_was_stopped_loses_its_lock() {
    let (env, lock) = plant_lock();
    set_sticky(&lock);
    let flock = File::open(&lock).unwrap();
    flock.try_lock().unwrap();
    set_mtime(&lock, SystemTime::now() - Duration::from_secs(12));
    let (sent, took) = send(&env);
    sent.unwrap();
    assert!(took > Duration::from_millis(400) && took < Duration::from_secs(3), "{took:?}");
}

fn a_teamd_program_that_was_stopped_before_the_sticky_bit_loses_its_lock() {
    let (env, lock) = plant_lock();
    std::fs::create_dir(&lock).unwrap();
    let flock = File::open(&lock).unwrap();
    flock.try_lock().unwrap();
    set_mtime(&lock, stale_time());
    let (sent, took) = send(&env);
    sent.unwrap();
    assert!(took >= Duration::from_secs(10), "{took:?}: it might be taking the lock away just now");
    assert_eq!(list_dir(&env.inbox_path("")), [env.inbox_path("bob.json")]);
}

fn eight_processes_that_find_a_dead_holders_lock_all_get_it() {
    assert_eight_senders_get_the_lock(30, set_sticky);
}

/// Eight senders in each round. They start a moment apart, so that some check a lock that another
/// has just taken over.
fn assert_eight_senders_get_the_lock(rounds: usize, plant: fn(&Path)) {
    let (env, lock) = plant_lock();
    for round in 1..=rounds {
        plant(&lock);
        std::thread::scope(|scope| {
            for nth in 0..8 {
                let env = &env;
                scope.spawn(move || {
                    sleep_ms(nth * (round as u64 % 4));
                    env.reopen_team().inbox(&agent("bob")).append(&message("x")).unwrap();
                });
            }
        });
        assert_eq!(env.team.inbox(&agent("bob")).read().unwrap().len(), 8 * round);
        assert_eq!(list_dir(&env.inbox_path("")), [env.inbox_path("bob.json")], "no lock remains");
    }
}

fn a_fresh_lock_is_waited_for() {
    let (env, lock) = plant_lock();
    std::fs::create_dir(&lock).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep_ms(1000);
            std::fs::remove_dir(&lock).unwrap();
        });
        let (sent, took) = send(&env);
        sent.unwrap();
        assert!(took >= Duration::from_millis(900), "{took:?}");
    });
}

fn a_lock_that_is_refreshed_is_not_taken_over() {
    let (env, lock) = plant_lock();
    std::fs::create_dir(&lock).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..14 {
                set_mtime(&lock, SystemTime::now());
                sleep_ms(1000);
            }
        });
        let (sent, _) = send(&env);
        let error = sent.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(error.to_string().contains("bob.json.lock: another program holds it"), "{error}");
        assert!(lock.exists());
    });
}

fn a_lock_with_a_future_timestamp_is_watched_for_ten_seconds() {
    let (env, lock) = plant_lock();
    std::fs::create_dir(&lock).unwrap();
    set_mtime(&lock, SystemTime::now() + Duration::from_secs(3600));
    let (sent, took) = send(&env);
    sent.unwrap();
    assert!(took >= Duration::from_secs(10), "{took:?}");
}

fn a_file_at_the_locks_path_is_never_removed() {
    let (env, lock) = plant_lock();
    overwrite_in_place(&lock, "4242");
    set_mtime(&lock, SystemTime::now() - Duration::from_secs(60));
    let (sent, _) = send(&env);
    assert!(sent.unwrap_err().to_string().contains("no directory"));
    assert_eq!(std::fs::read(&lock).unwrap(), b"4242");
}

fn a_link_at_the_locks_path_is_never_removed() {
    let (env, lock) = plant_lock();
    let elsewhere = env.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &lock).unwrap();
    let (sent, _) = send(&env);
    assert!(matches!(sent, Err(Error::Locked { .. })));
    assert!(lock.is_symlink() && elsewhere.exists());
}

fn a_lock_directory_with_content_is_never_removed() {
    let (env, lock) = plant_lock();
    std::fs::create_dir(&lock).unwrap();
    overwrite_in_place(&lock.join("pid"), "4242");
    set_mtime(&lock, SystemTime::now() - Duration::from_secs(60));
    let (sent, _) = send(&env);
    assert!(sent.unwrap_err().to_string().contains("something in it"));
    assert!(lock.join("pid").exists());
}

fn eight_processes_that_find_a_stale_lock_all_get_it() {
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
    // No program of teamd takes the last three locks, and their owners are unknown.
    let kept = ["fresh.json.lock", "full.json.lock", "bob.lock", ".x.json.lock", "notes"];
    let kept = kept.map(|name| env.inbox_path(name));
    stale.iter().chain(&kept).for_each(|path| std::fs::create_dir(path).unwrap());
    overwrite_in_place(&kept[1].join("pid"), "4242");
    let (file, link) = (env.inbox_path("file.json.lock"), env.inbox_path("link.json.lock"));
    overwrite_in_place(&file, "4242");
    symlink(&kept[4], &link).unwrap();
    let long_ago = TimeSpec::new(0, 0);
    utimensat(AT_FDCWD, &link, &long_ago, &long_ago, UtimensatFlags::NoFollowSymlink).unwrap();
    stale.iter().chain(&kept[1..]).chain([&file]).for_each(|path| set_mtime(path, stale_time()));
    let (before, start) = (list_dir(&env.inbox_path("")), Instant::now());

    let released = env.team.remove_stale_locks().unwrap();
    let took = start.elapsed();

    assert!(took >= Duration::from_millis(500) && took < Duration::from_secs(3), "{took:?}");
    assert_eq!(sorted(released), sorted(stale.to_vec()));
    let left: Vec<PathBuf> = before.into_iter().filter(|path| !stale.contains(path)).collect();
    assert_eq!(list_dir(&env.inbox_path("")), left, "no file is moved or created");
    assert!(stale.iter().all(|path| !path.exists()) && kept[1].join("pid").exists());
    let start = Instant::now();
    assert_eq!(env.team.remove_stale_locks().unwrap(), Vec::<PathBuf>::new());
    assert!(start.elapsed() < Duration::from_millis(450), "a held lock is not waited for");
}

fn sorted(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths
}

fn a_lock_that_changes_before_the_second_check_is_not_removed() {
    let (env, lock) = plant_lock();
    let inside = env.inbox_path("ann.json.lock");
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
        env.team.remove_stale_locks().unwrap()
    });
    assert_eq!(released, Vec::<PathBuf>::new());
    assert!(lock.exists() && inside.join("pid").exists());
}

#[test]
fn locks_of_a_session_team_are_not_removed() {
    let env = TestRoot::new();
    let name = TeamName::parse("session-1").unwrap();
    let lock = env.path().join("root/teams/session-1/config.json.lock");
    std::fs::create_dir_all(&lock).unwrap();
    overwrite_in_place(&lock.with_file_name("config.json"), config("session-1").to_text());
    set_mtime(&lock, stale_time());
    let refused = env.root.team(&name).unwrap().remove_stale_locks().unwrap_err();
    assert!(matches!(refused, Error::ReadOnly(_)), "{refused}");
    assert!(lock.exists());
}
