package sender

import (
	"context"
	"fmt"
)

// RotateSecret gives an endpoint a new secret and returns it. The one before
// signs beside it for Policy.RotationOverlap, the time that its owner has to
// change the receiver. A rotation within this time keeps the newest two: who
// pressed the button twice still has the one before in the receiver.
//
// From the moment it returns every attempt carries both signatures, those of
// messages that wait already among them. The error is [ErrNotFound],
// [ErrConflict] for an endpoint that was deleted, or [ErrUnavailable].
func (s *Sender) RotateSecret(ctx context.Context, endpointID string) (secret string, err error) {
	if secret, err = s.profile.Signature.NewSecret(s.random); err != nil {
		return "", fmt.Errorf("drawing a secret: %w", err)
	}
	if s.faults.Secret != nil {
		secret = s.faults.Secret(endpointID, secret)
	}
	now := s.clock.Now()
	until := now.Add(s.policy.RotationOverlap)
	if s.faults.Expiry != nil {
		until = s.faults.Expiry(now, until)
	}
	err = s.changeEndpoint(ctx, endpointID, "rotating the secret of", func(ctx context.Context, tx Tx, _ standing) error {
		// What was replaced before goes, what is replaced now gets its end.
		_, err := tx.ExecContext(ctx, `DELETE FROM secrets WHERE endpoint_id = $1 AND expires_at IS NOT NULL`, endpointID)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE secrets SET expires_at = $2 WHERE endpoint_id = $1`, endpointID, until.UnixNano())
		if err != nil {
			return err
		}
		return insertSecret(ctx, tx, endpointID, secret, now)
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}
