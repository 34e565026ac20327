//! One set of features for the dependencies: the manifest is the content of this package.
