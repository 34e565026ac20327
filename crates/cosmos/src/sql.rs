//! The queries, by the names of their files. Values are parameters.

macro_rules! queries {
    ($($name:ident = $file:literal;)*) => {
        $(pub(crate) const $name: &str = include_str!(concat!("sql/", $file, ".sql"));)*
    };
}

/// All documents, for tests.
pub(crate) const ALL: &str = include_str!("sql/all.sql");

queries! {
    ACTIVITIES = "activities";
    AUDIT = "audit";
    AUDIT_OLDEST = "audit_oldest";
    CHILDREN = "children";
    COUNTS = "counts";
    DEAD_LETTER = "dead_letter";
    DEAD_LETTER_PAGE = "dead_letter_page";
    DEAD_LETTERS = "dead_letters";
    DEAD_LETTERS_OLDEST = "dead_letters_oldest";
    DUE = "due";
    EXECUTION = "execution";
    EXECUTIONS = "executions";
    FLEET = "fleet";
    FROM_OUTSIDE = "from_outside";
    HELD = "held";
    HELD_SIZES = "held_sizes";
    HELD_SIZES_IN = "held_sizes_in";
    HISTORY = "history";
    INSTANCE_IDS = "instance_ids";
    INSTANCE_IDS_BY_STATUS = "instance_ids_by_status";
    INSTANCES = "instances";
    INSTANCES_OLDEST = "instances_oldest";
    INTENTS = "intents";
    INTENT_OLDEST = "intent_oldest";
    LATER_IN = "later_in";
    LOCKED = "locked";
    MESSAGE_TIMES = "message_times";
    MESSAGES = "messages";
    NODES = "nodes";
    OF_IDS = "of_ids";
    OF_REVS = "of_revs";
    PAIRS = "pairs";
    PARTITION = "partition";
    QUEUE = "queue";
    QUEUED = "queued";
    READY = "ready";
    RECORDS = "records";
    RUNNING = "running";
    RUNNING_IN = "running_in";
    SCHEDULED = "scheduled";
    SESSIONS = "sessions";
    SESSIONS_OF = "sessions_of";
    STARTS = "starts";
    TAGS = "tags";
    TALLIES = "tallies";
    TURN = "turn";
    WAITING = "waiting";
    WAITING_COUNT = "waiting_count";
    WORK_OF_SESSION = "work_of_session";
}
