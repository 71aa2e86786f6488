select k, id, agent, server, tool, exposed, bytes, lines, sha256, is_error, stored, expires, parent, query, facts, gone
from result where gone = 0 and expires > ?
order by k desc limit ?
