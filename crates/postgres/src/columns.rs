//! Parameters of the server's functions: each kind of request in a transaction is one call, whatever the number of its members.

use crate::ask::{ActivityAsk, TurnAsk};
use crate::batch::instance_of;
use crate::db::{Param, column, id_column, key_column, span};
use crate::functions::{KIND_ACTIVITY, KIND_AHEAD, KIND_FUSED, KIND_START, KIND_TURN};
use crate::request::{Abandon, Activity, ActivityLease, Commit, Fence, Lease, Message, Renew, Start};
use crate::text::{owned, owned_option};
use crate::transaction::{ActivityHandOffs, TurnHandOffs};
use crate::{PostgresError, eligibility};
use outlast_provider::{StartPolicy, saturating_ms};
use outlast_provider_kit::pin::{PinColumns, sort_key};
use outlast_provider_kit::{CommitPlan, KvChange};
use std::collections::BTreeMap;
use tokio_postgres::types::Type;

macro_rules! columns {
    ($(#[$doc:meta])* $name:ident { $($column:ident: $element:ty => $type:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(crate) struct $name {
            $($column: Vec<$element>,)+
        }

        impl $name {
            /// The columns, in the order of the function's parameters.
            pub(crate) fn params(&self) -> Vec<Param<'_>> {
                vec![$((&self.$column as _, Type::$type),)+]
            }
        }
    };
}

columns!(
    /// The parameters of `commit_1`.
    CommitColumns {
        member: i32 => INT4_ARRAY, kind: i32 => INT4_ARRAY, instance: String => TEXT_ARRAY, secret: Vec<u8> => BYTEA_ARRAY,
        activity_row: i64 => INT8_ARRAY, inputs: i32 => INT4_ARRAY,
        completion: Option<String> => TEXT_ARRAY, after: i64 => INT8_ARRAY, ran_at: i64 => INT8_ARRAY,
        execution: i64 => INT8_ARRAY, name: Option<String> => TEXT_ARRAY, version: Option<String> => TEXT_ARRAY,
        parent: Option<String> => TEXT_ARRAY, raises: bool => BOOL_ARRAY,
        status: Option<String> => TEXT_ARRAY, output: Option<String> => TEXT_ARRAY, ended: bool => BOOL_ARRAY,
        last_event: i64 => INT8_ARRAY, terminal: Option<i64> => INT8_ARRAY,
        pin: Option<String> => TEXT_ARRAY, pin_key: Option<String> => TEXT_ARRAY,
        sets_status: bool => BOOL_ARRAY, custom_status: Option<String> => TEXT_ARRAY, clears: bool => BOOL_ARRAY,
        h_member: i32 => INT4_ARRAY, h_event: i64 => INT8_ARRAY, h_type: &'static str => TEXT_ARRAY, h_data: String => TEXT_ARRAY,
        a_member: i32 => INT4_ARRAY, a_item: String => TEXT_ARRAY, a_instance: String => TEXT_ARRAY,
        a_execution: i64 => INT8_ARRAY, a_activity: i64 => INT8_ARRAY, a_session: Option<String> => TEXT_ARRAY,
        a_tag: Option<String> => TEXT_ARRAY, a_secret: Option<Vec<u8>> => BYTEA_ARRAY, a_lock_ms: i64 => INT8_ARRAY,
        c_member: i32 => INT4_ARRAY, c_instance: String => TEXT_ARRAY, c_execution: i64 => INT8_ARRAY,
        c_activity: i64 => INT8_ARRAY,
        m_member: i32 => INT4_ARRAY, m_instance: String => TEXT_ARRAY, m_item: String => TEXT_ARRAY,
        m_not_before: i64 => INT8_ARRAY, m_begins: bool => BOOL_ARRAY,
        k_member: i32 => INT4_ARRAY, k_key: String => TEXT_ARRAY, k_value: Option<String> => TEXT_ARRAY,
        k_at: Option<i64> => INT8_ARRAY,
        f_member: i32 => INT4_ARRAY, f_row: i64 => INT8_ARRAY, f_secret: Vec<u8> => BYTEA_ARRAY,
    }
);

impl CommitColumns {
    pub(crate) fn of(commits: &[Commit], handed: &ActivityHandOffs) -> Result<Self, PostgresError> {
        let mut all = Self::default();
        for (member, commit) in (1..).zip(commits) {
            all.add(member, commit)?;
        }
        (all.a_secret, all.a_lock_ms) = handed.columns(0..all.a_item.len());
        all.add_fused(commits);
        Ok(all)
    }

    /// The leases of fused outcomes, in the order in which every transaction locks rows of activities.
    fn add_fused(&mut self, commits: &[Commit]) {
        let of_member = |(member, commit): (i32, &Commit)| match &commit.fence {
            Fence::Fused { leases, .. } => leases.iter().map(|lease| (*lease, member)).collect(),
            Fence::Lease(_) | Fence::Unknown { .. } => Vec::new(),
        };
        let mut fused: Vec<(ActivityLease, i32)> = (1..).zip(commits).flat_map(of_member).collect();
        fused.sort_unstable_by_key(|(lease, _)| lease.id);
        for (lease, member) in fused {
            self.f_member.push(member);
            self.f_row.push(lease.id);
            self.f_secret.push(lease.secret.to_vec());
        }
    }

    /// Adds a commit: its fence, its outcome and its turn.
    fn add(&mut self, member: i32, commit: &Commit) -> Result<(), PostgresError> {
        self.member.push(member);
        self.instance.push(owned(instance_of(commit)));
        self.secret.push(commit.fence.lease().map(|lease| lease.secret().to_vec()).unwrap_or_default());
        let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        // The server stores a turn ahead only if its execution is the current one.
        let of_turn_ahead = commit.plan.as_ref().map_or(0, |plan| plan.execution_id);
        let (activity_row, inputs, current) = match &commit.fence {
            Fence::Lease(Lease::Turn { at_fetch, .. }) => {
                (0, count(at_fetch.messages), at_fetch.current_execution)
            }
            Fence::Lease(Lease::Activity { id, .. }) => (*id, 0, of_turn_ahead),
            Fence::Fused { leases, .. } => (0, count(leases.len()), of_turn_ahead),
            Fence::Unknown { .. } => (0, 0, 0),
        };
        self.activity_row.push(activity_row);
        self.inputs.push(inputs);
        self.kind.push(match (&commit.fence, &commit.ahead) {
            (Fence::Lease(Lease::Turn { .. }), _) => KIND_TURN,
            (Fence::Lease(Lease::Activity { .. }), None) => KIND_ACTIVITY,
            (Fence::Lease(Lease::Activity { .. }), Some(_)) => KIND_AHEAD,
            (Fence::Fused { .. }, _) => KIND_FUSED,
            (Fence::Unknown { .. }, _) => KIND_START,
        });
        self.completion.push(commit.completion.as_ref().map(|row| row.work_item.clone()));
        let (after, ran_at) = commit.ahead.unwrap_or_default();
        self.after.push(id_column("event id", after)?);
        self.ran_at.push(column(ran_at));
        match &commit.plan {
            Some(plan) => self.add_turn(member, plan, current),
            None => {
                self.add_nothing();
                Ok(())
            }
        }
    }

    /// Adds an empty turn, for an outcome of an activity without a turn.
    fn add_nothing(&mut self) {
        self.execution.push(0);
        for texts in [
            &mut self.name,
            &mut self.version,
            &mut self.parent,
            &mut self.status,
            &mut self.output,
            &mut self.pin,
            &mut self.pin_key,
            &mut self.custom_status,
        ] {
            texts.push(None);
        }
        for flags in [&mut self.raises, &mut self.ended, &mut self.sets_status, &mut self.clears] {
            flags.push(false);
        }
        self.last_event.push(0);
        self.terminal.push(None);
    }

    /// Adds the writes of a turn. `current` is the current execution of the instance before the turn, 0 for the first turn of a start.
    fn add_turn(&mut self, member: i32, plan: &CommitPlan, current: u64) -> Result<(), PostgresError> {
        let metadata = &plan.metadata;
        let is_named = metadata.orchestration_name.is_some() && metadata.orchestration_version.is_some();
        self.execution.push(id_column("execution id", plan.execution_id)?);
        self.name.push(owned_option(metadata.orchestration_name.as_ref()));
        self.version.push(owned_option(metadata.orchestration_version.as_ref()));
        self.parent.push(owned_option(metadata.parent_instance_id.as_ref()));
        self.raises.push(!is_named && (1..plan.execution_id).contains(&current));
        self.status.push(owned_option(metadata.status.as_ref()));
        self.output.push(owned_option(metadata.output.as_ref()));
        self.ended.push(plan.ends_execution());
        self.last_event.push(id_column("event id", plan.last_event_id().unwrap_or(0))?);
        self.terminal.push(plan.terminal_event_id.map(column));
        let pin = metadata.pinned_duroxide_version.as_ref().map(|version| PinColumns::of(version).version());
        self.pin_key.push(pin.as_ref().map(sort_key));
        self.pin.push(pin.map(|version| version.to_string()));
        self.sets_status.push(plan.custom_status.is_some());
        self.custom_status.push(owned_option(plan.custom_status.as_ref().and_then(Option::as_ref)));
        for row in &plan.history {
            self.h_member.push(member);
            self.h_event.push(id_column("event id", row.event_id)?);
            self.h_type.push(row.event_type);
            self.h_data.push(row.event_data.clone());
        }
        for row in &plan.activities {
            self.a_member.push(member);
            self.a_item.push(row.work_item.clone());
            self.a_instance.push(owned(&row.instance_id));
            self.a_execution.push(id_column("execution id", row.execution_id)?);
            self.a_activity.push(key_column(row.activity_id));
            self.a_session.push(owned_option(row.session_id.as_ref()));
            self.a_tag.push(owned_option(row.tag.as_ref()));
        }
        for activity in &plan.cancelled {
            self.c_member.push(member);
            self.c_instance.push(owned(&activity.instance));
            self.c_execution.push(id_column("execution id", activity.execution_id)?);
            self.c_activity.push(key_column(activity.activity_id));
        }
        for row in &plan.messages {
            self.m_member.push(member);
            self.m_instance.push(owned(&row.instance_id));
            self.m_item.push(row.work_item.clone());
            self.m_not_before.push(column(row.not_before));
            self.m_begins.push(row.begins);
        }
        self.add_keys(member, &plan.kv);
        Ok(())
    }

    /// Reduces the key-value changes of a turn to whether it clears all keys, and the last change of each key that it names.
    fn add_keys(&mut self, member: i32, changes: &[KvChange]) {
        let mut clears = false;
        let mut keys: BTreeMap<&str, (Option<&String>, Option<u64>)> = BTreeMap::new();
        for change in changes {
            match change {
                KvChange::Set { key, value, last_updated_at_ms } => {
                    keys.insert(key, (Some(value), Some(*last_updated_at_ms)));
                }
                KvChange::Clear { key } => drop(keys.insert(key, (None, None))),
                KvChange::ClearAll => {
                    clears = true;
                    keys.values_mut().for_each(|value| *value = (None, None));
                }
            }
        }
        self.clears.push(clears);
        for (key, (value, at)) in keys {
            self.k_member.push(member);
            self.k_key.push(owned(key));
            self.k_value.push(owned_option(value));
            self.k_at.push(at.map(column));
        }
    }
}

columns!(
    /// The parameters of `enqueue_messages_1`.
    MessageColumns {
        member: i32 => INT4_ARRAY, instance: String => TEXT_ARRAY, item: String => TEXT_ARRAY, delay: i64 => INT8_ARRAY,
        not_before: i64 => INT8_ARRAY, begins: bool => BOOL_ARRAY, most: Option<i64> => INT8_ARRAY,
        secret: Option<Vec<u8>> => BYTEA_ARRAY, lock_ms: i64 => INT8_ARRAY,
    }
);

impl MessageColumns {
    pub(crate) fn of(messages: &[Message], handed: &TurnHandOffs) -> Self {
        let mut all = Self::default();
        for (member, message) in (1..).zip(messages) {
            all.member.push(member);
            all.instance.push(owned(&message.row.instance_id));
            all.item.push(message.row.work_item.clone());
            all.delay.push(span(message.delay_ms));
            all.not_before.push(column(message.row.not_before));
            all.begins.push(message.begins);
            all.most.push(message.most.map(|most| column(most as u64)));
        }
        (all.secret, all.lock_ms) = handed.columns(0..messages.len());
        all
    }
}

columns!(
    /// The parameters of `enqueue_activities_1`.
    ActivityColumns {
        item: String => TEXT_ARRAY, instance: String => TEXT_ARRAY, execution: i64 => INT8_ARRAY, activity: i64 => INT8_ARRAY,
        session: Option<String> => TEXT_ARRAY, tag: Option<String> => TEXT_ARRAY,
    }
);

impl ActivityColumns {
    pub(crate) fn of(activities: &[Activity]) -> Result<Self, PostgresError> {
        let mut all = Self::default();
        for Activity { row, .. } in activities {
            all.item.push(row.work_item.clone());
            all.instance.push(owned(&row.instance_id));
            all.execution.push(id_column("execution id", row.execution_id)?);
            all.activity.push(key_column(row.activity_id));
            all.session.push(owned_option(row.session_id.as_ref()));
            all.tag.push(owned_option(row.tag.as_ref()));
        }
        Ok(all)
    }
}

columns!(
    /// The parameters of `start_1`.
    StartColumns {
        member: i32 => INT4_ARRAY, instance: String => TEXT_ARRAY, item: String => TEXT_ARRAY, delay: i64 => INT8_ARRAY,
        use_existing: bool => BOOL_ARRAY, secret: Option<Vec<u8>> => BYTEA_ARRAY, lock_ms: i64 => INT8_ARRAY,
        m_member: i32 => INT4_ARRAY, m_item: String => TEXT_ARRAY,
    }
);

impl StartColumns {
    /// `messages`: the number of messages, which precede the starts among the items that can be handed off.
    pub(crate) fn of(starts: &[Start], messages: usize, handed: &TurnHandOffs) -> Self {
        let mut all = Self::default();
        for (member, start) in (1..).zip(starts) {
            all.member.push(member);
            all.instance.push(owned(&start.start.instance_id));
            all.item.push(start.start.work_item.clone());
            all.delay.push(span(start.delay_ms));
            all.use_existing.push(start.policy == StartPolicy::UseExisting);
            for message in &start.messages {
                all.m_member.push(member);
                all.m_item.push(message.work_item.clone());
            }
        }
        (all.secret, all.lock_ms) = handed.columns(messages..messages + starts.len());
        all
    }
}

columns!(
    /// The parameters of `renew_1`.
    RenewColumns {
        member: i32 => INT4_ARRAY, kind: i32 => INT4_ARRAY, instance: String => TEXT_ARRAY, activity_row: i64 => INT8_ARRAY,
        secret: Vec<u8> => BYTEA_ARRAY, extend: i64 => INT8_ARRAY,
    }
);

impl RenewColumns {
    pub(crate) fn of(renewals: &[Renew]) -> Self {
        let mut all = Self::default();
        for (member, renew) in (1..).zip(renewals) {
            let (kind, instance, activity_row) = place(&renew.lease);
            all.member.push(member);
            all.kind.push(kind);
            all.instance.push(instance);
            all.activity_row.push(activity_row);
            all.secret.push(renew.lease.secret().to_vec());
            all.extend.push(span(renew.extend_ms));
        }
        all
    }
}

columns!(
    /// The parameters of `abandon_1`.
    AbandonColumns {
        member: i32 => INT4_ARRAY, kind: i32 => INT4_ARRAY, instance: String => TEXT_ARRAY, activity_row: i64 => INT8_ARRAY,
        secret: Vec<u8> => BYTEA_ARRAY, delay: Option<i64> => INT8_ARRAY, ignore: bool => BOOL_ARRAY,
        holds_back: bool => BOOL_ARRAY, note: Option<String> => TEXT_ARRAY,
    }
);

impl AbandonColumns {
    pub(crate) fn of(abandons: &[Abandon]) -> Self {
        let mut all = Self::default();
        for (member, abandon) in (1..).zip(abandons) {
            let (kind, instance, activity_row) = place(&abandon.lease);
            all.member.push(member);
            all.kind.push(kind);
            all.instance.push(instance);
            all.activity_row.push(activity_row);
            all.secret.push(abandon.lease.secret().to_vec());
            all.delay.push(abandon.delay_ms.map(span));
            all.ignore.push(abandon.ignore_attempt);
            let is_partial = matches!(&abandon.lease, Lease::Turn { at_fetch, .. } if at_fetch.is_partial);
            all.holds_back.push(is_partial && abandon.delay_ms.is_some());
            all.note.push(abandon.note.as_deref().map(owned));
        }
        all
    }
}

/// The kind of a lease, and its key: an instance or a row.
fn place(lease: &Lease) -> (i32, String, i64) {
    match lease {
        Lease::Turn { at_fetch, .. } => (KIND_TURN, owned(&at_fetch.instance), 0),
        Lease::Activity { id, .. } => (KIND_ACTIVITY, String::new(), *id),
    }
}

/// The parameters of `fetch_turns_1`, for fetches with the same terms.
pub(crate) struct TurnColumns<'a> {
    secrets: &'a Vec<Vec<u8>>,
    lock_ms: i64,
    lowest: Option<Vec<String>>,
    highest: Option<Vec<String>>,
    asks_next: bool,
    messages: i64,
    bytes: i64,
}

impl<'a> TurnColumns<'a> {
    pub(crate) fn of(ask: &TurnAsk, secrets: &'a Vec<Vec<u8>>, asks_next: bool) -> Self {
        let (lowest, highest) = eligibility::unzipped(eligibility::ranges(ask.filter.as_ref()));
        let (messages, bytes) = (span(ask.bound.messages as u64), span(ask.bound.bytes as u64));
        Self { secrets, lock_ms: span(ask.lock_ms), lowest, highest, asks_next, messages, bytes }
    }

    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        vec![
            (self.secrets as _, Type::BYTEA_ARRAY),
            (&self.lock_ms as _, Type::INT8),
            (&self.lowest as _, Type::TEXT_ARRAY),
            (&self.highest as _, Type::TEXT_ARRAY),
            (&self.asks_next as _, Type::BOOL),
            (&self.messages as _, Type::INT8),
            (&self.bytes as _, Type::INT8),
        ]
    }
}

/// The parameters of `fetch_activities_1`, for fetches that ask for the same tags.
pub(crate) struct ActivityAskColumns<'a> {
    secrets: &'a Vec<Vec<u8>>,
    owners: Vec<Option<String>>,
    session_ms: Vec<i64>,
    lock_ms: i64,
    tags: Option<Vec<String>>,
    asks_next: bool,
}

impl<'a> ActivityAskColumns<'a> {
    /// `asks`: the ask of each lease that is wanted.
    pub(crate) fn of(
        ask: &ActivityAsk,
        asks: &[&ActivityAsk],
        secrets: &'a Vec<Vec<u8>>,
        asks_next: bool,
    ) -> Self {
        let session_ms = |ask: &&ActivityAsk| {
            ask.session.as_ref().map_or(0, |session| span(saturating_ms(session.lock_timeout)))
        };
        Self {
            secrets,
            owners: asks.iter().map(|ask| eligibility::owner(ask)).collect(),
            session_ms: asks.iter().map(session_ms).collect(),
            lock_ms: span(ask.lock_ms),
            tags: eligibility::tags(&ask.tags),
            asks_next,
        }
    }

    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        vec![
            (self.secrets as _, Type::BYTEA_ARRAY),
            (&self.owners as _, Type::TEXT_ARRAY),
            (&self.session_ms as _, Type::INT8_ARRAY),
            (&self.lock_ms as _, Type::INT8),
            (&self.tags as _, Type::TEXT_ARRAY),
            (&self.asks_next as _, Type::BOOL),
        ]
    }
}
