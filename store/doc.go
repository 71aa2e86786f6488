// Package store keeps results and call records in one SQLite file.
//
// What holds at every moment:
//
//   - There is one Writer in one process; the daemon's lock sees to that. Any
//     number of goroutines read through a Reader, and readers never wait for the
//     Writer.
//   - A result is a run of chunk rows of ChunkSize raw bytes each (the last may be
//     shorter), numbered key<<24|seq, and one result row that is written last.
//     That row is the commit point: Seal counts the chunks before it writes the
//     row, so a row implies every byte. Chunks without a row are unfinished work;
//     OpenWriter sweeps what a crash left of them.
//   - Every chunk carries a checksum of its raw bytes. A read gives exactly the
//     bytes that were appended, or an error; it is never silently short.
//   - Only Prune removes sealed results, and only expired ones. The row stays
//     behind without bytes for another week, so that an expired id can be told
//     from one that never existed. Drop removes what was never sealed.
//   - A key is not used twice in the life of a process, and a committed chunk never
//     changes, so a chunk may be cached by its number.
//   - Results never take the last of the disk (see upkeep): pruning needs room to
//     make room.
//   - No read transaction outlives one method call, and none is open while bytes
//     are written to a client; that is what keeps the write-ahead log short.
//
// Expiry compares with the time the caller gives: a result is gone from the
// moment that equals its Expires. When the wall clock steps back, results are kept
// for longer; what was begun to be removed stays removed. The caller decides
// whether to trust a step forward before it prunes.
//
// SQLite's locks belong to the process: nobody in this process may open and close
// the database file by other means while it is in use here.
package store
