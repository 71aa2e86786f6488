// Package catalog decides which tool has which name and who may see it. It is
// pure: values in, values out.
//
// An entry of a server's tools/list is carried as the server wrote it; only its
// name is replaced, what the gateway cannot promise is cut out, and where a receipt
// may stand for a result outputSchema says so (union.go). Names are
// found by table, never by splitting. What a Catalog says depends on the set of
// servers and tools alone, not on the order in which they came.
//
// Prompts are named by the same rules. A resource is mcphub://SERVER/ and the server's
// own uri as it is, a template likewise: its expressions are untouched, so it expands
// as before. Results are not searched for uris: a server's own uri, as it stands in a
// link, leads to the one server in scope that listed it, or has a template for it.
// The tools that an agent may use bound its prompts by name, and its resources by
// server: what could be no tool of theirs is out of reach (reach.go).
package catalog
