package report

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestBrowserObeysNothing opens hostile pages in a real browser: no script runs,
// and no request leaves to the host that the attacks name, a listener that counts.
func TestBrowserObeysNothing(t *testing.T) {
	if os.Getenv("ASSAY_SLOW") == "" {
		t.Skip("starts a browser for every attack: set ASSAY_SLOW=1")
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium in PATH")
	}
	canary, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := canary.Accept()
			if err != nil {
				return
			}
			calls.Add(1)
			_ = c.Close()
		}
	}()
	for _, attack := range attacks {
		d, _ := hostile(t, attack)
		page := filepath.Join(t.TempDir(), "page.html")
		if err := os.WriteFile(page, render(t, HTML, d), 0o600); err != nil {
			t.Fatal(err)
		}
		dom := open(t, chromium, canary.Addr().String(), page)
		if !strings.Contains(dom, "<h1>") || strings.Contains(dom, "<title>pwned") {
			t.Errorf("%q: the page was changed or not shown: %.300s", attack, dom)
		}
	}
	// The canary is proven: a page that does ask is heard.
	bad := filepath.Join(t.TempDir(), "bad.html")
	if err := os.WriteFile(bad, []byte(`<h1>x</h1><img src="http://canary.invalid/i.png">`), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("the pages made %d requests", n)
	}
	open(t, chromium, canary.Addr().String(), bad)
	if calls.Load() == 0 {
		t.Error("the canary hears nothing, so its silence proves nothing")
	}
	_ = canary.Close()
	<-done
}

func open(t *testing.T, chromium, canary, page string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions", "--no-proxy-server",
		"--host-resolver-rules=MAP *.invalid "+canary+", MAP canary.invalid "+canary+", MAP * ~NOTFOUND", "--user-data-dir="+t.TempDir(), "--virtual-time-budget=2000", "--dump-dom", "file://"+page).Output()
	if err != nil {
		t.Fatalf("opening the page: %v", err)
	}
	return string(out)
}
