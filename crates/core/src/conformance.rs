//! Suites every platform, policy and safeguard must pass.
