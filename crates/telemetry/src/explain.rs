//! Why did tick 812 do that, and what happened to call 4711? The answer as data and as a story.

use std::fmt::Write;
use std::io::BufRead;

use serde::Serialize;
use windfall_core::{
    Amendment, CallEnd, CallId, CallRecord, DecidedBy, Duration, Outcome, PlainSize, Receipt,
    Setting, Settled,
};

use crate::comparison::number::{plural, short};
use crate::journal::tick::JournalTarget;
use crate::journal::{Entry, JournalError, JournalReader, TickEntry};
use crate::metrics::VIOLATION_FACTOR;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// A tick, by its place in the journal; the first is 0.
    Tick(u64),
    /// A call, by its id.
    Call(CallId),
}

/// What the journal says about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// A tick.
    Tick {
        /// Its place in the journal.
        number: u64,
        /// What was seen, wanted, allowed and done.
        record: Box<TickEntry>,
    },
    /// A call.
    Call(Box<CallRecord>),
}

/// An answer, and whether the journal it comes from is whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// What the journal says.
    #[serde(flatten)]
    pub answer: Answer,
    /// Whether the journal stops before its end: the run was interrupted, or the file was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut_short: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// Fatal: the journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Fatal: it is not in there.
    #[error("the journal has no {kind} {asked}; {available}")]
    NotFound {
        /// `tick` or `call`.
        kind: &'static str,
        /// Which was asked for.
        asked: u64,
        /// What there is.
        available: String,
    },
}

/// Looks the answer up. What comes after it is skimmed for the last line, and not understood.
pub fn explain<R: BufRead>(
    mut journal: JournalReader<R>,
    question: Question,
) -> Result<Explanation, ExplainError> {
    let mut ticks = 0;
    let mut ids: Option<(u64, u64)> = None;
    let mut cut = "";
    while let Some(entry) = journal.next() {
        let found = match (entry, question) {
            (Ok(Entry::Tick(record)), Question::Tick(number)) if ticks == number => {
                Answer::Tick { number, record }
            }
            (Ok(Entry::Call(call)), Question::Call(id)) if call.id == id => Answer::Call(call),
            (Ok(Entry::Tick(_)), _) => {
                ticks += 1;
                continue;
            }
            (Ok(Entry::Call(call)), _) => {
                let id = call.id.0;
                ids = Some(ids.map_or((id, id), |(low, high)| (low.min(id), high.max(id))));
                continue;
            }
            (Ok(Entry::Interval(_) | Entry::End(_)), _) => continue,
            (Err(error), _) if error.is_cut_short() => {
                cut = ", and it is cut short: the rest of the run is not in it";
                continue;
            }
            (Err(error), _) => return Err(error.into()),
        };
        return Ok(Explanation { answer: found, is_cut_short: !journal.has_its_end() });
    }
    let (kind, asked, range) = match question {
        Question::Tick(number) => ("tick", number, (ticks > 0).then(|| (0, ticks - 1))),
        Question::Call(id) => ("call", id.0, ids),
    };
    let available = match range {
        Some((low, high)) => format!("it has {kind}s {low} to {high}{cut}"),
        None if !cut.is_empty() => format!("it has no {kind}s at all{cut}"),
        None => format!("it has no {kind}s at all; were they left out when it was written?"),
    };
    Err(ExplainError::NotFound { kind, asked, available })
}

impl Explanation {
    /// The story for people.
    pub fn to_text(&self) -> String {
        let mut text = self.answer.to_text();
        if self.is_cut_short {
            text.push_str(
                "note     the journal is cut short: what came after its last line is lost\n",
            );
        }
        text
    }

    /// The same as data; `is_cut_short` is there only where it is true.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("an explanation is plain data")
    }
}

impl Answer {
    /// The story for people.
    pub fn to_text(&self) -> String {
        match self {
            Self::Tick { number, record } => tick_story(*number, record),
            Self::Call(call) => call_story(call),
        }
    }

    /// The same as data.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("an answer is plain data")
    }
}

/// One line of a story; writing to a string cannot fail.
macro_rules! tell {
    ($text:expr, $($part:tt)*) => { let _ = writeln!($text, $($part)*); };
}

fn tick_story(number: u64, tick: &TickEntry) -> String {
    let mut text = String::new();
    let seen = &tick.observation;
    tell!(text, "tick {number} at {}", seen.now);
    let cluster = seen.cluster;
    tell!(
        text,
        "seen     {}, {} of {} cores granted, {} waiting; measured {} before",
        plural(seen.functions.len() as u64, "function"),
        short(cluster.granted_cores),
        short(cluster.capacity_cores),
        plural(cluster.queued, "call"),
        seen.age()
    );
    if let Some(error) = &tick.error {
        tell!(text, "error    {error}; this is the last observation there was");
    }
    push_settled(&mut text, &seen.settled);
    let by = match &tick.decided_by {
        DecidedBy::Policy => "by the policy".to_owned(),
        DecidedBy::Fallback(problem) => format!("by the fallback, because {problem}"),
    };
    tell!(
        text,
        "wanted   {} {by}: {}",
        plural(tick.decision.targets.len() as u64, "change"),
        tick.decision.reason
    );
    for target in &tick.decision.targets {
        tell!(text, "         function {}: {}", target.function.0, proposed(target));
    }
    push_amendments(&mut text, &tick.plan.amendments);
    for target in &tick.plan.targets {
        let mut parts = Vec::new();
        push_knob(&mut parts, "instances", target.instances.value().map(|x| x.to_string()));
        push_knob(&mut parts, "CPU", target.cpu.value().map(|x| x.to_string()));
        push_knob(&mut parts, "memory", target.memory.value().map(|x| x.to_string()));
        push_knob(&mut parts, "concurrency", target.concurrency.value().map(|x| x.to_string()));
        push_knob(&mut parts, "keep-alive", target.keep_alive.value().map(|x| x.to_string()));
        tell!(text, "allowed  function {}: {}", target.function.0, parts.join(", "));
    }
    push_answers(&mut text, &tick.receipt);
    text
}

fn push_answers(text: &mut String, receipt: &Receipt) {
    let refused = receipt.refusals().count();
    let accepted = receipt.answers.len() - refused;
    tell!(text, "done     {} under way", plural(accepted as u64, "change"));
    for (function, refusal) in receipt.refusals() {
        tell!(text, "refused  function {}: {refusal}", function.0);
    }
}

/// How earlier changes ended, as far as that was not just as planned.
fn push_settled(text: &mut String, settled: &[Settled]) {
    for Settled { plan, function, outcome, .. } in settled {
        let (plan, function) = (plan.0, function.0);
        match outcome {
            Outcome::Applied => {}
            Outcome::Partly { in_force, reason } => {
                tell!(text, "partly   plan {plan}, function {function}: {in_force}, {reason}");
            }
            Outcome::Failed(reason) => {
                tell!(text, "failed   plan {plan}, function {function}: {reason}");
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

fn push_amendments(text: &mut String, amendments: &[Amendment]) {
    let shown = |value: Option<f64>| value.map_or("as it is".to_owned(), short);
    for Amendment { rule, function, resource, proposed, allowed, reason } in amendments {
        tell!(
            text,
            "amended  {rule}: {} of function {} {} -> {} ({reason})",
            resource,
            function.0,
            shown(*proposed),
            shown(*allowed)
        );
    }
}

fn call_story(call: &CallRecord) -> String {
    let mut text = String::new();
    tell!(text, "call {} of function {} on node {}", call.id.0, call.function.0, call.node.0);
    tell!(text, "arrived  at {}", call.arrived_at);
    let wait = call.started_at.since(call.arrived_at);
    if call.cold_start.is_zero() {
        tell!(text, "waited   {wait}, no cold start");
    } else {
        tell!(text, "waited   {wait}, of it {} for a new instance", call.cold_start);
    }
    let by = match &call.decided_by {
        DecidedBy::Policy => String::new(),
        DecidedBy::Fallback(problem) => format!(", by the fallback because {problem}"),
    };
    let PlainSize { cores, mib } = call.wanted;
    tell!(
        text,
        "wanted   {} cores / {} MiB where the user reserves {}{by}",
        short(cores),
        short(mib),
        call.reservation
    );
    push_amendments(&mut text, &call.amendments);
    tell!(
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
        tell!(text, "         {} after {after}: {}", step.grant, step.why);
    }
    push_outcome(&mut text, call);
    text
}

fn push_outcome(text: &mut String, call: &CallRecord) {
    if call.oom_kills > 0 {
        tell!(text, "killed   {} of {} attempts, out of memory", call.oom_kills, call.attempts);
    }
    let ended = match call.end {
        CallEnd::Completed => "completed",
        CallEnd::OutOfMemory => "killed at the user's own size",
        CallEnd::NodeLost => "lost with its node",
        CallEnd::Rejected => "turned away",
    };
    let latency: Duration = call.ended_at.since(call.arrived_at);
    let slowdown = call.slowdown().map_or("unknown".to_owned(), short);
    tell!(text, "ended    {ended} after {latency}, slowdown {slowdown}");
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
        tell!(
            text,
            "ran      {} against {} at the user's size, {relative:.3} times: {verdict}",
            call.run,
            baseline
        );
    } else if call.end == CallEnd::Completed {
        tell!(text, "ran      {}; nobody knows how long at the user's size", call.run);
    }
    tell!(
        text,
        "used     {} of {} core-seconds, {} of {} MiB-seconds",
        short(call.cpu_used as f64 / 1e12),
        short(call.cpu_granted as f64 / 1e12),
        short(call.memory_used as f64 / 1e9),
        short(call.memory_granted as f64 / 1e9)
    );
}

#[cfg(test)]
mod tests {
    use windfall_core::record::GrantStep;
    use windfall_core::{Allocation, TelemetrySink, TickRecord, Timestamp};

    use super::*;
    use crate::journal::{JournalKinds, JournalWriter, RunManifest};
    use crate::sample::{amendment, call};

    fn ask(question: Question) -> Result<Explanation, ExplainError> {
        explain(JournalReader::open(journal().as_slice())?, question)
    }

    fn journal() -> Vec<u8> {
        let mut writer = JournalWriter::new(Vec::new(), &RunManifest::default(), JournalKinds::ALL);
        writer.tick(&TickRecord::default());
        let mut harvested = call(3, 1.2);
        harvested.lowest_grant = Allocation::new(500, 512);
        harvested.amendments.push(amendment("recent-peak"));
        harvested.wanted = PlainSize { cores: 0.2, mib: 512.0 };
        harvested.changes = 1;
        harvested.steps.push(GrantStep {
            at: Timestamp::from_secs(3) + Duration::from_millis(250),
            grant: Allocation::new(1000, 512),
            why: "throttled".into(),
        });
        writer.call(&harvested);
        writer.call(&call(5, 1.0));
        writer.finish().unwrap()
    }

    #[test]
    fn the_story_of_a_call_has_all_its_parts() {
        let text = ask(Question::Call(CallId(3))).unwrap().to_text();
        let want = "\
call 3 of function 1 on node 0
arrived  at 3.000000 s
waited   0 ns, no cold start
wanted   0.200 cores / 512 MiB where the user reserves 1000m / 512 MiB
amended  recent-peak: CPU of function 1 0.200 -> 0.500 (recent peak 0.45 cores plus margin)
granted  1000m / 512 MiB at first, 500m / 512 MiB at least, 1000m / 512 MiB at most; 1 change, 0 looks
         1000m / 512 MiB after 250.0 ms: throttled
ended    completed after 1.20 s, slowdown 1.20
ran      1.20 s against 1.00 s at the user's size, 1.200 times: a violation, and it was harvested
used     0.500 of 1.00 core-seconds, 100.0 of 512 MiB-seconds
";
        assert_eq!(text, want.replace("100.0 of", "100 of"));
    }

    #[test]
    fn what_is_not_there_is_answered_with_what_is() {
        let error = ask(Question::Call(CallId(99))).unwrap_err().to_string();
        assert_eq!(error, "the journal has no call 99; it has calls 3 to 5");
        let error = ask(Question::Tick(7)).unwrap_err().to_string();
        assert_eq!(error, "the journal has no tick 7; it has ticks 0 to 0");
    }

    #[test]
    fn a_journal_that_is_cut_short_still_answers_and_says_so() {
        let text = String::from_utf8(journal()).unwrap();
        let (cut, _) = text.split_once("{\"end\"").unwrap();
        for cut in [cut, &cut[..cut.len() - 30]] {
            let ask = |question| explain(JournalReader::open(cut.as_bytes()).unwrap(), question);
            let found = ask(Question::Call(CallId(3))).unwrap();
            assert!(found.to_text().ends_with("what came after its last line is lost\n"));
            assert_eq!(found.to_json()["is_cut_short"], true);
            assert_eq!(found.to_json()["call"]["id"], 3);
            let error = ask(Question::Call(CallId(99))).unwrap_err().to_string();
            assert!(error.contains("cut short"), "{error}");
        }
        assert!(ask(Question::Call(CallId(3))).unwrap().to_json().get("is_cut_short").is_none());
    }

    #[test]
    fn a_tick_is_told_and_given_as_data() {
        let answer = ask(Question::Tick(0)).unwrap();
        assert!(answer.to_text().starts_with("tick 0 at 0.000000 s\nseen     0 functions"));
        assert_eq!(answer.to_json()["tick"]["number"], 0);
    }
}
