package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxInstructions bounds what an agent gets as instructions, in bytes: clients cut
// what is longer, and not where it hurts least (case C108).
const MaxInstructions = 2 << 10

// minShare is below what a server's share of the instructions is of no use.
const minShare = 160

// Said is the instructions of one server.
type Said struct{ Server, Text string }

// InstructionsURI is where the whole instructions of a server are to be read. No
// server can be called mcphub.
func InstructionsURI(server string) string { return ResourceURI("mcphub", "instructions/"+server) }

// InstructionsOf is the server whose instructions a resource of ours holds.
func InstructionsOf(uri string) (server string, ok bool) {
	owner, path, ok := SplitURI(uri)
	if !ok || owner != "mcphub" {
		return "", false
	}
	return strings.CutPrefix(path, "instructions/")
}

// Instructions joins own and what servers say into at most MaxInstructions bytes.
// Each server's text is labelled with its name and gets the same share; what short
// ones leave goes to the longer ones. What was cut says where to read all of it,
// and its server is in cut, as are those that had no room.
func Instructions(own string, servers []Said) (text string, cut []string) {
	said := slices.Clone(servers)
	for i := range said {
		said[i].Text = strings.TrimSpace(strings.ToValidUTF8(said[i].Text, "\uFFFD"))
	}
	said = slices.DeleteFunc(said, func(s Said) bool { return s.Text == "" })
	slices.SortFunc(said, func(a, b Said) int { return cmp.Compare(a.Server, b.Server) })
	room := MaxInstructions - len(own)
	silent := 0
	if len(said)*minShare > room {
		shown := (room - minShare) / minShare
		silent = len(said) - shown
		for _, s := range said[shown:] {
			cut = append(cut, s.Server)
		}
		said, room = said[:shown], room-minShare
	}
	shares := fairShares(said, room)
	var b strings.Builder
	b.WriteString(own)
	for i, s := range said {
		part, whole := share(s, shares[i])
		b.WriteString(part)
		if !whole {
			cut = append(cut, s.Server)
		}
	}
	if silent > 0 {
		fmt.Fprintf(&b, "\n\n%d more servers have instructions: read the resources %s", silent, InstructionsURI("NAME"))
	}
	slices.Sort(cut)
	return b.String(), cut
}

func label(server string) string { return "\n\nServer " + server + " says:\n" }

// fairShares divides room: nobody gets more than it needs, and nobody who needs
// more gets less than another.
func fairShares(said []Said, room int) []int {
	shares, order := make([]int, len(said)), make([]int, len(said))
	need := func(i int) int { return len(label(said[i].Server)) + len(said[i].Text) }
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(need(a), need(b)) })
	for n, i := range order {
		shares[i] = min(need(i), room/(len(order)-n))
		room -= shares[i]
	}
	return shares
}

// share is what of s fits into n bytes, cut on a character.
func share(s Said, n int) (part string, whole bool) {
	head := label(s.Server)
	if len(head)+len(s.Text) <= n {
		return head + s.Text, true
	}
	mark := "… [cut; all of it: resource " + InstructionsURI(s.Server) + "]"
	return head + prefix(s.Text, max(n-len(head)-len(mark), 0)) + mark, false
}

// prefix is the first n bytes of s, or fewer, so that no character is cut.
func prefix(s string, n int) string {
	for n < len(s) && n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:min(n, len(s))]
}
