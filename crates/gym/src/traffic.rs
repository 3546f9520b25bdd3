//! The workload of a world: every function draws its own calls at its own changing rate, and functions can
//! join, leave and change while the world runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windfall_core::{
    Arrival, Duration, FunctionId, FunctionProfile, Seed, Timestamp, Trigger, Workload,
};
use windfall_rl::random::Draw;

use crate::chain::Chain;
use crate::meter::Meter;
use crate::pattern::Pattern;
use crate::profile::ServiceProfile;

/// One function of a world.
#[derive(Clone, Debug)]
pub struct FunctionSetup {
    /// What its calls need.
    pub profile: ServiceProfile,
    /// The shape of its load.
    pub pattern: Arc<Pattern>,
    /// The minute of the pattern at which the world begins.
    pub from_minute: usize,
    /// Calls per second on average.
    pub rate: f64,
    /// Whether it is called from the beginning; otherwise it may join later.
    pub is_active: bool,
    /// The function whose answers call this one; nothing for one that is called from outside.
    pub upstream: Option<usize>,
}

impl FunctionSetup {
    /// A function that keeps `instances` of one core busy on average, but is called at most eight times a
    /// second: short functions would otherwise make most of the events and decide nothing.
    pub fn busy(profile: ServiceProfile, pattern: (Arc<Pattern>, usize), instances: f64) -> Self {
        let rate = (instances / profile.mean_run(1.0)).min(8.0);
        Self {
            profile,
            pattern: pattern.0,
            from_minute: pattern.1,
            rate,
            is_active: true,
            upstream: None,
        }
    }

    /// Calls per second at `at`.
    pub fn rate_at(&self, at: Timestamp) -> f64 {
        let minute = (at.as_nanos() / MINUTE) as usize;
        self.rate * self.pattern.factor(self.from_minute + minute)
    }

    /// Cores it keeps busy on average.
    pub fn mean_cores(&self) -> f64 {
        self.rate * self.profile.mean_work()
    }
}

const MINUTE: u64 = 60_000_000_000;

/// What a world, its workload and its telemetry share.
#[derive(Debug)]
pub(crate) struct Board {
    pub(crate) setups: Vec<FunctionSetup>,
    /// Counts changes of the setups, so that the workload knows when to look again.
    pub(crate) changes: u64,
    pub(crate) meter: Meter,
    pub(crate) chain: Chain,
}

/// A handle of the board. Nobody holds it for longer than one call.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<Mutex<Board>>);

impl Shared {
    pub(crate) fn new(setups: Vec<FunctionSetup>) -> Self {
        let objectives = setups.iter().map(|setup| setup.profile.slo_ms).collect();
        let meter = Meter::new(objectives);
        let chain = Chain::new(setups.iter().map(|setup| setup.upstream));
        Self(Arc::new(Mutex::new(Board { setups, changes: 0, meter, chain })))
    }

    pub(crate) fn board(&self) -> MutexGuard<'_, Board> {
        // A panic elsewhere leaves plain numbers behind, which are as good as before.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One function's stream of calls.
#[derive(Debug)]
struct Stream {
    draw: Draw,
    next: Timestamp,
}

/// The calls of all functions, in order.
#[derive(Debug)]
pub(crate) struct Traffic {
    shared: Shared,
    profiles: Vec<FunctionProfile>,
    streams: Vec<Stream>,
    setups: Vec<FunctionSetup>,
    seen_changes: u64,
    horizon: Timestamp,
    /// When the last call came: none may come before it.
    last: Timestamp,
}

impl Traffic {
    pub(crate) fn new(shared: Shared, horizon: Timestamp) -> Self {
        let setups = shared.board().setups.clone();
        let profiles = setups.iter().enumerate().map(|(index, setup)| described(index, setup));
        Self {
            profiles: profiles.collect(),
            shared,
            streams: Vec::new(),
            setups,
            seen_changes: 0,
            horizon,
            last: Timestamp::ZERO,
        }
    }

    /// Functions that joined, left or changed draw their next call anew, from the last one on.
    fn look_again(&mut self, now: Timestamp) {
        let board = self.shared.board();
        if board.changes == self.seen_changes {
            return;
        }
        self.seen_changes = board.changes;
        let fresh = board.setups.clone();
        drop(board);
        for (index, (old, new)) in self.setups.iter_mut().zip(fresh).enumerate() {
            let is_same = old.is_active == new.is_active
                && old.rate == new.rate
                && old.profile == new.profile;
            *old = new;
            if !is_same {
                self.streams[index].next = next_call(old, now, &mut self.streams[index].draw);
            }
        }
    }
}

fn described(index: usize, setup: &FunctionSetup) -> FunctionProfile {
    FunctionProfile {
        name: format!("{}-{index}", setup.profile.name),
        application: setup.profile.name.to_owned(),
        trigger: Trigger::Http,
        runtime: "measured".to_owned(),
        reservation: setup.profile.reservation(),
        cold_start: setup.profile.cold_start(),
    }
}

/// The next call of a Poisson stream whose rate is constant within each minute: a draw that runs over
/// the end of its minute is repeated from there, which is exact because the stream has no memory.
fn next_call(setup: &FunctionSetup, mut from: Timestamp, draw: &mut Draw) -> Timestamp {
    if !setup.is_active || setup.upstream.is_some() {
        return Timestamp::MAX;
    }
    loop {
        let rate = setup.rate_at(from);
        let end = Timestamp::from_nanos((from.as_nanos() / MINUTE + 1) * MINUTE);
        if rate > 0.0 {
            let wait = Duration::from_secs_f64(-(1.0 - draw.unit()).ln() / rate);
            let at = from + wait.max(Duration::from_nanos(1));
            if at < end {
                return at;
            }
        }
        from = end;
        // A pattern without a single call would never let this end.
        if from.as_nanos() > 10_000 * MINUTE {
            return Timestamp::MAX;
        }
    }
}

impl Workload for Traffic {
    fn functions(&self) -> &[FunctionProfile] {
        &self.profiles
    }

    fn horizon(&self) -> Timestamp {
        self.horizon
    }

    fn next_arrival(&mut self) -> Option<Arrival> {
        self.look_again(self.last);
        let soonest = (0..self.streams.len()).min_by_key(|&index| self.streams[index].next)?;
        let outside = self.streams[soonest].next;
        let triggered = self.shared.board().chain.take_due(outside);
        let (index, at) = match triggered {
            // Calls are identified by their times: two answers that were due before the last call come one after
            // the other.
            Some((index, due)) => (index, due.max(self.last + Duration::from_nanos(1))),
            None if outside == Timestamp::MAX => return None,
            None => (soonest, outside.max(self.last)),
        };
        self.last = at;
        let stream = &mut self.streams[index];
        let setup = &self.setups[index];
        let demand = setup.profile.draw(&mut stream.draw);
        if triggered.is_none() {
            stream.next = next_call(setup, at, &mut stream.draw);
        }
        let mut board = self.shared.board();
        board.meter.arrived(index, at);
        board.chain.arrived(index, at, triggered.is_some());
        Some(Arrival { at, function: FunctionId(index as u32), demand })
    }

    /// One at a time: a call drawn ahead could neither be the consequence of an answer nor know that its function
    /// has left.
    fn next_arrivals(&mut self, _: usize, into: &mut Vec<Arrival>) {
        into.extend(self.next_arrival());
    }

    fn restart(&mut self, seed: Seed) {
        let seed = seed.stream("traffic");
        self.last = Timestamp::ZERO;
        self.streams.clear();
        for (index, setup) in self.setups.iter().enumerate() {
            let mut draw = Draw::new(seed.member(index as u64));
            let next = next_call(setup, Timestamp::ZERO, &mut draw);
            self.streams.push(Stream { draw, next });
        }
    }
}
