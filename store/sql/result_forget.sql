delete from result where k in (select k from result where gone = 2 and expires <= ? order by expires limit ?)
