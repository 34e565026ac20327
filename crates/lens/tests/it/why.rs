//! The sentence for each state of an instance.

use crate::kit::{NOW, Queues, SECRET, history, queues};
use outlast_lens::{Diagnosis, Evidence, Rule, Undecodable, diagnose};
use outlast_model::{Event, EventKind, HeldInstance, Hold, HoldKind};
use outlast_model::{NodeLease, NodeOrchestration, NodePatch, NodeRecord, NodeReport};

const STARTED: &str = "1 @1000 started Order 1.5.0";

/// Checks that a text is one sentence without payloads, and returns it without its subject.
fn predicate(found: &Diagnosis) -> String {
    let sentence = found.sentence();
    assert!(sentence.ends_with('.') && !sentence.contains('\n') && !sentence.contains(". "), "{sentence}");
    assert!(!sentence.contains(SECRET), "{sentence}");
    let predicate = sentence.strip_prefix("Instance 'i' ").unwrap_or_else(|| panic!("{sentence}"));
    predicate.strip_suffix('.').unwrap().to_string()
}

fn check(events: &str, rows: &str, rule: Rule, expected: &str) {
    let (history, queues) = (history(events), queues(rows));
    let found = diagnose(&queues.evidence(&history));
    assert_eq!((found.rule(), predicate(&found).as_str()), (rule, expected), "{events}\n{rows}");
}

#[test]
fn advice_about_an_item_that_is_due_for_less_than_5_seconds_is_apart_from_the_sentence() {
    let activity = format!("{STARTED}\n2 @99500 activity Charge");
    let in_session = format!("{activity} session=s");
    for (events, rows, expected) in [
        (
            "",
            "message StartOrchestration Order visible=99000",
            Some("start a runtime that registers 'Order'"),
        ),
        ("", "message StartOrchestration Order visible=60000", None),
        (
            activity.as_str(),
            "activity Charge #2 visible=99500",
            Some("start a runtime that registers 'Charge'"),
        ),
        (activity.as_str(), "activity Charge #2 visible=60000", None),
        (in_session.as_str(), "activity Charge #2 visible=99500", None),
        (activity.as_str(), "activity Charge #2 visible=99500 locked=112000 tries=1", None),
    ] {
        let (history, queues) = (history(events), queues(rows));
        let found = diagnose(&queues.evidence(&history));
        assert_eq!(found.early_advice(), expected, "{rows}");
        assert_eq!(found.sentence(), format!("Instance 'i' {}.", found.predicate()));
        let parent = diagnose(&Evidence::new("p", &[], NOW)).with_child(found);
        assert_eq!(parent.early_advice(), expected, "the advice for a parent is that for its child");
    }
}

#[test]
fn instance_whose_history_does_not_decode_has_the_state_that_the_store_knows() {
    let failure =
        |end: &str| match history(&format!("{STARTED}\n2 @2000 ended {end}")).pop().map(|event| event.kind) {
            Some(EventKind::OrchestrationFailed { details }) => details,
            other => panic!("{other:?}"),
        };
    let (own, panicked, cancelled) = (failure("undecodable"), failure("panic"), failure("cancel"));
    for (state, rule, expected) in [
        (
            Undecodable::Running,
            Rule::Undecodable,
            "has a history that does not decode: a runtime that can decode it goes on, and the others fail the instance after 10 \
             deliveries of a turn, so run the release that wrote it, or restore the store from a backup",
        ),
        (Undecodable::Completed, Rule::Completed, "completed, and its history does not decode"),
        (
            Undecodable::Failed(&own),
            Rule::Failed,
            "failed: a history that does not decode was delivered 11 times, and the limit is 10",
        ),
        (
            Undecodable::Failed(&panicked),
            Rule::Failed,
            "failed: its code panicked, and its history does not decode",
        ),
        (Undecodable::Failed(&cancelled), Rule::Cancelled, "was cancelled, and its history does not decode"),
    ] {
        let mut evidence = Evidence::new("i", &[], NOW);
        (evidence.undecodable, evidence.max_attempts) = (Some(state), Some(10));
        let found = diagnose(&evidence);
        assert_eq!((found.rule(), predicate(&found).as_str()), (rule, expected));
    }
}

#[test]
fn absent_instances() {
    for (rows, rule, expected) in [
        ("", Rule::NotFound, "does not exist: the store has no event and no message of it"),
        (
            "message ExternalRaised go",
            Rule::Orphans,
            "does not exist, and 1 message for it is queued and becomes a dead letter unless the instance is started",
        ),
        (
            "message ExternalRaised go\nmessage CancelInstance",
            Rule::Orphans,
            "does not exist, and 2 messages for it are queued and become dead letters unless the instance is started",
        ),
        (
            "message StartOrchestration Order visible=99000",
            Rule::TurnDue,
            "has had its first turn due for 1.0s (1 message)",
        ),
        (
            "message StartOrchestration Order visible=60000",
            Rule::TurnDue,
            "has had its first turn due for 40.0s (1 message), and no runtime has fetched it: \
             start a runtime that registers 'Order'",
        ),
        (
            "message StartOrchestration Order visible=104000 tries=3",
            Rule::TurnGivenBack,
            "was delivered 3 of 10 times without a commit of its first turn, and the next delivery is in 4.0s: \
             either the nodes that fetched it do not register 'Order', or their processes ended; \
             their logs have the cause",
        ),
        (
            "lease 112000\nmessage StartOrchestration Order tries=1 locked=112000",
            Rule::TurnLeased,
            "runs its first turn (delivery 1 of 10), whose lease ends in 12.0s: \
             if its process has died, the turn is delivered again then",
        ),
        (
            "message StartOrchestration Order visible=7300000",
            Rule::StartDelayed,
            "was started with a delay, and does not begin until 1970-01-01 02:01:40.000 UTC, in 2h",
        ),
        (
            "dead message",
            Rule::StartSetAside,
            "does not exist: its start, or a message that does not decode, became a dead letter at \
             1970-01-01 00:01:30.000 UTC",
        ),
        (
            "dead message go\ndead message stop",
            Rule::StartSetAside,
            "does not exist, and the store keeps 2 dead letters of it, the last of them from 1970-01-01 00:01:30.000 UTC",
        ),
    ] {
        check("", rows, rule, expected);
    }
    let found = diagnose(&Evidence::new("i", &[], NOW));
    assert_eq!(
        predicate(&found),
        "does not exist, or has no turn yet: this store does not report queued messages"
    );
    let rows = Queues::default();
    let mut damaged = rows.evidence(&[]);
    damaged.is_recorded = true;
    let found = diagnose(&damaged);
    assert_eq!(
        (found.rule(), predicate(&found).as_str()),
        (
            Rule::NoHistory,
            "has no events of its current execution: the store is damaged, so restore it from a backup"
        )
    );
}

#[test]
fn ended_instances() {
    let when = "at 1970-01-01 00:00:04.500 UTC, after 3.5s";
    for (end, rule, expected) in [
        ("completed", Rule::Completed, format!("completed {when}")),
        ("ended cancel", Rule::Cancelled, format!("was cancelled {when}")),
        ("ended activity", Rule::Failed, format!("failed {when}: an activity returned an error")),
        ("ended code", Rule::Failed, format!("failed {when}: its code returned an error")),
        (
            "ended limit",
            Rule::Failed,
            format!("failed {when}: the engine refused a call or a size, which its error names"),
        ),
        ("ended panic", Rule::Failed, format!("failed {when}: its code panicked")),
        (
            "ended nondeterminism",
            Rule::Failed,
            format!("failed {when}: its code made other decisions than its history holds (nondeterministic)"),
        ),
        ("ended store", Rule::Failed, format!("failed {when}: the store or the runtime failed in 'load'")),
        (
            "ended poisoned-turn",
            Rule::Failed,
            format!("failed {when}: a turn was delivered 11 times, and the limit is 10"),
        ),
        (
            "ended unregistered",
            Rule::Failed,
            format!(
                "failed {when}: a turn was delivered 11 times, and the limit is 10, because orchestration 'O' is not registered"
            ),
        ),
        (
            "ended poisoned-activity",
            Rule::Failed,
            format!("failed {when}: activity 'Charge' was delivered 11 times, and the limit is 10"),
        ),
        (
            "ended undecodable",
            Rule::Failed,
            format!(
                "failed {when}: a history that does not decode was delivered 11 times, and the limit is 10"
            ),
        ),
    ] {
        // Messages that came too late change nothing.
        for rows in ["", "message ExternalRaised go tries=3"] {
            check(&format!("{STARTED}\n2 @2000 activity A\n3 @4500 {end}"), rows, rule, &expected);
        }
    }
}

#[test]
fn continued_instances() {
    let events = format!("{STARTED}\n2 @4500 continued");
    for (rows, rule, expected) in [
        (
            "message ContinueAsNew Order",
            Rule::TurnDue,
            "continued as new and has had the first turn of execution 2 due for 100ms (1 message)",
        ),
        (
            "lease 112000\nmessage ContinueAsNew Order tries=2 locked=112000",
            Rule::TurnLeased,
            "continued as new and runs the first turn of execution 2 (delivery 2 of 10), whose lease ends in 12.0s: \
             if its process has died, the turn is delivered again then",
        ),
        (
            "",
            Rule::NoSuccessor,
            "continued as new at 1970-01-01 00:00:04.500 UTC, after 3.5s, and no queued message starts its successor: \
             the store is damaged",
        ),
    ] {
        check(&events, rows, rule, expected);
    }
    let history = history(&events);
    let found = diagnose(&Evidence::new("i", &history, NOW));
    assert_eq!(
        predicate(&found),
        "continued as new at 1970-01-01 00:00:04.500 UTC, after 3.5s, and the first turn of execution 2 is not committed yet"
    );
}

#[test]
fn turns_that_run_or_are_due() {
    let events = format!("{STARTED}\n2 @2000 wait go\n3 @2000 timer 900000");
    let timer = "message TimerFired #3 visible=900000";
    for (rows, rule, expected) in [
        (
            "lease 112000\nmessage ExternalRaised go tries=7 locked=112000",
            Rule::TurnLeased,
            "runs a turn (delivery 7 of 10), whose lease ends in 12.0s: if its process has died, the turn is delivered again then",
        ),
        ("message ExternalRaised go", Rule::TurnDue, "has had a turn due for 100ms (1 message)"),
        (
            "message ExternalRaised go\nmessage CancelInstance",
            Rule::TurnDue,
            "has had a turn due for 100ms (2 messages, one of them a request to cancel it)",
        ),
        (
            "message ExternalRaised go visible=60000",
            Rule::TurnDue,
            "has had a turn due for 40.0s (1 message), and no runtime has fetched it: start a runtime that registers 'Order' 1.5.0",
        ),
        (
            "message ExternalRaised go visible=60000 tries=7",
            Rule::TurnNotCommitted,
            "was delivered 7 of 10 times without a commit, and a turn has been due for 40.0s: either the nodes that fetched it \
             do not register 'Order' 1.5.0, or their processes ended; their logs have the cause",
        ),
        (
            "message ExternalRaised go visible=109000 tries=3",
            Rule::TurnGivenBack,
            "was delivered 3 of 10 times without a commit of a turn, and the next delivery is in 9.0s: either the nodes that \
             fetched it do not register 'Order' 1.5.0, or their processes ended; their logs have the cause",
        ),
        (
            "message ExternalRaised go\ndead message",
            Rule::TurnDue,
            "has had a turn due for 100ms (1 message) (1 dead letter of it kept)",
        ),
    ] {
        check(&events, &format!("{rows}\n{timer}"), rule, expected);
    }
}

#[test]
fn activities() {
    let waits = "has waited 1m 38s for activity 'Charge'";
    for (activity, rows, rule, expected) in [
        ("Charge", "activity Charge #2", Rule::ActivityQueued, "it is queued"),
        (
            "Charge",
            "activity Charge #2 visible=60000",
            Rule::ActivityQueued,
            "it is queued, and no runtime has fetched it: start a runtime that registers 'Charge'",
        ),
        (
            "Charge tag=gpu",
            "activity Charge #2 visible=60000",
            Rule::ActivityQueued,
            "it is queued, and no runtime has fetched it: start a runtime that registers 'Charge' and takes tag 'gpu'",
        ),
        (
            "Charge session=s",
            "activity Charge #2 visible=60000",
            Rule::ActivityQueued,
            "it is queued, and the owner of session 's' has not fetched it: start a runtime that registers 'Charge', \
             or wait until the session has no owner",
        ),
        (
            "Charge",
            "activity Charge #2 locked=112000 tries=2",
            Rule::ActivityLeased,
            "it runs (delivery 2 of 10), and is delivered again in 12.0s if its process has died",
        ),
        (
            "Charge",
            "activity Charge #2 visible=109000 tries=2",
            Rule::ActivityGivenBack,
            "it was delivered 2 of 10 times and given back, and the next try is in 9.0s: either the nodes that fetched it \
             do not register 'Charge', or their processes ended; their logs have the cause",
        ),
        (
            "Charge",
            "activity Charge #2 visible=109000 fails=3",
            Rule::ActivityGivenBack,
            "its handler failed 3 times, and the next try is in 9.0s",
        ),
        (
            "Charge",
            "activity Charge #2 fails=1",
            Rule::ActivityQueued,
            "its handler failed once, and it is queued for its next try",
        ),
        (
            "Charge",
            "activity Charge #2 locked=112000 tries=1 fails=2",
            Rule::ActivityLeased,
            "its handler failed 2 times before, it runs (delivery 1 of 10), and is delivered again in 12.0s if its process has died",
        ),
        (
            "Charge",
            "activity Charge #2 tries=7",
            Rule::ActivityNotCommitted,
            "it was delivered 7 of 10 times without an outcome, and is queued: either the nodes that fetched it do not \
             register 'Charge', or their processes ended; their logs have the cause",
        ),
    ] {
        check(
            &format!("{STARTED}\n2 @2000 activity {activity}"),
            rows,
            rule,
            &format!("{waits}: {expected}"),
        );
    }
    let history = history(&format!("{STARTED}\n2 @2000 activity Charge"));
    let found = diagnose(&Evidence::new("i", &history, NOW));
    assert_eq!(
        (found.rule(), predicate(&found)),
        (Rule::ActivityUnknown, format!("{waits}: this store does not report its progress"))
    );
}

#[test]
fn lost_items_are_dead_letters_or_damage() {
    let events = format!("{STARTED}\n2 @2000 activity Charge");
    let waits = "has waited 1m 38s for activity 'Charge'";
    for (rows, rule, expected) in [
        ("dead activity", Rule::SetAside, ", whose item became a dead letter at 1970-01-01 00:01:30.000 UTC"),
        (
            "dead activity #2",
            Rule::SetAside,
            ", whose item became a dead letter at 1970-01-01 00:01:30.000 UTC",
        ),
        (
            "dead activity #9",
            Rule::OperationLost,
            ", and no queued item can end it: the store is damaged, so cancel the instance (1 dead letter of it kept): \
             `outlast instance cancel i`",
        ),
        (
            "",
            Rule::OperationLost,
            ", and no queued item can end it: the store is damaged, so cancel the instance: `outlast instance cancel i`",
        ),
    ] {
        check(&events, rows, rule, &format!("{waits}{expected}"));
    }
    // Damage counts before other operations.
    check(
        &format!("{STARTED}\n2 @2000 activity Charge\n3 @2000 timer 5000"),
        "activity Charge #2",
        Rule::OperationLost,
        "has waited 1m 38s for a timer, and no queued item can end it: the store is damaged, so cancel the instance \
         (1 other operation open): `outlast instance cancel i`",
    );
}

#[test]
fn events_messages_and_timers() {
    let timer = "message TimerFired #3 visible=7300000";
    for (events, rows, rule, expected) in [
        (
            "2 @2000 wait approve",
            "",
            Rule::EventNotSent,
            "has waited 1m 38s for event 'approve', and no client has sent it; this command sends it: \
             `outlast instance signal i approve DATA`",
        ),
        (
            "2 @2000 wait approve\n3 @2000 timer 7300000",
            timer,
            Rule::EventNotSent,
            "has waited 1m 38s for event 'approve' (a timer fires in 2h), and no client has sent it; \
             this command sends it: `outlast instance signal i approve DATA`",
        ),
        (
            "2 @2000 wait a'b\n3 @2000 timer 7300000\n4 @2000 wait other",
            timer,
            Rule::EventNotSent,
            "has waited 1m 38s for event 'a'b' (a timer fires in 2h, 1 other operation open), and no client has \
             sent it; this command sends it: `outlast instance signal i 'a'\\''b' DATA`",
        ),
        (
            "2 @1500 event approve\n3 @2000 wait approve",
            "",
            Rule::EventDropped,
            "has waited 1m 38s for event 'approve', and the event was sent before the wait began and was dropped; \
             this command sends it again: `outlast instance signal i approve DATA`",
        ),
        (
            "2 @2000 queue orders\n3 @2000 queue other",
            "dead message",
            Rule::MessageNotSent,
            "has waited 1m 38s for a message of queue 'orders' (1 other operation open), and no client has sent one; \
             this command sends one (1 dead letter of it kept): `outlast instance enqueue i orders DATA`",
        ),
        (
            "3 @2000 timer 7300000",
            timer,
            Rule::Sleeps,
            "sleeps until 1970-01-01 02:01:40.000 UTC, in 2h",
        ),
        (
            "2 @2000 timer 9000000\n3 @2000 timer 7300000",
            "message TimerFired #3 visible=7300000\nmessage TimerFired #2 visible=9000000",
            Rule::Sleeps,
            "sleeps until 1970-01-01 02:01:40.000 UTC, in 2h (1 other operation open)",
        ),
        (
            "2 @2000 activity Charge\n4 @3000 failed 2\n3 @3000 timer 7300000",
            timer,
            Rule::RetrySleeps,
            "sleeps until 1970-01-01 02:01:40.000 UTC, in 2h, after try 1 of activity 'Charge' failed",
        ),
        (
            "2 @2000 activity Charge\n4 @3000 failed 2\n5 @3000 timer 4000\n6 @4000 fired 5\n7 @4000 activity Charge
             8 @5000 failed 7\n3 @5000 timer 7300000",
            timer,
            Rule::RetrySleeps,
            "sleeps until 1970-01-01 02:01:40.000 UTC, in 2h, after try 2 of activity 'Charge' failed",
        ),
        (
            "2 @2000 activity Charge\n4 @3000 failed 2\n3 @3001 timer 7300000",
            timer,
            Rule::Sleeps,
            "sleeps until 1970-01-01 02:01:40.000 UTC, in 2h",
        ),
        (
            "",
            "",
            Rule::WaitsForNothing,
            "waits for nothing that can happen: no operation is open and no message is queued, so cancel it: \
             `outlast instance cancel i`",
        ),
        (
            "2 @2000 child C c",
            "message SubOrchCompleted #2 visible=200000",
            Rule::OutcomeDelayed,
            "has the outcome of child 'c' ('C') in its queue, and no turn can be fetched yet",
        ),
    ] {
        check(&format!("{STARTED}\n{events}"), rows, rule, expected);
    }
    let history = history(STARTED);
    let found = diagnose(&Evidence::new("i", &history, NOW));
    assert_eq!(
        (found.rule(), predicate(&found).as_str()),
        (Rule::Unknown, "runs and has no open operation: this store does not report queued messages")
    );
}

#[test]
fn one_operation_explains_the_wait() {
    let others =
        "3 @2000 timer 7300000\n4 @2000 wait go\n5 @2000 queue q\n6 @2000 child C c\n7 @2000 activity A";
    let rows = "message TimerFired #3 visible=7300000\nactivity A #7\nactivity B #8 tries=1";
    for (events, rule) in [
        (others.to_string(), Rule::ActivityQueued),
        (format!("{others}\n8 @2000 activity B"), Rule::ActivityNotCommitted),
        (others.replace("7 @2000 activity A", ""), Rule::Child),
        (others.replace("6 @2000 child C c\n7 @2000 activity A", ""), Rule::EventNotSent),
    ] {
        let (history, queues) = (history(&format!("{STARTED}\n{events}")), queues(rows));
        assert_eq!(diagnose(&queues.evidence(&history)).rule(), rule, "{events}");
    }
}

#[test]
fn a_child_adds_its_own_sentence() {
    let parent = history(&format!("{STARTED}\n2 @2000 child Deliver sub::2"));
    let middle = history(&format!("{STARTED}\n2 @2000 wait go\n3 @2000 child Post p-1"));
    let leaf = history(&format!("{STARTED}\n2 @2000 wait signed"));
    let none = queues("");
    let of = |instance: &'static str, history: &[Event]| {
        let mut evidence = none.evidence(history);
        evidence.instance = instance;
        diagnose(&evidence)
    };
    let found = of("i", &parent);
    assert_eq!((found.rule(), found.child()), (Rule::Child, Some("i::sub::2")));
    assert_eq!(predicate(&found), "has waited 1m 38s for child 'i::sub::2' ('Deliver')");
    let found = found.with_child(of("i::sub::2", &middle).with_child(of("p-1", &leaf)));
    assert_eq!(
        predicate(&found),
        "has waited 1m 38s for child 'i::sub::2' ('Deliver'), which waits for 1 other operation, and has waited 1m 38s \
         for child 'p-1' ('Post'), which has waited 1m 38s for event 'signed', and no client has sent it; \
         this command sends it: `outlast instance signal p-1 signed DATA`"
    );
    assert_eq!(found.remedy(), Some("outlast instance signal p-1 signed DATA"));
    assert_eq!(found.of_child().unwrap().instance(), "i::sub::2");
}

/// The report of a node, stored some seconds ago; lost after 15 seconds.
fn node(id: &str, seconds: u64) -> NodeRecord {
    let mut report = NodeReport::new(id);
    (report.host, report.pid) = ("host-1".to_string(), 811);
    report.tags.untagged = true;
    let seen_ms_ago = seconds * 1_000;
    NodeRecord { report, seen_ms_ago, expires_in_ms: 15_000_u64.saturating_sub(seen_ms_ago) }
}

fn registering(mut node: NodeRecord, versions: &[&str], activities: &[&str]) -> NodeRecord {
    let versions = versions.iter().map(ToString::to_string).collect();
    node.report.orchestrations = vec![NodeOrchestration { name: "Order".to_string(), versions }];
    node.report.activities = activities.iter().map(ToString::to_string).collect();
    node
}

fn ask(events: &str, rows: &str, nodes: &[NodeRecord]) -> String {
    let (history, queues) = (history(events), queues(rows));
    let mut evidence = queues.evidence(&history);
    evidence.nodes = Some(nodes);
    predicate(&diagnose(&evidence))
}

fn ends(text: String, end: &str) {
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn parked_instance_is_not_to_be_resumed_while_a_live_node_runs_the_build_that_parked_it() {
    let (history, queues) = (history(STARTED), queues(""));
    for (actor, build, expires_in_ms, says) in [
        ("build 2", "2", 10_000, Some("a live node still runs this build, which would park it again")),
        (
            "a runtime",
            "",
            10_000,
            Some("a live node still runs a build without a name, which may park it again"),
        ),
        ("build 2", "3", 10_000, None),
        ("build 2", "2", 0, None),
        ("build 2", "", 10_000, None),
        ("a runtime", "2", 10_000, None),
        ("ann", "", 10_000, None),
    ] {
        let hold = Hold { kind: HoldKind::Parked, actor: actor.to_string(), reason: "changed".to_string() };
        let mut held = HeldInstance { instance_id: "i".to_string(), hold, held_at_ms: 60_000 };
        let mut nodes = [node("a1", 1)];
        (nodes[0].report.build, nodes[0].expires_in_ms) = (build.to_string(), expires_in_ms);
        let diagnosed = |held: &HeldInstance| {
            let mut evidence = queues.evidence(&history);
            (evidence.held, evidence.nodes) = (Some(held), Some(&nodes[..]));
            diagnose(&evidence)
        };
        let found = diagnosed(&held);
        match says {
            Some(says) => {
                let advice = format!(
                    "('changed'); {says}: first deploy a build whose code fits, whose runtimes release the instance by themselves \
                     with on_misfit: Park, or else `outlast instance resume i` does"
                );
                ends(predicate(&found), &advice);
                assert_eq!((found.rule(), found.remedy()), (Rule::Held, None));
            }
            None => ends(predicate(&found), "('changed'): `outlast instance resume i`"),
        }
        held.hold.kind = HoldKind::Paused;
        ends(predicate(&diagnosed(&held)), "('changed'): `outlast instance resume i`");
    }
}

#[test]
fn node_reports_make_the_advice_certain() {
    let (events, rows) =
        (format!("{STARTED}\n2 @2000 activity Charge tag=gpu"), "activity Charge #2 visible=60000");
    let (due, plain) = ("message ExternalRaised go visible=60000", node("a2", 1));
    let old = registering(node("a1", 1), &["1.4.0"], &["Charge"]);
    ends(ask(&events, rows, std::slice::from_ref(&old)), "no live node takes tag 'gpu'");
    ends(ask(&events, due, std::slice::from_ref(&old)), "no live node registers 'Order' 1.5.0");
    ends(
        ask(&events, &format!("{due} tries=2"), std::slice::from_ref(&old)),
        "no live node registers 'Order' 1.5.0",
    );
    let mut gpu = registering(node("a1", 1), &["1.4.0", "1.5.0"], &[]);
    gpu.report.tags.named = vec!["gpu".to_string()];
    ends(ask(&events, rows, &[gpu.clone()]), "no live node registers 'Charge' and takes tag 'gpu'");
    gpu.report.activities = vec!["Charge".to_string()];
    ends(ask(&events, rows, &[gpu.clone()]), "1 live node registers 'Charge' and takes tag 'gpu'");
    ends(ask(&events, due, &[gpu, plain]), "1 live node registers 'Order' 1.5.0");
}

#[test]
fn turn_that_nodes_with_older_code_give_back_names_the_patch() {
    let events =
        format!("{STARTED}\n2 @2000 set __outlast:patch:fraud true\n3 @2000 wait go\n4 @2000 timer 7300000");
    let (later, due) =
        ("message ExternalRaised go visible=104000", "message ExternalRaised go visible=60000");
    let missed = NodePatch { orchestration: "Order".to_string(), patch: "fraud".to_string() };
    let mut old = registering(node("a1", 1), &["1.5.0"], &[]);
    old.report.missing_patches = vec![missed];
    let new = registering(node("a2", 1), &["1.5.0"], &[]);
    assert_eq!(
        ask(&events, later, std::slice::from_ref(&old)),
        "waits for newer code, and the next delivery of a turn is in 4.0s: its history takes patch 'fraud', which no live \
         node's code asks for: start the build that has the patch"
    );
    assert_eq!(
        ask(&events, due, std::slice::from_ref(&old)),
        "waits for newer code, and a turn is due: its history takes patch 'fraud', which no live node's code asks for: \
         start the build that has the patch"
    );
    let both = [old.clone(), new.clone()];
    assert_eq!(
        ask(&events, later, &both),
        "waits for newer code, and the next delivery of a turn is in 4.0s: its history takes patch 'fraud', which the code \
         of 1 live node does not ask for: a node with newer code takes it"
    );
    ends(ask(&events, due, &both), "2 live nodes register 'Order' 1.5.0");
    let timer = "message TimerFired #4 visible=7300000";
    assert!(ask(&events, timer, &both).contains("a timer fires in 2h"), "nothing is due");
    let fired = format!("{STARTED}\n2 @2000 set __outlast:patch:fraud true\n3 @2000 timer 90000");
    ends(
        ask(&fired, "message TimerFired #3 visible=104000", &both),
        "does not ask for: a node with newer code takes it",
    );
    let queued = format!("{later}\n{timer}");
    assert!(ask(&events, &queued, std::slice::from_ref(&new)).contains("no turn can be fetched yet"));
    old.expires_in_ms = 0;
    assert!(
        ask(&events, &queued, &[old, new]).contains("no turn can be fetched yet"),
        "a lost node does not count"
    );
}

#[test]
fn lost_and_partial_reports_are_not_counted_as_all_nodes() {
    let (events, due) = (STARTED, "message ExternalRaised go visible=60000");
    let lost = registering(node("a1", 41), &["1.5.0"], &[]);
    ends(ask(events, due, std::slice::from_ref(&lost)), "no live node registers 'Order' 1.5.0");
    let mut partial = node("a2", 1);
    partial.report.omitted_handlers = 1;
    ends(ask(events, due, &[lost, partial]), "start a runtime that registers 'Order' 1.5.0");
}

#[test]
fn the_owner_of_a_lease_is_named() {
    let holding = |seconds: u64, activity: Option<(u64, u64)>| {
        let mut node = node("a1", seconds);
        node.report.leases = vec![NodeLease { instance: "i".to_string(), activity }];
        node
    };
    let events = format!("{STARTED}\n2 @2000 activity Charge");
    let activity = "activity Charge #2 locked=112000 tries=2";
    let other = holding(1, Some((1, 7)));
    ends(
        ask(&events, activity, &[other.clone(), holding(2, Some((1, 2)))]),
        "it runs on node a1 (host-1, pid 811) (delivery 2 of 10), and is delivered again in 12.0s if its process has died",
    );
    ends(
        ask(&events, activity, &[other.clone(), holding(41, Some((1, 2)))]),
        "it runs on lost node a1 (host-1, pid 811), silent for 41.0s, and is delivered again in 12.0s (delivery 2 of 10)",
    );
    ends(
        ask(&events, activity, &[other]),
        "it runs (delivery 2 of 10), and is delivered again in 12.0s if its process has died",
    );
    let turn = "lease 104000\nmessage ExternalRaised go tries=1 locked=104000";
    ends(
        ask(&events, turn, &[holding(1, None)]),
        "runs a turn on node a1 (host-1, pid 811) (delivery 1 of 10), whose lease ends in 4.0s: if its process has died, the \
         turn is delivered again then",
    );
    ends(
        ask(&events, turn, &[holding(20, None)]),
        "runs a turn on lost node a1 (host-1, pid 811), silent for 20.0s, and is delivered again in 4.0s, when the lease \
         ends (delivery 1 of 10)",
    );
}

#[test]
fn names_with_control_characters_stay_on_one_line() {
    let mut events = history(&format!("{STARTED}\n2 @2000 wait X"));
    if let EventKind::ExternalSubscribed { name } = &mut events[1].kind {
        *name = "a\n\u{1b}[31m b".to_string();
    }
    let none = queues("");
    let text = predicate(&diagnose(&none.evidence(&events)));
    assert!(
        text.contains("event 'a\\n\\u{1b}[31m b'") && text.contains("signal i 'a\\n\\u{1b}[31m b' DATA"),
        "{text}"
    );
}

/// Random histories and queue rows: each has one sentence, which holds no payload.
#[test]
fn every_state_has_one_sentence() {
    const EVENTS: [&str; 14] = [
        "activity A",
        "activity B tag=t",
        "timer 5000",
        "timer 500000",
        "wait go",
        "event go",
        "queue q",
        "message q",
        "child C sub::9",
        "detached D d",
        "status s",
        "set k s3cret",
        "completed",
        "continued",
    ];
    const ROWS: [&str; 9] = [
        "activity A #2",
        "activity A #2 tries=3 locked=200000",
        "message TimerFired #3 visible=500000",
        "message ExternalRaised go",
        "message QueueMessage q tries=2 visible=200000",
        "message CancelInstance",
        "lease 200000",
        "dead message",
        "message StartOrchestration O visible=200000",
    ];
    let mut seed = 7_u64;
    let mut below = |end: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % end
    };
    for _ in 0..5_000 {
        let mut events = if below(8) == 0 { String::new() } else { format!("{STARTED}\n") };
        for id in 2..2 + below(6) * usize::from(!events.is_empty()) {
            events.push_str(&format!("{id} @{} {}\n", 1_000 + id, EVENTS[below(EVENTS.len())]));
        }
        let rows: Vec<&str> = (0..below(4)).map(|_| ROWS[below(ROWS.len())]).collect();
        let (history, queues) = (history(&events), queues(&rows.join("\n")));
        predicate(&diagnose(&queues.evidence(&history)));
        predicate(&diagnose(&Evidence::new("i", &history, NOW)));
    }
}

#[test]
fn held_instances() {
    let held = |kind, reason: &str| HeldInstance {
        instance_id: "i".to_string(),
        hold: Hold { kind, actor: "ann".to_string(), reason: reason.to_string() },
        held_at_ms: 60_000,
    };
    for (hold, rows, expected) in [
        (
            held(HoldKind::Paused, ""),
            "",
            "was paused by 'ann' at 1970-01-01 00:01:00.000 UTC: `outlast instance resume i`",
        ),
        (
            held(HoldKind::Paused, "a look"),
            "message ExternalRaised go",
            "was paused by 'ann' at 1970-01-01 00:01:00.000 UTC ('a look'), and 1 message waits: \
             `outlast instance resume i`",
        ),
        (
            held(HoldKind::OrchestrationPaused, "deploy"),
            "message ExternalRaised go",
            "is held since 1970-01-01 00:01:00.000 UTC, because 'ann' paused its orchestration ('deploy'), and 1 \
             message waits: `outlast orchestration resume Order`",
        ),
        (
            held(HoldKind::Paused, ""),
            "message TimerFired #2 visible=7300000",
            "was paused by 'ann' at 1970-01-01 00:01:00.000 UTC, and a timer waits: `outlast instance resume i`",
        ),
        (
            held(HoldKind::Paused, ""),
            "message ExternalRaised go\nmessage TimerFired #2 visible=7300000",
            "was paused by 'ann' at 1970-01-01 00:01:00.000 UTC, and 1 message and a timer wait: \
             `outlast instance resume i`",
        ),
        (
            held(HoldKind::Paused, ""),
            "message TimerFired #2 visible=60000",
            "was paused by 'ann' at 1970-01-01 00:01:00.000 UTC, and 1 message waits: `outlast instance resume i`",
        ),
        (
            held(HoldKind::Parked, "changed"),
            "message ExternalRaised go\nmessage ExternalRaised on",
            "was parked by 'ann' at 1970-01-01 00:01:00.000 UTC instead of failing ('changed'), \
             and 2 messages wait: `outlast instance resume i`",
        ),
    ] {
        let (history, queues) = (history(STARTED), queues(rows));
        let mut evidence = queues.evidence(&history);
        evidence.held = Some(&hold);
        let found = diagnose(&evidence);
        assert_eq!((found.rule(), predicate(&found).as_str()), (Rule::Held, expected));
    }
}
