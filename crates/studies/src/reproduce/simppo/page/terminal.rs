//! The same for the terminal.

use windfall_papers::simppo::Results;
use windfall_papers::simppo::fault_run::FaultRow;
use windfall_papers::simppo::online::OnlineRow;

use super::{by_function, p99_to_objective, story, summaries, times};

/// The table for the terminal.
pub(in super::super) fn text(results: &Results) -> String {
    let mut lines = vec![
        story(results),
        String::new(),
        "policy                          reward    sd  p99/slo    slo   late   util    cost"
            .to_owned(),
    ];
    for one in summaries(results) {
        lines.push(format!(
            "{:30} {:7.1} {:>5} {:8.2} {:6.3} {:5.1}% {:6.3} {:7.0}",
            one.policy,
            one.reward,
            one.spread.map_or("-".to_owned(), |spread| format!("{spread:.1}")),
            one.p99_to_slo,
            one.preserved,
            one.late_percent,
            one.utilisation,
            one.cost
        ));
    }
    for (title, digits, of) in [
        ("p99 over the objective", 2, &p99_to_objective as &dyn Fn(&OnlineRow) -> f64),
        ("reward", 1, &|row: &OnlineRow| row.reward),
    ] {
        lines.push(String::new());
        lines.push(table(results, title, digits, of));
    }
    lines.extend(ratios(results));
    lines.extend(contest(results));
    for step in &results.growth {
        lines.push(format!(
            "{:4} functions: drop {:5.2} %, {} episodes{}",
            step.functions,
            step.drop_percent,
            step.episodes,
            if step.is_stable { "" } else { " (not stable)" }
        ));
    }
    let (faults, chain) = (&results.faults, &results.chain);
    lines.push(format!(
        "faults: {:.2} % of the reward lost (by seed {}), longest gap {} ticks, {} illegal actions",
        faults.reward_loss_percent,
        losses(results),
        faults.longest_gap_ticks,
        faults.illegal_actions
    ));
    lines.push(format!("chain, objective {:.0} ms:", chain.objective_ms));
    for row in &chain.splits {
        lines.push(format!(
            "  {:22} p99 {:5.0} ms, worst seed {:5.0} ms, {:+.1} % core-seconds against the oracle split",
            row.split, row.p99_ms, row.worst_p99_ms, row.over_oracle_percent
        ));
    }
    lines.join("\n")
}

/// The published ratios, at every load, and the variants.
fn ratios(results: &Results) -> Vec<String> {
    let mut lines = vec![String::new()];
    let ratios = &results.ratios;
    lines.push(format!(
        "SIMPPO to isolated: reward {:.3}, p99 {:.3};  S-RL together to SIMPPO, p99: {:.2};  \
         degradation of ENSURE to SIMPPO: {}",
        ratios.simppo_to_isolated_reward,
        ratios.simppo_to_isolated_p99,
        ratios.together_to_simppo_p99,
        times(ratios.ensure_to_simppo_degradation)
    ));
    for at in &results.load_ratios {
        lines.push(format!(
            "  at load {:.2}: reward {:.3}, p99 {:.3};  together to SIMPPO {:.2};  ENSURE's degradation {}",
            at.load,
            at.ratios.simppo_to_isolated_reward,
            at.ratios.simppo_to_isolated_p99,
            at.ratios.together_to_simppo_p99,
            times(at.ratios.ensure_to_simppo_degradation)
        ));
    }
    for row in &results.arms {
        lines.push(format!(
            "  {:52} reward {:6.1} ({:+.1} to {:+.1} against isolated), p99 to isolated {:.3}",
            row.name, row.reward, row.low, row.high, row.p99_to_isolated
        ));
    }
    for pair in &results.auxiliary_worth.pairs {
        lines.push(format!(
            "  {:52} auxiliary state worth {:+.1} ({:+.1} to {:+.1})",
            pair.arm, pair.reward_difference, pair.low, pair.high
        ));
    }
    lines
}

/// The gate, and learned against calibrated.
fn contest(results: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    for row in results.gate.loads.iter().chain(&results.gate.influence) {
        lines.push(format!(
            "gate: {:3} functions at load {:.2}: oracle preserves {:.3}; {} forced cost the others {:.1} % ({:.1} % by CPU alone)",
            row.functions,
            row.load,
            row.oracle_preserved,
            row.forced,
            row.others_loss_percent,
            row.cpu_loss_percent
        ));
    }
    for margin in &results.margins {
        lines.push(format!(
            "{:12} {} against {}: reward {:+.1} ({:+.1} to {:+.1}), cost {:.2} ({:.2} to {:.2}), late {:.2} ({:.2} to {:.2})",
            margin.workload,
            margin.learned,
            margin.best_rule,
            margin.reward_difference,
            margin.low,
            margin.high,
            margin.cost_ratio,
            margin.cost_low,
            margin.cost_high,
            margin.violations_ratio,
            margin.violations_low,
            margin.violations_high
        ));
    }
    lines
}

/// What each seed lost, in percent.
fn losses(results: &Results) -> String {
    let loss = |row: &FaultRow| format!("{:.2}", row.reward_loss_percent);
    results.faults.seeds.iter().map(loss).collect::<Vec<_>>().join(", ")
}

/// One number by function and policy.
fn table(results: &Results, title: &str, digits: usize, of: &dyn Fn(&OnlineRow) -> f64) -> String {
    let rows = by_function(results, of);
    let mut lines = Vec::new();
    if let Some((_, numbers)) = rows.first() {
        let heads = numbers.iter().map(|(policy, _)| format!(" {:>8}", cut(policy)));
        lines.push(format!("{title:22}{}", heads.collect::<String>()));
    }
    for (name, numbers) in &rows {
        let cells = numbers.iter().map(|(_, value)| format!(" {value:8.digits$}"));
        lines.push(format!("{name:22}{}", cells.collect::<String>()));
    }
    lines.join("\n")
}

/// As much of a name as a column has room for.
fn cut(name: &str) -> &str {
    name.get(..8).unwrap_or(name)
}
