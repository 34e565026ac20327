//! Forwarding of a wrapper's calls to the store inside.

mod methods;

/// Forwards the methods of [`Provider`](crate::Provider) or [`ProviderAdmin`](crate::ProviderAdmin) to another store.
///
/// A wrapper (one that logs, counts, limits or injects faults) writes the methods that it changes, names them in
/// `except(..)`, and leaves all others to the macro. Methods with a default body are forwarded too: without that, a
/// wrapper would replace an override of the store inside by the default. A method that a later version adds to the trait
/// is forwarded as well, or the wrapper does not compile.
///
/// The macro stands inside the `impl` block. Its arguments are the trait, an expression for the store inside, written like
/// a closure over the wrapper, and the methods that the wrapper writes itself:
///
/// ```
/// use async_trait::async_trait;
/// use outlast_provider::{Provider, ProviderError, TurnCommit, WorkItem, forward_provider};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// /// Counts the turns that the store inside commits.
/// struct Counted {
///     inner: Arc<dyn Provider>,
///     commits: AtomicU64,
/// }
///
/// #[async_trait]
/// impl Provider for Counted {
///     forward_provider!(Provider, |this| this.inner, except(commit_turn));
///
///     async fn commit_turn(&self, token: &str, commit: TurnCommit) -> Result<Option<u64>, ProviderError> {
///         let committed = self.inner.commit_turn(token, commit).await?;
///         self.commits.fetch_add(1, Ordering::Relaxed);
///         Ok(committed)
///     }
/// }
/// ```
///
/// A method that is named in `except` and not written keeps the default body of the trait, in terms of the wrapper's other
/// methods. A required method that is named and not written is a compile error, and so is a name that is not a method:
///
/// ```compile_fail
/// # use async_trait::async_trait;
/// # use outlast_provider::{Provider, forward_provider};
/// # use std::sync::Arc;
/// struct Wrapper(Arc<dyn Provider>);
///
/// #[async_trait]
/// impl Provider for Wrapper {
///     forward_provider!(Provider, |this| this.0, except(comit_turn));
/// }
/// ```
///
/// A forwarded call returns the future of the store inside and allocates nothing. The expression must borrow from the
/// wrapper. `as_management_capability` is forwarded like any other method, so management calls reach the store inside
/// directly; a wrapper that changes them implements [`ProviderAdmin`](crate::ProviderAdmin) as well:
///
/// ```
/// use async_trait::async_trait;
/// use outlast_provider::{DeleteInstanceResult, Provider, ProviderAdmin, ProviderError, forward_provider};
///
/// /// Refuses deletions.
/// struct KeepsAll<S>(S);
///
/// #[async_trait]
/// impl<S: Provider + ProviderAdmin> Provider for KeepsAll<S> {
///     forward_provider!(Provider, |this| this.0, except(as_management_capability));
///
///     fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
///         Some(self)
///     }
/// }
///
/// #[async_trait]
/// impl<S: Provider + ProviderAdmin> ProviderAdmin for KeepsAll<S> {
///     forward_provider!(ProviderAdmin, |this| this.0, except(delete_instances_atomic));
///
///     async fn delete_instances_atomic(
///         &self,
///         ids: &[String],
///         _force: bool,
///     ) -> Result<DeleteInstanceResult, ProviderError> {
///         Err(ProviderError::permanent("delete_instances_atomic", format!("{ids:?} are kept")))
///     }
/// }
/// ```
///
/// A wrapper that treats every call the same way names one method in `around(..)`. The macro then calls that method with
/// the name of the contract's method and the future of the store inside, for every asynchronous method. The future starts
/// when it is awaited:
///
/// ```
/// use async_trait::async_trait;
/// use outlast_provider::{Provider, ProviderError, forward_provider};
/// use std::time::Instant;
///
/// /// Prints how long each call takes.
/// struct Timed<S>(S);
///
/// impl<S> Timed<S> {
///     async fn timed<T>(
///         &self,
///         method: &'static str,
///         call: impl Future<Output = Result<T, ProviderError>>,
///     ) -> Result<T, ProviderError> {
///         let start = Instant::now();
///         let answer = call.await;
///         println!("{method} took {:?}", start.elapsed());
///         answer
///     }
/// }
///
/// #[async_trait]
/// impl<S: Provider> Provider for Timed<S> {
///     forward_provider!(Provider, |this| this.0, around(timed));
/// }
/// ```
#[macro_export]
macro_rules! forward_provider {
    (
        Provider, |$this:ident| $inner:expr
        $(, around($around:ident))? $(, except($($name:ident),* $(,)?))? $(,)?
    ) => {
        $($($crate::__forward_method!(@exists $name);)*)?
        $crate::__each_provider_method!([$($($name)*)?] [$this $inner $(, $around)?]);
    };
    (
        ProviderAdmin, |$this:ident| $inner:expr
        $(, around($around:ident))? $(, except($($name:ident),* $(,)?))? $(,)?
    ) => {
        $($($crate::__forward_method!(@exists $name);)*)?
        $crate::__each_admin_method!([$($($name)*)?] [$this $inner $(, $around)?]);
    };
}

/// Emits a trait unchanged, and a macro that calls [`__forward_method`] for each of its methods.
macro_rules! forwarded_trait {
    (each = $each:ident; $($item:tt)*) => {
        $($item)*
        $crate::forward::forwarded_trait!(@methods ($) $each [] $($item)*);
    };
    (@methods ($dollar:tt) $each:ident []
        $(#[$attribute:meta])* pub trait $trait:ident : $first:ident $(+ $bound:ident)* { $($methods:tt)* }
    ) => {
        $crate::forward::forwarded_trait!(@names ($dollar) $trait $each [] $($methods)*);
    };
    (@names ($dollar:tt) $trait:ident $each:ident [$($known:ident)*]
        $(#[$attribute:meta])* $(async)? fn $name:ident ($($argument:tt)*) -> $answer:ty; $($rest:tt)*
    ) => {
        $crate::forward::forwarded_trait!(@names ($dollar) $trait $each [$($known)* $name] $($rest)*);
    };
    (@names ($dollar:tt) $trait:ident $each:ident [$($known:ident)*]
        $(#[$attribute:meta])* $(async)? fn $name:ident ($($argument:tt)*) -> $answer:ty { $($body:tt)* } $($rest:tt)*
    ) => {
        $crate::forward::forwarded_trait!(@names ($dollar) $trait $each [$($known)* $name] $($rest)*);
    };
    (@names ($dollar:tt) $trait:ident $each:ident [$($name:ident)*]) => {
        impl dyn $trait {
            /// The names of all methods of this trait, for tests that check that a wrapper is complete.
            pub const METHODS: &'static [&'static str] = &[$(stringify!($name)),*];
        }

        #[doc(hidden)]
        #[macro_export]
        macro_rules! $each {
            ([$dollar($dollar except:ident)*] $dollar target:tt) => {
                $($crate::__forward_method!($name [$dollar($dollar except)*] $dollar target);)*
            };
        }
    };
}
pub(crate) use forwarded_trait;
