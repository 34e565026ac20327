SELECT * FROM history
