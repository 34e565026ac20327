//! Calls of operators, and reads.

use super::super::ops::*;
use super::id;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

fn ago() -> impl Strategy<Value = Option<u64>> {
    weighted(0.4, select(&[0, 1, LEASE, 60_000, FOR_EVER][..]))
}

fn bulk() -> impl Strategy<Value = Bulk> {
    (weighted(0.4, vec(id(), 0..4)), ago(), weighted(0.4, 0_u32..3))
        .prop_map(|(ids, finished_ago, limit)| Bulk { ids, finished_ago, limit })
}

pub(super) fn change() -> impl Strategy<Value = Op> {
    let keep = || weighted(0.6, 0_u32..3);
    prop_oneof![
        2 => (id(), keep(), ago())
            .prop_map(|(id, keep_last, finished_ago)| Op::Prune { id, keep_last, finished_ago }),
        1 => (bulk(), keep(), ago())
            .prop_map(|(bulk, keep_last, finished_ago)| Op::PruneBulk { bulk, keep_last, finished_ago }),
        1 => (id(), any::<bool>()).prop_map(|(id, force)| Op::Delete { id, force }),
        1 => (vec(id(), 0..4), any::<bool>()).prop_map(|(ids, force)| Op::DeleteAtomic { ids, force }),
        2 => bulk().prop_map(Op::DeleteBulk),
        1 => orchestration().prop_map(Op::PauseOrchestration),
        1 => orchestration().prop_map(Op::ResumeOrchestration),
    ]
}

fn orchestration() -> impl Strategy<Value = &'static str> {
    select(&["Flow", "Other", "ключ"][..])
}

fn status() -> impl Strategy<Value = &'static str> {
    select(&["Running", "Completed", "Failed", "ContinuedAsNew", "Unknown"][..])
}

pub(super) fn read() -> impl Strategy<Value = Read> {
    let known = || prop_oneof![9 => id(), 1 => Just("nobody")];
    let execution = || 1_u64..4;
    prop_oneof![
        known().prop_map(Read::History),
        (known(), execution()).prop_map(|(id, execution)| Read::Execution(id, execution)),
        known().prop_map(Read::AdminHistory),
        (known(), execution()).prop_map(|(id, execution)| Read::AdminExecution(id, execution)),
        (known(), execution()).prop_map(|(id, execution)| Read::LoadTurn(id, execution)),
        known().prop_map(Read::Outcome),
        (known(), 0_u64..4).prop_map(|(id, seen)| Read::CustomStatus(id, seen)),
        (known(), select(&["k", "ключ", ""][..])).prop_map(|(id, key)| Read::KeyValue(id, key)),
        known().prop_map(Read::KeyValues),
        known().prop_map(Read::Stats),
        Just(Read::Instances),
        status().prop_map(Read::InstancesByStatus),
        known().prop_map(Read::Executions),
        known().prop_map(Read::LatestExecution),
        known().prop_map(Read::Info),
        (known(), execution()).prop_map(|(id, execution)| Read::ExecutionInfo(id, execution)),
        Just(Read::Metrics),
        Just(Read::Depths),
        known().prop_map(Read::Children),
        known().prop_map(Read::Parent),
        known().prop_map(Read::Tree),
        query().prop_map(Read::Query),
        query().prop_map(Read::Query),
        select(&["bogus", "", "+1", "01", "0", "-1", " 1", "9223372036854775808"][..])
            .prop_map(Read::BogusPage),
        (0_usize..4).prop_map(Read::DeadLetters),
        known().prop_map(Read::Held),
        Just(Read::HeldCounts),
        Just(Read::PausedOrchestrations),
        (0_usize..4).prop_map(Read::Audit),
    ]
}

fn query() -> impl Strategy<Value = Query> {
    (
        weighted(0.3, status()),
        weighted(0.2, select(&["Flow", "Other"][..])),
        weighted(0.3, select(&["", "a", "a1", "ö"][..])),
        weighted(0.2, id()),
        weighted(0.3, select(&[0, LEASE, 60_000][..])),
        weighted(0.3, select(&[0, LEASE, 60_000][..])),
        weighted(0.8, 0_u32..3),
    )
        .prop_map(|(status, name, prefix, parent, from_ago, before_ago, limit)| Query {
            status,
            name,
            prefix,
            parent,
            from_ago,
            before_ago,
            limit,
        })
}
