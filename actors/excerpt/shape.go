package excerpt

import "mcphubd/actors/shape"

const (
	shapeNodes  = 400 // in one shape
	shapeSample = 32  // elements of one array, and lines of JSON Lines, that are looked at
)

// A sketch makes a shape in bounded memory.
type sketch struct{ nodes int }

// node is a place of the shape; nil when there are enough.
func (k *sketch) node() *shape.Shape {
	if k.nodes >= shapeNodes {
		return nil
	}
	k.nodes++
	return &shape.Shape{}
}

// element is the place of element i of an array of shape s.
func (k *sketch) element(s *shape.Shape, i int64) *shape.Shape {
	if s == nil || i >= shapeSample {
		return nil
	}
	if s.Elem == nil {
		s.Elem = k.node()
	}
	return s.Elem
}
