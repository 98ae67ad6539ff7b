package receiver_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/whconform/whconform/reference/profile"
	"github.com/whconform/whconform/reference/receiver"
)

// A durable inbox with a handler of one's own. In a program the inbox is the
// Store of a Receiver's Config.
func ExampleOpenSQLite() {
	dir, err := os.MkdirTemp("", "inbox")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	contract, err := profile.Load("standard-webhooks")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	processed := make(chan string, 1)
	inbox, err := receiver.OpenSQLite(ctx, filepath.Join(dir, "inbox.db"), receiver.Options{
		Clock:   clock.New(),
		Profile: contract,
		Handler: func(_ context.Context, m receiver.Message) (receiver.Effect, error) {
			// Here is the place to ask the provider, and to take one's time.
			return func(ctx context.Context, tx receiver.Tx) error {
				_, err := tx.ExecContext(ctx, `INSERT INTO effects (event_id, kind, payment, applied_at) VALUES ($1, $2, '', $3)`,
					m.ID, "invoice.paid", time.Now().UnixMicro())
				processed <- m.ID
				return err
			}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- inbox.Run(ctx) }()

	message := receiver.Message{ID: "msg_1", Body: []byte(`{"type":"invoice.paid"}`), ReceivedAt: time.Now()}
	for range 2 { // the second is a copy, and no error
		added, err := inbox.Add(ctx, message)
		fmt.Println("added:", added, err)
	}
	fmt.Println("processed:", <-processed)

	cancel()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
	if err := inbox.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// added: true <nil>
	// added: false <nil>
	// processed: msg_1
}

// What an operator and an observer ask, as HTTP handlers to be mounted where the
// internet does not reach them.
func ExampleInbox_Observer() {
	dir, err := os.MkdirTemp("", "inbox")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	inbox, err := receiver.OpenSQLite(context.Background(), filepath.Join(dir, "inbox.db"), receiver.Options{Clock: clock.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer inbox.Close()
	internal := http.NewServeMux()
	internal.Handle("/metrics", inbox.Metrics())
	internal.Handle("/_observe/", inbox.Observer())
	internal.Handle("/failed", inbox.Operator())
	internal.Handle("/failed/", inbox.Operator())

	answer := httptest.NewRecorder()
	internal.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/_observe/events/msg_1", nil))
	fmt.Print(answer.Body)
	// Output:
	// {"id":"msg_1","processed":0,"failed":false,"state":"unknown","attempts":0}
}
