select n, zip, sum, data from chunk where k = ?
