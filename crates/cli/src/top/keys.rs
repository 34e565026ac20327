//! The keys of the terminal.

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::time::Duration;
use tokio::sync::mpsc;

/// The longest time that the thread of the keys outlives the screen.
const PATIENCE: Duration = Duration::from_millis(100);

/// An input that changes the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Quit,
    /// Ctrl-C, which is a key while the screen is shown.
    Stop,
    /// The terminal has another size.
    Resize,
    /// The input has ended.
    Closed,
}

/// Reads keys on a thread of their own: a read of the terminal blocks.
pub(super) struct Keys {
    received: mpsc::Receiver<Key>,
}

impl Keys {
    pub(super) fn start() -> Self {
        let (sent, received) = mpsc::channel(16);
        // The thread ends with this value.
        drop(tokio::task::spawn_blocking(move || {
            while !sent.is_closed() {
                let key = match event::poll(PATIENCE).and_then(|ready| ready.then(event::read).transpose()) {
                    Ok(Some(event)) => meaning(&event),
                    Ok(None) => None,
                    Err(_) => Some(Key::Closed),
                };
                if let Some(key) = key
                    && (sent.blocking_send(key).is_err() || key == Key::Closed)
                {
                    return;
                }
            }
        }));
        Self { received }
    }

    /// The next key.
    ///
    /// Cancellation safety: a key that was not returned is kept.
    pub(super) async fn next(&mut self) -> Key {
        self.received.recv().await.unwrap_or(Key::Closed)
    }
}

fn meaning(event: &Event) -> Option<Key> {
    match event {
        Event::Resize(..) => Some(Key::Resize),
        Event::Key(key) if key.kind == KeyEventKind::Release => None,
        Event::Key(key) if key.modifiers.contains(KeyModifiers::CONTROL) => {
            (key.code == KeyCode::Char('c')).then_some(Key::Stop)
        }
        Event::Key(key) => matches!(key.code, KeyCode::Char('q' | 'Q') | KeyCode::Esc).then_some(Key::Quit),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::crossterm::event::KeyEvent;

    #[test]
    fn q_esc_and_ctrl_c_end_the_screen() {
        let key = |code, modifiers| meaning(&Event::Key(KeyEvent::new(code, modifiers)));
        let none = KeyModifiers::NONE;
        assert_eq!(key(KeyCode::Char('q'), none), Some(Key::Quit));
        assert_eq!(key(KeyCode::Esc, none), Some(Key::Quit));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Stop));
        assert_eq!(key(KeyCode::Char('c'), none), None);
        assert_eq!(key(KeyCode::Char('q'), KeyModifiers::CONTROL), None);
        assert_eq!(meaning(&Event::Resize(80, 24)), Some(Key::Resize));
    }
}
