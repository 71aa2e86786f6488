-- The + keeps SQLite on the index of the agent, which gives the order for free.
select k, id, agent, server, tool, exposed, bytes, lines, sha256, is_error, stored, expires, parent, query, facts, gone
from result where agent = ? and gone = 0 and +expires > ?
order by k desc limit ?
