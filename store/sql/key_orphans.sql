-- Keys with chunks and no result. One jump a key: chunks are not scanned.
with recursive key (k) as (
  select (select min(k) >> 24 from chunk where k >= (select swept from mark) << 24)
  union all
  select (select min(c.k) >> 24 from chunk c where c.k >= (key.k + 1) << 24) from key where key.k is not null)
select k from key where k is not null and not exists (select 1 from result r where r.k = key.k)
