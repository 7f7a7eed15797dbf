//! One turn of a teammate, from its first line to the lead's knowledge of its end.

use super::ending::{Outcome, Verdict, outcome, verdict};
use super::host::{CannotStart, Happened, Host, How, TurnEnd};
use super::render::Subject;
use super::{Halt, Job, Over, Teammate};
use crate::here::now;
use protocol::control::Activity;
use protocol::payload::{IdleNotification, IdleReason};
use protocol::task::Task;
use protocol::timestamp::iso8601;

impl<H: Host> Teammate<H> {
    /// From the turn's first line to the lead's knowledge of its end.
    pub(super) fn turn(&mut self, job: Job) -> Result<(), Halt> {
        let began = now();
        self.now.turn_number += 1;
        let mut outcome = self.run(&job)?;
        if outcome.reason == IdleReason::Failed && self.lacks_session(&job.subject, &outcome)? {
            self.host.say("The session of an earlier life failed: once more, with a new one");
            self.program.ended(outcome.reason);
            outcome = self.run(&job)?;
        }
        let handed_in =
            outcome.reason == IdleReason::Available && self.plans() && self.planned(&mut outcome)?;
        self.program.ended(outcome.reason);
        (self.now.pid, self.now.idle_reason) = (None, Some(outcome.reason));
        self.now.session_id = self.program.session();
        let task = match job.task() {
            Some(task) if handed_in => {
                self.carried = Some(task.clone());
                None
            }
            Some(task) => Some((task, self.settle(task, &outcome)?)),
            None => None,
        };
        if !handed_in {
            self.host.say(&last_line(&job.subject, &outcome, task.as_ref().map(|(_, verdict)| verdict)));
        }
        let idle = self.notification(&outcome, task.as_ref(), began);
        self.tell_idle(&idle)?;
        if outcome.reason == IdleReason::Interrupted {
            // Whoever interrupted it looks at once, and is to find it idle.
            self.go_idle();
            self.host.interrupted();
        }
        Ok(())
    }

    /// What a turn in plan mode said is handed in; where it said nothing it has failed.
    fn planned(&mut self, outcome: &mut Outcome) -> Result<bool, Halt> {
        let handed_in = self.hand_in()?;
        if !handed_in {
            let why = "its turn in plan mode said nothing: there is no plan".to_owned();
            *outcome =
                Outcome { reason: IdleReason::Failed, failure: Some(why.clone()), at_length: Some(why) };
        }
        Ok(handed_in)
    }

    /// Whether the turn is to run once more with a new session: what failed may be the old one alone. Not where the
    /// agent came as far as to say something about its task, or is to end.
    fn lacks_session(&mut self, subject: &Subject, outcome: &Outcome) -> Result<bool, Halt> {
        if !self.program.may_lack_its_session() || self.now.shutdown_requested {
            return Ok(false);
        }
        let Subject::Task(task) = subject else { return Ok(true) };
        let now = self.insist(|post| post.task(&task.id))?.flatten();
        Ok(matches!(verdict(now.as_ref(), self.post.me(), outcome), Verdict::Fail(_)))
    }

    /// Runs the turn, and says how it went.
    fn run(&mut self, job: &Job) -> Result<Outcome, Halt> {
        let end = self.process(job)?;
        self.withdraw_questions();
        self.program.tidy();
        self.now.pid = None;
        if let Some(told) = end.used {
            self.now.usage = Some(self.program.used_up(self.now.usage.take(), told));
            // It may be its last, or the one that has used up what there was.
            self.host.tell(&self.now);
        }
        Ok(outcome(&end))
    }

    /// Starts the turn and waits for its end.
    fn process(&mut self, job: &Job) -> Result<TurnEnd, Halt> {
        let about = job.subject.about();
        self.host.say(&format!("── {about}"));
        self.now.since = now();
        (self.now.activity, self.now.summary, self.now.shutdown_requested) = (Activity::Active, about, false);
        let ahead = self.plans().then_some(super::plan::ASKED);
        if ahead.is_some() {
            self.host.listen();
        }
        let work = self.program.work(&job.subject, ahead).map_err(CannotStart::Now);
        let begun = work.and_then(|work| self.host.begin(&work));
        let begun = match begun {
            Err(CannotStart::Ever(why)) => return Err(Halt::Over(Over::NotStarted(why))),
            Err(CannotStart::Now(why)) => Err(why),
            Ok(pid) => Ok(pid),
        };
        self.now.session_id = self.program.session();
        self.now.pid = begun.as_ref().ok().copied();
        self.host.tell(&self.now);
        if let Err(fault) = self.post.mark(job.entry.iter().cloned().collect()) {
            // Marked at a later look; it is not given twice.
            self.complain(&fault);
        }
        match begun {
            Ok(_) => self.until_end(),
            Err(why) => Ok(TurnEnd { how: How::NotRun(why), last: String::new(), used: None }),
        }
    }

    fn until_end(&mut self) -> Result<TurnEnd, Halt> {
        loop {
            match self.host.next(self.ask_again()) {
                Happened::Turn(end) => return Ok(end),
                Happened::End => return Err(Halt::Over(Over::Ended)),
                Happened::Wake => {
                    self.hear_answers();
                    self.glance();
                }
                Happened::Asked(asked) => self.ask(asked),
                Happened::Session(session) => {
                    self.program.told(session);
                    self.now.session_id = self.program.session();
                    self.host.tell(&self.now);
                }
                Happened::Deadline => self.tell_questions(),
            }
        }
    }

    /// In a turn, beside answers to the agent's questions, only a request to shut down counts: it waits for the turn's end, or is refused at once.
    fn glance(&mut self) {
        let looked = if self.program.rejects_while_busy() {
            let busy_with = self.now.summary.split(':').next().unwrap_or_default();
            self.post.reject(&format!("{busy_with} runs")).map(|()| false)
        } else {
            self.post.asked_to_shut_down()
        };
        match looked {
            Ok(asked) if asked != self.now.shutdown_requested => {
                self.now.shutdown_requested = asked;
                self.host.tell(&self.now);
            }
            Ok(_) => {}
            Err(fault) => self.complain(&fault),
        }
    }

    /// Writes down what became of the turn's task, before anybody is told.
    fn settle(&mut self, task: &Task, outcome: &Outcome) -> Result<Verdict, Halt> {
        let now = self.insist(|post| post.task(&task.id))?.flatten();
        let verdict = verdict(now.as_ref(), self.post.me(), outcome);
        let written = match &verdict {
            Verdict::Complete => self.insist(|post| post.complete(&task.id))?.is_some(),
            Verdict::Fail(why) => self.insist(|post| post.fail(&task.id, why))?.is_some(),
            Verdict::Gone => {
                self.post.gave_back(task.id);
                true
            }
            Verdict::Completed | Verdict::Failed(_) => true,
        };
        if !written {
            self.post.not_settled(task.id);
        }
        Ok(verdict)
    }

    fn notification(
        &mut self,
        outcome: &Outcome,
        task: Option<&(&Task, Verdict)>,
        began: u64,
    ) -> IdleNotification {
        let told = task.and_then(|(task, verdict)| Some((task.id, verdict.told()?)));
        let why = told.and_then(|(_, (_, why))| why.map(str::to_owned));
        IdleNotification {
            from: self.post.me().to_string(),
            timestamp: iso8601(now()),
            idle_reason: outcome.reason,
            summary: self.post.letters(began),
            completed_task_id: told.map(|(id, _)| id.to_string()),
            completed_status: told.map(|(_, (status, _))| status.to_owned()),
            failure_reason: outcome.at_length.clone().or(why),
        }
    }
}

/// What ran, and how it ended.
fn last_line(subject: &Subject, outcome: &Outcome, verdict: Option<&Verdict>) -> String {
    let why = outcome.failure.as_deref();
    match (subject, verdict, why) {
        (Subject::Task(task), Some(Verdict::Complete | Verdict::Completed), _) => {
            format!("Task {} is done: {}", task.id, task.subject)
        }
        (Subject::Task(task), Some(Verdict::Fail(why) | Verdict::Failed(why)), _) => {
            format!("Task {} failed ({why}): {}", task.id, task.subject)
        }
        (Subject::Task(task), ..) => format!("Task {} was given back: {}", task.id, task.subject),
        (subject, _, None) => format!("{}: done", subject.about()),
        (subject, _, Some(why)) => format!("{}: failed ({why})", subject.about()),
    }
}
