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

/// Their names.
pub(super) const CONTEXT_NAMES: [&str; CONTEXT] =
    ["objective_logarithm", "run_over_objective", "cold_start_over_objective"];

/// Writes them for a function of the environment; nothing into an empty row.
pub(super) fn write_context(profile: &ServiceProfile, out: &mut [f32]) {
    let run_ms = 1000.0 * profile.mean_run(1.0);
    write_times(profile.slo_ms, run_ms, profile.cold_start_ms as f64, out);
}

/// Writes them for these times, milliseconds.
pub(super) fn write_times(objective: f64, run: f64, cold_start: f64, out: &mut [f32]) {
    let numbers = [objective.ln(), run / objective, cold_start / objective];
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
