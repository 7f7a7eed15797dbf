//! Chooses the implementation of [`System`] that this process uses: that of the operating system, or POSIX.

use crate::system_trait::System;

#[cfg(target_os = "linux")]
const NATIVE: &dyn System = &crate::linux::Linux;
#[cfg(any(target_os = "macos", target_os = "freebsd"))]
const NATIVE: &dyn System = &crate::bsd::Bsd;
#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "freebsd")))]
const NATIVE: &dyn System = &crate::posix::Posix;

/// The implementation that this process uses.
pub fn system() -> &'static dyn System {
    if is_posix_selected() { &crate::posix::Posix } else { NATIVE }
}

/// Whether `TEST_PLATFORM=posix` selects the portable implementation, which only debug builds allow.
#[cfg(debug_assertions)]
fn is_posix_selected() -> bool {
    static SELECTED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *SELECTED.get_or_init(|| std::env::var_os("TEST_PLATFORM").is_some_and(|name| name == "posix"))
}

#[cfg(not(debug_assertions))]
const fn is_posix_selected() -> bool {
    false
}
