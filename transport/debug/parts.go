package debug

import (
	"net/http"

	"mcphubd/actors"
	"mcphubd/config"
)

func (h *Handler) calls() any {
	s := h.src.Snapshot()
	return struct {
		InFlight []actors.CallInfo `json:"inFlight"`
		Recent   []actors.CallDone `json:"recent"`
	}{s.Calls, s.Recent}
}

func (h *Handler) sessions() any {
	return struct {
		Sessions []actors.SessionLine `json:"sessions"`
		Attached any                  `json:"attached"`
	}{h.src.Snapshot().Sessions, h.src.Attached()}
}

func (h *Handler) server(w http.ResponseWriter, r *http.Request) {
	for _, s := range h.src.Snapshot().Servers {
		if s.Name == r.PathValue("name") {
			answer(w, http.StatusOK, s)
			return
		}
	}
	refuse(w, http.StatusNotFound, "no server of that name is configured")
}

// config is what is in force, without secrets, and where each value came from.
func (h *Handler) config() any {
	c := h.src.Config()
	settings, sources := c.Settings(), map[string]string{}
	for _, s := range settings {
		sources[s.Key.String()] = s.Source
	}
	return struct {
		File    string            `json:"file,omitempty"`
		Config  map[string]any    `json:"config"`
		Sources map[string]string `json:"sources"`
	}{c.File, config.Tree(settings), sources}
}

func (h *Handler) level() any { return map[string]string{"level": h.src.LogLevel()} }
