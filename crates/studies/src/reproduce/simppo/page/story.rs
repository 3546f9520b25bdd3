//! What came out, in sentences: what speaks against SIMPPO first.

use windfall_papers::simppo::{PUBLISHED_PPO, Results, SHARED_SINGLE};

use super::{Summary, summaries};

/// Policies that need no training and no knowledge of the future.
const HEURISTICS: [&str; 5] = ["queueing", "hpa", "ensure", "windfall-scaling", "fixed"];

/// The first paragraph.
pub(super) fn story(results: &Results) -> String {
    let all = summaries(results);
    let (residual, queueing) = (reward(&all, "residual"), reward(&all, "queueing"));
    let word = if residual > queueing { "more" } else { "no more" };
    let ratios = &results.ratios;
    let parts = [
        heuristics(&all),
        format!(
            "The residual variant, which begins as the queueing rule, earns {residual:.1}, {word} than the rule \
             ({queueing:.1}). Against functions that are alone (isolated S-RL, {:.1}) SIMPPO keeps {:.1} % of the reward \
             at {:.2} times the p99.",
            reward(&all, "isolated"),
            100.0 * ratios.simppo_to_isolated_reward,
            ratios.simppo_to_isolated_p99,
        ),
        together(results),
        auxiliary(results),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn reward(all: &[Summary], name: &str) -> f64 {
    all.iter().find(|one| one.policy == name).map_or(0.0, |one| one.reward)
}

/// Who beats SIMPPO without any training.
fn heuristics(all: &[Summary]) -> String {
    let of = |name: &str| reward(all, name);
    let tail = |name: &str| all.iter().find(|one| one.policy == name).map(|one| one.p99_to_slo);
    let simppo = of("simppo");
    let richer: Vec<String> = HEURISTICS
        .into_iter()
        .filter(|name| of(name) > simppo)
        .map(|name| format!("{name} ({:.1})", of(name)))
        .collect();
    let first = if richer.is_empty() {
        format!(
            "No heuristic earns more than SIMPPO ({simppo:.1} per episode; queueing {:.1}).",
            of("queueing")
        )
    } else {
        format!("SIMPPO earns {simppo:.1} per episode and is beaten by {}.", richer.join(", "))
    };
    let faster: Vec<String> = HEURISTICS
        .into_iter()
        .filter(|name| tail(name).zip(tail("simppo")).is_some_and(|(its, ours)| its < ours))
        .map(|name| format!("{name} ({:.2})", tail(name).unwrap_or_default()))
        .collect();
    let second = if faster.is_empty() {
        "None has a lower p99 either.".to_owned()
    } else {
        format!(
            "A lower p99 than its {:.2} objectives: {}.",
            tail("simppo").unwrap_or_default(),
            faster.join(", ")
        )
    };
    format!("{first} {second}")
}

/// Whether agents that know only themselves come to grief, at any load.
fn together(results: &Results) -> String {
    let ratio = results.ratios.together_to_simppo_p99;
    let highest = results
        .load_ratios
        .iter()
        .max_by(|one, other| {
            one.ratios.together_to_simppo_p99.total_cmp(&other.ratios.together_to_simppo_p99)
        })
        .map(|at| (at.load, at.ratios.together_to_simppo_p99));
    let sweep = highest.map_or(String::new(), |(load, most)| {
        format!(", and at the loads of the sweep {most:.2} at most, at {load:.1}")
    });
    let variants = &results.variants;
    let published = variants.iter().find(|row| row.variant == PUBLISHED_PPO);
    let why = published.zip(variants.first()).map_or(String::new(), |(row, simppo)| {
        format!(
            " Here it has the same PPO as everyone; with the one its authors published (discount 0.99, nothing \
             normalised) it earns {:.1} and has {:.2} times SIMPPO's p99.",
            row.reward,
            row.p99_to_isolated / simppo.p99_to_isolated
        )
    });
    format!(
        "S-RL among others has {ratio:.2} times SIMPPO's p99 (the paper: 2 to 4.4){sweep}.{why}"
    )
}

/// What the auxiliary state is worth: the same network for all without it.
fn auxiliary(results: &Results) -> String {
    let of = |name: &str| results.variants.iter().find(|row| row.variant == name);
    let (Some(with), Some(without)) = (results.variants.first(), of(SHARED_SINGLE)) else {
        return String::new();
    };
    let helps = with.reward > 1.01 * without.reward
        || (with.reward >= without.reward && with.p99_to_isolated < 0.95 * without.p99_to_isolated);
    let verdict = if helps {
        "so the auxiliary state helps"
    } else {
        "so nothing here shows that the auxiliary state helps"
    };
    let each = of("simppo, one network each").map_or(String::new(), |row| {
        format!(
            "; SIMPPO with a network for each agent {:.1} at {:.2}",
            row.reward, row.p99_to_isolated
        )
    });
    format!(
        "One network for all without auxiliary state earns {:.1} at {:.2} times the p99 of isolation, SIMPPO {:.1} at \
         {:.2}, {verdict}{each}.",
        without.reward, without.p99_to_isolated, with.reward, with.p99_to_isolated
    )
}
