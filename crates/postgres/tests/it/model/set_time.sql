SELECT setval('{schema}.hand', $1)
