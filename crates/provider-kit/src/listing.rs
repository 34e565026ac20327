//! Which rows a page of instances has, in stores that number instances in the order of their creation.

use outlast_model::ExecutionStatus;
use outlast_provider::InstanceQuery;

/// The number of instances that one statement reads of a long list.
pub const WINDOW: u64 = 1_000;
/// The number of instances that are read for one page. The next page continues after them.
pub const BUDGET: u64 = 20_000;
/// The windows of a page whose query may exclude instances: if many instances match, the first window fills the page.
pub const WINDOWS: [u64; 2] = [WINDOW, BUDGET - WINDOW];

/// Whether the partial index `executions_attention` holds executions of this status.
pub fn needs_attention(status: &str) -> bool {
    matches!(ExecutionStatus::from_text(status), Some(ExecutionStatus::Running | ExecutionStatus::Failed))
}

/// Whether a query may exclude instances.
pub fn is_filtered(query: &InstanceQuery) -> bool {
    let InstanceQuery { status, orchestration_name, id_prefix, parent_instance_id, .. } = query;
    [status, orchestration_name, id_prefix, parent_instance_id].into_iter().any(Option::is_some)
        || query.created_from.is_some()
        || query.created_before.is_some()
}

/// A page of instances while its rows are read, newest first. A row has the number of its instance.
pub struct PageRows<R> {
    size: usize,
    before: i64,
    rows: Vec<(i64, R)>,
    /// The number before which the next page begins.
    next: Option<i64>,
}

impl<R> PageRows<R> {
    /// The page that a query begins; the error message if its position is not one of a page.
    pub fn of(query: &InstanceQuery) -> Result<Self, String> {
        let before = match &query.after {
            None => i64::MAX,
            Some(after) => position(after).ok_or_else(|| {
                format!("page position '{after}' is not one of ours: start from the first page")
            })?,
        };
        Ok(Self { size: query.page_size(), before, rows: Vec::new(), next: None })
    }

    /// The next rows have numbers below this one.
    pub fn before(&self) -> i64 {
        self.before
    }

    /// The most rows that are still read: one more than the page has shows whether there is a next page.
    pub fn wanted(&self) -> usize {
        (self.size + 1).saturating_sub(self.rows.len())
    }

    /// Adds rows that were read without a window.
    pub fn add(&mut self, rows: Vec<(i64, R)>) {
        self.rows.extend(rows);
    }

    /// Adds the matching rows of a window that ends at the instance `end`, or reaches to the oldest instance. Returns whether the
    /// next window is read.
    pub fn add_window(&mut self, rows: Vec<(i64, R)>, end: Option<i64>) -> bool {
        self.rows.extend(rows);
        self.next = end.map(|end| end + 1);
        match self.next {
            Some(next) if self.rows.len() <= self.size => {
                self.before = next;
                true
            }
            _ => false,
        }
    }

    /// The rows of the page, and the position of the next page.
    pub fn finish(mut self) -> (Vec<R>, Option<String>) {
        if self.rows.len() > self.size {
            self.rows.truncate(self.size);
            self.next = self.rows.last().map(|(number, _)| *number);
        }
        let next = self.next.map(|number| number.to_string());
        (self.rows.into_iter().map(|(_, row)| row).collect(), next)
    }
}

/// Parses a page position, which must have exactly the form that a page returns.
fn position(text: &str) -> Option<i64> {
    text.parse().ok().filter(|position: &i64| *position > 0 && position.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(limit: u32, after: Option<&str>) -> Result<PageRows<&'static str>, String> {
        PageRows::of(&InstanceQuery {
            limit: Some(limit),
            after: after.map(str::to_string),
            ..InstanceQuery::default()
        })
    }

    #[test]
    fn positions_in_another_form_than_returned_are_refused() {
        assert_eq!(page(2, Some("17")).unwrap_or_else(|error| panic!("{error}")).before(), 17);
        for text in ["", "0", "-3", "+3", "03", " 3", "3.0", "x", "9223372036854775808"] {
            let refused = page(2, Some(text)).err().unwrap_or_else(|| panic!("'{text}' is accepted"));
            assert_eq!(
                refused,
                format!("page position '{text}' is not one of ours: start from the first page")
            );
        }
    }

    #[test]
    fn a_row_more_than_requested_becomes_the_position_of_the_next_page() {
        let mut full = page(2, None).unwrap();
        assert_eq!((full.before(), full.wanted()), (i64::MAX, 3));
        full.add(vec![(9, "i9"), (8, "i8"), (7, "i7")]);
        assert_eq!(full.finish(), (vec!["i9", "i8"], Some("8".to_string())));

        let mut last = page(2, Some("8")).unwrap();
        last.add(vec![(7, "i7"), (6, "i6")]);
        assert_eq!(last.finish(), (vec!["i7", "i6"], None));
    }

    #[test]
    fn windows_are_read_until_the_page_is_full_or_the_oldest_instance_is_reached() {
        let mut page_of_2 = page(2, None).unwrap();
        assert!(page_of_2.add_window(vec![(90, "i90")], Some(50)));
        assert_eq!((page_of_2.before(), page_of_2.wanted()), (51, 2));
        assert!(!page_of_2.add_window(vec![(40, "i40"), (30, "i30")], Some(20)));
        assert_eq!(page_of_2.finish(), (vec!["i90", "i40"], Some("40".to_string())));

        let mut short = page(2, None).unwrap();
        assert!(short.add_window(vec![], Some(50)));
        assert!(!short.add_window(vec![(40, "i40")], None));
        assert_eq!(short.finish(), (vec!["i40"], None));

        // A page without a full number of rows ends after its last window. The next page begins there.
        let mut empty = page(2, None).unwrap();
        assert!(empty.add_window(vec![], Some(50)));
        assert_eq!(empty.finish(), (vec![], Some("51".to_string())));
    }

    #[test]
    fn every_condition_of_a_query_may_exclude_instances() {
        let text = || Some("x".to_string());
        let all = InstanceQuery::default();
        assert!(!is_filtered(&InstanceQuery { limit: Some(3), after: text(), ..all.clone() }));
        for query in [
            InstanceQuery { status: text(), ..all.clone() },
            InstanceQuery { orchestration_name: text(), ..all.clone() },
            InstanceQuery { id_prefix: text(), ..all.clone() },
            InstanceQuery { parent_instance_id: text(), ..all.clone() },
            InstanceQuery { created_from: Some(1), ..all.clone() },
            InstanceQuery { created_before: Some(1), ..all.clone() },
        ] {
            assert!(is_filtered(&query), "{query:?}");
        }
    }
}
