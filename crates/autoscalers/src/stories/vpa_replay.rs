//! Replays the VerticalPodAutoscaler's stories: samples in, amounts out. A decision is one amount, the list of rejected
//! samples of one event, or one recorded internal state.

use std::collections::BTreeMap;
use std::io::Read;

use super::report::{Difference, Report, StoryError};
use super::story_lines::for_each_story;
use super::vpa_format::{
    Event, RawAggregate, RawCheckpoint, RawContainerState, RawHistogram, RawSavedHistogram,
    Samples, Story, Tick,
};
use crate::vpa::{
    Aggregate, Checkpoint, ContainerRecommendation, DecayingHistogram, HistogramCheckpoint,
    Recommender, Resource, Resources, VpaSettings,
};

/// Replays the VerticalPodAutoscaler's stories from JSON lines, plain or gzip.
pub fn replay_vpa(source: impl Read) -> Result<Report, StoryError> {
    let mut report = Report::default();
    for_each_story(source, |line, story: Story| {
        report.stories += 1;
        play(&story, &mut report)
            .map_err(|problem| StoryError::at(line, format!("story {}: {problem}", story.id)))
    })?;
    Ok(report)
}

/// A story during its replay. Internal times are Unix seconds; recorded ones count from the start of the story.
struct Playing<'a> {
    story: &'a Story,
    vpa: VpaSettings,
    recommender: Recommender,
    saved: BTreeMap<String, Checkpoint>,
    now: i64,
    report: &'a mut Report,
}

fn play(story: &Story, report: &mut Report) -> Result<(), String> {
    let policies = story.config.container_policies.iter().map(|raw| raw.policy());
    let vpa = VpaSettings {
        policies: policies.collect::<Result<_, _>>()?,
        integer_cpu_containers: story.config.integer_cpu_containers.clone(),
        ..VpaSettings::default()
    };
    let recommender = Recommender::new(story.config.settings(), vpa.clone());
    let now = story.start_unix_s;
    let mut playing = Playing { story, vpa, recommender, saved: BTreeMap::new(), now, report };
    let mut ticks = story.recommendations.iter();
    for event in &story.events {
        playing.apply(event, &mut ticks)?;
    }
    Ok(())
}

impl<'a> Playing<'a> {
    fn apply(
        &mut self,
        event: &Event,
        ticks: &mut impl Iterator<Item = &'a Tick>,
    ) -> Result<(), String> {
        let start = self.story.start_unix_s;
        match event {
            Event::PodStart { t, pod, revision, containers } => {
                self.now = start + t;
                self.recommender.start_pod(pod, revision, containers, self.now);
            }
            Event::PodStop { t, pod } => {
                self.now = start + t;
                self.recommender.stop_pod(pod);
            }
            Event::Cpu(samples) => self.samples(samples, Recommender::cpu),
            Event::Memory(samples) => self.samples(samples, Recommender::memory),
            Event::Oom(oom) => {
                let of = (oom.pod.as_str(), oom.container.as_str());
                let at = start + oom.t;
                let accepted = self.recommender.oom(of, oom.requested_memory_bytes, at, self.now);
                let refused: Vec<usize> = (!accepted).then_some(0).into_iter().collect();
                self.compare(oom.t, &oom.discarded, &refused, "rejected kills");
            }
            Event::Tick { t, checkpoint } => {
                self.now = start + t;
                let recorded = ticks.next().ok_or("more ticks than recommendations")?;
                self.tick(*t, *checkpoint, recorded);
            }
            Event::RecommenderRestart { t } => {
                self.now = start + t;
                self.restart();
            }
        }
        Ok(())
    }

    fn samples(
        &mut self,
        samples: &Samples,
        take: fn(&mut Recommender, (&str, &str), i64, i64, i64) -> bool,
    ) {
        let of = (samples.pod.as_str(), samples.container.as_str());
        let mut refused = Vec::new();
        for (place, value) in samples.values.iter().enumerate() {
            let at = self.story.start_unix_s + samples.t + place as i64 * samples.step;
            if !take(&mut self.recommender, of, *value, at, self.now) {
                refused.push(place);
            }
        }
        self.compare(samples.t, &samples.discarded, &refused, "rejected samples");
    }

    fn tick(&mut self, t: i64, saves: bool, recorded: &Tick) {
        let merged = self.recommender.merged(self.now);
        let ours = self.recommender.recommend(&merged);
        self.amounts(t, recorded, &ours);
        if let Some(aggregates) = &recorded.aggregates {
            // The recording has only the aggregates that were used: those with a recommendation.
            let states = ours.iter().filter_map(|it| merged.get_key_value(&it.container));
            let states: Vec<RawAggregate> =
                states.map(|(name, state)| self.aggregate_form(name, state)).collect();
            let is_equal = aggregates.len() == states.len()
                && aggregates.iter().zip(&states).all(|(a, b)| is_near(a, b));
            self.note(t, is_equal, aggregates, &states, "aggregates");
        }
        if let Some(recorded) = &recorded.container_states {
            let states = self.container_states();
            // Recorded in the order of the pod's spec, which the algorithm does not have.
            let is_equal = recorded.len() == states.len()
                && recorded.iter().all(|state| states.contains(state));
            self.note(t, is_equal, recorded, &states, "container states");
        }
        if saves {
            let saved = self.recommender.save(self.now);
            if let Some(recorded) = &recorded.saved_checkpoint {
                let ours: Vec<RawCheckpoint> =
                    saved.iter().map(|(name, it)| self.checkpoint_form(name, it)).collect();
                let is_equal = recorded.len() == ours.len()
                    && recorded.iter().zip(&ours).all(|(a, b)| is_same_checkpoint(a, b));
                self.note(t, is_equal, recorded, &ours, "checkpoint");
            }
            self.saved.extend(saved);
        }
        self.recommender.collect_garbage(self.now);
    }

    /// Compares every amount of every container.
    fn amounts(&mut self, t: i64, recorded: &Tick, ours: &[ContainerRecommendation]) {
        let recorded: Vec<ContainerRecommendation> =
            recorded.containers.iter().map(|raw| raw.recommendation()).collect();
        let names = |list: &[ContainerRecommendation]| -> Vec<String> {
            list.iter().map(|it| it.container.clone()).collect()
        };
        if names(&recorded) != names(ours) {
            self.compare(t, &names(&recorded), &names(ours), "containers");
            return;
        }
        let parts: [fn(&ContainerRecommendation) -> Resources; 4] =
            [|it| it.target, |it| it.lower_bound, |it| it.upper_bound, |it| it.uncapped_target];
        for (theirs, ours) in recorded.iter().zip(ours) {
            for (part, resource) in parts.iter().flat_map(|it| Resource::ALL.map(|r| (it, r))) {
                let (a, b) = (part(theirs).of(resource), part(ours).of(resource));
                if a.is_some() || b.is_some() {
                    self.note(t, a == b, theirs, ours, &format!("{resource:?}"));
                }
            }
        }
    }

    fn restart(&mut self) {
        let running = self.recommender.running();
        let settings = self.story.config.settings();
        self.recommender = Recommender::restored(settings, self.vpa.clone(), &self.saved, self.now);
        for (pod, revision, containers) in running {
            self.recommender.start_pod(&pod, &revision, &containers, self.now);
        }
    }

    fn since_start(&self, at: Option<i64>) -> Option<i64> {
        at.map(|at| at - self.story.start_unix_s)
    }

    fn aggregate_form(&self, container: &str, state: &Aggregate) -> RawAggregate {
        let histogram = |it: &DecayingHistogram| RawHistogram {
            reference_t: self.since_start(it.reference()),
            total_weight: it.total_weight(),
            p50: it.percentile(0.5),
            p90: it.percentile(0.9),
            p95: it.percentile(0.95),
        };
        RawAggregate {
            container: container.to_owned(),
            first_sample_t: self.since_start(state.first_sample),
            last_sample_t: self.since_start(state.last_sample),
            total_samples_count: state.samples,
            cpu: histogram(&state.cpu),
            memory: histogram(&state.memory),
        }
    }

    fn container_states(&self) -> Vec<RawContainerState> {
        let states = self.recommender.container_states();
        states
            .map(|(pod, container, state)| RawContainerState {
                pod: pod.to_owned(),
                container: container.to_owned(),
                last_cpu_sample_t: self.since_start(state.last_cpu),
                memory_window_end_t: self.since_start(state.window_end),
                max_memory_peak_bytes: state.peak(),
            })
            .collect()
    }

    fn checkpoint_form(&self, container: &str, saved: &Checkpoint) -> RawCheckpoint {
        let histogram = |it: &HistogramCheckpoint| RawSavedHistogram {
            reference_t: self.since_start(it.reference),
            total_weight: it.total_weight,
            bucket_weights: it.bucket_weights.clone(),
        };
        RawCheckpoint {
            container: container.to_owned(),
            first_sample_t: self.since_start(saved.first_sample),
            last_sample_t: self.since_start(saved.last_sample),
            total_samples_count: saved.samples,
            cpu: histogram(&saved.cpu),
            memory: histogram(&saved.memory),
        }
    }

    fn compare<T: PartialEq + std::fmt::Debug>(
        &mut self,
        t: i64,
        theirs: &T,
        ours: &T,
        what: &str,
    ) {
        self.note(t, theirs == ours, theirs, ours, what);
    }

    fn note(
        &mut self,
        t: i64,
        is_equal: bool,
        theirs: &dyn std::fmt::Debug,
        ours: &dyn std::fmt::Debug,
        what: &str,
    ) {
        let story = self.story;
        let states = if is_equal { Vec::new() } else { self.container_states() };
        self.report.count(is_equal, || Difference {
            story: story.id.clone(),
            time: t.to_string(),
            expected: format!("{what}: {theirs:?}"),
            ours: format!("{what}: {ours:?}"),
            seen: format!("{states:?}"),
        });
    }
}

/// Weights are recorded with twelve digits.
fn is_near_weight(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

fn is_near(a: &RawAggregate, b: &RawAggregate) -> bool {
    let same = |a: &RawHistogram, b: &RawHistogram| {
        a.reference_t == b.reference_t
            && is_near_weight(a.total_weight, b.total_weight)
            && (a.p50, a.p90, a.p95) == (b.p50, b.p90, b.p95)
    };
    (&a.container, a.first_sample_t, a.last_sample_t, a.total_samples_count)
        == (&b.container, b.first_sample_t, b.last_sample_t, b.total_samples_count)
        && same(&a.cpu, &b.cpu)
        && same(&a.memory, &b.memory)
}

fn is_same_checkpoint(a: &RawCheckpoint, b: &RawCheckpoint) -> bool {
    let same = |a: &RawSavedHistogram, b: &RawSavedHistogram| {
        a.reference_t == b.reference_t
            && is_near_weight(a.total_weight, b.total_weight)
            && a.bucket_weights == b.bucket_weights
    };
    (&a.container, a.first_sample_t, a.last_sample_t, a.total_samples_count)
        == (&b.container, b.first_sample_t, b.last_sample_t, b.total_samples_count)
        && same(&a.cpu, &b.cpu)
        && same(&a.memory, &b.memory)
}
