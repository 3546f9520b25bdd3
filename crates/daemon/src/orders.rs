//! What users can order, and how an order reaches the loop.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use windfall_core::FunctionId;
use windfall_registry::PolicySettings;

use crate::governance::{Governance, Hold, Mode};

/// How long the API waits for the loop. A platform that hangs must not hang the kill switch.
const PATIENCE: Duration = Duration::from_secs(5);

/// An order.
#[derive(Clone, Debug)]
pub enum Command {
    /// Another mode.
    Mode(Mode),
    /// The kill switch on or off.
    Kill(bool),
    /// Pause, pin or resume a function.
    Hold {
        /// Which.
        function: FunctionId,
        /// How; nothing resumes it.
        hold: Option<Hold>,
    },
    /// Another latency objective.
    Objective {
        /// Of which function.
        function: FunctionId,
        /// The target in milliseconds; nothing learns it.
        target_ms: Option<f64>,
    },
    /// Another policy, by name or checkpoint.
    Policy {
        /// Its name, or the path of a checkpoint.
        name: String,
        /// Settings by policy name.
        settings: PolicySettings,
        /// Whether it takes over even if the check refuses it.
        force: bool,
        /// Who offers it: `user` or `learner`.
        origin: &'static str,
    },
    /// The version of the policy before the one in charge.
    RollBack,
    /// Another shadow policy, or none.
    Shadow(Option<String>),
    /// A request that the API refused; changes nothing and is recorded.
    Refusal(String),
}

/// An order with who gave it and where the answer goes.
pub struct Order {
    /// What.
    pub command: Command,
    /// Who: `api`, `command line`, `learner`.
    pub by: String,
    /// The answer: one sentence, or why not.
    pub reply: SyncSender<Result<String, String>>,
}

/// Gives orders; can be cloned for every thread.
#[derive(Clone)]
pub struct Desk {
    governance: Arc<Governance>,
    orders: Sender<Order>,
}

impl Desk {
    /// A desk, and the end that the loop reads.
    pub fn open(governance: Arc<Governance>) -> (Self, Receiver<Order>) {
        let (orders, inbox) = channel();
        (Self { governance, orders }, inbox)
    }

    /// Records that the API refused a request; does not wait.
    pub fn note_refusal(&self, what: String, by: &str) {
        let (reply, _) = sync_channel(1);
        // A manager that has stopped records nothing any more.
        let _ =
            self.orders.send(Order { command: Command::Refusal(what), by: by.to_owned(), reply });
    }

    /// Gives an order and waits for the answer.
    ///
    /// Modes, holds and the kill switch are in force for calls when this returns, also if the loop does not answer; the
    /// loop then records them and restores what ticks have set as soon as it can.
    pub fn give(&self, command: Command, by: &str) -> Result<String, String> {
        let in_force = match &command {
            Command::Mode(mode) => {
                self.governance.set_mode(*mode);
                true
            }
            Command::Kill(is_killed) => {
                self.governance.set_killed(*is_killed);
                true
            }
            Command::Hold { function, hold } => {
                self.governance.set_hold(*function, *hold);
                true
            }
            Command::Objective { .. }
            | Command::Policy { .. }
            | Command::RollBack
            | Command::Shadow(_)
            | Command::Refusal(_) => false,
        };
        let (reply, answer) = sync_channel(1);
        let order = Order { command, by: by.to_owned(), reply };
        if self.orders.send(order).is_err() {
            return Err("the manager has stopped".to_owned());
        }
        match answer.recv_timeout(PATIENCE) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) if in_force => {
                Ok("in force for new calls; the loop has not answered yet".to_owned())
            }
            Err(_) => Err("the loop does not answer; see /api/v1/health".to_owned()),
        }
    }
}
