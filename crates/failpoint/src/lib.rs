//! Failpoints: named places where a test makes a process crash, stop or fail. One is before and one
//! after each change that outlives the process.
//!
//! A failpoint can kill the process, stop it, make it panic, or make the next system call fail as
//! on a full disk. A release build has no failpoints. A debug build uses the directory in
//! `$TEAMD_FAILPOINTS`. Each hit of a failpoint adds a line to the file `hits` there. The file
//! `armed` can name one failpoint that acts (see `directory.rs`).

#[cfg(debug_assertions)]
mod directory;

/// Records a hit of the failpoint `name`. If the failpoint is armed, this call can end or stop the
/// process.
#[inline(always)]
pub fn hit(name: &'static str) {
    #[cfg(debug_assertions)]
    directory::hit(name, directory::FailpointKind::Plain);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

/// Records a hit of the failpoint `name`, which stands before a system call that can fail.
///
/// # Errors
///
/// `StorageFull` if the failpoint is armed with `error`. Never in a release build.
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
