module example

go 1.26.0

require github.com/whconform/whconform v0.0.0

replace github.com/whconform/whconform => ../../..
