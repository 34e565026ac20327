//! Machines that fail.

mod power;
