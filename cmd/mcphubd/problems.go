package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// explained is what there is to say about one kind of problem.
type explained struct {
	title string
	means string
	fix   string // the first thing to do, in one line
	more  string // what else helps
}

// problems explains every code that the daemon or a command can raise. A code
// keeps its meaning for ever: people search for it.
var problems = map[string]explained{
	"config-invalid": {
		"the configuration is invalid",
		"The file cannot be taken as it is: a key is unknown, or a value is none that the key can hold. A daemon does not start with such a file, and one that runs goes on with what it had.",
		"mend the line that is named; mcphubd config check tells all mistakes at once",
		"mcphubd config default prints every key with its reason.",
	},
	"restart-to-apply": {
		"a new value in the configuration waits for a restart",
		"listen, socket and max_request are taken over only when the daemon starts. Everything else in the file is in force already.",
		"end the daemon by its process id and start it anew; clients attached by mcphubd connect do that by themselves",
		"mcphubd status tells the process id.",
	},
	"secret-missing": {
		"a value that the configuration refers to is not there",
		"A text in the configuration holds ${VAR}, ${env:VAR} or ${file:PATH}, and there is no such variable or file for the process that reads it. A daemon that a client launched has that client's environment, which often is not the one of your shell.",
		"set the variable where the daemon is started, or keep the value in a file: ${file:~/.config/mcphubd/name}",
		"${VAR:-default} gives a value to fall back to.",
	},
	"daemon-silent": {
		"the daemon lives but does not answer",
		"A process holds the data directory, and nobody answers on its socket. It is starting, ending, or stuck.",
		"wait ten seconds and look again; if it is still so, end it by its process id",
		"Before you end it, kill -QUIT PID makes it write what every part of it was doing to its stderr (daemon.out in the data directory, if a client launched it).",
	},
	"socket-stale": {
		"a socket was left behind",
		"There is a socket file on which nobody listens: a daemon ended without the time to remove it. It does no harm.",
		"start the daemon, which replaces it: mcphubd serve",
		"",
	},
	"port-taken": {
		"another program uses the port",
		"The address in listen cannot be opened, so a daemon would not start.",
		"set listen to another port, such as \"127.0.0.1:9821\", or to \"\" for the socket only",
		"ss -ltnp shows which program has the port. It may be another mcphubd with another data directory.",
	},
	"store-read-only": {
		"the store cannot be written",
		"The database or its folder belongs to somebody else, is write-protected, or lies on a file system that is mounted read-only.",
		"give the data directory back to this user: chown and chmod u+w, or choose another one with --data",
		"Nothing is lost: what is stored can still be read.",
	},
	"store-damaged": {
		"the database is damaged",
		"SQLite finds the file not to be sound, after a fault of the disk or because something else wrote to it.",
		"stop the daemon and move mcphubd.db away, with mcphubd.db-wal and mcphubd.db-shm if they are there; a new one is made at the next start",
		"The store holds results of at most 24 hours and records of calls; configuration is not in it.",
	},
	"spool-full": {
		"the store is full, or nearly so",
		"Stored results take as much as spool.max_bytes allows. New ones are not stored then: agents get them whole (fail_open = true), or an error. Those that are stored stay until their 24 hours are over.",
		"raise spool.max_bytes, or remove large results: mcphubd result ls, mcphubd result rm ID",
		"mcphubd stats --tools shows which tools fill it.",
	},
	"spool-failing": {
		"results cannot be stored",
		"Writing to the store failed: mostly the disk is full. Agents get large results whole meanwhile, or an error with fail_open = false.",
		"free disk space",
		"The problem goes by itself with the next result that is stored.",
	},
	"result-not-stored": {
		"a large result was not stored",
		"A result over the budget could not be kept, so its agent got all of it (fail_open = true) or an error. It cannot be read back.",
		"free disk space, or raise spool.max_bytes",
		"The log has a line with agent, server, tool, bytes and cause. It is shown for an hour.",
	},
	"prune-failing": {
		"expired results cannot be removed",
		"Results past their 24 hours are not given to anybody, but they still take space, because the store refuses to delete them.",
		"see to the problem of the store that is shown beside this one; free disk space",
		"It is tried again by itself.",
	},
	"actor-stuck": {
		"a part of the daemon hangs",
		"An actor has been handling one message for more than five seconds, and others wait behind it. Calls that need it wait too; the rest goes on.",
		"keep what /debug/pprof/goroutine?debug=1 tells of it for a report, then end the daemon by its process id and start it anew",
		"mcphubd ps shows which actor it is and since when. It is a fault of mcphubd, or of a disk that does not answer.",
	},
	"server-down": {
		"a server is not running",
		"The server ended or cannot be reached. It is started again by itself, with growing pauses up to a minute; its calls fail at once meanwhile, and say why.",
		"mcphubd server show NAME has the cause and the end of its stderr; mcphubd server probe NAME starts a copy of it",
		"mcphubd server restart NAME does not wait for the pause to end.",
	},
	"command-not-found": {
		"the command of a server does not exist",
		"The program is not in any folder of the PATH that the child would have, or the path in command leads nowhere. A daemon that a desktop application launched often has a shorter PATH than your shell.",
		"write the whole path in command; your shell tells it with: command -v",
		"env = { PATH = \"…\" } under the server gives it another PATH. No shell is involved, so no alias works, nor does ~/.bashrc.",
	},
	"exits-early": {
		"a server ends before it says hello",
		"The program started, and ended before it answered the first message: an argument is wrong, a key is missing, or it is not an MCP server.",
		"read the last lines of its stderr, which stand beside this; then mend args or env under the server",
		"Children get a small environment: PATH, HOME, LANG, proxies and the like. Everything else, such as API keys, has to be in env.",
	},
	"stdout-not-json": {
		"a server writes something else than MCP to its stdout",
		"On stdout only messages may stand. What else is written there is skipped; a server that says hello only in other words does not come up.",
		"let the server log to stderr; the first line that was skipped stands beside this",
		"Launchers print there too: npx wants -y, uvx wants -q, docker run wants -i and no -t.",
	},
	"handshake-timeout": {
		"a server does not answer in time",
		"The program runs, but has not answered initialize within connect_timeout.",
		"run mcphubd server probe NAME; if the server only is slow at its first start, raise connect_timeout under it",
		"npx, uvx and docker download at the first start. Run the command once by hand.",
	},
	"server-unreachable": {
		"nobody answers at the address of a server",
		"No connection to the host in url could be made: its name is unknown, nothing listens on the port, a proxy or firewall is between, or its certificate is not accepted.",
		"try the address with curl -v; then mend url under the server",
		"HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE are taken from the environment in which the daemon was started.",
	},
	"server-unauthorized": {
		"a server does not let us in",
		"The address answers with 401 or 403, or what was granted to us cannot be renewed. Agents' calls fail with this reason; nobody is asked to sign in but by you.",
		"mcphubd server login NAME; or, if the server takes no OAuth, set headers = { Authorization = \"Bearer ${file:PATH}\" } under it",
		"A credential in headers goes before what was granted by a login.",
	},
	"budget-above-cap": {
		"an agent's budget is above what its client takes",
		"The client cuts results, or moves them away, before they reach the model. What it cuts from a result that was not stored is lost: no receipt leads to it.",
		"set response_budget under [agents.NAME] to what the client takes",
		"Known: Codex cuts the middle out above some 10 KB, Claude Code moves results above 50,000 characters into a file.",
	},
	"too-many-tools": {
		"an agent sees very many tools",
		"Many clients and models take 128 tools at most, and every tool takes its part of each context.",
		"give the agent only what it needs: servers = [\"…\"] under [agents.NAME], or tools = { deny = [\"…\"] } under a server",
		"mcphubd stats --tools --since 30d shows which tools are used at all.",
	},
	"long-descriptions": {
		"descriptions of tools are longer than clients read",
		"Some clients cut descriptions at 2 KB, so that models do not see their end. They also are a part of every context.",
		"leave out tools that nobody needs: tools = { deny = [\"…\"] } under the server",
		"mcphubd tool ls shows how many bytes each tool takes.",
	},
	"version-skew": {
		"the daemon runs another version than this command",
		"The program was replaced while the daemon ran. The old one goes on as it was.",
		"start the daemon anew: end it by its process id; clients attached by mcphubd connect start the new one and go on",
		"mcphubd version and mcphubd status tell both versions.",
	},
}

// fixFor is the first thing to do about a problem, for that subject.
func fixFor(code, subject string) string {
	return strings.ReplaceAll(problems[code].fix, "NAME", subject)
}

// explain prints what there is to say about a code.
func explain(out *screen, code string) error {
	p, ok := problems[code]
	if !ok {
		known := slices.Sorted(maps.Keys(problems))
		return fail(codeNotFound, fmt.Errorf("no problem is called %q; there is: %s", code, strings.Join(known, ", ")))
	}
	out.line(painted(code, head), text(": "+p.title))
	out.line()
	out.paragraph(p.means)
	out.line()
	out.paragraph("What to do: " + p.fix + ".")
	if p.more != "" {
		out.line()
		out.paragraph(p.more)
	}
	return out.close()
}

// paragraph writes a text in lines of readable length.
func (s *screen) paragraph(t string) {
	line := ""
	for _, w := range strings.Fields(t) {
		if len(line)+1+len(w) > 88 && line != "" {
			s.line(text(line))
			line = ""
		}
		line = strings.TrimSpace(line + " " + w)
	}
	s.line(text(line))
}
