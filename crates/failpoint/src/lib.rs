//! Failpoints: named places where a test kills this process, stops it, makes it panic, or makes the
//! next system call fail as on a full disk. There is one before and after each change that outlives
//! the process.
//!
//! A release build contains none. A debug build reads the directory in `$TEAMD_FAILPOINTS`: each hit
//! of a failpoint adds a line to its file `hits`; its file `armed` may name the one failpoint that
//! acts (see `directory.rs`).

#[cfg(debug_assertions)]
mod directory;

/// Passes a failpoint. The process may end here.
#[inline(always)]
pub fn hit(name: &'static str) {
    #[cfg(debug_assertions)]
    directory::hit(name, directory::FailpointKind::Plain);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

/// Passes a failpoint before a system call that may fail.
///
/// # Errors
/// `StorageFull` if this failpoint is armed with `error`; never in a release build.
#[inline(always)]
pub fn hit_before_call(name: &'static str) -> std::io::Result<()> {
    #[cfg(debug_assertions)]
    return directory::hit(name, directory::FailpointKind::BeforeCall)
        .map_or(Ok(()), |full| Err(full.into()));
    #[cfg(not(debug_assertions))]
    {
        let _ = name;
        Ok(())
    }
}
