package main

import (
	"errors"
	"fmt"
	"strings"
)

// splitWords cuts a command into words as a shell would, without being one:
// blanks separate, 'single' quotes keep everything, "double" quotes keep all
// but \" and \\, a backslash outside of quotes keeps the next character.
// Nothing is expanded, and ; | > & are characters like any other.
func splitWords(command string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	begun, escaped := false, false
	for _, c := range command {
		switch {
		case escaped:
			if quote == '"' && c != '"' && c != '\\' {
				word.WriteByte('\\')
			}
			word.WriteRune(c)
			escaped = false
		case c == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, begun = c, true
		case c == ' ' || c == '\t' || c == '\n':
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	switch {
	case quote != 0:
		return nil, fmt.Errorf("a %c quote is not closed", quote)
	case escaped:
		return nil, errors.New("nothing follows the last backslash")
	}
	if begun {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, errors.New("it names no program")
	}
	return words, nil
}

// quoteWord writes a word so that a shell, and splitWords, read it as one.
func quoteWord(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./:,=@%+{}", c)
	}
	if word != "" && strings.IndexFunc(word, func(c rune) bool { return !plain(c) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
