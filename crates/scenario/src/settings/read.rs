//! From text to a checked scenario, section by section.

use std::path::PathBuf;

use toml::de::{DeTable, DeValue};
use windfall_core::statistics::Interval;
use windfall_core::{Allocation, Duration, Seed};
use windfall_registry::checkpoint_policy::{is_checkpoint, label, open};
use windfall_registry::{
    CALL_SAFEGUARDS, REGISTRY, call_safeguard, entry, is_known, names, sizes_single_calls,
};
use windfall_sim::{CpuModel, Faults, KernelCpu, Placement, QueueOrder, ScaleOut, Sensors};
use windfall_trace::{
    AzureLikeSettings, Caps, Fold, FoldBy, Needs, Placement as InMinute, ReadOptions, Source,
};

use super::table::{Problem, Problems, Table, as_number, line_of, nearest};
use super::{PlatformSettings, Scenario};

/// Whether the platform gives every call a size of its own.
fn sizes_calls(scenario: &Scenario) -> bool {
    let platform = &scenario.platform;
    platform.concurrency == 1 && platform.scale_out == ScaleOut::PerCall
}

/// Reads a scenario, or returns everything that is wrong with it.
pub(super) fn parse(text: &str) -> Result<Scenario, Vec<Problem>> {
    let mut problems = Problems::default();
    let document = match DeTable::parse(text) {
        Ok(document) => document.into_inner(),
        Err(error) => {
            let line = error.span().map(|span| line_of(text, span.start));
            return Err(vec![Problem { line, message: error.message().to_owned() }]);
        }
    };
    let mut top = Table::new("", text, document);
    let mut scenario = Scenario::default();
    if let Some(name) = top.text("name", &mut problems) {
        scenario.name = name;
    }
    if let Some(table) = top.table("trace", &mut problems) {
        scenario.trace = trace(table, &mut problems);
    }
    if let Some(table) = top.table("cluster", &mut problems) {
        cluster(table, &mut scenario, &mut problems);
    }
    if let Some(table) = top.table("platform", &mut problems) {
        scenario.platform = platform(table, &mut problems);
    }
    if let Some(table) = top.table("sensors", &mut problems) {
        sensors(table, &mut scenario.platform.sensors, &mut problems);
    }
    if let Some(table) = top.table("faults", &mut problems) {
        faults(table, &mut scenario.platform.faults, &mut problems);
    }
    let mut are_policies_chosen = false;
    if let Some(table) = top.table("run", &mut problems) {
        are_policies_chosen = run(table, &mut scenario, &mut problems);
    }
    if !are_policies_chosen && !sizes_calls(&scenario) {
        scenario.policies.retain(|name| !sizes_single_calls(name));
    }
    policies(&mut top, text, &mut scenario, &mut problems);
    top.finish(&mut problems);
    if problems.found.is_empty() {
        check(&scenario, &mut problems);
    }
    problems.found.sort_by_key(|problem| problem.line);
    if problems.found.is_empty() { Ok(scenario) } else { Err(problems.found) }
}

fn trace(mut table: Table<'_, '_>, problems: &mut Problems) -> Source {
    let path = table.text("path", problems);
    let placement = table.choice(
        "placement",
        &[("uniform", InMinute::Uniform), ("bursty", InMinute::Bursty), ("gusty", InMinute::Gusty)],
        problems,
    );
    let source = match path {
        Some(path) => {
            let options = read_options(&mut table, placement, problems);
            Source::File { path: PathBuf::from(path), options }
        }
        None => Source::AzureLike(azure_like(&mut table, placement, problems)),
    };
    table.finish(problems);
    source
}

fn azure_like(
    table: &mut Table<'_, '_>,
    placement: Option<InMinute>,
    problems: &mut Problems,
) -> AzureLikeSettings {
    let usual = AzureLikeSettings::default();
    AzureLikeSettings {
        functions: table
            .whole("functions", 1..=1_000_000, problems)
            .map_or(usual.functions, |functions| functions as u32),
        duration: table
            .number("minutes", 1.0..=525_600.0, problems)
            .map_or(usual.duration, |minutes| Duration::from_secs_f64(minutes * 60.0)),
        calls_per_hour: table
            .number("calls_per_hour", 1.0..=1e13, problems)
            .unwrap_or(usual.calls_per_hour),
        start_hour: table.number("start_hour", 0.0..=23.999, problems).unwrap_or(usual.start_hour),
        placement: placement.unwrap_or(usual.placement),
        without_sleepers: table.truth("without_sleepers", problems).unwrap_or(false),
    }
}

fn read_options(
    table: &mut Table<'_, '_>,
    placement: Option<InMinute>,
    problems: &mut Problems,
) -> ReadOptions {
    let usual = ReadOptions::default();
    let whole = |value: &DeValue<'_>| as_number(value).map(|number| number as u32);
    let window = table.list("window_minutes", "two whole numbers", problems, whole);
    let at_once = table.list("calls_at_once", "two numbers", problems, as_number);
    let busy = table.number("cap_busy", 0.01..=1e6, problems);
    let busy_in_a_minute = table.number("cap_busy_in_a_minute", 0.01..=1e6, problems);
    let calls_per_second = table.number("cap_calls_per_second", 1e-6..=1e9, problems);
    let has_caps = busy.is_some() || busy_in_a_minute.is_some() || calls_per_second.is_some();
    let caps = has_caps.then(|| Caps {
        busy: busy.unwrap_or(1e6),
        busy_in_a_minute: busy_in_a_minute.unwrap_or(1e6),
        calls_per_second,
    });
    let units = [("function", FoldBy::Function), ("application", FoldBy::Application)];
    let needs = [("modelled", Needs::Modelled), ("times-only", Needs::TimesOnly)];
    ReadOptions {
        placement: placement.unwrap_or(usual.placement),
        caps,
        huawei_scale: table
            .number("huawei_scale", 1e-9..=1000.0, problems)
            .unwrap_or(usual.huawei_scale),
        calls_at_once: at_once
            .and_then(|ends| Some(Interval { low: *ends.first()?, high: *ends.get(1)? })),
        window_minutes: window.and_then(|window| Some((*window.first()?, *window.get(1)?))),
        overlay_minutes: table
            .whole("overlay_minutes", 1..=1_000_000, problems)
            .map(|minutes| minutes as u32),
        max_functions: table
            .whole("max_functions", 1..=1_000_000, problems)
            .map(|functions| functions as usize),
        without_busiest: table.truth("without_busiest", problems).unwrap_or(usual.without_busiest),
        without_sleepers: table
            .truth("without_sleepers", problems)
            .unwrap_or(usual.without_sleepers),
        fold: table.choice("fold", &[("train", Fold::Train), ("test", Fold::Test)], problems),
        fold_by: table.choice("fold_by", &units, problems).unwrap_or(usual.fold_by),
        skip_incomplete: table.truth("skip_incomplete", problems).unwrap_or(usual.skip_incomplete),
        needs: table.choice("needs", &needs, problems).unwrap_or(usual.needs),
    }
}

fn cluster(mut table: Table<'_, '_>, scenario: &mut Scenario, problems: &mut Problems) {
    let load = |value: &DeValue<'_>| as_number(value).filter(|load| (0.01..=10.0).contains(load));
    if let Some(loads) = table.list("loads", "numbers from 0.01 to 10", problems, load) {
        scenario.loads = loads;
    }
    let cores = table
        .number("node_cores", 0.1..=1024.0, problems)
        .unwrap_or_else(|| scenario.node.cpu.cores());
    let gib = table
        .number("node_memory_gib", 0.1..=65_536.0, problems)
        .unwrap_or_else(|| scenario.node.memory.mib() / 1024.0);
    scenario.node = Allocation::new((cores * 1e3).round() as u32, (gib * 1024.0).round() as u32);
    if let Some(factor) = table.number("over_commit_cpu", 1.0..=1000.0, problems) {
        scenario.over_commit_cpu = factor;
    }
    if let Some(factor) = table.number("over_commit_memory", 1.0..=1000.0, problems) {
        scenario.over_commit_memory = factor;
    }
    if let Some(cores) = table.number("call_max_cores", 0.01..=1024.0, problems) {
        scenario.call_max_cores = cores;
    }
    scenario.cpu = cpu_model(&mut table, problems);
    table.finish(problems);
}

fn cpu_model(table: &mut Table<'_, '_>, problems: &mut Problems) -> CpuModel {
    let models = [("fluid", CpuModel::Fluid), ("kernel", CpuModel::kernel())];
    let model = table.choice("cpu_model", &models, problems).unwrap_or_default();
    let period = table.number("cpu_period_millis", 1.0..=1000.0, problems);
    let burst = table.number("cpu_burst", 0.0..=10.0, problems);
    let round = table.number("cpu_round_millis", 0.1..=10_000.0, problems);
    let follows_rounds = table.truth("cpu_follows_rounds", problems);
    let CpuModel::Kernel(usual) = model else {
        let given = [
            ("cpu_period_millis", period.is_some()),
            ("cpu_burst", burst.is_some()),
            ("cpu_round_millis", round.is_some()),
            ("cpu_follows_rounds", follows_rounds.is_some()),
        ];
        for (key, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
            let message = "has no effect on the fluid CPU; set cpu_model = \"kernel\"";
            problems.add(None, format!("cluster.{key} {message}"));
        }
        return model;
    };
    let millis = |millis: f64| Duration::from_secs_f64(millis * 1e-3);
    CpuModel::Kernel(KernelCpu {
        period: period.map_or(usual.period, millis),
        burst: burst.unwrap_or(usual.burst),
        round: round.map_or(usual.round, millis),
        follows_rounds: follows_rounds.unwrap_or(usual.follows_rounds),
        ..usual
    })
}

fn platform(mut table: Table<'_, '_>, problems: &mut Problems) -> PlatformSettings {
    let usual = PlatformSettings::default();
    let placements = [
        ("home-invoker", Placement::HomeInvoker),
        ("least-loaded", Placement::LeastLoaded),
        ("warm-first", Placement::WarmFirst),
        ("coverage-aware", Placement::CoverageAware),
    ];
    let scale_outs = [
        ("per-call", ScaleOut::PerCall),
        ("on-miss", ScaleOut::OnMiss),
        ("on-tick", ScaleOut::OnTick),
    ];
    let orders =
        [("first-come", QueueOrder::FirstCome), ("shortest-first", QueueOrder::SHORTEST_FIRST)];
    let settings = PlatformSettings {
        placement: table.choice("placement", &placements, problems).unwrap_or(usual.placement),
        scale_out: table.choice("scale_out", &scale_outs, problems).unwrap_or(usual.scale_out),
        concurrency: table
            .whole("concurrency", 1..=100_000, problems)
            .map_or(usual.concurrency, |limit| limit as u32),
        keep_alive: table
            .number("keep_alive_seconds", 0.0..=31_536_000.0, problems)
            .map_or(usual.keep_alive, Duration::from_secs_f64),
        cold_starts: table.truth("cold_starts", problems).unwrap_or(usual.cold_starts),
        queue_limit: table
            .whole("queue_limit", 0..=u64::from(u32::MAX), problems)
            .map(|limit| limit as u32),
        queue_order: table.choice("queue_order", &orders, problems).unwrap_or(usual.queue_order),
        waits_for_warm: table.truth("waits_for_warm", problems).unwrap_or(usual.waits_for_warm),
        actuation_delay: table
            .number("actuation_delay_millis", 0.0..=3_600_000.0, problems)
            .map_or(usual.actuation_delay, |millis| Duration::from_secs_f64(millis * 1e-3)),
        ..usual
    };
    table.finish(problems);
    settings
}

fn sensors(mut table: Table<'_, '_>, sensors: &mut Sensors, problems: &mut Problems) {
    let share = 0.0..=1.0;
    let Sensors { cpu_noise, cpu_jitter, peak_noise, memory_noise } = sensors;
    for (key, value) in
        [("cpu_noise", cpu_noise), ("peak_noise", peak_noise), ("memory_noise", memory_noise)]
    {
        *value = table.number(key, share.clone(), problems).unwrap_or(*value);
    }
    if let Some(millis) = table.number("cpu_jitter_millis", 0.0..=1000.0, problems) {
        *cpu_jitter = Duration::from_secs_f64(millis * 1e-3);
    }
    table.finish(problems);
}

fn faults(mut table: Table<'_, '_>, faults: &mut Faults, problems: &mut Problems) {
    let seconds = 1.0..=31_536_000.0;
    faults.node_loss_every = table
        .number("node_loss_every_seconds", seconds.clone(), problems)
        .map(Duration::from_secs_f64);
    faults.node_away = table
        .number("node_away_seconds", seconds, problems)
        .map_or(Duration::from_mins(5), Duration::from_secs_f64);
    faults.telemetry_loss =
        table.number("telemetry_loss", 0.0..=1.0, problems).unwrap_or(faults.telemetry_loss);
    faults.slow_actuation =
        table.number("slow_actuation", 0.0..=1.0, problems).unwrap_or(faults.slow_actuation);
    table.finish(problems);
}

/// Reads the section; true if it names the policies.
fn run(mut table: Table<'_, '_>, scenario: &mut Scenario, problems: &mut Problems) -> bool {
    let text = |value: &DeValue<'_>| value.as_str().map(str::to_owned);
    let known: Vec<&str> = REGISTRY.iter().map(|entry| entry.name).collect();
    let mut allowed = "names of policies".to_owned();
    let policy =
        |value: &DeValue<'_>| text(value).filter(|name| is_checkpoint(name) || is_known(name));
    // The list is read with the hint for its first unknown name; `check` names the rest.
    if let Some(word) = table.first_unknown("policies", |value| policy(value).is_some())
        && let Some(near) = nearest(&word, &known)
    {
        allowed = format!("names of policies (did you mean `{near}`?)");
    }
    let policies = table.list("policies", &allowed, problems, policy);
    let are_policies_chosen = policies.is_some();
    if let Some(policies) = policies {
        scenario.policies = policies;
    }
    let seed = |value: &DeValue<'_>| {
        as_number(value).filter(|n| *n >= 0.0 && n.fract() == 0.0).map(|n| n as u64)
    };
    if let Some(seeds) = table.list("seeds", "whole numbers", problems, seed) {
        scenario.seeds = seeds;
    }
    scenario.shadow = table.text("shadow", problems);
    let safeguard = |value: &DeValue<'_>| text(value).filter(|name| call_safeguard(name).is_some());
    let allowed: Vec<&str> = CALL_SAFEGUARDS.iter().map(|(name, _)| *name).collect();
    if let Some(rules) = table.list("call_safeguards", &allowed.join(", "), problems, safeguard) {
        scenario.call_safeguards = rules;
    }
    if let Some(seconds) = table.number("tick_seconds", 0.01..=86_400.0, problems) {
        scenario.tick = Duration::from_secs_f64(seconds);
    }
    if let Some(minutes) = table.number("warm_up_minutes", 0.0..=525_600.0, problems) {
        scenario.warm_up = Duration::from_secs_f64(minutes * 60.0);
    }
    table.finish(problems);
    are_policies_chosen
}

/// Settings of single policies, checked by building each policy with them.
fn policies(top: &mut Table<'_, '_>, text: &str, scenario: &mut Scenario, problems: &mut Problems) {
    let tables = top.free_tables("policies", problems);
    let Ok(document) = text.parse::<toml::Table>() else { return };
    let values = document.get("policies").and_then(toml::Value::as_table);
    for (name, line) in tables {
        let Some(policy) = entry(&name) else {
            let message = format!("there is no policy `{name}`; known are {}", names());
            problems.add(Some(line), message);
            continue;
        };
        let table = values.and_then(|values| values.get(&name)).and_then(toml::Value::as_table);
        match policy.assemble(&table.cloned(), Seed::new(0)) {
            Ok(_) => {
                scenario.policy_settings.insert(name, table.cloned().unwrap_or_default());
            }
            Err(error) => {
                let message = error.message().replace('\n', " ");
                problems.add(Some(line), format!("policies.{name}: {message}"));
            }
        }
    }
}

/// What no single value shows: names, and knobs that contradict each other.
pub(super) fn check(scenario: &Scenario, problems: &mut Problems) {
    let known = |name: &String| is_checkpoint(name) || is_known(name);
    let asked = || scenario.policies.iter().chain(&scenario.shadow);
    for name in asked().filter(|name| !known(name)) {
        let all: Vec<&str> = REGISTRY.iter().map(|entry| entry.name).collect();
        let near = nearest(name, &all).map(|near| format!("did you mean `{near}`?"));
        let near = near.unwrap_or_else(|| format!("known are {}", names()));
        problems.add(None, format!("there is no policy `{name}`; {near}"));
    }
    for name in scenario.call_safeguards.iter().filter(|name| call_safeguard(name).is_none()) {
        let all: Vec<&str> = CALL_SAFEGUARDS.iter().map(|(name, _)| *name).collect();
        problems.add(None, format!("there is no safeguard `{name}`; known are {}", all.join(", ")));
    }
    if scenario.policies.is_empty() || scenario.loads.is_empty() || scenario.seeds.is_empty() {
        problems.add(None, "policies, loads and seeds each need at least one".into());
    }
    if scenario.shadow.as_deref().and_then(entry).is_some_and(|entry| entry.foresight) {
        let shadow = scenario.shadow.as_deref().unwrap_or_default();
        problems.add(
            None,
            format!("{shadow} cannot be a shadow: it needs foresight, which a shadow does not get"),
        );
    }
    for file in asked().filter(|name| is_checkpoint(name)) {
        let opened = open(file).and_then(|opened| opened.assemble(Seed::new(0)));
        if let Err(error) = opened {
            problems.add(None, format!("checkpoint {file}: {error}; {}", error.hint()));
        }
    }
    // Two equal runs would write one journal, and count twice in every mean. Files go by their names.
    let policies: Vec<&str> = scenario.policies.iter().map(|name| label(name)).collect();
    let repeated = [
        ("policies", first_repeated(&policies)),
        ("loads", first_repeated(&scenario.loads)),
        ("seeds", first_repeated(&scenario.seeds)),
    ];
    for (list, value) in repeated {
        if let Some(value) = value {
            problems.add(None, format!("{list} holds {value} twice, allowed is each value once"));
        }
    }
    for name in scenario.policies.iter().filter(|name| sizes_single_calls(name)) {
        if !sizes_calls(scenario) {
            problems.add(
                None,
                format!(
                    "{name} sizes single calls, which needs platform.concurrency = 1 and \
                     platform.scale_out = \"per-call\""
                ),
            );
        }
    }
}

fn first_repeated<T: PartialEq + std::fmt::Debug>(list: &[T]) -> Option<String> {
    let mut repeated = (1..list.len()).filter(|&place| list[..place].contains(&list[place]));
    repeated.next().map(|place| format!("{:?}", list[place]))
}
