//! The proof must fail for a ledger with errors.

use super::*;
use crate::demo::order::Outcome;

const BATCH: Batch = Batch { number: 1, orders: 2, seed: 7, pace: 0.0 };

fn a() -> String {
    "order-1-001".to_string()
}

fn b() -> String {
    "order-1-002".to_string()
}

/// A ledger in which `a` was delivered and `b` was paid, undone and refunded.
fn ledger() -> Vec<(Option<&'static str>, Entry)> {
    let order = BATCH.order(&a());
    let mut lines = vec![
        (None, Entry::Batch(BATCH)),
        (None, Entry::Opened { process: 1 }),
        (None, Entry::Placed { order: a() }),
        (None, Entry::Placed { order: b() }),
        (Some("a1"), Entry::Reserved { order: a(), items: order.items.clone() }),
        (Some("a2"), Entry::Charged { order: a(), cents: order.cents(), answer_lost: true }),
        (None, Entry::Refused { order: a(), repeats: "a2".into(), because: Because::AnswerLost }),
    ];
    lines.extend(order.items.iter().map(|item| (None, Entry::Packed { order: a(), sku: item.sku.clone() })));
    lines.extend([
        (Some("a4"), Entry::Shipped { order: a(), tracking: "OL1".into() }),
        (Some("a5"), Entry::HandedOver { order: a() }),
        (Some("a6"), Entry::Invoiced { order: a(), cents: order.cents() }),
        (Some("b1"), Entry::Reserved { order: b(), items: vec![] }),
        (Some("b2"), Entry::Charged { order: b(), cents: 100, answer_lost: false }),
        (Some("b3"), Entry::Refunded { order: b(), cents: 100 }),
        (Some("b4"), Entry::Released { order: b(), items: vec![] }),
        (Some("b5"), Entry::Apologised { order: b(), reason: "broken".into() }),
    ]);
    lines
}

fn board() -> Board {
    let mut board = Board::new(BATCH);
    let outcome = |ending| Ok(Outcome { ending, note: String::new() });
    board.ended.insert(a(), outcome(Ending::Delivered));
    board.ended.insert(b(), outcome(Ending::Broken));
    board
}

fn proof(ledger: Vec<(Option<&'static str>, Entry)>, board: &Board) -> Proof {
    let line = |(key, entry): (Option<&str>, Entry)| Line { at_ms: 0, key: key.map(str::to_string), entry };
    Proof::of(&ledger.into_iter().map(line).collect::<Vec<_>>(), board)
}

#[test]
fn a_valid_ledger_passes_the_proof() {
    let proof = proof(ledger(), &board());
    assert_eq!(proof.problems, [""; 0]);
    assert!(proof.holds());
    let text = proof.text();
    for part in [
        "2 placed, 2 ended: 1 delivered, 1 broken",
        "2 charges",
        "1 refund of 1.00",
        "1 prevented",
        "0 survived",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// Adds an entry to a valid ledger, and checks the error of the proof.
fn check(extra: (Option<&'static str>, Entry), expected: &str) {
    let mut ledger = ledger();
    ledger.push(extra);
    let proof = proof(ledger, &board());
    assert!(
        proof.problems.iter().any(|problem| problem.contains(expected)),
        "{expected}: {:?}",
        proof.problems
    );
    assert!(!proof.holds() && proof.text().contains("DOES NOT HOLD"));
}

#[test]
fn every_duplicated_effect_is_found() {
    let order = BATCH.order(&a());
    let charged = || Entry::Charged { order: a(), cents: order.cents(), answer_lost: false };
    check((Some("a9"), charged()), "order-1-001: charged 2 times");
    check((Some("a2"), charged()), "what is called a2 was done twice");
    check((Some("b9"), Entry::Refunded { order: b(), cents: 100 }), "was not given back once");
    check((Some("a9"), Entry::Shipped { order: a(), tracking: "OL2".into() }), "not shipped");
    check(
        (Some("a9"), Entry::Packed { order: a(), sku: order.items[0].sku.clone() }),
        "not packed once each",
    );
    check((Some("a9"), Entry::Released { order: a(), items: vec![] }), "not reserved");
    check((Some("a9"), Entry::Invoiced { order: a(), cents: 1 }), "not billed once");
    check((Some("b9"), Entry::Apologised { order: b(), reason: "again".into() }), "not told once");
    check((None, Entry::Placed { order: "order-1-003".into() }), "was not placed");
}

#[test]
fn every_missing_entry_is_found() {
    let all = ledger().len();
    for missing in 2..all {
        let mut ledger = ledger();
        let (_, removed) = ledger.remove(missing);
        let is_needed = !matches!(removed, Entry::Refused { .. });
        assert_eq!(proof(ledger, &board()).holds(), !is_needed, "without {removed:?}");
    }
}

#[test]
fn an_order_that_is_missing_in_the_store_is_found() {
    let mut forgot = board();
    forgot.ended.remove(&a());
    assert!(proof(ledger(), &forgot).problems.iter().any(|problem| problem.contains("order-1-001: lost")));
    let mut failed = board();
    failed.ended.insert(b(), Err("poison".to_string()));
    assert!(proof(ledger(), &failed).problems.iter().any(|problem| problem.contains("failed: poison")));
}

#[test]
fn killed_workers_are_counted() {
    let mut ledger = ledger();
    ledger.push((None, Entry::WorkerKilled { worker: 1, process: 7 }));
    let text = proof(ledger, &board()).text();
    assert!(text.contains("restarts    0 survived, and 1 worker killed"), "{text}");
}

#[test]
fn cancelled_order_must_be_undone_or_delivered() {
    let cancelled = |order: String| {
        let mut board = board();
        board.ended.insert(order, Ok(Outcome { ending: Ending::Cancelled, note: String::new() }));
        board
    };
    assert_eq!(proof(ledger(), &cancelled(b())).problems, [""; 0], "undone");
    assert_eq!(proof(ledger(), &cancelled(a())).problems, [""; 0], "delivered");
    let mut unpaid = ledger();
    unpaid.retain(|(_, entry)| !matches!(entry, Entry::Refunded { .. }));
    let problems = proof(unpaid, &cancelled(b())).problems;
    assert!(
        problems.iter().any(|problem| problem.contains("order-1-002: cancelled, but money")),
        "{problems:?}"
    );
}
