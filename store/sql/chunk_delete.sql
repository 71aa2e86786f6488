delete from chunk where k in (select k from chunk where k >= ? and k < ? order by k limit ?)
