//! What a simulated world leaves to chance.

/// Decides what happens in a simulation where more than one thing can happen, such as faults and
/// the order of steps. By default there are no faults, and the order is always the same.
pub(super) trait Chance {
    /// Whether something happens that goes wrong in `rate` of 256 cases.
    fn goes_wrong(&mut self, _rate: u8) -> bool {
        false
    }

    /// Chooses one of two outcomes, both of which are usual.
    fn is_first_outcome(&mut self) -> bool {
        true
    }

    /// Chooses one of `count` things that may happen next. `count` is not 0.
    fn choose_index(&mut self, _count: usize) -> usize {
        0
    }
}
