package drive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whconform/whconform/conformance/drive/adapter"
	"github.com/whconform/whconform/reference/profile"
)

// StepOutcome is how a step of a check went.
type StepOutcome string

// The outcomes. A note is about what works and may not be meant.
const (
	StepOK         StepOutcome = "ok"
	StepNote       StepOutcome = "note"
	StepFailed     StepOutcome = "failed"
	StepNotReached StepOutcome = "not reached"
)

// Step is one step of the check of an adapter.
type Step struct {
	Name    string // a method of the protocol, or what else was looked at
	Outcome StepOutcome
	Asked   string // what was asked, in words
	Came    string // what came
	Do      string // what to do about it; "" where nothing is to be done
}

// CheckConfig describes an adapter that is to be checked.
type CheckConfig struct {
	Command []string // program and arguments, no shell
	Dir     string   // working directory, "" for this one
	Env     []string // beside this process's own environment
	Profile *profile.Profile
	State   string    // a folder that the adapter may write to
	Log     io.Writer // gets its stderr, without secrets; may be nil
	// CallTimeout bounds each call; 0: [adapter.DefaultCallTimeout].
	CallTimeout time.Duration
	Redact      func(string) string
	Tell        func(Step) // gets each step as soon as it is over

	arrives time.Duration // for the first attempt and its retry; 0: checkArrives
}

// strayWait is how long an adapter is listened to when nothing is asked: what it
// prints then, it prints in the middle of a run, too.
const strayWait = 300 * time.Millisecond

// firstAnswer is how many times as long as another answer the first may take, as
// a runtime and perhaps a whole service start before it.
const firstAnswer = 6

// CheckAdapter walks through the protocol with an adapter, of a sender or of a
// receiver, and tells whether it would do for a run. The error is about the
// check: that it could not be made, or was interrupted.
func CheckAdapter(ctx context.Context, c CheckConfig) (bool, error) {
	if len(c.Command) == 0 {
		return false, errors.New("checking an adapter: no command")
	}
	if c.CallTimeout <= 0 {
		c.CallTimeout = adapter.DefaultCallTimeout
	}
	if c.arrives <= 0 {
		c.arrives = checkArrives
	}
	k := &check{config: c, secrets: &secretBook{redact: c.Redact}, good: true, now: time.Now().UTC().Truncate(time.Second)}
	defer k.end()
	k.walk(ctx)
	if ctx.Err() != nil {
		return false, fmt.Errorf("checking the adapter %q: %w", c.Command[0], context.Cause(ctx))
	}
	return k.good, nil
}

// check is a check under way.
type check struct {
	config  CheckConfig
	secrets *secretBook
	good    bool
	process *adapter.Process
	session *adapter.Session
	now     time.Time // where a virtual clock stands
	fault   bool      // what ended the conversation has been told
}

// tell passes a step on.
func (k *check) tell(s Step) {
	if s.Outcome == StepFailed {
		k.good = false
	}
	s.Came = k.secrets.clean(s.Came)
	k.config.Tell(s)
}

func (k *check) ok(name, asked, came string) {
	k.tell(Step{Name: name, Outcome: StepOK, Asked: asked, Came: came})
}

func (k *check) note(name, asked, came, do string) {
	k.tell(Step{Name: name, Outcome: StepNote, Asked: asked, Came: came, Do: do})
}

func (k *check) fail(name, asked, came, do string) {
	k.tell(Step{Name: name, Outcome: StepFailed, Asked: asked, Came: came, Do: do})
}

// broken tells of an error and whether there was one.
func (k *check) broken(name, asked string, err error) bool {
	if err == nil {
		return false
	}
	var fault *adapter.Fault
	do := "make it answer without an error: the parameters are such as a run has"
	if errors.As(err, &fault) {
		do = fault.Advice
		whole := *fault
		whole.Advice = ""
		err = &whole
	}
	k.fault = k.fault || k.process != nil && k.process.Fault() != nil
	k.fail(name, asked, err.Error(), do)
	return true
}

// over tells whether the conversation has ended before a step. What ended it is
// told once, and then what was not reached.
func (k *check) over(ctx context.Context, name string) bool {
	fault := k.process.Fault()
	switch {
	case ctx.Err() != nil:
		return true
	case fault == nil:
		return false
	case k.fault:
		k.tell(Step{Name: name, Outcome: StepNotReached})
	default:
		k.broken(name, "nothing yet", fault)
	}
	return true
}

// call bounds a call as a run does.
func (k *check) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, k.config.CallTimeout)
}

func (k *check) walk(ctx context.Context) {
	if !k.start(ctx) || !k.introduce(ctx) {
		k.tell(Step{Name: "the methods", Outcome: StepNotReached})
		return
	}
	k.capabilities()
	if k.isSender() {
		k.sender(ctx)
	} else {
		k.receiver(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	k.silence(ctx)
	k.restart(ctx)
	k.farewell(ctx)
}

// start starts the adapter. A receiver may be its own adapter, so it is told all
// that a receiver is told.
func (k *check) start(ctx context.Context) bool {
	asked := strings.Join(k.config.Command, " ")
	port, err := freePort()
	if k.broken("start", asked, err) {
		return false
	}
	secret, err := k.config.Profile.Signature.NewSecret(random())
	if k.broken("start", asked, err) {
		return false
	}
	k.secrets.add(secret)
	env := append(withoutSecrets(os.Environ()), k.config.Env...)
	env = append(env, "WHCONFORM_STATE_DIR="+k.config.State, "PORT="+strconv.Itoa(port))
	env = append(env, Secrets{Current: secret}.environment()...)
	k.process, err = adapter.Start(
		adapter.Command{Args: k.config.Command, Dir: k.config.Dir, Env: env, Log: k.config.Log},
		adapter.Options{CallTimeout: firstAnswer * k.config.CallTimeout, Redact: k.secrets.clean})
	if err != nil {
		k.fail("start", asked, err.Error(), "give the program and its arguments behind --; there is no shell in between")
		return false
	}
	k.ok("start", asked, "it runs")
	return true
}

func (k *check) setup() SenderSetup {
	return SenderSetup{Profile: k.config.Profile.Name, State: k.config.State, Virtual: true, Now: k.now, AllowHosts: []string{"127.0.0.1"}}
}

// introduce makes the first call.
func (k *check) introduce(ctx context.Context) bool {
	asked := fmt.Sprintf("the profile %s, a virtual clock at %s", k.config.Profile.Name, instant(k.now))
	began := time.Now()
	session, err := adapter.Open(ctx, k.process, k.setup().params(k.now))
	if k.broken(adapter.MethodInitialize, asked, err) {
		return false
	}
	k.session = session
	about := session.About
	came := strings.TrimSpace(fmt.Sprintf("%q %s, with %d capabilities, after %v", about.Name, about.Version, len(about.Capabilities), time.Since(began).Round(time.Millisecond)))
	k.ok(adapter.MethodInitialize, asked, came)
	return true
}

func (k *check) isSender() bool {
	return slices.ContainsFunc(k.session.About.Capabilities, func(c string) bool {
		return slices.Contains(senderMethods(), c) && c != adapter.MethodAdvance
	})
}

// capabilities looks at the words that the adapter declares.
func (k *check) capabilities() {
	declared := k.session.About.Capabilities
	var odd []string
	for _, c := range declared {
		if slices.Contains(senderMethods(), c) || slices.Contains(receiverMethods(), c) || slices.Contains(words(), c) {
			continue
		}
		meant := profile.Nearest(c, slices.Concat(senderMethods(), receiverMethods(), words()))
		if meant != "" {
			meant = ", near to " + meant
		}
		odd = append(odd, fmt.Sprintf("%.40q%s", c, meant))
	}
	switch {
	case len(odd) > 0:
		k.note("capabilities", "", "not known: "+strings.Join(odd, "; "), "correct the spelling; the suite asks for none of them")
	case len(declared) == 0:
		k.fail("capabilities", "", "it declares none", "name in capabilities each method that is answered")
	default:
		k.ok("capabilities", "", strings.Join(declared, ", "))
	}
	three := []string{adapter.MethodEnableEndpoint, adapter.MethodDisableEndpoint, adapter.MethodDeleteEndpoint}
	has := slices.DeleteFunc(slices.Clone(three), func(m string) bool { return !k.session.Has(m) })
	if len(has) > 0 && len(has) < len(three) {
		k.note("capabilities", "", "only "+strings.Join(has, " and "), "what needs an owner's hand is judged only with all of "+strings.Join(three, ", "))
	}
}

func senderMethods() []string {
	return []string{
		adapter.MethodCreateEndpoint, adapter.MethodGetEndpoint, adapter.MethodEnableEndpoint, adapter.MethodDisableEndpoint, adapter.MethodDeleteEndpoint,
		adapter.MethodRotateSecret, adapter.MethodPublish, adapter.MethodMutate, adapter.MethodResend, adapter.MethodAttempts, adapter.MethodMessages,
		adapter.MethodNotifications, adapter.MethodAdvance,
	}
}

func receiverMethods() []string {
	return []string{adapter.MethodProcessed, adapter.MethodState, adapter.MethodFailOnce, adapter.MethodAdvance}
}

func words() []string {
	return []string{Managed, Instances, Transaction, Resolver, Versions, OwnEvents, Ed25519, Schedule}
}
