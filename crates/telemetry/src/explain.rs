//! Why did tick 812 do that, and what happened to call 4711? The answer as data and as a story.

mod story;

use std::io::BufRead;

use serde::Serialize;
use windfall_core::{CallId, CallRecord, FunctionId};

use self::story::{call_story, tick_story};
use crate::journal::{Entry, FunctionNames, JournalError, JournalReader, TickEntry};

pub use self::story::headline;

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
    /// What the functions in it are called, as far as the journal says.
    #[serde(skip_serializing_if = "FunctionNames::is_empty")]
    pub names: FunctionNames,
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
            (Ok(Entry::Functions(_) | Entry::Interval(_) | Entry::End(_)), _) => continue,
            (Err(error), _) if error.is_cut_short() => {
                cut = ", and it is cut short: the rest of the run is not in it";
                continue;
            }
            (Err(error), _) => return Err(error.into()),
        };
        let names = journal.names().only(found.functions());
        return Ok(Explanation { answer: found, names, is_cut_short: !journal.has_its_end() });
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
        let mut text = self.answer.to_text(&self.names);
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
    /// The story for people, with functions by these names.
    pub fn to_text(&self, names: &FunctionNames) -> String {
        match self {
            Self::Tick { number, record } => tick_story(*number, record, names),
            Self::Call(call) => call_story(call, names),
        }
    }

    /// The functions it is about.
    fn functions(&self) -> Vec<FunctionId> {
        match self {
            Self::Tick { record, .. } => {
                let seen = record.observation.functions.iter().map(|view| view.function);
                let settled = record.observation.settled.iter().map(|one| one.function);
                let wanted = record.decision.targets.iter().map(|target| target.function);
                seen.chain(settled).chain(wanted).collect()
            }
            Self::Call(call) => vec![call.function],
        }
    }

    /// The same as data.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("an answer is plain data")
    }
}

#[cfg(test)]
mod tests {
    use windfall_core::record::GrantStep;
    use windfall_core::{Allocation, Duration, PlainSize, TelemetrySink, TickRecord, Timestamp};

    use super::*;
    use crate::journal::{JournalKinds, JournalWriter, RunManifest};
    use crate::sample::{amendment, call};

    fn ask(question: Question) -> Result<Explanation, ExplainError> {
        explain(JournalReader::open(journal().as_slice())?, question)
    }

    fn journal() -> Vec<u8> {
        let mut writer = JournalWriter::new(Vec::new(), &RunManifest::default(), JournalKinds::ALL);
        writer.functions(FunctionId(1), &[crate::sample::function("checkout")]);
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
call 3 of function 1 (checkout) on node 0
arrived  at 3.000000 s
waited   0 ns, no cold start
wanted   0.200 cores / 512 MiB where the user reserves 1000m / 512 MiB
amended  recent-peak: CPU of function 1 (checkout) 0.200 -> 0.500 (recent peak 0.45 cores plus margin)
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
    fn a_run_can_be_followed_in_headlines() {
        let bytes = journal();
        let entries: Vec<Entry> =
            JournalReader::open(bytes.as_slice()).unwrap().map(Result::unwrap).collect();
        let lines: Vec<String> = entries.iter().filter_map(|entry| headline(0, entry)).collect();
        let want = [
            "1 function known",
            "tick 0 at 0.000000 s: 0 changes under way",
            "complete: 1 ticks, 2 calls, 0 intervals",
        ];
        assert_eq!(lines, want);
    }

    #[test]
    fn a_tick_is_explained_and_given_as_data() {
        let answer = ask(Question::Tick(0)).unwrap();
        assert!(answer.to_text().starts_with("tick 0 at 0.000000 s\nseen     0 functions"));
        assert_eq!(answer.to_json()["tick"]["number"], 0);
    }
}
