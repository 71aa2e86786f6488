insert into result (k, id, agent, server, tool, exposed, bytes, lines, sha256, is_error, stored, expires, parent, query, facts)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
