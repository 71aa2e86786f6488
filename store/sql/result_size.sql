select bytes, gone from result where k = ?
