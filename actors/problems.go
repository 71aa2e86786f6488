package actors

import (
	"sort"
	"sync"
	"time"
)

// Problem is one thing that is wrong right now, in words for the owner.
type Problem struct {
	Code    string    `json:"code"`    // stable
	Subject string    `json:"subject"` // which server, file, …
	Text    string    `json:"text"`    // one sentence
	Fix     string    `json:"fix"`     // one command or edit
	Since   time.Time `json:"since"`
	Last    time.Time `json:"last"`
	Count   int64     `json:"count"`

	// Fades is for how long what happened once is shown after the last time; 0 = what holds
	// until it is cleared.
	Fades time.Duration `json:"-"`
	seen  time.Time     // the last time, to the moment
}

// Problems is the list of what is wrong. It lies outside the mailboxes; the zero
// value is ready.
type Problems struct {
	mu  sync.Mutex
	all map[[2]string]*Problem
}

// Raise notes that p holds. It reports whether a log line is due: the first time,
// then at most once a minute.
func (l *Problems) Raise(p Problem) (due bool) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	key := [2]string{p.Code, p.Subject}
	old := l.all[key]
	if old == nil {
		if l.all == nil {
			l.all = map[[2]string]*Problem{}
		}
		p.Since, p.Last, p.Count, p.seen = now, now, 1, now
		l.all[key] = &p
		return true
	}
	due = now.Sub(old.Last) >= time.Minute
	if due {
		old.Last = now
	}
	old.Text, old.Fix, old.seen = p.Text, p.Fix, now
	old.Count++
	return due
}

// Clear notes that the problem is over.
func (l *Problems) Clear(code, subject string) {
	l.mu.Lock()
	delete(l.all, [2]string{code, subject})
	l.mu.Unlock()
}

// Read returns the problems, oldest first.
func (l *Problems) Read() []Problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, now := make([]Problem, 0, len(l.all)), time.Now()
	for key, p := range l.all {
		if p.Fades > 0 && now.Sub(p.seen) > p.Fades {
			delete(l.all, key)
			continue
		}
		all = append(all, *p)
	}
	sort.Slice(all, func(i, j int) bool {
		if !all[i].Since.Equal(all[j].Since) {
			return all[i].Since.Before(all[j].Since)
		}
		return all[i].Code+all[i].Subject < all[j].Code+all[j].Subject
	})
	return all
}
