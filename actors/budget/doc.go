// Package budget decides what fits an agent's context and builds what is sent
// when a result does not: receipts and pages. It is pure: values in, values out.
//
// Sizes are bytes of the JSON-RPC result value as it stands on the wire. What
// this package builds never exceeds the limit it was given, whatever the input.
//
// A result over its limit, or of more lines than the agent's client takes, is stored
// whole first. Then, in this order:
//
//   - When it is over the limit only because of media (images, audio, blobs of resources), the
//     largest of them give way to stubs, in place and no more than needed; the others
//     and all text pass byte for byte, and _meta says which gave way (media.go).
//   - Else a receipt stands for the whole (receipt.go). Its shape is that of the
//     beginning of the data, which costs the same for every size (shape.go).
//
// A server may ask for more room in the _meta of a result or of a tool (override.go).
// An error object over the limit keeps its code and shows both ends of its message
// (fault.go); it is stored too.
//
// Text is encoded as briefly as JSON allows: no escapes for <, > and &, none for
// characters outside of ASCII.
package budget
