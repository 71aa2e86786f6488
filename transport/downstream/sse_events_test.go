package downstream

import (
	"strings"
	"testing"
)

type event struct {
	name, data string
	cut        bool
}

// parse reads a stream that comes in pieces of n bytes.
func parse(stream string, n int) (all []event, last string) {
	var data strings.Builder
	ev := &events{data: func(p []byte) { data.Write(p) }, done: func(name string, cut bool) {
		all = append(all, event{name, data.String(), cut})
		data.Reset()
	}}
	for len(stream) > 0 {
		k := min(n, len(stream))
		ev.feed([]byte(stream[:k]))
		stream = stream[k:]
	}
	ev.end()
	return all, ev.lastID
}

func TestC88EventsAreReadByTheStandard(t *testing.T) {
	for _, c := range []struct {
		stream string
		want   []event
		last   string
	}{
		{"data: a\n\n", []event{{"", "a", false}}, ""},
		{"\xEF\xBB\xBFdata: a\r\rdata: b\r\n\r\ndata:c\n\n", []event{{"", "a", false}, {"", "b", false}, {"", "c", false}}, ""},
		{"data:  a\ndata\ndata: b\n\n", []event{{"", " a\n\nb", false}}, ""},
		{":ping\n\n: x\ndata: 1\n:y\ndata: 2\nevent: message\n\n", []event{{"message", "1\n2", false}}, ""},
		{"event: other\ndata: a\n\nevent:\ndata: b\n\n", []event{{"other", "a", false}, {"", "b", false}}, ""},
		{"event: lost\n\ndata: a\n\n", []event{{"", "a", false}}, ""},
		{"id: 7\ndata: a\n\nid\ndata: b\n\n", []event{{"", "a", false}, {"", "b", false}}, ""},
		{"id: 7\n\nretry: x\nfoo: bar\ndatax: y\n\n", nil, "7"},
		{"id: 7\ndata: a\n\nid: 8\ndata: b", []event{{"", "a", false}, {"", "b", true}}, "7"},
		{"data: a\n\ndata: b\n", []event{{"", "a", false}, {"", "b", true}}, ""},
		{"data:\n\n", []event{{"", "", false}}, ""},
		{"\xEF\xBB\xBF\n\nid: \x00\ndata: a\n\n", []event{{"", "a", false}}, ""},
	} {
		for n := 1; n <= len(c.stream); n++ {
			got, last := parse(c.stream, n)
			if len(got) != len(c.want) || last != c.last {
				t.Fatalf("%q in pieces of %d: %+v, last id %q", c.stream, n, got, last)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("%q in pieces of %d: %+v, want %+v", c.stream, n, got[i], c.want[i])
				}
			}
		}
	}
}

// reference reads a whole stream the slow and obvious way.
func reference(stream string) (all []event) {
	stream = strings.TrimPrefix(stream, "\xEF\xBB\xBF")
	stream = strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(stream, "\n")
	var name string
	var data []string
	for i, line := range lines {
		if i == len(lines)-1 && line == "" {
			break
		}
		field, value, colon := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		unfinished := i == len(lines)-1
		switch {
		case line == "":
			if data != nil {
				all = append(all, event{name, strings.Join(data, "\n"), false})
			}
			name, data = "", nil
		case field == "data" && (colon || !unfinished):
			data = append(data, value)
		case field == "event" && !unfinished:
			name = value
		}
	}
	if data != nil {
		all = append(all, event{name, strings.Join(data, "\n"), true})
	}
	return all
}

func FuzzEventsDoNotDependOnChunks(f *testing.F) {
	f.Add("event: a\r\ndata: 1\rdata:2\n\n:x\n\ndata", 3)
	f.Add("\xEF\xBB\xBFdata: a\n\r\n\rid: 1\n\n", 1)
	f.Fuzz(func(t *testing.T, stream string, n int) {
		if n < 1 || n > 100 || len(stream) > maxField {
			t.Skip()
		}
		got, _ := parse(stream, n)
		want := reference(stream)
		if len(got) != len(want) {
			t.Fatalf("%q: %+v, want %+v", stream, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%q: %+v, want %+v", stream, got, want)
			}
		}
	})
}
