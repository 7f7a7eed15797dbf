//! Files that can't be written or read for a while: what a teammate waits for, and what it does meanwhile.

use super::{Halt, Happened, Host, Over, Post, Teammate};
use protocol::control::Activity;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::message::InboxEntry;
use protocol::payload::{IdleNotification, ShutdownRequest};
use std::time::{Duration, Instant};

/// After a failure with the files it looks again at the next wake, or after this: the wake may have been the last.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(5);

impl<H: Host> Teammate<H> {
    /// One turn's notification. A damaged inbox of the lead may stay so for ever, and keeps nobody from the next item.
    pub(super) fn tell_idle(&mut self, idle: &IdleNotification) -> Result<(), Halt> {
        let mut damage = None;
        self.insist(|post| match post.tell_idle(idle) {
            Err(fault) if fault.kind == ErrorKind::InvalidData => {
                post.tell_idle_later(idle);
                damage = Some(fault);
                Ok(())
            }
            told => told,
        })?;
        damage.iter().for_each(|fault| self.complain(fault));
        Ok(())
    }

    /// Until it is done, or can't be for a reason that waiting does not mend: that is said, and gives nothing.
    pub(super) fn insist<T>(
        &mut self,
        mut act: impl FnMut(&mut Post) -> Result<T, ErrorReport>,
    ) -> Result<Option<T>, Halt> {
        let mut waited = false;
        loop {
            match self.post.see_team().and_then(|()| act(&mut self.post)) {
                Ok(done) => return Ok(Some(done)),
                Err(fault)
                    if matches!(fault.kind, ErrorKind::Io | ErrorKind::InvalidData | ErrorKind::Timeout) =>
                {
                    self.complain(&fault);
                    if waited {
                        self.shut_down_if_asked()?;
                    }
                    self.doze()?;
                    waited = true;
                }
                Err(fault) => {
                    self.complain(&fault);
                    return Ok(None);
                }
            }
        }
    }

    /// It may wait for long: who asks it to end is answered, if that much can be written.
    fn shut_down_if_asked(&mut self) -> Result<(), Halt> {
        let answered = match self.post.shutdown() {
            Ok(Some((request, asked))) => self.approve(request, asked),
            Ok(None) => Ok(()),
            Err(fault) => Err(Halt::Fault(fault)),
        };
        match answered {
            Err(Halt::Fault(fault)) => {
                self.complain(&fault);
                Ok(())
            }
            answered => answered,
        }
    }

    /// Always the end, unless it can't be said.
    pub(super) fn approve(&mut self, request: ShutdownRequest, asked: Vec<InboxEntry>) -> Result<(), Halt> {
        self.post.approve(request, asked)?;
        self.host.say("The shutdown is approved.");
        Err(Halt::Over(Over::Approved))
    }

    pub(super) fn wait_out(&mut self, fault: &ErrorReport) -> Result<(), Over> {
        self.complain(fault);
        if self.now.activity == Activity::Active {
            self.go_idle();
        }
        self.doze()
    }

    fn doze(&mut self) -> Result<(), Over> {
        match self.host.next(Some(Instant::now() + LOOK_AGAIN)) {
            Happened::End => Err(Over::Ended),
            _ => Ok(()),
        }
    }

    /// Once, however often it happens.
    pub(super) fn complain(&mut self, fault: &ErrorReport) {
        if self.complaint.as_ref() != Some(&fault.message) {
            self.host.say(&format!("teamctl: {}", fault.message));
            self.complaint = Some(fault.message.clone());
        }
    }
}
