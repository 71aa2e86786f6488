package config

import "crypto/subtle"

// Enter decides which agent a request may enter as: one that names an agent (name, ""
// = it names none) and brings a bearer token ("" = none). An agent with a token is
// entered with that token alone; on a request that names nobody the token says who it
// is. A token that is brought has to be right, unless no agent has one: then it is
// meant for somebody else. Whether a name that needs no token is welcome is for Agent
// to say.
func (c *Config) Enter(name, token string) (agent string, ok bool) {
	if !c.anyToken() {
		if name == "" {
			name = DefaultAgent
		}
		return name, true
	}
	if token != "" {
		holder := c.holder(token)
		return holder, holder != "" && (name == "" || name == holder)
	}
	if name == "" {
		name = DefaultAgent
		if _, open := c.Agents[name]; !open {
			return "", false
		}
	}
	return name, c.Agents[name].Token == ""
}

// holder is whose token that is, "" when nobody's. How long it takes says nothing of
// how much of a token was right, nor of whose.
func (c *Config) holder(token string) (name string) {
	for n, a := range c.Agents {
		if subtle.ConstantTimeCompare([]byte(a.Token), []byte(token)) == 1 && a.Token != "" {
			name = n
		}
	}
	return name
}
