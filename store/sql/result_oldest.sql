select expires from result where gone = 0 order by expires limit 1
