package answers

import (
	"fmt"
	"strings"
)

// Issue is one of the list that an issue tracker gives.
type Issue struct {
	Number    int     `json:"number"`
	Title     string  `json:"title"`
	State     string  `json:"state"`
	User      User    `json:"user"`
	Labels    []Label `json:"labels"`
	Comments  int     `json:"comments"`
	CreatedAt string  `json:"created_at"`
	HTMLURL   string  `json:"html_url"`
	Body      string  `json:"body"`
}

// User is who wrote an issue, Label one of its labels.
type User struct {
	Login string `json:"login"`
	ID    int    `json:"id"`
}

type Label struct {
	Name string `json:"name"`
}

// IssueList is the answer of a search for issues.
type IssueList struct {
	TotalCount int     `json:"total_count"`
	Items      []Issue `json:"items"`
}

// Issues are 320 issues, about 184 KB.
func Issues() IssueList {
	l := IssueList{TotalCount: 320}
	for i := range l.TotalCount {
		n := 1500 - i
		l.Items = append(l.Items, Issue{Number: n, Title: sentence(n), State: pick([]string{"open", "closed", "closed"}, n, 4),
			User:     User{fmt.Sprintf("%s-%d", pick(people, n, 5), mix(n)%900), 40000 + n},
			Labels:   []Label{{pick([]string{"bug", "question", "docs", "enhancement"}, n, 6)}, {pick([]string{"p1", "p2", "p3"}, n, 7)}},
			Comments: int(mix(n) >> 8 % 40), CreatedAt: fmt.Sprintf("2026-%02d-%02dT08:%02d:00Z", 1+mix(n)%9, 1+mix(n+1)%28, n%60),
			HTMLURL: fmt.Sprintf("https://tracker.example/org/repo/issues/%d", n), Body: paragraph(n, 2)})
	}
	return l
}

// Reporter is who wrote an issue.
func (l IssueList) Reporter(number int) string {
	for _, i := range l.Items {
		if i.Number == number {
			return i.User.Login
		}
	}
	return ""
}

// Count is how many issues have that state and that label.
func (l IssueList) Count(state, label string) (n int) {
	for _, i := range l.Items {
		for _, have := range i.Labels {
			if i.State == state && have.Name == label {
				n++
			}
		}
	}
	return n
}

// Node is a file or a directory, as the reference filesystem server shows a tree.
type Node struct {
	Name     string  `json:"name"`
	Type     string  `json:"type"`
	Children []*Node `json:"children,omitempty"`
}

// TheFile is in one directory of the tree only, which is Home.
const (
	TheFile = "retention_window.go"
	Home    = "ledger-17"
)

// Tree is a tree of 40 packages with some 1,500 files.
func Tree() []*Node {
	var top []*Node
	for i := range 40 {
		p := &Node{fmt.Sprintf("%s-%d", pick([]string{"ledger", "gateway", "runner"}, i, 8), i), "directory", nil}
		if i == 17 {
			p.Name = Home
		}
		for k := range 3 {
			d := &Node{pick([]string{"internal", "testdata", "docs"}, k, 0) + fmt.Sprint(k), "directory", nil}
			for f := range 12 {
				d.Children = append(d.Children, file(fmt.Sprintf("%s_%d%s", pick([]string{"reader", "writer", "index", "notes"}, i*36+k*12+f, 9), f, pick([]string{".go", ".go", ".md", ".txt"}, i*36+k*12+f, 10))))
			}
			p.Children = append(p.Children, d)
		}
		if i == 17 {
			p.Children = append(p.Children, file(TheFile))
		}
		top = append(top, p)
	}
	return top
}

func file(name string) *Node { return &Node{Name: name, Type: "file"} }

// Files is how many files of a tree have names that end so.
func Files(nodes []*Node, suffix string) (n int) {
	for _, d := range nodes {
		if d.Type == "file" && strings.HasSuffix(d.Name, suffix) {
			n++
		}
		n += Files(d.Children, suffix)
	}
	return n
}

// Fleet is a nested report, as from an orchestrator: the keys of some objects are
// data, and some values are JSON in strings.
type Fleet struct {
	Revision string             `json:"revision"`
	Clusters map[string]Cluster `json:"clusters"`
}

// Cluster is one of a fleet.
type Cluster struct {
	Region      string       `json:"region"`
	Deployments []Deployment `json:"deployments"`
	Events      []Event      `json:"events"`
}

// Deployment is what runs on a cluster, Container one of its parts, Event what happened.
type Deployment struct {
	Name        string            `json:"name"`
	Replicas    int               `json:"replicas"`
	Annotations map[string]string `json:"annotations"`
	Containers  []Container       `json:"containers"`
}

type Container struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

type Event struct {
	Seq     int    `json:"seq"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Clusters are three clusters of 60 deployments each.
func Clusters() Fleet {
	f := Fleet{"r-88", map[string]Cluster{}}
	for c, name := range []string{"eu-north", "eu/west", "us.east"} {
		cl := Cluster{Region: fmt.Sprintf("zone-%d", c)}
		for i := range 60 {
			n := c*60 + i
			cl.Deployments = append(cl.Deployments, Deployment{
				Name: fmt.Sprintf("%s-%d", pick([]string{"payments", "search", "mail", "auth"}, n, 11), n), Replicas: 1 + int(mix(n)%6),
				Annotations: map[string]string{"owner/team": pick(people, n, 12), "config": raw(map[string]any{"limits": map[string]int{"max": 100 + int(mix(n)%800), "burst": n}, "note": sentence(n)})},
				Containers:  []Container{{"app", image("app", n)}, {fmt.Sprintf("audit-proxy-%d", n), image("audit", n)}}})
			cl.Events = append(cl.Events, Event{n, pick([]string{"Pulled", "Killed", "Scheduled"}, n, 13), sentence(n + 7)})
		}
		f.Clusters[name] = cl
	}
	return f
}

func image(name string, n int) string {
	return fmt.Sprintf("registry.example/%s:%d.%d.%d", name, mix(n)%9, mix(n)>>8%30, mix(n)>>16%100)
}
