//! Writes personal e-mails and hands them to a mail server in batches; most of a call is waiting for its answers.

use rand::Rng;
use serde_json::{Value, json};
use windfall_core::{Allocation, Duration, Seed};

use crate::applications::splitting::split;
use crate::applications::waiting::acknowledgement;
use crate::builtin::{Builtin, Invocation};
use crate::failure::Failure;
use crate::input::Input;

pub(crate) const EMAIL: Builtin = Builtin {
    name: "email",
    published_as: Some("eg"),
    summary: "Writes personal e-mails; waits 4 ms for the server after every 100.",
    reservation: Allocation::new(1000, 64),
    timeout: Duration::from_secs(60),
    input: Some(Input { parameter: "mails", unit: "mails", default: 4_000, most: 1_000_000 }),
    threads: 2,
    uses_store: false,
    body: run,
};

/// Mails that one connection sends before it waits.
const BATCH: usize = 100;

const NAMES: [&str; 8] =
    ["Ada", "Bj\u{f8}rn", "Chlo\u{e9}", "Dmitri", "Eva", "Fatima", "Grace", "Hana"];

fn run(call: &Invocation) -> Result<Value, Failure> {
    let mails = call.size as usize;
    let batches = split(mails.div_ceil(BATCH), call.threads, |range| {
        let batch = |index: usize| {
            let text = write_batch(index, BATCH.min(mails - index * BATCH));
            acknowledgement();
            (text.len(), crc32fast::hash(text.as_bytes()))
        };
        range.map(batch).collect::<Vec<_>>()
    });
    let batches = batches.into_iter().flatten();
    let (bytes, digest) = batches.fold((0, 0_u32), |(bytes, digest), (length, batch)| {
        (bytes + length, digest.rotate_left(1) ^ batch)
    });
    Ok(json!({ "mails": mails, "bytes": bytes, "digest": digest }))
}

fn write_batch(batch: usize, mails: usize) -> String {
    let mut generator = Seed::new(1).stream("email").member(batch as u64).generator();
    let mut text = String::new();
    for _ in 0..mails {
        let number = generator.next_u32();
        let name = NAMES[number as usize % NAMES.len()];
        let (items, cents) = (number % 7 + 1, number % 100_000);
        let body = format!(
            "Dear {name}, thank you for your order no. {number}. {items} parcels are on their way; the total is \
             \u{20ac}{}.{:02} = paid. Reply to this message if anything is missing: we read every answer.",
            cents / 100,
            cents % 100
        );
        text.push_str("Subject: Your order\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n");
        text.push_str(&quoted_printable(&body));
        text.push_str("\r\n.\r\n");
    }
    text
}

/// RFC 2045, section 6.7: lines of at most 76 characters, everything but plain letters as `=XX`.
fn quoted_printable(text: &str) -> String {
    const LONGEST: usize = 76;
    let mut encoded = String::with_capacity(text.len() * 5 / 4);
    let mut column = 0;
    for byte in text.bytes() {
        let plain = (33..=126).contains(&byte) && byte != b'=' || byte == b' ';
        let width = if plain { 1 } else { 3 };
        // The last column belongs to the mark of a line that goes on.
        if column + width >= LONGEST {
            encoded.push_str("=\r\n");
            column = 0;
        }
        if plain {
            encoded.push(char::from(byte));
        } else {
            const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            encoded.push('=');
            encoded.push(char::from(DIGITS[usize::from(byte >> 4)]));
            encoded.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        column += width;
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_outside_of_ascii_are_encoded() {
        assert_eq!(quoted_printable("a=\u{20ac}1"), "a=3D=E2=82=AC1");
    }

    #[test]
    fn no_line_is_longer_than_76_and_nothing_is_lost() {
        let text = "x\u{e9}=".repeat(100);
        let encoded = quoted_printable(&text);
        assert!(encoded.split("\r\n").all(|line| line.len() <= 76));
        let joined = encoded.replace("=\r\n", "");
        assert_eq!(joined, "x=C3=A9=3D".repeat(100));
    }

    #[test]
    fn every_mail_ends_with_a_dot() {
        assert_eq!(write_batch(0, 3).matches("\r\n.\r\n").count(), 3);
    }
}
