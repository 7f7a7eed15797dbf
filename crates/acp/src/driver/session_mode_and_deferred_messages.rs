//! The session's mode, and the messages of the shim that are held back while the mode changes.

use protocol::acp_driver_protocol::ToDriver;

/// State of the session's mode. Modes are named by the program's own mode ids.
#[derive(Debug)]
pub(super) struct ModeState {
    /// The mode that was set last. `None` is the program's default.
    current: Option<String>,
    /// The mode for plans. `None` if the program has none.
    plan_mode: Option<String>,
    /// Why the program could not be put into the plan mode, as a text for people. Until a later
    /// mode change succeeds, no turn starts, because the program could write files in its present
    /// mode. `None` if turns may start.
    plan_mode_error: Option<String>,
    /// Messages of the shim that arrived during a mode change: prompts and further mode changes.
    /// They are handled after the change, because no turn may start in the old mode. `None` if no
    /// mode change is pending.
    deferred: Option<Vec<ToDriver>>,
}

impl ModeState {
    pub(super) fn new(current: Option<String>, plan_mode: Option<String>) -> ModeState {
        ModeState { current, plan_mode, plan_mode_error: None, deferred: None }
    }

    pub(super) fn current(&self) -> Option<&str> {
        self.current.as_deref()
    }

    pub(super) fn is_plan_mode(&self) -> bool {
        self.current.is_some() && self.current == self.plan_mode
    }

    /// Why no turn may start. `None` if a turn may start.
    pub(super) fn plan_mode_error(&self) -> Option<&str> {
        self.plan_mode_error.as_deref()
    }

    /// If the program has left the plan mode by itself, and is now in `mode`, returns the id of the
    /// plan mode. The driver then sets the plan mode again, because the agent may leave this mode
    /// only after its plan is approved. `None` if the driver need not set a mode.
    pub(super) fn mode_to_restore(&self, mode: &str) -> Option<&str> {
        self.current().filter(|current| self.is_plan_mode() && self.deferred.is_none() && *current != mode)
    }

    /// Keeps a prompt or a mode change for later if a change is pending. Returns any other message.
    pub(super) fn defer(&mut self, message: ToDriver) -> Option<ToDriver> {
        match (&message, &mut self.deferred) {
            (ToDriver::Prompt { .. } | ToDriver::SetMode { .. }, Some(deferred)) => {
                deferred.push(message);
                None
            }
            _ => Some(message),
        }
    }

    /// Drops the prompts that wait for the end of a mode change. Returns how many were dropped.
    pub(super) fn drop_deferred_prompts(&mut self) -> usize {
        let deferred = self.deferred.iter_mut();
        let prompts = deferred
            .flat_map(|waiting| waiting.extract_if(.., |message| matches!(message, ToDriver::Prompt { .. })));
        prompts.count()
    }

    /// Starts a mode change. The change is pending until [`ModeState::finish_change`].
    pub(super) fn start_change(&mut self) {
        self.deferred.get_or_insert_default();
    }

    /// Takes the result of a change to `mode`. Returns the messages that waited for it.
    pub(super) fn finish_change(&mut self, mode: String, result: Result<(), &str>) -> Vec<ToDriver> {
        match result {
            Ok(()) => {
                self.plan_mode_error = None;
                self.current = Some(mode);
            }
            Err(error) if Some(&mode) == self.plan_mode.as_ref() => {
                self.plan_mode_error = Some(error.to_owned());
            }
            Err(_) => {}
        }
        self.deferred.take().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt() -> ToDriver {
        ToDriver::Prompt { text: "go".to_owned(), prefix: String::new() }
    }

    fn plan_mode() -> ModeState {
        ModeState::new(Some("plan".to_owned()), Some("plan".to_owned()))
    }

    #[test]
    fn prompts_and_modes_wait_for_a_change() {
        let mut mode = plan_mode();
        assert!(mode.defer(prompt()).is_some());
        mode.start_change();
        assert!(mode.defer(prompt()).is_none() && mode.defer(ToDriver::Cancel).is_some());
        assert!(mode.defer(ToDriver::SetMode { id: "plan".to_owned() }).is_none());
        assert_eq!(mode.drop_deferred_prompts(), 1);
        assert_eq!(mode.finish_change("auto".to_owned(), Ok(())).len(), 1);
        assert_eq!((mode.current(), mode.is_plan_mode()), (Some("auto"), false));
        assert_eq!(mode.drop_deferred_prompts(), 0);
    }

    #[test]
    fn failed_change_to_the_plan_mode_prevents_turns() {
        let mut mode = ModeState::new(None, Some("plan".to_owned()));
        let mut change = |id: &str, result| {
            mode.start_change();
            mode.finish_change(id.to_owned(), result);
            mode.plan_mode_error().map(str::to_owned)
        };
        assert_eq!(change("auto", Err("no")), None);
        assert_eq!(change("plan", Err("no")).as_deref(), Some("no"));
        assert_eq!(
            change("auto", Err("not now")).as_deref(),
            Some("no"),
            "the program is still not in the plan mode"
        );
        assert_eq!(change("plan", Ok(())), None);
    }

    #[test]
    fn only_the_plan_mode_is_restored() {
        let mut mode = plan_mode();
        assert_eq!((mode.mode_to_restore("auto"), mode.mode_to_restore("plan")), (Some("plan"), None));
        mode.start_change();
        assert_eq!(mode.mode_to_restore("auto"), None, "a change is pending");
        mode.finish_change("auto".to_owned(), Ok(()));
        assert_eq!(mode.mode_to_restore("default"), None);
    }
}
