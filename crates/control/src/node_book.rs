//! The account of one node: what may be granted there, what is in force, what is owed and what is held back.
//!
//! ```text
//!   limit 8000m  |---- in force 6000m ----|-- held back 500m --|---- room 1500m ----|
//!   owed         call 7: 1000m, call 9: 500m
//! ```
//!
//! The book answers one question: what may a new call get here? That is [`NodeBook::room`]. Three rules keep the calls
//! that already run ahead of it:
//!
//! - A raise that finds no room is **owed**. Debts are paid first come, first served, resource by resource, and while
//!   anything is owed no new call starts: with 300m free and the debts above, call 7 gets 300m and still waits for 700m.
//! - CPU that was taken from a running call can be **held back** for it. It stays free for raises and out of the reach
//!   of new calls. What is held back goes with the call it is held back for, so an empty node holds nothing back.
//! - What is **in force** counts, not what was asked: a limit that the kernel refused to lower still takes its room.
//!   Lower the account after the change took effect, raise it before.
//!
//! The book keeps totals and debts; the amounts of single calls stay with whoever keeps the calls, because the simulator
//! changes them millions of times per second and a lookup would cost more than the change. A driver names calls by
//! their id, the simulator by their place in memory, hence the parameter.

use windfall_core::{Allocation, MilliCpu};

/// A raise that waits for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Debt<Call> {
    call: Call,
    amount: Allocation,
}

/// Room that a call gets because it was owed to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payment<Call> {
    /// The call.
    pub call: Call,
    /// How much more it holds from now on.
    pub amount: Allocation,
    /// What is still owed to it.
    pub still_owed: Allocation,
}

/// What a node may grant, what it has granted, and what it owes.
#[derive(Clone, Debug)]
pub struct NodeBook<Call> {
    limit: Allocation,
    in_force: Allocation,
    held_back: MilliCpu,
    debts: Vec<Debt<Call>>,
    is_open: bool,
}

impl<Call: Copy + PartialEq> NodeBook<Call> {
    /// An open book of a node that may grant up to `limit` and has granted nothing.
    pub const fn new(limit: Allocation) -> Self {
        Self {
            limit,
            in_force: Allocation::ZERO,
            held_back: MilliCpu::ZERO,
            debts: Vec::new(),
            is_open: true,
        }
    }

    /// The most that may be granted.
    pub const fn limit(&self) -> Allocation {
        self.limit
    }

    /// What is granted now.
    pub const fn in_force(&self) -> Allocation {
        self.in_force
    }

    /// What is left of the limit: for raises of running calls all of it, for new calls [`Self::room`].
    #[inline]
    pub fn free(&self) -> Allocation {
        self.limit.saturating_sub(self.in_force)
    }

    /// CPU that is kept for running calls which may want it back.
    pub const fn held_back(&self) -> MilliCpu {
        self.held_back
    }

    /// Whether new calls may start here: the node is up and not being drained.
    pub const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Lets new calls start here, or keeps them away. Debts to running calls are paid either way.
    pub fn set_open(&mut self, is_open: bool) {
        self.is_open = is_open;
    }

    /// What a new call could get: nothing while the node is closed or owes anything, else what is free and not held
    /// back.
    pub fn room(&self) -> Allocation {
        if self.takes_calls() { self.unclaimed() } else { Allocation::ZERO }
    }

    /// Whether a new call could get `need`.
    #[inline]
    pub fn has_room(&self, need: Allocation) -> bool {
        // Without branches: which of the conditions fails is hard to guess, and a placement asks many nodes.
        self.takes_calls() & need.fits(self.unclaimed())
    }

    #[inline]
    fn takes_calls(&self) -> bool {
        self.is_open & self.debts.is_empty()
    }

    /// What is neither in force nor held back.
    #[inline]
    fn unclaimed(&self) -> Allocation {
        let free = self.free();
        Allocation { cpu: free.cpu.saturating_sub(self.held_back), ..free }
    }

    /// `amount` more is in force. Whoever starts a call has asked for room; a driver that finds calls running may hold
    /// more than the limit for them, and the node takes nobody in until enough of them have ended.
    #[inline]
    pub fn hold(&mut self, amount: Allocation) {
        self.in_force += amount;
    }

    /// `amount` is no longer in force.
    #[inline]
    pub fn release(&mut self, amount: Allocation) {
        debug_assert!(amount.fits(self.in_force), "{amount} of {} is let go", self.in_force);
        self.in_force = self.in_force.saturating_sub(amount);
    }

    /// A running call had `before` held back for it and has `now` from here on.
    #[inline]
    pub fn hold_back(&mut self, before: MilliCpu, now: MilliCpu) {
        debug_assert!(before <= self.held_back, "{before} of {} is let go", self.held_back);
        self.held_back = self.held_back.saturating_sub(before) + now;
    }

    /// Whether any raise waits for room.
    #[inline]
    pub fn owes(&self) -> bool {
        !self.debts.is_empty()
    }

    /// What is owed to `call`.
    pub fn owed_to(&self, call: Call) -> Allocation {
        let debt = self.debts.iter().find(|debt| debt.call == call);
        debt.map_or(Allocation::ZERO, |debt| debt.amount)
    }

    /// `call` is owed `amount` and nothing else, behind all who are owed already.
    pub fn owe(&mut self, call: Call, amount: Allocation) {
        self.forgive(call);
        if amount != Allocation::ZERO {
            self.debts.push(Debt { call, amount });
        }
    }

    /// Nothing is owed to `call` any more: it wants something else, or it has ended.
    pub fn forgive(&mut self, call: Call) {
        self.debts.retain(|debt| debt.call != call);
    }

    /// Gives what is free to the first call it can be given to; it is in force from now on. Call it until nothing is
    /// left to pay.
    pub fn pay(&mut self) -> Option<Payment<Call>> {
        let free = self.free();
        let place = self.debts.iter().position(|debt| debt.amount.min(free) != Allocation::ZERO)?;
        let debt = &mut self.debts[place];
        let amount = debt.amount.min(free);
        debt.amount -= amount;
        let payment = Payment { call: debt.call, amount, still_owed: debt.amount };
        if payment.still_owed == Allocation::ZERO {
            self.debts.remove(place);
        }
        self.in_force += amount;
        Some(payment)
    }
}

#[cfg(test)]
mod tests;
