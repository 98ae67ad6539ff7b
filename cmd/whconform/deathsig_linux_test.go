package main

import "syscall"

// endWithParent has the kernel end a child with the process that started it, so
// that a test run which is killed leaves no server behind.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
