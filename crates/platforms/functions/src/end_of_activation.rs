//! The line that ends the output of one call, on standard output and on standard error.

/// Written after the output of every call, so that the platform knows which lines belong to it.
pub const END_OF_ACTIVATION: &str = "XXX_THE_END_OF_A_WHISK_ACTIVATION_XXX";
