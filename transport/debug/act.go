package debug

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"mcphubd/actors"
)

// maxAct bounds the body of a request to act.
const maxAct = 4 << 10

func (h *Handler) restart(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	acted(w, h.src.Restart(r.Context(), name), "restarted", name)
}

// remove ends a stored result before its time.
func (h *Handler) remove(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	acted(w, h.src.RemoveResult(r.Context(), id), "removed", id)
}

// acted answers what was done to which subject, or why it was not.
func acted(w http.ResponseWriter, err error, what, subject string) {
	switch {
	case errors.Is(err, actors.ErrNoServer), errors.Is(err, actors.ErrNoResult):
		refuse(w, http.StatusNotFound, err.Error())
	case errors.Is(err, actors.ErrDisabled):
		refuse(w, http.StatusConflict, err.Error())
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, err.Error())
	default:
		answer(w, http.StatusOK, map[string]string{what: subject})
	}
}

func (h *Handler) cancel(w http.ResponseWriter, r *http.Request) {
	serial, err := strconv.ParseInt(r.PathValue("serial"), 10, 64)
	if err != nil || !h.src.Cancel(serial) {
		refuse(w, http.StatusNotFound, "no call in flight has that number")
		return
	}
	answer(w, http.StatusOK, map[string]int64{"cancelled": serial})
}

func (h *Handler) reload(w http.ResponseWriter, r *http.Request) {
	if err := h.src.Reload(r.Context()); err != nil {
		refuse(w, http.StatusConflict, err.Error())
		return
	}
	answer(w, http.StatusOK, map[string]bool{"reloaded": true})
}

func (h *Handler) setLevel(w http.ResponseWriter, r *http.Request) {
	var to struct{ Level string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAct)).Decode(&to); err != nil {
		refuse(w, http.StatusBadRequest, `send {"level":"debug"}, or info, warn, error`)
		return
	}
	if err := h.src.SetLogLevel(to.Level); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	answer(w, http.StatusOK, h.level())
}
