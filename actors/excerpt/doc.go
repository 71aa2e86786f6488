// Package excerpt reads parts of a stored result: lines, matches, records, an
// outline. It is pure: it sees bytes through a Source and returns the value of a
// tool result that fits the limits it was given, whatever the input.
//
// # Documents
//
// A result is looked at in layers, each a document made of another one's bytes:
// the raw result of a tool, a resource or a prompt; in it the text of a block (a JSON
// string, decoded) or structuredContent as it stands; on that, where a text would be one
// long line of JSON, a view with one element or member a line. No layer is ever held in
// memory. What is kept are marks: every 64 KiB an offset in both layers, the number
// of lines before it and the state of the decoder, so that any offset or line is
// reached by decoding at most that much (view.go). Marks are made in one pass when
// they are first needed and stay in an Index, which knows no bytes and may be cached.
//
// # What is promised
//
//   - Memory does not depend on the size of a result, but for the marks.
//   - An answer is at most Limits.Bytes as it stands on the wire and at most
//     Limits.Lines lines, header included, and is never cut inside a character.
//   - Pages that follow each other by next have neither gap nor overlap: their
//     bodies put together are the view, byte for byte. Bytes that are no UTF-8 are
//     shown as U+FFFD; mcphub_get_result has them exactly.
//   - The same bytes give the same documents, views and choices, so a next token
//     stays good for as long as the result is kept.
package excerpt
