// Package front is the HTTP server that agents reach: net/http, with two things beneath it
// that a small call is too cheap to do without.
//
// Deadlines of connections cost nothing to set (deadline.go): one goroutine looks at all
// of them now and then.
//
// An agent sends the same request head over and over; only the length of the body differs.
// A head that net/http has read and accepted on a connection is not read again (lane.go):
// when the very same bytes come back, with their body behind them, the handler gets the
// request as net/http had made it. This happens in the Read with which net/http waits for
// the next request, so net/http stays the server of every connection: it parses whatever
// is new, and all that is not plainly a repetition. Nothing here interprets a head, so
// nothing here can understand one in another way than net/http does.
//
// A handler cannot tell the two ways apart. Both give it a context that ends with the
// connection, and a ResponseWriter with Flush and deadlines, for http.ResponseController.
// Requests of one head share its Header and URL, so a handler must not change those.
package front
