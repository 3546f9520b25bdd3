//! Which of several controllers acts: the holder of a Lease.
//!
//! Clocks of different machines are not compared. A controller counts how long the Lease has stayed the same by its own
//! clock, and takes it after ten seconds without a change. The holder writes it every two seconds and stops acting eight
//! seconds after its last successful write, two seconds before anyone else may begin:
//!
//! ```text
//!   holder   write ── write ── (API server gone) ─────────► stops at 8 s
//!   other                last change seen ─────────────────────────► takes it at 10 s
//! ```

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, Error};

/// A Lease that has not changed for this long may be taken.
const LEASE: Duration = Duration::from_secs(10);
/// A holder that has not written for this long stops acting.
const DEADLINE: Duration = Duration::from_secs(8);
/// Every holder has tried to write its Lease within this: a pause, and a request that is given up.
pub const NOTICED: Duration = Duration::from_secs(5);
/// Time between two tries.
pub const RETRY: Duration = Duration::from_secs(2);

/// Whether this controller acts.
#[derive(Debug, Default)]
pub struct Leadership {
    renewed: Mutex<Option<Instant>>,
}

impl Leadership {
    /// Leadership without a Lease, for a controller that is alone.
    pub fn alone() -> Self {
        // Far enough ahead that it never ends.
        let ahead = Instant::now().checked_add(Duration::from_secs(10 * 365 * 24 * 3600));
        Self { renewed: Mutex::new(ahead) }
    }

    /// Whether this controller acts at this moment.
    pub fn holds(&self) -> bool {
        self.renewed_at().is_some_and(|at| at.elapsed() < DEADLINE)
    }

    fn renewed_at(&self) -> Option<Instant> {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, renewed: Option<Instant>) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
    }
}

/// What was last seen of the Lease, and since when.
#[derive(Debug, Default)]
struct Observed {
    record: Option<(Option<String>, Option<MicroTime>, Option<i32>)>,
    since: Option<Instant>,
}

/// What to do about a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// It is ours: write it again.
    Renew,
    /// It is free or its holder is silent: take it.
    Take,
    /// Another one holds it.
    Wait,
}

impl Observed {
    fn judge(&mut self, spec: &LeaseSpec, identity: &str, now: Instant) -> Move {
        let record =
            (spec.holder_identity.clone(), spec.renew_time.clone(), spec.lease_transitions);
        if self.record.as_ref() != Some(&record) {
            self.record = Some(record);
            self.since = Some(now);
        }
        match spec.holder_identity.as_deref() {
            Some(holder) if holder == identity => Move::Renew,
            None | Some("") => Move::Take,
            Some(_) => {
                let silent = self.since.map_or(Duration::ZERO, |since| now.duration_since(since));
                if silent > LEASE { Move::Take } else { Move::Wait }
            }
        }
    }
}

/// One contender for a Lease.
pub struct Contender {
    leases: Api<Lease>,
    name: String,
    identity: String,
    observed: Observed,
    leadership: Arc<Leadership>,
    seizes: bool,
}

impl Contender {
    /// Contends for the Lease `name` in `namespace` as `identity`.
    pub fn new(client: Client, namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            name: name.to_owned(),
            identity: identity.to_owned(),
            observed: Observed::default(),
            leadership: Arc::default(),
            seizes: false,
        }
    }

    /// Takes the Lease from whoever holds it: for a restore while controllers still run. They notice when they next write
    /// it, so wait for [`NOTICED`] before acting.
    #[must_use]
    pub fn seizing(self) -> Self {
        Self { seizes: true, ..self }
    }

    /// Whether it acts, for others to ask.
    pub fn leadership(&self) -> Arc<Leadership> {
        Arc::clone(&self.leadership)
    }

    /// Tries for ever.
    pub async fn contend(mut self) {
        loop {
            let before = self.leadership.holds();
            match tokio::time::timeout(RETRY, self.try_once()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the lease could not be read or written"),
                Err(_) => tracing::warn!("no answer about the lease"),
            }
            let after = self.leadership.holds();
            if before != after {
                tracing::info!(identity = self.identity, leads = after, "leadership changed");
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Reads the Lease and does what is to be done.
    pub async fn try_once(&mut self) -> Result<(), Error> {
        let begin = Instant::now();
        let Some(mut lease) = self.leases.get_opt(&self.name).await? else {
            let lease = Lease {
                metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
                spec: Some(self.held(0)),
            };
            return self.wrote(begin, self.leases.create(&PostParams::default(), &lease).await);
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let transitions = spec.lease_transitions.unwrap_or(0);
        let held = match self.observed.judge(&spec, &self.identity, begin) {
            Move::Wait if self.seizes => self.held(transitions + 1),
            Move::Wait => {
                self.leadership.set(None);
                return Ok(());
            }
            Move::Renew => LeaseSpec { acquire_time: spec.acquire_time, ..self.held(transitions) },
            Move::Take => self.held(transitions + 1),
        };
        lease.spec = Some(held);
        // The version that was read goes along, so of two who take it at the same moment one gets a conflict.
        let written = self.leases.replace(&self.name, &PostParams::default(), &lease).await;
        self.wrote(begin, written)
    }

    fn wrote(&self, begin: Instant, written: Result<Lease, Error>) -> Result<(), Error> {
        match written {
            Ok(_) => {
                self.leadership.set(Some(begin));
                Ok(())
            }
            Err(Error::Api(status)) if status.code == 409 => {
                self.leadership.set(None);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn held(&self, transitions: i32) -> LeaseSpec {
        let now = Some(MicroTime(jiff::Timestamp::now()));
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(LEASE.as_secs() as i32),
            acquire_time: now.clone(),
            renew_time: now,
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        }
    }
}

/// Whether controllers contend for this Lease, as far as it may be read.
pub async fn exists(client: Client, namespace: &str, name: &str) -> bool {
    let leases: Api<Lease> = Api::namespaced(client, namespace);
    matches!(leases.get_opt(name).await, Ok(Some(_)))
}

/// Gives up the Lease if `identity` holds it, so that the next controller need not wait.
pub async fn release(
    client: Client,
    namespace: &str,
    name: &str,
    identity: &str,
) -> Result<(), Error> {
    let leases: Api<Lease> = Api::namespaced(client, namespace);
    let Some(mut lease) = leases.get_opt(name).await? else { return Ok(()) };
    let is_ours = |spec: &LeaseSpec| spec.holder_identity.as_deref() == Some(identity);
    if !lease.spec.as_ref().is_some_and(is_ours) {
        return Ok(());
    }
    if let Some(spec) = &mut lease.spec {
        spec.holder_identity = Some(String::new());
    }
    leases.replace(name, &PostParams::default(), &lease).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{self, Answered};
    use serde_json::json;

    fn spec(holder: &str, second: i64) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            renew_time: Some(MicroTime(jiff::Timestamp::from_second(second).unwrap())),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn a_lease_is_taken_only_after_it_has_stayed_the_same_by_our_own_clock() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut observed = Observed::default();
        // The holder's clock is a year behind; that does not matter.
        assert_eq!(observed.judge(&spec("other", 1), "me", at(0)), Move::Wait);
        assert_eq!(observed.judge(&spec("other", 3), "me", at(9)), Move::Wait);
        assert_eq!(observed.judge(&spec("other", 3), "me", at(18)), Move::Wait);
        assert_eq!(observed.judge(&spec("other", 3), "me", at(20)), Move::Take);
        assert_eq!(observed.judge(&spec("me", 4), "me", at(21)), Move::Renew);
        assert_eq!(observed.judge(&spec("", 5), "me", at(21)), Move::Take);
    }

    /// A contender whose Lease is held by `holder` and whose writes are answered with `code`.
    fn contender(holder: &'static str, code: u16) -> Contender {
        let client = fake_api::client(move |asked| {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": "windfall", "namespace": "n", "resourceVersion": "5"},
                "spec": {"holderIdentity": holder},
            });
            match (asked.verb.as_str(), code) {
                ("PUT", 200) => Answered::ok(&asked.body),
                ("PUT", code) => Answered::failure(code),
                _ => Answered::ok(&lease),
            }
        });
        Contender::new(client, "n", "windfall", "me")
    }

    #[tokio::test]
    async fn one_of_two_who_take_a_free_lease_gets_a_conflict_and_does_not_lead() {
        let mut winner = contender("", 200);
        winner.try_once().await.unwrap();
        let mut loser = contender("", 409);
        loser.try_once().await.unwrap();
        let mut waiting = contender("other", 200);
        waiting.try_once().await.unwrap();
        let leads = [winner, loser, waiting].map(|one| one.leadership().holds());
        assert_eq!(leads, [true, false, false]);
    }

    #[tokio::test]
    async fn a_restore_takes_the_lease_from_its_holder() {
        let mut contender = contender("other", 200).seizing();
        contender.try_once().await.unwrap();
        assert!(contender.leadership().holds());
    }

    #[tokio::test]
    async fn a_server_that_fails_leaves_the_last_renewal_standing_until_its_deadline() {
        let mut contender = contender("me", 503);
        assert!(contender.try_once().await.is_err());
        assert!(!contender.leadership().holds(), "it never wrote");
    }

    #[test]
    fn who_is_alone_leads_and_who_never_wrote_does_not() {
        assert!(Leadership::alone().holds());
        assert!(!Leadership::default().holds());
        const { assert!(DEADLINE.as_secs() + RETRY.as_secs() <= LEASE.as_secs()) };
        const { assert!(2 * RETRY.as_secs() < NOTICED.as_secs()) };
    }
}
