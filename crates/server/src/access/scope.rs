//! The scopes of tokens.

use std::fmt;

/// A right of a token. `operate` and `payloads` include `read`; `admin` includes all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Reads names, states, times and sizes.
    Read,
    /// Reads payloads: inputs, outputs, errors, keys and values.
    Payloads,
    /// Starts instances, sends messages, cancels, pauses, resumes, resets and forks.
    Operate,
    /// Deletes and prunes.
    Admin,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 4] = [Self::Read, Self::Payloads, Self::Operate, Self::Admin];

    /// The name in token files and in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Payloads => "payloads",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }

    /// The scope with this name.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of scopes, closed under inclusion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// All scopes.
    pub fn all() -> Self {
        Scope::ALL.into_iter().collect()
    }

    /// Whether the set has a scope.
    pub fn allow(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<T: IntoIterator<Item = Scope>>(scopes: T) -> Self {
        let included = |scope| match scope {
            Scope::Admin => Scope::ALL.iter().map(|scope| scope.bit()).sum(),
            scope => scope.bit() | Scope::Read.bit(),
        };
        Self(scopes.into_iter().map(included).fold(0, |all, bits: u8| all | bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_include_read_and_admin_includes_all() {
        let of = |scope| {
            let scopes: Scopes = [scope].into_iter().collect();
            Scope::ALL.into_iter().filter(|scope| scopes.allow(*scope)).collect::<Vec<_>>()
        };
        assert_eq!(of(Scope::Read), [Scope::Read]);
        assert_eq!(of(Scope::Payloads), [Scope::Read, Scope::Payloads]);
        assert_eq!(of(Scope::Operate), [Scope::Read, Scope::Operate]);
        assert_eq!(of(Scope::Admin), Scope::ALL);
        assert!(!Scopes::default().allow(Scope::Read));
    }
}
