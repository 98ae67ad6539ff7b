package fakeprovider

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/reference/wire"
)

// WriteExchange writes an exchange as two lines for a terminal:
//
//	--> POST /hooks  id=msg_0193  512 B  tampered/append-byte
//	<-- 204 No Content  3 ms
//
// What the peer sent is escaped where it could move a cursor. The id is the
// first header whose name ends in "-id", if there is one. An error is w's.
func WriteExchange(w io.Writer, x *wire.Exchange) error {
	var out strings.Builder
	out.WriteString("--> " + wire.Line(x.Request.Method) + " " + wire.Line(x.Request.Target))
	if id := idOf(x.Request.Headers); id != "" {
		out.WriteString("  id=" + wire.Line(id))
	}
	fmt.Fprintf(&out, "  %d B", x.Request.Size)
	if x.Label != "" {
		out.WriteString("  " + wire.Line(x.Label))
	}
	out.WriteString("\n<-- " + answerText(x) + "  " + tookText(x.Took) + "\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// answerText is what came back.
func answerText(x *wire.Exchange) string {
	if x.Response == nil {
		out := wire.Line(x.Fault)
		if x.FaultDetail != "" {
			out += ": " + wire.Line(x.FaultDetail)
		}
		return out
	}
	out := strconv.Itoa(x.Response.Status)
	if name := http.StatusText(x.Response.Status); name != "" {
		out += " " + name
	}
	if x.Response.Size > 0 {
		out += fmt.Sprintf("  %d B", x.Response.Size)
	}
	if x.FaultDetail != "" {
		out += "  (" + wire.Line(x.FaultDetail) + ")"
	}
	return out
}

// tookText is a duration in the unit that fits.
func tookText(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// idOf is the message id, as far as a header carries one.
func idOf(headers []wire.Header) string {
	for _, h := range headers {
		if strings.HasSuffix(strings.ToLower(h.Name), "-id") {
			return h.Value
		}
	}
	return ""
}
