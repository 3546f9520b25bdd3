//! How a node's cores are divided among what wants to run: by weight, and never more than one can use.
//!
//! This is what the kernel does with `cpu.shares`: weights matter only while somebody is short, and nobody is held below
//! what is free. There is no cap.
//!
//! ```text
//!   8 cores, three instances that can use 6, 6 and 1 with weights 1024, 512 and 512
//!   fair: 4, 2, 2     the third takes 1 and leaves 1     then 7 cores by 1024 : 512 = 4.67 and 2.33
//! ```

/// What one instance wants of its node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Claim {
    /// Its share against the others'.
    pub weight: f64,
    /// Cores it can use.
    pub most: f64,
    /// Cores it gets.
    pub got: f64,
}

/// Divides `cores`: weighted max-min. `order` is room that is kept between calls.
pub fn share_out(cores: f64, claims: &mut [Claim], order: &mut Vec<usize>) {
    let wanted: f64 = claims.iter().map(|claim| claim.most).sum();
    if wanted <= cores {
        claims.iter_mut().for_each(|claim| claim.got = claim.most);
        return;
    }
    order.clear();
    order.extend(0..claims.len());
    // Who is content with least per weight is served first, so that what it leaves goes to all that follow.
    order.sort_by(|&one, &other| {
        let (one, other) = (&claims[one], &claims[other]);
        (one.most * other.weight).total_cmp(&(other.most * one.weight))
    });
    let mut weights: f64 = claims.iter().map(|claim| claim.weight).sum();
    let mut left = cores;
    for &place in order.iter() {
        let claim = &mut claims[place];
        let fair = if weights > 0.0 { left * claim.weight / weights } else { 0.0 };
        claim.got = claim.most.min(fair);
        left -= claim.got;
        weights -= claim.weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(cores: f64, claims: &[(f64, f64)]) -> Vec<f64> {
        let make = |&(weight, most): &(f64, f64)| Claim { weight, most, got: 0.0 };
        let mut claims: Vec<Claim> = claims.iter().map(make).collect();
        share_out(cores, &mut claims, &mut Vec::new());
        claims.iter().map(|claim| claim.got).collect()
    }

    #[test]
    fn the_worked_numbers() {
        let got = shared(8.0, &[(1024.0, 6.0), (512.0, 6.0), (512.0, 1.0)]);
        assert!((got[0] - 14.0 / 3.0).abs() < 1e-12 && (got[1] - 7.0 / 3.0).abs() < 1e-12);
        assert_eq!(got[2], 1.0);
    }

    #[test]
    fn weights_do_not_matter_while_there_is_enough() {
        assert_eq!(shared(8.0, &[(2048.0, 3.0), (128.0, 4.0)]), [3.0, 4.0]);
    }

    #[test]
    fn nothing_is_left_while_somebody_is_short() {
        let claims = [(128.0, 1.0), (2048.0, 1.0), (512.0, 0.2), (1024.0, 3.0)];
        let total: f64 = shared(2.5, &claims).iter().sum();
        assert!((total - 2.5).abs() < 1e-12);
    }
}
