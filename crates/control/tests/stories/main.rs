//! Random stories of a policy behind the tick loop on platforms on which things go wrong.
//!
//! What must hold in every one of them: each target is answered once, each accepted change settles once, the flap budget
//! is charged for accepted changes only, and two ticks after the last fault no function that a fault has touched holds
//! less than its own allocation.

mod dice;
mod flap_reference;
mod scripted;
mod simulated;
mod whims;
