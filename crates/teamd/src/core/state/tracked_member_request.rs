//! An open request of a member, and whether it waits for an answer or is answered by the policy.

use protocol::policy::AnsweredBy;
use store::OpenRequest;

/// An open request, and what is done about it.
#[derive(Debug)]
pub(crate) struct TrackedRequest {
    pub(crate) request: Box<OpenRequest>,
    pub(crate) stage: RequestStage,
}

impl TrackedRequest {
    pub(crate) fn deadline(&self) -> Option<u64> {
        match self.stage {
            RequestStage::Waiting { deadline } => deadline,
            RequestStage::Answering(_) | RequestStage::WriteFailed => None,
        }
    }
}

/// What is done about an open request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestStage {
    /// The request waits for an answer of the lead or a person. At the time `deadline`, in
    /// milliseconds on the monotonic clock, the policy answers instead. `None`: the policy never
    /// answers.
    Waiting { deadline: Option<u64> },
    /// The files thread writes the policy's answer.
    Answering(GivenAnswer),
    /// The policy's answer could not be written. The next request scan tries again.
    WriteFailed,
}

/// An answer, and who gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GivenAnswer {
    pub(crate) by: AnsweredBy,
    pub(crate) is_approved: bool,
}
