//! What every tick policy and every tick safeguard must do.

use super::{check_name, observations};
use crate::decision::Setting;
use crate::platform::{Answer, Receipt, Refusal};
use crate::policy::Policy;
use crate::record::TickRecord;
use crate::safeguard::{PlannedTarget, Safeguard, SafeguardChain, Verdict};
use crate::units::{Instances, Mebibytes, MilliCpu};
use crate::workload::FunctionId;

/// Same views, same decisions; handles extreme views; never asks for nonsense or for functions it has not seen.
pub fn policy_suite(make: &dyn Fn() -> Box<dyn Policy>) {
    let (mut one, mut other) = (make(), make());
    check_name(one.name());
    let name = one.name().to_owned();
    for (tick, observation) in observations().into_iter().enumerate() {
        let answer = one.decide(&observation);
        let again = other.decide(&observation);
        assert_eq!(answer, again, "{name}: tick {tick}: the same view brought another answer");
        let Ok(decision) = answer else { continue };
        for target in &decision.targets {
            assert!(
                observation.function(target.function).is_some(),
                "{name}: tick {tick}: a target for {:?}, which it has not seen",
                target.function
            );
        }
        let plan = SafeguardChain::default()
            .review(&observation, &decision)
            .unwrap_or_else(|nonsense| panic!("{name}: tick {tick}: {nonsense}"));
        // Every other tick the platform accepts nothing.
        let receipt = Receipt::of(&plan, |_| match tick % 2 {
            0 => Answer::Queued,
            _ => Answer::Refused(Refusal::NoRoom),
        });
        let record = TickRecord { observation, decision, plan, receipt, ..TickRecord::default() };
        one.feedback(&record);
        other.feedback(&record);
    }
}

/// Accepts a target that changes nothing, amends only what it changes, is content with its own
/// amendment, and says the same of the same.
pub fn safeguard_suite(make: &dyn Fn() -> Box<dyn Safeguard>) {
    check_name(make().name());
    for seen in observations() {
        // The last function is one that was not measured.
        for function in [0, 1, 77].map(FunctionId) {
            let keep = PlannedTarget::keep(function);
            let (mut rule, mut twin) = (make(), make());
            let name = rule.name();
            assert_eq!(rule.begin(&seen), [], "{name}: insists on a function nobody proposed");
            twin.begin(&seen);
            assert_eq!(rule.review(&seen, &keep), Verdict::Accept, "{name}: refuses to keep");
            for proposed in proposals(function) {
                let verdict = rule.review(&seen, &proposed);
                assert_eq!(verdict, twin.review(&seen, &proposed), "{name}: contradicts its twin");
                let Verdict::Amend { target, reason, .. } = verdict else { continue };
                assert_ne!(target, proposed, "{name}: amends without changing anything");
                assert_eq!(target.function, function, "{name}: answers for another function");
                assert!(!reason.is_empty(), "{name}: gives no reason");
                let again = rule.review(&seen, &target);
                assert_eq!(again, Verdict::Accept, "{name}: amends its own amendment {target:?}");
                twin.review(&seen, &target);
            }
        }
    }
}

fn proposals(function: FunctionId) -> Vec<PlannedTarget> {
    let mut proposals = Vec::new();
    for number in [0, 1, 3, 50, 2000, u32::MAX] {
        for (count, size) in [(number, 1000), (2, number), (number, number)] {
            proposals.push(PlannedTarget {
                instances: Setting::Set(Instances::new(count)),
                cpu: Setting::Set(MilliCpu::new(size)),
                memory: Setting::Set(Mebibytes::new(size)),
                concurrency: Setting::Set(Instances::new(count)),
                ..PlannedTarget::keep(function)
            });
        }
        proposals.push(PlannedTarget {
            instances: Setting::Set(Instances::new(number)),
            ..PlannedTarget::keep(function)
        });
    }
    proposals
}
