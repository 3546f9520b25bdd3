//! Weighted max-min sharing of one capacity: nobody gets more than it can use, and what one leaves over
//! is shared by the others in proportion to their weights.
//!
//! ```text
//!  share_i = min(cap_i, level * weight_i),  level such that the shares add up to the capacity
//!
//!  capacity 4, caps 1 / 3 / 3, weights 1 / 1 / 2:  level 1  ->  1 / 1 / 2
//! ```

/// One who wants a share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    /// The most it can use.
    pub(crate) cap: f64,
    /// Its weight, above zero.
    pub(crate) weight: f64,
    /// What it gets.
    pub(crate) share: f64,
}

/// Fills in the shares of `claims`. Takes as many rounds as there are different levels at which
/// somebody is satisfied, three at the most in practice.
pub(crate) fn share_out(capacity: f64, claims: &mut [Claim]) {
    let wanted: f64 = claims.iter().map(|claim| claim.cap).sum();
    if wanted <= capacity {
        for claim in claims {
            claim.share = claim.cap;
        }
        return;
    }
    for claim in claims.iter_mut() {
        claim.share = -1.0;
    }
    let mut left = capacity;
    let mut weight: f64 = claims.iter().map(|claim| claim.weight).sum();
    loop {
        let level = if weight > 0.0 { left / weight } else { 0.0 };
        let mut satisfied = false;
        for claim in claims.iter_mut().filter(|claim| claim.share < 0.0) {
            if claim.cap <= level * claim.weight {
                claim.share = claim.cap;
                left -= claim.cap;
                weight -= claim.weight;
                satisfied = true;
            }
        }
        if !satisfied {
            for claim in claims.iter_mut().filter(|claim| claim.share < 0.0) {
                claim.share = (level * claim.weight).max(0.0);
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shares(capacity: f64, claims: &[(f64, f64)]) -> Vec<f64> {
        let mut claims: Vec<Claim> =
            claims.iter().map(|&(cap, weight)| Claim { cap, weight, share: 0.0 }).collect();
        share_out(capacity, &mut claims);
        claims.iter().map(|claim| claim.share).collect()
    }

    #[test]
    fn by_hand() {
        assert_eq!(shares(4.0, &[(1.0, 1.0), (3.0, 1.0), (3.0, 2.0)]), [1.0, 1.0, 2.0]);
        // The second wants little; what it leaves goes to the others, 1 to 3.
        assert_eq!(shares(5.0, &[(9.0, 1.0), (1.0, 4.0), (9.0, 3.0)]), [1.0, 1.0, 3.0]);
        assert_eq!(shares(9.0, &[(2.0, 1.0), (3.0, 1.0)]), [2.0, 3.0]);
    }

    proptest! {
        #[test]
        fn nothing_is_wasted_and_nobody_gets_more_than_it_can_use(
            capacity in 0.0f64..100.0,
            claims in proptest::collection::vec((0.0f64..20.0, 0.1f64..10.0), 0..30),
        ) {
            let given = shares(capacity, &claims);
            let wanted: f64 = claims.iter().map(|(cap, _)| cap).sum();
            let total: f64 = given.iter().sum();
            prop_assert!((total - wanted.min(capacity)).abs() < 1e-6);
            for (share, (cap, _)) in given.iter().zip(&claims) {
                prop_assert!(*share >= 0.0 && *share <= cap + 1e-9);
            }
            // Whoever wants more has at least the level of everyone else.
            let level = |i: usize| given[i] / claims[i].1;
            for i in (0..claims.len()).filter(|&i| given[i] < claims[i].0 - 1e-6) {
                for j in 0..claims.len() {
                    prop_assert!(level(j) <= level(i) + 1e-6);
                }
            }
        }
    }
}
