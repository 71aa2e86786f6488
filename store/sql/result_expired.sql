-- The next result to remove: one that was begun, else the one longest over.
select k, bytes, gone from (select k, bytes, gone from result where gone = 1 limit 1)
union all
select k, bytes, gone from (select k, bytes, gone from result where gone = 0 and expires <= ? order by expires limit 1)
limit 1
