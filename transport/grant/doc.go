// Package grant holds what users granted this daemon at servers that want OAuth.
//
// A grant comes from a login: the one moment in which a user and a browser are there,
// and never begun by a daemon. The SDK finds the authorization server, registers us there,
// and trades the code; what comes of it is one file of one server, for its owner only.
//
// A Source reads that file for a connection. A token that has expired, or that the server
// refuses, is renewed with the refresh token, once for all who wait, and the file is
// written anew before the new token is used: servers may give each refresh token for one
// use only. Several processes share a file by a lock beside it. A refresh token that was
// refused is not tried again; from then on only another login helps, which is told in the
// error and nowhere acted on.
//
// A grant is for the origin that it was given for. A server that moves needs a new one.
package grant
