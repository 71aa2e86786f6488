insert into chunk (k, n, zip, sum, data) values (?, ?, ?, ?, ?)
