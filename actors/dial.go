package actors

import (
	"context"
	"fmt"
	"time"
)

// How a downstream gets a connection to its server, and gives it up.

func (a *downstreamActor) connect() {
	a.attempt++
	a.facts.Starts++
	a.facts.NextTry = time.Time{}
	a.become(Connecting, "")
	self, attempt, k := a.self, a.attempt, a.connector
	ctx, cancel := context.WithTimeoutCause(a.ctx, a.cfg.ConnectTimeout,
		fmt.Errorf("no answer to initialize within %s (connect_timeout)", a.cfg.ConnectTimeout))
	d := &dialing{done: make(chan struct{})}
	a.dialing = d
	from, logs := LogFrom{a.cfg.Name, a.only.agent, a.only.session}, &a.sys.logs
	about := func(fact func(Conn) downstreamMsg) {
		go func() { // the notice may come before Connect returned
			<-d.done
			if d.conn != nil {
				self.tell(fact(d.conn))
			}
		}()
	}
	events := Events{Spoke: a.spoke, Can: a.only.can, Updated: a.subs.updated, Log: func(p []byte) { logs.tell(from, p) },
		Renewed:     func() { about(func(c Conn) downstreamMsg { return renewed{c} }) },
		ListChanged: func(kind string) { about(func(c Conn) downstreamMsg { return listChanged{c, kind} }) }}
	work(func() (l listing, err error) {
		defer close(d.done)
		c, err := k.Connect(ctx, events)
		if err != nil {
			return l, err
		}
		d.conn = c
		return listTools(ctx, c), nil
	}, func(l listing, err error) {
		cancel()
		self.tell(connected{attempt, d.conn, l, err})
	})
}

// dialing is one connect and what came of it. The events of a connection look there
// for the connection they are about.
type dialing struct {
	conn Conn // set before done is closed; nil when it failed
	done chan struct{}
}

// close ends the connection, and waits for a connect that is under way to clear up
// behind itself: what it started must not outlive the daemon.
func (d *dialing) close(within time.Duration) {
	select {
	case <-d.done:
	case <-time.After(within):
		return // a Connector that does not keep to its context
	}
	if d.conn != nil {
		closeWithin(d.conn, within)
	}
}

func (a *downstreamActor) retryNow(m connect) {
	if m.attempt == a.attempt && a.facts.State == BackingOff {
		a.connect()
	}
}

func (a *downstreamActor) connected(m connected) {
	if m.attempt != a.attempt || a.facts.State != Connecting {
		if m.conn != nil {
			go closeConn(m.conn)
		}
		return
	}
	if m.err != nil {
		a.retry(m.err)
		return
	}
	a.readyAt = time.Now()
	a.reading, a.looks = 0, 0
	clear(a.gathering)
	a.facts.Info, a.facts.Stderr = m.conn.Info(), ""
	a.spoke = a.facts.Info.Protocol
	a.take(m.conn, m.listing)
	a.open(m.conn) // whoever wakes by the View finds it
	a.become(Ready, "")
	a.answerWaiting(nil)
	a.watch(m.conn)
	a.subs.renew(m.conn)
	a.readFeatures(m.conn, kindPrompts)
	a.readFeatures(m.conn, kindResources)
	a.featured(featured{conn: m.conn}) // when there is nothing to read
}

func (a *downstreamActor) watch(conn Conn) {
	self := a.self
	go func() {
		<-conn.Done()
		self.tell(lost{conn})
	}()
}

func closeConn(c Conn) { closeWithin(c, closeGrace) }

func closeWithin(c Conn, d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	c.Close(ctx)
}
