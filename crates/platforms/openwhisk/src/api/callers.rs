//! Who may call, and how often.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};

use super::answer::Refusal;
use crate::identity::{Identity, Key};
use crate::name::{EntityName, OWN_NAMESPACE};
use crate::settings::Throttle;

/// A namespace with what it has in flight.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) identity: Arc<Identity>,
    throttle: Throttle,
    in_flight: AtomicU32,
    minute: Mutex<Minute>,
}

/// Counts since the current minute began.
#[derive(Debug)]
struct Minute {
    began: Instant,
    calls: u32,
    fires: u32,
}

/// One call that has not ended; counted as long as it exists.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Caller>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Caller {
    fn new(identity: Identity, throttle: Throttle) -> Self {
        let minute = Mutex::new(Minute { began: Instant::now(), calls: 0, fires: 0 });
        Self { identity: Arc::new(identity), throttle, in_flight: AtomicU32::new(0), minute }
    }

    pub(super) fn namespace(&self) -> &EntityName {
        &self.identity.namespace
    }

    /// Counts one call, or refuses it with 429.
    pub(super) fn admit(self: &Arc<Self>) -> Result<InFlight, Refusal> {
        if let Some(allowed) = self.throttle.invocations_per_minute {
            self.count(allowed, |minute| &mut minute.calls)?;
        }
        let count = self.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        // Made before the check, so that a refused call is taken off the count again.
        let guard = InFlight(Arc::clone(self));
        match self.throttle.concurrent_invocations {
            Some(allowed) if count > allowed => Err(Refusal::new(
                StatusCode::TOO_MANY_REQUESTS,
                format!(
                    "Too many concurrent requests in flight (count: {count}, allowed: {allowed})."
                ),
            )),
            _ => Ok(guard),
        }
    }

    /// Counts one firing of a trigger, or refuses it.
    pub(super) fn admit_fire(&self) -> Result<(), Refusal> {
        match self.throttle.fires_per_minute {
            Some(allowed) => self.count(allowed, |minute| &mut minute.fires),
            None => Ok(()),
        }
    }

    fn count(&self, allowed: u32, which: fn(&mut Minute) -> &mut u32) -> Result<(), Refusal> {
        let mut minute = self.minute.lock().unwrap_or_else(PoisonError::into_inner);
        if minute.began.elapsed().as_secs() >= 60 {
            *minute = Minute { began: Instant::now(), calls: 0, fires: 0 };
        }
        let count = which(&mut minute);
        *count = count.saturating_add(1);
        if *count <= allowed {
            return Ok(());
        }
        let message =
            format!("Too many requests in the last minute (count: {count}, allowed: {allowed}).");
        Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, message))
    }
}

#[derive(Debug)]
pub(super) struct Callers {
    by_uuid: HashMap<String, Arc<Caller>>,
}

impl Callers {
    pub(super) fn new(identities: Vec<Identity>, throttle: Throttle) -> Self {
        let caller = |identity: Identity| {
            (identity.key.uuid().to_owned(), Arc::new(Caller::new(identity, throttle)))
        };
        Self { by_uuid: identities.into_iter().map(caller).collect() }
    }

    /// The caller that a request proves to be. The first half of a key only names the caller; the secret half is
    /// compared in constant time.
    pub(super) fn of(&self, headers: &HeaderMap) -> Result<&Arc<Caller>, Refusal> {
        let header = headers.get(AUTHORIZATION).ok_or_else(Refusal::unauthorized)?;
        let key = Key::from_basic(header.as_bytes()).map_err(|_| Refusal::unauthorized())?;
        let caller = self.by_uuid.get(key.uuid()).ok_or_else(Refusal::unauthorized)?;
        if caller.identity.key.is(&key) { Ok(caller) } else { Err(Refusal::unauthorized()) }
    }

    /// The owner of a namespace, for web actions.
    pub(super) fn owner(&self, namespace: &EntityName) -> Option<&Arc<Caller>> {
        self.by_uuid.values().find(|caller| caller.namespace() == namespace)
    }

    /// The caller and the namespace that the URL names, whoever owns it.
    pub(super) fn in_any(
        &self,
        headers: &HeaderMap,
        namespace: &str,
    ) -> Result<(&Arc<Caller>, EntityName), Refusal> {
        let caller = self.of(headers)?;
        let own = caller.namespace();
        if namespace == OWN_NAMESPACE || namespace == own.as_str() {
            return Ok((caller, own.clone()));
        }
        Ok((caller, EntityName::new(namespace)?))
    }
}
