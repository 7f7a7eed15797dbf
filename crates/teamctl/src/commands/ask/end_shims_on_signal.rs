//! Ends all shims of this command at SIGINT, SIGTERM or SIGHUP. The command itself does not exit at the
//! signal: it waits for its shims, and reports how each ask has ended.

use client::catch_terminating_signals::call_on_signals;
use protocol::error_kind_and_report::ErrorReport;
use protocol::teamctl_ask_setup_and_record::AskId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::collections::BTreeMap;
use std::process::ChildStdin;
use std::sync::{Arc, Mutex, PoisonError};

/// The open inputs of the shims. A shim whose input is closed ends its program.
#[derive(Debug, Clone, Default)]
pub(super) struct ShimInputs(Arc<Mutex<InputState>>);

#[derive(Debug, Default)]
struct InputState {
    open: BTreeMap<AskId, ChildStdin>,
    is_interrupted: bool,
}

impl ShimInputs {
    /// Catches the signals from now on.
    pub(super) fn install() -> Result<ShimInputs, ErrorReport> {
        let inputs = ShimInputs::default();
        let thread_inputs = inputs.clone();
        call_on_signals(&[SIGINT, SIGTERM, SIGHUP], move || {
            thread_inputs.with_state(|state| {
                state.is_interrupted = true;
                state.open.clear();
            });
        })?;
        Ok(inputs)
    }

    /// Holds the input of a shim until [`ShimInputs::close`] or a signal.
    pub(super) fn keep_open(&self, id: AskId, input: ChildStdin) {
        self.with_state(|state| {
            if !state.is_interrupted {
                state.open.insert(id, input);
            }
        });
    }

    pub(super) fn close(&self, id: &AskId) {
        self.with_state(|state| drop(state.open.remove(id)));
    }

    /// Whether a signal has arrived.
    pub(super) fn is_interrupted(&self) -> bool {
        self.with_state(|state| state.is_interrupted)
    }

    fn with_state<T>(&self, action: impl FnOnce(&mut InputState) -> T) -> T {
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
