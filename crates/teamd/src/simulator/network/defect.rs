//! Defects that a simulation can have built in, to show that its checks find them.

/// One defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Defect {
    /// The links carry an item without effect in place of some messages.
    LosesMessages,
    /// The home stores a received message twice.
    DoublesMessages,
    /// Two messages that wait for a link change places.
    ReordersMessages,
    /// Members at an annex begin a task before the home has confirmed their claim.
    BeginsUnconfirmedTasks,
    /// The home takes members for ended when it loses the contact with their host.
    EndsMembersWithoutContact,
    /// An annex runs agents of which its daemon does not know.
    RunsUnregisteredAgents,
    /// An annex does not store some tasks of the home.
    ForgetsTasks,
    /// The links carry an item without effect in place of some events.
    LosesEvents,
}

/// Each defect, with a text in the failure that it must cause.
pub(super) const DEFECTS: [(Defect, &str); 8] = [
    (Defect::LosesMessages, "messages from"),
    (Defect::DoublesMessages, "messages from"),
    (Defect::ReordersMessages, "messages from"),
    (Defect::BeginsUnconfirmedTasks, "was begun by"),
    (Defect::EndsMembersWithoutContact, "without contact"),
    (Defect::RunsUnregisteredAgents, "is not registered"),
    (Defect::ForgetsTasks, "the tasks of"),
    (Defect::LosesEvents, "the events of"),
];
