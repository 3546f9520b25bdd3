//! Whose function it is, for one network that decides for all.
//!
//! A network of its own learns what its function is like; one for all sees twelve kinds in turn and would treat them
//! alike. What is known of a function when it is deployed distinguishes them, also one that no training saw:
//!
//! ```text
//!   logarithm of the objective      run time on one core / objective      cold start / objective
//!   aes     ln 540  = 6.29          0.35                                  0.96
//!   object-store  ln 6000 = 8.70    0.36                                  0.06
//! ```

use windfall_gym::profile::ServiceProfile;

/// Numbers of it.
pub(super) const CONTEXT: usize = 3;

/// Writes them; nothing into an empty row.
pub(super) fn write_context(profile: &ServiceProfile, out: &mut [f32]) {
    let slo = profile.slo_ms;
    let cold = profile.cold_start_ms as f64;
    let numbers = [slo.ln(), 1000.0 * profile.mean_run(1.0) / slo, cold / slo];
    for (out, value) in out.iter_mut().zip(numbers) {
        *out = value as f32;
    }
}

#[test]
fn no_two_functions_have_the_same_context() {
    let rows = windfall_gym::profile::TWELVE.map(|profile| {
        let mut row = [0.0; CONTEXT];
        write_context(&profile, &mut row);
        row
    });
    for (place, row) in rows.iter().enumerate() {
        assert!(row.iter().all(|value| value.is_finite()), "{row:?}");
        assert!(!rows[..place].contains(row), "{row:?}");
    }
}
