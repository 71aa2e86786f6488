package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (completionCmd) Help() string {
	return `bash: source <(mcphubd completion bash)
zsh:  source <(mcphubd completion zsh)
fish: mcphubd completion fish | source`
}

// completeWord is the first argument by which a shell asks for completions. The words
// so far follow; the last of them is being typed.
const completeWord = "__complete"

// The shells take the words as they are: what servers are called is never evaluated.
var completions = map[string]string{
	"bash": `_mcphubd() {
  mapfile -t COMPREPLY < <(mcphubd __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)
}
complete -o default -F _mcphubd mcphubd
`,
	"zsh": `_mcphubd() {
  local -a lines names
  lines=("${(@f)$(mcphubd __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  names=("${(@)lines%%$'\t'*}")
  [[ -n $names[1] ]] && compadd -a names || _files
}
compdef _mcphubd mcphubd
`,
	"fish": `function __mcphubd
  set -l lines (mcphubd __complete (commandline -opc)[2..] "$(commandline -ct)" 2>/dev/null)
  if set -q lines[1]
    printf '%s\n' $lines
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c mcphubd -f -a '(__mcphubd)'
`,
}

func (cmd completionCmd) Run(a *app) error {
	_, err := io.WriteString(a.stdout, completions[cmd.Shell])
	return err
}

// complete prints the words that may stand in place of the last one, each with a tab
// and what it is. It fails in silence: the user is typing.
func complete(a *app, words []string) int {
	if len(words) == 0 {
		words = []string{""}
	}
	ctx, cancel := context.WithTimeout(a.ctx, 5*time.Second)
	defer cancel()
	a.ctx, a.stderr = ctx, io.Discard
	c := completer{app: a, node: newParser(a, &commands{}, func(int) {}).Model.Node}
	for _, w := range words[:len(words)-1] {
		c.pass(w)
	}
	lead, typed := c.assigned(words[len(words)-1])
	for _, word := range c.next(typed) {
		if strings.HasPrefix(word[0], typed) {
			fmt.Fprintf(a.stdout, "%s%s\t%s\n", lead, harmless(word[0]), oneLine(harmless(word[1]), 80))
		}
	}
	return codeOK
}

// assigned parts --flag=value, where the value is being typed. Of some shells the = comes
// as a word of its own.
func (c *completer) assigned(typed string) (lead, value string) {
	if c.value != nil {
		return "", strings.TrimPrefix(typed, "=")
	}
	name, value, has := strings.Cut(typed, "=")
	if f := c.find(strings.TrimLeft(name, "-")); has && f != nil && strings.HasPrefix(name, "-") && !c.plain {
		c.value = f.Value
		return name + "=", value
	}
	return "", typed
}

// completer is where in the command line the user is.
type completer struct {
	*app
	node  *kong.Node
	given int         // positional arguments before this word
	value *kong.Value // of a flag whose value comes next
	plain bool        // behind --
}

// pass takes a word that is complete.
func (c *completer) pass(word string) {
	if c.value != nil && word == "=" {
		return // of --flag=value, which some shells take apart
	}
	if c.value != nil {
		c.flag(c.value.Name, word)
		c.value = nil
		return
	}
	if word == "--" {
		c.plain = true
	}
	if strings.HasPrefix(word, "-") && !c.plain {
		name, value, has := strings.Cut(strings.TrimLeft(word, "-"), "=")
		f := c.find(name)
		switch {
		case f == nil:
		case has:
			c.flag(f.Name, value)
		case !f.IsBool():
			c.value = f.Value
		}
		return
	}
	for _, child := range c.node.Children {
		if child.Name == word {
			c.node = child
			return
		}
	}
	c.given++
}

// flag notes which daemon is meant.
func (c *completer) flag(name, value string) {
	switch name {
	case "config":
		c.ConfigFile = value
	case "data":
		c.DataDir = value
	}
}

func (c *completer) find(name string) *kong.Flag {
	for _, group := range c.node.AllFlags(false) {
		for _, f := range group {
			if f.Name == name || f.Short != 0 && string(f.Short) == name {
				return f
			}
		}
	}
	return nil
}

// next is what may follow: words and what they are.
func (c *completer) next(typed string) (words [][2]string) {
	if c.value != nil {
		return c.values(c.value)
	}
	if strings.HasPrefix(typed, "-") && !c.plain {
		for _, group := range c.node.AllFlags(true) {
			for _, f := range group {
				words = append(words, [2]string{"--" + f.Name, f.Help})
			}
		}
		return words
	}
	for _, child := range c.node.Children {
		if !child.Hidden {
			words = append(words, [2]string{child.Name, child.Help})
		}
	}
	if at := c.node.Positional; len(at) > 0 {
		value := at[min(c.given, len(at)-1)]
		if c.given < len(at) || value.IsCumulative() {
			words = append(words, c.values(value)...)
		}
	}
	return words
}

// values is what an argument or the value of a flag may be.
func (c *completer) values(v *kong.Value) (words [][2]string) {
	if v.Tag.Enum != "" {
		for _, e := range strings.Split(v.Tag.Enum, ",") {
			words = append(words, [2]string{e, ""})
		}
		return words
	}
	names := map[string]string{}
	if live, ok := liveNames[v.Tag.Get("complete")]; ok {
		live(c.app, names)
	}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		words = append(words, [2]string{n, names[n]})
	}
	return words
}

// liveNames finds names, by the tag of the argument. What cannot be asked adds none.
var liveNames = map[string]func(a *app, names map[string]string){
	"server": func(a *app, names map[string]string) {
		if c, err := a.load(); err == nil {
			for n := range c.Servers {
				names[n] = ""
			}
		}
		for _, s := range a.glance().Servers {
			names[s.Name] = stateOf(s)
		}
	},
	"agent": func(a *app, names map[string]string) {
		if c, err := a.load(); err == nil {
			for n := range c.Agents {
				names[n] = ""
			}
		}
		for _, s := range a.glance().Sessions {
			names[s.Agent] = ""
		}
	},
	"call": func(a *app, names map[string]string) {
		for _, c := range a.glance().Calls {
			names[fmt.Sprint(c.Serial)] = c.Agent + " " + c.Tool
		}
	},
	"result": func(a *app, names map[string]string) {
		r, err := a.openStore()
		if err != nil {
			return
		}
		defer r.Close()
		list, _ := r.Recent(a.ctx, time.Now(), 100)
		for _, s := range list {
			names[string(s.ID)] = s.Exposed + " " + bytesText(s.Bytes)
		}
	},
	"tool": func(a *app, names map[string]string) {
		p, err := a.enter(a.ctx, "default")
		if err != nil {
			return
		}
		defer p.detach(a.ctx)
		tools, _ := p.tools(a.ctx)
		for _, t := range tools {
			names[t.Name] = t.Description
		}
	},
	"client": func(_ *app, names map[string]string) {
		for n, c := range clients {
			names[n] = "~/" + c.file
		}
	},
	"code": func(_ *app, names map[string]string) {
		for code, p := range problems {
			names[code] = p.title
		}
	},
}

// glance is the state of the daemon, an empty one if there is none.
func (a *app) glance() state {
	s, _, _ := a.look()
	return s
}
