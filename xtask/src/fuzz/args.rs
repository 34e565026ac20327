//! The command line of `cargo xtask fuzz`.

use super::TARGETS;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Args {
    pub(super) targets: Vec<&'static str>,
    pub(super) minutes: u32,
    pub(super) minimise: bool,
    pub(super) json: Option<String>,
}

impl Args {
    pub(super) fn parse(args: &[String]) -> Result<Self, String> {
        let mut parsed = Self { targets: Vec::new(), minutes: 10, minimise: false, json: None };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("fuzz: {arg} needs a value"));
            match arg.as_str() {
                "--minutes" => {
                    let text = value()?;
                    let minutes = text.parse().ok().filter(|minutes| *minutes > 0);
                    parsed.minutes =
                        minutes.ok_or_else(|| format!("fuzz: '{text}' is not a number of minutes"))?;
                }
                "--json" => parsed.json = Some(value()?.clone()),
                "--minimise" => parsed.minimise = true,
                name => {
                    let known = TARGETS.iter().find(|target| *target == &name);
                    let unknown =
                        || format!("fuzz: there is no target '{name}', only {}", TARGETS.join(", "));
                    parsed.targets.push(known.ok_or_else(unknown)?);
                }
            }
        }
        if parsed.targets.is_empty() {
            parsed.targets = TARGETS.to_vec();
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        Args::parse(&words)
    }

    #[test]
    fn without_a_name_all_targets_run() {
        assert_eq!(parse("").unwrap().targets, TARGETS);
        let one = parse("decode_event --minutes 3 --json out.json --minimise").unwrap();
        let json = Some("out.json".to_string());
        assert_eq!(one, Args { targets: vec!["decode_event"], minutes: 3, minimise: true, json });
    }

    #[test]
    fn mistakes_are_named() {
        for line in ["decode", "--minutes", "--minutes x", "--minutes 0", "--json"] {
            assert!(parse(line).unwrap_err().starts_with("fuzz: "), "{line}");
        }
    }
}
