// Package actors owns all state of the daemon. Each piece of state belongs to one
// actor; a tool call is one Go function (walk.go) that reads from top to bottom
// and asks a few actors on its way. Bytes never travel through a mailbox, but for
// the chunks on their way into the store.
//
// # The cast
//
//	hub        who exists; publishes the View, one immutable snapshot    hub.go
//	session    one agent identity: what it may see, its books            session.go
//	downstream one server: its connection's state machine, its lists     downstream.go
//	spool      the one writer of the store                               spool.go
//	pruner     the clock of retention                                    pruner.go
//	eventlog   what the engine reports: crashes, lost letters            eventlog.go
//
// All are siblings under the engine; the tree that the debug page shows (hub on
// top) says who starts and stops whom. Every actor is spawned by the kit (kit.go):
// a crash answers whoever waited, shows on the board and in the log, and restarts
// the actor for ever; it never ends the process. The board (board.go), the list of
// problems, the calls in flight and the ledger of those that ended (ledger.go) lie outside the mailboxes, so they can be read
// while an actor is stuck. Stored results are read past the mailboxes as well (own.go,
// read.go); what readers share is the library of indexes (shelf.go), under locks that
// are held for no longer than a look, but for the one of an index being made. Log
// messages of servers pass by the mailboxes too: one goroutine keeps each server at the
// least level that agents asked for (logs.go).
//
// # The messages
//
//	to          asked                         told
//	hub         openSession reload drain      serverChanged (downstream)
//	            restart openInstance          instanceChanged (its downstream), sessionLeft
//	                                          (the agents' side), sweepInstances
//	                                          forgotten (itself)
//	session     –                             called (calls), settle (itself)
//	downstream  lease retire                  connected listed featured closed (work),
//	                                          lost listChanged renewed (connection),
//	                                          configured (hub),
//	                                          emptied (the last call of a connection),
//	                                          connect relist remind graceOver (itself)
//	spool       appendChunk seal prune        drop record remember spoolLimits;
//	            shrink flushAll remove        copied (work), flush writeCalls (itself)
//	pruner      –                             pruned shrunk (work), tick (itself)
//	eventlog    –                             the engine's events
//
// Actors answer and tell; they never ask. Only goroutines outside a mailbox ask,
// so no two mailboxes can wait for each other. What may be slow runs in work and
// comes back as a fact.
//
// # What costs no message
//
// An ask wakes two goroutines, which is more than a small call may cost. So what
// every call needs is published by its owner, and taken without asking: the View
// (scope, names, budgets), and of each server that is ready its connection, in a
// counter where calls enter and leave. A counter that its owner has shut lets nobody
// in, and the last who leaves tells the owner. A call asks only where something has
// to be decided: a server that is not ready, bytes for the spool. Records of finished
// calls are gathered in a box, and the session is told once that it is no longer empty;
// the spool gathers those of all sessions, and writes them behind what is queued. Nor has
// a call a timer of its own: it stands in a line of calls with the same call_timeout,
// whose first is looked at (line.go).
//
// # What is promised about order
//
//   - Messages from one goroutine to one actor arrive in order. Between two senders
//     nothing is promised.
//   - A call sees one View, and so one configuration, from admission to receipt.
//   - A receipt is handed out only after the row of its result is committed. A seal
//     is answered after its commit, and so is every append before it. Chunks of a result
//     are written while it arrives, in one open transaction with those of others: it is
//     committed once somebody waits. A result that lost a chunk so is refused altogether.
//   - Whoever entered a counter leaves it, and whoever is on the live list comes off
//     it and is recorded, whatever happened in between.
//   - A fact about a connection carries that connection, a fact about a server its
//     generation, a connect its attempt; stale ones are dropped.
//   - View.changed is closed after the next View is in place: whoever wakes sees it.
//
// # What may not be assumed
//
//   - That a mailbox is bounded. The ask is the back-pressure, and admission counts.
//   - That state survives a crash. Only the hub's does: it is who knows everybody.
//     A crashed downstream loses its connection and starts anew, a crashed spool its
//     open transaction (those who waited are told), a crashed session its counts.
//   - That stop runs once.
package actors
