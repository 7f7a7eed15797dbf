//! The loop until there is a session.

use super::ended::Ended;
use crate::args::Args;
use crate::event::{Event, Queue};
use crate::open::{Session, open};
use crate::show::Show;
use crate::spent::Spent;
use agent_client_protocol::Agent;
use agent_client_protocol::v1::ConnectionTo;
use protocol::driver_protocol::ToDriver;
use std::io::Stdout;

/// The session; none where join has left. What join says meanwhile is for later; what the agent says is of an earlier
/// life, and was seen in that; but what that had cost.
pub(super) async fn opened(
    agent: &ConnectionTo<Agent>,
    args: &Args,
    queue: &mut Queue,
    (early, spent): (&mut Vec<ToDriver>, &mut Spent),
    show: &mut Show<Stdout>,
) -> Result<Option<Session>, String> {
    let name = args.program();
    let mut opening = std::pin::pin!(open(agent, args));
    let deadline = tokio::time::sleep(args.patience);
    let mut deadline = std::pin::pin!(deadline);
    let mut ended = Ended::default();
    loop {
        let event = tokio::select! {
            biased;
            opened = &mut opening, if !ended.any() => return match opened {
                Ok(session) => {
                    // What is in the queue by now came before the session did.
                    while let Ok(event) = queue.try_recv() {
                        before(event, (early, spent), &mut ended, show);
                    }
                    Ok(Some(session))
                }
                Err(_) if ended.any() => Err(ended.in_words(&name)),
                Err(why) => Err(format!("{name} {why}")),
            },
            event = ended.next(queue) => event,
            () = &mut deadline => {
                let seconds = args.patience.as_secs();
                return Err(format!("{name} opened no session within {seconds} s: does it speak the protocol?"));
            }
        };
        match event {
            None => return Err(ended.in_words(&name)),
            Some(Event::HungUp(_)) => return Ok(None),
            Some(event) => before(event, (early, spent), &mut ended, show),
        }
    }
}

/// An event before there is a session.
fn before(
    event: Event,
    (early, spent): (&mut Vec<ToDriver>, &mut Spent),
    ended: &mut Ended,
    show: &mut Show<Stdout>,
) {
    match event {
        Event::Word(word) => early.push(word),
        Event::Update(update) => spent.update(&update),
        Event::Stray(line) => show.line(&line),
        Event::Closed => ended.closed(),
        Event::Exited(how) => ended.exited(how),
        // A responder that is dropped answers with an error.
        _ => {}
    }
}
