package filter

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/itchyny/gojq"
)

// The exit codes of a worker that failed. With exitTold it wrote the reason to its
// stderr. With exitGo the runtime of Go gave up: panics are caught, so what is left is
// a stack or memory at its limit, and for memory it has many words, segmentation
// violation among them.
const (
	exitTold = 1
	exitGo   = 2
)

// maxMessage is the most bytes of what a worker says.
const maxMessage = 1000

// Work is the child of Run: it gives up all it does not need, reads a program and a
// document from in and writes the results to out. It reports whether that went well;
// if not it wrote the reason to stderr, and the process has to end with code 1.
func Work(in io.Reader, out, stderr io.Writer) bool {
	err := confine()
	if err == nil {
		err = work(in, out)
	}
	if err != nil {
		fmt.Fprintln(stderr, shortened(err.Error(), maxMessage))
	}
	return err == nil
}

func work(in io.Reader, out io.Writer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the interpreter cannot run this program: %v", p)
		}
	}()
	r := bufio.NewReaderSize(in, 64<<10)
	program, err := readProgram(r)
	if err != nil {
		return err
	}
	query, code, err := compile(program)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(out, 64<<10)
	err = each(r, func(doc any) error { return runOn(doc, query, code, w) })
	if flushed := w.Flush(); err == nil {
		err = flushed
	}
	if errors.Is(err, errHalt) {
		return nil
	}
	return err
}

func readProgram(r *bufio.Reader) (program string, err error) {
	order, err := r.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(order, &program)
	}
	if err != nil {
		return "", fmt.Errorf("read the program: %w", err)
	}
	return program, nil
}

func compile(program string) (*gojq.Query, *gojq.Code, error) {
	query, err := gojq.Parse(program)
	if err != nil {
		return nil, nil, fmt.Errorf("the program is wrong %s: %w", position(program, err), err)
	}
	code, err := gojq.Compile(query)
	switch {
	case err == nil:
		return query, code, nil
	case strings.HasPrefix(err.Error(), "input(s)"):
		return nil, nil, errors.New("input and inputs are not allowed: the document is . already")
	}
	return nil, nil, fmt.Errorf("the program is wrong: %w", err)
}

// position says where in program a parser stopped.
func position(program string, err error) string {
	var wrong *gojq.ParseError
	if !errors.As(err, &wrong) {
		return "somewhere"
	}
	before := program[:max(0, min(len(program), wrong.Offset)-len(wrong.Token))]
	line := 1 + strings.Count(before, "\n")
	column := 1 + len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
	return fmt.Sprintf("at line %d, column %d", line, column)
}

// errHalt ends a run because the program said so.
var errHalt = errors.New("halt")

// runOn writes what the program gives for one document.
func runOn(doc any, query *gojq.Query, code *gojq.Code, w *bufio.Writer) error {
	for results := code.Run(doc); ; {
		v, ok := results.Next()
		if !ok {
			return nil
		}
		if err, wrong := v.(error); wrong {
			return explain(err, query, doc)
		}
		if beyond(v) {
			return errors.New("a number became larger than a 64-bit float can be; numbers that are only passed on keep their digits")
		}
		line, err := gojq.Marshal(v)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
}

// explain says more about an error of a program. What the program itself raised is
// left as it is.
func explain(err error, query *gojq.Query, doc any) error {
	var halt *gojq.HaltError
	var raised gojq.ValueError
	switch {
	case errors.As(err, &halt) && halt.Value() == nil:
		return errHalt
	case errors.As(err, &raised):
		return err
	}
	if hint := hint(query, doc); hint != "" {
		return fmt.Errorf("%s; %s", shortened(err.Error(), maxMessage/2), hint)
	}
	return err
}

// beyond reports whether an infinite number is somewhere in v: JSON has none, and
// gojq would write the largest float there is.
func beyond(v any) bool {
	switch v := v.(type) {
	case float64:
		return math.IsInf(v, 0)
	case []any:
		for _, element := range v {
			if beyond(element) {
				return true
			}
		}
	case map[string]any:
		for _, value := range v {
			if beyond(value) {
				return true
			}
		}
	}
	return false
}
