//! The paper's cluster: home server by hash, then seven on until one has room. In the published replay it
//! is book-keeping only; 0 to 71 of 85,470 calls find no room.

use super::function_model::Levels;

/// Servers of the committed settings; the paper's text says 20.
const SERVERS: usize = 30;
/// What one of them has: 8 cores and 2 GB.
const EACH: (i64, i64) = (8, 32);
/// How far the search goes on.
const STEP: usize = 7;

/// All servers with what is free on them.
#[derive(Clone, Debug)]
pub(super) struct Servers {
    free: Vec<(i64, i64)>,
    busy_cpu: i64,
}

impl Servers {
    pub(super) fn published() -> Self {
        Self { free: vec![EACH; SERVERS], busy_cpu: 0 }
    }

    /// The server that takes a call of the function at `place`, and whether it has room; with none that
    /// has, it is the home server (the original draws one, which changes no result).
    pub(super) fn place(&self, place: usize, size: Levels) -> (usize, bool) {
        let (cpu, memory) = (i64::from(size.cpu), i64::from(size.memory));
        let mut tried = (0..SERVERS).map(|turn| (place + turn * STEP) % SERVERS);
        let found = tried.find(|server| {
            let (free_cpu, free_memory) = self.free[*server];
            free_cpu >= cpu && free_memory >= memory
        });
        found.map_or((place % SERVERS, false), |server| (server, true))
    }

    pub(super) fn take(&mut self, server: usize, size: Levels) {
        self.change(server, size, 1);
    }

    pub(super) fn release(&mut self, server: usize, size: Levels) {
        self.change(server, size, -1);
    }

    fn change(&mut self, server: usize, size: Levels, sign: i64) {
        let (cpu, memory) = &mut self.free[server];
        *cpu -= sign * i64::from(size.cpu);
        *memory -= sign * i64::from(size.memory);
        self.busy_cpu += sign * i64::from(size.cpu);
    }

    pub(super) fn busy_cpu(&self) -> i64 {
        self.busy_cpu
    }

    pub(super) fn free_cpu(&self) -> i64 {
        SERVERS as i64 * EACH.0 - self.busy_cpu
    }

    /// All of it, or twice the last server's: the original overwrites where it means to add.
    pub(super) fn free_memory(&self, of_last_server: bool) -> i64 {
        let memory = |(_, memory): &(i64, i64)| *memory;
        if of_last_server {
            self.free.last().map_or(0, |last| 2 * memory(last))
        } else {
            self.free.iter().map(memory).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_home_sends_the_call_seven_on() {
        let mut servers = Servers::published();
        assert_eq!(servers.place(31, Levels::both(8)), (1, true));
        servers.take(1, Levels::both(8));
        assert_eq!(servers.place(31, Levels::both(1)), (8, true));
        servers.take(29, Levels::both(2));
        assert_eq!((servers.busy_cpu(), servers.free_cpu()), (10, 230));
        assert_eq!((servers.free_memory(true), servers.free_memory(false)), (60, 950));
        servers.release(1, Levels::both(8));
        assert_eq!(servers.place(31, Levels::both(1)), (1, true));
    }
}
