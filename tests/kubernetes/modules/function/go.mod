module windfall.dev/tests/function

go 1.26
