package main

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestACommandIsCutIntoWords(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		want    []string
	}{
		"at blanks":                          {"  node  server.js\t--port\n8080 ", []string{"node", "server.js", "--port", "8080"}},
		"single quotes keep all":             {`sh -c 'echo "$PORT" \n'`, []string{"sh", "-c", `echo "$PORT" \n`}},
		"double quotes keep blanks":          {`a "b  c"`, []string{"a", "b  c"}},
		"a double quote in double quotes":    {`a "b \" c"`, []string{"a", `b " c`}},
		"a backslash in double quotes":       {`a "b \\ \n"`, []string{"a", `b \ \n`}},
		"a backslash outside keeps the next": {`a b\ c \"d`, []string{"a", "b c", `"d`}},
		"quotes inside a word":               {`--name='a b'c`, []string{"--name=a bc"}},
		"an empty word":                      {`a '' ""`, []string{"a", "", ""}},
		"what a shell would act on is text":  {`a > b | c; d & $X *`, []string{"a", ">", "b", "|", "c;", "d", "&", "$X", "*"}},
		"other letters":                      {`größe "é ü"`, []string{"größe", "é ü"}},
	} {
		got, err := splitWords(c.command)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

func TestACommandThatCannotBeCutIsRefused(t *testing.T) {
	for command, want := range map[string]string{
		"":       "it names no program",
		" \t":    "it names no program",
		"''":     "it names no program",
		`a 'b`:   "a ' quote is not closed",
		`a "b`:   `a " quote is not closed`,
		`a "b\"`: `a " quote is not closed`,
		`a b\`:   "nothing follows the last backslash",
	} {
		if got, err := splitWords(command); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v; want %q", command, got, err, want)
		}
	}
}

func TestQuotedWordsAreReadAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.String(), 1, 5).Draw(t, "words")
		if words[0] == "" {
			words[0] = "program"
		}
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = quoteWord(w)
		}
		got, err := splitWords(strings.Join(quoted, " "))
		if err != nil || !slices.Equal(got, words) {
			t.Fatalf("%q became %q, %v", words, got, err)
		}
	})
}

func FuzzSplitWords(f *testing.F) {
	for _, seed := range []string{"a b", `a 'b c' "d\"e" \f`, `'`, `\`, "é\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, command string) {
		if words, err := splitWords(command); err == nil && (len(words) == 0 || words[0] == "") {
			t.Errorf("%q gives no program: %q", command, words)
		}
	})
}
