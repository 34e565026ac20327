//! Times as text.

use outlast::lens::moment;

/// Milliseconds since the Unix epoch in the form of RFC 3339, in UTC.
pub(crate) fn rfc3339(ms: u64) -> String {
    format!("{}Z", moment(ms).replace(' ', "T"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_have_the_form_of_rfc_3339() {
        assert_eq!(super::rfc3339(0), "1970-01-01T00:00:00.000Z");
    }
}
