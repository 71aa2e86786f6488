package answers

import (
	"fmt"
	"strings"
)

// The log has one failure, of TheRequest on TheShard, and ends with LastWords.
const (
	TheRequest = "req-04711"
	TheShard   = "shard-23"
	LastWords  = "supervisor: exit code 137, memory limit of cgroup reached"
)

// Log is 9,000 lines of a service.
func Log() string {
	var b strings.Builder
	for i := range 9000 {
		at := fmt.Sprintf("2026-03-%02dT%02d:%02d:%02d.%03dZ", 1+i/400, i/16%24, i%60, mix(i)%60, mix(i)>>8%1000)
		switch i {
		case 6120:
			fmt.Fprintf(&b, "%s INFO  [router] %s goes to %s\n", at, TheRequest, TheShard)
		case 6121:
			fmt.Fprintf(&b, "%s ERROR [router] deadline exceeded after 30000 ms\n", at)
		case 6122:
			fmt.Fprintf(&b, "%s WARN  [router] %s is given up\n", at, TheRequest)
		case 8999:
			fmt.Fprintf(&b, "%s FATAL %s\n", at, LastWords)
		default:
			fmt.Fprintf(&b, "%s %s [%s] req-%05d took %d ms: %s\n", at, pick([]string{"INFO ", "DEBUG", "WARN "}, i, 14),
				pick([]string{"router", "store", "http"}, i, 15), 20000+i, mix(i)>>20%900, sentence(i))
		}
	}
	return b.String()
}

// An Order is a row of the table.
type Order struct {
	ID, Customer, Item, Status string
	Quantity                   int
	Cents                      int
}

// OrderOf is the order in row i.
func OrderOf(i int) Order {
	return Order{ID: fmt.Sprintf("ORD-%06d", 100000+i*7), Customer: pick(people, i, 16), Item: pick(goods, i, 17) + fmt.Sprint(", size ", mix(i)%12),
		Status: pick([]string{"paid", "shipped", "open", "refunded", "shipped"}, i, 18), Quantity: 1 + int(mix(i)>>9%9), Cents: int(mix(i) >> 13 % 99999)}
}

// orders is how many rows the table has.
const orders = 4000

// Orders is the table as CSV, with names in the first row and quotes where needed.
func Orders() string {
	var b strings.Builder
	b.WriteString("order_id,customer,item,status,quantity,total\n")
	for i := range orders {
		o := OrderOf(i)
		fmt.Fprintf(&b, "%s,%s,%q,%s,%d,%s\n", o.ID, o.Customer, o.Item, o.Status, o.Quantity, o.Total())
	}
	return b.String()
}

// Total is what the order costs, as the table says it.
func (o Order) Total() string { return fmt.Sprintf("%d.%02d", o.Cents/100, o.Cents%100) }

// OrdersThat is how many orders have that status.
func OrdersThat(status string) (n int) {
	for i := range orders {
		if OrderOf(i).Status == status {
			n++
		}
	}
	return n
}

var goods = []string{"Copper Kettle", "Linen Towel", "Oak Board", "Iron Pan", "Glass Jar", "Wool Rug"}

// Goods are the products on the page; the page names each once in a heading.
func Goods(i int) (name, button, price string) {
	return fmt.Sprintf("%s No. %d", goods[i%len(goods)], i), fmt.Sprintf("e%d", 1000+i*20+9), fmt.Sprintf("€%d.%02d", 5+mix(i)%90, mix(i)>>9%100)
}

// TheProblem is what the page says is wrong with the form at its end.
const TheProblem = "The voucher SPRING-26 has already been used"

// Snapshot is a page of a shop as browser tools describe it to a model.
func Snapshot() string {
	var b strings.Builder
	b.WriteString("- Page URL: https://shop.example/all\n- Page Title: Everything we have\n- Page Snapshot:\n```yaml\n- generic [ref=e1]:\n  - banner [ref=e2]:\n    - link \"Home\" [ref=e3] [cursor=pointer]:\n      - /url: /\n  - main [ref=e4]:\n")
	for i := range 700 {
		name, button, price := Goods(i)
		ref := 1000 + i*20
		fmt.Fprintf(&b, "    - article [ref=e%d]:\n      - img %q [ref=e%d]\n      - heading %q [level=3] [ref=e%d]\n", ref, "photo "+fmt.Sprint(i), ref+1, name, ref+2)
		fmt.Fprintf(&b, "      - generic [ref=e%d]: %s\n      - paragraph [ref=e%d]: %s\n", ref+3, price, ref+4, sentence(i))
		fmt.Fprintf(&b, "      - link \"Details\" [ref=e%d] [cursor=pointer]:\n        - /url: /p/%d\n      - button \"Add to cart\" [ref=%s] [cursor=pointer]\n", ref+5, i, button)
	}
	fmt.Fprintf(&b, "  - contentinfo [ref=e90000]:\n    - form [ref=e90001]:\n      - textbox \"Voucher\" [ref=e90002]: SPRING-26\n      - alert [ref=e90003]: %s\n      - button \"Redeem\" [ref=e90004]\n```\n", TheProblem)
	return b.String()
}
