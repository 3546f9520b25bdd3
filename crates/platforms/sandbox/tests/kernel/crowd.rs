//! Many instances at a time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use windfall_core::Mebibytes;
use windfall_sandbox::{Instance, Isolation};

use crate::place::{Outcome, Place, expect_equal, sandboxes};

pub(crate) fn trials(place: &'static Place) -> Vec<Trial> {
    vec![
        place.trial("crowd::a_hundred_start_at_the_same_time", &[], hundred_starts),
        place.trial("crowd::two_hundred_live_together", &[], two_hundred_alive),
    ]
}

fn server(place: &Place) -> Result<Instance, Failed> {
    let level = *sandboxes(place).first().unwrap_or(&Isolation::Process);
    let mut launch = Place::launch_of(&["serve"], level);
    launch.limits.memory = Mebibytes::new(32);
    Ok(place.host.launch(&launch)?)
}

/// The first request waits in the backlog until the program is ready.
fn ask(instance: &Instance, question: &str) -> Outcome {
    let mut stream = TcpStream::connect(instance.address())?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(question.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    expect_equal("answer", answer.as_str(), question)
}

fn hundred_starts(place: &Place) -> Outcome {
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let start =
            |number: u32| scope.spawn(move || ask(&server(place)?, &format!("number {number}")));
        let threads: Vec<_> = (0..100).map(start).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())))
            .collect()
    });
    outcomes.into_iter().collect()
}

fn two_hundred_alive(place: &Place) -> Outcome {
    let mut instances = Vec::new();
    for _ in 0..200 {
        instances.push(server(place)?);
    }
    for (number, instance) in instances.iter_mut().enumerate() {
        ask(instance, &format!("number {number}"))?;
        instance.sense()?;
    }
    let ended = instances.iter_mut().filter_map(Instance::exited).count();
    expect_equal("ended", ended, 0)
}
