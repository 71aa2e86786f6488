package actors

import "errors"

// ErrToken reports that an agent cannot be entered like that. It does not tell whether
// the token is missing or whose it would be.
var ErrToken = errors.New("a token is needed, and this request has none or another; send the agent's own as Authorization: Bearer TOKEN")

// Enter says which agent a request is from that names one ("" = none) and brings a
// bearer token ("" = none), as configured now. Its error is ErrToken.
func (h Hub) Enter(name, token string) (agent string, err error) {
	agent, ok := h.View().Config.Enter(name, token)
	if !ok {
		return "", ErrToken
	}
	return agent, nil
}
