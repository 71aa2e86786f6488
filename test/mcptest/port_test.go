package mcptest

import (
	"net"
	"testing"
)

func TestAHeldPortIsFreeForOneListenerAfterTheOtherAndGivenToNobody(t *testing.T) {
	p, err := NewPort()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 2 {
		if c, err := net.Dial("tcp", p.Addr); err == nil {
			c.Close()
			t.Fatal("somebody listens")
		}
		l, err := net.Listen("tcp", p.Addr)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", p.Addr)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if _, err := net.Listen("tcp", p.Addr); err == nil {
			t.Error("two listen at once")
		}
		l.Close()
	}
}
