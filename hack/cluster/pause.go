// The process that holds a pod's namespaces for as long as the pod is there.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	// It is the parent of whatever a pod's processes leave behind where they share its PID namespace.
	signal.Ignore(syscall.SIGCHLD)
	<-ended
}
