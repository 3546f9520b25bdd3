//! State per function in a dense vector indexed by function id, so a lookup is one index and iteration
//! follows the order of the ids.

use windfall_core::FunctionId;

/// One `T` per function, created on first use.
#[derive(Clone, Debug, Default)]
pub struct PerFunction<T> {
    states: Vec<T>,
}

impl<T: Default> PerFunction<T> {
    /// Returns the state of `function`, creating it on first use.
    pub fn state(&mut self, function: FunctionId) -> &mut T {
        let place = function.index();
        if place >= self.states.len() {
            self.states.resize_with(place + 1, T::default);
        }
        &mut self.states[place]
    }

    /// Returns the state of `function` if it, or one with a higher id, has been created.
    pub fn known(&self, function: FunctionId) -> Option<&T> {
        self.states.get(function.index())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_created_on_first_use_and_kept() {
        let mut counts = PerFunction::<u32>::default();
        assert_eq!(counts.known(FunctionId(3)), None);
        *counts.state(FunctionId(3)) += 2;
        *counts.state(FunctionId(0)) += 1;
        assert_eq!(counts.known(FunctionId(3)), Some(&2));
        assert_eq!(counts.known(FunctionId(1)), Some(&0));
        assert_eq!(counts.known(FunctionId(4)), None);
    }
}
