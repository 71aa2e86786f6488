package budget

// ReceiptSchema is what a receipt in structuredContent looks like, as JSON Schema
// that every draft reads alike. It stands beside a tool's own outputSchema, so
// that clients that validate accept either. It refers to nothing outside itself.
const ReceiptSchema = `{"type":"object","title":"mcphub receipt",` +
	`"description":"Stands for a result that was too large and is stored; nextAction says how to read it.",` +
	`"properties":{"status":{"enum":["stored"]},"callId":{"type":"string"},"server":{"type":"string"},` +
	`"tool":{"type":"string"},"namespaced":{"type":"string"},"originalBytes":{"type":"integer"},` +
	`"budgetBytes":{"type":"integer"},"sha256":{"type":"string"},"lines":{"type":"integer"},` +
	`"shape":{"type":"string"},"preview":{"type":"string"},"nextAction":{"type":"string"}},` +
	`"required":["status","callId"]}`
