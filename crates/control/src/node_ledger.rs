//! The harvest pool of a node together with what its borrowers hold of their own, so that a recalled
//! loan can be passed to its borrower as a new grant.

use windfall_core::call::Beyond;
use windfall_core::{Allocation, CallId, GrantChange, Resized, RunningCall, Timestamp};

use crate::harvest_pool::{HarvestPool, Recall};

/// What a running call is to hold from now on, before it is known what the node's pool can give.
pub(crate) struct Claim {
    pub(crate) grant: Allocation,
    pub(crate) beyond: Beyond,
    pub(crate) until: Option<Timestamp>,
}

/// The pool and the borrowers of one node.
#[derive(Debug, Default)]
pub(crate) struct NodeLedger {
    pool: HarvestPool,
    /// What each borrower holds apart from its loans.
    own: Vec<(CallId, Allocation)>,
    /// Reused between calls.
    recalls: Vec<Recall>,
}

impl NodeLedger {
    pub(crate) fn is_empty(&self) -> bool {
        self.pool.is_empty()
    }

    pub(crate) fn pool(&self) -> &HarvestPool {
        &self.pool
    }

    /// Lends up to `wanted` to a call that holds `own` itself.
    pub(crate) fn borrow(
        &mut self,
        call: CallId,
        own: Allocation,
        wanted: Allocation,
    ) -> Allocation {
        let got = self.pool.borrow(call, wanted);
        self.remember(call, own);
        got
    }

    /// A call leaves `amount` of its reservation until `until`.
    pub(crate) fn put(&mut self, call: CallId, amount: Allocation, until: Timestamp) {
        self.pool.put(call, amount, until);
    }

    /// Settles a running call's new claim and returns what it gets. Raises up to its reservation are its
    /// right: its own entry gives first, then loans on the node are recalled as far as room is missing.
    /// What lies above comes from the pool or from free room, as far as there is any.
    pub(crate) fn settle(
        &mut self,
        running: &RunningCall,
        claim: &Claim,
        changes: &mut Vec<GrantChange>,
    ) -> Allocation {
        let (call, reservation, room) = (running.id, running.reservation, running.free_on_node);
        let base = claim.grant.min(reservation);
        let harvested = reservation.saturating_sub(base);

        let put = self.pool.put_by(call);
        let until = claim.until.or_else(|| self.pool.until(call)).unwrap_or(running.now);
        self.recalls.clear();
        self.pool.take_back(call, put.saturating_sub(harvested), &mut self.recalls);
        let recalled = self.recalls.iter().fold(Allocation::ZERO, |sum, r| sum + r.amount);
        let short = base.saturating_sub(running.grant).saturating_sub(room + recalled);
        self.pool.recall(short, &mut self.recalls);

        let borrowed = self.pool.borrowed_by(call);
        let extra = claim.grant.saturating_sub(reservation);
        let kept = borrowed.min(extra);
        self.pool.give_back(call, borrowed - kept);
        let more = extra - kept;
        let (own, got) = match claim.beyond {
            Beyond::HarvestPool => (base, self.pool.borrow(call, more.min(room))),
            Beyond::FreeCapacity => {
                let has = running.grant.saturating_sub(reservation).saturating_sub(borrowed);
                (base + more.min(has + room), Allocation::ZERO)
            }
        };
        self.pool.put(call, harvested.saturating_sub(put), until);
        self.remember(call, own);
        self.push_changes(changes, "a donor needs its own");
        own + kept + got
    }

    /// Brings the ledger in line with what is in force after a change.
    ///
    /// - What a call still holds of its reservation cannot be lent: asked 300m of 1000m, in force 800m leaves 200m of
    ///   the 700m in the pool, and loans of the other 500m are recalled.
    /// - A loan that did not come into force goes back to the pool.
    /// - A call that is short of its own has loans on the node recalled, and asks again if there were any. Loans run
    ///   out, so this comes to an end even where a platform refuses everything.
    pub(crate) fn resized(&mut self, change: &Resized, changes: &mut Vec<GrantChange>) {
        let Resized { call, reservation, asked, in_force, .. } = *change;
        self.recalls.clear();
        let harvested = reservation.saturating_sub(in_force);
        let put = self.pool.put_by(call);
        self.pool.take_back(call, put.saturating_sub(harvested), &mut self.recalls);

        let missing = asked.saturating_sub(in_force);
        let borrowed = self.pool.borrowed_by(call);
        if missing != Allocation::ZERO && borrowed != Allocation::ZERO {
            self.pool.give_back(call, missing.min(borrowed));
            if missing.min(borrowed) == borrowed {
                self.own.retain(|(borrower, _)| *borrower != call);
            }
        }
        let right = asked.min(reservation);
        let known = self.recalls.len();
        self.pool.recall(right.saturating_sub(in_force), &mut self.recalls);
        let has_recalled = self.recalls.len() > known;
        self.push_changes(changes, "a call is short of its own");
        if has_recalled {
            let grant = right.max(in_force);
            changes.push(GrantChange { call, grant, why: "asked again: loans were recalled" });
        }
    }

    /// A call has ended: its loans go back, what it lent is recalled.
    pub(crate) fn end(&mut self, call: CallId, changes: &mut Vec<GrantChange>) {
        self.recalls.clear();
        self.pool.end(call, &mut self.recalls);
        self.own.retain(|(borrower, _)| *borrower != call);
        self.push_changes(changes, "a donor has ended");
    }

    /// Keeps what a borrower holds itself for as long as it has loans.
    fn remember(&mut self, call: CallId, own: Allocation) {
        self.own.retain(|(borrower, _)| *borrower != call);
        if self.pool.borrowed_by(call) != Allocation::ZERO {
            self.own.push((call, own));
        }
    }

    /// Turns the recalls into one change per borrower.
    fn push_changes(&mut self, changes: &mut Vec<GrantChange>, why: &'static str) {
        self.recalls.sort_by_key(|recall| recall.borrower);
        self.recalls.dedup_by_key(|recall| recall.borrower);
        for recall in &self.recalls {
            let place = self.own.iter().position(|(borrower, _)| *borrower == recall.borrower);
            let Some(place) = place else { continue };
            let left = self.pool.borrowed_by(recall.borrower);
            let (call, own) = self.own[place];
            if left == Allocation::ZERO {
                self.own.swap_remove(place);
            }
            changes.push(GrantChange { call, grant: own + left, why });
        }
    }
}
