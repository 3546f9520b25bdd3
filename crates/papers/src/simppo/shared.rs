//! The experiment on `windfall/MultiScaling-v1`: fixed nodes that agents join.
//!
//! | I look for | It is in |
//! | --- | --- |
//! | whether agents meet at all, asked without any learner | [`gate`] |
//! | training and testing one learner or rule | [`trial`] |
//! | every learner like for like; what the auxiliary state is worth | [`arms`] |
//! | rules with their parameters swept on training hours | [`calibration`] |
//! | learned against calibrated on seven workloads | [`margins`] |
//! | intervals | [`paired`] |

pub mod arms;
pub mod calibration;
pub mod gate;
pub mod margins;
pub mod paired;
pub mod trial;
