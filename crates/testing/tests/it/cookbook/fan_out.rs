//! Many activities, a limited number at a time.

// guide: program
use outlast::prelude::*;
#[cfg(test)]
use outlast::testing::{Test, minutes};

#[outlast::activity(retry = 3)]
async fn resize(_ctx: ActivityContext, image: String) -> Result<u64, String> {
    Err(format!("{image} is a mock in the tests"))
}

/// Resizes all images, at most `at_once` at the same time. An image that fails does not stop the others.
#[outlast::orchestration]
async fn resize_all(
    ctx: OrchestrationContext,
    images: Vec<String>,
    at_once: usize,
) -> Result<(u64, Vec<String>), String> {
    let (mut bytes, mut failed) = (0, Vec::new());
    let mut waiting = images.into_iter();
    let mut running: Vec<_> = Vec::new();
    loop {
        while running.len() < at_once
            && let Some(image) = waiting.next()
        {
            running.push((image.clone(), resize::call(&ctx, image)));
        }
        if running.is_empty() {
            return Ok((bytes, failed));
        }
        // The calls are borrowed: those that do not win go on.
        let calls: Vec<_> = running.iter_mut().map(|(_, call)| call).collect();
        let (index, result) = ctx.select_all(calls).await;
        let (image, _call) = running.remove(index);
        match result {
            Ok(size) => bytes += size,
            Err(error) => failed.push(format!("{image}: {error}")),
        }
    }
}

#[test]
fn ten_images_three_at_a_time() {
    let images: Vec<String> = (1..=10).map(|number| format!("image {number}")).collect();
    let run = Test::<resize_all>::new(outlast::module![resize_all])
        .mock_with::<resize, _>(|_call, image| async move {
            tokio::time::sleep(minutes(1)).await;
            if image == "image 7" { Err("not an image".to_string()) } else { Ok(100) }
        })
        .configure(|options| outlast::RuntimeOptions { worker_concurrency: 16, ..options })
        .run(resize_all::input(images, 3));
    let (bytes, failed) = run.output();
    assert_eq!((*bytes, failed.as_slice()), (900, &["image 7: not an image".to_string()][..]));
    // Twelve runs of a minute, with the three attempts of image 7, on three lanes.
    assert!(run.elapsed() >= minutes(4), "{:?}", run.elapsed());
}
// guide: end
