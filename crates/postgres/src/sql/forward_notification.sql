SELECT {schema}.forward_notification_1($1, $2, $3, $4, $5, $6)
