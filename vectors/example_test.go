package vectors_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/whconform/whconform/vectors"
)

// A test of one's own signing code: here the code is three lines of HMAC.
func Example() {
	file, err := vectors.Load("standard-webhooks-v1-sign")
	if err != nil {
		fmt.Println(err)
		return
	}
	wrong := 0
	file.Each(func(g vectors.Group, t vectors.Test) {
		if t.Result != vectors.Valid {
			return
		}
		var tokens []string
		for _, k := range g.Keys {
			key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(k.Secret, "whsec_"))
			mac := hmac.New(sha256.New, key)
			fmt.Fprintf(mac, "%s.%s.%s", t.Inputs.ID, t.Inputs.Timestamp, t.Inputs.Body)
			tokens = append(tokens, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		}
		for _, h := range t.Headers {
			if h.Name() == "webhook-signature" && h.Value() != strings.Join(tokens, " ") {
				wrong++
			}
		}
	})
	fmt.Println("wrong:", wrong)
	// Output: wrong: 0
}
