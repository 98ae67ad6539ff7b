package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/whconform/whconform/conformance"
	"github.com/whconform/whconform/fakeprovider"
	"github.com/whconform/whconform/reference/signature"
	"github.com/whconform/whconform/reference/wire"
)

// targetFlags say how a receiver is reached, and that it may be.
type targetFlags struct {
	headers    []string
	caCert     string
	cert, key  string
	insecure   bool
	allowHosts []string
	parsed     []wire.Header
	tls        *tls.Config
}

func (f *targetFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.headers, "header", nil, "a header line that every delivery carries, as '`Name: value`'; repeatable")
	flags.StringVar(&f.caCert, "cacert", "", "PEM `FILE` with the certificate of a private authority")
	flags.StringVar(&f.cert, "cert", "", "PEM `FILE` with a client certificate")
	flags.StringVar(&f.key, "key", "", "PEM `FILE` with its key")
	flags.BoolVar(&f.insecure, "insecure", false, "do not verify the receiver's certificate")
	flags.StringArrayVar(&f.allowHosts, "allow-host", nil, "you may send forged and abusive deliveries to this `HOST`, which is not this machine; repeatable")
}

// read makes headers and TLS configuration of the flags.
func (f *targetFlags) read(a *app) error {
	for _, line := range f.headers {
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case !ok || !signature.IsHeaderName(name):
			return usagef("reading --header: a header line is 'Name: value', and the name is one word. This one is not")
		case strings.ContainsAny(value, "\r\n\x00"):
			return usagef("reading --header %s: the value holds a line break", name)
		}
		if guards(name) {
			a.kept.add(value)
			if _, credentials, ok := strings.Cut(value, " "); ok {
				a.kept.add(credentials)
			}
		}
		f.parsed = append(f.parsed, wire.Header{Name: name, Value: value})
	}
	return f.readTLS(a)
}

// guards tells whether a header mostly holds something to be kept. Others may
// be printed: "application/json" cannot be cut out of a report.
func guards(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"auth", "cookie", "key", "token", "secret", "password"}, func(part string) bool {
		return strings.Contains(name, part)
	})
}

func (f *targetFlags) readTLS(a *app) error {
	config := &tls.Config{InsecureSkipVerify: f.insecure}
	if f.caCert != "" {
		pem, err := a.readFile("--cacert", f.caCert)
		if err != nil {
			return err
		}
		if config.RootCAs, err = x509.SystemCertPool(); err != nil {
			config.RootCAs = x509.NewCertPool()
		}
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return usagef("reading --cacert %s: it holds no certificate in PEM form", f.caCert)
		}
	}
	switch {
	case f.cert == "" && f.key == "":
	case f.cert == "" || f.key == "":
		return usagef("reading the client certificate: --cert and --key belong together. Give both")
	default:
		certificate, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return usagef("reading the client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	f.tls = config
	return nil
}

// target makes where deliveries go from a URL, which may hold {port}.
func (f *targetFlags) target(a *app, text string) (fakeprovider.Target, error) {
	to := fakeprovider.Target{URL: text, TLS: f.tls}
	// The port is chosen later; any will do to look at the rest.
	u, err := readURL(strings.ReplaceAll(text, "{port}", "1"))
	if err != nil {
		return to, err
	}
	if password, ok := u.User.Password(); ok {
		a.kept.add(password)
	}
	if !conformance.Loopback(u.String()) && !f.allows(u.Hostname()) {
		return to, usagef("reading the URL: %s is not this machine, and deliveries are forged and abusive. If you may do that there, add --allow-host %s", u.Hostname(), u.Hostname())
	}
	return to, nil
}

func (f *targetFlags) allows(host string) bool {
	return slices.ContainsFunc(f.allowHosts, func(allowed string) bool {
		if name, _, err := net.SplitHostPort(allowed); err == nil {
			allowed = name
		}
		return strings.EqualFold(strings.Trim(allowed, "[]"), host)
	})
}

// readURL refuses what no delivery can be sent to. Its errors leave out the
// URL's text, which may hold a password.
func readURL(text string) (*url.URL, error) {
	const doing = "reading the URL: "
	if !strings.Contains(text, "://") {
		return nil, usagef(doing+"%q has no scheme; did you mean http://%s?", text, strings.TrimPrefix(text, "//"))
	}
	u, err := url.Parse(text)
	if err != nil {
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err
		}
		return nil, usagef(doing+"%w", err)
	}
	switch port, err := strconv.Atoi(u.Port()); {
	case u.Scheme != "http" && u.Scheme != "https":
		meant := ""
		if u.Host != "" {
			meant = "; did you mean http://" + u.Host + u.EscapedPath() + "?"
		}
		return nil, usagef(doing+"webhooks go over http or https, not %s%s", u.Scheme, meant)
	case u.Hostname() == "":
		return nil, usagef(doing + "it names no host")
	case u.Port() != "" && (err != nil || port < 1 || port > 65535):
		return nil, usagef(doing+"there is no port %s", u.Port())
	}
	return u, nil
}
