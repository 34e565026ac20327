//! Seeded defects of the server's functions and of statements, which measure the validations: a wrong part in the place of the sound one.

use outlast_model::defect::{Defect, is_on};

/// A statement or migration with the defect of this thread. A defect of another text leaves it unchanged.
pub(crate) fn broken(text: &str) -> String {
    let parts = [
        // hold_1
        (
            is_on(Defect::HoldIgnoresRunningTurn),
            "WHEN v_token <> '' AND v_until > v_now THEN",
            "WHEN false THEN",
        ),
        // hold_turn_1
        (
            is_on(Defect::HeldTurnStaysCounted),
            "attempt_count = CASE WHEN q.lock_token = p_secret THEN 0 ELSE q.attempt_count END",
            "attempt_count = q.attempt_count",
        ),
        // release_1
        (
            is_on(Defect::ReleaseForgetsMessages),
            "SET is_aside = false WHERE q.instance_id = p_instance AND q.is_aside;",
            "SET is_aside = false WHERE false;",
        ),
        // list_held
        (
            is_on(Defect::HeldPageRepeats),
            "WHERE instance_id > $1 ORDER BY instance_id LIMIT $2",
            "WHERE instance_id >= $1 ORDER BY instance_id LIMIT $2",
        ),
        // resume_orchestration
        (
            is_on(Defect::ResumeEndsAllPauses),
            "WHERE orchestration = $1 RETURNING true",
            "WHERE $1 IN (SELECT orchestration FROM {schema}.paused_orchestrations) RETURNING true",
        ),
        // reset_1
        (is_on(Defect::ResetOfOldPosition), " OR v_last IS DISTINCT FROM p_last_event THEN", " THEN"),
        (
            is_on(Defect::ResetKeepsLaterKeys),
            "kv_delta AS d WHERE d.instance_id = p_target;",
            "kv_delta AS d WHERE d.instance_id = p_target AND d.key = ANY (k_key);",
        ),
        (
            is_on(Defect::ForkTakesIdOfStart),
            "WHERE q.instance_id || '' = p_target AND q.begins",
            "WHERE q.instance_id || '' = p_target AND NOT q.begins",
        ),
        (
            is_on(Defect::ResetUnrecorded),
            "result)\n    VALUES (v_now, u_actor, u_action, u_target, u_reason, u_request, u_result);\nEND",
            "result)\n    SELECT v_now, u_actor, u_action, u_target, u_reason, u_request, u_result WHERE v_fork;\nEND",
        ),
        // audit_page
        (
            is_on(Defect::AuditPageRepeats),
            "FROM {schema}.audit\nWHERE id < $1",
            "FROM {schema}.audit\nWHERE id <= $1",
        ),
        // prune_audit
        (is_on(Defect::NewestRecordPruned), " AND a.id < (SELECT max(id) FROM {schema}.audit)", ""),
    ];
    let wrong = parts.into_iter().find(|(is_on, ..)| *is_on);
    wrong.map_or_else(|| text.to_string(), |(_, sound, wrong)| text.replace(sound, wrong))
}
