//! The search for calls in the body of an orchestration that give another value when the body is run again.
//!
//! The scan sees names only. It refuses a path that can hardly be anything else, and lets every other path pass: a wrong refusal is
//! worse than a miss.

use crate::options::Options;
use syn::visit::{self, Visit};
use syn::{Block, Error, Expr, ExprCall, ExprPath, Ident, Macro};

/// The rules that `allow(..)` can switch off.
pub(crate) const RULES: &[&str] = &["clock", "random", "sleep", "spawn", "io", "select"];

const CLOCK: &str = "`ctx.utc_now().await?`";
const RANDOM: &str = "`ctx.new_guid().await?`, or draw the number in an activity";
const TIMER: &str = "`ctx.sleep(..).await`";
const TASKS: &str = "`ctx.join_all(..)`, a child orchestration or an activity";
const ACTIVITY: &str = "an activity";

/// The rule, the last segments of the path, and the replacement. A path of the table also matches with segments before it.
const REFUSED: &[(&str, &[&str], &str)] = &[
    ("clock", &["SystemTime", "now"], CLOCK),
    ("clock", &["Instant", "now"], CLOCK),
    ("clock", &["Utc", "now"], CLOCK),
    ("clock", &["Local", "now"], CLOCK),
    ("clock", &["Zoned", "now"], CLOCK),
    ("clock", &["OffsetDateTime", "now_utc"], CLOCK),
    ("random", &["rand", "random"], RANDOM),
    ("random", &["rand", "rng"], RANDOM),
    ("random", &["rand", "thread_rng"], RANDOM),
    ("random", &["fastrand", "u32"], RANDOM),
    ("random", &["fastrand", "u64"], RANDOM),
    ("random", &["Uuid", "new_v4"], RANDOM),
    ("random", &["Uuid", "now_v7"], RANDOM),
    ("sleep", &["tokio", "time", "sleep"], TIMER),
    ("sleep", &["tokio", "time", "sleep_until"], TIMER),
    ("sleep", &["tokio", "time", "timeout"], "`ctx.select2(..)` with a timer, or `.within(..)`"),
    ("sleep", &["thread", "sleep"], TIMER),
    ("spawn", &["tokio", "spawn"], TASKS),
    ("spawn", &["tokio", "task", "spawn"], TASKS),
    ("spawn", &["tokio", "task", "spawn_blocking"], ACTIVITY),
    ("spawn", &["thread", "spawn"], ACTIVITY),
    ("io", &["reqwest", "get"], ACTIVITY),
    ("io", &["std", "fs", "read"], ACTIVITY),
    ("io", &["std", "fs", "read_to_string"], ACTIVITY),
    ("io", &["std", "fs", "write"], ACTIVITY),
    ("io", &["tokio", "fs", "read"], ACTIVITY),
    ("io", &["tokio", "fs", "read_to_string"], ACTIVITY),
    ("io", &["tokio", "fs", "write"], ACTIVITY),
    ("io", &["std", "env", "var"], "the input, or an activity"),
    ("io", &["env", "var"], "the input, or an activity"),
];

pub(crate) fn check(block: &Block, options: &Options) -> syn::Result<()> {
    let mut scan = Scan { allow: &options.allow, found: Vec::new() };
    scan.visit_block(block);
    let all = scan.found.into_iter().reduce(|mut all, one| {
        all.combine(one);
        all
    });
    all.map_or(Ok(()), Err)
}

struct Scan<'a> {
    allow: &'a [Ident],
    found: Vec<Error>,
}

impl Scan<'_> {
    fn is_allowed(&self, rule: &str) -> bool {
        self.allow.iter().any(|allowed| allowed == rule)
    }

    fn check_path(&mut self, path: &ExprPath) {
        let segments: Vec<String> =
            path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let ends_with = |tail: &[&str]| {
            segments.len() >= tail.len() && segments[segments.len() - tail.len()..].iter().eq(tail.iter())
        };
        let Some((rule, _, instead)) = REFUSED.iter().find(|(_, tail, _)| ends_with(tail)) else { return };
        if !self.is_allowed(rule) {
            let shown = segments.join("::");
            let message = format!(
                "`{shown}` gives another value when the orchestration is replayed: use {instead} (or write \
                 `allow({rule})` in the attribute)"
            );
            self.found.push(Error::new_spanned(path, message));
        }
    }
}

impl<'ast> Visit<'ast> for Scan<'_> {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(path) = &*call.func {
            self.check_path(path);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, found: &'ast Macro) {
        let is_select = found.path.segments.last().is_some_and(|segment| segment.ident == "select");
        let first = found.tokens.clone().into_iter().next();
        let is_biased = first.is_some_and(|token| token.to_string() == "biased");
        if is_select && !is_biased && !self.is_allowed("select") {
            let message = "`select!` chooses at random: use `ctx.select2(..)`, or begin it with `biased;` (or write \
                           `allow(select)` in the attribute)";
            self.found.push(Error::new_spanned(&found.path, message));
        }
    }
}
