//! What came out, in sentences: what speaks against learning first.

use windfall_papers::simppo::Results;
use windfall_papers::simppo::shared::margins::Margin;

use super::{Summary, summaries};

/// The first paragraph.
pub(super) fn story(results: &Results) -> String {
    let all = summaries(results);
    let parts = [
        against_rules(&all),
        margins(results),
        published(results),
        auxiliary(results),
        gate(results),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn reward(all: &[Summary], name: &str) -> f64 {
    all.iter().find(|one| one.policy == name).map_or(0.0, |one| one.reward)
}

/// Rules that beat SIMPPO without any training, calibrated or not.
fn against_rules(all: &[Summary]) -> String {
    let is_rule =
        |name: &str| !["simppo", "s-rl", "mappo", "isolated", "oracle", "random"].contains(&name);
    let (simppo, tail) = (
        reward(all, "simppo"),
        all.iter().find(|one| one.policy == "simppo").map_or(0.0, |one| one.p99_to_slo),
    );
    let rules: Vec<&Summary> = all.iter().filter(|one| is_rule(one.policy)).collect();
    let mut richer: Vec<&&Summary> = rules.iter().filter(|one| one.reward > simppo).collect();
    richer.sort_by(|one, other| other.reward.total_cmp(&one.reward));
    let first = if richer.is_empty() {
        let best = rules.iter().max_by(|one, other| one.reward.total_cmp(&other.reward));
        let best = best.map_or(String::new(), |one| format!("; {} {:.1}", one.policy, one.reward));
        format!("No rule earns more than SIMPPO ({simppo:.1} per episode{best}).")
    } else {
        let names = richer.iter().map(|one| format!("{} ({:.1})", one.policy, one.reward));
        format!("SIMPPO earns {simppo:.1} per episode and is beaten by {}.", first_three(names))
    };
    let mut faster: Vec<&&Summary> = rules.iter().filter(|one| one.p99_to_slo < tail).collect();
    faster.sort_by(|one, other| one.p99_to_slo.total_cmp(&other.p99_to_slo));
    let second = if faster.is_empty() {
        "None has a lower p99 either.".to_owned()
    } else {
        let names = faster.iter().map(|one| format!("{} ({:.2})", one.policy, one.p99_to_slo));
        format!("A lower p99 than its {tail:.2} objectives: {}.", first_three(names))
    };
    format!("{first} {second}")
}

/// The first three by name and how many more there are.
fn first_three(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    let shown = names[..names.len().min(3)].join(", ");
    match names.len().saturating_sub(3) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Where learning wins and loses against calibrated rules.
fn margins(results: &Results) -> String {
    if results.margins.is_empty() {
        return String::new();
    }
    let named = |of: &dyn Fn(&Margin) -> bool| {
        let names: Vec<&str> = results
            .margins
            .iter()
            .filter(|margin| of(margin))
            .map(|margin| margin.workload.as_str())
            .collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    format!(
        "Against the best calibrated rule of each workload the best learner loses by more than the noise on {}, wins by more \
         than the noise on {}, and differs by less on {}.",
        named(&|margin| margin.high < 0.0),
        named(&|margin| margin.low > 0.0),
        named(&|margin| margin.low <= 0.0 && margin.high >= 0.0)
    )
}

/// The paper's ratios.
fn published(results: &Results) -> String {
    let Some(block) = results.block_ratios.first() else { return String::new() };
    let (p99, together) = (block.simppo_to_isolated_p99, block.together_to_simppo_p99);
    format!(
        "With the published PPO and one network each, SIMPPO keeps {:.1} % of isolated S-RL's reward at {:.2} times its p99 \
         ({:.2} to {:.2}; the paper: within 9.2 %); S-RL among others has {:.2} times SIMPPO's p99 ({:.2} to {:.2}; the \
         paper: 2 to 4.4).",
        100.0 * block.simppo_to_isolated_reward.value,
        p99.value,
        p99.low,
        p99.high,
        together.value,
        together.low,
        together.high
    )
}

/// What the auxiliary state is worth: the same without it.
fn auxiliary(results: &Results) -> String {
    let worth = &results.auxiliary_worth;
    if worth.pairs.is_empty() {
        return String::new();
    }
    let better = worth.pairs.iter().filter(|pair| pair.low > 0.0).count();
    let worse = worth.pairs.iter().filter(|pair| pair.high < 0.0).count();
    format!(
        "The auxiliary state is worth {:+.1} per episode there ({:.1} to {:.1}); of {} like-for-like pairs it helps in {better} \
         and harms in {worse} by more than the noise.",
        worth.reward_difference,
        worth.low,
        worth.high,
        worth.pairs.len()
    )
}

fn gate(results: &Results) -> String {
    let gate = &results.gate;
    let influence: Vec<String> = gate
        .influence
        .iter()
        .map(|row| format!("{:.2} % of {}", row.others_loss_percent, row.functions))
        .collect();
    if influence.is_empty() {
        return String::new();
    }
    format!(
        "The world: half of twelve agents at their maximum cost the others {:.1} % of the reward at a load where the oracle \
         preserves {:.3} of the objectives ({:.1} % of calls in time); one agent costs the others {}.",
        gate.others_loss_percent,
        gate.oracle_preserved,
        100.0 * gate.oracle_in_time,
        influence.join(", ")
    )
}
