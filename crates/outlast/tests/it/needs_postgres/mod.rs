//! Tests of several processes on one PostgreSQL server. Each process is a runtime with its own store object.

mod eager_start;
mod frozen;
mod leasing_ahead;
mod parking;
mod pausing;
mod rolling;
