//! Steps with other instances: children and detached starts.

use super::{ORCHESTRATION, TYPED_ORCHESTRATION, in_brackets, ms, one_word};
use crate::program::{ChildCall, DetachedCall, Program, Step, child_id};
use outlast_engine::{Either2, OrchestrationContext};

pub(super) async fn run(
    context: &OrchestrationContext,
    program: &Program,
    child_call: &ChildCall,
) -> Vec<String> {
    let id = child_call.name.map(|name| child_id(&context.instance_id(), context.execution_id(), name));
    let version = child_call.version.clone();
    let child = match (id, child_call.is_typed, version.is_some()) {
        (None, true, _) => context.schedule_sub_orchestration_typed(TYPED_ORCHESTRATION, &program.state()),
        (Some(id), true, _) => {
            context.schedule_sub_orchestration_with_id_typed(TYPED_ORCHESTRATION, id, &program.state())
        }
        (None, false, true) => {
            context.schedule_sub_orchestration_versioned(ORCHESTRATION, version, program.input())
        }
        (Some(id), false, true) => {
            context.schedule_sub_orchestration_versioned_with_id(ORCHESTRATION, version, id, program.input())
        }
        (None, false, false) => context.schedule_sub_orchestration(ORCHESTRATION, program.input()),
        (Some(id), false, false) => {
            context.schedule_sub_orchestration_with_id(ORCHESTRATION, id, program.input())
        }
    };
    in_brackets(child.await)
}

pub(super) async fn race(context: &OrchestrationContext, program: &Program, limit: u64) -> Vec<String> {
    let child = context.schedule_sub_orchestration(ORCHESTRATION, program.input());
    match context.select2(child, context.schedule_timer(ms(limit))).await {
        Either2::First(result) => in_brackets(result),
        Either2::Second(()) => vec!["late".to_string()],
    }
}

/// The key of [`Step::ReadChild`].
const KEY: &str = "seen";

pub(super) async fn read(context: &OrchestrationContext, name: u64, is_typed: bool) -> Vec<String> {
    let id = child_id(&context.instance_id(), context.execution_id(), name);
    let program = Program::once(vec![Step::Count(KEY.to_string(), is_typed)]);
    let child = context.schedule_sub_orchestration_with_id(ORCHESTRATION, &id, program.input()).await;
    let value = match is_typed {
        true => {
            let value = context.get_kv_value_from_instance_typed::<u64>(&id, KEY).await;
            value.map(|value| value.map(|value| value.to_string()))
        }
        false => context.get_kv_value_from_instance(&id, KEY).await,
    };
    let read = one_word(value.map(|value| format!("its:{}", value.unwrap_or_else(|| "none".to_string()))));
    [in_brackets(child), vec![read]].concat()
}

pub(super) fn detach(
    context: &OrchestrationContext,
    instance: &str,
    program: &Program,
    form: &DetachedCall,
) -> String {
    match form {
        DetachedCall::Plain => context.schedule_orchestration(ORCHESTRATION, instance, program.input()),
        DetachedCall::Typed => {
            context.schedule_orchestration_typed(TYPED_ORCHESTRATION, instance, &program.state());
        }
        DetachedCall::Versioned(version) => context.schedule_orchestration_versioned(
            ORCHESTRATION,
            Some(version.clone()),
            instance,
            program.input(),
        ),
        DetachedCall::VersionedTyped(version) => context.schedule_orchestration_versioned_typed(
            TYPED_ORCHESTRATION,
            Some(version.clone()),
            instance,
            &program.state(),
        ),
        DetachedCall::Try => {
            let refused = context.try_schedule_orchestration(
                ORCHESTRATION,
                None,
                format!("sub::{instance}"),
                program.input(),
            );
            let taken = context.try_schedule_orchestration(ORCHESTRATION, None, instance, program.input());
            if refused.is_ok() || taken.is_err() {
                return "misjudged".to_string();
            }
        }
    }
    "detached".to_string()
}
