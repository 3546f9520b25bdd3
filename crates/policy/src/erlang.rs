//! Erlang's B and C formulas: how many servers a stream of calls needs.
//!
//! With Poisson arrivals, exponential service and an offered load of `a` busy servers on average:
//!
//! ```text
//!   B(0) = 1      B(c) = a B(c-1) / (c + a B(c-1))         chance of loss, M/M/c/c
//!   C(c) = B(c) / (1 - (a/c) (1 - B(c)))     for a < c     chance of a wait, M/M/c
//!   mean wait = C(c) / (c - a) service times
//! ```
//!
//! Three busy servers of four: C = 0.5094, and a call waits 0.5094 service times on average.

/// Largest load that is computed; higher ones are clamped, because the recursion takes one step per server.
const HEAVIEST: f64 = 50_000.0;

/// Chance that a call finds all `servers` busy and is lost, at an offered load of `load` servers.
pub fn erlang_b(servers: u32, load: f64) -> f64 {
    (1..=servers).fold(1.0, |blocked, server| next_b(blocked, server, load))
}

/// Chance that a call has to wait because all `servers` are busy, at an offered load of `load` servers.
pub fn erlang_c(servers: u32, load: f64) -> f64 {
    waits(erlang_b(servers, load), servers, load)
}

/// Smallest number of servers with which at most `share` of the calls wait, at an offered load of `load`.
pub fn servers_for(load: f64, share: f64) -> u32 {
    if load.is_nan() || load <= 0.0 {
        return 0;
    }
    let load = load.min(HEAVIEST);
    // Ten standard deviations above the load almost no call waits; this bounds the loop for a share of 0.
    let most = (load + 10.0 * load.sqrt() + 10.0) as u32;
    let mut blocked = 1.0;
    for servers in 1..most {
        blocked = next_b(blocked, servers, load);
        if f64::from(servers) > load && waits(blocked, servers, load) <= share {
            return servers;
        }
    }
    most
}

fn next_b(blocked: f64, server: u32, load: f64) -> f64 {
    load * blocked / (f64::from(server) + load * blocked)
}

fn waits(blocked: f64, servers: u32, load: f64) -> f64 {
    if load >= f64::from(servers) {
        return 1.0;
    }
    blocked / (1.0 - load / f64::from(servers) * (1.0 - blocked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // M/M/4 with 3 busy: 27/53 = 0.50943; the mean wait is C / (4 - 3), the same number.
        assert!((erlang_c(4, 3.0) - 27.0 / 53.0).abs() < 1e-12);
        // M/M/1: every call that finds the server busy waits.
        assert!((erlang_c(1, 0.7) - 0.7).abs() < 1e-12);
        // Two servers, load 1: B = (1/2) / (1 + 1 + 1/2) = 1/5, C = 1/3.
        assert!((erlang_b(2, 1.0) - 0.2).abs() < 1e-12);
        assert!((erlang_c(2, 1.0) - 1.0 / 3.0).abs() < 1e-12);
        // From the printed tables: 20 servers and 12.03 erlangs lose 1 in 100.
        assert!((erlang_b(20, 12.03) - 0.01).abs() < 2e-5);
    }

    #[test]
    fn in_an_overloaded_system_every_call_waits() {
        assert_eq!(erlang_c(3, 3.0), 1.0);
        assert_eq!(erlang_c(0, 1.0), 1.0);
    }

    #[test]
    fn one_server_fewer_would_exceed_the_share() {
        for load in [0.01, 0.3, 1.0, 3.0, 12.5, 100.0] {
            for share in [0.01, 0.05, 0.2, 0.5] {
                let servers = servers_for(load, share);
                assert!(erlang_c(servers, load) <= share, "{load} {share}");
                assert!(erlang_c(servers - 1, load) > share, "{load} {share}");
            }
        }
    }

    #[test]
    fn headroom_grows_with_the_square_root_of_the_load() {
        // Halfin and Whitt: one call in five waits at beta = 1.06, whatever the load.
        for load in [100.0f64, 400.0, 2500.0] {
            let beta = (f64::from(servers_for(load, 0.2)) - load) / load.sqrt();
            assert!((beta - 1.06).abs() < 0.11, "{load}: {beta}");
        }
    }

    #[test]
    fn extreme_loads_terminate() {
        assert_eq!(servers_for(0.0, 0.05), 0);
        assert_eq!(servers_for(f64::NAN, 0.05), 0);
        assert_eq!(servers_for(-1.0, 0.05), 0);
        assert_eq!(servers_for(f64::INFINITY, 0.05), servers_for(HEAVIEST, 0.05));
        assert!(servers_for(3.0, 0.0) < 40);
    }
}
