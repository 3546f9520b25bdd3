//! Stories on the scripted platform.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windfall_control::ControlLoop;
use windfall_control::safeguards::{Capacity, Limits, RateOfChange, StaleObservation};
use windfall_core::conformance::{Audited, Fault, ScriptedPlatform, episodic_suite};
use windfall_core::{Duration, Episodic, FunctionId, Refusal, SafeguardChain, TickRecord};

use crate::dice::Dice;
use crate::flap_reference::{FlapReference, SharedFlap};
use crate::whims::Whims;

const STORIES: u64 = 10_000;
const TICK: Duration = Duration::from_secs(2);

#[test]
fn the_scripted_platform_keeps_the_contract() {
    episodic_suite(&|| Box::new(ScriptedPlatform::new(3)));
    episodic_suite(&|| {
        let mut slow = ScriptedPlatform::new(2);
        slow.delay = Duration::from_secs(25);
        slow.capabilities.memory = windfall_core::Support::Absent;
        slow.capabilities.instances = false;
        Box::new(slow)
    });
}

/// One story: random faults for some ticks, then two quiet ones.
struct Story {
    number: u64,
    dice: Dice,
    functions: u32,
    /// Ticks until the platform is back.
    away: u64,
    /// Functions whose last change of size was touched by no fault.
    is_clean: Vec<bool>,
}

/// What was seen over all stories.
#[derive(Default)]
struct Tally {
    accepted: u64,
    settled: u64,
    blind: u64,
    touched: u64,
    restored: u64,
}

impl Story {
    fn new(number: u64) -> Self {
        let mut dice = Dice::new(number);
        let functions = 1 + dice.below(4) as u32;
        Self { number, dice, functions, away: 0, is_clean: vec![true; functions as usize] }
    }

    fn ids(&self) -> impl Iterator<Item = FunctionId> + use<> {
        (0..self.functions).map(FunctionId)
    }

    fn refusal(&mut self) -> Refusal {
        match self.dice.below(3) {
            0 => Refusal::Unreachable,
            1 => Refusal::NoRoom,
            _ => Refusal::System("device or resource busy".to_owned()),
        }
    }

    fn fault(&mut self) -> Fault {
        match self.dice.below(5) {
            0 => Fault::Refuse(self.refusal()),
            1 => Fault::AnswerLost,
            // Never in time for the next tick.
            2 => Fault::Late(TICK.scaled(1.5) + TICK * self.dice.below(4)),
            3 => Fault::Half(self.refusal()),
            _ => Fault::Fail(self.refusal()),
        }
    }

    /// Decides what goes wrong at this tick; the last one always brings the platform back afterwards.
    fn plan_faults(&mut self, platform: &mut ScriptedPlatform) {
        if self.away > 0 {
            self.away -= 1;
            platform.is_away = self.away > 0;
        } else if self.dice.chance(12) {
            self.away = 1 + self.dice.below(3);
            match self.dice.chance(50) {
                true => platform.goes_away_and_forgets(),
                false => platform.is_away = true,
            }
        }
        for id in self.ids() {
            if self.dice.chance(35) {
                let fault = self.fault();
                platform.faults.insert(id, fault);
            }
        }
    }

    /// Notes which functions hold exactly what was last asked for, and which a fault has touched.
    fn note(&mut self, tick: &TickRecord, faults: &[(FunctionId, Fault)]) {
        if tick.error.is_some() {
            self.is_clean.fill(false);
            return;
        }
        for target in tick.plan.targets().iter().filter(|target| target.is_resize()) {
            let fault =
                faults.iter().find(|(id, _)| *id == target.function).map(|(_, fault)| fault);
            match fault {
                // A definite no: everything is as it was.
                Some(Fault::Refuse(Refusal::NoRoom)) => {}
                fault => self.is_clean[target.function.index()] = fault.is_none(),
            }
        }
    }

    fn play(mut self, tally: &mut Tally) {
        let mut scripted = ScriptedPlatform::new(self.functions);
        scripted.delay = Duration::from_millis(200 * self.dice.below(4));
        let mut platform = Audited::new(&mut scripted);
        let (flap, mut reference) = (SharedFlap::default(), FlapReference::default());
        let is_silent = Arc::new(AtomicBool::new(false));
        let mut control = self.control(&flap, &is_silent);
        let faulty = 1 + self.dice.below(12);
        for number in 0..faulty + 8 {
            let inner = platform.inner();
            inner.advance_to(inner.now() + TICK).expect("time goes forward");
            if number < faulty {
                self.plan_faults(inner);
            } else {
                inner.is_away = false;
                is_silent.store(true, Ordering::Relaxed);
            }
            let faults: Vec<_> = inner.faults.clone().into_iter().collect();
            let now = inner.now();
            let tick = control.tick(now, &mut platform);
            platform.inner().faults.clear();
            // After the last fault the policy is silent: what happens then restores, and is what is tested.
            if number < faulty {
                self.note(&tick, &faults);
            }
            reference.follow(&tick);
            tally.blind += u64::from(tick.error.is_some());
            // The last fault was at tick `faulty - 1`; this is two ticks later.
            if number == faulty + 1 {
                self.check_sizes(platform.inner(), tally);
            }
        }
        self.ids().for_each(|id| reference.check(&flap, id, self.number));
        assert!(platform.open().is_empty(), "story {}: {:?}", self.number, platform.open());
        assert_eq!(control.in_doubt().functions().count(), 0, "story {}", self.number);
        tally.accepted += platform.accepted();
        tally.settled += platform.settled();
    }

    fn control(&self, flap: &SharedFlap, is_silent: &Arc<AtomicBool>) -> ControlLoop {
        let chain = SafeguardChain::new(vec![
            Box::new(StaleObservation::default()),
            Box::new(Limits::default()),
            Box::new(RateOfChange::default()),
            Box::new(flap.clone()),
            Box::new(Capacity::default()),
        ]);
        ControlLoop::new(Box::new(Whims::new(self.number, is_silent)), chain)
    }

    fn check_sizes(&self, platform: &mut ScriptedPlatform, tally: &mut Tally) {
        use windfall_core::Platform as _;
        for id in self.ids() {
            let own = platform.functions()[id.index()].reservation;
            let held = platform.in_force(id);
            if !self.is_clean[id.index()] {
                tally.touched += 1;
                assert!(own.fits(held), "story {}: {id:?} has {held} of {own}", self.number);
            }
            tally.restored += u64::from(own == held);
        }
    }
}

#[test]
fn two_ticks_after_the_last_fault_nothing_it_touched_is_below_its_own() {
    let mut tally = Tally::default();
    for number in 0..STORIES {
        Story::new(number).play(&mut tally);
    }
    let Tally { accepted, settled, blind, touched, restored } = tally;
    assert_eq!(accepted, settled);
    // The stories are about something.
    let summary =
        format!("{accepted} accepted, {blind} blind, {touched} touched, {restored} restored");
    assert!(accepted > 50_000 && blind > 5000 && touched > 5000 && restored > 5000, "{summary}");
}
