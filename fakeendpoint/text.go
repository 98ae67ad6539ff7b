package fakeendpoint

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// WriteAttempt writes an attempt as two lines for a terminal:
//
//	<-- POST /hooks  id=msg_2KWP  171 B  attempt 2, 5.0 s after the last  verified by current
//	--> 500 Internal Server Error  1 ms
//
// The attempt is that of the message where the request names one, else that of
// the path. What the peer sent is escaped where it could move a cursor. An error
// is w's.
func WriteAttempt(w io.Writer, a *Attempt) error {
	var out strings.Builder
	out.WriteString("<-- ")
	if a.Request.Method == "" {
		out.WriteString("(no request)")
	} else {
		out.WriteString(wire.Line(a.Request.Method) + " " + wire.Line(a.Request.Target))
	}
	if a.ID != "" {
		out.WriteString("  id=" + wire.Line(a.ID))
	}
	fmt.Fprintf(&out, "  %d B", a.Request.Size)
	if a.OfMessage > 0 {
		fmt.Fprintf(&out, "  attempt %d", a.OfMessage)
	} else {
		fmt.Fprintf(&out, "  request %d", a.Number)
	}
	if a.OfMessage > 1 && a.Since != 0 {
		out.WriteString(", " + tookText(a.Since) + " after the last")
	}
	if v := &a.Verification; v.OK() {
		out.WriteString("  verified by " + wire.Line(strings.Join(v.By, " and ")))
	} else if v.Checked {
		out.WriteString("  NOT VERIFIED: " + wire.Line(v.Rule))
		if v.Detail != "" {
			out.WriteString(" (" + wire.Line(v.Detail) + ")")
		}
	}
	for _, label := range a.Verification.Leaks {
		out.WriteString("  HOLDS THE SECRET " + wire.Line(label))
	}
	out.WriteString("\n--> " + answered(a) + "  " + tookText(a.Ended.Sub(a.Began)) + "\n")
	for _, r := range a.Remarks {
		out.WriteString("    " + wire.Line(r) + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// answered is what the sender saw.
func answered(a *Attempt) string {
	if a.Response == nil {
		out := wire.Line(a.Fault)
		if a.FaultDetail != "" {
			out += ": " + wire.Line(a.FaultDetail)
		}
		return out
	}
	out := strconv.Itoa(a.Response.Status)
	if name := http.StatusText(a.Response.Status); name != "" {
		out += " " + name
	}
	if a.Response.Size > 0 {
		out += fmt.Sprintf("  %d B", a.Response.Size)
	}
	if a.Peer != "" {
		out += "  (the peer " + a.Peer + " before the end)"
	}
	return out
}

// WriteStray writes a stray as one line for a terminal.
func WriteStray(w io.Writer, s *Stray) error {
	out := "<-- no request: " + wire.Line(s.Reason)
	if s.Status > 0 {
		out += fmt.Sprintf("; answered %d", s.Status)
	}
	_, err := io.WriteString(w, out+"\n")
	return err
}

// tookText is a duration in the unit that fits.
func tookText(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return durationText(d.Round(time.Second))
}
