package catalog

// The names of the gateway's own tools. They carry no server, so they cannot
// equal an exposed name unless a server is called mcphub.
const (
	GetResult  = "mcphub_get_result"
	ReadResult = "mcphub_read_result"
)

var own = map[string]string{
	GetResult:             GetResult,
	"get_result":          GetResult,
	"mcphub__get_result":  GetResult,
	ReadResult:            ReadResult,
	"read_result":         ReadResult,
	"mcphub__read_result": ReadResult,
}

// OwnTool returns which tool of the gateway is called name, by its proper name or
// by an alias. Agents that see tools under a server's own names look there first.
func OwnTool(name string) (canonical string, ok bool) {
	canonical, ok = own[name]
	return canonical, ok
}

// Reserved reports whether an exposed name belongs to the gateway.
func Reserved(name string) bool { return own[name] != "" }

// OwnNames returns what the gateway's own tools are called for agents that can bear
// names of at most longest bytes.
func OwnNames(longest int) (read, get string) {
	if longest < len(ReadResult) {
		return "read_result", "get_result"
	}
	return ReadResult, GetResult
}

// OwnTools returns the tools/list entries of the gateway's own tools, under the names
// that agents can bear. They are listed for every agent that can receive a receipt.
func OwnTools(longest int) [][]byte {
	read, get := OwnNames(longest)
	return [][]byte{[]byte(`{"name":"` + read + readResult), []byte(`{"name":"` + get + getResult)}
}

const readResult = `","title":"Read stored result",` +
	`"description":"Read parts of a tool result that was stored because it is large (a receipt names its callId), as text. ` +
	`Give one of lines, grep, records or jq; without them you get an outline, without callId a list of your stored results. ` +
	`The first line of an answer tells what it is of how much, and next=TOKEN when there is more: call again with callId and next. ` +
	`Examples: {\"callId\":\"...\",\"grep\":\"(?i)error\",\"around\":2} ` +
	`{\"callId\":\"...\",\"jq\":\".items[]|select(.id==7)|.title\"}",` +
	`"inputSchema":{"type":"object","properties":{` +
	`"callId":{"type":"string","description":"The callId of the receipt."},` +
	`"lines":{"type":"string","description":"Lines of the text: 120-180, 120+40, or -40 for the last 40."},` +
	`"grep":{"type":"string","description":"RE2 pattern: matching lines with their numbers."},` +
	`"around":{"type":"integer","minimum":0,"maximum":50,"description":"With grep: lines of context."},` +
	`"records":{"type":"string","description":"JSON Pointer of an array, such as /items; \"\" is the largest array, or the rows of CSV, JSON Lines or text."},` +
	`"offset":{"type":"integer","minimum":0,"description":"With records: how many to skip."},` +
	`"limit":{"type":"integer","minimum":1,"description":"With records or grep: how many at most."},` +
	`"jq":{"type":"string","description":"jq program over the JSON of the result."},` +
	`"part":{"type":["string","integer"],"description":"Another part than the text: number of a content block, structured, or result."},` +
	`"next":{"type":"string","description":"Token of the page before; goes on where it ended."}}},` +
	`"annotations":{"title":"Read stored result","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}`

const getResult = `","title":"Get stored result",` +
	`"description":"Read back a tool result that was too large to be sent whole. ` +
	`When a tool answers with {\"status\":\"stored\",\"callId\":\"...\"}, its complete result is kept for 24 hours. ` +
	`Each call returns one page as JSON: data is base64 of the exact bytes from byte offset cursor on; ` +
	`pass nextCursor as cursor to go on, until done is true. ` +
	`The decoded pages put together are the tool's original result as JSON.",` +
	`"inputSchema":{"type":"object","properties":{` +
	`"callId":{"type":"string","description":"The callId of the receipt."},` +
	`"cursor":{"type":"integer","minimum":0,"default":0,"description":"Byte offset to read from: 0 first, then the nextCursor of the page before."}},` +
	`"required":["callId"]},` +
	`"annotations":{"title":"Get stored result","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}`
