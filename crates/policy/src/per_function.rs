//! State per function in a dense vector: ids are places, so looking one up is an index and the order
//! of iteration is the order of the ids.

use windfall_core::FunctionId;

/// One `T` per function, made on first use.
#[derive(Clone, Debug, Default)]
pub struct PerFunction<T> {
    states: Vec<T>,
}

impl<T: Default> PerFunction<T> {
    /// The state of `function`, new if it was never asked for.
    pub fn state(&mut self, function: FunctionId) -> &mut T {
        let place = function.index();
        if place >= self.states.len() {
            self.states.resize_with(place + 1, T::default);
        }
        &mut self.states[place]
    }

    /// The state of `function`, if it or a later one was ever asked for.
    pub fn known(&self, function: FunctionId) -> Option<&T> {
        self.states.get(function.index())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_made_on_first_use_and_kept() {
        let mut counts = PerFunction::<u32>::default();
        assert_eq!(counts.known(FunctionId(3)), None);
        *counts.state(FunctionId(3)) += 2;
        *counts.state(FunctionId(0)) += 1;
        assert_eq!(counts.known(FunctionId(3)), Some(&2));
        assert_eq!(counts.known(FunctionId(1)), Some(&0));
        assert_eq!(counts.known(FunctionId(4)), None);
    }
}
