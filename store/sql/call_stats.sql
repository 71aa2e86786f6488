-- The 95th percentile is the time of the call that is the first to have 95 % of
-- its group at or below it.
with c as (
  select server, case when ?1 then tool else '' end as tool, at, took, outcome, arg_bytes, result_bytes, stored
  from call where at >= ?2
), ranked as (
  select *,
    row_number() over (partition by server, tool order by took) as rank,
    count(*) over (partition by server, tool) as size
  from c
)
select server, tool, count(*), sum(outcome not in ('ok', 'cancelled')), sum(stored),
  min(case when rank * 100 >= size * 95 then took end), sum(arg_bytes), sum(result_bytes),
  sum(case when stored then result_bytes else 0 end), max(at)
from ranked group by server, tool order by count(*) desc, server, tool
