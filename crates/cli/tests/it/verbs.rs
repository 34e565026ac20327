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
    assert_eq!((&done["cancel_requested"], &done["ended_before"]), (&2.into(), &0.into()), "{done}");
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
