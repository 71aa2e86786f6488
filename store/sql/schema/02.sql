-- What a server listed last, so that a fresh daemon can show its tools before the
-- server is up. origin says how the server was started then; of another one
-- nothing is known.
create table known (
  server text primary key,
  origin text not null,
  tools  blob not null
) strict;
