-- Records leave in the order they came, so the ends tell how many there are.
select coalesce((select max(k) from call) - (select min(k) from call) + 1, 0)
