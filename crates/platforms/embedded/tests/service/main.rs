//! The whole service as a process of its own: ended softly, killed at random moments, and run for long.
//!
//! ```text
//! cargo test -p windfall-embedded --features trial --test service          3 kills, 5 seconds of load
//! WINDFALL_LONG=1 cargo test ... --test service                            30 kills
//! WINDFALL_SOAK_MINUTES=30 cargo test ... --test service                   30 minutes of load
//! ```
#![allow(clippy::print_stdout, reason = "this is a program")]

mod crash;
mod http;
mod server;
mod soak;

fn main() {
    windfall_functions::serve_if_function();
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("server") {
        return server::run(&arguments.next().expect("the database"));
    }
    let story = |name: &str, story: fn()| {
        story();
        println!("test {name} ... ok");
    };
    story("it_ends_softly_and_comes_back", crash::it_ends_softly_and_comes_back);
    story("it_survives_being_killed", crash::it_survives_being_killed);
    story("it_stays_as_large_as_it_is", soak::it_stays_as_large_as_it_is);
}
