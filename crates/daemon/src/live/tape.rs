//! The decision tape: what was seen, decided, amended, done, and how it ended, one entry after the other.

use std::collections::VecDeque;

use serde::Serialize;
use windfall_core::{
    Allocation, Amendment, Answer, CallRecord, DecidedBy, Duration, FunctionId, TickRecord,
    Timestamp,
};

use super::recent::end_word;
use crate::governance::ORDER_RULES;

/// Entries that are kept in memory; the database has more.
const KEPT: usize = 10_000;

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TapeKind {
    /// One call that did not simply get its user's size.
    Call,
    /// One function at a tick.
    Tick,
    /// An order of a user.
    Order,
    /// Another policy, or another version of it.
    Policy,
    /// Something about the manager itself: a start, a stop, a fault.
    #[serde(rename = "manager")]
    Supervisor,
}

/// A place where a safeguard or an order stepped in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TapeAmendment {
    /// The rule.
    pub rule: String,
    /// The knob.
    pub resource: String,
    /// What was proposed.
    pub proposed: Option<f64>,
    /// What was allowed.
    pub allowed: Option<f64>,
    /// Why, in a sentence.
    pub reason: String,
    /// How often in a row.
    pub times: u32,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TapeEntry {
    /// Its number; larger ones are later.
    pub id: u64,
    /// When, seconds since the start.
    pub at: f64,
    /// About what.
    pub kind: TapeKind,
    /// About which function.
    pub function: Option<u32>,
    /// About which call.
    pub call: Option<u64>,
    /// What was seen.
    pub seen: String,
    /// What was decided.
    pub decided: String,
    /// What safeguards and orders changed.
    pub amended: Vec<TapeAmendment>,
    /// What was done.
    pub done: String,
    /// How it ended.
    pub outcome: String,
    /// Whether a safeguard stepped in.
    pub trip: bool,
}

/// The last entries, newest last.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    entries: VecDeque<TapeEntry>,
    last: u64,
}

impl Tape {
    /// Everything that is kept, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &TapeEntry> {
        self.entries.iter()
    }

    /// The number of the newest entry.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The entry with a number, if it is kept.
    pub fn entry(&self, id: u64) -> Option<&TapeEntry> {
        let first = self.entries.front()?.id;
        self.entries.get(usize::try_from(id.checked_sub(first)?).ok()?)
    }

    /// Adds an entry and numbers it.
    pub fn push(&mut self, mut entry: TapeEntry) {
        self.last += 1;
        entry.id = self.last;
        if self.entries.len() == KEPT {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    /// Adds an entry about an order, a policy or the manager itself.
    pub fn note(&mut self, now: Timestamp, kind: TapeKind, decided: String, done: String) {
        self.push(TapeEntry { decided, done, ..blank(now, kind) });
    }

    /// Adds a call, unless it got exactly what its user reserves and nobody wanted anything else.
    pub(super) fn call(&mut self, now: Timestamp, call: &CallRecord, trip: bool) {
        let got_own = call.lowest_grant == call.reservation
            && call.highest_grant == call.reservation
            && call.amendments.is_empty()
            && call.decided_by == DecidedBy::Policy;
        if got_own && call.oom_kills == 0 {
            return;
        }
        let decided = match &call.decided_by {
            DecidedBy::Policy => size(call.wanted.cores, call.wanted.mib),
            DecidedBy::Fallback(problem) => format!("fallback: {problem}"),
        };
        let seen = match call.input {
            Some(input) => {
                format!("reserves {}, input {}", held(call.reservation), short(f64::from(input)))
            }
            None => format!("reserves {}", held(call.reservation)),
        };
        let wait = call.started_at.since(call.arrived_at);
        let killed = if call.oom_kills > 0 { ", killed once at its memory limit" } else { "" };
        self.push(TapeEntry {
            function: Some(call.function.0),
            call: Some(call.id.0),
            seen,
            decided,
            amended: amendments(&call.amendments),
            done: done(call),
            outcome: format!(
                "{} after {} ms ({} ms waiting){killed}",
                end_word(call.end),
                millis(call.ended_at.since(call.arrived_at)),
                millis(wait),
            ),
            trip,
            ..blank(now, TapeKind::Call)
        });
    }

    /// Adds one entry for each target of a tick and one for each amendment without a target.
    pub fn tick(&mut self, tick: &TickRecord) {
        let now = tick.observation.now;
        if let Some(error) = &tick.error {
            let seen = format!("no observation: {error}");
            let done = "functions in doubt get their own allocation".to_owned();
            self.push(TapeEntry { seen, done, trip: true, ..blank(now, TapeKind::Supervisor) });
        }
        for (target, answer) in tick.receipt.answered(&tick.plan) {
            let of_target = |amendment: &&Amendment| amendment.function == target.function;
            let amended: Vec<Amendment> =
                tick.plan.amendments().iter().filter(of_target).cloned().collect();
            let is_trip = |one: &Amendment| !ORDER_RULES.contains(&one.rule.as_ref());
            self.push(TapeEntry {
                function: Some(target.function.0),
                seen: seen_at_tick(tick, target.function),
                decided: tick.decision.reason.clone(),
                trip: amended.iter().any(is_trip),
                amended: amendments(&amended),
                done: settings(target),
                outcome: match answer {
                    Answer::Queued => "under way".to_owned(),
                    Answer::Refused(refusal) => format!("refused: {refusal}"),
                },
                ..blank(now, TapeKind::Tick)
            });
        }
    }
}

fn blank(now: Timestamp, kind: TapeKind) -> TapeEntry {
    TapeEntry {
        id: 0,
        at: now.as_secs_f64(),
        kind,
        function: None,
        call: None,
        seen: String::new(),
        decided: String::new(),
        amended: Vec::new(),
        done: String::new(),
        outcome: String::new(),
        trip: false,
    }
}

/// At most three decimals, and no zeros behind them.
fn short(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Milliseconds, with a decimal where there are few.
fn millis(length: Duration) -> String {
    let ms = length.as_millis_f64();
    if ms < 10.0 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

fn size(cores: f64, mib: f64) -> String {
    format!("{cores:.2} cores, {mib:.0} MiB")
}

fn held(allocation: Allocation) -> String {
    size(allocation.cpu.cores(), allocation.memory.mib())
}

fn done(call: &CallRecord) -> String {
    let first = held(call.first_grant);
    match call.changes {
        0 => format!("granted {first}"),
        changes => format!(
            "granted {first}, {changes} change{} between {:.2} and {:.2} cores",
            if changes == 1 { "" } else { "s" },
            call.lowest_grant.cpu.cores(),
            call.highest_grant.cpu.cores(),
        ),
    }
}

/// Equal amendments in a row become one with a count: a rule that holds a call back at forty looks is one line.
fn amendments(all: &[Amendment]) -> Vec<TapeAmendment> {
    let mut amendments: Vec<TapeAmendment> = Vec::new();
    for one in all {
        let resource = one.resource.to_string();
        let same = |earlier: &&mut TapeAmendment| {
            earlier.rule == one.rule && earlier.resource == resource && earlier.reason == one.reason
        };
        if let Some(earlier) = amendments.iter_mut().find(same) {
            earlier.times += 1;
            (earlier.proposed, earlier.allowed) = (one.proposed, one.allowed);
            continue;
        }
        amendments.push(TapeAmendment {
            rule: one.rule.to_string(),
            resource,
            proposed: one.proposed,
            allowed: one.allowed,
            reason: one.reason.to_string(),
            times: 1,
        });
    }
    amendments
}

fn seen_at_tick(tick: &TickRecord, function: FunctionId) -> String {
    tick.observation.function(function).map_or_else(String::new, |view| {
        format!(
            "{} arrivals, {} running, {} waiting, {} ready, holds {}",
            view.arrivals,
            view.in_flight,
            view.queued,
            view.ready.get(),
            held(view.allocation),
        )
    })
}

fn settings(target: &windfall_core::PlannedTarget) -> String {
    let mut parts = Vec::new();
    if let Some(cpu) = target.cpu.value() {
        parts.push(format!("{:.2} cores", cpu.cores()));
    }
    if let Some(memory) = target.memory.value() {
        parts.push(format!("{:.0} MiB", memory.mib()));
    }
    if let Some(count) = target.instances.value() {
        parts.push(format!("{} instances", count.get()));
    }
    if let Some(limit) = target.concurrency.value() {
        parts.push(format!("{} calls per instance", limit.get()));
    }
    if let Some(keep) = target.keep_alive.value() {
        parts.push(format!("idle instances stay {:.0} s", keep.as_secs_f64()));
    }
    if parts.is_empty() { "kept".to_owned() } else { parts.join(", ") }
}
