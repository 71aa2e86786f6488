package agent

import (
	"bytes"
	"context"
	"sync"

	"mcphubd/actors"
)

// lists is each list that an agent can see, by the member that carries it.
type lists map[string][]byte

func show(ctx context.Context, a Agent) lists {
	return lists{
		"tools":             a.Tools(ctx),
		"prompts":           a.List(ctx, actors.PromptList),
		"resources":         a.List(ctx, actors.ResourceList),
		"resourceTemplates": a.List(ctx, actors.TemplateList),
	}
}

// shown is what sessions of an identity were given of each list: the oldest that may
// still be in use, because who has it wants to hear of every newer one.
type shown struct {
	mu    sync.Mutex
	lists lists
}

// note remembers that a session got a list.
func (s *shown) note(key string, entries []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lists == nil {
		s.lists = lists{}
	}
	if _, had := s.lists[key]; !had {
		s.lists[key] = entries
	}
}

// news says which lists are other ones now than somebody has. Of a list that nobody
// asked for it is not known what the client has, perhaps from an earlier life of the
// daemon: if there is something in it, or it is the list of tools, it is news once.
func (s *shown) news(now lists) (keys map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys = map[string]bool{}
	for key, is := range now {
		was, had := s.lists[key]
		keys[key] = had && !bytes.Equal(was, is) || !had && (key == "tools" || len(is) > len("[]"))
	}
	s.lists = now
	return keys
}
