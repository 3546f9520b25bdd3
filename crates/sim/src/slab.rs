//! A list with stable places: what is taken out leaves a hole that the next one fills.

/// Places for `T`, addressed by `u32`.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Option<T>>,
    holes: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), holes: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(crate) fn insert(&mut self, item: T) -> u32 {
        if let Some(place) = self.holes.pop() {
            self.places[place as usize] = Some(item);
            return place;
        }
        self.places.push(Some(item));
        (self.places.len() - 1) as u32
    }

    /// Empties a place without moving what was there: calls are large.
    pub(crate) fn free(&mut self, place: u32) {
        debug_assert!(self.places[place as usize].is_some(), "only an occupied place is emptied");
        self.places[place as usize] = None;
        self.holes.push(place);
    }

    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.places.get_mut(place as usize).and_then(Option::as_mut)
    }

    /// All occupied places.
    pub(crate) fn places(&self) -> impl Iterator<Item = u32> {
        (0u32..).zip(&self.places).filter(|(_, item)| item.is_some()).map(|(place, _)| place)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().flatten()
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, place: u32) -> &T {
        self.places[place as usize].as_ref().expect("only occupied places are addressed")
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, place: u32) -> &mut T {
        self.places[place as usize].as_mut().expect("only occupied places are addressed")
    }
}
