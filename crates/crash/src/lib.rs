//! Crash points: places where a trial kills this process, stops it, has it panic, or lets the next call fail as on a full
//! disk. They stand wherever something is about to outlive the process, or just has.
//!
//! Nothing is left of them in a release. A debug build looks for `$TEAMD_CRASH`, a directory: every point that any process
//! of ours passes adds a line to its file `passed`; its file `order` may name the one that acts (see `order.rs`).

#[cfg(debug_assertions)]
mod order;

/// A place where this process may end.
#[inline(always)]
pub fn point(name: &'static str) {
    #[cfg(debug_assertions)]
    order::pass(name, order::Place::Plain);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

/// The same ahead of a call that may fail.
///
/// # Errors
/// `StorageFull` where a trial wants it so; never in a release.
#[inline(always)]
pub fn before_call(name: &'static str) -> std::io::Result<()> {
    #[cfg(debug_assertions)]
    return order::pass(name, order::Place::Call).map_or(Ok(()), |full| Err(full.into()));
    #[cfg(not(debug_assertions))]
    {
        let _ = name;
        Ok(())
    }
}
