//! One set of features for `syn`: the manifest is the content of this package.
