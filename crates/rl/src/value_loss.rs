//! How far a value is from the return it predicts, with the derivative.

/// The loss of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueLoss {
    /// `(V - R)^2 / 2`.
    HalfSquare {
        /// How far a value may move before its loss stops falling: the loss is then the larger of the plain one
        /// and that of `V` held within this distance of the value before the update.
        clip: Option<f32>,
    },
    /// The half square up to a distance of one and `|V - R| - 1/2` beyond, so that far-off returns pull no harder.
    SmoothL1,
}

/// Loss of one value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueError {
    /// The loss.
    pub loss: f32,
    /// Its derivative by the value.
    pub by_value: f32,
}

impl ValueLoss {
    /// Of `value`, which was `old` before the update, for a return of `target`.
    #[inline(always)]
    pub fn evaluate(self, value: f32, old: f32, target: f32) -> ValueError {
        let miss = value - target;
        match self {
            Self::SmoothL1 => {
                let distance = miss.abs();
                let loss = if distance < 1.0 { 0.5 * miss * miss } else { distance - 0.5 };
                ValueError { loss, by_value: miss.clamp(-1.0, 1.0) }
            }
            Self::HalfSquare { clip: None } => {
                ValueError { loss: miss * miss / 2.0, by_value: miss }
            }
            Self::HalfSquare { clip: Some(clip) } => {
                let held = old + (value - old).clamp(-clip, clip);
                let held_miss = held - target;
                if held_miss * held_miss > miss * miss {
                    ValueError { loss: held_miss * held_miss / 2.0, by_value: 0.0 }
                } else {
                    ValueError { loss: miss * miss / 2.0, by_value: miss }
                }
            }
        }
    }
}

#[test]
fn losses_by_hand() {
    let of = |loss: ValueLoss, value, old| {
        let error = loss.evaluate(value, old, 1.0);
        (error.loss, error.by_value)
    };
    assert_eq!(of(ValueLoss::HalfSquare { clip: None }, 4.0, 0.0), (4.5, 3.0));
    assert_eq!(of(ValueLoss::SmoothL1, 4.0, 0.0), (2.5, 1.0));
    assert_eq!(of(ValueLoss::SmoothL1, 0.5, 0.0), (0.125, -0.5));
    // Moved from 0 to 0.5 although 0.25 was allowed: the value at 0.25 counts, and nothing pushes on.
    let clipped = ValueLoss::HalfSquare { clip: Some(0.25) };
    assert_eq!(of(clipped, 0.5, 0.0), (0.28125, 0.0));
    // Moved away from the return: the plain loss is the larger, and pushes back.
    assert_eq!(of(clipped, -0.5, 0.0), (1.125, -1.5));
}
