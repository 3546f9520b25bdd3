//! Time in which a call waits for somebody else and uses no CPU.

use std::thread;
use std::time::Duration;

/// Waits as long as a store that answers within 2 ms and sends 200 MB/s takes for `bytes`.
///
/// 1 MB takes 7 ms, 9 MB (an image of 2000 x 1500) 47 ms.
pub(super) fn fetch(bytes: usize) {
    const LATENCY: Duration = Duration::from_millis(2);
    const NANOS_PER_BYTE: u64 = 5;
    thread::sleep(LATENCY + Duration::from_nanos(bytes as u64 * NANOS_PER_BYTE));
}

/// Waits for a server to acknowledge something small.
pub(super) fn acknowledgement() {
    thread::sleep(Duration::from_millis(4));
}
