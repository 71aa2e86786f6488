-- The bounds of a prefix: hex digits sort below g.
select k, id, agent, server, tool, exposed, bytes, lines, sha256, is_error, stored, expires, parent, query, facts, gone
from result where id >= ?1 and id < ?1 || 'g' and gone = 0 and expires > ?2
order by id limit ?3
