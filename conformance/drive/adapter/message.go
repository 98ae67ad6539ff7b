package adapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Codes of an [Error]. The first five are JSON-RPC's own.
const (
	ParseError     = -32700
	InvalidRequest = -32600
	MethodNotFound = -32601
	InvalidParams  = -32602
	InternalError  = -32603
	// NotPossible means that the subject knows the method but cannot do this:
	// an endpoint that is not there, a clock that does not go back.
	NotPossible = -32000
	// Cancelled means that the suite took the request back.
	Cancelled = -32001
)

// Error is an answer that is an error. A [Method] returns one to choose its
// code; a call returns one that wraps it.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// reply is an adapter's answer.
type reply struct {
	id     json.RawMessage // as it came; "null" for none
	result json.RawMessage // nil if it is an error
	err    *Error
	line   int // of the peer's output; 0 where there are no lines
}

// request is what the suite asks. Without an id it is a notification.
type request struct {
	id     json.RawMessage
	method string
	params json.RawMessage
}

// outgoing is any message that is written.
type outgoing struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// encode makes one line of a message, with its end.
func (m outgoing) encode() ([]byte, error) {
	m.Version = "2.0"
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false) // it is a line in a pipe; "\u003c" only hides what was sent
	if err := e.Encode(m); err != nil {
		return nil, err
	}
	return line.Bytes(), nil
}

// What a line can be instead of a message. The rest of the error is the detail.
var (
	errNotJSON    = errors.New("it is not JSON")
	errNotMessage = errors.New("it is JSON, but no JSON-RPC message")
	errAsks       = errors.New("it asks instead of answering")
)

// parseReply reads an answer. Names are compared as they stand and members may
// stand once only: encoding/json alone would take "ID" for "id", and the last of
// two.
func parseReply(line []byte) (reply, error) {
	members, err := parseObject(line)
	if err != nil {
		return reply{}, err
	}
	if err := checkVersion(members); err != nil {
		return reply{}, err
	}
	if method, ok := members["method"]; ok {
		return reply{}, fmt.Errorf("%w: it holds a method, %.40s", errAsks, method)
	}
	id, ok := members["id"]
	if !ok {
		return reply{}, fmt.Errorf("%w: the member id is missing", errNotMessage)
	}
	result, isResult := members["result"]
	failure, isError := members["error"]
	switch {
	case isResult && isError:
		return reply{}, fmt.Errorf("%w: it holds both result and error", errNotMessage)
	case isResult:
		return reply{id: id, result: result}, nil
	case !isError:
		return reply{}, fmt.Errorf("%w: it holds neither result nor error", errNotMessage)
	}
	answered, err := parseError(failure)
	if err != nil {
		return reply{}, err
	}
	return reply{id: id, err: answered}, nil
}

func parseError(text json.RawMessage) (*Error, error) {
	var e struct {
		Code    *int            `json:"code"`
		Message *string         `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(text, &e); err != nil || e.Code == nil || e.Message == nil {
		return nil, fmt.Errorf(`%w: its error is not {"code": a whole number, "message": "text"}`, errNotMessage)
	}
	return &Error{Code: *e.Code, Message: *e.Message, Data: e.Data}, nil
}

// parseRequest reads what the suite asks.
func parseRequest(line []byte) (request, *Error) {
	members, err := parseObject(line)
	if errors.Is(err, errNotJSON) {
		return request{}, &Error{Code: ParseError, Message: err.Error()}
	}
	if err == nil {
		err = checkVersion(members)
	}
	if err != nil {
		return request{}, &Error{Code: InvalidRequest, Message: err.Error()}
	}
	r := request{id: members["id"], params: members["params"]}
	if len(r.id) > 0 && !isID(r.id) {
		return request{}, &Error{Code: InvalidRequest, Message: "the id is neither a number nor a string"}
	}
	if err := json.Unmarshal(members["method"], &r.method); err != nil || r.method == "" {
		return r, &Error{Code: InvalidRequest, Message: "the member method is missing or no text"}
	}
	if len(r.params) > 0 && r.params[0] != '{' {
		return r, &Error{Code: InvalidParams, Message: "params are not an object"}
	}
	return r, nil
}

// isID tells whether a JSON value may be the id of a request.
func isID(v json.RawMessage) bool {
	return v[0] == '"' || v[0] == '-' || v[0] >= '0' && v[0] <= '9'
}

func checkVersion(members map[string]json.RawMessage) error {
	version, ok := members["jsonrpc"]
	if !ok {
		return fmt.Errorf(`%w: the member "jsonrpc":"2.0" is missing`, errNotMessage)
	}
	if string(version) != `"2.0"` {
		return fmt.Errorf(`%w: jsonrpc is %.40s where "2.0" is expected`, errNotMessage, version)
	}
	return nil
}

// parseObject reads the members of a JSON object and nothing behind it.
func parseObject(line []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(line) {
		return nil, fmt.Errorf("%w: it is not UTF-8", errNotJSON)
	}
	if !json.Valid(line) {
		return nil, notJSON(line)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, fmt.Errorf("%w: it is not an object", errNotMessage)
	}
	members := map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNotJSON, err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("%w: %w", errNotJSON, err)
		}
		key, _ := name.(string)
		if _, twice := members[key]; twice {
			return nil, fmt.Errorf("%w: the member %.40q stands in it twice", errNotMessage, key)
		}
		members[key] = value
	}
	return members, nil
}

// notJSON says why a line is not JSON.
func notJSON(line []byte) error {
	var v json.RawMessage
	err := json.Unmarshal(line, &v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("%w: %w at byte %d", errNotJSON, err, syntax.Offset)
	}
	return fmt.Errorf("%w: %w", errNotJSON, io.ErrUnexpectedEOF)
}
