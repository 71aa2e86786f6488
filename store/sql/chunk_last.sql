select k, n from chunk where k >= ? and k < ? order by k desc limit 1
