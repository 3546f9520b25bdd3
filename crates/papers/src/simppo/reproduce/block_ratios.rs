//! The published ratios for every set of settings and networks, with intervals over seeds and functions.

use serde::Serialize;

use crate::simppo::online::OnlineRow;
use crate::simppo::shared::arms::{Arm, Block, Learner, Networks, USUAL, of};
use crate::simppo::shared::paired::{Estimate, Pairs};

/// One set of settings and networks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockRatios {
    /// Which PPO.
    pub settings: Block,
    /// Whose networks.
    pub networks: Networks,
    /// SIMPPO's reward over isolated S-RL's; the paper: above 0.908.
    pub simppo_to_isolated_reward: Estimate,
    /// SIMPPO's p99 over isolated S-RL's; the paper: below 1.092.
    pub simppo_to_isolated_p99: Estimate,
    /// S-RL's p99 among others over isolated S-RL's; the paper: up to 4.8.
    pub together_to_isolated_p99: Estimate,
    /// S-RL's p99 among others over SIMPPO's; the paper: 2 to 4.4.
    pub together_to_simppo_p99: Estimate,
    /// ENSURE's p99 over SIMPPO's.
    pub ensure_to_simppo_p99: Estimate,
}

/// All four.
pub(super) fn block_ratios(rows: &[OnlineRow], ensure: &[OnlineRow]) -> Vec<BlockRatios> {
    let mut all = Vec::new();
    for settings in [Block::Published, Block::Ours] {
        for networks in [Networks::Own, Networks::Shared] {
            let rows_of = |learner| of(rows, &Arm { block: settings, networks, learner });
            let (alone, together) = (rows_of(Learner::Isolated), rows_of(Learner::Together));
            let simppo = rows_of(Learner::Simppo(USUAL));
            let p99 =
                |ours: &[OnlineRow], theirs: &[OnlineRow]| Pairs::new(ours, theirs).p99_ratio();
            all.push(BlockRatios {
                settings,
                networks,
                simppo_to_isolated_reward: Pairs::new(&simppo, &alone)
                    .ratio_of_sums(&|row| row.reward),
                simppo_to_isolated_p99: p99(&simppo, &alone),
                together_to_isolated_p99: p99(&together, &alone),
                together_to_simppo_p99: p99(&together, &simppo),
                ensure_to_simppo_p99: p99(ensure, &simppo),
            });
        }
    }
    all
}
