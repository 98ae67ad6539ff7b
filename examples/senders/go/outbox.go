package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// endpoint is where messages go.
type endpoint struct {
	ID      string   `json:"id"`
	URL     string   `json:"url"`
	Types   []string `json:"types"` // none: all
	Secrets []secret `json:"secrets"`
	Gone    bool     `json:"gone"` // it answered 410
}

// secret signs until it ends; the newest stands last and has no end.
type secret struct {
	Text string    `json:"text"`
	Ends time.Time `json:"ends,omitzero"`
}

// message is one event on its way to one endpoint.
type message struct {
	ID       string    `json:"id"`
	Endpoint string    `json:"endpoint"`
	Type     string    `json:"type"`
	Body     []byte    `json:"body"`
	Status   string    `json:"status"` // pending, delivered or failed
	Next     time.Time `json:"next"`   // of a pending one
	Attempts []attempt `json:"attempts"`
}

type attempt struct {
	At     time.Time     `json:"at"`
	Took   time.Duration `json:"took"`
	Status int           `json:"status,omitempty"`
	Error  string        `json:"error,omitempty"`
}

// line is one line of the outbox: an endpoint or a message as it stands now. The
// last line of each counts.
type line struct {
	Endpoint *endpoint `json:"endpoint,omitempty"`
	Message  *message  `json:"message,omitempty"`
}

// outbox is a file of JSON lines that is only ever appended to.
type outbox struct{ file *os.File }

// openOutbox hands each line to read. A last line without an end is from a
// write that a crash cut off; nobody was told that it is kept.
func openOutbox(dir string, read func(line)) (*outbox, error) {
	file, err := os.OpenFile(filepath.Join(dir, "outbox.jsonl"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the outbox: %w", err)
	}
	var end int64
	for r := bufio.NewReader(file); ; {
		text, err := r.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		var l line
		if err == nil {
			err = json.Unmarshal(text, &l)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the outbox: %w", err)
		}
		read(l)
		end += int64(len(text))
	}
	if err := file.Truncate(end); err != nil {
		return nil, fmt.Errorf("mending the outbox: %w", err)
	}
	_, err = file.Seek(end, io.SeekStart)
	return &outbox{file}, err
}

// keep writes lines and returns once the disk has them.
func (o *outbox) keep(lines ...line) error {
	var text []byte
	for _, l := range lines {
		one, err := json.Marshal(l)
		if err != nil {
			return fmt.Errorf("writing the outbox: %w", err)
		}
		text = append(append(text, one...), '\n')
	}
	if _, err := o.file.Write(text); err != nil {
		return fmt.Errorf("writing the outbox: %w", err)
	}
	return o.file.Sync()
}
