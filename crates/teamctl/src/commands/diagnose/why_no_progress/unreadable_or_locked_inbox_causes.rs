//! Causes in an inbox: it cannot be read, or its lock keeps all programs from writing.

use super::cause::Cause;
use super::cause_with_evidence_and_commands::Diagnosis;
use super::format_evidence_lines::with_time;
use super::member_evidence::{InboxState, MemberEvidence};
use super::suggested_next_commands::quoted_path;
use store::{LockInfo, LockState};

/// How long a lock may be held, in ms, before `why` reports the lock as a cause. Usually a lock is
/// held for some milliseconds.
const LONG_LOCK_MS: u64 = 1_000;

pub(super) fn inbox_causes(evidence: &MemberEvidence, inbox: &InboxState) -> Vec<Diagnosis> {
    damage_cause(evidence, inbox).into_iter().chain(lock_cause(evidence, inbox)).collect()
}

fn damage_cause(evidence: &MemberEvidence, inbox: &InboxState) -> Option<Diagnosis> {
    let damage = inbox.damage.clone()?;
    let sentence = format!("The inbox of {} can't be read.", inbox.owner);
    let diagnosis = Diagnosis::new(Cause::InboxDamaged, sentence);
    Some(diagnosis.with_evidence([damage]).with_next([evidence.commands.command(&["doctor"])]))
}

fn lock_cause(evidence: &MemberEvidence, inbox: &InboxState) -> Option<Diagnosis> {
    let owner = &inbox.owner;
    let diagnosis = match &inbox.lock_state {
        LockState::Free => return None,
        LockState::NotALock(path) => {
            let sentence = format!(
                "No program can write to the inbox of {owner}: the file at the path of its lock is not a lock."
            );
            Diagnosis::new(Cause::InboxLockBlocked, sentence)
                .with_evidence([path.display().to_string()])
                .with_next([format!("ls -la {}", quoted_path(path))])
        }
        LockState::Stale(lock) => {
            let sentence = format!("The inbox of {owner} is locked by a process that is dead.");
            Diagnosis::new(Cause::InboxLockStale, sentence)
                .with_evidence([lock_line(lock, evidence)])
                .with_next([evidence.commands.command(&["doctor", "--fix"])])
        }
        LockState::Held(lock) if evidence.now.saturating_sub(lock.touched_at) < LONG_LOCK_MS => return None,
        LockState::Held(lock) => {
            let holder = inbox.lock_holder.as_ref();
            let inspect = holder.map_or_else(
                || evidence.commands.command(&["doctor"]),
                |holder| format!("ps -o pid,stat,etime,args -p {}", holder.pid),
            );
            let sentence = format!("The inbox of {owner} is locked by another process.");
            Diagnosis::new(Cause::InboxLocked, sentence)
                .with_evidence([Some(lock_line(lock, evidence)), holder.map(|holder| holder.description())])
                .with_next([inspect])
        }
    };
    Some(diagnosis)
}

fn lock_line(lock: &LockInfo, evidence: &MemberEvidence) -> String {
    with_time(&format!("{}, touched", lock.path.display()), lock.touched_at, evidence)
}
