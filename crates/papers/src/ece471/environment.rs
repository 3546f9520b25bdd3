//! The environment: legality, effects, reset; and its face to a learner.

use serde::{Deserialize, Serialize};
use windfall_core::Seed;
use windfall_rl::env::{End, Environment, Spec, Step};
use windfall_rl::random::Draw;

use super::rewards::{Conduct, Design};
use super::shown::{Shown, State, shown, state};
use super::table::{Mode, Row, faithful, fixed};
use super::{
    FEWEST_SHARES, HORIZON, INITIAL_SHARES, MOST_CONTAINERS, MOST_SHARES, RATES, SHARES_STEP,
};

/// What an agent does: containers and CPU shares to add. Exclusive: with a vertical part the horizontal
/// one is ignored, as in the original.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// CPU shares to add to each container.
    #[serde(default)]
    pub vertical: i32,
    /// Containers to add.
    #[serde(default)]
    pub horizontal: i32,
}

/// The five actions of the course's agents, in their order.
pub const ACTIONS: [(&str, Action); 5] = [
    ("hold", Action { vertical: 0, horizontal: 0 }),
    ("out", Action { vertical: 0, horizontal: 1 }),
    ("in", Action { vertical: 0, horizontal: -1 }),
    ("up", Action { vertical: SHARES_STEP, horizontal: 0 }),
    ("down", Action { vertical: -SHARES_STEP, horizontal: 0 }),
];

/// Which numbers a learner sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Features {
    /// The six the course's agents use.
    Course,
    /// The six and the direction of the last horizontal move (-1, 0, 1), which the reward depends on.
    WithDirection,
}

/// What kind of environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// As the original is, or as it was meant.
    pub mode: Mode,
    /// What a learner sees.
    pub features: Features,
    /// What it is paid for.
    pub design: Design,
    /// The rate of every episode; nothing draws one of 1 to 8 per episode.
    pub rate: Option<u32>,
    /// Steps after which an episode is cut off.
    pub horizon: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Faithful,
            features: Features::Course,
            design: Design::Authors,
            rate: None,
            horizon: HORIZON,
        }
    }
}

/// What a step led to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// What the server shows now.
    pub row: Row,
    /// What the step paid.
    pub reward: f64,
    /// What the action was.
    pub conduct: Conduct,
}

/// The environment.
#[derive(Clone, Debug)]
pub struct Ece471 {
    settings: Settings,
    /// Behind a pointer, so that what a step reads fits into one cache line: vectors hold hundreds of these.
    spec: Box<Spec>,
    containers: u32,
    rate: u32,
    shares: u32,
    others: u32,
    /// Direction of the last legal action.
    last: i32,
    steps: u32,
}

impl Ece471 {
    /// Before its first reset.
    pub fn new(settings: Settings) -> Self {
        Self {
            spec: Box::new(spec(settings)),
            settings,
            containers: 0,
            rate: 6,
            shares: INITIAL_SHARES,
            others: 0,
            last: 0,
            steps: 0,
        }
    }

    /// Starts an episode: draws co-tenants and a rate and scales out to four containers.
    pub fn start(&mut self, seed: Seed) {
        let mut draw = Draw::new(seed);
        let tenths = u32::try_from(draw.below(9)).expect("below nine");
        self.others = (1 + tenths) * 1024;
        let drawn = RATES.start() + u32::try_from(draw.below(8)).expect("below eight");
        self.rate = self.settings.rate.unwrap_or(drawn);
        if self.settings.mode == Mode::FixedQuirks {
            self.shares = INITIAL_SHARES;
        }
        // The original sets two containers and then steps by two more.
        (self.containers, self.last, self.steps) = (4, 1, 0);
    }

    /// Acts.
    ///
    /// Computed without branches on the action: while an agent explores, a processor predicts every second one of
    /// them wrong, which costs more than all that is computed here.
    #[inline]
    pub fn act(&mut self, action: Action) -> Outcome {
        let conduct = self.carry_out(action);
        let row = self.row();
        Outcome { row, reward: self.settings.design.pay(row, conduct), conduct }
    }

    #[inline]
    fn carry_out(&mut self, action: Action) -> Conduct {
        let is_legal = self.is_legal(action);
        // With a vertical part the horizontal one is ignored.
        let is_horizontal = is_legal & (action.vertical == 0);
        let horizontal = action.horizontal * i32::from(is_horizontal);
        self.shares = self.shares.saturating_add_signed(action.vertical * i32::from(is_legal));
        self.containers = self.containers.saturating_add_signed(horizontal);
        let direction = horizontal.signum();
        let conduct = Conduct {
            illegal: !is_legal,
            reversal: direction * self.last < 0,
            abandoned: is_legal & (self.rate > 0) & (self.containers == 0),
        };
        self.last = [self.last, direction][usize::from(is_legal)];
        self.steps += 1;
        conduct
    }

    /// Whether an action would be carried out.
    #[inline]
    pub fn is_legal(&self, action: Action) -> bool {
        let Action { vertical, horizontal } = action;
        let shares = i64::from(self.shares) + i64::from(vertical);
        let is_bounded = self.settings.mode == Mode::FixedQuirks;
        let is_too_much = is_bounded & (shares > i64::from(MOST_SHARES));
        let has_enough = (self.containers > 0) & (shares >= i64::from(FEWEST_SHARES));
        let after = i64::from(self.containers) + i64::from(horizontal);
        let fits = (0..=i64::from(MOST_CONTAINERS)).contains(&after);
        let is_vertical = vertical != 0;
        (is_vertical & has_enough & !is_too_much) | (!is_vertical & fits)
    }

    /// What the server shows.
    #[inline]
    pub fn row(&self) -> Row {
        match self.looked_up() {
            Some(shown) => shown.row,
            None => self.computed().row,
        }
    }

    /// What is known without computing it: all that an episode of the faithful mode can show.
    #[inline]
    fn looked_up(&self) -> Option<&'static Shown> {
        match self.settings.mode {
            Mode::Faithful => shown(self.containers, self.rate),
            Mode::FixedQuirks => None,
        }
    }

    /// What the server shows and the state, by the closed form.
    #[inline(never)]
    fn computed(&self) -> Shown {
        let Self { containers, rate, shares, others, .. } = *self;
        let (row, shares, others) = match self.settings.mode {
            Mode::Faithful => (faithful(containers, rate), 1024, 0),
            Mode::FixedQuirks => (fixed(containers, rate, shares, others), shares, others),
        };
        Shown { row, state: state(row, shares * containers, others, containers, rate) }
    }

    /// Containers now.
    pub fn containers(&self) -> u32 {
        self.containers
    }

    /// Arrival rate of this episode, in requests per second.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// CPU shares of one container.
    pub fn shares(&self) -> u32 {
        self.shares
    }

    /// Changes the arrival rate without touching anything else.
    pub fn set_rate(&mut self, rate: u32) {
        self.rate = rate;
    }

    /// Writes the state, in the course's order and scale.
    #[inline]
    pub fn observe(&self, observation: &mut [f32]) {
        match self.looked_up() {
            Some(shown) => self.write(&shown.state, observation),
            None => self.write(&self.computed().state, observation),
        }
    }

    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "a direction is -1, 0 or 1")]
    fn write(&self, state: &State, observation: &mut [f32]) {
        // Of a known length, or each copy would be a call.
        if let Some((known, direction)) = observation.split_first_chunk_mut() {
            *known = *state;
            if let Some(direction) = direction.first_mut() {
                *direction = self.last as f32;
            }
        }
    }
}

fn spec(settings: Settings) -> Spec {
    let features = [
        ("cpu_utilisation", 0.0, 1.0),
        ("slo_preservation", 0.0, 1.0),
        ("cpu_shares", 0.0, 1.0),
        ("cpu_shares_of_others", 0.0, 1.0),
        ("containers", 0.0, 1.0),
        ("arrival_rate", 0.0, 1.0),
        ("last_direction", -1.0, 1.0),
    ];
    let (count, id) = match (settings.features, settings.mode) {
        (Features::Course, Mode::Faithful) => (6, "windfall/Ece471-v0"),
        (Features::Course, Mode::FixedQuirks) => (6, "windfall/Ece471Fixed-v0"),
        (Features::WithDirection, Mode::Faithful) => (7, "windfall/Ece471Direction-v0"),
        (Features::WithDirection, Mode::FixedQuirks) => (7, "windfall/Ece471FixedDirection-v0"),
    };
    Spec::new(id, &features[..count], &ACTIONS.map(|(name, _)| name))
}

impl Environment for Ece471 {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn reset(&mut self, seed: Seed, observation: &mut [f32]) {
        self.start(seed);
        self.observe(observation);
    }

    #[inline]
    fn step(&mut self, action: usize, observation: &mut [f32]) -> Step {
        let conduct = self.carry_out(ACTIONS[action].1);
        // Once for both, the reward and the observation.
        let computed;
        let shown = match self.looked_up() {
            Some(shown) => shown,
            None => {
                computed = self.computed();
                &computed
            }
        };
        self.write(&shown.state, observation);
        let reward = self.settings.design.pay(shown.row, conduct);
        let is_cut = self.steps >= self.settings.horizon;
        #[expect(clippy::cast_possible_truncation, reason = "rewards are f32")]
        Step { reward: reward as f32, end: if is_cut { End::Truncated } else { End::Continues } }
    }

    #[inline]
    fn mask(&self, allowed: &mut [bool]) {
        // What `is_legal` says of the five, without asking it five times: a mask is written after every step.
        let (some, shares) = (self.containers > 0, self.shares);
        let most = if self.settings.mode == Mode::FixedQuirks { MOST_SHARES } else { u32::MAX };
        let step = SHARES_STEP.unsigned_abs();
        let up = some & (shares <= most - step);
        let down = some & (shares >= FEWEST_SHARES + step);
        let legal = [true, self.containers < MOST_CONTAINERS, some, up, down];
        let all = allowed.first_chunk_mut().expect("a mask has a place for each action");
        *all = legal;
    }

    fn info(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("containers", f64::from(self.containers)),
            ("requests_per_s", f64::from(self.rate)),
            ("shares_per_container", f64::from(self.shares)),
            ("latency_s", self.row().latency),
        ]
    }

    fn memory(&self) -> Vec<i64> {
        vec![i64::from(self.shares)]
    }

    fn remember(&mut self, memory: &[i64]) {
        if let Some(shares) = memory.first().and_then(|shares| u32::try_from(*shares).ok()) {
            self.shares = shares;
        }
    }
}

#[cfg(test)]
mod tests;
