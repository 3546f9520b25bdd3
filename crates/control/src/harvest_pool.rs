//! The ledger of one node: who gave what, who has borrowed it, until when.
//!
//! ```text
//!   donor A: put 2 cores until 9 s   free 0.5 ── lent 1.5 ──► borrower C
//!   donor B: put 1 core  until 4 s   free 1.0
//! ```
//!
//! A borrower is served from the entry with the latest predicted end first, so that its loan lasts as
//! long as possible. What a borrower gives back returns to the donor's entry; a donor that ends or needs
//! its own takes it out of the pool, and what is lent by then is recalled. CPU and memory are kept side
//! by side and never mixed. A node has few entries, so plain scans are the fastest index.

use windfall_core::{Allocation, CallId, Timestamp};

/// What a borrower must give back immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recall {
    /// Who has it.
    pub borrower: CallId,
    /// How much.
    pub amount: Allocation,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    donor: CallId,
    free: Allocation,
    lent: Allocation,
    until: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Loan {
    donor: CallId,
    borrower: CallId,
    amount: Allocation,
}

/// Shares of what is wanted that a pool can cover, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    /// Of the CPU.
    pub cpu: f64,
    /// Of the memory.
    pub memory: f64,
}

/// What the calls of one node have left to each other.
#[derive(Clone, Debug, Default)]
pub struct HarvestPool {
    /// Latest predicted end first; equal ends in the order they came.
    entries: Vec<Entry>,
    loans: Vec<Loan>,
}

impl HarvestPool {
    /// Whether nobody has put anything in.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// `donor` leaves `amount` more, and its entry is now expected to last `until`.
    pub fn put(&mut self, donor: CallId, amount: Allocation, until: Timestamp) {
        let mut entry = match self.place_of(donor) {
            Some(place) if self.entries[place].until == until => {
                self.entries[place].free += amount;
                return;
            }
            Some(place) => self.entries.remove(place),
            None if amount == Allocation::ZERO => return,
            None => Entry { donor, free: Allocation::ZERO, lent: Allocation::ZERO, until },
        };
        entry.free += amount;
        entry.until = until;
        let place = self.entries.partition_point(|other| other.until >= until);
        self.entries.insert(place, entry);
    }

    /// Lends up to `wanted`, resource by resource, and returns how much it found.
    pub fn borrow(&mut self, borrower: CallId, wanted: Allocation) -> Allocation {
        let mut missing = wanted;
        for entry in self.entries.iter_mut().filter(|entry| entry.donor != borrower) {
            let amount = missing.min(entry.free);
            if amount == Allocation::ZERO {
                continue;
            }
            missing -= amount;
            entry.free -= amount;
            entry.lent += amount;
            let donor = entry.donor;
            match self.loans.iter_mut().find(|l| l.donor == donor && l.borrower == borrower) {
                Some(loan) => loan.amount += amount,
                None => self.loans.push(Loan { donor, borrower, amount }),
            }
            if missing == Allocation::ZERO {
                break;
            }
        }
        wanted - missing
    }

    /// `borrower` gives back up to `amount`, what ends soonest first; it returns to the donors' entries.
    pub fn give_back(&mut self, borrower: CallId, amount: Allocation) {
        if amount == Allocation::ZERO {
            return;
        }
        let mut due = amount;
        for place in (0..self.entries.len()).rev() {
            if due == Allocation::ZERO {
                break;
            }
            let donor = self.entries[place].donor;
            for loan in &mut self.loans {
                if loan.donor == donor && loan.borrower == borrower {
                    due -= repay(&mut self.entries[place], loan, due);
                }
            }
        }
        self.forget_settled();
    }

    /// `donor` takes up to `amount` out for itself: what is free first, then what is lent, which is
    /// recalled from the latest borrower first.
    pub fn take_back(&mut self, donor: CallId, amount: Allocation, recalls: &mut Vec<Recall>) {
        if amount == Allocation::ZERO {
            return;
        }
        let Some(place) = self.place_of(donor) else { return };
        let entry = &mut self.entries[place];
        let mut due = amount.min(entry.free + entry.lent);
        let unlent = due.min(entry.free);
        entry.free -= unlent;
        due -= unlent;
        for loan in self.loans.iter_mut().rev().filter(|loan| loan.donor == donor) {
            let called = repay(entry, loan, due);
            entry.free -= called;
            due -= called;
            note(recalls, loan.borrower, called);
        }
        self.forget_settled();
    }

    /// Recalls up to `amount` from whoever has the most, back into the donors' entries: the node is short.
    pub fn recall(&mut self, amount: Allocation, recalls: &mut Vec<Recall>) {
        if amount == Allocation::ZERO {
            return;
        }
        let mut due = amount;
        self.loans.sort_by_key(|loan| std::cmp::Reverse((loan.amount.cpu, loan.amount.memory)));
        for loan in &mut self.loans {
            if due == Allocation::ZERO {
                break;
            }
            let entry = self.entries.iter_mut().find(|entry| entry.donor == loan.donor);
            let entry = entry.expect("a loan ends with its donor's entry");
            let called = repay(entry, loan, due);
            due -= called;
            note(recalls, loan.borrower, called);
        }
        self.forget_settled();
    }

    /// `call` is over: what it borrowed goes back to the donors, what it lent is recalled.
    pub fn end(&mut self, call: CallId, recalls: &mut Vec<Recall>) {
        self.give_back(call, self.borrowed_by(call));
        self.take_back(call, self.put_by(call), recalls);
    }

    /// What `donor` has in the pool, lent or not.
    pub fn put_by(&self, donor: CallId) -> Allocation {
        self.place_of(donor).map_or(Allocation::ZERO, |place| {
            let entry = &self.entries[place];
            entry.free + entry.lent
        })
    }

    /// What `borrower` has on loan.
    pub fn borrowed_by(&self, borrower: CallId) -> Allocation {
        sum(self.loans.iter().filter(|loan| loan.borrower == borrower).map(|loan| loan.amount))
    }

    /// When the entry of `donor` is expected to end.
    pub fn until(&self, donor: CallId) -> Option<Timestamp> {
        self.place_of(donor).map(|place| self.entries[place].until)
    }

    /// What could be borrowed now.
    pub fn free(&self) -> Allocation {
        sum(self.entries.iter().map(|entry| entry.free))
    }

    /// What is on loan now.
    pub fn lent(&self) -> Allocation {
        sum(self.loans.iter().map(|loan| loan.amount))
    }

    /// Share of `wanted` that the pool could cover from `from` until `until`, for CPU and for memory.
    ///
    /// It is the area under what is free at each moment, never more than `wanted` at once, over
    /// `wanted` times the length. 2 cores wanted for 10 s, 1 core free for 10 s and 3 more for 5 s:
    /// (2 x 5 + 1 x 5) / (2 x 10) = 0.75. Nothing wanted is fully covered.
    pub fn coverage(&self, wanted: Allocation, from: Timestamp, until: Timestamp) -> Coverage {
        let length = until.since(from).as_nanos() as f64;
        if length == 0.0 {
            let free = self.free().min(wanted);
            let cpu = share(f64::from(free.cpu.get()), f64::from(wanted.cpu.get()));
            let memory = share(f64::from(free.memory.get()), f64::from(wanted.memory.get()));
            return Coverage { cpu, memory };
        }
        // From the last end backwards: what is free before an end is what was free after it, plus the
        // entry that ends there.
        let (mut free, mut covered_until) = (Allocation::ZERO, until);
        let (mut cpu, mut memory) = (0.0, 0.0);
        let ends = self.entries.iter().map(|entry| (entry.until, entry.free));
        for (end, amount) in ends.chain([(from, Allocation::ZERO)]) {
            let end = end.max(from);
            let stretch = covered_until.since(end).as_nanos() as f64;
            let usable = free.min(wanted);
            cpu += f64::from(usable.cpu.get()) * stretch;
            memory += f64::from(usable.memory.get()) * stretch;
            covered_until = covered_until.min(end);
            if end > from {
                free += amount;
            }
        }
        Coverage {
            cpu: share(cpu, f64::from(wanted.cpu.get()) * length),
            memory: share(memory, f64::from(wanted.memory.get()) * length),
        }
    }

    /// Every entry's loans add up to what it says is lent, every loan has a donor's entry, nobody
    /// borrows from itself, no donor has two entries, and nothing empty is kept.
    pub fn balances(&self) -> bool {
        let entries_hold = self.entries.iter().enumerate().all(|(place, entry)| {
            let loans = self.loans.iter().filter(|loan| loan.donor == entry.donor);
            self.place_of(entry.donor) == Some(place)
                && sum(loans.map(|loan| loan.amount)) == entry.lent
                && entry.free + entry.lent != Allocation::ZERO
        });
        let loans_hold = self.loans.iter().all(|loan| {
            self.place_of(loan.donor).is_some()
                && loan.donor != loan.borrower
                && loan.amount != Allocation::ZERO
        });
        entries_hold && loans_hold && self.entries.is_sorted_by(|a, b| a.until >= b.until)
    }

    fn place_of(&self, donor: CallId) -> Option<usize> {
        self.entries.iter().position(|entry| entry.donor == donor)
    }

    fn forget_settled(&mut self) {
        self.loans.retain(|loan| loan.amount != Allocation::ZERO);
        self.entries.retain(|entry| entry.free + entry.lent != Allocation::ZERO);
    }
}

/// Moves up to `due` of a loan back into its entry and returns how much that was.
fn repay(entry: &mut Entry, loan: &mut Loan, due: Allocation) -> Allocation {
    let amount = due.min(loan.amount);
    loan.amount -= amount;
    entry.lent -= amount;
    entry.free += amount;
    amount
}

fn note(recalls: &mut Vec<Recall>, borrower: CallId, amount: Allocation) {
    if amount != Allocation::ZERO {
        recalls.push(Recall { borrower, amount });
    }
}

fn sum(amounts: impl Iterator<Item = Allocation>) -> Allocation {
    amounts.fold(Allocation::ZERO, |sum, amount| sum + amount)
}

/// `part` of `whole`; nothing is fully covered by nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 1.0 } else { part / whole }
}

#[cfg(test)]
mod tests;
