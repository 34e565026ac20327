//! Empty: `tests/it` holds programs written for duroxide 0.1.32 that are compiled against Outlast.
