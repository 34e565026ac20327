//! Known defects of other stores (section 7 of the contract's specification gives the numbers) that no other category covers.

use crate::ProviderFactory;
use crate::snapshot::snapshot;
use crate::support::*;
use outlast_provider::model::{Event, EventKind};
use outlast_provider::{ExecutionMetadata, InstanceFilter, PruneOptions, TagFilter, WorkItem};
use semver::Version;
use std::collections::BTreeSet;
use tokio::time::sleep;

/// 7.1.3, 7.1.31: neither a second start nor a batch without a start changes the name and version of an instance, with a row or
/// without.
pub async fn an_instance_keeps_its_name_and_version(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    for (instance, metadata) in [("named", named()), ("rowless", ExecutionMetadata::default())] {
        create_with(provider, instance, metadata).await;
        let batches = [
            vec![completed(instance, 2)],
            vec![start_of(instance, "Impostor", Some("6.6.6"))],
            vec![start_of(instance, "Impostor", None), completed(instance, 2)],
        ];
        for messages in batches {
            enqueue_all(provider, &messages).await;
            let (item, token, _) = must_fetch(provider, LONG).await;
            assert_eq!(item.messages, messages);
            assert_eq!(
                (item.orchestration_name.as_str(), item.version.as_str()),
                ("TestOrch", "1.0.0"),
                "{instance}"
            );
            assert_eq!((item.execution_id, item.history.len()), (1, 1), "{instance}");
            Turn::new(&token).commit(provider).await;
        }
    }
}

/// Section 1.4: only name and version together create an instance, its parent is set once, and an empty commit creates an execution.
pub async fn only_name_and_version_create_an_instance(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let halves = [
        ("nothing", ExecutionMetadata::default()),
        ("name", ExecutionMetadata { orchestration_version: None, ..named() }),
        ("version", ExecutionMetadata { orchestration_name: None, ..named() }),
    ];
    for (instance, metadata) in halves {
        let token = first_turn(provider, instance).await;
        Turn::new(&token).metadata(metadata).commit(provider).await;
        assert_eq!(provider.get_instance_stats(instance).await.unwrap(), None, "'{instance}' is no instance");
        operator(provider).sees_no_instance(instance).await;
        operator(provider).sees_executions(instance, &[1]).await;
        if let Some(admin) = provider.as_management_capability() {
            let execution = admin.get_execution_info(instance, 1).await.unwrap();
            assert_eq!((execution.status.as_str(), execution.event_count), ("Running", 0), "{instance}");
        }
    }
    operator(provider).sees_instances(&[]).await;

    create_instance_with_parent(provider, "child", "parent").await;
    let token = next_turn(provider, "child").await;
    let other = ExecutionMetadata { parent_instance_id: Some("other".to_string()), ..named() };
    Turn::new(&token).metadata(other).commit(provider).await;
    assert!(provider.get_instance_stats("child").await.unwrap().is_some(), "with both it is an instance");
    operator(provider).sees_only_child("parent", "child").await;
}

/// 7.1.16: the token of a lease cannot be derived from other tokens.
pub async fn tokens_cannot_be_guessed(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let mut tokens = Vec::new();
    for n in 0..10 {
        enqueue(provider, start_item(&format!("instance-{n}"))).await;
        enqueue_activity(provider, activity("worker", n)).await;
        tokens.push(must_fetch(provider, LONG).await.1);
        tokens.push(must_fetch_activity(provider, LONG).await.1);
    }
    for (n, one) in tokens.iter().enumerate() {
        for other in &tokens[..n] {
            let differences = one.bytes().zip(other.bytes()).filter(|(a, b)| a != b).count();
            // Tokens from a clock or counter differ in a few digits; 64 random bits rarely differ in fewer than these.
            assert!(differences >= 6, "{one} and {other} differ in {differences} characters only");
        }
    }
}

/// 7.1.22, 7.3.4: tag and session of an activity survive, and bind, on every way into the queue and back into it.
pub async fn every_enqueue_keeps_tag_and_session(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "worker").await;
    let work = |id| activity_with("worker", id, Some("session"), Some("gpu"));
    enqueue_activity(provider, work(2)).await;
    let token = next_turn(provider, "worker").await;
    Turn::new(&token).activity(work(3)).commit(provider).await;
    let (a, b, gpu) = (session_owner("a", LONG), session_owner("b", LONG), TagFilter::tags(["gpu"]));

    for round in 1..=2 {
        let mut held = Vec::new();
        for id in [2, 3] {
            for (session, filter) in
                [(None, &gpu), (Some(&a), &TagFilter::DefaultOnly), (None, &TagFilter::Any)]
            {
                let fetched = fetch_activity_as(provider, LONG, session, filter).await;
                assert_eq!(fetched, None, "neither without the session nor without the tag");
            }
            let fetched = fetch_activity_as(provider, LONG, Some(&a), &gpu).await;
            let (item, token, attempt) = fetched.expect("with both it is delivered");
            assert_eq!((item, attempt), (work(id), round));
            held.push(token);
            assert_eq!(fetch_activity_as(provider, LONG, Some(&b), &gpu).await, None, "the session is a's");
        }
        for token in held {
            provider.abandon_work_item(&token, None, false).await.unwrap();
        }
    }
}

/// 7.4.6: a turn of hundreds of rows is one commit: a rejected one stores nothing, an accepted one all of it.
pub async fn a_large_turn_is_one_commit(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "large").await;
    let token = next_turn(provider, "large").await;
    let untouched = snapshot(provider, &["large"]).await;
    let events: Vec<Event> = (2..=301).map(|id| event("large", id, scheduled_kind("Activity"))).collect();
    let activities: Vec<WorkItem> = (2..=151).map(|id| activity("large", id)).collect();
    let messages: Vec<WorkItem> = (0..150).map(|n| queue_message("large", "q", &n.to_string())).collect();
    let turn =
        || Turn::new(&token).events(events.clone()).activities(activities.clone()).messages(messages.clone());
    permanent(
        turn().event(started("large")).try_commit(provider).await,
        "a large turn with a stored event id",
    );
    assert_eq!(snapshot(provider, &["large"]).await, untouched);

    turn().commit(provider).await;
    assert_eq!(provider.read("large").await.unwrap()[1..], events);
    for expected in activities {
        assert_eq!(must_fetch_activity(provider, LONG).await.0, expected);
    }
    assert_eq!(must_fetch(provider, LONG).await.0.messages, messages);
}

/// 7.4.6: all messages of successive turns to one instance are delivered in order, equal messages once per send.
pub async fn successive_turns_send_to_one_instance(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "target").await;
    create_instance(provider, "sender").await;
    let held = next_turn(provider, "target").await;
    let sent = ["a", "b", "a"].map(|data| queue_message("target", "q", data));
    for _ in 0..3 {
        let token = next_turn(provider, "sender").await;
        Turn::new(&token).messages(sent.clone()).commit(provider).await;
    }
    Turn::new(&held).commit(provider).await;
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [sent.clone(), sent.clone(), sent].concat());
}

/// 7.4.6: each execution keeps its own status, output, times and history, independent of later ones.
pub async fn each_execution_keeps_its_own_state(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "endless").await;
    sleep(APART).await;
    continue_as_new(provider, "endless", 1).await;
    let first = admin(provider).get_execution_info("endless", 1).await.unwrap();
    assert_eq!((first.status.as_str(), first.output.as_deref()), ("ContinuedAsNew", Some("next")));
    assert!(first.completed_at.is_some_and(|end| end > first.started_at), "it took a while");
    let second = admin(provider).get_execution_info("endless", 2).await.unwrap();
    assert_eq!((second.status.as_str(), second.output, second.completed_at), ("Running", None, None));
    assert!(second.started_at >= first.completed_at.unwrap_or(0));

    sleep(APART).await;
    set_status(provider, "endless", 2, "Failed", "broken").await;
    let again = admin(provider).get_execution_info("endless", 1).await.unwrap();
    assert_eq!(format!("{again:?}"), format!("{first:?}"), "the first one does not change any more");

    // A commit to the old execution does not change the current execution.
    set_status(provider, "endless", 1, "Completed", "late").await;
    operator(provider).sees_current("endless", 2, "Failed", Some("broken")).await;
    assert_eq!(
        provider.read("endless").await.unwrap(),
        provider.read_with_execution("endless", 2).await.unwrap()
    );
}

/// 7.4.4: an execution whose status is set back to running has not ended, and no filter by time selects it.
pub async fn an_execution_that_runs_again_has_not_ended(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_completed(provider, "again", "out").await;
    ended_at(provider, "again", 1).await;
    set_status(provider, "again", 1, "Running", "").await;
    let execution = admin(provider).get_execution_info("again", 1).await.unwrap();
    assert_eq!((execution.status.as_str(), execution.completed_at), ("Running", None));
    let filter = InstanceFilter { completed_before: Some(u64::MAX), ..InstanceFilter::default() };
    assert_eq!(admin(provider).delete_instance_bulk(filter).await.unwrap().instances_deleted, 0);
    assert_eq!(instances(provider).await, ["again"]);
}

/// 7.4.5: an execution that continued as new ends at that millisecond, so that pruning by time selects it.
pub async fn pruning_by_time_finds_continued_executions(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "endless").await;
    continue_as_new(provider, "endless", 1).await;
    let end = ended_at(provider, "endless", 1).await;
    for (cut_off, left) in [(end, vec![1, 2]), (end + 1, vec![2])] {
        let options = PruneOptions { keep_last: None, completed_before: Some(cut_off) };
        admin(provider).prune_executions("endless", options).await.expect("pruning succeeds");
        assert_eq!(
            admin(provider).list_executions("endless").await.unwrap(),
            left,
            "cut-off {cut_off}, end {end}"
        );
    }
}

/// 7.4.6 and section 2.5: versions are compared number by number, and ranges are not merged into one.
pub async fn versions_are_compared_number_by_number(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let version = |text: &str| Version::parse(text).unwrap();
    let pins = ["0.1000.0", "1.0.0", "1.5.1000", "2.0.0", "3.1.4", "10.0.0"];
    for pin in pins {
        let metadata = ExecutionMetadata { pinned_duroxide_version: Some(version(pin)), ..named() };
        create_with(provider, pin, metadata).await;
    }
    for pin in pins {
        poke(provider, pin).await;
    }
    type Range = (&'static str, &'static str);
    let cases: [(&[Range], &[&str]); 5] = [
        (&[("1.0.0", "1.0.999")], &["1.0.0"]),
        (&[("1.6.0", "1.6.0")], &[]),
        (&[("0.0.0", "0.9999.9999")], &["0.1000.0"]),
        (&[("1.0.0", "1.9.0"), ("3.0.0", "9.9.9")], &["1.0.0", "1.5.1000", "3.1.4"]),
        (&[("3.0.0", "3.2.0"), ("10.0.0", "10.0.0"), ("2.0.0", "1.0.0")], &["3.1.4", "10.0.0"]),
    ];
    for (ranges, expected) in cases {
        let filter = supporting(ranges.iter().map(|(min, max)| (version(min), version(max))));
        let mut served = BTreeSet::new();
        let mut tokens = Vec::new();
        while let Some((item, token, _)) =
            provider.fetch_orchestration_item(LONG, NO_WAIT, Some(&filter)).await.unwrap()
        {
            served.insert(item.instance);
            tokens.push(token);
        }
        assert_eq!(served, expected.iter().map(ToString::to_string).collect(), "{ranges:?}");
        for token in tokens {
            provider.abandon_orchestration_item(&token, None, true).await.unwrap();
        }
    }
}

/// Section 2.2.3: every read returns an event with the time and the version that it was created with.
pub async fn events_keep_their_stamps(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let stamped = |event_id, timestamp_ms, duroxide_version: &str| Event {
        event_id,
        source_event_id: Some(event_id - 1).filter(|source| *source > 0),
        instance_id: "a stranger".to_string(),
        execution_id: 77,
        timestamp_ms,
        duroxide_version: duroxide_version.to_string(),
        kind: if event_id == 1 {
            started_kind()
        } else {
            EventKind::ActivityCompleted { result: "r".to_string() }
        },
    };
    let mut events =
        vec![stamped(1, 1, "0.0.1-alpha+build"), stamped(2, 0, ""), stamped(3, 1 << 50, "99.0.0")];
    let token = first_turn(provider, "stamped").await;
    Turn::new(&token).events(events.clone()).metadata(named()).commit(provider).await;
    let appended = stamped(4, 12_345, "not a version");
    provider.append_with_execution("stamped", 1, vec![appended.clone()]).await.expect("the id is free");
    events.push(appended);

    assert_eq!(provider.read("stamped").await.unwrap(), events);
    assert_eq!(provider.read_with_execution("stamped", 1).await.unwrap(), events);
    operator(provider).sees_newest_history("stamped", &events).await;
    operator(provider).sees_history("stamped", 1, &events).await;
    poke(provider, "stamped").await;
    assert_eq!(must_fetch(provider, LONG).await.0.history, events);
    for stranger in ["a stranger", "77"] {
        assert!(provider.read(stranger).await.unwrap().is_empty(), "the lease decides whose events they are");
    }
}

/// 7.4.8: bulk deletion skips an ended root while any descendant still runs, at any depth.
pub async fn a_running_descendant_keeps_its_root(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_completed(provider, "root", "out").await;
    create_with(provider, "child", ended("Failed", "out", Some("root"))).await;
    create_instance_with_parent(provider, "grandchild", "child").await;
    create_completed(provider, "other", "out").await;
    let family = ["child", "grandchild", "root"];
    for filter in [InstanceFilter::default(), only(&["root"])] {
        admin(provider)
            .delete_instance_bulk(filter)
            .await
            .expect("bulk deletion skips what it may not delete");
        assert_eq!(instances(provider).await, family, "the other root is deleted, and the family is not");
    }
    assert_eq!(provider.read("grandchild").await.unwrap().len(), 1);

    set_status(provider, "grandchild", 1, "Completed", "out").await;
    let deleted = admin(provider).delete_instance_bulk(InstanceFilter::default()).await.unwrap();
    assert_eq!((deleted.instances_deleted, instances(provider).await), (3, vec![]));
}

/// Section 6.1: a child whose parent has no row yet, or never gets one, is committed like any other.
pub async fn a_child_may_be_committed_before_its_parent(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance_with_parent(provider, "child", "parent").await;
    operator(provider).sees_only_child("parent", "child").await;
    create_instance(provider, "parent").await;
    if let Some(admin) = provider.as_management_capability() {
        let tree = admin.get_instance_tree("parent").await.unwrap();
        assert_eq!(tree.all_ids, ["parent", "child"]);
    }
    for instance in ["child", "parent"] {
        assert_eq!(provider.read(instance).await.unwrap().len(), 1, "{instance}");
        let token = next_turn(provider, instance).await;
        Turn::new(&token).commit(provider).await;
    }
}

/// Section 6.1: an item that is given back counts as waiting, with a delay or without.
pub async fn a_given_back_item_counts_as_waiting(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let depths = async || {
        let depths = admin(provider).get_queue_depths().await.unwrap();
        (depths.orchestrator_queue, depths.worker_queue)
    };
    enqueue(provider, start_item("counted")).await;
    enqueue_activity(provider, activity("counted", 1)).await;
    for delay in [None, Some(LONG)] {
        assert_eq!(depths().await, (1, 1));
        let (_, turn, _) = must_fetch(provider, LONG).await;
        let (_, work, _) = must_fetch_activity(provider, LONG).await;
        assert_eq!(depths().await, (0, 0), "what is leased does not wait");
        provider.abandon_orchestration_item(&turn, delay, false).await.unwrap();
        provider.abandon_work_item(&work, delay, false).await.unwrap();
    }
    assert_eq!(depths().await, (1, 1), "a delayed message waits too");
}

/// Section 2.9: an append stores the given event ids and creates neither an instance nor a message.
pub async fn an_append_creates_no_instance(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let events = [3, 70, 500].map(|id| event("tool", id, scheduled_kind("Activity")));
    let [first, second, third] = events.clone();
    provider.append_with_execution("tool", 1, vec![third, first]).await.expect("the ids are free");
    provider.append_with_execution("tool", 1, vec![second]).await.expect("the id is free");
    assert_eq!(provider.read_with_execution("tool", 1).await.unwrap(), events);
    let elsewhere = started_in("tool", 2);
    provider.append_with_execution("tool", 2, vec![elsewhere.clone()]).await.expect("another execution");
    assert_eq!(provider.read_with_execution("tool", 2).await.unwrap(), [elsewhere]);
    assert_eq!(provider.read_with_execution("tool", 1).await.unwrap(), events);
    assert_eq!(provider.get_instance_stats("tool").await.unwrap(), None);
    operator(provider).sees_instances(&[]).await;
    assert!(fetch(provider, LONG).await.is_none() && fetch_activity(provider, LONG).await.is_none());
}
