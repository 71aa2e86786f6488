insert into call (at, agent, server, tool, outcome, took, arg_bytes, result_bytes, stored, error)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
