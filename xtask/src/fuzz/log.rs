//! What libFuzzer prints.

/// The last lines of a run that ended well.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Statistics {
    /// Inputs that were run.
    pub(crate) inputs: u64,
    /// The most memory the process held.
    pub(crate) peak_mb: u64,
}

impl Statistics {
    /// Reads them from the output of a run with `-print_final_stats=1`.
    pub(crate) fn read(log: &str) -> Option<Self> {
        let value = |name: &str| {
            let line = log.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').trim().parse().ok()
        };
        Some(Self {
            inputs: value("stat::number_of_executed_units")?,
            peak_mb: value("stat::peak_rss_mb")?,
        })
    }
}

/// The last lines of a text.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_read_from_the_end_of_a_run() {
        let log = "Done 20 runs in 1 second(s)\n\
                   stat::number_of_executed_units: 20\n\
                   stat::peak_rss_mb:              43\n";
        assert_eq!(Statistics::read(log), Some(Statistics { inputs: 20, peak_mb: 43 }));
        assert_eq!(Statistics::read("==1== ERROR: libFuzzer: deadly signal"), None);
        assert_eq!(tail(log, 1), "stat::peak_rss_mb:              43");
        assert_eq!(tail("one", 3), "one");
    }
}
