SELECT * FROM dead_letters
