//! Numbers drawn from a stream of the seed, in ways that are pinned here.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use windfall_core::Seed;

/// A generator with the few draws learning needs.
#[derive(Clone, Debug)]
pub struct Draw(Xoshiro256PlusPlus);

impl Draw {
    /// The draws of this stream.
    pub fn new(seed: Seed) -> Self {
        Self(seed.generator())
    }

    /// Uniform on 0 (included) to 1 (excluded), 53 bits.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform on 0 (included) to 1 (excluded), 24 bits.
    #[expect(clippy::cast_precision_loss, reason = "24 bits fit")]
    pub fn unit_f32(&mut self) -> f32 {
        (self.0.next_u64() >> 40) as f32 / (1_u64 << 24) as f32
    }

    /// Uniform on 0 (included) to `count` (excluded); the bias of less than `count` / 2^64 is accepted.
    #[expect(clippy::cast_possible_truncation, reason = "the result is below count")]
    pub fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.0.next_u64()) * count as u128) >> 64) as usize
    }

    /// The place of one of those allowed, each with the same probability; the first if none is.
    pub fn among(&mut self, allowed: &[bool]) -> usize {
        let count = allowed.iter().filter(|allowed| **allowed).count();
        let chosen = self.below(count.max(1));
        let mut places = (0..allowed.len()).filter(|place| allowed[*place]);
        places.nth(chosen).unwrap_or(0)
    }

    /// Normal with mean 0 and variance 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.unit())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// Puts `items` into random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_their_moments() {
        let mut draw = Draw::new(Seed::new(11));
        let count = 20_000;
        let mean = (0..count).map(|_| draw.unit()).sum::<f64>() / f64::from(count);
        assert!((mean - 0.5).abs() < 0.01);
        let normals: Vec<f64> = (0..count).map(|_| draw.normal()).collect();
        let variance = normals.iter().map(|x| x * x).sum::<f64>() / f64::from(count);
        assert!((variance - 1.0).abs() < 0.03);
        let mut seen = [0; 3];
        (0..3000).for_each(|_| seen[draw.below(3)] += 1);
        assert!(seen.iter().all(|n| (900..1100).contains(n)), "{seen:?}");
    }

    #[test]
    fn a_shuffle_loses_nothing() {
        let mut items: Vec<u32> = (0..100).collect();
        Draw::new(Seed::new(2)).shuffle(&mut items);
        assert_ne!(items[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<u32>>());
    }
}
