package agent

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ours are the capabilities of the gateway: it has all of them, whatever its servers
// have at the moment.
func ours() *mcp.ServerCapabilities {
	return &mcp.ServerCapabilities{
		Tools:       &mcp.ToolCapabilities{ListChanged: true},
		Prompts:     &mcp.PromptCapabilities{ListChanged: true},
		Resources:   &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
		Completions: &mcp.CompletionCapabilities{},
		Logging:     &mcp.LoggingCapabilities{},
	}
}

// welcome fills in what the SDK cannot know when it answers a handshake: what the
// servers say now, and for one server alone, what that can do.
func (s *Server) welcome(id *identity) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method != "initialize" && method != "server/discover" {
				return next(ctx, method, req)
			}
			agent, err := s.open(ctx, id.name)
			if err != nil {
				return nil, &jsonrpc.Error{Code: codeInternal, Message: err.Error()}
			}
			h, err := welcomed(ctx, agent)
			if err != nil {
				return nil, &jsonrpc.Error{Code: codeInternal, Message: err.Error()}
			}
			res, err := next(ctx, method, req)
			if err != nil {
				return res, err
			}
			can := ours()
			if h.Capabilities != nil {
				can = theirs(h.Capabilities)
			}
			switch res := res.(type) {
			case *mcp.InitializeResult:
				res.Instructions, res.Capabilities = h.Instructions, can
			case *mcp.DiscoverResult:
				res.Instructions, res.Capabilities = h.Instructions, can
			}
			return res, nil
		}
	}
}

// theirs are the capabilities that one server declared, as far as they pass through
// here. Changes of its lists are always told: the gateway notices them by itself too.
func theirs(raw []byte) *mcp.ServerCapabilities {
	c := &mcp.ServerCapabilities{}
	_ = json.Unmarshal(raw, c) // what it cannot read is not declared
	if c.Tools != nil {
		c.Tools.ListChanged = true
	}
	if c.Prompts != nil {
		c.Prompts.ListChanged = true
	}
	if c.Resources != nil {
		c.Resources.ListChanged = true
	}
	return c
}
