//! A call control that watches the platform it serves.
//!
//! It passes every question on to another control and keeps a second account of what a platform owes its control
//! ([`crate::call_control`]). Whatever does not add up is noted as one sentence; the account is closed with
//! [`CheckedCalls::finish`]. Any driver can run behind it, in tests and in trials on real machines.

use std::collections::BTreeMap;

use crate::call::{CallId, CallView, NodeId, RunningCall};
use crate::call_control::{
    CallClose, CallControl, CallHints, GrantChange, Look, NodeOffer, Resized, Start,
};
use crate::call_safeguard::CallPlan;
use crate::platform::Refusal;
use crate::time::{Duration, Timestamp};
use crate::units::Allocation;

/// Problems beyond this number are counted but not kept.
const MOST_PROBLEMS: usize = 20;

/// What passed through a [`CheckedCalls`]. Every start is measured or lost in the end, every change answered,
/// superseded or lapsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTally {
    /// Attempts that were started.
    pub starts: u64,
    /// Of these, closed with an outcome.
    pub measured: u64,
    /// Of these, closed without one.
    pub lost: u64,
    /// Looks at running calls.
    pub looks: u64,
    /// Changes that were asked for.
    pub changes: u64,
    /// Of these, answered.
    pub answered: u64,
    /// Answers that were not what was asked.
    pub refused: u64,
    /// Changes that a later one replaced.
    pub superseded: u64,
    /// Changes whose call ended before the answer.
    pub lapsed: u64,
}

impl CallTally {
    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            starts: self.starts + other.starts,
            measured: self.measured + other.measured,
            lost: self.lost + other.lost,
            looks: self.looks + other.looks,
            changes: self.changes + other.changes,
            answered: self.answered + other.answered,
            refused: self.refused + other.refused,
            superseded: self.superseded + other.superseded,
            lapsed: self.lapsed + other.lapsed,
        }
    }
}

/// A call between its start and its close.
#[derive(Clone, Debug)]
struct Open {
    node: NodeId,
    in_force: Allocation,
    /// What is in force for certain: while a change is under way, the less of what was and what is to be.
    certain: Allocation,
    /// The change under way: what was asked.
    asked: Option<Allocation>,
    /// What was asked by changes that were replaced; each may still be answered, once.
    superseded: Vec<Allocation>,
    /// When the last look was, if there was one, and how long after it or after the start the next may come.
    looked_at: Option<Timestamp>,
    look_after: Option<Duration>,
}

/// Passes everything on to `inner` and checks the platform.
#[derive(Debug)]
pub struct CheckedCalls<C> {
    inner: C,
    /// The most that may be in force on one node.
    node_limit: Allocation,
    open: BTreeMap<CallId, Open>,
    /// What is in force on each node for certain.
    on_nodes: BTreeMap<NodeId, Allocation>,
    tally: CallTally,
    problems: Vec<String>,
    problem_count: u64,
}

impl<C: CallControl> CheckedCalls<C> {
    /// Watches a platform whose nodes may each grant up to `node_limit`.
    pub fn new(inner: C, node_limit: Allocation) -> Self {
        Self {
            inner,
            node_limit,
            open: BTreeMap::new(),
            on_nodes: BTreeMap::new(),
            tally: CallTally::default(),
            problems: Vec::new(),
            problem_count: 0,
        }
    }

    /// The control behind it.
    pub fn inner(&self) -> &C {
        &self.inner
    }

    /// Calls that were started and not closed, with the change each waits for, if any.
    pub fn open(&self) -> impl Iterator<Item = (CallId, Option<Allocation>)> {
        self.open.iter().map(|(id, call)| (*id, call.asked))
    }

    /// What the platform has in force for an open call, as far as it said.
    pub fn in_force(&self, call: CallId) -> Option<Allocation> {
        self.open.get(&call).map(|call| call.in_force)
    }

    /// Closes the account: all calls must have ended. Returns what passed, or every problem that was found.
    pub fn finish(&mut self) -> Result<CallTally, String> {
        let left: Vec<u64> = self.open.keys().take(5).map(|id| id.0).collect();
        if !left.is_empty() {
            let count = self.open.len();
            self.note(format!("{count} calls were never closed, the first of them {left:?}"));
        }
        let CallTally { starts, measured, lost, changes, answered, superseded, lapsed, .. } =
            self.tally;
        if self.problems.is_empty() {
            debug_assert!(starts == measured + lost && changes == answered + superseded + lapsed);
            return Ok(self.tally);
        }
        let more = self.problem_count - self.problems.len() as u64;
        Err(format!("{}\nand {more} more", self.problems.join("\n")))
    }

    #[cold]
    fn note(&mut self, problem: String) {
        self.problem_count += 1;
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(problem);
        }
    }

    /// Books what `call` holds for certain from now on.
    fn book(&mut self, call: CallId, certain: Allocation) {
        let Some(open) = self.open.get_mut(&call) else { return };
        let (node, before) = (open.node, std::mem::replace(&mut open.certain, certain));
        let sum = self.on_nodes.entry(node).or_default();
        *sum = sum.saturating_sub(before) + certain;
        if !sum.fits(self.node_limit) {
            let (sum, limit) = (*sum, self.node_limit);
            self.note(format!("node {}: {sum} is in force, the limit is {limit}", node.0));
        }
    }

    /// A grant was asked for `call`; it is a change if the call is not heading for it already.
    fn ask(&mut self, call: CallId, node: NodeId, grant: Allocation) {
        let Some(open) = self.open.get_mut(&call).filter(|open| open.node == node) else {
            return self.note(format!(
                "call {}: the control changes a call that is not open on node {}",
                call.0, node.0
            ));
        };
        if open.asked.unwrap_or(open.in_force) == grant {
            return;
        }
        self.tally.changes += 1;
        if let Some(replaced) = open.asked.replace(grant) {
            open.superseded.push(replaced);
            self.tally.superseded += 1;
        }
        let certain = open.certain.min(grant);
        self.book(call, certain);
    }

    fn ask_all(&mut self, node: NodeId, changes: &[GrantChange]) {
        for change in changes {
            self.ask(change.call, node, change.grant);
        }
    }

    fn check_look(&mut self, running: &RunningCall) {
        self.tally.looks += 1;
        let id = running.id.0;
        let Some(open) = self.open.get_mut(&running.id) else {
            return self.note(format!("call {id}: a look before its start or after its close"));
        };
        let earliest = open.look_after.map(|after| {
            let from = open.looked_at.unwrap_or(running.started_at);
            from + after
        });
        open.looked_at = Some(running.now);
        let (node, known, is_settled) = (open.node, open.in_force, open.asked.is_none());
        match earliest {
            None => {
                self.note(format!("call {id}: a look at {} that nobody asked for", running.now))
            }
            Some(at) if running.now < at => {
                self.note(format!("call {id}: a look at {}, asked for {at}", running.now));
            }
            Some(_) => {}
        }
        if node != running.node {
            self.note(format!("call {id}: started on node {}, seen on {}", node.0, running.node.0));
        }
        if is_settled && (running.grant != known || running.owed != Allocation::ZERO) {
            let (grant, owed) = (running.grant, running.owed);
            self.note(format!("call {id}: holds {grant} and is owed {owed}, reported was {known}"));
        }
    }

    fn check_answer(&mut self, change: &Resized) {
        let id = change.call.0;
        let Some(open) = self.open.get_mut(&change.call) else {
            return self.note(format!("call {id}: an answer before its start or after its close"));
        };
        let node = open.node;
        // A start may be refused in part, without anybody asking: a warm process keeps more memory than it was to have.
        let answers_start = open.asked.is_none()
            && open.looked_at.is_none()
            && change.refused.is_some()
            && open.in_force == change.asked;
        open.in_force = change.in_force;
        let is_superseded = change.refused == Some(Refusal::Superseded);
        let replaced = open.superseded.iter().position(|asked| *asked == change.asked);
        if open.asked == Some(change.asked) && !is_superseded {
            open.asked = None;
            self.tally.answered += 1;
        } else if let Some(place) = replaced.filter(|_| is_superseded || change.refused.is_none()) {
            open.superseded.remove(place);
        } else if !answers_start {
            let asked = open.asked;
            self.note(format!("call {id}: an answer to {}, asked was {asked:?}", change.asked));
        }
        let certain = self.open[&change.call]
            .asked
            .map_or(change.in_force, |asked| asked.min(change.in_force));
        self.book(change.call, certain);
        let is_exact = change.in_force == change.asked;
        self.tally.refused += u64::from(!is_exact && !is_superseded);
        if is_exact != change.refused.is_none() && !is_superseded {
            let Resized { asked, in_force, refused, .. } = change;
            self.note(format!(
                "call {id}: asked {asked}, in force {in_force}, but refused is {refused:?}"
            ));
        }
        if node != change.node {
            self.note(format!(
                "call {id}: runs on node {}, answered from {}",
                node.0, change.node.0
            ));
        }
    }

    fn check_close(&mut self, end: &CallClose<'_>) {
        let id = end.call();
        match end {
            CallClose::Measured(_) => self.tally.measured += 1,
            CallClose::Lost { .. } => self.tally.lost += 1,
        }
        let Some(open) = self.open.get(&id).cloned() else {
            return self.note(format!("call {}: closed twice, or never started", id.0));
        };
        self.book(id, Allocation::ZERO);
        self.open.remove(&id);
        self.tally.lapsed += u64::from(open.asked.is_some());
        if open.node != end.node() {
            self.note(format!("call {}: ran on {}, closed on {}", id.0, open.node.0, end.node().0));
        }
        if let CallClose::Measured(outcome) = end
            && open.asked.is_none()
            && outcome.last_grant != open.in_force
        {
            let (last, known) = (outcome.last_grant, open.in_force);
            self.note(format!("call {}: ended on {last}, reported was {known}", id.0));
        }
    }
}

impl<C: CallControl> CallControl for CheckedCalls<C> {
    fn size(&mut self, call: &CallView) -> CallPlan {
        self.inner.size(call)
    }

    fn start(&mut self, call: &CallView, plan: &CallPlan, node: NodeId, room: Allocation) -> Start {
        let start = self.inner.start(call, plan, node, room);
        let id = call.id;
        self.tally.starts += 1;
        if !plan.least().fits(room) {
            self.note(format!("call {}: started where {room} is left of {}", id.0, plan.least()));
        }
        let open = Open {
            node,
            in_force: start.grant,
            certain: Allocation::ZERO,
            asked: None,
            superseded: Vec::new(),
            looked_at: None,
            look_after: start.look_after,
        };
        if self.open.insert(id, open).is_some() {
            self.note(format!("call {}: started again before its close", id.0));
        }
        self.book(id, start.grant);
        start
    }

    fn look(&mut self, running: &RunningCall, changes: &mut Vec<GrantChange>) -> Look {
        self.check_look(running);
        let known = changes.len();
        let look = self.inner.look(running, changes);
        self.ask_all(running.node, &changes[known..]);
        self.ask(running.id, running.node, look.grant);
        if let Some(open) = self.open.get_mut(&running.id) {
            open.look_after = look.look_after;
        }
        look
    }

    fn resized(&mut self, change: &Resized, changes: &mut Vec<GrantChange>) {
        self.check_answer(change);
        let known = changes.len();
        self.inner.resized(change, changes);
        self.ask_all(change.node, &changes[known..]);
    }

    fn close(&mut self, end: CallClose<'_>, changes: &mut Vec<GrantChange>) {
        self.check_close(&end);
        let known = changes.len();
        self.inner.close(end, changes);
        self.ask_all(end.node(), &changes[known..]);
    }

    fn admit(&self, call: &CallView, plan: &CallPlan, offer: &NodeOffer) -> Option<f64> {
        self.inner.admit(call, plan, offer)
    }

    /// Nothing may be skipped while it watches.
    fn hints(&self) -> CallHints {
        let CallHints { admit_by, looks_while_short, .. } = self.inner.hints();
        CallHints { admit_by, looks_while_short, ..CallHints::default() }
    }

    fn coverage(&self, node: NodeId, plan: &CallPlan, now: Timestamp) -> f64 {
        self.inner.coverage(node, plan, now)
    }
}
