//! What only shows with several processes on one PostgreSQL. They are played by runtimes with a store object each.

mod rolling;
