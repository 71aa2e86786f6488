insert into known (server, origin, tools) values (?, ?, ?)
on conflict (server) do update set origin = excluded.origin, tools = excluded.tools