// Package config turns a TOML file into a value and does nothing else: it
// starts nothing, watches nothing and knows no other package of this house.
// default.toml, embedded, is the defaults; a file overrides them key by key.
package config

import (
	"net/url"
	"strings"
	"time"
)

// Config is one complete, validated configuration. It is never modified after
// Parse returned it, so it may be shared freely.
type Config struct {
	Listen             string // host:port of HTTP; "" = none; port 0 picks one
	Socket             string // path of the Unix socket; "" = the default path
	ResponseBudget     Size   // bytes of one result; 0 = unlimited
	MaxPerCallOverride Size   // 0 = never
	Verbatim           bool
	FailOpen           bool
	OutputSchema       string // union | strip | keep
	MaxFrame           Size   // bytes of one message from a server
	MaxRequest         Size   // bytes of one message from an agent
	ConnectTimeout     time.Duration
	CallTimeout        time.Duration
	IdleTimeout        time.Duration // of a call without answer or progress; 0 = none
	DrainTimeout       time.Duration
	SessionIdle        time.Duration // of a session that no request uses; 0 = for ever
	Results            Results
	Spool              Spool
	Log                Log
	Debug              Debug
	Servers            map[string]Server // by name
	Agents             map[string]Agent  // by name; empty = every name is welcome

	File     string   // absolute path it was read from; "" = the defaults alone
	Sources  Sources  // where each value came from, by dotted key
	Warnings []string // what is legal and yet of no use, a sentence each
}

// Results says how stored results are shown.
type Results struct {
	Preview   Size
	OwnerOnly bool
}

// Spool bounds the store of results on disk.
type Spool struct{ MaxBytes Size }

// Log says how much is logged.
type Log struct{ Level string } // debug | info | warn | error

// Debug says who may look at the daemon over HTTP.
type Debug struct {
	Enabled bool
	Token   string // whoever reads must have it; "" = reading is open on loopback
}

// Server is one downstream MCP server: a child process or a URL, never both.
type Server struct {
	Name           string
	Command        string
	Args           []string
	Env            map[string]string
	Cwd            string
	URL            string
	Transport      string // http | sse
	Headers        map[string]string
	OAuth          OAuth
	Isolation      string // shared | per_agent | per_session
	Era            string // "" | legacy | modern
	Enabled        bool
	Store          bool            // also store and bound what /servers/NAME/mcp answers
	ResponseBudget *Size           // nil = the global one
	CallTimeout    time.Duration   // the global one, unless set
	IdleTimeout    time.Duration   // likewise; 0 = none
	ConnectTimeout time.Duration   // likewise
	Tools          ToolFilter      // without one, Allow is "*"
	Tool           map[string]Tool // by the server's own tool name
	Secrets        []string        // what Mask has to hide in any text about it, longest first
}

// OAuth is what does not go by itself in signing in to a server.
type OAuth struct {
	Grant        string // the file that keeps what was granted; "" = in the data directory
	ClientID     string // registered beforehand; "" = we register ourselves
	ClientSecret string
	Scopes       []string // asked for besides those that the server names
}

// HasCredential reports whether the server is configured with one, so that no other is
// shown to it.
func (s Server) HasCredential() bool {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	u, err := url.Parse(s.URL)
	return err == nil && u.User != nil
}

// ToolFilter selects tools of a server by glob on the server's own tool names;
// deny wins.
type ToolFilter struct{ Allow, Deny []string }

// Tool holds what is set for one tool of a server.
type Tool struct{ ResponseBudget *Size }

// Agent says what one agent identity may see and how much it can take. A nil
// list means all, an empty one none.
type Agent struct {
	Name           string
	Servers        []string
	Tools          []string
	ResponseBudget *Size // a ceiling; nil = none
	MaxLines       int   // 0 = no bound
	MaxToolName    int   // 0 = 64
	Token          string
}

// Sources tells where each value came from: "default", or "file:line".
type Sources map[string]string

// Budget is the most bytes of one result of a server's tool: the tool's own
// setting, else the server's, else the global one. 0 = unlimited. An agent's
// ceiling is not in it.
func (c *Config) Budget(server, tool string) Size {
	s := c.Servers[server]
	if own := s.Tool[tool].ResponseBudget; own != nil {
		return *own
	}
	if s.ResponseBudget != nil {
		return *s.ResponseBudget
	}
	return c.ResponseBudget
}

// DefaultAgent is the identity behind the plain /mcp.
const DefaultAgent = "default"

// Agent is what the configuration says about the agent called name, and whether
// it may enter at all. Without any configured agent every legal name may, and
// sees everything. With some, the others may not, except that DefaultAgent stays
// open until the first agent has a token. Who may not enter sees nothing. Checking the
// token is the caller's.
func (c *Config) Agent(name string) (Agent, bool) {
	if agent, ok := c.Agents[name]; ok {
		return agent, true
	}
	open := len(c.Agents) == 0 && ValidAgentName(name) ||
		name == DefaultAgent && !c.anyToken()
	if !open {
		return Agent{Name: name, Servers: []string{}, Tools: []string{}}, false
	}
	return Agent{Name: name}, true
}

func (c *Config) anyToken() bool {
	for _, agent := range c.Agents {
		if agent.Token != "" {
			return true
		}
	}
	return false
}
