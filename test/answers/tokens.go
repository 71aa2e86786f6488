package answers

import (
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

var counter = sync.OnceValue(codec.NewO200kBase)

// Tokens is what a text costs a model. The vocabulary is part of the binary.
func Tokens(s string) (int, error) { return counter().Count(s) }
