//! `outlast instance wait`, `outlast instance cancel` for many instances, and `outlast queue depths`.

use crate::program::Program;
use crate::support::{outlast, run, said};
use outlast::runtime::OrchestrationStatus;
use std::process::Stdio;

#[tokio::test(flavor = "multi_thread")]
async fn wait_has_an_exit_status_per_outcome() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = Program::start(&path).await;
    program.run("leaf", "Leaf").await;
    program.run("broken", "Broken").await;
    program.park("parked", "1.0.0").await;
    let wait = |id: &str, more: &[&str]| {
        run(["instance", "wait", id, "--store", path.to_str().unwrap()].iter().chain(more))
    };
    assert_eq!(wait("leaf", &[]).fine(), "Instance 'leaf' completed: leaf\n");
    let failed = wait("broken", &["-o", "json"]);
    assert_eq!((failed.code, failed.err.as_str()), (Some(5), ""), "{failed:?}");
    assert!(
        failed.out.contains("\"status\": \"Failed\"") && failed.out.contains("it is broken"),
        "{failed:?}"
    );
    let late = wait("parked", &["--timeout", "1ms"]);
    assert_eq!((late.code, late.out.as_str()), (Some(4), ""), "{late:?}");
    assert!(late.err.contains("outlast instance why parked"), "{late:?}");
    assert!(wait("nobody", &["--timeout", "1ms"]).not_found().contains("there is no instance 'nobody'"));
    let args = ["instance", "wait", "parked", "--store", path.to_str().unwrap()];
    let waiting = outlast(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    program.client.raise_event("parked", "go", "gone").await.unwrap();
    let waited = tokio::task::spawn_blocking(|| waiting.wait_with_output().unwrap()).await.unwrap();
    assert_eq!(said(waited).fine(), "Instance 'parked' completed: gone\n");
    program.runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_instances_are_cancelled_only_with_their_exact_number() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = Program::start(&path).await;
    for id in ["a-1", "a-2", "b-1"] {
        program.park(id, "1.0.0").await;
    }
    let cancel =
        |more: &[&str]| run(["instance", "cancel", "--store", path.to_str().unwrap()].iter().chain(more));
    let shown = cancel(&["--prefix", "a-", "--dry-run"]).fine();
    assert_eq!(shown, "2 running instances match. Nothing was changed.\n  a-2\n  a-1\n");
    for (more, part) in [
        (&["--prefix", "a-"][..], "2 instances match: nothing was changed; `--yes --expect 2`"),
        (&["--name", "Parked", "--yes", "--expect", "2"], "3 instances match, and --expect names 2"),
    ] {
        let refused = cancel(more);
        assert_eq!((refused.code, refused.out.as_str()), (Some(6), ""), "{refused:?}");
        assert!(refused.err.contains(part), "{part} in {refused:?}");
    }
    for wrong in
        [&[][..], &["a-1", "--prefix", "a"], &["--prefix", "a", "--yes"], &["--prefix", "a", "--expect", "1"]]
    {
        assert_eq!(cancel(wrong).code, Some(2), "{wrong:?}");
    }
    let done = cancel(&["--prefix", "a-", "--yes", "--expect", "2", "-o", "json"]).json();
    assert_eq!((&done["changed"], &done["unchanged"]), (&2.into(), &0.into()), "{done}");
    for id in ["a-1", "a-2"] {
        let ended = program.client.wait_for_orchestration(id, crate::program::LONG).await.unwrap();
        assert!(matches!(ended, OrchestrationStatus::Failed { .. }), "{ended:?}");
    }
    let status = program.client.get_orchestration_status("b-1").await.unwrap();
    assert!(matches!(status, OrchestrationStatus::Running { .. }), "{status:?}");
    program.runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn depths_count_due_and_delayed_items() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = Program::start(&path).await;
    program.runtime.shutdown(None).await;
    for id in ["one", "two"] {
        program.client.start_orchestration(id, "Parked", "").await.unwrap();
    }
    let depths = ["queue", "depths", "--store", path.to_str().unwrap()];
    let text = run(depths).fine();
    assert!(
        text.contains(
            "QUEUE       WAITING  DUE  DELAYED\nturns       2        2    0\nactivities  0        0    0"
        ),
        "{text}"
    );
    let json = run(depths.iter().chain(&["-o", "json"])).json();
    assert_eq!((&json["turns"]["due"], &json["held_instances"]), (&2.into(), &0.into()), "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_instances_are_paused_resumed_terminated_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = Program::start(&path).await;
    for id in ["a-1", "a-2", "b-1"] {
        program.park(id, "1.0.0").await;
    }
    let instance = |verb: &str, more: &[&str]| {
        run(["instance", verb, "--store", path.to_str().unwrap()].iter().chain(more))
    };
    let two = |verb: &str| instance(verb, &["--prefix", "a-", "--yes", "--expect", "2"]).fine();
    let shown = instance("resume", &["--prefix", "a-", "--dry-run"]).fine();
    assert_eq!(shown, "0 held instances match. Nothing was changed.\n");
    assert_eq!(two("pause"), "Paused 2 instances; 0 had ended or were held before.\n");
    assert!(program.client.held_instance("a-1").await.unwrap().is_some());
    assert!(program.client.held_instance("b-1").await.unwrap().is_none(), "only instances that match");
    let changed = instance("resume", &["--prefix", "a-", "--yes", "--expect", "1"]);
    assert_eq!((changed.code, changed.out.as_str()), (Some(6), ""), "{changed:?}");
    assert_eq!(two("resume"), "Resumed 2 instances; 0 had ended or were released before.\n");
    let running = instance("delete", &["--prefix", "a-", "--dry-run"]).fine();
    assert_eq!(running, "0 ended instances match. Nothing was changed.\n");
    let refused = instance("delete", &["a-1"]);
    assert_eq!(refused.code, Some(6), "{refused:?}");
    assert!(refused.err.contains("instance 'a-1' runs: nothing was deleted"), "{refused:?}");
    let ended = two("terminate");
    assert!(ended.starts_with("Asked 2 instances to end; 0 had ended before."), "{ended}");
    for id in ["a-1", "a-2"] {
        program.client.wait_for_orchestration(id, crate::program::LONG).await.unwrap();
    }
    let deleted = two("delete");
    assert_eq!(deleted, "Deleted 2 roots with all descendants; 0 had changed before.\n");
    assert_eq!(program.client.list_all_instances().await.unwrap(), ["b-1"]);
    assert!(instance("delete", &["a-1"]).not_found().contains("there is no instance 'a-1'"));
    let forced = instance("delete", &["b-1", "--force", "--by", "ada", "--reason", "a test"]).fine();
    assert!(forced.starts_with("Deleted instance 'b-1', with "), "{forced}");
    let audit = program.client.audit_page(None, 10).await.unwrap().unwrap();
    let newest = &audit[0].entry;
    assert_eq!(
        (newest.action.as_str(), newest.target.as_str(), newest.actor.as_str(), newest.reason.as_str()),
        ("instance.delete", "b-1", "ada", "a test")
    );
    program.runtime.shutdown(None).await;
}
