//! What else goes on in the machine, and what the manager itself uses, from `/proc`.

use std::fs;
use std::time::Instant;

/// Clock ticks per second in `/proc`; fixed by the kernel's interface.
const TICKS: f64 = 100.0;

/// Counters at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    at: Instant,
    /// CPU time of this process and the spawner, seconds.
    manager: f64,
    /// CPU time of the thread that decides, seconds.
    agent: f64,
    /// Time in which some task waited for a CPU, seconds.
    pressure: f64,
    steal: f64,
    /// CPU time that anybody used, ticks.
    busy: f64,
    all_cpu: f64,
}

/// What happened between two moments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Between {
    pub(crate) seconds: f64,
    pub(crate) manager: f64,
    pub(crate) agent: f64,
    pub(crate) cpu_pressure: f64,
    pub(crate) steal: f64,
    /// CPU time that anybody used, and that there was, seconds.
    pub(crate) busy: f64,
    pub(crate) all_cpu: f64,
}

impl Moment {
    pub(crate) fn now(spawner: u32) -> Self {
        let MachineCpu { steal, busy, all_cpu } = machine_cpu();
        Self {
            at: Instant::now(),
            manager: process_cpu("self") + process_cpu(&spawner.to_string()),
            agent: thread_cpu("windfall-agent"),
            pressure: pressure(),
            steal,
            busy,
            all_cpu,
        }
    }

    pub(crate) fn until(&self, later: &Self) -> Between {
        let seconds = later.at.duration_since(self.at).as_secs_f64();
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Between {
            seconds,
            manager: later.manager - self.manager,
            agent: later.agent - self.agent,
            cpu_pressure: share(later.pressure - self.pressure, seconds),
            steal: share(later.steal - self.steal, later.all_cpu - self.all_cpu),
            busy: (later.busy - self.busy) / TICKS,
            all_cpu: (later.all_cpu - self.all_cpu) / TICKS,
        }
    }
}

/// Load average over one minute.
pub(crate) fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|one| one.parse().ok()).unwrap_or(0.0)
}

/// User and system time of a process with its threads, seconds.
fn process_cpu(pid: &str) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / TICKS
}

/// CPU time of the threads of this process called `name`, seconds.
fn thread_cpu(name: &str) -> f64 {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return 0.0 };
    let own = threads.flatten().map(|entry| entry.path()).filter(|path| {
        let comm = fs::read_to_string(path.join("comm")).unwrap_or_default();
        comm.trim() == name
    });
    let nanos = own.filter_map(|path| {
        let text = fs::read_to_string(path.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanos.sum::<f64>() * 1e-9
}

/// Time since boot in which some task of the machine waited for a CPU, seconds; 0 where the kernel does not count it.
fn pressure() -> f64 {
    let text = fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
    let some = text.lines().find(|line| line.starts_with("some"));
    let total = some.and_then(|line| line.rsplit("total=").next()?.trim().parse::<f64>().ok());
    total.unwrap_or(0.0) * 1e-6
}

/// CPU time of the machine, ticks.
struct MachineCpu {
    steal: f64,
    busy: f64,
    all_cpu: f64,
}

fn machine_cpu() -> MachineCpu {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let fields: Vec<f64> =
        line.split_whitespace().skip(1).take(8).filter_map(|one| one.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal
    let field = |place: usize| fields.get(place).copied().unwrap_or(0.0);
    let (steal, all_cpu) = (field(7), fields.iter().sum());
    MachineCpu { steal, busy: all_cpu - steal - field(3) - field(4), all_cpu }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_this_process_is_counted_as_the_managers() {
        let before = Moment::now(0);
        let until = Instant::now() + std::time::Duration::from_millis(120);
        let mut number = 0_u64;
        while Instant::now() < until {
            number = std::hint::black_box(number.wrapping_mul(3) + 1);
        }
        let between = before.until(&Moment::now(0));
        assert!(between.seconds >= 0.12 && between.manager > 0.0, "{between:?}");
        assert!(between.busy > 0.0 && between.busy <= between.all_cpu, "{between:?}");
        assert!((0.0..=1.5).contains(&between.cpu_pressure) && load_average() >= 0.0);
    }
}
