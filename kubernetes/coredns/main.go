// Command coredns is CoreDNS with the plugins a Kubernetes cluster and the lab's resolver use.
// The full program links the clients of four clouds, which would double its build.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/cancel"
	_ "github.com/coredns/coredns/plugin/debug"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	// The order in which the plugins see a query: CoreDNS's own, but for template, which is last of those that know names, so that it
	// can answer what nobody else does.
	dnsserver.Directives = []string{
		"cancel", "reload", "bind", "debug", "ready", "health", "prometheus", "errors", "log", "cache", "loadbalance",
		"hosts", "kubernetes", "template", "loop", "forward",
	}
	coremain.Run()
}
