//! The server's functions: their text, and the codes and columns that both the functions and this crate name.
//!
//! Each function has a file in `migrations/functions`. A code is written there by its name in braces, and its number is known here
//! only. The columns of a function's rows are listed here in their order, and a test compares them with the function.

use crate::mutant::mutated;

macro_rules! functions {
    ($($name:literal),+ $(,)?) => {
        /// All functions, in the order in which they are created.
        pub(crate) const SQL: &str =
            concat!($(include_str!(concat!("../migrations/functions/", $name, ".sql")), "\n"),+);
    };
}

functions!(
    "conventions",
    "now_ms",
    "is_item",
    "lease_new_instances",
    "touch_sessions",
    "waiting_sessions",
    "keep_places",
    "set_aside",
    "hold",
    "hold_turn",
    "release",
    "release_cancelled",
    "reset",
    "import",
    "commit",
    "commit_alone",
    "fetch_turns",
    "settle_turn",
    "fetch_activities",
    "dead_letter_activities",
    "enqueue_messages",
    "enqueue_activities",
    "enqueue_once",
    "start",
    "renew",
    "abandon",
    "append",
    "outcomes",
    "notify",
    "forward_notification",
    "register_listener",
    "own",
    "holds_lease",
    "end_leases",
);

/// Text that several functions share.
const SHARED: [(&str, &str); 3] = [
    ("{commit_parameters}", include_str!("../migrations/functions/commit_parameters.sql")),
    ("{index_lookups_only}", include_str!("../migrations/functions/index_lookups_only.sql")),
    // The end of the lock row that keeps a held instance from fetches. No poll is scheduled for it.
    ("{held_until}", "9223372036854775807"),
];

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)+) => {
        $($(#[$doc])* pub(crate) const $name: i32 = $code;)+
        const CODES: &[(&str, &str)] = &[$((concat!("{", stringify!($name), "}"), stringify!($code))),+];
    };
}

codes!(
    /// A member of `commit`, `renew` or `abandon`: a turn under its lease.
    KIND_TURN = 0,
    /// A member of `commit`, `renew` or `abandon`: an activity under its lease.
    KIND_ACTIVITY = 1,
    /// A member of `commit`: an activity with the turn that its outcome leads to, run ahead.
    KIND_AHEAD = 2,
    /// A member of `commit`: the start of an instance with its first turn.
    KIND_START = 3,
    /// A member of `commit`: several activities with the turn that their outcomes lead to, run ahead.
    KIND_FUSED = 4,
    /// Answer of `commit`: the caller does not hold a lease, the turn of fused outcomes does not follow, or the server knows the
    /// instance of a start; nothing is stored.
    COMMIT_REFUSED = 0,
    /// Answer of `commit`: the member is stored.
    COMMIT_DONE = 1,
    /// Answer of `commit`: the outcome of an activity is stored and waits for a turn. The turn ahead is not stored.
    COMMIT_QUEUED = 2,
    /// Action of `settle_turn`: the message becomes a dead letter.
    FATE_DEAD_LETTER = 0,
    /// Action of `settle_turn`: the message is removed.
    FATE_DROPPED = 1,
    /// Action of `settle_turn`: the message is given back, and visible later.
    FATE_DELAYED = 2,
    /// Answer of `hold`: the instance is held.
    HOLD_DONE = 0,
    /// Answer of `hold`: the instance was held before.
    HOLD_ALREADY = 1,
    /// Answer of `hold`: a turn of the instance runs.
    HOLD_IN_TURN = 2,
    /// Answer of `hold`: the instance has ended.
    HOLD_ENDED = 3,
    /// Answer of `hold`: there is no such instance.
    HOLD_NOT_FOUND = 4,
    /// Answer of `hold` and `hold_turn`: a cancellation waits for the instance.
    HOLD_CANCELLED = 5,
    /// Answer of `reset`: the new execution is stored.
    RESET_DONE = 0,
    /// Answer of `reset`: a turn of the source runs.
    RESET_IN_TURN = 1,
    /// Answer of `reset`: the newest execution of the source is another one, or has other events.
    RESET_CHANGED = 2,
    /// Answer of `reset`: the id of a fork is taken.
    RESET_TAKEN = 3,
    /// Answer of `reset`: there is no such instance.
    RESET_NOT_FOUND = 4,
    /// Answer of `enqueue_once`: the message and its key are stored.
    ONCE_STORED = 0,
    /// Answer of `enqueue_once`: the key was stored before.
    ONCE_REPEATED = 1,
    /// Answer of `enqueue_once`: the instance has ended.
    ONCE_ENDED = 2,
    /// Answer of `enqueue_once`: there is no such instance.
    ONCE_NOT_FOUND = 3,
    /// Answer of `enqueue_once`: too many messages wait for the instance.
    ONCE_FULL = 4,
    /// `fetch_turns` leaves the texts of a turn with this many bytes of messages out: the caller reads them later.
    LARGE_BYTES = 1048576,
    /// A poll that reads this many messages of leased instances reports it.
    #[allow(dead_code, reason = "only functions of the server name it")]
    MANY_SKIPPED = 256,
);

/// A migration with shared text and codes put in.
pub(crate) fn expanded(sql: &str) -> String {
    let body = mutated(COMMIT_BODY).replace("{turn_writes}", &mutated(TURN_WRITES));
    let text = mutated(sql)
        .replace("{commit_of_batch}", &Form::Batch.of(&body))
        .replace("{commit_alone}", &Form::Alone.of(&body));
    SHARED.iter().chain(CODES).fold(text, |text, (name, value)| text.replace(name, value.trim_end()))
}

/// The fences, the writes and the answers of a commit. `commit_1` and `commit_alone_1` each contain a form of this text:
///
/// | text | in `commit_1`, for a batch of members | in `commit_alone_1` |
/// |---|---|---|
/// | `{batch}..{end}` | `..` | |
/// | `{alone}..{end}` | | `..` |
/// | `{from m}`, `{using m}`, `{join m}` | the members, with the columns that the statement names | |
/// | `{m.name}` | the column of a member | the only element of `p_name`, or a variable ([`VARIABLES`]) |
/// | `{of h.name}` | the column of the member of a row of `h` | the same |
/// | `{= m.name}` | a comparison that cannot become a join | a comparison |
/// | `{writes m}` | whether the turn of the member is written | `true` |
/// | `{turn m}` | the same | a variable |
/// | `{passed m}` | whether the member has passed its fence | a variable |
const COMMIT_BODY: &str = include_str!("../migrations/functions/commit_body.sql");
/// The part of [`COMMIT_BODY`] that writes turns.
const TURN_WRITES: &str = include_str!("../migrations/functions/turn_writes.sql");

/// Columns that `commit_alone_1` has as variables: many statements use them, and a variable is faster than an element.
const VARIABLES: [&str; 8] =
    ["kind", "instance", "secret", "execution", "status", "name", "version", "ended"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Batch,
    Alone,
}

impl Form {
    fn of(self, text: &str) -> String {
        let text = self.sections(text.trim_end());
        text.split_inclusive(';').map(|statement| self.statement(statement)).collect()
    }

    /// The text with the sections of this form, and without the sections of the other form.
    fn sections(self, text: &str) -> String {
        let (kept, dropped) = match self {
            Self::Batch => ("{batch}", "{alone}"),
            Self::Alone => ("{alone}", "{batch}"),
        };
        let mut parts = text.split(dropped);
        let first = parts.next().unwrap_or_default();
        let rest = parts.filter_map(|part| part.split_once("{end}")).map(|(_, rest)| rest);
        std::iter::once(first).chain(rest).collect::<String>().replace(kept, "").replace("{end}", "")
    }

    /// One statement, with the columns of the members that the statement names, or for a lone commit.
    fn statement(self, statement: &str) -> String {
        let mut columns: Vec<&str> = Vec::new();
        for part in statement.split("m.").skip(1) {
            if let Some((column, _)) = part.split_once('}').filter(|(column, _)| is_column(column))
                && !columns.contains(&column)
            {
                columns.push(column);
            }
        }
        let named =
            |prefix: &str| columns.iter().map(|column| format!(", {prefix}{column}")).collect::<String>();
        let members = format!("unnest(p_member{}) AS m (member{})", named("p_"), named(""));
        let mut text = statement.to_string();
        for (place, before) in [("{from m}", "FROM"), ("{using m}", "USING"), ("{join m}", "CROSS JOIN")] {
            let list = match self {
                Self::Batch => format!("{before} {members}"),
                Self::Alone => String::new(),
            };
            text = text.replace(place, &list);
        }
        for (place, variable) in [("{passed m}", "v_passed"), ("{turn m}", "v_turn")] {
            let value = match self {
                Self::Batch => format!("{variable}[m.member]"),
                Self::Alone => variable.to_string(),
            };
            text = text.replace(place, &value);
        }
        let only = |column: &str| match VARIABLES.contains(&column) {
            true => format!("v_{column}"),
            false => format!("p_{column}[1]"),
        };
        for column in &columns {
            let (value, equals) = match self {
                Self::Batch => (format!("m.{column}"), format!("= ANY (ARRAY[m.{column}])")),
                Self::Alone => (only(column), format!("= {}", only(column))),
            };
            text = text.replace(&format!("{{m.{column}}}"), &value);
            text = text.replace(&format!("{{= m.{column}}}"), &equals);
        }
        for list in ["m", "h", "k", "c", "q", "f"] {
            let writes = match self {
                Self::Batch => format!("v_turn[{list}.member]"),
                Self::Alone => "true".to_string(),
            };
            text = text.replace(&format!("{{writes {list}}}"), &writes);
            for column in ["instance", "execution"] {
                let value = match self {
                    Self::Batch => format!("p_{column}[{list}.member]"),
                    Self::Alone => only(column),
                };
                text = text.replace(&format!("{{of {list}.{column}}}"), &value);
            }
        }
        text
    }
}

fn is_column(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
}

macro_rules! columns {
    ($(#[$doc:meta])* $function:ident { $($name:ident = $column:literal,)+ }) => {
        $(#[$doc])*
        #[allow(dead_code, reason = "a list of columns has no gaps")]
        pub(crate) mod $function {
            #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "each name is a column's constant")]
            enum Index { $($name,)+ }
            $(pub(crate) const $name: usize = Index::$name as usize;)+
            #[cfg(test)]
            pub(crate) const NAMES: &[&str] = &[$($column,)+];
        }
    };
}

columns!(
    /// Columns of `commit` and `commit_alone`. A row without a member has an activity that was handed off.
    commit {
        MEMBER = "o_member",
        ANSWER = "o_answer",
        AT = "o_at",
        HAS_MORE_MESSAGES = "o_more",
        ACTIVITY_ID = "o_id",
        SECRET = "o_secret",
        NAME = "o_name",
        VERSION = "o_version",
        CUSTOM_STATUS = "o_custom_status",
        CUSTOM_STATUS_VERSION = "o_custom_version",
    }
);

columns!(
    /// Columns of `enqueue_messages`. A row with a secret has a message that was handed off.
    enqueue_messages {
        MEMBER = "o_member",
        VISIBLE_AT = "o_visible_at",
        AT = "o_now",
        MESSAGE_ID = "o_id",
        SECRET = "o_secret",
    }
);

columns!(
    /// Columns of `start`. A row without a member has a start that was handed off.
    start {
        MEMBER = "o_member",
        IS_TAKEN = "o_taken",
        STATUS = "o_status",
        AT = "o_now",
        MESSAGE_ID = "o_id",
        SECRET = "o_secret",
    }
);

columns!(
    /// Columns of `fetch_turns`. A row without an instance holds only the time at which a turn becomes fetchable, and whether the
    /// poll has skipped many messages.
    fetch_turns {
        SECRET = "o_secret",
        INSTANCE = "o_instance",
        NAME = "o_name",
        VERSION = "o_version",
        EXECUTION = "o_execution",
        LAST_EVENT = "o_last_event",
        CREATED_AT = "o_created_at",
        HAS_ENDED = "o_ended",
        HAS_HISTORY = "o_has_history",
        START_DUE = "o_start_due",
        NOW = "o_now",
        MESSAGE_IDS = "o_ids",
        MESSAGES = "o_items",
        AVAILABLE_AT = "o_available",
        ATTEMPTS = "o_attempts",
        NEXT_DUE = "o_next",
        IS_PARTIAL = "o_partial",
        LEFT_OUT_BYTES = "o_left_out_bytes",
        HAS_SKIPPED_MANY = "o_skipped",
    }
);

columns!(
    /// Columns of `fetch_activities`. A row without a lease holds only the time at which an activity becomes fetchable.
    fetch_activities {
        NTH = "o_nth",
        ID = "o_id",
        ITEM = "o_item",
        INSTANCE = "o_instance",
        SESSION = "o_session",
        ATTEMPTS = "o_attempts",
        NAME = "o_name",
        VERSION = "o_version",
        NOW = "o_now",
        NEXT_DUE = "o_next",
        SECRET = "o_secret",
        HAS_SESSIONS = "o_sessions",
        FAILURES = "o_failures",
        LAST_ERROR = "o_last_error",
    }
);

columns!(
    /// Columns of `outcomes`.
    outcomes {
        INSTANCE = "o_instance",
        EXECUTION = "o_execution",
        STATUS = "o_status",
        OUTPUT = "o_output",
        TERMINAL_EVENT = "o_terminal",
        CUSTOM_STATUS = "o_custom_status",
        CUSTOM_STATUS_VERSION = "o_custom_version",
    }
);

/// The only column of `renew` and `abandon`.
pub(crate) const MEMBER: usize = 0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::SchemaName;

    /// The names of a function's columns: those of its table, or its `OUT` parameters.
    fn columns_of(function: &str) -> Vec<&'static str> {
        let (_, text) = SQL.split_once(&format!("CREATE FUNCTION {{schema}}.{function}_1(")).unwrap();
        let (head, _) = text.split_once("LANGUAGE").unwrap();
        let list = match head.split_once("RETURNS TABLE (") {
            Some((_, list)) => list,
            None => head,
        };
        let words = |column: &'static str| column.split_whitespace().find(|word| word.starts_with("o_"));
        list.split(',').filter_map(words).collect()
    }

    #[test]
    fn listed_columns_equal_the_columns_of_the_functions() {
        let all = [
            ("commit", commit::NAMES),
            ("commit_alone", commit::NAMES),
            ("enqueue_messages", enqueue_messages::NAMES),
            ("start", start::NAMES),
            ("fetch_turns", fetch_turns::NAMES),
            ("fetch_activities", fetch_activities::NAMES),
            ("outcomes", outcomes::NAMES),
        ];
        for (function, names) in all {
            assert_eq!(columns_of(function), names, "{function}");
        }
    }

    #[test]
    fn body_of_a_commit_has_a_form_for_a_batch_and_one_for_a_lone_commit() {
        let text = "UPDATE t SET a = {m.a}, n = {m.name} {from m} WHERE {writes m} AND t.a {= m.a}; \
                    {batch}B;{end}{alone}A{end} {of h.instance} {writes h}; DELETE {using m} WHERE {passed m} AND {turn m} AND {m.kind} = 1;";
        let batch = "UPDATE t SET a = m.a, n = m.name FROM unnest(p_member, p_a, p_name) AS m (member, a, name) \
             WHERE v_turn[m.member] AND t.a = ANY (ARRAY[m.a]); B; p_instance[h.member] v_turn[h.member]; \
             DELETE USING unnest(p_member, p_kind) AS m (member, kind) WHERE v_passed[m.member] AND v_turn[m.member] AND m.kind = 1;";
        assert_eq!(Form::Batch.of(text), batch);
        let alone = "UPDATE t SET a = p_a[1], n = v_name  WHERE true AND t.a = p_a[1]; A v_instance true; \
             DELETE  WHERE v_passed AND v_turn AND v_kind = 1;";
        assert_eq!(Form::Alone.of(text), alone);
    }

    #[test]
    fn cleanup_drops_every_function() {
        let drops = include_str!("sql/drop_objects.sql");
        let names = SQL.split("CREATE FUNCTION {schema}.").skip(1).filter_map(|text| text.split_once('('));
        for (name, _) in names {
            let listed = name.strip_suffix("_1").unwrap_or(name);
            assert!(
                drops.contains(&format!("{listed}|"))
                    || drops.contains(&format!("{listed})"))
                    || listed == "now_ms",
                "{name}"
            );
        }
    }

    #[test]
    fn every_name_in_braces_is_replaced() {
        let text = SchemaName::checked("s").unwrap().put_into(&expanded(SQL));
        let left = text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
        let is_name = |name: &&str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_ .=".contains(c))
        };
        assert_eq!(left.filter(is_name).collect::<Vec<_>>(), [""; 0]);
        assert_eq!(text.matches("CREATE FUNCTION").count(), 33);
    }
}
