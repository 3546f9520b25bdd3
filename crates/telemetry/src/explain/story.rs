//! What a journal says about a tick or a call, in sentences.

use std::fmt::Write;

use windfall_core::{
    Amendment, CallEnd, CallRecord, DecidedBy, Duration, Outcome, PlainSize, Receipt, Setting,
    Settled,
};

use crate::comparison::number::{plural, short};
use crate::journal::tick::JournalTarget;
use crate::journal::{Entry, FunctionNames, TickEntry};
use crate::metrics::VIOLATION_FACTOR;

/// One line of a story; writing to a string cannot fail.
macro_rules! write_line {
    ($text:expr, $($part:tt)*) => { let _ = writeln!($text, $($part)*); };
}

pub(super) fn tick_story(number: u64, tick: &TickEntry, names: &FunctionNames) -> String {
    let mut text = String::new();
    let seen = &tick.observation;
    write_line!(text, "tick {number} at {}", seen.now);
    let cluster = seen.cluster;
    write_line!(
        text,
        "seen     {}, {} of {} cores granted, {} waiting; measured {} before",
        plural(seen.functions.len() as u64, "function"),
        short(cluster.granted_cores),
        short(cluster.capacity_cores),
        plural(cluster.queued, "call"),
        seen.age()
    );
    if let Some(error) = &tick.error {
        write_line!(text, "error    {error}; this is the last observation there was");
    }
    push_settled(&mut text, &seen.settled, names);
    let by = match &tick.decided_by {
        DecidedBy::Policy => "by the policy".to_owned(),
        DecidedBy::Fallback(problem) => format!("by the fallback, because {problem}"),
    };
    write_line!(
        text,
        "wanted   {} {by}: {}",
        plural(tick.decision.targets.len() as u64, "change"),
        tick.decision.reason
    );
    for target in &tick.decision.targets {
        write_line!(
            text,
            "         function {}: {}",
            names.show(target.function),
            proposed(target)
        );
    }
    push_amendments(&mut text, &tick.plan.amendments, names);
    for target in &tick.plan.targets {
        let mut parts = Vec::new();
        push_knob(&mut parts, "instances", target.instances.value().map(|x| x.to_string()));
        push_knob(&mut parts, "CPU", target.cpu.value().map(|x| x.to_string()));
        push_knob(&mut parts, "memory", target.memory.value().map(|x| x.to_string()));
        push_knob(&mut parts, "concurrency", target.concurrency.value().map(|x| x.to_string()));
        push_knob(&mut parts, "keep-alive", target.keep_alive.value().map(|x| x.to_string()));
        write_line!(
            text,
            "allowed  function {}: {}",
            names.show(target.function),
            parts.join(", ")
        );
    }
    push_answers(&mut text, &tick.receipt, names);
    text
}

fn push_answers(text: &mut String, receipt: &Receipt, names: &FunctionNames) {
    let refused = receipt.refusals().count();
    let accepted = receipt.answers.len() - refused;
    write_line!(text, "done     {} under way", plural(accepted as u64, "change"));
    for (function, refusal) in receipt.refusals() {
        write_line!(text, "refused  function {}: {refusal}", names.show(function));
    }
}

/// How earlier changes ended, as far as that was not just as planned.
fn push_settled(text: &mut String, settled: &[Settled], names: &FunctionNames) {
    for Settled { plan, function, outcome, .. } in settled {
        let (plan, function) = (plan.0, names.show(*function));
        match outcome {
            Outcome::Applied => {}
            Outcome::Partly { in_force, reason } => {
                write_line!(
                    text,
                    "partly   plan {plan}, function {function}: {in_force}, {reason}"
                );
            }
            Outcome::Failed(reason) => {
                write_line!(text, "failed   plan {plan}, function {function}: {reason}");
            }
        }
    }
}

fn proposed(target: &JournalTarget) -> String {
    let mut parts = Vec::new();
    let number = |setting: Setting<Option<f64>>| {
        setting.value().map(|value| value.map_or("not a number".to_owned(), short))
    };
    push_knob(&mut parts, "instances", number(target.instances));
    push_knob(&mut parts, "cores", number(target.cpu_cores));
    push_knob(&mut parts, "MiB", number(target.memory_mib));
    push_knob(&mut parts, "concurrency", number(target.concurrency));
    push_knob(&mut parts, "keep-alive", target.keep_alive.value().map(|x| x.to_string()));
    if target.why.is_empty() {
        return parts.join(", ");
    }
    format!("{}: {}", parts.join(", "), target.why)
}

fn push_knob(parts: &mut Vec<String>, name: &str, value: Option<String>) {
    if let Some(value) = value {
        parts.push(format!("{name} {value}"));
    }
}

fn push_amendments(text: &mut String, amendments: &[Amendment], names: &FunctionNames) {
    let shown = |value: Option<f64>| value.map_or("as it is".to_owned(), short);
    for Amendment { rule, function, resource, proposed, allowed, reason } in amendments {
        write_line!(
            text,
            "amended  {rule}: {} of function {} {} -> {} ({reason})",
            resource,
            names.show(*function),
            shown(*proposed),
            shown(*allowed)
        );
    }
}

pub(super) fn call_story(call: &CallRecord, names: &FunctionNames) -> String {
    let mut text = String::new();
    let function = names.show(call.function);
    write_line!(text, "call {} of function {function} on node {}", call.id.0, call.node.0);
    write_line!(text, "arrived  at {}", call.arrived_at);
    let wait = call.started_at.since(call.arrived_at);
    if call.cold_start.is_zero() {
        write_line!(text, "waited   {wait}, no cold start");
    } else {
        write_line!(text, "waited   {wait}, of it {} for a new instance", call.cold_start);
    }
    let by = match &call.decided_by {
        DecidedBy::Policy => String::new(),
        DecidedBy::Fallback(problem) => format!(", by the fallback because {problem}"),
    };
    let PlainSize { cores, mib } = call.wanted;
    write_line!(
        text,
        "wanted   {} cores / {} MiB where the user reserves {}{by}",
        short(cores),
        short(mib),
        call.reservation
    );
    push_amendments(&mut text, &call.amendments, names);
    write_line!(
        text,
        "granted  {} at first, {} at least, {} at most; {}, {}",
        call.first_grant,
        call.lowest_grant,
        call.highest_grant,
        plural(u64::from(call.changes), "change"),
        plural(u64::from(call.looks), "look")
    );
    for step in &call.steps {
        let after = step.at.since(call.started_at);
        write_line!(text, "         {} after {after}: {}", step.grant, step.why);
    }
    push_outcome(&mut text, call);
    text
}

fn push_outcome(text: &mut String, call: &CallRecord) {
    if call.oom_kills > 0 {
        write_line!(
            text,
            "killed   {} of {} attempts, out of memory",
            call.oom_kills,
            call.attempts
        );
    }
    let ended = match call.end {
        CallEnd::Completed => "completed",
        CallEnd::OutOfMemory => "killed at the user's own size",
        CallEnd::NodeLost => "lost with its node",
        CallEnd::Rejected => "turned away",
    };
    let latency: Duration = call.ended_at.since(call.arrived_at);
    let slowdown = call.slowdown().map_or("unknown".to_owned(), short);
    write_line!(text, "ended    {ended} after {latency}, slowdown {slowdown}");
    let compared = call.baseline.zip(call.relative_run());
    if let Some((baseline, relative)) = compared.filter(|_| call.end == CallEnd::Completed) {
        let verdict = match () {
            () if relative > VIOLATION_FACTOR && call.is_harvested() => {
                "a violation, and it was harvested"
            }
            () if relative > VIOLATION_FACTOR => "a violation, though it was not harvested",
            () if call.is_harvested() => "within 5 %, though it was harvested",
            () => "within 5 %",
        };
        write_line!(
            text,
            "ran      {} against {} at the user's size, {relative:.3} times: {verdict}",
            call.run,
            baseline
        );
    } else if call.end == CallEnd::Completed {
        write_line!(text, "ran      {}; its run time at the user's size is unknown", call.run);
    }
    write_line!(
        text,
        "used     {} of {} core-seconds, {} of {} MiB-seconds",
        short(call.cpu_used as f64 / 1e12),
        short(call.cpu_granted as f64 / 1e12),
        short(call.memory_used as f64 / 1e9),
        short(call.memory_granted as f64 / 1e9)
    );
}

/// A record in one line, for whoever follows a run: ticks with what was decided and done, intervals with what was held.
/// Nothing for single calls, of which there are too many.
pub fn headline(number: u64, entry: &Entry) -> Option<String> {
    match entry {
        Entry::Tick(tick) => Some(tick_headline(number, tick)),
        Entry::Interval(interval) => Some(format!(
            "until {}: {} of {} cores granted, {} used, {} calls running, {} waiting",
            interval.until,
            short(interval.granted_cores),
            short(interval.capacity_cores),
            short(interval.used_cores),
            short(interval.running),
            short(interval.waiting)
        )),
        Entry::Functions(functions) => {
            Some(format!("{} known", plural(functions.len() as u64, "function")))
        }
        Entry::End(counts) => Some(format!(
            "complete: {} ticks, {} calls, {} intervals",
            counts.ticks, counts.calls, counts.intervals
        )),
        Entry::Call(_) => None,
    }
}

fn tick_headline(number: u64, tick: &TickEntry) -> String {
    let refused = tick.receipt.refusals().count();
    let accepted = tick.receipt.answers.len() - refused;
    let mut text = format!("tick {number} at {}: ", tick.observation.now);
    let _ = write!(text, "{} under way", plural(accepted as u64, "change"));
    let failed = tick.observation.settled.iter().filter(|one| one.has_failed()).count();
    for (count, what) in [
        (refused, "refused"),
        (tick.plan.amendments.len(), "amended"),
        (failed, "failed since the last tick"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    if let DecidedBy::Fallback(problem) = &tick.decided_by {
        let _ = write!(text, "; not decided by the policy: {problem}");
    }
    text
}
