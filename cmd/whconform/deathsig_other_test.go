//go:build !linux

package main

import "syscall"

// endWithParent is for systems on which the kernel does not do that.
func endWithParent(*syscall.SysProcAttr) {}
