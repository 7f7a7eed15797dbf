//! Failpoints: named places in the code where a test makes a process crash, stop or fail. Each
//! change that outlives the process (such as a file write) has one failpoint before it and one
//! after it.
//!
//! The action of a failpoint kills the process, stops it, makes it panic, or makes the next system
//! call fail as on a full disk. A release build has no failpoints. A debug build uses the directory
//! that `$TEAMD_FAILPOINTS` names. Each time a process reaches a failpoint, it adds a line to the
//! file `hits` in that directory. The file `armed` can name one failpoint and its action (see
//! `hit_failpoint.rs`).

#[cfg(debug_assertions)]
mod hit_failpoint;

/// Records that the process has reached the failpoint `name`. If a test has armed this failpoint,
/// this function can end or stop the process.
#[inline(always)]
pub fn hit(name: &'static str) {
    #[cfg(debug_assertions)]
    hit_failpoint::hit(name, hit_failpoint::FailpointKind::Plain);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

/// Records that the process has reached the failpoint `name`, which stands before a system call
/// that can fail.
///
/// # Errors
///
/// `StorageFull` if a test has armed the failpoint with the action `error`. A release build never
/// returns an error.
#[inline(always)]
pub fn hit_before_call(name: &'static str) -> std::io::Result<()> {
    #[cfg(debug_assertions)]
    return hit_failpoint::hit(name, hit_failpoint::FailpointKind::BeforeCall)
        .map_or(Ok(()), |full| Err(full.into()));
    #[cfg(not(debug_assertions))]
    {
        let _ = name;
        Ok(())
    }
}
