// The first process of a pod sandbox and of the cluster itself: waits, and reaps processes whose parents ended.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for got := range signals {
		if got != syscall.SIGCHLD {
			return
		}
		for reaped, err := 1, error(nil); reaped > 0 && err == nil; {
			reaped, err = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
	}
}
