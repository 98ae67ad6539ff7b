package fakeendpoint_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/whconform/whconform/fakeendpoint"
	"github.com/whconform/whconform/reference/wire"
)

func TestAScriptReadsAsItIsPrinted(t *testing.T) {
	for _, c := range []struct{ text, printed string }{
		{"200", "200"},
		{" 500 * 2 , 200 ", "500*2,200"},
		{"500*1,200", "500,200"},
		{"503(retry-after=600),200", "503(retry-after=600),200"},
		{"429(retry-after=date+30s)*until,200", "429(retry-after=date+30s)*until,200"},
		{"429(retry-after=1500ms)*until,200", "429(retry-after=2s)*until,200"},
		{"503(retry-after=-5),503(retry-after=soon),503(retry-after=date-1h),503(retry-after=1000000000)", "503(retry-after=-5),503(retry-after=soon),503(retry-after=date-1h),503(retry-after=1000000000)"},
		{`503(retry-after="30s")`, `503(retry-after="30s")`},
		{"301(location=http://127.0.0.1:1/a?b=c)", "301(location=http://127.0.0.1:1/a?b=c)"},
		{`200(body="a,b)\n", header="X-A: 1", header="X-B: 2", close)`, `200(close,header="X-A: 1",header="X-B: 2",body="a,b)\n")`},
		{"slow(20s),slow(20s,500),slow(1m30s,503(retry-after=5))", "slow(20s),slow(20s,500),slow(1m30s,503(retry-after=5))"},
		{"slow(60s, 200)", "slow(1m)"},
		{"hang", "hang"},
		{"drip(1B,1s)", "drip(1B,1s)"},
		{"drip(1B,1s,head,size=16KiB,status=500)", "drip(1B,1s,head,size=16KiB,status=500)"},
		{"huge(1GiB),huge(1024MiB,chunked),huge(1000,status=500)", "huge(1GiB),huge(1GiB,chunked),huge(1000B,status=500)"},
		{"gzip-bomb(1GiB),endless,headers(16MiB),headers(16MiB,one-line)", "gzip-bomb(1GiB),endless,headers(16MiB),headers(16MiB,one-line)"},
		{"reset,close,truncate,truncate(1MiB,chunked),garbage", "reset,close,truncate,truncate(1MiB,chunked),garbage"},
		{"103,200*2", "103,200*2"},
		{`103(header="Link: </a>")*2,100,200`, `103(header="Link: </a>")*2,100,200`},
		{"early,early(413),early(503(retry-after=9))", "early(413),early(413),early(503(retry-after=9))"},
		{"expired,wrong-host,self-signed,refuse(30s),full-queue(2d),refuse", "expired,wrong-host,self-signed,refuse(30s),full-queue(2d),refuse"},
		{"503*30s,410", "503*30s,410"},
		{"101,999", "101,999"},
	} {
		t.Run(c.text, func(t *testing.T) {
			s, err := fakeendpoint.ParseScript(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.String(); got != c.printed {
				t.Errorf("printed as %s, want %s", got, c.printed)
			}
			again, err := fakeendpoint.NewScript(s.Steps()...)
			if err != nil || again.String() != c.printed {
				t.Errorf("its steps make %v, %v", again, err)
			}
			unescaped, err := url.PathUnescape(strings.TrimPrefix(s.Path(), "/s/"))
			if err != nil || unescaped != c.printed || strings.Contains(s.Path()[3:], "/") {
				t.Errorf("in a URL it is %s", s.Path())
			}
		})
	}
}

func TestAScriptErrorSaysWhereAndWhatMayHaveBeenMeant(t *testing.T) {
	for _, c := range []struct {
		text   string
		column int
		says   string
	}{
		{"", 1, "a step is missing"},
		{"200,", 5, "a step is missing"},
		{"200,,500", 5, "a step is missing"},
		{"200;500", 4, `a comma is missing before ";"`},
		{"(200)", 1, `a step cannot begin with "("`},
		{"hagn", 1, `there is no step "hagn"; did you mean "hang"?`},
		{"200,Hang", 5, `did you mean "hang"?`},
		{"xyzzy", 1, "there are statuses and slow, hang, drip"},
		{"20", 1, "20 is no status"},
		{"0200", 1, "0200 is no status"},
		{"1000", 1, "1000 is no status"},
		{"099", 1, "099 is no status"},
		{"103", 1, "103 is an interim answer and the script ends with it"},
		{"103*101,200", 5, "an interim answer is repeated 1 to 100 times"},
		{"103(body=x),200", 5, `103 takes no argument "body"; it takes header=`},
		{"503(retry-afer=5)", 5, `did you mean "retry-after="?`},
		{"503(retry-after=)", 17, "an argument is missing"},
		{`503(retry-after="")`, 17, "the value of retry-after is empty"},
		{"503(retry-after=1,retry-after=2)", 19, "retry-after stands twice"},
		{"200(x)", 5, `200 takes no argument "x"; it takes retry-after=, location=, header=, body=, close`},
		{"200(close", 4, "the parenthesis is not closed"},
		{"200(", 4, "the parenthesis is not closed"},
		{`200(body="x)`, 10, "the quote is not closed"},
		{`200(body="\q")`, 11, `\q is no escape`},
		{`200(body="\x4")`, 11, "two hexadecimal digits"},
		{`200(body="a"b)`, 13, "a comma or a closing parenthesis is missing"},
		{"200(header=nothing)", 12, "is no header line"},
		{`200(header="A: b\r\nC: d")`, 12, "is no header line"},
		{"204(body=x)", 1, "an answer 204 has no body"},
		{"huge(1GiB,chuncked)", 11, `did you mean "chunked"?`},
		{"truncate(chuncked)", 10, `did you mean "chunked"?`},
		{"huge", 1, "huge needs a size such as 1GiB"},
		{"huge(1XiB)", 6, "has no unit that is known"},
		{"huge(0)", 6, "out of range"},
		{"huge(2TiB)", 6, "out of range; 1 B to 1TiB are possible"},
		{"huge(1GiB,status=204)", 1, "an answer 204 has no body"},
		{"slow", 1, "slow needs a duration such as 20s"},
		{"slow(20)", 6, `"20" is no duration; write 500ms, 20s`},
		{"slow(31d)", 6, "is no duration"},
		{"slow(721h)", 6, "out of range; up to 30d are possible"},
		{"slow(1s,slow(1s))", 1, "slow cannot follow the wait of slow"},
		{"200,slow(1s,hagn)", 13, `there is no step "hagn"; did you mean "hang"?`},
		{"slow(1s,expired)", 1, "expired is about a connection"},
		{"slow(1s,500*2)", 1, "a step within another is not repeated by itself"},
		{"early(hang)", 1, "early takes a status"},
		{"200*0", 5, "a step is repeated 1 to 1000000 times"},
		{"200*", 5, "how often is missing"},
		{"200*untill,500", 5, `did you mean "until"?`},
		{"429*until,200", 1, "has none that says when"},
		{"429(retry-after=soon)*until,200", 1, "has none that says when"},
		{"429(retry-after=5)*until", 1, "nothing follows it"},
		{"200,503*30s", 5, "nothing follows it"},
		{"refuse*2,200", 1, "refuse is not repeated"},
		{"103,expired", 1, "has no answer that could follow"},
		{"hang(5s)", 6, `hang takes no argument "5s"`},
		{strings.Repeat("200,", 256) + "200", 1025, "more than 256 steps"},
		{strings.Repeat("x", fakeendpoint.MaxScript+1), 8193, "at most 8192 are read"},
	} {
		t.Run(c.text[:min(len(c.text), 40)], func(t *testing.T) {
			_, err := fakeendpoint.ParseScript(c.text)
			var e *fakeendpoint.ScriptError
			if !errors.As(err, &e) {
				t.Fatalf("the error is %v", err)
			}
			if e.Column != c.column || !strings.Contains(e.Error(), c.says) {
				t.Errorf("got %v; want column %d and %q", e, c.column, c.says)
			}
		})
	}
}

func TestACaretMarksTheColumn(t *testing.T) {
	_, err := fakeendpoint.ParseScript("200,\thagn*2")
	var e *fakeendpoint.ScriptError
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	if want := "200,?hagn*2\n     ^"; e.Caret() != want {
		t.Errorf("got\n%s\nwant\n%s", e.Caret(), want)
	}
}

func TestAStepThatSaysMoreThanItDoesIsRefused(t *testing.T) {
	for name, s := range map[string]fakeendpoint.Step{
		"no kind":              {},
		"a hang with a status": {Kind: fakeendpoint.KindHang, Status: 200},
		"a reset with a body":  {Kind: fakeendpoint.KindReset, Body: "x"},
		"a status with a size": {Kind: fakeendpoint.KindStatus, Status: 200, Size: 1},
		"a huge with a wait":   {Kind: fakeendpoint.KindHuge, Size: 1, Wait: time.Second},
		"an interim 200":       {Kind: fakeendpoint.KindStatus, Status: 200, Interim: []fakeendpoint.Interim{{Status: 200}}},
		"a split header":       {Kind: fakeendpoint.KindStatus, Status: 200, Headers: []wire.Header{{Name: "A", Value: "b\r\nC: d"}}},
		"a slow without then":  {Kind: fakeendpoint.KindSlow, Wait: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := fakeendpoint.NewScript(s); err == nil {
				t.Errorf("it made %v", s)
			}
		})
	}
	if _, err := fakeendpoint.NewScript(); err == nil {
		t.Error("a script of no steps was made")
	}
}

func TestTheZeroScriptAnswers200(t *testing.T) {
	if got := (fakeendpoint.Script{}).String(); got != "200" {
		t.Errorf("it is %s", got)
	}
}

// Whatever can be made can be printed, and reads as the same again.
func TestEveryScriptSurvivesPrinting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "steps")
		steps := make([]fakeendpoint.Step, n)
		for i := range steps {
			steps[i] = drawStep(t, i == n-1)
		}
		s, err := fakeendpoint.NewScript(steps...)
		if err != nil {
			t.Fatalf("the generator is wrong: %v", err)
		}
		back, err := fakeendpoint.ParseScript(s.String())
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if back.String() != s.String() {
			t.Fatalf("%s came back as %s", s, back)
		}
	})
}

func drawStep(t *rapid.T, last bool) fakeendpoint.Step {
	s := drawPlain(t)
	if !s.Kind.OnConnection() && rapid.Bool().Draw(t, "interim") {
		s.Interim = []fakeendpoint.Interim{{Status: rapid.SampledFrom([]int{100, 102, 103, 199}).Draw(t, "interim status"), Times: rapid.SampledFrom([]int{0, 2, 50}).Draw(t, "times"), Headers: drawHeaders(t)}}
	}
	if s.Kind == fakeendpoint.KindRefuse || s.Kind == fakeendpoint.KindFullQueue {
		return s
	}
	switch rapid.IntRange(0, 3).Draw(t, "repeat") {
	case 1:
		s.Repeat.Times = rapid.IntRange(2, fakeendpoint.MaxRepeat).Draw(t, "times")
	case 2:
		if !last {
			s.Repeat.For = drawWait(t)
		}
	case 3:
		if !last && s.Kind == fakeendpoint.KindStatus && s.RetryAfter.Delay > 0 {
			s.Repeat.Until = true
		}
	}
	return s
}

func drawPlain(t *rapid.T) fakeendpoint.Step {
	size := func() int64 { return rapid.Int64Range(1, fakeendpoint.MaxSize).Draw(t, "size") }
	status := func() int { return rapid.SampledFrom([]int{0, 200, 500, 999}).Draw(t, "status") }
	k := rapid.SampledFrom([]fakeendpoint.Kind{
		fakeendpoint.KindStatus, fakeendpoint.KindSlow, fakeendpoint.KindHang, fakeendpoint.KindDrip, fakeendpoint.KindHuge, fakeendpoint.KindBomb,
		fakeendpoint.KindEndless, fakeendpoint.KindHeaders, fakeendpoint.KindReset, fakeendpoint.KindClose, fakeendpoint.KindTruncate, fakeendpoint.KindGarbage,
		fakeendpoint.KindEarly, fakeendpoint.KindExpired, fakeendpoint.KindWrongHost, fakeendpoint.KindSelfSigned, fakeendpoint.KindRefuse, fakeendpoint.KindFullQueue,
	}).Draw(t, "kind")
	s := fakeendpoint.Step{Kind: k}
	switch k {
	case fakeendpoint.KindStatus:
		return drawStatus(t)
	case fakeendpoint.KindSlow:
		then := drawStatus(t)
		s.Wait, s.Then = drawWait(t), &then
	case fakeendpoint.KindEarly:
		then := drawStatus(t)
		s.Then = &then
	case fakeendpoint.KindDrip:
		s.Piece, s.Wait, s.Head, s.Status = size(), drawWait(t), rapid.Bool().Draw(t, "head"), status()
		if rapid.Bool().Draw(t, "sized") {
			s.Size = size()
		}
	case fakeendpoint.KindHuge, fakeendpoint.KindBomb, fakeendpoint.KindTruncate:
		s.Size, s.Chunked, s.Status = size(), rapid.Bool().Draw(t, "chunked"), status()
	case fakeendpoint.KindHeaders:
		s.Size, s.OneLine, s.Status = size(), rapid.Bool().Draw(t, "one line"), status()
	case fakeendpoint.KindRefuse, fakeendpoint.KindFullQueue:
		s.Wait = rapid.SampledFrom([]time.Duration{0, time.Second, 25 * time.Hour}).Draw(t, "for")
	}
	return s
}

func drawStatus(t *rapid.T) fakeendpoint.Step {
	s := fakeendpoint.Step{Kind: fakeendpoint.KindStatus, Status: rapid.OneOf(rapid.Just(101), rapid.IntRange(200, 999)).Draw(t, "status")}
	switch rapid.IntRange(0, 3).Draw(t, "retry-after") {
	case 1:
		s.RetryAfter.Text = rapid.StringMatching(`[ -~\x{80}-\x{2ff}]{1,9}`).Draw(t, "text")
	case 2:
		s.RetryAfter.Delay = drawSeconds(t)
	case 3:
		s.RetryAfter = fakeendpoint.RetryAfter{Date: true, Delay: drawSeconds(t) * time.Duration(rapid.SampledFrom([]int{-1, 0, 1}).Draw(t, "sign"))}
	}
	if rapid.Bool().Draw(t, "location") {
		s.Location = rapid.StringMatching(`[ -~]{1,30}`).Draw(t, "where")
	}
	if s.Status >= 200 && s.Status != 204 && s.Status != 304 {
		s.Body = string(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "body"))
	}
	s.Headers = drawHeaders(t)
	s.Close = rapid.Bool().Draw(t, "close")
	return s
}

func drawHeaders(t *rapid.T) []wire.Header {
	n := rapid.IntRange(0, 2).Draw(t, "headers")
	var headers []wire.Header
	for range n {
		headers = append(headers, wire.Header{Name: rapid.StringMatching(`[A-Za-z0-9!#$%&'*+.^_|~-]{1,8}`).Draw(t, "name"), Value: rapid.StringMatching(`([!-~]([ -~]{0,8}[!-~])?)?`).Draw(t, "value")})
	}
	return headers
}

func drawWait(t *rapid.T) time.Duration {
	return time.Duration(rapid.Int64Range(1, int64(fakeendpoint.MaxWait)).Draw(t, "wait"))
}

func drawSeconds(t *rapid.T) time.Duration {
	return time.Duration(rapid.Int64Range(1, int64(fakeendpoint.MaxWait/time.Second)).Draw(t, "seconds")) * time.Second
}

func FuzzParseScript(f *testing.F) {
	for _, seed := range []string{
		"500*2,200", "429(retry-after=date+30s)*until,200", `103(header="Link: </a>")*2,slow(20s,503(retry-after=5,body="\x00"))*30s,410`,
		"drip(1B,1s,head,size=16KiB)", "expired,refuse(30s),early(413)", "200(", `"`, "200*", "slow(1s,slow(1s,slow(1s)))", "huge(9999999999999999999TiB)",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := fakeendpoint.ParseScript(text)
		if err != nil {
			var e *fakeendpoint.ScriptError
			if !errors.As(err, &e) {
				t.Fatalf("the error is a %T", err)
			}
			if e.Column < 1 || e.Column > len(text)+1 || e.Script != text {
				t.Fatalf("column %d of %q", e.Column, e.Script)
			}
			_ = e.Caret()
			return
		}
		printed := s.String()
		again, err := fakeendpoint.ParseScript(printed)
		if err != nil && len(printed) <= fakeendpoint.MaxScript {
			t.Fatalf("%q printed as %q: %v", text, printed, err)
		}
		if err == nil && again.String() != printed {
			t.Fatalf("%q, then %q, then %q", text, printed, again)
		}
		if _, err := fakeendpoint.NewScript(s.Steps()...); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
