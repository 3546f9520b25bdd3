//! Messages between manager, spawner and children: JSON in packets of a Unix socket, descriptors beside them.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::launch::{Bind, Isolation};

/// Longest message. An order carries arguments and environment, which are short; a longer one is refused.
const LONGEST: usize = 64 * 1024;
/// Most descriptors beside one message: listener, two pipes, executable.
const MOST_DESCRIPTORS: usize = 8;

/// Manager to spawner.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Hand out a child of this isolation, parked or new.
    Claim { isolation: Isolation },
    /// Kill what is in the slot and remove its groups. Not answered.
    Discard { slot: u64 },
}

/// Spawner to manager.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// Comes with the control socket and the pidfd of the child.
    Claimed { slot: u64, pid: i32 },
    /// No child could be made.
    Refused { reason: String },
}

/// Manager to child: what to become. Comes with executable, listener, standard output and standard error.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) name: String,
    /// Path to execute; none for the descriptor.
    pub(crate) path: Option<String>,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    /// Sources are free of symbolic links, because the child resolves them below another root.
    pub(crate) files: Vec<Bind>,
    pub(crate) scratch_mib: u32,
    /// Processes and threads, where no group limits them.
    pub(crate) most_processes: Option<u32>,
    /// Stop before `execve`.
    pub(crate) is_trial: bool,
}

impl Order {
    /// Everything but `execve`: shows whether the isolation is possible.
    pub(crate) fn trial() -> Self {
        Self {
            name: "trial".to_owned(),
            path: None,
            arguments: Vec::new(),
            environment: Vec::new(),
            files: Vec::new(),
            scratch_mib: 1,
            most_processes: None,
            is_trial: true,
        }
    }
}

/// About one child, to the manager: from the child itself or, at its end, from the spawner.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Status {
    /// A step before `execve` failed.
    Failed { reason: String },
    /// Reaped.
    Exited { code: i32 },
    /// Reaped after a signal.
    Killed { signal: i32 },
}

/// Two connected sockets that keep message borders and are closed by `execve`.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends one message with its descriptors.
pub(crate) fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    if text.len() > LONGEST {
        let reason = format!("a message of {} bytes; allowed are {LONGEST}", text.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors"));
    }
    sendmsg(socket, &[IoSlice::new(&text)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Waits until there is a message or the end of the stream; false if neither comes in time.
pub(crate) fn is_readable_within(socket: impl AsFd, patience: Duration) -> bool {
    let timeout = Timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(patience.subsec_nanos()),
    };
    poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&timeout)).is_ok_and(|ready| ready > 0)
}

/// Waits for one message; nothing at the end of the stream. With `DONTWAIT` in `flags` fails with `WouldBlock`.
pub(crate) fn receive<M: DeserializeOwned>(
    socket: impl AsFd,
    flags: RecvFlags,
) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
    let mut text = vec![0_u8; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(&mut text)], &mut control, flags) {
            Err(rustix::io::Errno::INTR) => {}
            answer => break answer?,
        }
    };
    let descriptors = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect();
    if received.bytes == 0 {
        return Ok(None);
    }
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message was cut off"));
    }
    Ok(Some((serde_json::from_slice(&text[..received.bytes])?, descriptors)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_arrives_with_its_descriptors() {
        let (here, there) = pair().unwrap();
        let (inner, _peer) = pair().unwrap();
        send(&here, &Request::Discard { slot: 7 }, &[inner.as_fd()]).unwrap();
        let (message, descriptors) =
            receive::<Request>(&there, RecvFlags::empty()).unwrap().unwrap();
        assert!(matches!(message, Request::Discard { slot: 7 }));
        assert_eq!(descriptors.len(), 1);
    }

    #[test]
    fn the_end_of_the_stream_is_nothing_and_silence_would_block() {
        let (here, there) = pair().unwrap();
        let silent = receive::<Request>(&there, RecvFlags::DONTWAIT).unwrap_err();
        assert_eq!(silent.kind(), io::ErrorKind::WouldBlock);
        assert!(!is_readable_within(&there, Duration::ZERO));
        drop(here);
        assert!(is_readable_within(&there, Duration::ZERO));
        assert!(receive::<Request>(&there, RecvFlags::empty()).unwrap().is_none());
    }

    #[test]
    fn a_message_that_is_too_long_is_refused_with_both_lengths() {
        let (here, _there) = pair().unwrap();
        let error = send(&here, &"x".repeat(LONGEST), &[]).unwrap_err();
        assert_eq!(error.to_string(), "a message of 65538 bytes; allowed are 65536");
    }
}
