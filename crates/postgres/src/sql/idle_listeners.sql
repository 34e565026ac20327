SELECT id, turns, activities, watches, expires_at - {schema}.now_ms() AS lasts_ms FROM {schema}.listeners WHERE expires_at > {schema}.now_ms()
