//! Runs the command on a terminal of the system, which the test reads and types into.

use crate::support::outlast;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

/// A terminal with a command.
pub(crate) struct Terminal {
    screen: File,
    child: Child,
    seen: Vec<u8>,
}

impl Drop for Terminal {
    /// A test that fails leaves no process.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Terminal {
    pub(crate) fn start(args: &[&str], rows: u16, columns: u16) -> Self {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let name = ptsname(&screen, Vec::new()).unwrap();
        let line = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&line, size).unwrap();
        let command = outlast(args);
        // In a session of its own the command has no other terminal, such as the one of the developer.
        let mut session = Command::new("setsid");
        session.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => session.env(name, value),
                None => session.env_remove(name),
            };
        }
        session.env("TERM", "xterm-256color");
        let end = || Stdio::from(line.try_clone().unwrap());
        let child = session.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        Self { screen: File::from(screen), child, seen: Vec::new() }
    }

    fn text(&self) -> String {
        // The terminal ends lines with a carriage return too.
        String::from_utf8_lossy(&self.seen).replace('\r', "")
    }

    /// Reads a part of the output; false at its end.
    fn read(&mut self) -> bool {
        let mut part = [0; 4_096];
        // After the end of the command the read fails.
        match self.screen.read(&mut part) {
            Ok(length @ 1..) => {
                self.seen.extend_from_slice(&part[..length]);
                true
            }
            _ => false,
        }
    }

    /// Waits until the command has printed the text.
    pub(crate) fn wait_for(&mut self, part: &str) {
        while !self.text().contains(part) {
            assert!(self.read(), "{part} in {:?}", self.text());
        }
    }

    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.screen.write_all(keys).unwrap();
    }

    /// The exit status and the whole output of a command that ends.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        while self.read() {}
        (self.child.wait().unwrap().code(), self.text())
    }
}
