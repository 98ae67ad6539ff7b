package mutant

import "github.com/whconform/whconform/reference/receiver"

// Otherwise returns receivers that are right in another way than the reference.
// A suite that blames one of them asks for more than the contract does.
func Otherwise() []Mutant {
	all := []Mutant{
		{
			Name: "lists-what-failed", Doc: "It tries an event whose work failed when a copy comes, or somebody asks for it, and lists it until then.",
			New: storing(business{
				failed: func(j *journal, m receiver.Message, _ func()) error { j.list(m.ID); return nil },
				copied: func(j *journal, m receiver.Message, again func()) {
					if j.unlist(m.ID) {
						again()
					}
				},
			}.store),
		},
		{
			Name: "works-before-it-answers", Doc: "It works within the request: what fails is a 500, nothing of it stays, and the provider comes again.",
			New: storing(business{failed: func(j *journal, m receiver.Message, _ func()) error {
				j.drop(m.ID)
				panic("connection reset by peer")
			}}.store),
		},
		{
			Name: "asks-to-come-again", Doc: "It answers 503 with a Retry-After while its work fails.",
			New: storing(business{failed: func(j *journal, m receiver.Message, _ func()) error {
				j.drop(m.ID)
				return receiver.ErrUnavailable
			}}.store),
		},
		{
			Name: "knows-no-refund-without-a-payment", Doc: "It passes over the refund of a payment that it has not heard of.",
			New: storing(business{follows: func(was, said payment) bool {
				return forward(was, said) && (said.State != "refunded" || was.State == "succeeded")
			}}.store),
		},
		{
			Name: "records-no-payments", Doc: "It has no business with payments, and no state to tell of.",
			New: storing(business{follows: func(_, _ payment) bool { return false }}.store),
		},
	}
	for i := range all {
		all[i].Profile = StandardWebhooks
	}
	return all
}
