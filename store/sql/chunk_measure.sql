-- How many chunks a result has, the number of the last, and their raw bytes.
select count(*), coalesce(max(k), 0), coalesce(sum(n), 0) from chunk where k >= ? and k < ?
