//! What a pass writes, and how it is sent.

use std::sync::Arc;

use futures_util::StreamExt;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;

use super::Controller;
use super::cases::FINALIZER;
use crate::actuators::{Action, ActionError, FIELD_MANAGER, execute};
use crate::cluster::Key;
use crate::metrics::Budget;
use crate::resource_policy::{GROUP, ResourcePolicy, ResourcePolicyStatus, VERSION};

/// Requests under way at the same time.
const AT_ONCE: usize = 16;
/// A request without an answer counts as failed after this.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// One request.
pub(super) enum Write {
    /// A change of a workload.
    Action(Key, Action),
    /// Sets or removes the finalizer.
    Finalizer {
        /// The policy.
        policy: Arc<ResourcePolicy>,
        /// Whether it is set.
        is_set: bool,
    },
    /// The status of a policy.
    Status {
        /// The policy.
        policy: Arc<ResourcePolicy>,
        /// What to write.
        status: Box<ResourcePolicyStatus>,
    },
    /// An Event about a policy.
    Event {
        /// The policy.
        policy: Arc<ResourcePolicy>,
        /// Whether something went wrong.
        is_warning: bool,
        /// One word.
        reason: &'static str,
        /// One sentence.
        note: String,
    },
}

impl Write {
    /// An Event about a policy.
    pub(super) fn event(
        policy: &Arc<ResourcePolicy>,
        is_warning: bool,
        reason: &'static str,
        note: &str,
    ) -> Self {
        // The API server takes at most a kilobyte.
        let note = note.chars().take(900).collect();
        Self::Event { policy: Arc::clone(policy), is_warning, reason, note }
    }
}

/// The sender of Events.
pub(super) fn recorder(client: &Client) -> Recorder {
    let instance = std::env::var("POD_NAME").ok();
    let reporter = Reporter { controller: "windfall".to_owned(), instance };
    Recorder::new(client.clone(), reporter)
}

impl Controller {
    /// Sends as many as the budget allows, in order of urgency. The rest is planned anew at the next pass.
    pub(super) async fn send(&mut self, writes: Vec<Write>, budget: &Budget) {
        let chosen: Vec<Write> = writes.into_iter().filter(|_| budget.take()).collect();
        if self.settings.dry_run {
            for write in &chosen {
                if let Write::Action(key, action) = write {
                    tracing::info!(policy = %key, ?action, "dry run: not sent");
                }
            }
        }
        let dry_run = self.settings.dry_run;
        let (client, recorder, leadership) = (&self.client, &self.recorder, &self.leadership);
        let requests =
            chosen.into_iter().filter(|write| !(dry_run && matches!(write, Write::Action(..))));
        // Actions of one workload come one after the other: a note is made before what it is about.
        let outcomes: Vec<_> = futures_util::stream::iter(in_order(requests.collect()))
            .map(|batch| async move {
                let mut outcomes = Vec::new();
                // Asked before every batch: a pass can outlast the Lease when the API server is slow.
                for write in batch.into_iter().filter(|_| leadership.holds()) {
                    outcomes.push(one(client, recorder, write).await);
                }
                outcomes
            })
            .buffer_unordered(AT_ONCE)
            .concat()
            .await;
        for (about, outcome) in outcomes {
            self.take_in(about, outcome);
        }
    }

    fn take_in(&mut self, about: Option<(Key, &'static str)>, outcome: Result<(), ActionError>) {
        self.instruments.wrote(about.as_ref().map_or("status", |(_, name)| name), outcome.is_ok());
        if let Err(error) = &outcome {
            tracing::warn!(about = ?about, %error, "a write had no effect");
        }
        let Some((key, _)) = about else { return };
        for group in self.groups.values_mut() {
            group.platform.acted(&key, outcome.clone());
        }
    }
}

/// Writes in batches: those of one workload together, everything else alone.
fn in_order(writes: Vec<Write>) -> Vec<Vec<Write>> {
    let mut batches: Vec<Vec<Write>> = Vec::new();
    for write in writes {
        let follows = match (&write, batches.last().and_then(|batch| batch.last())) {
            (
                Write::Action(key, Action::Scale { .. }),
                Some(Write::Action(last, Action::NoteReplicas { .. })),
            )
            | (
                Write::Action(key, Action::NoteReplicas { .. }),
                Some(Write::Action(last, Action::Scale { .. })),
            ) => key == last,
            _ => false,
        };
        match batches.last_mut().filter(|_| follows) {
            Some(batch) => batch.push(write),
            None => batches.push(vec![write]),
        }
    }
    batches
}

async fn one(
    client: &Client,
    recorder: &Recorder,
    write: Write,
) -> (Option<(Key, &'static str)>, Result<(), ActionError>) {
    let about = match &write {
        Write::Action(key, action) => Some((key.clone(), action.actuator())),
        Write::Finalizer { .. } | Write::Status { .. } | Write::Event { .. } => None,
    };
    let sent = tokio::time::timeout(PATIENCE, send_one(client, recorder, write)).await;
    let late = || ActionError::Again(format!("no answer within {} s", PATIENCE.as_secs()));
    (about, sent.unwrap_or_else(|_| Err(late())))
}

async fn send_one(client: &Client, recorder: &Recorder, write: Write) -> Result<(), ActionError> {
    match write {
        Write::Action(_, action) => execute(client, &action).await,
        Write::Finalizer { policy, is_set } => set_finalizer(client, &policy, is_set).await,
        Write::Status { policy, status } => write_status(client, &policy, &status).await,
        Write::Event { policy, is_warning, reason, note } => {
            let event = Event {
                type_: if is_warning { EventType::Warning } else { EventType::Normal },
                reason: reason.to_owned(),
                note: Some(note),
                action: "Manage".to_owned(),
                secondary: None,
            };
            Ok(recorder.publish(&event, &policy.object_ref(&())).await?)
        }
    }
}

fn policies(client: &Client, policy: &ResourcePolicy) -> Api<ResourcePolicy> {
    Api::namespaced(client.clone(), &policy.namespace().unwrap_or_default())
}

/// Finalizers are a list that others share, so the whole list is sent with the version it was read at.
async fn set_finalizer(
    client: &Client,
    policy: &ResourcePolicy,
    is_set: bool,
) -> Result<(), ActionError> {
    let mut finalizers: Vec<String> = policy.finalizers().to_vec();
    finalizers.retain(|one| one != FINALIZER);
    if is_set {
        finalizers.push(FINALIZER.to_owned());
    }
    let version = policy.resource_version();
    let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": version}});
    let params =
        PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    policies(client, policy).patch(&policy.name_any(), &params, &Patch::Merge(patch)).await?;
    Ok(())
}

async fn write_status(
    client: &Client,
    policy: &ResourcePolicy,
    status: &ResourcePolicyStatus,
) -> Result<(), ActionError> {
    let patch = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": "ResourcePolicy",
        "status": status,
    });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    policies(client, policy)
        .patch_status(&policy.name_any(), &params, &Patch::Apply(patch))
        .await?;
    Ok(())
}
