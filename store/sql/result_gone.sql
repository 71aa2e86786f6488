update result set gone = ?, query = '', facts = x'' where k = ?
