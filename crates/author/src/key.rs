//! Keys of the key-value state with the type of their values.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// A key of the key-value state of an instance, with the type of its values: `const CART: Key<Cart> = Key::new("cart");`.
///
/// The value is stored as JSON, as `set_kv_value_typed` of the string API stores it.
pub struct Key<T> {
    name: Cow<'static, str>,
    of: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    /// The key with this name.
    pub const fn new(name: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), of: PhantomData }
    }

    /// The key with a name that is known at run time only.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: Cow::Owned(name.into()), of: PhantomData }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), of: PhantomData }
    }
}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.name).finish()
    }
}
