//! Agents that act in one world and learn from it, one network each or one for all.
//!
//! | method | actor sees | critic sees | acts |
//! | --- | --- | --- | --- |
//! | S-RL | itself | itself | the published moves |
//! | MAPPO | itself | itself and everybody's rows | the published moves |
//! | SIMPPO | itself and the virtual agent | the same | the published moves |
//! | residual | itself, the virtual agent and the rule's decision | the same | the published moves, on top of the rule's decision (`residual`) |
//! | targets | the same and its own past | the same | how far the rule is to stay above what it decides (`residual`) |

use serde::Serialize;
use windfall_core::Seed;
use windfall_core::statistics::mean;
use windfall_gym::moves::{Deployment, Moves};
use windfall_rl::Checkpoint;
use windfall_rl::algorithms::ppo::{PpoAgent, PpoSettings, Segment};
use windfall_rl::random::Draw;
use windfall_rl::schedule::Schedule;

use super::arena::{Arena, HISTORY};
use super::auxiliary::{Auxiliary, Field, OWN, Report};
use super::context::{CONTEXT, write_context};
use super::faults::{Decider, FaultSettings, Faults};
use super::residual::{self, ARMS, RULE};

/// How agents learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Every agent for itself.
    Single,
    /// A critic that sees everybody.
    Mappo,
    /// The rest of the world as one virtual agent.
    Simppo(Auxiliary),
    /// SIMPPO on top of a rule.
    Residual(Auxiliary),
    /// A learner that sets a rule's targets.
    Targets(Auxiliary),
}

impl Method {
    fn auxiliary(self) -> Auxiliary {
        match self {
            Self::Single | Self::Mappo => Auxiliary::None,
            Self::Simppo(auxiliary) | Self::Residual(auxiliary) | Self::Targets(auxiliary) => {
                auxiliary
            }
        }
    }

    /// Whether it acts on a rule's decision.
    fn has_rule(self) -> bool {
        matches!(self, Self::Residual(_) | Self::Targets(_))
    }

    fn is_targets(self) -> bool {
        matches!(self, Self::Targets(_))
    }
}

/// Settings of a [`Team`].
#[derive(Clone, Debug)]
pub struct TeamSettings {
    /// How agents learn.
    pub method: Method,
    /// One network for all.
    pub is_shared: bool,
    /// Newcomers begin with the weights of an agent that is there.
    pub warm_start: bool,
    /// How much likelier than any other move holding is before anything is learned, as a logit.
    pub hold_bias: f32,
    /// Share of the agents that the others do not hear of in a tick of training. Where all were heard of for 120
    /// episodes, coverage was 1 and its deviation 0: after one episode with silent agents it is 0.007, a
    /// coverage of 0.82 stands in the row as -26, cut to -10, before weights that never learned what it means.
    pub unheard: f64,
    /// Of every agent.
    pub ppo: PpoSettings,
}

impl TeamSettings {
    /// One network per agent, PPO with its details on, for `episodes` of training.
    pub fn new(method: Method, episodes: u64) -> Self {
        let ppo = PpoSettings {
            iterations: episodes,
            epochs: 6,
            minibatch: 100,
            // What a move brings shows within a few ticks; looking further adds only the noise of what the load and
            // the others do. On validation hours 0.8 earns 8 to 10 more per episode than 0.95.
            discount: 0.8,
            entropy: Schedule::linear(0.02, 0.002),
            learning_rate: Schedule::linear(1.5e-3, 3e-4),
            // On validation hours no worse than 64 and 64, at a third of the work.
            hidden: vec![32, 32],
            ..PpoSettings::default()
        };
        Self { method, is_shared: false, warm_start: true, hold_bias: 2.0, unheard: 0.1, ppo }
    }

    /// The same with the PPO that the authors' single agents are published with: a discount of 0.99, returns instead of
    /// GAE, batches of 5, nothing normalised, no schedules. Masks stay, which are the world's.
    pub fn with_published_ppo(mut self) -> Self {
        self.ppo = PpoSettings {
            iterations: self.ppo.iterations,
            discount: 0.99,
            epochs: 5,
            minibatch: 5,
            value_weight: 0.05,
            ..PpoSettings::plain()
        };
        self
    }

    /// The same with one network for all, which receives features of the function it decides for.
    pub fn shared(mut self) -> Self {
        self.is_shared = true;
        self.ppo.minibatch = 400;
        self
    }

    /// The same without silent agents, for worlds in which none falls silent.
    pub fn heard(mut self) -> Self {
        self.unheard = 0.0;
        self
    }
}

/// What came of an episode.
#[derive(Clone, Debug, Default)]
pub struct Play {
    /// Sum of rewards of each agent.
    pub rewards: Vec<f64>,
    /// Choices that were not allowed.
    pub illegal: u64,
    /// Most ticks in a row without a decision-maker.
    pub longest_gap: u64,
    segments: Vec<Vec<Segment>>,
}

impl Play {
    /// Mean over the agents of their sums of rewards.
    pub fn mean(&self) -> f64 {
        mean(&self.rewards).unwrap_or(0.0)
    }
}

/// Agents of one world.
#[derive(Clone, Debug)]
pub struct Team {
    settings: TeamSettings,
    agents: Vec<PpoAgent>,
    count: usize,
    moves: Moves,
    seed: Seed,
}

/// What one tick asks of the team, in room that is kept.
#[derive(Default)]
struct Tick {
    number: u64,
    rows: Vec<f32>,
    critic_rows: Vec<f32>,
    allowed: Vec<bool>,
    chosen: Vec<Option<usize>>,
    logs: Vec<f32>,
    deciders: Vec<Decider>,
}

impl Team {
    /// A team of `count` that knows nothing.
    pub fn new(settings: TeamSettings, count: usize, seed: Seed) -> Self {
        let moves = Moves::paper();
        let mut team = Self { settings, agents: Vec::new(), count, moves, seed };
        let networks = if team.settings.is_shared { 1 } else { count };
        for index in 0..networks {
            let agent = team.fresh(index);
            team.agents.push(agent);
        }
        team
    }

    fn fresh(&self, index: usize) -> PpoAgent {
        let (inputs, critic) = (self.inputs(), self.critic_inputs());
        let seed = self.seed.stream("agents").member(index as u64);
        let settings = self.settings.ppo.clone();
        let mut agent = PpoAgent::new(settings, inputs, critic, self.actions(), seed);
        // To begin with, most ticks change nothing: a walk at random over all knobs ends in places from which
        // little is learned. A residual begins as its rule, more often than not without a correction.
        agent.prefer(0, self.settings.hold_bias);
        agent.normalise_alike(self.settings.method.auxiliary().twins());
        agent
    }

    fn inputs(&self) -> usize {
        OWN + self.settings.method.auxiliary().width() + self.about_rule() + self.context()
    }

    /// Numbers that show the rule's decision, and the past.
    fn about_rule(&self) -> usize {
        let method = self.settings.method;
        let past = if method.is_targets() { HISTORY } else { 0 };
        if method.has_rule() { RULE + past } else { 0 }
    }

    fn actions(&self) -> usize {
        if self.settings.method.is_targets() { ARMS.len() } else { self.moves.count() }
    }

    /// Numbers that say whose function it is, where one network decides for all.
    fn context(&self) -> usize {
        if self.settings.is_shared { CONTEXT } else { 0 }
    }

    fn critic_inputs(&self) -> usize {
        match self.settings.method {
            Method::Mappo => OWN * (self.count + 1) + self.context(),
            _ => self.inputs(),
        }
    }

    /// Number of agents.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes of all networks with their optimisers.
    pub fn bytes(&self) -> usize {
        self.agents.iter().map(PpoAgent::bytes).sum()
    }

    /// The team with newcomers, up to `count`. A newcomer takes over the weights of the agent of the same
    /// kind of function twelve places before it, else of another, or begins afresh.
    pub fn grow(&mut self, count: usize) {
        let before = self.agents.len();
        self.count = count;
        if self.settings.is_shared {
            return;
        }
        for index in before..count {
            let donor = if index >= 12 { index - 12 } else { index % before.max(1) };
            let agent = if self.settings.warm_start && before > 0 {
                self.agents[donor].clone()
            } else {
                self.fresh(index)
            };
            self.agents.push(agent);
        }
    }

    /// The network that decides for all, with the names of what it reads and what it may do; nothing where every agent has
    /// its own, or where it reads what only an environment knows.
    pub fn deciding(&self) -> Option<Checkpoint> {
        let is_known = self.settings.method == Method::Simppo(Auxiliary::MeanField);
        let network = self.agents.first().filter(|_| self.settings.is_shared && is_known)?;
        Some(network.deciding(&super::deployed::spec()))
    }

    fn network(&mut self, agent: usize) -> &mut PpoAgent {
        let place = if self.settings.is_shared { 0 } else { agent };
        &mut self.agents[place]
    }

    /// Plays the rest of an episode. With `draws` agents try things and what happened is kept for
    /// [`Team::learn`]; without, each does what it thinks best.
    pub fn play<A: Arena>(
        &mut self,
        env: &mut A,
        draws: Option<Seed>,
        faults: FaultSettings,
        mut after_tick: impl FnMut(&A),
    ) -> Play {
        let (count, episode_ticks) = (env.agents(), env.episode_ticks());
        let mut faults = Faults::new(faults, count, episode_ticks, draws.unwrap_or(Seed::new(0)));
        let mut draw = draws.map(|seed| Draw::new(seed.stream("actions")));
        let mut hearing = draws.map(|seed| Draw::new(seed.stream("unheard")));
        let mut reports = vec![Report::default(); count];
        let (mut field, mut tick) = (Field::default(), Tick::default());
        let mut rule = env.new_rule();
        let mut play = Play { rewards: vec![0.0; count], ..Play::default() };
        play.segments = vec![vec![Segment::default()]; count];
        while !env.is_over() {
            tick.number = env.ticks();
            tick.deciders.clear();
            tick.deciders.extend((0..count).map(|agent| faults.decider(agent, tick.number)));
            self.report(env, &tick.deciders, &faults, &mut reports);
            if let Some(hearing) = &mut hearing {
                let mut is_heard = || hearing.unit() >= self.settings.unheard;
                reports.iter_mut().for_each(|reports| reports.is_live &= is_heard());
            }
            field.gather(&reports, count);
            let proposed = env.propose(&mut rule);
            self.look(env, (&reports, &field), &proposed, &mut tick);
            self.choose(&mut tick, draw.as_mut());
            let before: Vec<Deployment> = (0..count).map(|agent| env.deployment(agent)).collect();
            let done = self.carry_out(env, &tick, &proposed, &mut play);
            for agent in 0..count {
                let (from, to) = (before[agent], env.deployment(agent));
                reports[agent].horizontal = to.instances as f32 - from.instances as f32;
                reports[agent].vertical = (to.cpu as f32 - from.cpu as f32) / 128.0
                    + (to.memory as f32 - from.memory as f32) / 64.0;
                let reward = env.reward(agent);
                play.rewards[agent] += reward;
                if draw.is_some() && tick.deciders[agent] == Decider::Agent {
                    self.keep(agent, (&tick, done[agent], reward), &mut faults, &mut play);
                }
            }
            after_tick(env);
        }
        play.longest_gap = faults.longest_gap();
        if draws.is_some() {
            let proposed = env.propose(&mut rule);
            self.close(env, &reports, &proposed, &mut play);
        }
        play
    }

    /// Every agent that can reports its row; a silent one's last row counts while its lease lasts.
    fn report<A: Arena>(
        &self,
        env: &A,
        deciders: &[Decider],
        faults: &Faults,
        reports: &mut [Report],
    ) {
        let capacity = env.cores();
        for (agent, reports) in reports.iter_mut().enumerate() {
            reports.is_live = env.is_active(agent) && faults.has_lease(agent);
            if deciders[agent] == Decider::Agent {
                env.write_row(agent, &mut reports.row);
                let deployment = env.deployment(agent);
                reports.held =
                    (f64::from(deployment.instances * deployment.cpu) * 1e-3 / capacity) as f32;
            }
        }
    }

    /// Rows and masks of all agents.
    fn look<A: Arena>(
        &self,
        env: &A,
        (reports, field): (&[Report], &Field),
        proposed: &[Deployment],
        tick: &mut Tick,
    ) {
        let (inputs, critic, actions) = (self.inputs(), self.critic_inputs(), self.actions());
        let count = env.agents();
        tick.rows.resize(count * inputs, 0.0);
        tick.critic_rows.resize(count * critic, 0.0);
        tick.allowed.resize(count * actions, false);
        let everybody: Vec<f32> = if self.settings.method == Method::Mappo {
            reports.iter().flat_map(|reports| reports.row).collect()
        } else {
            Vec::new()
        };
        for (agent, &goal) in proposed.iter().enumerate().take(count) {
            let row = &mut tick.rows[agent * inputs..(agent + 1) * inputs];
            env.write_row(agent, &mut row[..OWN]);
            let about_others = OWN + self.settings.method.auxiliary().width();
            field.write(self.settings.method.auxiliary(), agent, &mut row[OWN..about_others]);
            let whose = inputs - self.context();
            if about_others < whose {
                let past = about_others + RULE;
                residual::write_rule(env, agent, goal, &mut row[about_others..past]);
                env.write_history(agent, &mut row[past..whose]);
            }
            if whose < inputs {
                write_context(&env.profile(agent), &mut row[whose..]);
            }
            let central = &mut tick.critic_rows[agent * critic..(agent + 1) * critic];
            if everybody.is_empty() {
                central.copy_from_slice(row);
            } else {
                let parts = [&row[..OWN], &everybody, &row[whose..]].concat();
                central.copy_from_slice(&parts);
            }
            let allowed = &mut tick.allowed[agent * actions..(agent + 1) * actions];
            match self.settings.method {
                Method::Targets(_) => allowed.fill(true),
                Method::Residual(_) => residual::write_mask(&self.moves, env, agent, allowed),
                _ => env.write_mask(agent, allowed),
            }
        }
    }

    fn choose(&mut self, tick: &mut Tick, mut draw: Option<&mut Draw>) {
        let (inputs, actions) = (self.inputs(), self.actions());
        tick.chosen.clear();
        tick.logs.clear();
        for agent in 0..tick.deciders.len() {
            if tick.deciders[agent] != Decider::Agent {
                tick.chosen.push(None);
                tick.logs.push(0.0);
                continue;
            }
            let row = &tick.rows[agent * inputs..(agent + 1) * inputs];
            let allowed = &tick.allowed[agent * actions..(agent + 1) * actions];
            let (action, log) = self.network(agent).act(row, allowed, draw.as_deref_mut());
            tick.chosen.push(Some(action));
            tick.logs.push(log);
        }
    }

    /// Carries out what was chosen; where nobody could choose for too long, what the rule decides. Returns
    /// the moves that were done.
    fn carry_out<A: Arena>(
        &mut self,
        env: &mut A,
        tick: &Tick,
        proposed: &[Deployment],
        play: &mut Play,
    ) -> Vec<usize> {
        let range = env.range();
        let mut wanted = Vec::with_capacity(env.agents());
        let mut allowed = vec![false; self.moves.count()];
        let before: Vec<Deployment> =
            (0..env.agents()).map(|agent| env.deployment(agent)).collect();
        for (agent, &now) in before.iter().enumerate() {
            let goal = proposed.get(agent).copied().unwrap_or(now);
            let method = self.settings.method;
            wanted.push(match (tick.deciders[agent], tick.chosen[agent]) {
                (Decider::Nobody, _) | (Decider::Agent, None) => now,
                (Decider::Fallback, _) => Deployment { instances: goal.instances, ..now },
                (Decider::Agent, Some(action)) if method.has_rule() => {
                    let deployment = if method.is_targets() {
                        ARMS[action].applied(goal, range)
                    } else {
                        residual::corrected(self.moves.list()[action], now, goal, range)
                    };
                    residual::steady(env, agent, deployment)
                }
                (Decider::Agent, Some(action)) => {
                    env.write_mask(agent, &mut allowed);
                    play.illegal += u64::from(!allowed[action]);
                    self.moves.list()[action].apply(now, range).unwrap_or(now)
                }
            });
        }
        env.act(&wanted);
        let done = |(agent, &from): (usize, &Deployment)| {
            let chosen = tick.chosen[agent].unwrap_or(0);
            if self.settings.method.has_rule() {
                chosen
            } else {
                self.moves.between(from, env.deployment(agent), range)
            }
        };
        before.iter().enumerate().map(done).collect()
    }

    /// Sends one transition to the learner. What was done counts, not what was proposed.
    fn keep(
        &mut self,
        agent: usize,
        (tick, done, reward): (&Tick, usize, f64),
        faults: &mut Faults,
        play: &mut Play,
    ) {
        let (inputs, critic, actions) = (self.inputs(), self.critic_inputs(), self.actions());
        if !faults.arrives() {
            return;
        }
        let row = &tick.rows[agent * inputs..(agent + 1) * inputs];
        let critic_row = &tick.critic_rows[agent * critic..(agent + 1) * critic];
        let allowed = &tick.allowed[agent * actions..(agent + 1) * actions];
        let log = if tick.chosen[agent] == Some(done) {
            tick.logs[agent]
        } else {
            self.network(agent).log_probability(row, allowed, done)
        };
        if log < -1e20 {
            return;
        }
        let segments = &mut play.segments[agent];
        if !faults.follows(agent, tick.number)
            && let Some(broken) = segments.last_mut()
        {
            broken.last = critic_row.to_vec();
            segments.push(Segment::default());
        }
        let segment = segments.last_mut().expect("there is always one");
        segment.rows.extend_from_slice(row);
        segment.critic_rows.extend_from_slice(critic_row);
        segment.allowed.extend_from_slice(allowed);
        segment.actions.push(done);
        segment.log_probabilities.push(log);
        segment.rewards.push(reward as f32);
    }

    /// The state after the last step, from which the value of what follows is read.
    fn close<A: Arena>(
        &self,
        env: &A,
        reports: &[Report],
        proposed: &[Deployment],
        play: &mut Play,
    ) {
        let (mut field, mut tick) = (Field::default(), Tick::default());
        field.gather(reports, reports.len());
        self.look(env, (reports, &field), proposed, &mut tick);
        let critic = self.critic_inputs();
        for (agent, segments) in play.segments.iter_mut().enumerate() {
            if let Some(last) = segments.last_mut() {
                last.last = tick.critic_rows[agent * critic..(agent + 1) * critic].to_vec();
            }
        }
    }

    /// Learns from an episode that was played with draws.
    pub fn learn(&mut self, play: &Play) {
        if self.settings.is_shared {
            let all: Vec<Segment> = play.segments.iter().flatten().cloned().collect();
            self.agents[0].learn(&all);
        } else {
            for (agent, segments) in self.agents.iter_mut().zip(&play.segments) {
                agent.learn(segments);
            }
        }
    }

    /// Everything a training of `ticks` takes beside the world itself, which stands still: rows, choices,
    /// transitions, one update. For benchmarks.
    pub fn rehearse<A: Arena>(&mut self, env: &A, ticks: usize) {
        let count = env.agents();
        let mut faults = Faults::new(FaultSettings::NONE, count, ticks as u64, Seed::new(0));
        let mut draw = Draw::new(self.seed.stream("rehearsal"));
        let mut reports = vec![Report::default(); count];
        let (mut field, mut tick) = (Field::default(), Tick::default());
        let mut play = Play { rewards: vec![0.0; count], ..Play::default() };
        play.segments = vec![vec![Segment::default()]; count];
        tick.deciders = vec![Decider::Agent; count];
        let proposed: Vec<Deployment> = (0..count).map(|agent| env.deployment(agent)).collect();
        for number in 0..ticks as u64 {
            tick.number = number;
            self.report(env, &tick.deciders, &faults, &mut reports);
            field.gather(&reports, count);
            self.look(env, (&reports, &field), &proposed, &mut tick);
            self.choose(&mut tick, Some(&mut draw));
            for agent in 0..count {
                let done = tick.chosen[agent].unwrap_or(0);
                self.keep(agent, (&tick, done, draw.unit()), &mut faults, &mut play);
            }
        }
        self.close(env, &reports, &proposed, &mut play);
        self.learn(&play);
    }

    /// Plays one episode and learns from it; the mean over agents of their sums of rewards.
    pub fn train<A: Arena>(&mut self, env: &mut A, seed: Seed, faults: FaultSettings) -> Play {
        env.reset(seed);
        let play = self.play(env, Some(seed), faults, |_| {});
        self.learn(&play);
        play
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_gym::multi::{MultiScaling, MultiSettings};
    use windfall_rl::normalise::Moments;

    #[test]
    fn who_learns_has_missed_some_of_the_others_before_any_fault() {
        let method = Method::Simppo(Auxiliary::MeanField);
        let mut team = Team::new(TeamSettings::new(method, 1).shared(), 6, Seed::new(1));
        let mut settings = MultiSettings::new(6, Seed::new(1));
        settings.ticks = 50;
        let mut env = MultiScaling::new(settings, Seed::new(2));
        let play = team.play(&mut env, Some(Seed::new(3)), FaultSettings::NONE, |_| {});
        let mut seen = Moments::new(team.inputs());
        play.segments.iter().flatten().for_each(|segment| seen.observe(&segment.rows));
        // One of five unheard with probability 0.1 each: sqrt(0.1 x 0.9 / 5) = 0.13.
        let coverage = seen.deviation(OWN + method.auxiliary().width() - 1);
        assert!((0.08..0.2).contains(&coverage), "{coverage}");
    }

    #[test]
    fn no_segment_reaches_over_a_time_in_which_somebody_else_decided() {
        let mut team = Team::new(TeamSettings::new(Method::Single, 1).shared(), 6, Seed::new(1));
        let mut settings = MultiSettings::new(6, Seed::new(1));
        settings.ticks = 60;
        let mut env = MultiScaling::new(settings, Seed::new(2));
        let away = FaultSettings { lost: 0.0, ..FaultSettings::PUBLISHED };
        let play = team.play(&mut env, Some(Seed::new(3)), away, |_| {});
        // Agent 1 is away from tick 37 to 56.
        let lengths: Vec<usize> = play.segments[1].iter().map(|one| one.actions.len()).collect();
        assert_eq!(lengths, [37, 3]);
        assert_eq!(play.segments[0].len(), 1);
    }
}
