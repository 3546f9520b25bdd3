//! Stories of the store: crashes, damage, old records.

use std::path::Path;

use super::*;

fn guest() -> EntityName {
    EntityName::new("guest").unwrap()
}

fn record(number: u8, json: &'static str) -> Record {
    Record {
        id: ActivationId::from_bytes([number; 16]),
        namespace: guest(),
        path: "hello".into(),
        start: 1_000 + u64::from(number),
        status: 0,
        json: Bytes::from_static(json.as_bytes()),
    }
}

fn pending(number: u8, json: &'static str) -> Pending {
    Pending { record: record(number, json), parameters: Bytes::from_static(b"{}") }
}

fn filter(path: Option<&str>) -> RecordFilter {
    let path = path.map(str::to_owned);
    RecordFilter { namespace: guest(), path, since: None, upto: None, skip: 0, limit: 200 }
}

fn keep_everything() -> StoreSettings {
    let retention = Retention { records: 1_000_000, age: Duration::from_hours(24 * 365 * 100) };
    StoreSettings { retention, ..StoreSettings::default() }
}

fn open(folder: &Path) -> Store {
    Store::open(&folder.join("store.sqlite"), keep_everything()).unwrap()
}

#[tokio::test]
async fn what_is_queued_can_be_read_and_is_newest_first() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for number in 1..=5 {
        store.finish(record(number, r#"{"a":1}"#)).await;
    }
    let id = ActivationId::from_bytes([3; 16]);
    assert_eq!(store.record(&guest(), id).await.unwrap().unwrap(), br#"{"a":1}"#);
    let other = EntityName::new("other").unwrap();
    assert!(store.record(&other, id).await.unwrap().is_none());
    assert_eq!(store.count(filter(Some("hello"))).await.unwrap(), 5);
    assert_eq!(store.count(filter(Some("hell"))).await.unwrap(), 0);
    let since = RecordFilter { since: Some(1_002), upto: Some(1_004), ..filter(None) };
    assert_eq!(store.records(since).await.unwrap().len(), 3);
}

#[tokio::test]
async fn an_accepted_call_that_does_not_end_can_be_begun_again_and_is_lost_after_five_times() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    store.accept(vec![pending(1, r#"{"lost":1}"#), pending(2, r#"{"lost":2}"#)]).await.unwrap();
    store.finish(record(2, r#"{"done":2}"#)).await;
    // The answer to a call that takes long can come after its end.
    store.accept(vec![pending(2, r#"{"lost":2}"#)]).await.unwrap();
    assert_eq!(store.records(filter(None)).await.unwrap(), [br#"{"done":2}"#.to_vec()]);
    drop(store);
    for _ in 0..4 {
        let unfinished = open(folder.path()).unfinished().unwrap();
        let known: Vec<_> = unfinished.iter().map(|one| (one.id, &one.parameters[..])).collect();
        assert_eq!(known, [(ActivationId::from_bytes([1; 16]), &b"{}"[..])]);
    }
    let store = open(folder.path());
    assert!(store.unfinished().unwrap().is_empty());
    let after: Vec<String> = store
        .records(filter(None))
        .await
        .unwrap()
        .into_iter()
        .map(|json| String::from_utf8(json).unwrap())
        .collect();
    assert_eq!(after, [r#"{"done":2}"#, r#"{"lost":1}"#]);
}

#[tokio::test]
async fn old_records_and_too_many_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let retention = Retention { records: 100, age: Duration::from_hours(24 * 365 * 100) };
    let settings = StoreSettings { retention, ..StoreSettings::default() };
    let store = Store::open(&folder.path().join("store.sqlite"), settings).unwrap();
    let ids = crate::activation_id::ActivationIds::new().unwrap();
    for round in 0..3 {
        // Faster than the writer, which gathers more than the least chunk into one batch.
        for _ in 0..10_000 {
            let id = ids.next(std::time::SystemTime::now());
            store.finish(Record { id, ..record(round, "{}") }).await;
        }
    }
    for _ in 0..1_000 {
        let id = ids.next(std::time::SystemTime::now());
        store.finish(Record { id, ..record(9, "{}") }).await;
    }
    store.flush().await.unwrap();
    let kept = store.count(filter(None)).await.unwrap();
    assert!((100..=2_100).contains(&kept), "{kept}");
}

#[test]
fn the_key_of_a_namespace_stays() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path()).identity(&guest()).unwrap();
    assert_eq!(open(folder.path()).identity(&guest()).unwrap(), first);
}

#[test]
fn two_processes_cannot_share_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let _first = open(folder.path());
    let second = Store::open(&folder.path().join("store.sqlite"), keep_everything());
    assert!(matches!(second, Err(StoreError::InUse(_))));
}

#[test]
fn a_damaged_or_newer_file_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    std::fs::write(&path, "not a database, but long enough to have a header".repeat(9)).unwrap();
    let damaged = Store::open(&path, keep_everything()).unwrap_err();
    assert!(matches!(damaged, StoreError::Damaged { .. }), "{damaged}");
    std::fs::remove_file(&path).unwrap();
    drop(Store::open(&path, keep_everything()).unwrap());
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let newer = Store::open(&path, keep_everything()).unwrap_err();
    assert!(matches!(newer, StoreError::TooNew { found: 99, .. }), "{newer}");
    assert!(newer.hint().is_some());
}
