//! The time axis of a chart, from which idle gaps are cut.

use outlast::lens::Gap;

/// The width of a chart in its own units.
pub(super) const WIDTH: f64 = 1_000.0;
/// The width that is left of a gap.
const GAP: f64 = 60.0;

/// Maps times to the width of a chart.
pub(super) struct Axis {
    /// Parts of the time in their order: start, end, and their place.
    parts: Vec<Part>,
}

struct Part {
    from_ms: u64,
    to_ms: u64,
    from: f64,
    to: f64,
    is_gap: bool,
}

impl Axis {
    pub(super) fn new(from_ms: u64, to_ms: u64, gaps: &[Gap]) -> Self {
        let to_ms = to_ms.max(from_ms + 1);
        let mut parts: Vec<Part> = Vec::new();
        let mut at = from_ms;
        let mut add = |from_ms: u64, to_ms: u64, is_gap: bool| {
            if to_ms > from_ms {
                parts.push(Part { from_ms, to_ms, from: 0.0, to: 0.0, is_gap });
            }
        };
        for gap in gaps.iter().filter(|gap| gap.from_ms >= from_ms && gap.to_ms <= to_ms) {
            if gap.from_ms < at {
                continue;
            }
            add(at, gap.from_ms, false);
            add(gap.from_ms, gap.to_ms, true);
            at = gap.to_ms;
        }
        add(at, to_ms, false);
        let gaps = parts.iter().filter(|part| part.is_gap).count() as f64;
        let gap = GAP.min(WIDTH / 3.0 / gaps.max(1.0));
        let busy: u64 = parts.iter().filter(|part| !part.is_gap).map(|part| part.to_ms - part.from_ms).sum();
        let scale = (WIDTH - gap * gaps) / busy.max(1) as f64;
        let mut place = 0.0;
        for part in &mut parts {
            let width = if part.is_gap { gap } else { (part.to_ms - part.from_ms) as f64 * scale };
            (part.from, part.to) = (place, place + width);
            place += width;
        }
        Self { parts }
    }

    /// The place of a time.
    pub(super) fn place(&self, ms: u64) -> f64 {
        let Some(part) = self.parts.iter().find(|part| ms <= part.to_ms) else { return WIDTH };
        let share = ms.saturating_sub(part.from_ms) as f64 / (part.to_ms - part.from_ms).max(1) as f64;
        part.from + share * (part.to - part.from)
    }

    /// The places of the gaps, each with its length in milliseconds.
    pub(super) fn gaps(&self) -> impl Iterator<Item = (f64, f64, u64)> {
        self.parts
            .iter()
            .filter(|part| part.is_gap)
            .map(|part| (part.from, part.to, part.to_ms - part.from_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_narrow_and_places_grow_with_time() {
        let axis = Axis::new(0, 1_000_100, &[Gap { from_ms: 50, to_ms: 1_000_050 }]);
        let places: Vec<f64> = [0, 50, 1_000_050, 1_000_100].map(|ms| axis.place(ms)).into();
        assert_eq!(places, [0.0, 470.0, 530.0, 1_000.0]);
        assert_eq!(axis.gaps().collect::<Vec<_>>(), [(470.0, 530.0, 1_000_000)]);
        assert_eq!(axis.place(2_000_000), WIDTH);
        assert_eq!(Axis::new(5, 5, &[]).place(5), 0.0);
    }
}
