//! What is in a checkpoint, for people.

use serde::Serialize;

use super::{Checkpoint, CheckpointError, Header, Tensor};
use crate::normalise::Moments;

/// Everything a checkpoint says about itself, and what it holds.
#[derive(Clone, Debug, Serialize)]
pub struct Contents {
    /// What it is and where its learner stands.
    #[serde(flatten)]
    pub header: Header,
    /// Environments played at once.
    pub environments: usize,
    /// Numbers that the deciding network or table has.
    pub parameters: usize,
    /// Normalisation of each feature; empty if there is none.
    pub normalisation: Vec<Normalised>,
    /// What is stored, by name.
    pub tensors: Vec<Stored>,
}

/// How one feature is normalised.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Normalised {
    /// The feature.
    pub feature: String,
    /// Mean of what was seen.
    pub mean: f64,
    /// Its standard deviation.
    pub deviation: f64,
}

/// One group of numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stored {
    /// Its name.
    pub name: String,
    /// What its numbers are: `f32`, `f64` or `i64`.
    pub numbers: &'static str,
    /// Their arrangement.
    pub shape: Vec<usize>,
}

impl Checkpoint {
    /// What is in it, after making sure that it holds a policy that can decide.
    pub fn contents(&self) -> Result<Contents, CheckpointError> {
        self.header.any_settings()?;
        self.decider()?;
        let deciding = format!("{}.", self.deciding());
        let decides = |name: &str| name.starts_with(&deciding) || name == "table.values";
        let stored = |(name, tensor): (&String, &Tensor)| {
            let (numbers, shape) = match tensor {
                Tensor::F32(shape, _) => ("f32", shape.clone()),
                Tensor::F64(data) => ("f64", vec![data.len()]),
                Tensor::I64(data) => ("i64", vec![data.len()]),
            };
            Stored { name: name.clone(), numbers, shape }
        };
        let tensors: Vec<Stored> = self.tensors.iter().map(stored).collect();
        let deciding = tensors.iter().filter(|stored| decides(&stored.name));
        Ok(Contents {
            header: self.header.clone(),
            environments: self.environments(),
            parameters: deciding.map(|stored| stored.shape.iter().product::<usize>()).sum(),
            normalisation: self.normalisation(),
            tensors,
        })
    }

    fn normalisation(&self) -> Vec<Normalised> {
        let features = &self.header.environment.features;
        let mut moments = Moments::new(features.len());
        if self.take_moments("observations", &mut moments).is_err() || moments.count == 0.0 {
            return Vec::new();
        }
        let normalised = |(index, mean): (usize, &f64)| Normalised {
            feature: features[index].name.clone(),
            mean: *mean,
            deviation: moments.deviation(index),
        };
        moments.mean.iter().enumerate().map(normalised).collect()
    }
}
