//! The sign of a policy: a colour and a shape that are the same in every report.
//!
//! Policies we know have theirs by name. Any other gets one from a hash of its name, so that it keeps it
//! from report to report; only where two strangers in one report clash does the later one, by name, move on.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::comparison::REFERENCES;

/// Colours in the style sheet, `--p0` and up.
const COLOURS: u8 = 12;
/// Circle, square, diamond, triangle; lines have a dash pattern for each.
const SHAPES: u8 = 4;

/// Colour and shape of one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Sign {
    color: u8,
    shape: u8,
    hollow: bool,
}

/// Ours and the learned policies carry the strongest colours, the references the calm ones.
const KNOWN: [(&str, u8, u8); 18] = [
    ("fixed", 0, 0),
    ("safeguard-random", 3, 1),
    ("histogram", 1, 2),
    ("oracle", 2, 3),
    ("greedy", 10, 0),
    ("libra", 4, 1),
    ("ensure", 8, 2),
    ("ensure-scaling", 8, 0),
    ("queueing", 9, 1),
    ("keep-alive", 11, 3),
    ("freyr", 5, 0),
    ("faasrm", 7, 2),
    ("ppo", 6, 1),
    ("dqn", 5, 3),
    ("bandit", 7, 0),
    ("windfall", 6, 0),
    ("windfall-scaling", 6, 2),
    ("windfall+windfall-scaling", 6, 3),
];

/// The signs of all policies of a report, by name.
pub(crate) fn signs<'a>(policies: &[&'a str]) -> BTreeMap<&'a str, Sign> {
    let mut signs = BTreeMap::new();
    let mut strangers: Vec<&str> = Vec::new();
    for &policy in policies {
        match KNOWN.iter().find(|(name, ..)| *name == policy) {
            Some(&(name, color, shape)) => {
                signs.insert(policy, Sign { color, shape, hollow: REFERENCES.contains(&name) });
            }
            None => strangers.push(policy),
        }
    }
    strangers.sort_unstable();
    for policy in strangers {
        let first = hash(policy);
        let candidates = (0..u32::from(COLOURS) * u32::from(SHAPES)).map(|step| {
            // Five has no divisor in common with twelve: every colour comes before one comes twice.
            let color = (first.wrapping_add(step * 5) % u32::from(COLOURS)) as u8;
            let shape = ((first >> 8).wrapping_add(step / 12) % u32::from(SHAPES)) as u8;
            Sign { color, shape, hollow: false }
        });
        let look = |sign: &Sign| (sign.color, sign.shape);
        // Signs of policies we know stay free even where those are absent: they may be there next time.
        let is_free = |sign: &Sign| {
            KNOWN.iter().all(|&(_, color, shape)| (color, shape) != look(sign))
                && signs.values().all(|other| look(other) != look(sign))
        };
        let mut candidates = candidates.peekable();
        let fallback = candidates.peek().copied();
        if let Some(sign) = candidates.find(is_free).or(fallback) {
            signs.insert(policy, sign);
        }
    }
    signs
}

/// FNV-1a: the same on every machine and in every version.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_keeps_its_sign_whatever_else_is_in_the_report() {
        let alone = signs(&["libra"])["libra"];
        let stranger = signs(&["my-policy"])["my-policy"];
        let together = signs(&["zebra", "fixed", "my-policy", "libra"]);
        assert_eq!(together["libra"], alone);
        assert_eq!(together["my-policy"], stranger);
        assert!(together["fixed"].hollow && !together["libra"].hollow);
    }

    #[test]
    fn no_two_known_policies_and_no_two_strangers_share_a_sign() {
        let names: Vec<String> = (0..30).map(|k| format!("stranger-{k}")).collect();
        let mut policies: Vec<&str> = KNOWN.iter().map(|(name, ..)| *name).collect();
        policies.extend(names.iter().map(String::as_str));
        let signs = signs(&policies);
        let mut looks: Vec<(u8, u8)> =
            signs.values().map(|sign| (sign.color, sign.shape)).collect();
        looks.sort_unstable();
        assert!(looks.windows(2).all(|pair| pair[0] != pair[1]), "{looks:?}");
        assert!(looks.iter().all(|look| look.0 < COLOURS && look.1 < SHAPES));
    }

    #[test]
    fn more_policies_than_signs_still_all_have_one() {
        let names: Vec<String> = (0..100).map(|k| format!("policy-{k}")).collect();
        let policies: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(signs(&policies).len(), 100);
    }
}
