package actors

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

type waiter struct {
	turn Turn
	name string
	tell func(string)
}

func (w *waiter) Due() { w.tell(w.name) }

func TestALineTellsEachInItsTimeAndNobodyWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		began, trail := time.Now(), []string{}
		l := &Line{After: 10 * time.Second}
		join := func(name string) *waiter {
			w := &waiter{name: name, tell: func(n string) {
				mu.Lock()
				defer mu.Unlock()
				trail = append(trail, fmt.Sprint(n, time.Since(began)))
			}}
			l.Join(&w.turn, w, time.Now())
			return w
		}
		a, _ := join("a"), join("b")
		time.Sleep(3 * time.Second)
		c, d := join("c"), join("d")
		l.Leave(&a.turn) // the first, for which the timer was set
		l.Leave(&d.turn) // the last
		time.Sleep(4 * time.Second)
		join("e")
		time.Sleep(time.Minute)
		l.Leave(&c.turn) // it was told already
		join("f")
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(trail, " "); got != "b10s c13s e17s f1m17s" {
			t.Errorf("told %s", got)
		}
	})
}
