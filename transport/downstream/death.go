package downstream

import (
	"context"
	"fmt"
	"time"

	"mcphubd/actors"
)

// lose declares the connection dead: every waiting call gets the reason. Only the
// first reason counts.
func (c *Conn) lose(reason string) {
	err := fmt.Errorf("%w: %s: %s", actors.ErrLost, c.server, reason)
	if !c.shut(err) {
		return
	}
	c.control.Close()
	close(c.done)
}

// lastWords adds the end of stderr to a reason.
func (c *Conn) lastWords(reason string) string {
	if last := c.stderr.last(); last != "" {
		return reason + "; stderr: " + last
	}
	return reason
}

// end begins to stop the child; it is done when gone is closed.
func (c *Conn) end() {
	c.stopping.Do(func() {
		go func() {
			c.w.close()
			c.proc.stop(c.hurry, c.grace)
		}()
	})
}

// unwritable follows a pipe that takes no more bytes. A child that is about to exit
// gets the time to say so: its exit status is the better reason.
func (c *Conn) unwritable(err error) {
	if !c.proc.ends(time.Second) {
		c.lose(c.lastWords(err.Error()))
	}
	c.end()
}

// run is the reader of the connection and the witness of its death.
func (c *Conn) run() {
	defer close(c.gone)
	defer c.hurried()
	r := newReader(c)
	r.read(c.proc.stdout)
	r.flows.Wait() // a whole answer that is still on its way to the spool is not lost
	// Stdout mostly ends a moment before the child does.
	if c.proc.ends(500 * time.Millisecond) {
		<-c.stderr.drained
		c.lose(c.lastWords(c.proc.how))
	} else {
		c.lose(c.lastWords("it closed its stdout"))
	}
	c.end()
	<-c.proc.exited
	<-c.stderr.drained
	c.w.close()
	c.proc.stdout.f.Close()
	c.proc.stderr.f.Close()
}

// Close ends the server. Calls in flight fail at once.
func (c *Conn) Close(ctx context.Context) error {
	c.lose("it is being stopped")
	c.end()
	select {
	case <-c.gone:
		return nil
	case <-ctx.Done():
		c.hurried()
	}
	t := time.NewTimer(max(c.grace, time.Second))
	defer t.Stop()
	select {
	case <-c.gone:
		return nil
	case <-t.C:
		return fmt.Errorf("stop %s: %w", c.server, context.Cause(ctx))
	}
}
