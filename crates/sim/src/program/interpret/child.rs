//! Other orchestrations: children, and those that are on their own.

use super::{ORCHESTRATION, TYPED_ORCHESTRATION, flat, ms, nested};
use crate::program::{Kin, Launch, Program, Step, child_id};
use outlast_engine::{Either2, OrchestrationContext};

pub(super) async fn run(context: &OrchestrationContext, program: &Program, kin: &Kin) -> Vec<String> {
    let id = kin.name.map(|name| child_id(&context.instance_id(), context.execution_id(), name));
    let version = kin.version.clone();
    let child = match (id, kin.is_typed, version.is_some()) {
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
    nested(child.await)
}

pub(super) async fn race(context: &OrchestrationContext, program: &Program, limit: u64) -> Vec<String> {
    let child = context.schedule_sub_orchestration(ORCHESTRATION, program.input());
    match context.select2(child, context.schedule_timer(ms(limit))).await {
        Either2::First(result) => nested(result),
        Either2::Second(()) => vec!["late".to_string()],
    }
}

/// The key that [`Step::ReadChild`] is about.
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
    let read = flat(value.map(|value| format!("its:{}", value.unwrap_or_else(|| "none".to_string()))));
    [nested(child), vec![read]].concat()
}

pub(super) fn detach(
    context: &OrchestrationContext,
    instance: &str,
    program: &Program,
    launch: &Launch,
) -> String {
    match launch {
        Launch::Plain => context.schedule_orchestration(ORCHESTRATION, instance, program.input()),
        Launch::Typed => {
            context.schedule_orchestration_typed(TYPED_ORCHESTRATION, instance, &program.state());
        }
        Launch::Versioned(version) => context.schedule_orchestration_versioned(
            ORCHESTRATION,
            Some(version.clone()),
            instance,
            program.input(),
        ),
        Launch::VersionedTyped(version) => context.schedule_orchestration_versioned_typed(
            TYPED_ORCHESTRATION,
            Some(version.clone()),
            instance,
            &program.state(),
        ),
        Launch::Try => {
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
