//! The calls of an instance. Mostly it is one, which needs no list of its own.

use std::ops::Deref;

/// Calls by their slots, in the order in which they joined.
#[derive(Debug)]
pub(crate) enum Members {
    Nobody,
    One(u32),
    Several(Vec<u32>),
}

impl Members {
    #[inline]
    pub(crate) fn push(&mut self, call: u32) {
        match self {
            Self::Nobody => *self = Self::One(call),
            _ => self.push_to_several(call),
        }
    }

    #[inline(never)]
    fn push_to_several(&mut self, call: u32) {
        match self {
            Self::Several(calls) => calls.push(call),
            _ => *self = Self::Several(self.iter().copied().chain([call]).collect()),
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, call: u32) {
        match self {
            Self::One(only) if *only == call => *self = Self::Nobody,
            _ => self.remove_from_several(call),
        }
    }

    #[inline(never)]
    fn remove_from_several(&mut self, call: u32) {
        if let Self::Several(calls) = self {
            calls.retain(|&other| other != call);
        }
    }
}

impl Deref for Members {
    type Target = [u32];
    #[inline]
    fn deref(&self) -> &[u32] {
        match self {
            Self::Nobody => &[],
            Self::One(call) => std::slice::from_ref(call),
            Self::Several(calls) => calls,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_stay_in_the_order_in_which_they_joined() {
        let mut members = Members::Nobody;
        assert!(members.is_empty());
        for call in [7, 3, 5] {
            members.push(call);
        }
        members.remove(3);
        assert_eq!(*members, [7, 5]);
        members.remove(7);
        members.remove(5);
        assert!(members.is_empty());
        members.push(9);
        assert_eq!(*members, [9]);
    }
}
