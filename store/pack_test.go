package store

import (
	"bytes"
	"testing"
)

func FuzzPackUnpack(f *testing.F) {
	f.Add([]byte{}, 0, byte(0))
	f.Add(bytes.Repeat([]byte("abc "), 1000), 10, byte(1))
	f.Add(noise(5000), 4000, byte(255))
	f.Fuzz(func(t *testing.T, raw []byte, at int, flip byte) {
		if len(raw) > ChunkSize {
			raw = raw[:ChunkSize]
		}
		c := Pack(raw)
		out, err := c.Unpack([]byte("head"))
		if err != nil || string(out) != "head"+string(raw) || c.N != len(raw) || len(c.Data) > len(raw) {
			t.Fatalf("%d bytes came back as %d, %v", len(raw), len(out)-4, err)
		}
		if flip == 0 || len(c.Data) == 0 {
			return
		}
		// Damage is an error, or it happens to mean the same bytes.
		c.Data = bytes.Clone(c.Data)
		c.Data[uint(at)%uint(len(c.Data))] ^= flip
		if out, err := c.Unpack(nil); err == nil && !bytes.Equal(out, raw) {
			t.Fatal("damaged data unpacked to other bytes")
		}
	})
}

func TestPackCompressesOnlyWhereItPays(t *testing.T) {
	if c := Pack(text(ChunkSize)); !c.Zip || len(c.Data) > ChunkSize/2 {
		t.Errorf("text: zip %v, %d bytes", c.Zip, len(c.Data))
	}
	raw := noise(ChunkSize)
	if c := Pack(raw); c.Zip || &c.Data[0] != &raw[0] {
		t.Error("noise was compressed or copied")
	}
}
