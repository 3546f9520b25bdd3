//! When agents fall silent and transitions are lost.
//!
//! ```text
//!   agent ──(number of tick)───► learner     a gap in the numbers ends a segment: no advantage reaches over it
//!   agent ──(heartbeat)────────► lease       two ticks without one: the function holds;
//!                                            after that the queueing rule decides, until the agent is back
//! ```
//!
//! The mean field is taken over agents with a lease; how many of the others that are is one of its numbers.

use windfall_core::Seed;
use windfall_rl::random::Draw;

/// Ticks without a heartbeat after which a lease ends and the fallback decides.
pub const LEASE: u64 = 2;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultSettings {
    /// Share of transitions that do not reach the learner.
    pub lost: f64,
    /// Every so many agents one is cut off.
    pub one_in: usize,
    /// Share of the run for which it is.
    pub away: f64,
}

impl FaultSettings {
    /// A fifth of the transitions and one agent in five, for a third of the run.
    pub const PUBLISHED: Self = Self { lost: 0.2, one_in: 5, away: 1.0 / 3.0 };
    /// Nothing.
    pub const NONE: Self = Self { lost: 0.0, one_in: usize::MAX, away: 0.0 };
}

/// Who decides for a function in this tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decider {
    /// Its agent.
    Agent,
    /// Nobody: it stays as it is.
    Nobody,
    /// The queueing rule.
    Fallback,
}

/// Draws faults and keeps leases.
#[derive(Clone, Debug)]
pub struct Faults {
    settings: FaultSettings,
    draw: Draw,
    ticks: u64,
    silent: Vec<u64>,
    expected: Vec<u64>,
    longest_gap: u64,
    lost: u64,
}

impl Faults {
    /// Faults of one episode of `ticks` among `agents`.
    pub fn new(settings: FaultSettings, agents: usize, ticks: u64, seed: Seed) -> Self {
        Self {
            settings,
            draw: Draw::new(seed.stream("agent-faults")),
            ticks,
            silent: vec![0; agents],
            expected: vec![0; agents],
            longest_gap: 0,
            lost: 0,
        }
    }

    /// Whether `agent` is cut off at `tick`: different ones at different times, each for its share.
    fn is_cut_off(&self, agent: usize, tick: u64) -> bool {
        let FaultSettings { one_in, away, .. } = self.settings;
        if one_in == usize::MAX || agent % one_in != 1 % one_in {
            return false;
        }
        let length = (away * self.ticks as f64) as u64;
        let latest = self.ticks.saturating_sub(length).max(1);
        let from = (agent as u64 * 37) % latest;
        (from..from + length).contains(&tick)
    }

    /// Who decides for `agent` at `tick`; to be asked once per agent and tick.
    pub fn decider(&mut self, agent: usize, tick: u64) -> Decider {
        if !self.is_cut_off(agent, tick) {
            self.silent[agent] = 0;
            return Decider::Agent;
        }
        self.silent[agent] += 1;
        if self.silent[agent] <= LEASE {
            self.longest_gap = self.longest_gap.max(self.silent[agent]);
            Decider::Nobody
        } else {
            Decider::Fallback
        }
    }

    /// Whether the last report of `agent` still counts.
    pub fn has_lease(&self, agent: usize) -> bool {
        self.silent[agent] <= LEASE
    }

    /// Whether the transition that an agent sends arrives.
    pub fn arrives(&mut self) -> bool {
        let is_lost = self.settings.lost > 0.0 && self.draw.unit() < self.settings.lost;
        self.lost += u64::from(is_lost);
        !is_lost
    }

    /// Whether the transition of `tick` follows the last one that arrived from `agent`: neither was one lost between
    /// them nor did somebody else decide.
    pub fn follows(&mut self, agent: usize, tick: u64) -> bool {
        let follows = tick == self.expected[agent];
        self.expected[agent] = tick + 1;
        follows
    }

    /// Most ticks in a row in which a function had nobody to decide for it.
    pub fn longest_gap(&self) -> u64 {
        self.longest_gap
    }

    /// Transitions that did not arrive.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_agent_is_held_for_and_then_replaced() {
        let mut faults = Faults::new(FaultSettings::PUBLISHED, 10, 30, Seed::new(1));
        // Agent 1 is away from tick 37 % 20 = 17 to 26.
        let deciders: Vec<Decider> = (15..29).map(|tick| faults.decider(1, tick)).collect();
        assert_eq!(deciders[..2], [Decider::Agent; 2]);
        assert_eq!(deciders[2..4], [Decider::Nobody; 2]);
        assert_eq!(deciders[4..12], [Decider::Fallback; 8]);
        assert_eq!(deciders[12], Decider::Agent);
        assert_eq!(faults.longest_gap(), 2);
        assert!((0..30).all(|tick| faults.decider(2, tick) == Decider::Agent));
    }

    #[test]
    fn a_gap_in_the_numbers_is_noticed() {
        let mut faults = Faults::new(FaultSettings::PUBLISHED, 1, 30, Seed::new(2));
        let (mut gaps, mut arrived) = (0, 0);
        for tick in 0..1000 {
            if faults.arrives() {
                arrived += 1;
                gaps += u64::from(!faults.follows(0, tick));
            }
        }
        assert_eq!(arrived + faults.lost(), 1000);
        assert!((150..250).contains(&faults.lost()) && gaps > 100 && gaps <= faults.lost());
    }
}
