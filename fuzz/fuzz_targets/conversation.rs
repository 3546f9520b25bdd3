//! A conversation with an environment: every line gets one line of JSON as its answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windfall_rl::conversation::Conversation;
use windfall_rl::toy::Corridor;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut conversation = Conversation::new(Corridor::new());
    for line in text.lines() {
        assert_eq!(conversation.answer(line).lines().count(), 1);
    }
});
