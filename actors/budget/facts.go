package budget

// Facts is what a receipt says of a result, gathered while the result passed.
type Facts struct {
	Bytes   int64
	Lines   int64  // lines of text in its text blocks; 0 when it has none
	SHA256  string // hex, over all bytes
	IsError bool
	Meta    []byte // raw "_meta" object, nil when absent or over 16 KiB
	MetaAt  Span   // its value; empty when absent
	End     int64  // offset of the brace that ends the result
	// ResultType is the value of "resultType", "" when absent.
	ResultType string
	Structured bool    // has structuredContent
	Blocks     []Block // content blocks in order, at most 256; More counts the rest
	More       int
	Head, Tail string // leading and trailing text for the preview, whole characters
	Between    int64  // bytes of text left out between Head and Tail
	// Data is what structuredContent begins with, when that is the large part and the
	// text beside it a summary; "" otherwise. Beyond is how many bytes follow.
	Data   string
	Beyond int64
}

// Block is one content block of a result.
type Block struct {
	Type  string `json:"type"`
	Mime  string `json:"mime,omitempty"`
	Bytes int64  `json:"bytes"` // of its JSON
	At    int64  `json:"at"`    // offset of its JSON in the result
	Data  Span   `json:"-"`     // the value of data, or of the embedded resource's blob
}

// Span is the half-open byte range [A,B) of a result.
type Span struct{ A, B int64 }

const (
	maxMeta   = 16 << 10
	maxBlocks = 256
	maxLabel  = 512 // raw bytes of a block's type or mime that are looked at
	maxKey    = 128 // raw bytes of a key that are looked at: escaped ones count six for one
)
