update mark set swept = ?
