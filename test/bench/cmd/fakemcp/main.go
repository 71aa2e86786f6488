// Command fakemcp is the server behind every gateway of a benchmark: the
// built-in tools of package mcptest on stdio, or with -http over streamable HTTP on a
// free loopback port that it prints. Results up to 64 MiB are made once and then written
// as they are; larger ones are generated while they leave.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"os"

	"mcphubd/test/mcptest"
)

func main() {
	log.SetFlags(0)
	overHTTP := flag.Bool("http", false, "serve over HTTP in place of stdio")
	flag.Parse()
	script := mcptest.Script{Name: "fakemcp"}
	if !*overHTTP {
		if err := mcptest.ServeStdio(script); err != nil {
			log.Fatal(err)
		}
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "listening on http://%s\n", l.Addr())
	log.Fatal(mcptest.ServeRemote(script, l))
}
