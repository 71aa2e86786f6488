select count(*), coalesce(sum(bytes), 0) from result where gone = 0
