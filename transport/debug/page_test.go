package debug

import (
	"testing"

	"github.com/chromedp/chromedp"

	"mcphubd/test/mcptest/browser"
)

// The page lives on while an actor is stuck, and shows how long it has been.
func TestAWedgedActorLeavesThePageQuickAndShowsItsGrowingAge(t *testing.T) {
	base, _ := port(t, New(wedged(t)))
	b := browser.New(t)
	b.Do(chromedp.Navigate(base + "/debug/"))
	b.Await("the first state", `document.documentElement.dataset.ready === "1"`)
	b.Await("the stuck hub to turn red", `document.querySelector('#actors tr[data-key="hub/root"]')?.dataset.state === "stuck"`)
	b.Await("its state to say so", `document.querySelector('#actors tr[data-key="hub/root"] .pill.bad')?.textContent === "stuck"`)
	const doing = `[...document.querySelectorAll('#actors tr[data-key="hub/root"] td')].at(-1).textContent`
	was := browser.Eval[string](b, doing)
	at := browser.Eval[string](b, `document.documentElement.dataset.at`)
	b.Await("its age to grow from "+was, doing+` !== `+quote(was)+` && `+doing+`.startsWith("reload for ")`)
	b.Await("a newer state", `document.documentElement.dataset.at > `+quote(at))
	b.Await("the problem to be told", `document.querySelector('.problem[data-key="actor-stuck hub/root"]') !== null`)
	b.Shot("wedged")
	if errors := b.Errors(); len(errors) > 0 {
		t.Errorf("the page complained: %q", errors)
	}
}

func TestAClosedPageOpensWithTheToken(t *testing.T) {
	base, _ := port(t, New(plainHouse(t, "[debug]\ntoken = \"s3cret\"\n"+oneServer)))
	b := browser.New(t)
	b.Do(chromedp.Navigate(base + "/debug/"))
	b.Await("to be asked for the token", `document.getElementById("closed").classList.contains("on")`)
	if rows := browser.Eval[int](b, `document.querySelectorAll("tbody tr").length`); rows > 0 {
		t.Errorf("a closed page shows %d rows", rows)
	}
	browser.Eval[bool](b, `document.getElementById("token").value = "s3cret"; document.querySelector("#enter button").click(); true`)
	b.Await("the state", `document.documentElement.dataset.ready === "1" && !document.getElementById("closed").classList.contains("on")`)
	b.Await("the server", `document.querySelector('#servers tr[data-key="d"]')`)
}

func quote(s string) string { return `"` + s + `"` }
