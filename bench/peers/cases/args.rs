//! What to run.

use std::path::PathBuf;
use std::time::Duration;

const CASES: [&str; 5] = ["hello-backlog", "hello-closed", "hello-idle", "chain-one", "chain-many"];

pub(super) struct Args {
    pub(super) case: String,
    pub(super) in_memory: bool,
    pub(super) dir: PathBuf,
    pub(super) dispatchers: usize,
    pub(super) count: usize,
    pub(super) steps: usize,
    pub(super) in_flight: usize,
    pub(super) time: Duration,
    pub(super) limit: Duration,
    pub(super) poll: Option<Duration>,
}

impl Args {
    pub(super) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let case = args.next().unwrap_or_default();
        if !CASES.contains(&case.as_str()) {
            return Err(format!("unknown case '{case}'"));
        }
        let mut parsed = Self {
            case,
            in_memory: false,
            dir: PathBuf::from("."),
            dispatchers: 2,
            count: 400,
            steps: 10,
            in_flight: 16,
            time: Duration::from_secs(10),
            limit: Duration::from_secs(120),
            poll: None,
        };
        while let Some(option) = args.next() {
            let value = args.next().ok_or_else(|| format!("'{option}' needs a value"))?;
            parsed.set(&option, &value)?;
        }
        Ok(parsed)
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        let number = || match value.parse::<u32>() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("'{option} {value}': a number above 0 is expected")),
        };
        match option {
            "--store" => {
                self.in_memory = match value {
                    "file" => false,
                    "memory" => true,
                    _ => return Err(format!("unknown store '{value}'")),
                }
            }
            "--dir" => self.dir = value.into(),
            "--dispatchers" => self.dispatchers = number()? as usize,
            "--count" => self.count = number()? as usize,
            "--steps" => self.steps = number()? as usize,
            "--in-flight" => self.in_flight = number()? as usize,
            "--seconds" => self.time = Duration::from_secs(number()?.into()),
            "--limit-s" => self.limit = Duration::from_secs(number()?.into()),
            "--poll-ms" => self.poll = Some(Duration::from_millis(number()?.into())),
            _ => return Err(format!("unknown option '{option}'")),
        }
        Ok(())
    }
}
