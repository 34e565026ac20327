//! Seeds whose worlds once failed. Runs of many worlds begin with them, and a test runs all of them.

const SEEDS: &str = include_str!("../../../testdata/seeds.txt");

/// The seeds of `testdata/seeds.txt`.
pub fn recorded_seeds() -> Vec<u64> {
    parse(SEEDS)
}

/// The recorded seeds, and then the given seeds that are not recorded.
pub fn recorded_first(seeds: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    let recorded = recorded_seeds();
    let others = {
        let recorded = recorded.clone();
        seeds.filter(move |seed| !recorded.contains(seed))
    };
    recorded.into_iter().chain(others)
}

/// Reads the seed at the start of each line; the remaining text names the failure that the seed found.
fn parse(text: &str) -> Vec<u64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_seeds_come_first_and_once() {
        let recorded = recorded_seeds();
        let (seen, new) = (recorded[1], 1_000_000);
        let expected: Vec<u64> = recorded.iter().copied().chain([new, new + 1]).collect();
        assert_eq!(recorded_first([new, seen, new + 1].into_iter()).collect::<Vec<_>>(), expected);
        assert_eq!(parse("# why\n7 a lost message\n\n9\n"), [7, 9]);
    }
}
