package actors

import (
	"fmt"

	"github.com/anthdm/hollywood/actor"
	"github.com/rs/zerolog"
)

// System is the engine with what every actor of the house shares.
type System struct {
	engine   *actor.Engine
	board    *Board
	problems *Problems
	log      zerolog.Logger
	logs     logs
	ledger   *ledger
}

// NewSystem starts an engine and its Eventlog.
func NewSystem(log zerolog.Logger) (*System, error) {
	e, err := actor.NewEngine(actor.NewEngineConfig())
	if err != nil {
		return nil, fmt.Errorf("start actor engine: %w", err)
	}
	s := &System{engine: e, board: new(Board), problems: new(Problems), log: log, ledger: newLedger()}
	spawnEventlog(s)
	return s, nil
}

// Board shows all actors of the system.
func (s *System) Board() *Board { return s.board }

// Problems are what is wrong right now.
func (s *System) Problems() *Problems { return s.problems }
