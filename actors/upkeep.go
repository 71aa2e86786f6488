package actors

import "time"

// What the spool does so that the store stays small, its log short, and its size known.

// copy has the log copied into the file, when it has grown, beside what is written meanwhile.
func (a *spoolActor) copy() {
	if a.copying || a.logged < copyBytes {
		return
	}
	a.copying, a.logged = true, 0
	work(func() (struct{}, error) { return struct{}{}, a.w.Copy() },
		func(_ struct{}, err error) { a.self.tell(copied{err}) })
}

func (a *spoolActor) copied(m copied) {
	a.copying = false
	if m.err != nil {
		a.sys.log.Warn().Err(m.err).Msg("store: checkpoint")
	}
	a.copy()
}

func (a *spoolActor) prune(from asker, m prune) {
	a.commit()
	if err := a.begin(); err != nil {
		from.answer(nil, err)
		return
	}
	done, err := a.w.Prune(m.now, m.slice)
	if err != nil {
		a.rollback(err)
		from.answer(nil, err)
		return
	}
	a.batch = append(a.batch, waiting{from: from, value: done})
	a.commit()
	a.publish(true)
}

func (a *spoolActor) shrink(from asker, pages int) {
	a.commit()
	n, err := a.w.Shrink(pages)
	if err == nil && n < pages {
		err = a.w.Checkpoint()
	}
	from.answer(n, err)
	a.publish(true)
}

func (a *spoolActor) flushAll(from asker) {
	a.writeCalls()
	a.commit()
	a.publish(true)
	from.answer(struct{}{}, nil)
}

// publish shows the store's size, at most every second unless now is set.
func (a *spoolActor) publish(now bool) {
	if !now && time.Since(a.usageAt) < time.Second {
		return
	}
	u, err := a.w.Usage()
	if err != nil {
		return
	}
	a.usageAt = time.Now()
	a.pub.usage.Store(&u)
	a.self.line.note("idle", u)
}
