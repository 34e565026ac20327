//! The fuzz targets on the stable toolchain: what was found before, and some thousand inputs more.

mod corpus;
mod smoke;
