// Package wire reads JSON-RPC messages as bytes: it finds members, splits
// streams into messages and results out of messages, and decodes nothing.
//
// Two readers see a message the same way. ScanEnvelope takes a whole message
// and says where its members stand; a Splitter takes it in pieces as it
// arrives and sends the bytes of the result elsewhere. Both count brackets and
// skip strings and leave it at that: what they skip may be malformed, and
// whoever hands bytes to a parser that minds must validate them first. Neither
// panics, whatever it is fed.
package wire
