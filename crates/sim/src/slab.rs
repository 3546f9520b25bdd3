//! A list with stable places: what is taken out leaves a hole that the next one fills.

/// Places for `T`, addressed by `u32`. What was in a hole stays there unseen until the place is filled
/// again, so that neither an address nor an end has to ask whether somebody is there.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<T>,
    is_taken: Vec<bool>,
    holes: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), is_taken: Vec::new(), holes: Vec::new() }
    }
}

impl<T> Slab<T> {
    #[inline(always)]
    pub(crate) fn insert(&mut self, item: T) -> u32 {
        if let Some(place) = self.holes.pop() {
            self.places[place as usize] = item;
            self.is_taken[place as usize] = true;
            return place;
        }
        self.places.push(item);
        self.is_taken.push(true);
        (self.places.len() - 1) as u32
    }

    /// A place for one more, to be filled by the caller: whoever was there before may still lie in it.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> u32
    where
        T: Default,
    {
        match self.holes.pop() {
            Some(place) => {
                self.is_taken[place as usize] = true;
                place
            }
            None => self.insert(T::default()),
        }
    }

    pub(crate) fn free(&mut self, place: u32) {
        debug_assert!(self.is_taken[place as usize], "only an occupied place is emptied");
        self.is_taken[place as usize] = false;
        self.holes.push(place);
    }

    /// Who is at `place`, if anybody, to be changed.
    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        let is_taken = *self.is_taken.get(place as usize)?;
        if is_taken { self.places.get_mut(place as usize) } else { None }
    }

    /// All occupied places.
    pub(crate) fn places(&self) -> impl Iterator<Item = u32> {
        (0u32..).zip(&self.is_taken).filter(|(_, is_taken)| **is_taken).map(|(place, _)| place)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let both = self.places.iter_mut().zip(&self.is_taken);
        both.filter(|(_, is_taken)| **is_taken).map(|(item, _)| item)
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, place: u32) -> &T {
        debug_assert!(self.is_taken[place as usize], "only occupied places are addressed");
        &self.places[place as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut T {
        debug_assert!(self.is_taken[place as usize], "only occupied places are addressed");
        &mut self.places[place as usize]
    }
}
