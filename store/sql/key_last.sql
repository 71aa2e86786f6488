select max(
  coalesce((select swept - 1 from mark), 0),
  coalesce((select max(k) from result), 0),
  coalesce((select max(k) >> 24 from chunk), 0))
