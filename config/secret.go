package config

import (
	"net/url"
	"regexp"
	"sort"
	"strings"
)

// hidden stands where a secret would.
const hidden = "***"

// minSecret is the shortest text that is hidden wherever it occurs: hiding every
// "1" or "warn" would only make texts unreadable.
const minSecret = 6

var secretName = regexp.MustCompile(`(?i)token|secret|passw|passphrase|auth([^o]|oriz|$)|cred|cookie|session|(api|access|private|secret)[_-]?key|(^|[_-])key$`)

func isSecretName(name string) bool { return secretName.MatchString(name) }

// Mask replaces every one of secrets that occurs in text.
func Mask(text string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, hidden)
		}
	}
	return text
}

// Secrets is everything in c that may not be shown, as Mask takes it.
func (c *Config) Secrets() []string {
	var all []string
	for _, s := range c.Servers {
		all = append(all, s.Secrets...)
	}
	for _, a := range c.Agents {
		all = append(all, a.Token)
	}
	return SecretSet(all)
}

// serverSecrets is what must not be shown of s: headers, variables and
// arguments that are named like secrets, credentials in URLs.
func serverSecrets(s Server) []string {
	found := append(urlSecrets(s.URL), s.OAuth.ClientSecret)
	for _, value := range s.Headers {
		found = append(found, value, lastWord(value))
	}
	for name, value := range s.Env {
		found = append(found, urlSecrets(value)...)
		if isSecretName(name) {
			found = append(found, value)
		}
	}
	for i := range s.Args {
		found = append(found, argSecrets(s.Args, i)...)
	}
	return found
}

// argSecrets is what must not be shown of args[i].
func argSecrets(args []string, i int) []string {
	arg := args[i]
	found := urlSecrets(arg)
	if i > 0 && isFlag(args[i-1]) && isSecretName(args[i-1]) {
		found = append(found, arg)
	}
	if at := strings.IndexAny(arg, "=:"); at > 0 && isSecretName(arg[:at]) {
		value := strings.TrimSpace(arg[at+1:])
		found = append(found, value, lastWord(value))
	}
	return found
}

// isFlag reports whether the argument behind arg is its value.
func isFlag(arg string) bool { return strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") }

// urlSecrets is the password and the query values of a URL.
func urlSecrets(text string) []string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil
	}
	var found []string
	if password, ok := u.User.Password(); ok {
		found = append(found, password, url.QueryEscape(password))
	}
	for _, pair := range strings.Split(u.RawQuery, "&") {
		_, raw, _ := strings.Cut(pair, "=")
		found = append(found, raw)
	}
	for _, values := range u.Query() {
		found = append(found, values...)
	}
	return found
}

func lastWord(s string) string { return s[strings.LastIndexByte(s, ' ')+1:] }

// SecretSet is all as Mask takes it: longest first, so that no secret hides a part of a
// longer
// one, without doubles and without what is too short.
func SecretSet(all []string) []string {
	sort.Slice(all, func(i, j int) bool {
		if len(all[i]) != len(all[j]) {
			return len(all[i]) > len(all[j])
		}
		return all[i] < all[j]
	})
	var set []string
	for i, s := range all {
		if len(s) >= minSecret && (i == 0 || s != all[i-1]) {
			set = append(set, s)
		}
	}
	return set
}
