//! Senders at both hosts. Each sends numbered messages to all others in turn.

use super::{ANNEX_MEMBERS, HOME_MEMBERS};
use harness::{TestEnv, TwoHosts};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

/// How many messages a sender sends at once.
const BATCH: usize = 6;

/// The lead and a member at the home, and two members at the other host.
const SENDERS: [&str; 4] = ["team-lead", "bob", "ann", "amy"];

/// The foreign writer. Its messages are numbered too.
pub(super) const FOREIGN: &str = "peer";

/// How long all messages may take to arrive.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(120);

/// A message: its sender, its recipient and its text.
pub(super) type NumberedMessage = (&'static str, &'static str, String);

/// The running senders.
pub(super) struct Senders<'s> {
    senders: Vec<(Sender<()>, ScopedJoinHandle<'s, Vec<NumberedMessage>>)>,
    /// How many signals all senders together have not handled yet.
    waiting: Arc<AtomicUsize>,
}

impl<'s> Senders<'s> {
    pub(super) fn start<'e>(scope: &'s Scope<'s, 'e>, hosts: &'e TwoHosts) -> Senders<'s> {
        let waiting = Arc::new(AtomicUsize::new(0));
        let start = |name| {
            let ((signal, signals), waiting) = (channel(), waiting.clone());
            (signal, scope.spawn(move || run_sender(hosts, name, &signals, &waiting)))
        };
        Senders { senders: SENDERS.map(start).into(), waiting }
    }

    /// Lets each sender send [`BATCH`] messages.
    pub(super) fn send_some(&self) {
        self.waiting.fetch_add(self.senders.len(), Ordering::SeqCst);
        self.senders.iter().for_each(|(signal, _)| signal.send(()).unwrap());
    }

    /// Waits until the senders have handled all signals.
    pub(super) fn wait_until_sent(&self, env: &TestEnv) {
        env.wait_until("all messages are sent", || (self.waiting.load(Ordering::SeqCst) == 0).then_some(()));
    }

    /// Ends the senders. Returns what they have sent.
    pub(super) fn finish(self) -> Vec<NumberedMessage> {
        let join = |(signal, sender): (Sender<()>, ScopedJoinHandle<'s, Vec<NumberedMessage>>)| {
            drop(signal);
            sender.join().unwrap()
        };
        self.senders.into_iter().flat_map(join).collect()
    }
}

fn run_sender(
    hosts: &TwoHosts,
    name: &'static str,
    signals: &Receiver<()>,
    waiting: &AtomicUsize,
) -> Vec<NumberedMessage> {
    let env = if ANNEX_MEMBERS.contains(&name) { &hosts.annex } else { &hosts.home };
    let variables = [("TEAMD_TEAM", "survey"), ("TEAMD_MEMBER", name)];
    let variables = if name == "team-lead" { &[][..] } else { &variables };
    let all = ["team-lead"].into_iter().chain(HOME_MEMBERS).chain(ANNEX_MEMBERS);
    let mut recipients = all.filter(|other| *other != name).cycle();
    let mut sent = Vec::new();
    while signals.recv().is_ok() {
        for to in recipients.by_ref().take(BATCH) {
            let text = format!("{name}:{}", sent.len());
            env.teamctl_with(&["-t", "survey", "send", to, &text], variables).expect_success();
            sent.push((name, to, text));
        }
        waiting.fetch_sub(1, Ordering::SeqCst);
    }
    sent
}

/// Waits until all messages have arrived, and checks that each is in its inbox once and in the order of
/// its sender: at the home, and for the members of the other host also there.
pub(super) fn check(hosts: &TwoHosts, sent: &[NumberedMessage]) {
    wait_for_all(&hosts.home, sent, |_| true);
    wait_for_all(&hosts.annex, sent, |owner| ANNEX_MEMBERS.contains(&owner));
    // A message that comes twice would come by now.
    hosts.wait_for_exchange();
    for owner in ["team-lead"].into_iter().chain(HOME_MEMBERS).chain(ANNEX_MEMBERS) {
        check_inbox(&hosts.home, owner, sent);
        if ANNEX_MEMBERS.contains(&owner) {
            check_inbox(&hosts.annex, owner, sent);
        }
    }
}

/// Waits until the inboxes of these owners have as many messages as were sent to them.
fn wait_for_all(env: &TestEnv, sent: &[NumberedMessage], is_checked: impl Fn(&str) -> bool) {
    for (from, owner, _) in sent.iter().filter(|(_, owner, _)| is_checked(owner)) {
        let expected = sent.iter().filter(|(sender, to, _)| (sender, to) == (from, owner)).count();
        let description = format!("the messages of {from} are in the inbox of {owner}");
        env.wait_until_within(ARRIVAL_TIMEOUT, &description, || {
            (numbered_messages(env, owner, from).len() >= expected).then_some(())
        });
    }
}

fn check_inbox(env: &TestEnv, owner: &str, sent: &[NumberedMessage]) {
    for from in SENDERS.into_iter().chain([FOREIGN]) {
        let expected: Vec<String> = sent
            .iter()
            .filter(|(sender, to, _)| (*sender, *to) == (from, owner))
            .map(|(_, _, text)| text.clone())
            .collect();
        assert_eq!(
            numbered_messages(env, owner, from),
            expected,
            "from {from} to {owner}\n{}",
            env.dump_state()
        );
    }
}

/// The texts of the numbered messages, without the messages of teamd about tasks.
fn numbered_messages(env: &TestEnv, owner: &str, from: &str) -> Vec<String> {
    let inbox = env.inbox("survey", owner).into_iter();
    let text = |message: Value| Some(message["text"].as_str()?.to_owned());
    let texts = inbox.filter(|message| message["from"] == from).filter_map(text);
    texts.filter(|text| is_numbered(text)).collect()
}

fn is_numbered(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(_, number)| number.parse::<u64>().is_ok())
}
