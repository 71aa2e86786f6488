-- Records come in the order of time, give or take a moment: the first that stays
-- bounds those that go.
delete from call where k in (
  select k from call
  where k < coalesce((select k from call where at > ?1 order by k limit 1), 9223372036854775807)
  order by k limit ?2)
