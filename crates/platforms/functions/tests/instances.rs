//! Instances as real processes on an inherited listener: the same promises for all runtimes.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]
#![expect(clippy::print_stderr, reason = "a skipped test says why")]

mod instances {
    pub(crate) mod instance;
    mod promises;
    mod python_samples;
}
