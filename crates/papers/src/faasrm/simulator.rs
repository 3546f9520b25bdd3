//! The paper's simulator: one call after the other, a clock that arrivals move, servers that never fill.
//!
//! ```text
//!   for each call:  seconds up to its step pass
//!                   the sizer chooses, from what has finished so far
//!                   the call starts with the size its function has      (the last choice: one call late)
//!                   the choice becomes the function's size
//!                   one second passes                                   (arrivals move the clock)
//!   then seconds pass until all calls have ended
//! ```
//!
//! A call ends after its cold start and its run time; only the run time is measured. RFET is the run time
//! over the baseline, that is, over the run time at the user's size.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::calls::Calls;
use super::function_model::{FunctionModel, Levels};
use super::history::History;
use super::quirks::Quirks;
use super::replay::{EndedCall, Replay};
use super::servers::Servers;

/// What a sizer is shown at a call.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The place of the function among all.
    pub place: usize,
    /// The function; only an oracle may look at its ideal. The baseline is known to everyone here.
    pub function: &'a FunctionModel,
    /// What its calls have shown.
    pub history: &'a History,
    /// Calls running on the whole platform.
    pub in_flight: usize,
    /// Cores free on the whole platform; below zero where it is overbooked.
    pub free_cpu: i64,
    /// Memory levels free, as the feature has it.
    pub free_memory: i64,
    /// Steps of the trace so far.
    pub second: u32,
}

/// What a sizer chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The function's new size; nothing for the one it has.
    pub size: Option<Levels>,
    /// Whether a safeguard left no choice in at least one resource.
    pub is_safeguarded: bool,
}

impl Choice {
    /// A free choice.
    pub fn of(size: Levels) -> Self {
        Self { size: Some(size), is_safeguarded: false }
    }

    /// No change.
    pub const NONE: Self = Self { size: None, is_safeguarded: false };
}

/// Who sizes calls.
pub trait Sizer {
    /// A size for the function of the call that has come.
    fn choose(&mut self, seen: &Seen<'_>) -> Choice;

    /// A call has ended, `done` of them so far.
    fn ended(&mut self, _call: &EndedCall, _done: u64) {}
}

/// A call that runs. One that finds no room runs too: a queued call makes progress in the original, and its
/// waiting is never counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Running {
    ends_at: u64,
    order: u32,
    function: u32,
    cpu: u32,
    memory: u32,
    run: u32,
    is_safeguarded: bool,
    server: usize,
}

struct Platform<'a> {
    calls: &'a Calls,
    histories: Vec<History>,
    sizes: Vec<Choice>,
    running: BinaryHeap<Reverse<Running>>,
    servers: Servers,
    now: u64,
    replay: Replay,
}

/// Replays `calls` under `sizer`.
pub fn replay(calls: &Calls, quirks: &Quirks, sizer: &mut dyn Sizer) -> Replay {
    let mut platform = Platform {
        calls,
        histories: vec![History::default(); calls.functions.len()],
        sizes: calls.functions.iter().map(|function| Choice::of(function.user)).collect(),
        running: BinaryHeap::new(),
        servers: Servers::published(),
        now: 0,
        replay: Replay::default(),
    };
    let lost = usize::from(quirks.last_call_is_lost).min(calls.events.len());
    let mut second = 0;
    for (order, &(step, function)) in calls.events[..calls.events.len() - lost].iter().enumerate() {
        while second < step {
            second += 1;
            platform.pass_a_second(sizer);
        }
        let choice = platform.ask(function, second, quirks, sizer);
        if !quirks.choice_one_call_late {
            platform.apply(function, choice);
        }
        platform.start(order as u32, function, second);
        if quirks.choice_one_call_late {
            platform.apply(function, choice);
        }
        if quirks.arrivals_move_the_clock {
            platform.pass_a_second(sizer);
        }
    }
    while !platform.running.is_empty() {
        platform.pass_a_second(sizer);
    }
    platform.replay
}

impl Platform<'_> {
    fn ask(&self, function: u32, second: u32, quirks: &Quirks, sizer: &mut dyn Sizer) -> Choice {
        let place = function as usize;
        sizer.choose(&Seen {
            place,
            function: &self.calls.functions[place],
            history: &self.histories[place],
            in_flight: self.running.len(),
            free_cpu: self.servers.free_cpu(),
            free_memory: self.servers.free_memory(quirks.free_memory_of_last_server),
            second,
        })
    }

    fn apply(&mut self, function: u32, choice: Choice) {
        let size = &mut self.sizes[function as usize];
        *size = Choice { size: choice.size.or(size.size), ..choice };
    }

    fn start(&mut self, order: u32, function: u32, second: u32) {
        let place = function as usize;
        let model = &self.calls.functions[place];
        let Choice { size, is_safeguarded } = self.sizes[place];
        let size = size.unwrap_or(model.user);
        let (server, has_room) = self.servers.place(place, size);
        self.replay.without_room += u64::from(!has_room);
        let run = model.duration(size);
        self.servers.take(server, size);
        self.replay.busy.peak(self.servers.busy_cpu());
        self.histories[place].arrived(second);
        self.running.push(Reverse(Running {
            ends_at: self.now + u64::from(model.cold_start) + u64::from(run),
            order,
            function,
            cpu: size.cpu,
            memory: size.memory,
            run,
            is_safeguarded,
            server,
        }));
    }

    fn pass_a_second(&mut self, sizer: &mut dyn Sizer) {
        self.now += 1;
        while let Some(Reverse(call)) = self.running.peek().copied() {
            if call.ends_at > self.now {
                break;
            }
            self.running.pop();
            self.end(call, sizer);
        }
        self.replay.busy.pass(self.servers.busy_cpu());
    }

    fn end(&mut self, call: Running, sizer: &mut dyn Sizer) {
        let place = call.function as usize;
        let model = &self.calls.functions[place];
        let size = Levels { cpu: call.cpu, memory: call.memory };
        self.servers.release(call.server, size);
        self.histories[place].ended(call.order, size, model.peak(size), call.run);
        let ended = EndedCall {
            seconds: call.run,
            baseline: model.baseline(),
            size,
            user: model.user,
            is_safeguarded: call.is_safeguarded,
        };
        sizer.ended(&ended, self.replay.calls.len() as u64 + 1);
        self.replay.calls.push(ended);
    }
}

#[cfg(test)]
mod tests;
