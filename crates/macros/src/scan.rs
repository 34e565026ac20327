//! The search for calls in the body of an orchestration that give another value when the body is run again.
//!
//! The scan sees names only. It refuses a path that can hardly be anything else, and lets every other path pass: a wrong refusal is
//! worse than a miss.

use crate::options::Options;
use syn::visit::{self, Visit};
use syn::{Block, Error, Expr, ExprCall, ExprPath, Ident, Item, Macro};

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

pub(crate) fn check(block: &Block, options: &Options) -> Vec<Error> {
    let mut scan = Scan { allow: &options.allow, found: Vec::new() };
    scan.visit_block(block);
    scan.found
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

    /// An item inside of the body is no part of a turn: a nested activity may read the clock, and a nested orchestration has a scan of
    /// its own.
    fn visit_item(&mut self, _: &'ast Item) {}

    fn visit_macro(&mut self, found: &'ast Macro) {
        let is_select = found.path.segments.last().is_some_and(|segment| segment.ident == "select");
        let first = found.tokens.clone().into_iter().next();
        let is_biased = first.is_some_and(|token| token.to_string() == "biased");
        if is_select && !is_biased && !self.is_allowed("select") {
            let is_of_futures =
                found.path.segments.iter().any(|segment| segment.ident.to_string().starts_with("futures"));
            let instead = match is_of_futures {
                true => "write `futures::select_biased!`",
                false => "begin it with `biased;`",
            };
            let message = format!(
                "`select!` chooses at random: use `ctx.select2(..)`, or {instead} (or write `allow(select)` in the attribute)"
            );
            self.found.push(Error::new_spanned(&found.path, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};
    use syn::{FnArg, ItemFn};

    /// The functions of a file that get the context of an orchestration, and the refusals of the scan in them.
    #[derive(Default)]
    struct Orchestrations {
        scanned: usize,
        refused: Vec<String>,
    }

    impl<'ast> Visit<'ast> for Orchestrations {
        fn visit_item_fn(&mut self, function: &'ast ItemFn) {
            let is_context = |ty: &syn::Type| {
                let ty = if let syn::Type::Reference(reference) = ty { &*reference.elem } else { ty };
                matches!(ty, syn::Type::Path(path)
                    if path.path.segments.last().is_some_and(|last| last.ident == "OrchestrationContext"))
            };
            let gets_context = function
                .sig
                .inputs
                .iter()
                .any(|input| matches!(input, FnArg::Typed(typed) if is_context(&typed.ty)));
            if gets_context {
                self.scanned += 1;
                let refusals = check(&function.block, &Options::default());
                let name = &function.sig.ident;
                self.refused.extend(refusals.iter().map(|refusal| format!("{name}: {refusal}")));
            }
            visit::visit_item_fn(self, function);
        }
    }

    fn files_below(path: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files_below(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }

    #[test]
    fn the_scan_refuses_no_orchestration_of_the_examples_the_demo_and_the_scenarios() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for (folder, least) in [
            ("outlast/examples", 20),
            ("cli/src/demo", 4),
            ("outlast/tests/it/scenario", 10),
            ("testing/tests/it/cookbook", 8),
        ] {
            let (mut files, mut found) = (Vec::new(), Orchestrations::default());
            files_below(&crates.join(folder), &mut files);
            for file in files {
                found.visit_file(&syn::parse_file(&std::fs::read_to_string(file).unwrap()).unwrap());
            }
            assert!(found.scanned >= least, "{folder}: {} orchestrations", found.scanned);
            assert_eq!(found.refused, Vec::<String>::new(), "{folder}");
        }
    }

    /// The refusals of a body.
    fn refused(body: &str) -> Vec<String> {
        let found = check(&syn::parse_str(body).unwrap(), &Options::default());
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_scan_does_not_look_into_items_that_are_nested_in_the_body() {
        let nested = "{
            #[outlast::activity]
            async fn now(_ctx: ActivityContext) -> Result<u64, String> { Ok(millis(SystemTime::now())) }
            struct Clock;
            impl Clock { fn read() -> Instant { Instant::now() } }
            now::call(&ctx).await
        }";
        assert_eq!(refused(nested), Vec::<String>::new());
        let closure = "{ let now = || SystemTime::now(); now() }";
        assert_eq!(refused(closure).len(), 1, "a closure may run in the turn");
    }

    #[test]
    fn the_advice_for_a_select_macro_is_one_that_the_macro_takes() {
        for (path, expected) in [
            ("tokio::select", "begin it with `biased;`"),
            ("select", "begin it with `biased;`"),
            ("futures::select", "write `futures::select_biased!`"),
            ("futures_util::select", "write `futures::select_biased!`"),
        ] {
            let found = refused(&format!("{{ {path}! {{ _ = a => {{}}, _ = b => {{}} }} }}"));
            assert!(found.len() == 1 && found[0].contains(expected), "{path}: {found:?}");
        }
        assert_eq!(refused("{ futures::select_biased! { _ = a => {} } }"), Vec::<String>::new());
    }

    #[test]
    fn the_scan_refuses_a_clock_in_a_function_that_gets_the_context() {
        let file = "async fn f(ctx: &OrchestrationContext) { g(std::time::SystemTime::now()); }";
        let mut found = Orchestrations::default();
        found.visit_file(&syn::parse_file(file).unwrap());
        assert_eq!((found.scanned, found.refused.len()), (1, 1), "{:?}", found.refused);
    }

    #[test]
    fn the_clippy_configuration_has_every_path_of_the_scan() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clippy-orchestrations.toml");
        let configuration = std::fs::read_to_string(path).unwrap();
        for (_, tail, _) in REFUSED {
            let (of_crate, in_crate) =
                (format!("\"{}\"", tail.join("::")), format!("::{}\"", tail.join("::")));
            assert!(configuration.contains(&of_crate) || configuration.contains(&in_crate), "{tail:?}");
        }
    }
}
