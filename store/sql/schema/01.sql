-- One row per sealed result. It is written after all of its chunks, so a row
-- promises that every byte is there, until gone says otherwise.
create table result (
  k        integer primary key,
  id       text    not null unique,
  agent    text    not null,
  server   text    not null,
  tool     text    not null,
  exposed  text    not null,
  bytes    integer not null,
  lines    integer not null,
  sha256   text    not null,
  is_error integer not null,
  stored   integer not null,           -- unix nanoseconds, like every time here
  expires  integer not null,
  parent   text    not null,
  query    text    not null,
  gone     integer not null default 0, -- 0 kept, 1 chunks are being removed, 2 no chunks are left
  facts    blob    not null
) strict;

create index result_by_expiry on result (gone, expires, bytes);
create index result_by_agent on result (agent, gone, k);

-- k = result << 24 | seq. data comes last: what stands before it is read without
-- walking the overflow pages that hold it.
create table chunk (
  k    integer primary key,
  n    integer not null, -- raw bytes
  zip  integer not null, -- data is compressed with S2
  sum  integer not null, -- CRC-32C of the raw bytes
  data blob    not null
) strict;

create table call (
  k            integer primary key,
  at           integer not null,
  agent        text    not null,
  server       text    not null,
  tool         text    not null,
  outcome      text    not null,
  took         integer not null, -- nanoseconds
  arg_bytes    integer not null,
  result_bytes integer not null,
  stored       integer not null,
  error        text    not null
) strict;

-- No index by time: every call of every agent adds a row, and k runs with time.

-- One row. Every key below swept is sealed or without chunks; the sweep at the
-- next start begins there.
create table mark (swept integer not null) strict;
insert into mark values (1);
